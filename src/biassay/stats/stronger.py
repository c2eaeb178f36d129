"""How likely it is that an association which is stronger on a new model than on the old one is called worse.

Simulated, for no short cut came near: words are drawn that vary as on both models, their tables are given effects, and
the interval of each difference is looked at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError
from biassay.stats.crossed import Components, crossed_test
from biassay.stats.crossed_effect import crossed_effect
from biassay.stats.many_differences import ManyPairs
from biassay.stats.power import POWER, Design, Sizes, largest_d

__all__ = ["TwoModels"]

Floats = NDArray[np.float64]
Agreement = tuple[float, float, float]

_AT_ONCE = 30_000  # numbers of a table, so that what is looked at stays in the cache of a processor
_STEPS = 7
_SHORT_OF_MOST = 0.98


@dataclass(frozen=True)
class TwoModels:
    """An association test of given sizes on an old and a new model: what their words vary by, and what they share.

    ``agreement`` are the correlations of both models over target words, over attribute words, and of what is left;
    ``effect`` is the absolute d by word on the old model. A growth of it, which is true of both concepts and not of
    these words alone, is called worse where the interval of the difference of absolute effect sizes lies above 0, and
    the difference above the ``margin``. It is taken to keep the sign. ``pairs`` of tables are drawn.
    """

    old: Components
    new: Components
    agreement: Agreement
    sizes: Sizes
    effect: float
    confidence: float
    margin: float
    pairs: int = 1000

    def __post_init__(self) -> None:
        if not all(-1.0 <= part <= 1.0 for part in self.agreement):
            raise UsageError(f"agreement is a correlation, between -1 and 1, got {self.agreement}")
        for components in (self.old, self.new):
            if not Design(components, self.sizes).spread > 0.0:
                raise UsageError("the associations of target words do not vary: there is no effect size")

    @classmethod
    def of(
        cls, cosines1: ArrayLike, cosines2: ArrayLike, n: int, k: int, *, confidence: float, margin: float, pairs: int
    ) -> TwoModels | None:
        """As the tables of two models say; None: they have too few words, or all are alike."""
        first, second = (np.asarray(cosines, dtype=np.float64) for cosines in (cosines1, cosines2))
        tests = [crossed_test(table, n, k) for table in (first, second, first + second)]
        old, new, both = (test.components for test in tests)
        effect = abs(crossed_effect(first, n, k).effect_size)
        if old is None or new is None or both is None or math.isnan(effect):
            return None
        try:
            return cls(old, new, _agreement(old, new, both), tests[0].sizes, effect, confidence, margin, pairs)
        except UsageError:
            return None

    def power(self, growth: float) -> float | None:
        """How often a growth of |d| is called worse; None: |d| cannot grow so much with so few target words."""
        if not 0.0 <= growth < largest_d(*self.sizes[:2]) - self.effect:
            return None
        more = Design(self.old, self.sizes).D_of(self.effect), Design(self.new, self.sizes).D_of(self.effect + growth)
        difference, low = self._pairs.stronger(more, confidence=self.confidence)
        return float(((low > 0.0) & (difference > self.margin)).mean())

    def smallest(self, power: float = POWER) -> float | None:
        """The smallest growth that is called worse so often; None: none is."""
        low, high = (0.0, 0.0), (_SHORT_OF_MOST * largest_d(*self.sizes[:2]) - self.effect, 1.0)
        if not high[0] > 0.0 or (most := self.power(high[0]) or 0.0) < power:
            return None
        high = high[0], most
        for _ in range(_STEPS):
            middle = (low[0] + high[0]) / 2.0
            found = middle, self.power(middle) or 0.0
            low, high = (low, found) if found[1] >= power else (found, high)
        return high[0]

    @cached_property
    def _pairs(self) -> ManyPairs:
        n, m, k, l = self.sizes  # noqa: E741
        rng, at_once = np.random.default_rng(0), max(1, _AT_ONCE // ((n + m) * (k + l)))
        starts = range(0, self.pairs, at_once)
        return ManyPairs((self._drawn(rng, min(at_once, self.pairs - start)) for start in starts), n, k)

    def _drawn(self, rng: np.random.Generator, number: int) -> tuple[Floats, Floats]:
        """So many pairs of tables of words that show no effect."""
        n, m, k, l = self.sizes  # noqa: E741
        rows, columns = np.repeat([0.5, -0.5], [n, m]), np.repeat([0.5, -0.5], [k, l])
        targets = _two(rng, self.agreement[0], number, n + m)[..., None] * columns
        attributes = _two(rng, self.agreement[1], number, k + l)[..., None, :] * rows[:, None]
        residual = _two(rng, self.agreement[2], number, n + m, k + l)
        first, second = (
            math.sqrt(max(of.targets, 0.0)) * targets[place]
            + math.sqrt(max(of.attributes, 0.0)) * attributes[place]
            + math.sqrt(of.residual) * residual[place]
            for place, of in enumerate((self.old, self.new))
        )
        return first, second


def _two(rng: np.random.Generator, correlation: float, *shape: int) -> Floats:
    one, other = rng.normal(size=(2, *shape))
    return np.stack([one, correlation * one + math.sqrt(1.0 - correlation**2) * other])


def _agreement(old: Components, new: Components, both: Components) -> Agreement:
    """Correlations, from the components of two tables and of their sum."""
    targets, attributes, residual = (
        _correlation(getattr(old, part), getattr(new, part), getattr(both, part))
        for part in ("targets", "attributes", "residual")
    )
    return targets, attributes, residual


def _correlation(one: float, other: float, both: float) -> float:
    if not min(one, other) > 0.0:
        return 0.0
    return min(max((both - one - other) / (2.0 * math.sqrt(one * other)), -1.0), 1.0)
