"""Measurement cache: the same numbers without measuring, until an input changes."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import biassay
from biassay.cache import responses
from biassay.runs import measurement_cache
from biassay.runs.run import Run
from biassay.studies.associations.study import STUDY

from .test_engine import assert_same, write_test, write_vectors

pytestmark = pytest.mark.usefixtures("measured_once")

Measure = Callable[..., Run]


@pytest.fixture
def measure(tmp_path: Path) -> Measure:
    vectors, test = write_vectors(tmp_path / "own.txt"), write_test(tmp_path / "own.json")

    def run(**settings: Any) -> Run:
        return biassay.run(vectors, **{"tests": test, **settings})

    return run


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the models that were measured, and not read."""
    seen: list[str] = []
    real = type(STUDY).measure

    def counting(study: Any, inputs: Any, model: Any, all_outputs: Any) -> Any:
        seen.append(model.identity.name.removeprefix("vectors:"))
        return real(study, inputs, model, all_outputs)

    monkeypatch.setattr(type(STUDY), "measure", counting)
    return seen


def kept(cache: Path) -> list[Path]:
    return sorted((cache / "measured").iterdir())


def test_the_second_time_nothing_is_measured(measure: Measure, counted: list[str], tmp_path: Path) -> None:
    first, second = measure(out=tmp_path / "first"), measure(out=tmp_path / "second")
    assert counted == ["own.txt"]
    assert_same(first, second)
    assert first.manifest.run_id != second.manifest.run_id
    tables = [(tmp_path / name / "results.tsv").read_bytes() for name in ("first", "second")]
    assert tables[0] == tables[1]


def test_a_model_is_kept_by_itself_and_corrections_are_of_the_run(
    measure: Measure, counted: list[str], tmp_path: Path
) -> None:
    other, test = write_vectors(tmp_path / "other.txt", seed=8), write_test(tmp_path / "own.json")
    measure()
    both = biassay.run([f"vectors:{tmp_path / 'own.txt'}", other], tests=[test, "weat6"], max_unknown=1.0)
    assert counted == ["own.txt", "own.txt", "other.txt"]
    again = biassay.run([other, f"vectors:{tmp_path / 'own.txt'}"], tests=[test, "weat6"], max_unknown=1.0)
    assert len(counted) == 3
    assert sorted(both.results, key=lambda row: (row.model, row.test)) == sorted(
        again.results, key=lambda row: (row.model, row.test)
    )
    assert set(again.arrays) == {f"{1 - int(name[0])}{name[1:]}" for name in both.arrays}


@pytest.mark.parametrize("change", ["seed", "alpha", "test", "label", "vectors", "code", "numpy"])
def test_what_decides_the_numbers_measures_anew(
    change: str, measure: Measure, counted: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure()
    settings = {"seed": {"seed": 3}, "alpha": {"alpha": 0.2}}.get(change, {})
    if change == "test":
        write_test(tmp_path / "own.json", count=3)
    elif change == "label":  # the same texts, so the same digest
        file = tmp_path / "own.json"
        file.write_text(file.read_text().replace('"category": "targ1"', '"category": "renamed"'))
    elif change == "vectors":
        write_vectors(tmp_path / "own.txt", seed=6)
    elif change == "code":
        monkeypatch.setattr(measurement_cache, "_CODE_FILES", [])
        monkeypatch.setattr(measurement_cache, "_list_code_files", list)
    elif change == "numpy":
        monkeypatch.setattr("biassay.runs.runner.get_versions", lambda names: dict.fromkeys(names, "0"))
    measure(**settings)  # type: ignore[arg-type]
    assert counted == ["own.txt"] * 2


def test_other_answers_measure_anew(measure: Measure, counted: list[str], own_cache: Path) -> None:
    """As of another machine, whose vectors differ in their last bits."""
    measure()
    [texts] = [file for file in own_cache.glob("*/*.npz") if "vectors" in np.load(file)]
    with np.load(texts) as archive:
        content = dict(archive)
    texts.unlink()
    content["vectors"] = np.nextafter(content["vectors"], np.float32(9.0))
    buffer = io.BytesIO()
    np.savez(buffer, **content)
    (texts.parent / responses.get_file_name(buffer.getvalue(), texts.parent.name)).write_bytes(buffer.getvalue())
    measure()
    assert len(counted) == 2


def test_damage_measures_anew(measure: Measure, counted: list[str], own_cache: Path) -> None:
    first = measure()
    [folder] = kept(own_cache)
    for name in ("manifest.json", "results.json", "arrays/0.npz"):
        content = bytearray((folder / name).read_bytes())
        middle = slice(len(content) // 2 - 40, len(content) // 2 + 40)  # one byte may be one that nobody reads
        content[middle] = bytes(byte ^ 1 for byte in content[middle])
        (folder / name).write_bytes(content)
        assert_same(first, measure())
    (folder / "arrays" / "0.npz").unlink()
    assert_same(first, measure())
    assert len(counted) == 5
    measure()
    assert len(counted) == 5


def test_code_that_changed_under_a_process_keeps_nothing(
    measure: Measure, counted: list[str], own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurement_cache, "_list_code_files", list)
    assert_same(measure(), measure())
    assert len(counted) == 2
    assert not (own_cache / "measured").exists()


def test_what_nobody_asked_for_in_a_month_is_removed(measure: Measure, own_cache: Path) -> None:
    measure()
    [old] = kept(own_cache)
    manifest = old / "manifest.json"
    long_ago = manifest.stat().st_mtime - 31 * 24 * 3600
    os.utime(manifest, (long_ago, long_ago))
    measure()  # read: so it stays
    measure(seed=1)
    assert len(kept(own_cache)) == 2
    os.utime(manifest, (long_ago, long_ago))
    measure(seed=2)
    assert len(kept(own_cache)) == 2
    assert not old.exists()
