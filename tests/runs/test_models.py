"""The models of a run: two are never one, a dict names them, and objects are given again to go on."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from tests.results.made_runs import stopped, with_rows

import biassay
from biassay.errors import MeasurementError, UsageError
from biassay.runs.run import Run

from .test_engine import write_test, write_vectors


class Seeded:
    """Vectors of its own for every text, the same each time."""

    def __init__(self, seed: int, *, fails: bool = False) -> None:
        self.seed, self.fails = seed, fails

    def encode(self, texts: list[str]) -> object:
        if self.fails:
            raise OSError("no more")
        return np.array([np.random.default_rng([self.seed, *text.encode()]).normal(size=6) for text in texts])


@pytest.fixture
def test(tmp_path: Path) -> str:
    return write_test(tmp_path / "own.json")


def effects(run: Run) -> list[float | None]:
    return [result.effect_size for result in run.results]


def test_two_objects_of_one_class_are_two_models(test: str, tmp_path: Path) -> None:
    one, two = Seeded(1), Seeded(2)
    alone = [biassay.run(model, test).results[0].effect_size for model in (one, two)]
    run = biassay.run([one, two, one], test, out=tmp_path / "run")
    assert effects(run) == alone
    assert alone[0] != alone[1]
    assert len({record.text for record in run.manifest.models}) == len({r.model for r in run.results}) == 2
    assert Run.load(tmp_path / "run") == run


def test_files_of_one_name_are_two_models_in_every_table(test: str, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    models = [write_vectors(tmp_path / folder / "v.txt", seed=seed) for seed, folder in enumerate("ab")]
    run = biassay.run([*models, f"{models[1]}?case=fold"], test, out=tmp_path / "run")
    lines = (tmp_path / "run" / "results.tsv").read_text().splitlines()
    names = [("vectors:v.txt", "case=keep"), ("vectors:v.txt #2", "case=keep"), ("vectors:v.txt", "case=fold")]
    assert [tuple(line.split("\t")[:2]) for line in lines[1:]] == names
    assert [(r.model, r.options) for r in run.results] == names
    assert effects(run) == [biassay.run(model, test).results[0].effect_size for model in (*models, models[1])]
    stopped(run, 1).save(tmp_path / "stopped")
    assert biassay.resume(tmp_path / "stopped").results == run.results


def test_a_run_of_objects_says_how_it_goes_on(test: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    whole = biassay.run({"a": Seeded(1), "b": Seeded(2)}, test)
    with pytest.raises(MeasurementError) as stopped:
        biassay.run({"a": Seeded(1), "b": Seeded(2, fails=True)}, test, out=out)
    call = f"biassay.resume({str(out)!r}, models={{'a': ..., 'b': ...}})"
    assert stopped.value.__notes__ == [f"resume with: {call}"]
    with pytest.raises(UsageError) as refused:
        biassay.resume(out)
    assert str(refused.value).endswith(call)
    resumed = biassay.resume(out, models={"a": Seeded(1), "b": Seeded(2)})
    assert (resumed.results, resumed.manifest.status) == (whole.results, "complete")


def test_objects_without_names_are_not_told_apart_by_their_order(test: str, tmp_path: Path) -> None:
    """Which of them is which only their names say, and those stand in the refusal."""
    out, whole = tmp_path / "run", biassay.run([Seeded(1), Seeded(2)], test)
    with pytest.raises(MeasurementError):
        biassay.run([Seeded(1), Seeded(2, fails=True)], test, out=out)
    before = (out / "manifest.json").read_bytes()
    names = [record.name for record in Run.load(out).manifest.models]
    call = f"biassay.resume({str(out)!r}, models={{{names[0]!r}: ..., {names[1]!r}: ...}})"
    for given in ([Seeded(2), Seeded(1)], [Seeded(1), Seeded(2)], Seeded(2)):
        with pytest.raises(UsageError) as refused:
            biassay.resume(out, models=given)
        assert str(refused.value).endswith(call)
    assert (out / "manifest.json").read_bytes() == before
    with pytest.raises(UsageError, match="has no model 'c'"):
        biassay.resume(out, {"c": Seeded(1)})
    resumed = biassay.resume(out, {names[1]: Seeded(2), names[0]: Seeded(1)})
    assert (resumed.results, resumed.manifest.status) == (whole.results, "complete")


def test_a_model_given_again_may_lie_elsewhere_and_not_be_another(test: str, tmp_path: Path) -> None:
    model = write_vectors(tmp_path / "v.txt")
    whole = biassay.run(model, test)
    stopped(whole).save(tmp_path / "run")
    (tmp_path / "v.txt").rename(tmp_path / "moved.txt")
    for other in (write_vectors(tmp_path / "v.txt", seed=9), f"vectors:{tmp_path / 'moved.txt'}?case=fold"):
        with pytest.raises(UsageError, match="has changed since the run began"):
            biassay.resume(tmp_path / "run", {"vectors:v.txt": other})
    resumed = biassay.resume(tmp_path / "run", {"vectors:v.txt": f"vectors:{tmp_path / 'moved.txt'}"})
    assert resumed.results == whole.results


def test_a_model_that_changed_since_is_refused(test: str, tmp_path: Path) -> None:
    run = stopped(biassay.run(write_vectors(tmp_path / "v.txt"), test))
    models = tuple(dataclasses.replace(record, revision="another") for record in run.manifest.models)
    with_rows(run, (), models=models).save(tmp_path / "run")
    with pytest.raises(UsageError, match="has changed since the run began"):
        biassay.resume(tmp_path / "run")
