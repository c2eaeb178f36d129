"""biassay.weat on arrays: reference values, brute force over words, and what it refuses."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import biassay
from biassay.errors import DegenerateError, UsageError, VectorError

Vectors = NDArray[np.float64]
PRINTED = {"weat1": 1.50, "weat3": 1.41, "weat6": 1.81}  # CBoW in Table 4 of May et al. 2019


def vectors(seed: int, *sizes: int, d: int = 20) -> list[Vectors]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, d)) + 0.3 * (i == 0) for i, n in enumerate(sizes)]


def test_reference_effect_sizes_and_exact_p_values(reference: Path) -> None:
    expected = json.loads((reference / "weat" / "expected.json").read_text())
    assert len(expected) == 12
    for name, values in expected.items():
        with np.load(reference / "weat" / f"{name}.npz") as case:
            found = biassay.weat(*(case[key] for key in "XYAB"))
        assert found.effect_size == pytest.approx(values["effect_size"], abs=1e-10)
        assert found.statistic == pytest.approx(values["statistic_sum"], abs=1e-10)
        exact = found.p.route in ("enumeration", "counting")
        assert found.p_value == pytest.approx(values["exact"]["p_ge"], rel=1e-12 if exact else 1e-3)


@pytest.mark.slow
def test_released_p_values_under_the_released_protocol(reference: Path) -> None:
    expected = json.loads((reference / "weat" / "expected.json").read_text())
    for name, values in expected.items():
        with np.load(reference / "weat" / f"{name}.npz") as case:
            sets = [case[key] for key in "XYAB"]
        found = biassay.weat(*sets, protocol="may2019", rng=1)
        released = values["released"]
        if released["mode"] == "exact":
            assert found.p_value == pytest.approx(values["exact"]["p_ge"], rel=1e-12)
        else:
            spread = released["mc_standard_error"]
            assert abs(found.p_value - released["expected_value_of_estimator"]) < 5 * spread
        fitted = biassay.weat(*sets, protocol="caliskan2017", rng=1)
        assert abs(fitted.p_value - released["p_value_parametric"]) < 8 * released["p_value_parametric_mc_se"]


def test_real_glove_vectors(reference: Path) -> None:
    folder = reference / "glove840b_caliskan"
    rows = dict(zip((folder / "words.txt").read_text().splitlines(), np.load(folder / "vectors.npy"), strict=True))
    expected = json.loads((folder / "expected.json").read_text())
    for name, values in expected.items():
        if name.startswith("_"):
            continue
        test = biassay.select_tests([name])[0]
        sets = [[rows[word] for word in test.concept(role).words] for role in "XYAB"]
        found = biassay.weat(*sets)
        assert found.effect_size == pytest.approx(values["effect_size"], abs=1e-6)
        assert found.effect_size == pytest.approx(PRINTED.get(name, found.effect_size), abs=0.005)
        if "exact" in values:
            assert found.p_value == pytest.approx(values["exact"]["p_ge"], rel=1e-3)


def test_by_word_moves_the_texts_of_a_word_together() -> None:
    X, Y, A, B = vectors(0, 12, 15, 6, 6)
    x_words = [w for w in "abcd" for _ in range(3)]
    y_words = [w for w in "efghi" for _ in range(3)]
    found = biassay.weat(X, Y, A, B, words=(x_words, y_words))
    means = [found.x.reshape(4, 3).mean(axis=1), found.y.reshape(5, 3).mean(axis=1)]
    pooled = np.concatenate(means)
    sums = [sum(chosen) for chosen in itertools.combinations(pooled, 4)]
    assert found.p_value_by_word == pytest.approx(np.mean([s >= sum(means[0]) - 1e-12 for s in sums]), rel=1e-12)
    assert found.p_value != found.p_value_by_word


@pytest.mark.slow
def test_by_word_holds_its_level_where_sentences_do_not() -> None:
    """Words without any difference, seven noisy texts each: p over texts is far too often small, p by word is not."""
    rng = np.random.default_rng(11)
    names = [[f"{side}{i}" for i in range(8) for _ in range(7)] for side in "xy"]
    A, B = np.eye(2)[:1].repeat(2, axis=0), np.eye(2)[1:].repeat(2, axis=0)
    by_text = by_word = 0
    for _ in range(300):
        angles = rng.normal(0.8, 0.1, 16).repeat(7) + rng.normal(0.0, 0.1, 112)
        rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        found = biassay.weat(rows[:56], rows[56:], A, B, words=(names[0], names[1]))
        by_text += found.p_value <= 0.05
        by_word += (found.p_value_by_word or 0.0) <= 0.05
    assert by_text / 300 > 0.15
    assert by_word / 300 < 0.09


def around(scores: Vectors) -> Vectors:
    """Unit vectors with the given cosines with the first axis, and none with the second."""
    return np.c_[scores, 0.0 * scores, np.sqrt(1.0 - scores * scores)]


@pytest.mark.parametrize("jitter", [1e-15, 3e-15, 3e-14])
@pytest.mark.parametrize("n", [20, 25, 30])
def test_scores_that_differ_by_rounding_are_never_counted_away(n: int, jitter: float) -> None:
    """All of X above all of Y: the observed split is the only one of its kind."""
    for seed in range(5):
        noise = jitter * np.random.default_rng(seed).normal(size=(2, n))
        found = biassay.weat(around(0.5 + noise[0]), around(-0.5 + noise[1]), [[1, 0, 0]], [[0, 1, 0]])
        assert found.p_value == pytest.approx(1.0 / math.comb(2 * n, n), rel=1e-12, abs=0.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_directions_that_are_equal_but_for_the_precision_of_the_input_are_ties(dtype: str) -> None:
    """Every direction comes several times, at other lengths: exact counts over directions, by brute force."""
    rng = np.random.default_rng(3)
    directions, A, B = (v.astype(dtype) for v in vectors(8, 4, 3, 3, d=6))
    which = np.array([0, 0, 1, 1, 2, 0, 1, 2, 2, 3])
    scores = biassay.weat(directions[:2], directions[2:], A, B)
    by_direction = np.concatenate([scores.x, scores.y])[which]
    rows = directions[which] * rng.choice([1.0, 3.0, 0.7], (10, 1)).astype(dtype)
    sums = [by_direction[list(chosen)].sum() for chosen in itertools.combinations(range(10), 5)]
    expected = np.mean(np.array(sums) >= by_direction[:5].sum() - 1e-5)
    assert biassay.weat(rows[:5], rows[5:], A, B).p_value == pytest.approx(expected, rel=1e-12)


def test_swapping_targets_or_attributes_changes_the_sign() -> None:
    X, Y, A, B = vectors(3, 8, 8, 5, 7)
    found = biassay.weat(X, Y, A, B)
    assert biassay.weat(Y, X, A, B).effect_size == pytest.approx(-found.effect_size)
    assert biassay.weat(X, Y, B, A).effect_size == pytest.approx(-found.effect_size)
    assert biassay.weat(Y, X, B, A).p_value == pytest.approx(found.p_value)


def test_what_cannot_be_measured_is_refused() -> None:
    X, Y, A, B = vectors(6, 4, 4, 3, 3)
    with pytest.raises(VectorError, match=r"same dimension, got \[19, 20\]"):
        biassay.weat(X[:, :19], Y, A, B)
    with pytest.raises(UsageError, match="at least two"):
        biassay.weat(X[:1], Y, A, B)
    with pytest.raises(VectorError, match="Y: the vector of row 2 is zero"):
        biassay.weat(X, np.where(np.arange(4)[:, None] == 2, 0.0, Y), A, B)
    with pytest.raises(DegenerateError):
        biassay.weat(X, Y, A, A)
    with pytest.raises(UsageError, match="3 words for 4 texts"):
        biassay.weat(X, Y, A, B, words=(list("abc"), list("defg")))


def test_the_opposite_direction_counts_the_split_that_was_observed() -> None:
    """Third lowest of 252 splits, by enumeration: 3/252, where 1 - p is 2/252; None where the effect is positive."""
    angles = np.array([0.0, 0.11, 0.23, 0.37, 0.52, 0.68, 0.85, 1.03, 1.22, 1.42])
    rows = np.c_[np.sin(angles), np.cos(angles)]
    words = (list("abcde"), list("fghij"))
    scores = np.sin(angles) - np.cos(angles)
    ordered = sorted(itertools.combinations(range(10), 5), key=lambda chosen: scores[list(chosen)].sum())
    low, high = list(ordered[2]), sorted(set(range(10)) - set(ordered[2]))
    found = biassay.weat(rows[low], rows[high], [[1, 0]], [[0, 1]], words=words)
    assert found.by_word is not None
    assert found.by_word_opposite is not None
    assert (found.by_word.value, found.by_word_opposite.value) == pytest.approx((250 / 252, 3 / 252))
    assert biassay.weat(rows[high], rows[low], [[1, 0]], [[0, 1]], words=words).by_word_opposite is None
    two_sided = biassay.weat(rows[low], rows[high], [[1, 0]], [[0, 1]], words=words, alternative="two-sided")
    assert two_sided.by_word_opposite is None


def test_wefat_is_the_published_single_target_form() -> None:
    words, A, B = vectors(7, 3, 5, 4)
    unit = [v / np.linalg.norm(v, axis=1, keepdims=True) for v in (words, A, B)]
    cosines = np.concatenate([unit[0] @ unit[1].T, unit[0] @ unit[2].T], axis=1)
    expected = (cosines[:, :5].mean(axis=1) - cosines[:, 5:].mean(axis=1)) / cosines.std(axis=1, ddof=1)
    assert biassay.wefat(words, A, B) == pytest.approx(expected)


def test_printed_it_is_what_leads_and_no_array() -> None:
    rng = np.random.default_rng(0)
    found = biassay.weat(*(rng.normal(size=(30, 5)) for _ in "XYAB"))
    assert found.crossed is not None
    assert f"{found.crossed.p_value:.4g}" in repr(found)
    assert len(repr(found)) < 200
    assert "None" in repr(biassay.weat(*(rng.normal(size=(2, 5)) for _ in "XYAB")))
