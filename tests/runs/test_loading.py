"""Run folders read and named, whichever biassay wrote them: runs made by hand and golden folders as witnesses."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.results.made_runs import result, run_of, stopped

import biassay
from biassay.errors import RunFolderError, UsageError
from biassay.runs.loading import load_data, name_folders
from biassay.runs.reporting import report_runs

GOLDEN = Path(__file__).parents[1] / "golden" / "recorded" / "folders"
RUN = run_of("one", [result("m", "t")])


def test_what_is_no_run_is_named(tmp_path: Path) -> None:
    for folder in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(RunFolderError, match=str(folder)):
            load_data(folder)
    RUN.save(tmp_path / "inside")
    with pytest.raises(RunFolderError, match="inside"):
        load_data(tmp_path)
    with pytest.raises(RunFolderError, match=r"inside"):
        load_data(tmp_path / "inside" / "manifest.json")


def test_a_run_without_results_is_read_and_not_shown(tmp_path: Path) -> None:
    stopped(RUN).save(tmp_path)
    assert biassay.load(tmp_path).results == ()
    with pytest.raises(RunFolderError, match="no results yet"):
        report_runs([tmp_path], out=tmp_path / "page.html")


# ---- folders of format 1


@pytest.mark.parametrize("name", ["run-exact", "ceat-random"])
def test_a_whole_run_of_format_1_is_read_and_can_be_saved(name: str, tmp_path: Path) -> None:
    old = json.loads((GOLDEN / name / "manifest.json").read_text())
    assert old["format_version"] == 1
    run = biassay.load(GOLDEN / name)
    assert [m.text for m in run.manifest.models] == [m["text"] for m in old["models"]]
    assert {m.text: set(m.words_lost) for m in run.manifest.models if m.words_lost} == {
        text: set(words) for text, words in old["words_lost"].items() if words
    }
    assert (run.manifest.study, run.manifest.settings.seed, run.manifest.settings.alpha) == (
        *("associations", old["seed"], old["alpha"]),
    )
    stored = json.loads((GOLDEN / name / "results.json").read_text())["results"]
    assert [r.effect_size for r in run.results] == [row["effect_size"] for row in stored]
    again = biassay.load(run.save(tmp_path / "run"))
    assert again == run
    assert set(again.arrays) == set(run.arrays)
    assert bool(run.arrays) is (name == "ceat-random")
    assert biassay.resume(tmp_path / "run") == run  # there is nothing left to do


@pytest.mark.parametrize("name", ["run-killed", "ceat-random-killed"])
def test_an_unfinished_run_of_format_1_is_refused_by_name(name: str) -> None:
    for use in (biassay.load, biassay.resume):
        with pytest.raises(RunFolderError, match="format version 1"):
            use(GOLDEN / name)


@pytest.mark.parametrize("damage", [{"results": ["x"]}, {"results": {"a": 1}}, {"results": None}, {}])
def test_a_folder_of_format_1_with_other_content_is_refused(damage: dict[str, Any], tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "run-exact", tmp_path / "run")
    (tmp_path / "run" / "results.json").write_text(json.dumps({"format_version": 1} | damage))
    with pytest.raises(RunFolderError, match="run"):
        biassay.load(tmp_path / "run")


def test_a_damaged_file_of_samples_of_format_1_is_named(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "ceat-random", tmp_path / "run")
    (tmp_path / "run" / "samples" / "0.npz").write_bytes(b"not an archive")
    with pytest.raises(RunFolderError, match=r"samples/0\.npz"):
        biassay.load(tmp_path / "run")


@pytest.mark.parametrize(
    "numbers",
    [np.array(["x"], dtype=object), np.zeros((2, 2)), np.zeros(3, dtype=np.int8)],
    ids=["object", "2-d", "int"],
)
def test_samples_of_format_1_are_numbers_in_a_row(numbers: np.ndarray, tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "ceat-random", tmp_path / "run")
    path = tmp_path / "run" / "samples" / "0.npz"
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    np.savez(path, **arrays | {next(iter(arrays)): numbers})
    with pytest.raises(RunFolderError, match=r"samples/0\.npz: .*not an array of numbers"):
        biassay.load(tmp_path / "run")


def test_samples_of_format_1_are_unpacked_to_a_limit(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "ceat-random", tmp_path / "run")
    path = tmp_path / "run" / "samples" / "0.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("t/samples.npy", "w") as file:
        for _ in range(65):
            file.write(bytes(2**20))
    with pytest.raises(UsageError, match=r"samples/0\.npz: .*64 MiB"):
        biassay.load(tmp_path / "run")


def test_samples_of_format_1_that_give_another_effect_are_refused(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "ceat-random", tmp_path / "run")
    shutil.copy(GOLDEN / "ceat-random" / "samples" / "1.npz", tmp_path / "run" / "samples" / "0.npz")
    with pytest.raises(RunFolderError, match="the samples give the effect size"):
        biassay.load(tmp_path / "run")


# ---- names of folders


def test_folders_are_named_by_their_last_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert name_folders([Path("a"), Path("b/c"), tmp_path / "d"]) == ["a", "c", "d"]
    assert name_folders([Path()]) == [tmp_path.name]
    assert name_folders([Path("a/../b/")]) == ["b"]
    assert name_folders([]) == []


def test_folders_of_one_name_get_the_part_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert name_folders([Path("a/run"), Path("b/run")]) == ["a/run", "b/run"]
    assert name_folders([Path("a/x/run"), Path("b/x/run"), Path("other")])[:2] == ["a/x/run", "b/x/run"]
    names = name_folders([Path("run"), Path("run/run"), Path("run/run/run")])
    assert len(set(names)) == 3


def test_a_folder_at_the_root_has_a_plain_name() -> None:
    assert name_folders([Path("/run"), Path("/a/run")]) in (["/run", "a/run"], ["run", "a/run"])


def test_a_folder_named_twice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to("a")
    for again in (Path("a"), Path("b/../a"), tmp_path / "a", Path("link")):
        with pytest.raises(UsageError, match="a is named twice"):
            name_folders([Path("a"), Path("b"), again])
