"""Robustness of a small transformer: its layers and poolings in one pass, each as a run of it by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import cli
from tests.models.tiny_models import save_tiny

import biassay
from biassay.datasets.catalogue import select_tests
from biassay.errors import UsageError
from biassay.prompts.sentences import make_random_texts, make_texts
from biassay.runs.progress import NullListener
from biassay.runs.run import Run

__all__ = ["cli"]
pytestmark = [pytest.mark.extras, pytest.mark.usefixtures("one_thread")]
TESTS = ("weat6", "sent-weat6")
OWN, BLIND = "layer=-1&pool=cls", "layer=0&pool=cls"  # the embedding of [CLS] is the same whatever comes after it
OTHERS = (
    "layer=1&pool=cls",
    "layer=2&pool=cls",
    *(f"layer=-1&pool={pool}" for pool in ("mean", "max", "first", "last")),
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A byte-level model of three layers, which knows every word."""
    return f"hf:{save_tiny('roberta', tmp_path_factory.mktemp('model'))}"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def found(model: str, kept: Path) -> Run:
    return biassay.robustness(model, TESTS, cache=kept)


def all_texts() -> set[str]:
    tests = biassay.select_tests(TESTS)
    return {text.text for test in tests for text in make_texts(test)} | {
        one for test in tests for one in make_random_texts(test)
    }


def asked_now(run: Run) -> int:
    return run.manifest.models[0].encoded


def test_other_specifications_ask_nothing_new(model: str, kept: Path, found: Run) -> None:
    assert found.manifest.models[0].texts == len(all_texts())
    again = biassay.robustness(
        model, "weat6", representations=OTHERS[1:3], similarities="rank", n_subsets=3, seed=1, alpha=0.01, cache=kept
    )
    assert asked_now(again) == 0
    rows = again.tables["specifications"]
    measured = [(row.representation, row.similarity, row.effect_size) for row in rows if row.kind == "model"]
    before = [row for row in found.tables["specifications"] if (row.test, row.kind) == ("weat6", "model")]
    kept_d = {(row.representation, row.similarity): row.effect_size for row in before}
    assert [name for name, similarity, _ in measured if similarity == "rank"] == [OWN, *OTHERS[1:3]]
    assert [d for *_, d in measured] == pytest.approx([kept_d[name, similarity] for name, similarity, _ in measured])


def test_a_representation_is_the_model_with_these_settings(model: str, kept: Path, found: Run) -> None:
    plain = biassay.run([f"{model}?{representation}" for representation in (OWN, *OTHERS)], TESTS, cache=kept)
    words = len(
        make_random_texts(select_tests("weat6")[0])
    )  # that give the scale of a model, which robustness does not need
    assert [one.encoded for one in plain.manifest.models] == [words] * 7
    rows = {
        (row.test, row.representation): row
        for row in found.tables["specifications"]
        if (row.kind, row.similarity) == ("model", "cosine")
    }
    for (test, representation), expected in zip(
        [(test, representation) for representation in (OWN, *OTHERS) for test in TESTS], plain.results, strict=True
    ):
        row = rows[test, representation]
        # Where all cosines are close to 1, associations are small differences: a relative error of 1e-6 is rounding.
        assert (row.effect_size, row.p_value) == pytest.approx((expected.effect_size, expected.p_value), rel=1e-6)
        assert (row.ci_low, row.ci_high) == pytest.approx((expected.ci_low, expected.ci_high), rel=1e-6)


def test_a_choice_that_tells_no_words_apart_is_not_counted(model: str, kept: Path, found: Run) -> None:
    assert not [row for row in found.tables["specifications"] if row.representation == BLIND]
    asked = biassay.robustness(model, TESTS, representations=BLIND, cache=kept)
    blind = [row for row in asked.tables["specifications"] if row.representation == BLIND]
    assert {(row.effect_size, row.ci_low, row.ci_high, row.p_value) for row in blind} == {(None,) * 4}
    for result in asked.results:
        rows = [row for row in asked.tables["specifications"] if row.test == result.test]
        counted = sum(row.kind in ("model", "template") and row.effect_size is not None for row in rows)
        assert (result.status, result.n_specifications) == ("measured", counted)
    only = biassay.robustness(f"{model}?{BLIND}", TESTS, representations=OWN, cache=kept)
    assert [(row.status, row.effect_size, row.n_specifications) for row in only.results] == [("failed", None, 0)] * 2
    assert {finding.evidence for finding in only.findings()} == {"skipped"}


class Stopping(NullListener):
    """Ctrl-C after some steps of a kind."""

    def __init__(self, unit: str, after: int) -> None:
        self.unit, self.after = unit, after

    def progress(self, who: str, unit: str, done: int, total: int) -> None:  # noqa: ARG002
        self.after -= unit == self.unit
        if not self.after:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("unit", "after", "encoded"), [("texts", 1, 512), ("layers and poolings", 3, 0), ("tests", 1, 0)]
)
def test_a_run_that_was_stopped_goes_on_to_the_same(
    unit: str, after: int, encoded: int, model: str, found: Run, tmp_path: Path
) -> None:
    out, cache = tmp_path / "out", tmp_path / "answers"
    with pytest.raises(KeyboardInterrupt):
        biassay.robustness(model, TESTS, out=out, cache=cache, listener=Stopping(unit, after))
    with pytest.raises(UsageError, match="biassay resume"):
        biassay.robustness(model, TESTS, out=out, cache=cache)
    again = biassay.resume(out, cache=cache)
    assert asked_now(again) == (len(all_texts()) - encoded if encoded else 0)
    assert again.tables == found.tables == biassay.load(out).tables
    assert (again.manifest.status, (out / "report.html").is_file()) == ("complete", True)
