"""Runs as a Python user calls them: ``biassay.run`` and ``biassay.resume``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.results.made_runs import stopped

import biassay
from biassay.errors import RunFolderError, StimulusError, UnknownNameError, UsageError
from biassay.results.outcomes import Result
from biassay.runs.models import get_versions
from biassay.runs.run import Run


def assert_same(one: Run, other: Run) -> None:
    """All numbers and lost words of two runs are the same."""
    assert one.tables == other.tables
    assert one.arrays.keys() == other.arrays.keys()
    for name, array in one.arrays.items():
        np.testing.assert_array_equal(array, other.arrays[name])
    assert [m.oov_words for m in one.manifest.models] == [m.oov_words for m in other.manifest.models]


def write_test(path: Path, count: int = 4) -> str:
    keys = zip(("targ1", "targ2", "attr1", "attr2"), "xyab", strict=True)
    content = {key: {"category": key, "examples": [f"{c}{i}" for i in range(count)]} for key, c in keys}
    path.write_text(json.dumps(content))
    return str(path)


def write_vectors(path: Path, count: int = 4, seed: int = 5) -> str:
    rng = np.random.default_rng(seed)
    names = [f"{c}{i}" for c in "xyab" for i in range(count)]
    path.write_text("".join(f"{n} " + " ".join(f"{v:.5f}" for v in rng.normal(size=8)) + "\n" for n in names))
    return f"vectors:{path}"


def test_the_manifest_says_how_the_run_was_made(tmp_path: Path) -> None:
    model = write_vectors(tmp_path / "v.txt", 5)
    test = write_test(tmp_path / "own.json", 6)
    settings: dict[str, Any] = {
        "protocol": "caliskan2017",
        "alternative": "two-sided",
        "alpha": 0.05,
        "max_unknown": 0.5,
        "seed": 7,
    }
    run = biassay.run(f"{model}?case=fold", tests=[test, "weat6"], **settings)
    manifest = run.manifest
    assert {name: getattr(manifest.settings, name) for name in settings} == settings
    assert set(manifest.versions) == {"python", "biassay", "numpy", "scipy"}
    record = manifest.models[0]
    assert (record.text, record.name, record.settings) == (f"{model}?case=fold", "vectors:v.txt", {"case": "fold"})
    assert record.revision
    assert [(t.name, t.pattern) for t in manifest.inputs.tests] == [("own", test), ("weat6", "weat6")]
    assert {"x5", "y5", "a5", "b5"} <= set(record.oov_words)
    own = run.results[0]
    assert own.oov_words == {"X": ("x5",), "Y": ("y5",), "A": ("a5",), "B": ("b5",)}
    assert (own.protocol, own.alternative, own.seed) == ("caliskan2017", "two-sided", 7)
    assert own.model_revision == record.revision
    assert own.test_digest == manifest.inputs.tests[0].digest


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"protocol": "exakt"}, UnknownNameError),
        ({"alternative": "less"}, UnknownNameError),
        ({"alpha": 0.0}, UsageError),
        ({"max_unknown": 2.0}, UsageError),
        ({"seed": -1}, UsageError),
        ({"tests": "waet6"}, UnknownNameError),
        ({"tests": "no.json"}, StimulusError),
        ({"models": "glov"}, UnknownNameError),
        ({"models": []}, UsageError),
    ],
)
def test_a_wrong_request_is_refused_before_anything_is_written(
    settings: dict[str, object], error: type[Exception], tmp_path: Path
) -> None:
    with pytest.raises(error):
        biassay.run(**{"models": "glove", "tests": "weat6", "out": tmp_path / "run"} | settings)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_a_folder_in_use_is_refused_before_anything_is_encoded(tmp_path: Path, own_cache: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(RunFolderError):
        biassay.run("glove", tests="weat6", out=tmp_path)
    assert not list(own_cache.rglob("*.npz"))


def test_every_public_name_is_there() -> None:
    for name in biassay.__all__:
        assert getattr(biassay, name) is not None
    assert biassay.Result is Result
    assert set(biassay.__all__) < set(dir(biassay))
    with pytest.raises(AttributeError, match="no attribute 'wheat'"):
        _ = biassay.wheat  # type: ignore[attr-defined]


def test_results_of_another_state_than_the_manifest_says_are_refused(tmp_path: Path) -> None:
    models = [write_vectors(tmp_path / f"{name}.txt", seed=seed) for seed, name in enumerate("ab")]
    whole = biassay.run(models, tests=write_test(tmp_path / "own.json"))
    stopped(whole, 1).save(tmp_path / "run")
    half = (tmp_path / "run" / "results.json").read_bytes()
    whole.save(tmp_path / "run")
    (tmp_path / "run" / "results.json").write_bytes(half)  # as a second process would
    with pytest.raises(RunFolderError, match="two processes"):
        biassay.load(tmp_path / "run")


def test_a_package_that_is_not_there_has_an_unknown_version() -> None:
    assert get_versions(["biassay-no-such-thing"]) == {"biassay-no-such-thing": "unknown"}


def test_a_part_of_a_run_keeps_its_corrections_and_is_no_state_of_the_run(tmp_path: Path) -> None:
    run = biassay.run({"a": "glove", "b": "glove"}, "weat[6-9]")
    part = run["weat7"]
    assert part.results == tuple(row for row in run.results if row.test == "weat7")
    assert {row.model for row in run["a"].results} == {"a"}
    run.save(tmp_path / "run")
    with pytest.raises(RunFolderError, match="another run"):
        part.save(tmp_path / "run")
    assert biassay.load(part.save(tmp_path / "part")).results == part.results
    for odd in (0, ("a", "weat6"), slice(1)):
        with pytest.raises(UsageError):
            run[odd]  # type: ignore[index]
    assert len(run) == len(list(run)) == len(run.results)


def test_tests_that_not_all_models_have_are_named() -> None:
    compared = biassay.compare(biassay.run({"a": "glove"}, ["weat6", "weat7"]), biassay.run({"b": "glove"}, "weat6"))
    assert any("weat7" in note for note in compared.notes)
    assert len(repr(compared)) < 200


def test_resume_keeps_the_settings_of_the_run(tmp_path: Path) -> None:
    model = write_vectors(tmp_path / "v.txt", 12)
    settings: dict[str, Any] = {"protocol": "may2019", "alternative": "two-sided", "seed": 3, "alpha": 0.2}
    settings["max_unknown"] = 0.4
    whole = biassay.run(model, tests=write_test(tmp_path / "own.json", 12), **settings)
    stopped(whole).save(tmp_path / "run")
    resumed = biassay.resume(tmp_path / "run")
    assert resumed.results == whole.results
    assert resumed.manifest.settings == whole.manifest.settings


def test_settings_that_would_be_ignored_are_refused() -> None:
    for given in ({"window": 3}, {"mode": "fixed"}, {"vectors": "here"}, {"n_samples": 5}):
        with pytest.raises(UsageError, match=f"{next(iter(given))}.*contexts"):
            biassay.run("glove", "weat6", **given)
