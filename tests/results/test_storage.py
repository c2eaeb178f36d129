"""Run folders: written and read back, nothing is lost; damaged ones are refused or read as they were."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.damage import damages
from tests.results.made_runs import (
    ROLES,
    consistent,
    contexts,
    over_contexts,
    result,
    run_of,
    some_samples,
)

from biassay.errors import RunFolderError
from biassay.results.run_data import FORMAT_VERSION
from biassay.results.run_folder import structure_record, to_json
from biassay.runs.folders import load_run_data
from biassay.runs.run import load
from biassay.studies.associations.results import AssociationRecord

FILES = ("manifest.json", "results.json")
ROWS = [over_contexts(result("m", "t")), result("m", "u", 0.001)]
RUN = consistent(run_of("one", ROWS, some_samples(0, "t"), contexts=contexts()))
texts = st.text(max_size=20)
numbers = st.floats(-1e150, 1e150) | st.sampled_from([math.nan, math.inf, -math.inf])
maybe = st.none() | numbers


def edited(path: Path, change: Any) -> None:
    """Changed on purpose: without its digest."""
    content = json.loads(path.read_text())
    del content["digest"]
    change(content)
    path.write_text(json.dumps(content))


def refused(folder: Path, name: str) -> str:
    with pytest.raises(RunFolderError) as caught:
        load_run_data(folder)
    assert str(caught.value).startswith(f"{folder / name}: ")
    return str(caught.value)


# ---- records


@given(
    st.builds(
        result,
        model=texts,
        test=texts,
        p=maybe,
        effect_size=maybe,
        reason=st.none() | texts,
        num_words=st.dictionaries(st.sampled_from(ROLES), st.integers(0, 10**6)),
        oov_words=st.dictionaries(st.sampled_from(ROLES), st.lists(texts, max_size=3).map(tuple)),
        associations=st.dictionaries(st.sampled_from(ROLES), st.dictionaries(texts, numbers, max_size=3)),
        sentences_p_value=maybe,
        new_contexts_low=maybe,
        n_samples=st.none() | st.integers(3, 10**6),
    )
)
def test_a_result_through_strict_json_is_equal(row: AssociationRecord) -> None:
    content = json.loads(to_json(row), parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert structure_record(content, AssociationRecord, "here") == row


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1e-60, 0.1, 1])
def test_numbers_keep_their_value_in_json(value: float | None) -> None:
    back = structure_record(json.loads(to_json(result(p=value))), AssociationRecord, "here").outcome.p_value
    if value is None:
        assert back is None
    else:
        assert isinstance(back, float)
        assert math.isnan(back) if math.isnan(value) else back == value
        assert math.copysign(1, back) == math.copysign(1, value) or math.isnan(value)


def test_a_record_of_the_wrong_shape_names_the_file() -> None:
    whole = json.loads(to_json(result()))
    without = {key: value for key, value in whole.items() if key != "model"}
    odd = [whole | {"outcome": {"p_value": value}} for value in ("small", True)]
    for wrong in (without, *odd, whole | {"status": "odd"}, [], 3):
        with pytest.raises(RunFolderError, match=r"some/results\.json"):
            structure_record(wrong, AssociationRecord, "some/results.json")


# ---- folders


def test_a_run_comes_back_as_it_was(tmp_path: Path) -> None:
    again = load(RUN.save(tmp_path / "run"))
    assert again == RUN
    assert {path.name for path in (tmp_path / "run").iterdir()} == {*FILES, "results.tsv", "arrays"}
    assert list(again.arrays) == list(RUN.arrays)
    assert all(np.array_equal(array, again.arrays[name]) for name, array in RUN.arrays.items())
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["format_version"] == FORMAT_VERSION == 1


def test_saving_again_reads_no_results_and_another_run_is_refused(tmp_path: Path) -> None:
    RUN.save(tmp_path)
    whole = (tmp_path / "results.json").read_bytes()
    (tmp_path / "results.json").write_bytes(b"never read")
    RUN.save(tmp_path)
    assert (tmp_path / "results.json").read_bytes() == whole
    with pytest.raises(RunFolderError, match="another run"):
        run_of("two", ROWS).save(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match="file"):
        RUN.save(tmp_path / "file" / "run")


def test_a_newer_format_is_refused_by_name(tmp_path: Path) -> None:
    RUN.save(tmp_path)
    for name in FILES:
        whole = (tmp_path / name).read_bytes()
        edited(tmp_path / name, lambda content: content.update(format_version=FORMAT_VERSION + 1))
        assert f"format version {FORMAT_VERSION + 1}" in refused(tmp_path, name)
        (tmp_path / name).write_bytes(whole)


def test_a_study_that_is_not_installed_says_which_package_it_needs(tmp_path: Path) -> None:
    RUN.save(tmp_path)
    edited(tmp_path / "manifest.json", lambda content: content.update(study="dreams", package="biassay-dreams"))
    with pytest.raises(RunFolderError, match=r"'dreams'.*'biassay-dreams'"):
        load_run_data(tmp_path)


@pytest.mark.parametrize("name", FILES)
def test_damaged_records_are_refused_or_read_as_they_were(tmp_path: Path, name: str) -> None:
    RUN.save(tmp_path)
    path, taken = tmp_path / name, 0
    for content in damages(path.read_bytes(), 200):
        path.write_bytes(content)
        try:
            assert load(tmp_path) == RUN
            taken += 1
        except RunFolderError as error:
            assert str(path) in str(error)  # noqa: PT017
    assert taken < 40  # blanks between the fields, and the name of the digest itself


@pytest.mark.parametrize("name", FILES)
def test_a_changed_number_is_refused_unless_the_digest_is_taken_out(tmp_path: Path, name: str) -> None:
    RUN.save(tmp_path)
    content = json.loads((tmp_path / name).read_text())
    (content["settings"] if name == FILES[0] else content["tables"]["results"][1])["alpha"] = 0.02
    (tmp_path / name).write_text(json.dumps(content))
    refused(tmp_path, name)
    del content["digest"]
    (tmp_path / name).write_text(json.dumps(content))
    found = load(tmp_path)
    assert {found.manifest.settings.alpha_or_default, found.results[1].alpha} == {0.05, 0.02}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("[" * 100_000, id="brackets"),
        pytest.param('{"format_version": 1, "versions": ' + '{"a":' * 900 + "1" + "}" * 901, id="nested"),
        pytest.param('{"format_version": ' + "9" * 5000 + "}", id="too many digits"),
        pytest.param("[1, 2]", id="list"),
        pytest.param("{", id="cut"),
        pytest.param("{}", id="empty"),
    ],
)
@pytest.mark.parametrize("name", FILES)
def test_json_that_cannot_be_taken_in_is_refused(tmp_path: Path, name: str, content: str) -> None:
    RUN.save(tmp_path)
    (tmp_path / name).write_text(content)
    refused(tmp_path, name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize("name", ["results.json", "arrays/0.npz"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_pipe_or_a_device_in_place_of_a_file_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    RUN.save(tmp_path)
    (tmp_path / name).unlink()
    if kind == "pipe":
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).symlink_to("/dev/zero")
    assert "pipe or a device" in refused(tmp_path, name)


def test_json_of_a_run_holds_manifest_tables_and_findings() -> None:
    printed = json.loads(RUN.to_json())
    tables = {"results", "diagnostics", "measures", "scales", "topics", "decisions"}
    assert set(printed) == {"manifest", "findings", *tables}
    assert [row["outcome"] for row in printed["results"]] == [json.loads(to_json(row.outcome)) for row in RUN.results]
    assert [row["evidence"] for row in printed["results"]] == [row.evidence for row in RUN.results]
    assert printed["findings"] == [json.loads(to_json(one)) for one in RUN.findings()]
    assert printed["manifest"]["inputs"]["contexts"]["file"] == "c.parquet"


@pytest.mark.parametrize("part", ["tables", "arrays"])
def test_a_part_that_is_missing_is_named(tmp_path: Path, part: str) -> None:
    RUN.save(tmp_path)
    edited(tmp_path / "results.json", lambda content: content.pop(part))
    assert repr(part) in refused(tmp_path, "results.json")
