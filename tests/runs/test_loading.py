"""Run folders are read back and named."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.results.made_runs import result, run_of

from biassay.errors import UsageError
from biassay.runs.folders import name_folders

RUN = run_of("one", [result("m", "t")])


# ---- names of folders


def test_folders_of_one_name_get_the_part_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert name_folders([Path("a/run"), Path("b/run")]) == ["a/run", "b/run"]
    assert name_folders([Path("a/x/run"), Path("b/x/run"), Path("other")])[:2] == ["a/x/run", "b/x/run"]
    names = name_folders([Path("run"), Path("run/run"), Path("run/run/run")])
    assert len(set(names)) == 3


def test_a_folder_named_twice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to("a")
    for again in (Path("a"), Path("b/../a"), tmp_path / "a", Path("link")):
        with pytest.raises(UsageError, match="a is named twice"):
            name_folders([Path("a"), Path("b"), again])
