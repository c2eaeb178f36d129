"""Power of the crossed test: against the test itself on simulated words, the noncentral t, limits, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from biassay.errors import UsageError
from biassay.stats.association import effect_size
from biassay.stats.crossed import VarianceComponents, crossed_test
from biassay.stats.power import MOST_WORDS, CrossedDesign, largest_d, smallest_detectable, words_needed

EVEN = VarianceComponents(1.0, 1.0, 1.0)
NOISY = VarianceComponents(1.0, 1.0, 10.0)
EIGHT = (8, 8, 8, 8)
Sizes = tuple[int, int, int, int]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def simulated(rng: np.random.Generator, design: CrossedDesign, D: float) -> np.ndarray:
    """Cosines with these components and an association of D."""
    n, m, k, l = design.sizes  # noqa: E741
    of = design.components
    targets = rng.normal(size=(n + m, 2)) * np.sqrt(of.targets / 2)
    attributes = rng.normal(size=(2, k + l)) * np.sqrt(of.attributes / 2)
    table = rng.normal(size=(n + m, k + l)) * np.sqrt(of.residual)
    table += np.repeat(targets, [k, l], axis=1) + np.repeat(attributes, [n, m], axis=0)
    table[:n, :k] += D
    return np.asarray(table)


@pytest.mark.parametrize("sizes", [(4, 4, 4, 4), EIGHT, (4, 16, 18, 6)])
@pytest.mark.parametrize("components", [NOISY, VarianceComponents(0.0, 1.0, 5.0)])
def test_power_is_that_of_the_test(rng: np.random.Generator, sizes: Sizes, components: VarianceComponents) -> None:
    design = CrossedDesign(components, sizes)
    D = design.smallest_difference(power=0.6)
    assert D is not None
    found = [crossed_test(simulated(rng, design, D), sizes[0], sizes[2]).p_value for _ in range(2000)]
    share = np.mean([p is not None and p <= 0.05 for p in found])
    assert share == pytest.approx(0.6, abs=0.04)  # four standard errors


@pytest.mark.parametrize("shift", [0.0, 0.7, 2.8, 4.0])
@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_with_many_words_it_is_the_noncentral_t(shift: float, alpha: float) -> None:
    design = CrossedDesign(VarianceComponents(1.0, 0.0, 0.0), (200, 200, 5000, 5000))  # then V is that of two means
    critical = stats.t.isf(alpha / 2, 398)
    expected = stats.nct.sf(critical, 398, shift) + stats.nct.cdf(-critical, 398, shift)
    assert design.power(shift * design.V**0.5, alpha) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("components", [EVEN, NOISY, VarianceComponents(1.0, 0.0, 0.0)])
@pytest.mark.parametrize("sizes", [EIGHT, (4, 9, 25, 6)])
def test_smallest_effect_and_power_are_inverse(components: VarianceComponents, sizes: Sizes) -> None:
    for alpha, power in ((0.05, 0.8), (0.01, 0.5), (0.2, 0.99)):
        found = smallest_detectable(components, sizes, alpha, power)
        assert found is not None
        design = CrossedDesign(components, sizes)
        assert design.power(found[0], alpha) == pytest.approx(power, abs=1e-5)
        assert design.power(-found[0], alpha) == pytest.approx(power, abs=1e-5)
        assert design.D_from_d(found[1]) == pytest.approx(found[0])


def test_attributes_alone_can_limit_a_test() -> None:
    D = 1.6
    powers = [CrossedDesign(EVEN, (n, n, 8, 8)).power(D) for n in (8, 1000, 100_000)]
    assert powers[0] < powers[1] < powers[2] < 0.9
    assert words_needed(EVEN, D, EIGHT, "targets", power=0.95) is None
    needed = words_needed(EVEN, D, EIGHT, "all", power=0.95)
    assert needed is not None
    assert CrossedDesign(EVEN, (needed,) * 4).power(D) >= 0.95 > CrossedDesign(EVEN, (needed - 1,) * 4).power(D)


@pytest.mark.parametrize("sought", ["all", "targets", "attributes"])
def test_words_needed_are_the_fewest(sought: str) -> None:
    def at(words: int) -> float:
        sizes = {"all": (words,) * 4, "targets": (words, words, 30, 40), "attributes": (20, 25, words, words)}[sought]
        return CrossedDesign(NOISY, sizes).power(1.4)

    fewest = next(words for words in range(2, 200) if at(words) >= 0.8)
    assert words_needed(NOISY, 1.4, (20, 25, 30, 40), sought) == fewest  # type: ignore[arg-type]


def test_two_words_a_set_find_nothing() -> None:
    assert smallest_detectable(VarianceComponents(0.0, 0.0, 1.0), (2, 2, 2, 2)) is None
    assert CrossedDesign(VarianceComponents(0.0, 0.0, 1.0), (2, 2, 2, 2)).power(1e9) < 0.8


def test_d_is_the_effect_size_by_word(rng: np.random.Generator) -> None:
    n, m, D = 9, 6, 0.8
    x, y = rng.normal(size=n), rng.normal(size=m)
    squares = ((x - x.mean()) ** 2).sum() + ((y - y.mean()) ** 2).sum()
    x, y = x - x.mean() + D, y - y.mean()
    design = CrossedDesign(VarianceComponents(squares / (n + m - 2), 1.0, 0.0), (n, m, 5, 5))
    assert design.d_from_D(D) == pytest.approx(effect_size(x, y))
    assert design.D_from_d(effect_size(x, y)) == pytest.approx(D)
    apart = effect_size(np.full(n, 1.0), np.full(m, 0.0))
    assert largest_d(n, m) == pytest.approx(apart)
    assert design.d_from_D(1e9) == pytest.approx(apart)


@pytest.mark.parametrize("sizes", [(1, 8, 8, 8), (8, 8, 8, 0), (8, 8, 8), (8, 8, 8, 8.5)])
def test_bad_sizes(sizes: Sizes) -> None:
    with pytest.raises(UsageError, match="sizes"):
        CrossedDesign(EVEN, sizes)


@pytest.mark.parametrize("numbers", [(0, 0, 0), (-1, -1, 0), (np.nan, 1, 1), (np.inf, 1, 1), (1, 1, -1)])
def test_bad_components(numbers: tuple[float, float, float]) -> None:
    with pytest.raises(UsageError, match="components"):
        CrossedDesign(VarianceComponents(*numbers), EIGHT)


def test_bad_levels_powers_and_effects() -> None:
    design = CrossedDesign(EVEN, EIGHT)
    for share in (0.0, 1.0, -0.1, np.nan):
        with pytest.raises(UsageError, match="power"):
            design.smallest_difference(power=share)
        with pytest.raises(UsageError, match="power"):
            words_needed(EVEN, 1.0, EIGHT, power=share)
        with pytest.raises(UsageError, match="alpha"):
            design.power(1.0, share)
    with pytest.raises(UsageError, match="alpha"):
        design.smallest_difference(alpha=0.3, power=0.2)
    for D in (0.0, np.nan):
        with pytest.raises(UsageError, match="effect"):
            words_needed(EVEN, D, EIGHT)
    for d in (largest_d(8, 8), -3.0, np.nan):
        with pytest.raises(UsageError, match="d lies"):
            design.D_from_d(d)
    with pytest.raises(UsageError, match="sought"):
        words_needed(EVEN, 1.0, EIGHT, "both")  # type: ignore[arg-type]
    assert words_needed(EVEN, 1e-3, EIGHT) is None
    assert words_needed(EVEN, 0.05, EIGHT, power=0.5) == pytest.approx(MOST_WORDS, rel=0.5)
