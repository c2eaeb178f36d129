"""Run folders are read back and named."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.results.made_runs import result, run_of, stopped

import biassay
from biassay.errors import RunFolderError, UsageError
from biassay.runs.compare import report_runs
from biassay.runs.folders import load_run_data, name_folders

RUN = run_of("one", [result("m", "t")])


def test_what_is_no_run_is_named(tmp_path: Path) -> None:
    for folder in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(RunFolderError, match=str(folder)):
            load_run_data(folder)
    RUN.save(tmp_path / "inside")
    with pytest.raises(RunFolderError, match="inside"):
        load_run_data(tmp_path)
    with pytest.raises(RunFolderError, match=r"inside"):
        load_run_data(tmp_path / "inside" / "manifest.json")


def test_a_run_without_results_is_read_and_not_shown(tmp_path: Path) -> None:
    stopped(RUN).save(tmp_path)
    assert biassay.load(tmp_path).results == ()
    with pytest.raises(RunFolderError, match="no results yet"):
        report_runs([tmp_path], out=tmp_path / "page.html")


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
