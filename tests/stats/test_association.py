"""Associations and effect sizes against plain loops over cosines."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.distance import cosine

from biassay.errors import DegenerateError, VectorError
from biassay.stats.association import associations, effect_size, unit_rows, wefat_scores

Vectors = NDArray[np.float64]


def loop_association(word: Vectors, a: Vectors, b: Vectors) -> float:
    toward_a = [1.0 - cosine(word, other) for other in a]
    toward_b = [1.0 - cosine(word, other) for other in b]
    return float(sum(toward_a) / len(toward_a) - sum(toward_b) / len(toward_b))


@given(seed=st.integers(0, 2**32 - 1), d=st.integers(2, 30), k=st.integers(1, 6), m=st.integers(1, 6))
def test_one_product_equals_a_loop_over_cosines(seed: int, d: int, k: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    words, a, b = rng.normal(size=(5, d)), rng.normal(size=(k, d)), rng.normal(size=(m, d))
    found = associations(unit_rows(words, "words"), unit_rows(a, "A"), unit_rows(b, "B"))
    assert found == pytest.approx([loop_association(word, a, b) for word in words], abs=1e-12)


def test_effect_sizes_of_the_reference(reference: Path) -> None:
    expected = json.loads((reference / "weat" / "expected.json").read_text())
    for name, values in expected.items():
        with np.load(reference / "weat" / f"{name}.npz") as case:
            rows = {key: unit_rows(case[key], key) for key in "XYAB"}
            x, y = (associations(rows[key], rows["A"], rows["B"]) for key in "XY")
            assert x == pytest.approx(case["s_X"], abs=1e-12)
            assert y == pytest.approx(case["s_Y"], abs=1e-12)
        assert effect_size(x, y) == pytest.approx(values["effect_size"], abs=1e-10)
        assert effect_size(x, y, ddof=0) == pytest.approx(values["effect_size_ddof0"], abs=1e-10)
        assert x.sum() - y.sum() == pytest.approx(values["statistic_sum"], abs=1e-10)


def test_wefat_equals_a_loop() -> None:
    rng = np.random.default_rng(2)
    words, a, b = rng.normal(size=(3, 9)), rng.normal(size=(5, 9)), rng.normal(size=(4, 9))
    for word, found in zip(words, wefat_scores(*(unit_rows(v, "v") for v in (words, a, b))), strict=True):
        cosines = [1.0 - cosine(word, other) for other in (*a, *b)]
        expected = (np.mean(cosines[:5]) - np.mean(cosines[5:])) / np.std(cosines, ddof=1)
        assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("bad", "problem"), [(0.0, "is zero"), (np.nan, "not finite"), (np.inf, "not finite")])
def test_a_vector_without_direction_is_named(bad: float, problem: str) -> None:
    rows = np.ones((3, 4))
    rows[1] = bad
    with pytest.raises(VectorError, match=f"Flowers: the vector of 'aster' .*{problem}"):
        unit_rows(rows, "Flowers", ["rose", "aster", "iris"])
    with pytest.raises(VectorError, match="row 1"):
        unit_rows(rows, "Flowers")


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3,), (2, 2, 2)])
def test_wrong_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(VectorError, match="shape"):
        unit_rows(np.ones(shape), "X")


def test_equal_associations_are_an_error_not_an_infinity() -> None:
    with pytest.raises(DegenerateError, match="undefined"):
        effect_size(np.full(4, 0.3), np.full(4, 0.3))
    rows = unit_rows(np.eye(3), "v")
    with pytest.raises(DegenerateError, match="word 0"):
        wefat_scores(unit_rows(np.ones((1, 3)), "w"), rows[:2], rows[2:])
