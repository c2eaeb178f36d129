"""Measures beside WEAT's d: values of other libraries, splits by brute force, and the commands that show them."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import biassay
from biassay.cli import main
from biassay.stats.rank_correlation import correlate_ranks
from biassay.studies.associations.metrics import Measure, get_measures, get_metric
from biassay.studies.associations.weat import AssociationOptions

EXPECTED = json.loads((Path(__file__).parents[2] / "reference" / "measures" / "expected.json").read_text("utf-8"))
X, Y, A, B, C = (np.array(EXPECTED[name]) for name in "XYABC")
SETS = {"X": X, "Y": Y, "A": A, "B": B}
WORDS = tuple([f"{role}{i}" for i in range(len(SETS[role]))] for role in "XYAB")
Vectors = NDArray[np.float64]


def unit(rows: Vectors) -> Vectors:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def test_values_of_other_libraries() -> None:
    pairs = np.stack([X, Y], axis=1)
    targets = np.concatenate([X, Y])
    close: dict[str, Any] = {"rtol": 0, "atol": 1e-9}
    assert np.allclose(biassay.ripa(A, pairs), EXPECTED["ripa"], **close)
    assert np.isclose(biassay.mac(targets, A, B).mean(), EXPECTED["mac"], **close)
    by_word = [EXPECTED["rnd_words"][f"a{i}"] for i in range(len(A))]
    assert np.allclose(biassay.rnd(X, Y, A), by_word, **close)
    assert np.isclose(biassay.rnd(X, Y, A).mean(), EXPECTED["rnd"], **close)
    assert np.isclose(biassay.ect(X, Y, A), EXPECTED["ect"], **close)
    assert np.allclose(biassay.same(targets, A, B), EXPECTED["same"], **close)
    assert np.allclose(biassay.same(targets, A, B[:6], C), EXPECTED["same_three_sets"], **close)
    assert np.allclose(biassay.direct_bias(np.concatenate([A, B]), pairs), EXPECTED["direct_bias"], **close)
    probabilities = biassay.rnsb(targets, A, B)
    assert np.allclose(probabilities, EXPECTED["rnsb"], rtol=0, atol=1e-6)  # scikit-learn stops that early
    assert np.isclose(biassay.rnsb_divergence(EXPECTED["rnsb"]), EXPECTED["rnsb_divergence"], **close)


def test_differences_from_other_libraries_are_the_listed_ones() -> None:
    """The numbers in tests/reference/measures/README.md follow from ours by the reasons given there."""
    effect = biassay.weat(X, Y, A, B).effect_size
    assert effect == pytest.approx(1.6657111548331824, abs=1e-9)
    n = len(X) + len(Y)
    assert effect * np.sqrt(n / (n - 1)) == pytest.approx(1.7558137244074155, abs=1e-9)
    pooled = 1.0 - unit(np.concatenate([X, Y])) @ unit(np.concatenate([A, B])).T
    assert pooled.mean() == pytest.approx(1.0194553208741026, abs=1e-9)


def test_the_classifier_of_rnsb_is_at_the_minimum_of_its_loss() -> None:
    rows, labels = unit(np.concatenate([A, B])), np.repeat([0.0, 1.0], [len(A), len(B)])
    probabilities = biassay.rnsb(np.concatenate([A, B]), A, B)
    logits = np.log(probabilities / (1.0 - probabilities))
    residuals = labels - 1.0 / (1.0 + np.exp(-logits))
    weights = rows.T @ residuals  # the gradient of half the squared length of the weights is the weights
    assert abs(residuals.sum()) < 1e-9
    assert np.ptp(logits - rows @ weights) < 1e-9


def ripa_by_pairs(x: Vectors, y: Vectors) -> float:
    scores = biassay.ripa(np.concatenate([A, B]), [(one, other) for one in x for other in y])
    return float(scores[: len(A)].mean() - scores[len(A) :].mean())


BY_HAND = {
    "ripa": (ripa_by_pairs, False),
    "same": (lambda x, y: float(biassay.same(x, A, B).mean() - biassay.same(y, A, B).mean()), True),
    "rnd": (lambda x, y: float(biassay.rnd(x, y, B).mean() - biassay.rnd(x, y, A).mean()), True),
    "ect": (lambda x, y: 1.0 - biassay.ect(x, y, np.concatenate([A, B])), False),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_p_values_are_shares_of_all_splits(name: str) -> None:
    by_hand, _ = BY_HAND[name]
    measure = get_metric(name)
    assert isinstance(measure, Measure)
    found = measure.associate(SETS, AssociationOptions(words=WORDS))  # type: ignore[arg-type]
    targets = np.concatenate([X, Y]) if name == "ripa" else unit(np.concatenate([X, Y]))
    observed = by_hand(targets[:5], targets[5:])
    splits = [
        by_hand(targets[list(chosen)], np.delete(targets, chosen, axis=0))
        for chosen in itertools.combinations(range(10), 5)
    ]
    assert found.effect_size == pytest.approx(observed, abs=1e-12)
    assert found.p_value_by_word == pytest.approx(np.mean(np.array(splits) >= observed - 1e-9))
    assert found.leave_one_out is not None
    assert found.leave_one_out["X"]["X0"] == pytest.approx(by_hand(targets[1:5], targets[5:]), abs=1e-12)


@pytest.mark.parametrize("name", ["mac", "direct-bias", "rnsb"])
def test_measures_without_a_permutation_test_have_no_p_value(name: str) -> None:
    found = get_metric(name).associate(SETS, AssociationOptions(words=WORDS))  # type: ignore[arg-type]
    assert (found.p, found.by_word) == (None, None)
    run = biassay.run("glove", "weat6", metric=name)
    (result,) = run.results
    assert (result.evidence, result.p_value) == ("descriptive", None)
    assert result.doubt == "the measure has no permutation test"


def test_signed_measures_have_the_sign_of_weat() -> None:
    run = biassay.run("glove", ["weat6", "weat1"], metric="all")
    frame = run.table("measures").columns_by_name
    signed = [score for score, sign in zip(frame["score"], frame["signed"], strict=True) if sign]
    assert len(signed) == 6
    assert min(signed) > 0.0
    assert run["weat6"].results[0].effect_size == biassay.run("glove", "weat6").results[0].effect_size
    same = next(row for row in run.tables["measures"] if (row.test, row.measure) == ("weat6", "same"))
    assert set(same.words) == {word for role in "XY" for word in run["weat6"].results[0].associations[role]}


def test_measures_use_the_templates_that_words_share() -> None:
    run = biassay.run("glove", "sent-weat7", metric="all")
    assert run.results[0].status == "measured"
    (row,) = (row for row in run.tables["measures"] if row.measure == "rnd")
    (alone,) = biassay.run("glove", "sent-weat7", metric="rnd").results
    assert row.score == alone.effect_size


def test_clusters_and_texts_of_a_word_count_once() -> None:
    measure = get_metric("rnd")
    doubled = {role: np.repeat(rows, 2, axis=0) for role, rows in SETS.items()}
    words = tuple([word for word in of_role for _ in range(2)] for of_role in WORDS)
    once = measure.associate(SETS, AssociationOptions(words=WORDS))  # type: ignore[arg-type]
    twice = measure.associate(doubled, AssociationOptions(words=words))  # type: ignore[arg-type]
    assert once.effect_size == pytest.approx(twice.effect_size, abs=1e-12)
    assert once.p_value_by_word == twice.p_value_by_word


def test_the_report_compares_measures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "glove", "--metric", "all", "--out", str(tmp_path / "run"), "--cache", str(tmp_path / "cache")])
    assert ended.value.code == 0
    page = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "Other measures" in page
    assert "Agreement with d" in page
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["metrics", "--json"])
    listed = {row["metric"]: row for row in json.loads(capsys.readouterr().out)}
    assert {measure.name for measure in get_measures()} <= set(listed)
    assert all(row["claim"] and row["source"] for row in listed.values() if row["package"] == "biassay")


def test_rank_correlations_cover_the_true_one() -> None:
    """Correlated normal pairs: Spearman's rho of a normal pair with correlation r is 6/pi asin(r/2)."""
    rng = np.random.default_rng(0)
    truth = 6.0 / np.pi * np.arcsin(0.6 / 2.0)
    hits = 0
    for _ in range(400):
        x = rng.normal(size=20)
        found = correlate_ranks(x, 0.6 * x + 0.8 * rng.normal(size=20))
        hits += found.low <= truth <= found.high
    assert 0.92 <= hits / 400 <= 0.98
