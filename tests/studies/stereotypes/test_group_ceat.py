"""Group CEAT against loops over all pairs of contexts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from biassay.errors import VectorError
from biassay.studies.stereotypes import group_ceat as module
from biassay.studies.stereotypes.group_ceat import GroupCosines, drop_unlocated

Rows = NDArray[np.float64]


def contexts(n: int, seed: int, mean: float = 0.0, d: int = 7) -> Rows:
    """Vectors of unlike lengths."""
    rng = np.random.default_rng(seed)
    return rng.normal(mean, 1.0, (n, d)) * rng.uniform(0.2, 5.0, (n, 1))


def cosine(u: Rows, v: Rows) -> float:
    return sum(a * b for a, b in zip(u, v, strict=True)) / math.sqrt(sum(a * a for a in u) * sum(b * b for b in v))


def by_loops(group: Rows, left: Sequence[Rows], right: Sequence[Rows]) -> float:
    """Effect size, from a list of all cosines with a weight each."""
    weighted: list[tuple[float, float]] = []
    sides = []
    for side in (left, right):
        means = []
        for rows in side:
            cosines = [cosine(g, t) for g in group for t in rows]
            means.append(sum(cosines) / len(cosines))
            weighted += [(c, 1.0 / len(cosines) / (len(left) + len(right))) for c in cosines]
        sides.append(sum(means) / len(means))
    middle = sum(c * w for c, w in weighted)
    spread = math.sqrt(sum(w * (c - middle) ** 2 for c, w in weighted))
    return (sides[1] - sides[0]) / spread


def group_ceat(group: Rows, left: Sequence[Rows], right: Sequence[Rows]) -> tuple[float, float]:
    words = [drop_unlocated(rows) for rows in (*left, *right)]
    return GroupCosines.from_vectors([drop_unlocated(group)], words).association(
        0, range(len(left)), range(len(left), len(words))
    )


LEFT = [contexts(4, 1), contexts(9, 2, 0.5)]
RIGHT = [contexts(6, 3, 1.0), contexts(1, 4), contexts(3, 5, -0.4)]


@pytest.mark.parametrize(("rows_at_once", "bytes_at_once"), [(4096, 1 << 28), (2, 1 << 28), (3, 1000)])
def test_agrees_with_loops_however_the_work_is_cut(
    monkeypatch: pytest.MonkeyPatch, rows_at_once: int, bytes_at_once: int
) -> None:
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", rows_at_once)
    monkeypatch.setattr(module, "_BYTES_AT_ONCE", bytes_at_once)
    group = contexts(5, 6, 0.3)
    effect_size, _ = group_ceat(group, LEFT, RIGHT)
    assert effect_size == pytest.approx(by_loops(group, LEFT, RIGHT), rel=1e-12)  # rounding of some hundred sums


def test_the_standard_error_is_that_of_a_bootstrap_of_the_groups_contexts() -> None:
    group, rng = contexts(60, 6, 0.3), np.random.default_rng(0)
    _, standard_error = group_ceat(group, LEFT, RIGHT)
    draws = [group_ceat(group[rng.integers(60, size=60)], LEFT, RIGHT)[0] for _ in range(600)]
    # 600 draws know a standard deviation to 3%; the bootstrap also lets the spread vary a little.
    assert standard_error == pytest.approx(float(np.std(draws)), rel=0.12)
    assert math.isnan(group_ceat(group[:1], LEFT, RIGHT)[1])


def test_a_zero_vector_is_named() -> None:
    group = contexts(6, 6)
    group[3] = 0.0
    with pytest.raises(VectorError, match="row 3 is zero"):
        group_ceat(group, LEFT, RIGHT)


def test_equal_cosines_have_no_effect_size() -> None:
    same = np.ones((6, 7))
    assert np.isnan(group_ceat(same, [same], [2.0 * same])).all()
