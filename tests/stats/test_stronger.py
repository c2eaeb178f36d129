"""How likely a stronger association is called worse: against a simulation of whole comparisons."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from numpy.typing import NDArray

from biassay.errors import UsageError
from biassay.stats.crossed import Components
from biassay.stats.crossed_effect import crossed_difference, crossed_effect
from biassay.stats.power import Sizes
from biassay.stats.stronger import TwoModels

MARGIN, CONFIDENCE = 0.2, 0.99
WORDS = Components(0.3, 0.2, 1.0)


def models(
    rng: np.random.Generator, sizes: Sizes, shared: float, effects: tuple[float, float]
) -> list[NDArray[np.float64]]:
    """Cosines of two models that share so much of every variance, with these effects (D)."""
    n, m, k, l = sizes  # noqa: E741
    rows, columns = np.repeat([0.5, -0.5], [n, m]), np.repeat([0.5, -0.5], [k, l])

    def drawn() -> NDArray[np.float64]:
        words = math.sqrt(0.3) * np.outer(rng.normal(size=n + m), columns)
        words += math.sqrt(0.2) * np.outer(rows, rng.normal(size=k + l))
        return words + rng.normal(size=(n + m, k + l))

    common = math.sqrt(shared) * drawn()
    return [D * np.outer(rows, columns) + common + math.sqrt(1.0 - shared) * drawn() for D in effects]


def d_of(D: float, sizes: Sizes) -> float:
    """By the book: D over the spread of all targets, where their associations vary as they do on average."""
    n, m, k, l = sizes  # noqa: E741
    within = 0.3 + 1.0 / k + 1.0 / l
    return D / math.sqrt(((n + m - 2) * within + n * m / (n + m) * D * D) / (n + m - 1))


@pytest.mark.parametrize(
    ("sizes", "shared", "effects"),
    [
        ((8, 8, 8, 8), 0.9, (0.5, 1.6)),
        ((16, 16, 12, 12), 0.9, (0.5, 1.2)),
        ((10, 20, 12, 16), 0.5, (0.3, 1.2)),
        ((16, 16, 25, 25), 0.95, (0.7, 1.0)),
    ],
)
def test_the_power_is_met(sizes: Sizes, shared: float, effects: tuple[float, float]) -> None:
    old, new = (d_of(D, sizes) for D in effects)
    seen = TwoModels(WORDS, WORDS, (shared,) * 3, sizes, old, CONFIDENCE, MARGIN).power(new - old)
    assert seen is not None
    assert 0.1 < seen < 0.97
    rng = np.random.default_rng(4)
    called = 0
    for _ in range(250):
        found = crossed_difference(
            *models(rng, sizes, shared, effects), sizes[0], sizes[2], confidence=CONFIDENCE, absolute=True
        )
        called += found.low is not None and found.low > 0.0 and found.difference > MARGIN
    assert called / 250 == pytest.approx(seen, abs=0.1)  # three errors of both


def test_the_smallest_growth_is_where_the_power_is_reached() -> None:
    seen = TwoModels(WORDS, WORDS, (0.9, 0.9, 0.9), (16, 16, 12, 12), 0.4, CONFIDENCE, MARGIN)
    for power in (0.5, 0.8):
        found = seen.smallest(power)
        assert found is not None
        assert (seen.power(found) or 0.0) >= power > (seen.power(found - 0.03) or 0.0)


def test_models_are_as_their_tables_say() -> None:
    rng = np.random.default_rng(5)
    sizes = (30, 30, 30, 30)
    found = []
    for _ in range(30):
        tables = models(rng, sizes, 0.7, (0.5, 0.9))
        seen = TwoModels.of(*tables, 30, 30, confidence=CONFIDENCE, margin=MARGIN, pairs=10)
        assert seen is not None
        assert seen.effect == abs(crossed_effect(tables[0], 30, 30).effect_size)
        assert (seen.sizes, seen.confidence, seen.margin) == (sizes, CONFIDENCE, MARGIN)
        found.append(seen)
    for place in range(3):
        assert statistics.fmean(one.agreement[place] for one in found) == pytest.approx(0.7, abs=0.06)
    for name, true in (("targets", 0.3), ("attributes", 0.2), ("residual", 1.0)):
        for model in ("old", "new"):
            assert statistics.fmean(getattr(getattr(one, model), name) for one in found) == pytest.approx(
                true, abs=0.05
            )


def test_the_sign_of_an_effect_says_nothing() -> None:
    tables = models(np.random.default_rng(6), (12, 12, 12, 12), 0.8, (0.6, 0.8))
    powers = [
        seen.power(0.5)
        for sign in (1.0, -1.0)
        if (seen := TwoModels.of(*(sign * t for t in tables), 12, 12, confidence=0.99, margin=0.2, pairs=100))
    ]
    assert len(powers) == 2
    assert powers[0] == powers[1]


def test_few_words_show_nothing() -> None:
    seen = TwoModels(WORDS, WORDS, (0.5, 0.5, 0.5), (4, 4, 4, 4), 0.3, 0.9999, MARGIN)
    assert seen.smallest() is None
    assert seen.power(0.5) == 0.0
    assert seen.power(1.8) is None  # d stays below 1.87
    one = np.ones((2, 8))
    assert TwoModels.of(one, one, 1, 4, confidence=0.99, margin=0.2, pairs=10) is None
    alike = np.outer(np.ones(8), np.arange(8.0))
    assert TwoModels.of(alike, alike, 4, 4, confidence=0.99, margin=0.2, pairs=10) is None
    with pytest.raises(UsageError, match="correlation"):
        TwoModels(WORDS, WORDS, (0.5, 1.1, 0.5), (4, 4, 4, 4), 0.3, 0.99, MARGIN)
