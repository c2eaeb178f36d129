"""Run folders that were damaged or are not what they seem: refused with a sentence, or read as they were."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from biassay.pipeline.reporting import report_runs
from biassay.results.run import Run
from biassay.results.samples import Samples, load_samples
from tests.damage import damages
from tests.results.made_runs import contexts, discovery, result, run_of, some, stereotypes

from biassay.errors import RunFolderError, UsageError
from biassay.pipeline.common import check_free
from biassay.results.gathering import load_found

FILES = ("manifest.json", "results.json")
RUN = run_of("one", [result("m", "t"), result("m", "u", 0.001)], {(0, "t"): some(1)}, contexts=contexts())


def refused(folder: Path, name: str) -> str:
    with pytest.raises(RunFolderError) as caught:
        load_found(folder)
    assert str(caught.value).startswith(f"{folder / name}: ")
    return str(caught.value)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("found", [RUN, discovery(), stereotypes()], ids=["run", "discovery", "stereotypes"])
def test_damaged_records_are_refused_or_read_as_they_were(tmp_path: Path, name: str, found: Any) -> None:
    found.save(tmp_path)
    path = tmp_path / name
    whole, taken = path.read_bytes(), 0
    for content in damages(whole, 200):
        path.write_bytes(content)
        try:
            assert load_found(tmp_path) == found
            taken += 1
        except RunFolderError as error:
            assert str(path) in str(error)  # noqa: PT017
    assert taken < 40  # blanks between the fields, and the name of the digest itself


@pytest.mark.parametrize("name", FILES)
def test_a_changed_number_is_refused_unless_the_digest_is_taken_out(tmp_path: Path, name: str) -> None:
    RUN.save(tmp_path)
    content = json.loads((tmp_path / name).read_text())
    (content if name == FILES[0] else content["results"][0])["alpha"] = 0.02
    (tmp_path / name).write_text(json.dumps(content))
    refused(tmp_path, name)
    del content["digest"]  # as in folders of before there were digests
    (tmp_path / name).write_text(json.dumps(content))
    found = load_found(tmp_path)
    assert isinstance(found, Run)
    assert {found.manifest.alpha, found.results[0].alpha} == {0.01, 0.02}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("[" * 100_000, id="brackets"),
        pytest.param('{"format_version": 1, "versions": ' + '{"a":' * 900 + "1" + "}" * 901, id="nested"),
        pytest.param('{"format_version": ' + "9" * 5000 + "}", id="too many digits"),
        pytest.param('{"format_version": 1, "alpha": ' + "9" * 4000 + "}", id="no float"),
    ],
)
@pytest.mark.parametrize("name", FILES)
def test_json_that_cannot_be_taken_in_is_refused(tmp_path: Path, name: str, content: str) -> None:
    RUN.save(tmp_path)
    (tmp_path / name).write_text(content)
    refused(tmp_path, name)


def test_a_number_too_large_for_a_float_is_refused(tmp_path: Path) -> None:
    RUN.save(tmp_path)
    content = json.loads((tmp_path / "results.json").read_text())
    del content["digest"]
    content["results"][0]["p_value"] = 10**400
    (tmp_path / "results.json").write_text(json.dumps(content))
    refused(tmp_path, "results.json")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize("name", ["results.json", "samples/0.npz"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_pipe_or_a_device_in_place_of_a_file_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    RUN.save(tmp_path)
    (tmp_path / name).unlink()
    if kind == "pipe":
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).symlink_to("/dev/zero")
    assert "pipe or a device" in refused(tmp_path, name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_no_page_and_no_manifest(tmp_path: Path) -> None:
    RUN.save(tmp_path / "run")
    os.mkfifo(tmp_path / "page.html")
    with pytest.raises(UsageError, match="pipe or a device"):
        report_runs([tmp_path / "run"], out=tmp_path / "page.html")
    (tmp_path / "run" / "manifest.json").unlink()
    os.mkfifo(tmp_path / "run" / "manifest.json")
    for use in (load_found, check_free, RUN.save):
        with pytest.raises(RunFolderError):
            use(tmp_path / "run")


@pytest.mark.parametrize("results", [["x"], {"a": 1}, [[]], None])
@pytest.mark.parametrize("found", [discovery(), stereotypes()], ids=["discovery", "stereotypes"])
def test_an_older_folder_of_other_content_is_refused(tmp_path: Path, found: Any, results: object) -> None:
    found.save(tmp_path)
    content = json.loads((tmp_path / "results.json").read_text()) | {"results": results}
    del content["digest"]
    (tmp_path / "results.json").write_text(json.dumps(content))
    refused(tmp_path, "results.json")


def archive(header: str, data: bytes = b"", method: int = zipfile.ZIP_STORED) -> bytes:
    """Samples of one test whose arrays have a header as given."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as made:
        for part in ("effect_sizes", "variances", "p_values"):
            content = header.ljust(117).encode() + b"\n"
            made.writestr(f"t/{part}.npy", b"\x93NUMPY\x01\x00" + len(content).to_bytes(2, "little") + content + data)
    return buffer.getvalue()


def of(shape: str, kind: str = "<f8") -> str:
    return f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(archive(of("(100000000000,)")), id="absurd size"),
        pytest.param(archive(of("(-1,)")), id="negative size"),
        pytest.param(archive(of("(1000000, 1000000)")), id="absurd shape"),
        pytest.param(archive(of("(1,)", "<U999999999")), id="absurd type"),
        pytest.param(archive(of("(1,)", "|O"), bytes(8)), id="objects"),
        pytest.param(archive(of("(100000,)"), bytes(800_000), zipfile.ZIP_DEFLATED), id="compressed zeros"),
        pytest.param(archive("{'descr': ("), id="header cut off"),
        pytest.param(archive("'''"), id="header of text"),
        pytest.param(archive("-" * 9000 + "1"), id="header of many signs"),
    ],
)
def test_samples_that_are_not_as_declared_are_refused(tmp_path: Path, content: bytes) -> None:
    RUN.save(tmp_path)
    (tmp_path / "samples" / "0.npz").write_bytes(content)
    refused(tmp_path, "samples/0.npz")


def test_the_archive_of_these_tests_is_read_where_it_is_right(tmp_path: Path) -> None:
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "0.npz").write_bytes(archive(of("(1,)"), np.float64(0.5).tobytes()))
    assert load_samples(tmp_path)[0, "t"].p_values.tolist() == [0.5]


def test_damaged_samples_are_refused_or_read_as_they_were(tmp_path: Path) -> None:
    RUN.save(tmp_path)
    path = tmp_path / "samples" / "0.npz"
    for content in damages(path.read_bytes(), 150):
        path.write_bytes(content)
        try:
            found = load_samples(tmp_path)
        except RunFolderError:
            continue
        assert list(found) == [(0, "t")]
        assert numbers(found[0, "t"]) == numbers(some(1))


def numbers(samples: Samples) -> list[list[float]]:
    return [part.tolist() for part in (samples.effect_sizes, samples.variances, samples.p_values)]
