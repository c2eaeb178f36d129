"""A run of very many models is written now and then, and whole in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

import biassay
from biassay.results import run_folder
from biassay.runs import runner

from .test_engine import write_test, write_vectors


@pytest.mark.parametrize("quick", [60.0, -1.0])
def test_results_are_whole_however_often_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: float
) -> None:
    models = [write_vectors(tmp_path / f"{seed}.txt", seed=seed) for seed in range(6)]
    test, written = write_test(tmp_path / "own.json"), list[int]()
    write_run = run_folder.write_run
    monkeypatch.setattr(runner, "_QUICK_SECONDS", quick)
    monkeypatch.setattr(runner, "_TIME_RATIO", 1e9)
    monkeypatch.setattr(runner, "write_run", lambda *given: written.append(len(given[1].tables)) or write_run(*given))
    found = biassay.run(models, test, out=tmp_path / "run")
    assert len(written) == (7 if quick > 0 else 2)  # before the first model, and after each or the last
    assert biassay.load(tmp_path / "run").results == found.results
    assert biassay.run(models, test).results == found.results
