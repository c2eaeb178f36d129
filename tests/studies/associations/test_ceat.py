"""biassay.ceat: the reference replayed, a loop over words as the witness, simulations of what the p-values promise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import biassay
from biassay.errors import UsageError, VectorError
from biassay.stats.context_samples import draw_contexts

Pool = NDArray[np.float64]
CASES = ("equal_pools", "unequal_pools", "zero_tau", "near_null")


def pools(seed: int, sizes: tuple[int, int, int, int], contexts: int = 20, d: int = 12) -> list[list[Pool]]:
    rng = np.random.default_rng(seed)
    mean = np.array([1.0, -1.0, 1.0, -1.0])
    return [[rng.normal(0.4 * mean[i], 1.0, (contexts + w, d)) for w in range(n)] for i, n in enumerate(sizes)]


@pytest.mark.parametrize("case", CASES)
def test_reference_replays_through_draws(reference: Path, case: str) -> None:
    expected = json.loads((reference / "ceat" / "expected.json").read_text())[case]["meta"]
    with np.load(reference / "ceat" / f"{case}.npz") as z:
        rows = np.split(z["vectors"], np.cumsum(z["pool_sizes"])[:-1])
        ends = np.cumsum(z["set_sizes"])
        sets = [rows[end - size : end] for size, end in zip(z["set_sizes"], ends, strict=True)]
        found = biassay.ceat(*sets, draws=z["index_table"], rng=0)
        assert np.abs(found.samples - z["effect_sizes"]).max() < 1e-8
        assert np.abs(found.variances - z["variances"]).max() < 1e-8
    assert found.effect_size == pytest.approx(expected["CES"], abs=1e-8)
    assert found.standard_error == pytest.approx(expected["SE"], abs=1e-8)
    assert found.pooled.tau2 == pytest.approx(expected["tau2"], abs=1e-8)
    assert found.pooled.q == pytest.approx(expected["Q"], rel=1e-8)
    assert found.p_value == pytest.approx(expected["p_two_sided"], rel=1e-8)
    assert found.log10_p_value == pytest.approx(expected["log10_p_two_sided"], rel=1e-8)
    assert found.pooled.p_value_upper == pytest.approx(expected["p_one_sided_upper"], rel=1e-6)
    assert len(found.samples) == expected["N"]


def word_by_word(sets: list[list[Pool]], row: NDArray[np.integer]) -> tuple[float, float]:
    """One sample by the definition: a loop over words and pairs."""
    drawn: list[Any] = []
    column = 0
    for given in sets:
        drawn.append([])
        for pool in given:
            drawn[-1].append(pool[row[column]])
            column += 1

    def cosine(u: Pool, v: Pool) -> float:
        return float(u @ v / np.linalg.norm(u) / np.linalg.norm(v))

    def s(w: Pool) -> float:
        return float(np.mean([cosine(w, a) for a in drawn[2]]) - np.mean([cosine(w, b) for b in drawn[3]]))

    x, y = [s(w) for w in drawn[0]], [s(w) for w in drawn[1]]
    spread = np.std(x + y, ddof=1)
    return float((np.mean(x) - np.mean(y)) / spread), float(spread**2)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 2e-5), ("float16", 5e-3)])
def test_samples_agree_with_a_loop_over_words(dtype: str, tolerance: float) -> None:
    sets = pools(1, (5, 6, 4, 7))
    draws = draw_contexts(np.array([len(p) for given in sets for p in given]), 50, np.random.default_rng(3))
    narrow = [[p.astype(dtype) for p in given] for given in sets]
    found = biassay.ceat(*narrow, draws=draws)
    for row, size, variance in zip(draws, found.samples, found.variances, strict=True):
        assert (size, variance) == pytest.approx(word_by_word(sets, row), abs=tolerance)


def test_sample_p_values_and_by_word_are_those_of_weat() -> None:
    sets = pools(2, (4, 5, 4, 4))
    found = biassay.ceat(*sets, n_samples=40, rng=0)
    draws = draw_contexts(found.pool_sizes, 40, np.random.default_rng(0))
    for row, p in zip(draws, found.sample_p_values, strict=True):
        flat = [pool[i] for pool, i in zip([p for given in sets for p in given], row, strict=True)]
        parts = np.split(np.array(flat), [4, 9, 13])
        assert p == pytest.approx(biassay.weat(*parts).p_value, abs=1e-12)
    # Averages over contexts of unit vectors: a mean of cosines is the product of the means.
    unit = [[p / np.linalg.norm(p, axis=1, keepdims=True) for p in given] for given in sets]
    across = np.mean([p.mean(axis=0) for p in unit[2]], axis=0) - np.mean([p.mean(axis=0) for p in unit[3]], axis=0)
    assert found.x == pytest.approx([p.mean(axis=0) @ across for p in unit[0]], abs=1e-14)
    assert found.y == pytest.approx([p.mean(axis=0) @ across for p in unit[1]], abs=1e-14)


def test_draws_without_replacement_where_there_are_enough_contexts() -> None:
    table = draw_contexts(np.array([100, 99, 250, 1]), 100, np.random.default_rng(0))
    assert sorted(table[:, 0]) == list(range(100))
    assert len(set(table[:, 1])) < 99
    assert len(set(table[:, 2])) == 100
    assert set(table[:, 3]) == {0}


def test_every_context_is_drawn_equally_often() -> None:
    table = draw_contexts(np.array([8, 40_000]), 40_000, np.random.default_rng(1))
    counts = np.bincount(table[:, 0])
    assert np.sum((counts - 5000) ** 2 / 5000) < 24.3  # chi-squared with 7 degrees of freedom, p = 0.001


@pytest.mark.slow
def test_same_seed_same_numbers_whatever_the_threads() -> None:
    sets = [[p.astype(np.float32) for p in given] for given in pools(5, (8, 8, 8, 8), contexts=50, d=300)]
    one, two = (biassay.ceat(*sets, n_samples=2000, rng=7, threads=t) for t in (1, 3))
    assert np.array_equal(one.samples, two.samples)
    assert (one.prediction_interval, one.effect_size) == (two.prediction_interval, two.effect_size)
    assert not np.array_equal(one.samples, biassay.ceat(*sets, n_samples=2000, rng=8).samples)


def test_static_vectors_give_the_effect_size_of_weat() -> None:
    sets = [[p[:1] for p in given] for given in pools(7, (6, 6, 5, 5))]
    found = biassay.ceat(*sets, n_samples=20, rng=0)
    static = biassay.weat(*(np.concatenate(given) for given in sets), alternative="two-sided")
    assert found.effect_size == pytest.approx(static.effect_size, abs=1e-12)
    assert found.p_value_by_word == pytest.approx(static.p_value, abs=1e-12)


def under_the_null(seed: int, words: int) -> list[list[Pool]]:
    """Words of one population: X and Y differ only in which words they happen to hold."""
    rng = np.random.default_rng(seed)
    return [[rng.normal(size=10) + rng.normal(size=(15, 10)) for _ in range(words)] for _ in range(4)]


@pytest.mark.slow
def test_by_word_keeps_its_level_and_the_pooled_p_does_not() -> None:
    found = [biassay.ceat(*under_the_null(s, 8), n_samples=500, rng=0) for s in range(200)]
    by_word, pooled = (np.mean([getattr(f, p) <= 0.05 for f in found]) for p in ("p_value_by_word", "p_value"))
    assert by_word < 0.11  # binomial(200, 0.05): 22 or more has probability 0.0003
    assert pooled > 0.6


def in_contexts(
    rng: np.random.Generator, words: list[list[Pool]], documents: list[list[list[int]]]
) -> list[list[Pool]]:
    """Vectors of words in contexts: noise of each context, and noise of each document, shared by all words."""
    numbers = {number for role in documents for own in role for number in own}
    shared = {number: 0.15 * rng.normal(size=20) for number in sorted(numbers)}
    return [
        [
            word + np.stack([shared[number] for number in own]) + 0.15 * rng.normal(size=(len(own), 20))
            for word, own in zip(given, of_words, strict=True)
        ]
        for given, of_words in zip(words, documents, strict=True)
    ]


def every_context_its_own(contexts: int) -> list[list[list[int]]]:
    numbers = iter(range(10**6))
    return [[[next(numbers) for _ in range(contexts)] for _ in range(8)] for _ in range(4)]


def mostly_one_document(contexts: int) -> list[list[list[int]]]:
    return [
        [[-1] * (3 * contexts // 4) + own[3 * contexts // 4 :] for own in role]
        for role in every_context_its_own(contexts)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("documents", "least"),
    [(every_context_its_own(2), 0.91), (every_context_its_own(5), 0.92), (mostly_one_document(20), 0.92)],
    ids=["two contexts", "five contexts", "one document has most"],
)
def test_prediction_interval_holds_effects_in_new_contexts(documents: list[list[list[int]]], least: float) -> None:
    """The interval by the random-effects model held 75, 90 and 85% of them."""
    rng, held = np.random.default_rng(0), []
    for _ in range(40):
        words = [
            [0.5 * side * np.eye(20)[0] + rng.normal(size=20) / np.sqrt(20) for _ in range(8)]
            for side in (1, -1, 1, -1)
        ]
        found = biassay.ceat(*in_contexts(rng, words, documents), n_samples=500, documents=documents, rng=rng)
        new = biassay.ceat(
            *in_contexts(rng, words, every_context_its_own(60)), draws=np.repeat(np.arange(60)[:, None], 32, 1)
        )
        assert found.prediction_interval is not None
        low, high = found.prediction_interval
        held.append(np.mean((low <= new.samples) & (new.samples <= high)))
    assert np.mean(held) > least


def test_no_prediction_interval_from_one_document() -> None:
    sets = pools(3, (4, 4, 3, 3))
    labels = [
        [[f"{role}{word}-{row}" for row in range(len(pool))] for word, pool in enumerate(given)]
        for role, given in enumerate(sets)
    ]
    alone = biassay.ceat(*sets, n_samples=20, rng=0)
    known = biassay.ceat(*sets, n_samples=20, documents=labels, rng=0)
    assert known.prediction_interval == alone.prediction_interval  # every context is its own document by default
    assert known.num_documents.tolist() == known.pool_sizes.tolist()
    labels[3][1] = ["the same"] * len(sets[3][1])
    one = biassay.ceat(*sets, n_samples=20, documents=labels, rng=0)
    assert (one.prediction_interval, one.num_documents[-2]) == (None, 1)
    assert np.array_equal(one.samples, alone.samples)
    with pytest.raises(UsageError, match="one label per context"):
        biassay.ceat(*sets, documents=labels[::-1])


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"X": []}, UsageError, "at least two stimuli"),
        ({"A": []}, UsageError, "A and B one"),
        ({"X": np.zeros((3, 4, 5))}, UsageError, "list with one array"),
        ({"Y": [np.ones((2, 12)), np.ones(12)]}, VectorError, "Y: word 1: expected an array of shape"),
        ({"Y": [np.ones((2, 12)), np.zeros((0, 12))]}, VectorError, "not empty"),
        ({"B": [np.ones((2, 12)), np.array([[1.0] * 12, [np.nan] * 12])]}, VectorError, "context 1 contains a value"),
        ({"B": [np.array([[1.0] * 12, [0.0] * 12])]}, VectorError, "B: word 0: the vector of context 1 is zero"),
        ({"B": [np.ones((2, 11))]}, VectorError, r"same dimension, got \[11, 12\]"),
        ({"n_samples": 2}, UsageError, "at least 3"),
        ({"draws": np.zeros((5, 3), int)}, UsageError, r"shape \(samples, 16\)"),
        ({"draws": np.zeros((5, 16))}, UsageError, "must be integers"),
        ({"draws": np.full((5, 16), 99)}, UsageError, "draws of word 0 must lie between 0 and 19"),
        ({"draws": np.full((5, 16), -1)}, UsageError, "must lie between 0"),
    ],
)
def test_refuses(change: dict[str, object], error: type[Exception], words: str) -> None:
    given: dict[str, object] = dict(zip("XYAB", pools(9, (4, 4, 4, 4)), strict=True)) | {"n_samples": 10} | change
    with pytest.raises(error, match=words):
        biassay.ceat(given.pop("X"), given.pop("Y"), given.pop("A"), given.pop("B"), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("dtype", "length"),
    [("float64", 1e200), ("float64", 1e-200), ("float64", 1e-305), ("float32", 1e35), ("float32", 1e-40)],
)
def test_very_long_and_very_short_vectors_have_directions(dtype: str, length: float) -> None:
    sets = [[pool.astype(dtype) for pool in given] for given in pools(7, (4, 4, 3, 3))]
    scaled = [[(pool * np.dtype(dtype).type(length)).astype(dtype) for pool in given] for given in sets]
    expected, found = (biassay.ceat(*given, n_samples=20, rng=0) for given in (sets, scaled))
    assert found.samples == pytest.approx(expected.samples, rel=1e-3 if dtype == "float32" else 1e-9)
    assert found.p_value_by_word == expected.p_value_by_word
