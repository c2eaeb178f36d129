"""Intervals for effect sizes over words: the definition, numpy, scipy and loops as witnesses; coverage by simulation.

The true value of a simulation is the correlation between set and association among all words of such kinds, times the
largest effect size that so many words can have.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from biassay.errors import UsageError
from biassay.stats.effect_interval import MIN_WORDS, Difference, Estimate, difference_interval, effect_interval

Floats = NDArray[np.float64]
SIZES = [(4, 4), (8, 8), (25, 25), (4, 12), (30, 8)]
EFFECTS = [0.0, 0.3, 0.6, 0.9, -0.6]
# The standard deviation of 2000 resamples is known to 1.6% where they are normal, and less well on the longer tails of
# few words; two of them must agree within 10%. Of four and four words one resample in 4096 holds one word of each, at
# the very end of Fisher's scale: over seeds the width was seen to vary by 5 to 8%, and two of them may differ by 30%.
MONTE_CARLO = 0.10
OF_FOUR_WORDS = 0.30


def by_definition(x: Floats, y: Floats) -> float:
    """Means and the sample standard deviation of all words together, one number at a time."""
    both = [*x.tolist(), *y.tolist()]
    mean = math.fsum(both) / len(both)
    variance = math.fsum((value - mean) ** 2 for value in both) / (len(both) - 1)
    return (math.fsum(x.tolist()) / len(x) - math.fsum(y.tolist()) / len(y)) / math.sqrt(variance)


def largest(n: int, m: int) -> float:
    """The effect size of sets whose words are all alike within and differ between."""
    return by_definition(np.ones(n), np.zeros(m))


def with_effect(noise: Floats, n: int, effect: float) -> tuple[Floats, Floats]:
    """Standard normal ``noise``, the first ``n`` so far from the others that the correlation of all words is so."""
    share = n / len(noise)
    return noise[:n] + effect / math.sqrt((1.0 - effect**2) * share * (1.0 - share)), noise[n:]


def words(n: int, m: int, effect: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Associations whose correlation with their set is ``effect`` among all words."""
    return with_effect(rng.standard_normal(n + m), n, effect)


def ends(found: Estimate | Difference) -> tuple[float, float]:
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


def on_fishers_scale(found: Estimate, n: int, m: int) -> tuple[float, float]:
    """Middle and half the width of the interval there."""
    low, high = (math.atanh(end / largest(n, m)) for end in ends(found))
    return (low + high) / 2.0, (high - low) / 2.0


numbers = st.lists(st.integers(-50, 50).map(lambda value: value / 8.0), min_size=2, max_size=12)


@given(numbers, numbers)
def test_the_effect_size_is_that_of_the_definition_and_a_multiple_of_the_correlation(
    a: list[float], b: list[float]
) -> None:
    x, y = np.array(a), np.array(b)
    found = effect_interval(x, y).effect_size
    if np.ptp(np.concatenate([x, y])) == 0.0:
        assert math.isnan(found)
        return
    assert found == pytest.approx(by_definition(x, y), rel=1e-12, abs=1e-12)
    n, m = len(x), len(y)
    correlation = np.corrcoef([1.0] * n + [0.0] * m, np.concatenate([x, y]))[0, 1]
    assert found == pytest.approx(correlation * math.sqrt((n + m) * (n + m - 1) / (n * m)), rel=1e-9, abs=1e-9)


def test_the_correlation_is_scipys_point_biserial() -> None:
    x, y = words(6, 17, 0.5, np.random.default_rng(0))
    theirs = stats.pointbiserialr([True] * 6 + [False] * 17, np.concatenate([x, y])).statistic
    assert effect_interval(x, y).effect_size == pytest.approx(theirs * largest(6, 17), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("effect", [0.0, 0.8])
def test_the_interval_is_that_of_a_bootstrap_by_a_loop(n: int, m: int, effect: float) -> None:
    """Symmetric about Fisher's transform of the correlation; its width is that of resamples drawn one by one."""
    x, y = words(n, m, effect, np.random.default_rng(n + m))
    rng, drawn = np.random.default_rng(99), []
    for _ in range(2000):
        a, b = rng.choice(x, n), rng.choice(y, m)
        if np.ptp(np.concatenate([a, b])) > 0.0:
            drawn.append(math.atanh(np.clip(by_definition(a, b) / largest(n, m), -1.0 + 1e-6, 1.0 - 1e-6)))
    error = np.std(drawn, ddof=1) * math.sqrt((n + m) / (n + m - 2))
    middle, reach = on_fishers_scale(effect_interval(x, y), n, m)
    assert middle == pytest.approx(math.atanh(by_definition(x, y) / largest(n, m)), abs=1e-9)
    tolerance = OF_FOUR_WORDS if n + m == 8 else MONTE_CARLO
    assert reach == pytest.approx(stats.t.ppf(0.975, n + m - 2) * error, rel=tolerance)


def test_the_standard_error_is_that_of_scipys_bootstrap() -> None:
    def transformed(a: Floats, b: Floats, axis: int) -> Floats:
        spread = np.concatenate([a, b], axis=axis).std(axis=axis, ddof=1)
        return np.asarray(np.arctanh((a.mean(axis=axis) - b.mean(axis=axis)) / spread / largest(12, 20)))

    x, y = words(12, 20, 0.5, np.random.default_rng(4))
    theirs = stats.bootstrap((x, y), transformed, n_resamples=4000, method="percentile", rng=np.random.default_rng(5))
    _, reach = on_fishers_scale(effect_interval(x, y, confidence=0.9), 12, 20)
    expected = stats.t.ppf(0.95, 30) * math.sqrt(32 / 30) * theirs.standard_error
    assert reach == pytest.approx(expected, rel=MONTE_CARLO)


def test_of_many_words_that_do_not_differ_the_width_is_fishers_own() -> None:
    """His standard error is 1 / sqrt(words - 3), known before any word was drawn."""
    x, y = words(300, 300, 0.0, np.random.default_rng(1))
    _, reach = on_fishers_scale(effect_interval(x, y), 300, 300)
    assert reach == pytest.approx(1.96 / math.sqrt(597), rel=MONTE_CARLO)


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_swapped_sets_have_the_swapped_interval(n: int, m: int) -> None:
    """Other words are drawn for them, hence only within Monte Carlo error."""
    x, y = words(n, m, 0.5, np.random.default_rng(7))
    one, other = effect_interval(x, y), effect_interval(y, x)
    assert other.effect_size == pytest.approx(-one.effect_size, rel=1e-12)
    middle, reach = on_fishers_scale(one, n, m)
    tolerance = OF_FOUR_WORDS if n + m == 8 else MONTE_CARLO
    assert on_fishers_scale(other, m, n) == pytest.approx((-middle, reach), rel=tolerance)


def test_the_seed_decides() -> None:
    x, y = words(8, 8, 0.5, np.random.default_rng(0))
    assert effect_interval(x, y) == effect_interval(x, y, rng=0)
    assert effect_interval(x, y, rng=3) == effect_interval(x, y, rng=np.random.default_rng(3))
    assert effect_interval(x, y, rng=3) == effect_interval(x, y, rng=np.int64(3))
    assert effect_interval(x, y, rng=3) != effect_interval(x, y, rng=4)


def test_what_was_given_is_not_changed() -> None:
    x, y = words(8, 8, 0.5, np.random.default_rng(0))
    before = x.tobytes(), y.tobytes()
    first = effect_interval(x, y)
    difference_interval(x, y, y, x)
    assert (x.tobytes(), y.tobytes()) == before
    assert effect_interval(x, y) == first  # nor are the draws that are kept


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e12])
@pytest.mark.parametrize("shift", [0.0, 1.0, -1000.0])
def test_neither_scale_nor_shift_matter(scale: float, shift: float) -> None:
    """A shift of a thousand spreads costs three digits."""
    x, y = words(6, 9, 0.4, np.random.default_rng(2))
    plain, moved = effect_interval(x, y), effect_interval(scale * (x + shift), scale * (y + shift))
    assert moved.effect_size == pytest.approx(plain.effect_size, rel=1e-10)
    assert ends(moved) == pytest.approx(ends(plain), rel=1e-10)
    mirrored = effect_interval(-x, -y)
    assert ends(mirrored) == pytest.approx(ends(plain)[::-1] * np.array(-1.0), rel=1e-12)


@pytest.mark.slow
# With 500 samples a rate of 95% is known to one point: 90% is five standard deviations below.
@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("effect", EFFECTS)
def test_intervals_hold_the_true_effect_size(n: int, m: int, effect: float) -> None:
    rng = np.random.default_rng(11)
    true = effect * largest(n, m)
    found = [ends(effect_interval(*words(n, m, effect, rng))) for _ in range(500)]
    assert np.mean([low <= true <= high for low, high in found]) >= 0.90


@pytest.mark.parametrize("confidence", [0.5, 0.8])
def test_other_confidences_hold_as_often_as_they_say(confidence: float) -> None:
    """500 samples know a rate to two points; intervals of eight words are a little too wide or narrow by up to four."""
    rng = np.random.default_rng(12)
    found = [ends(effect_interval(*words(8, 8, 0.5, rng), confidence=confidence)) for _ in range(500)]
    held = np.mean([low <= 0.5 * largest(8, 8) <= high for low, high in found])
    assert held == pytest.approx(confidence, abs=0.08)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 9), (3, 3), (MIN_WORDS - 1, 50), (50, MIN_WORDS - 1)])
def test_few_words_have_an_effect_size_and_no_interval(n: int, m: int) -> None:
    x, y = words(n, m, 0.5, np.random.default_rng(0))
    found = effect_interval(x, y)
    assert found.effect_size == pytest.approx(by_definition(x, y), rel=1e-12)
    assert (found.low, found.high, found.confidence) == (None, None, 0.95)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_leaves_no_interval_and_warns_of_nothing(value: float) -> None:
    x, y = words(6, 6, 0.5, np.random.default_rng(0))
    x[2] = value
    found = effect_interval(x, y)
    assert not math.isfinite(found.effect_size)
    assert (found.low, found.high) == (None, None)
    one = difference_interval(x, y, y, x)
    assert (one.low, one.high) == (None, None)


@pytest.mark.parametrize("value", [0.0, 0.1, 0.3, 1.0 / 3.0, -0.7])
@pytest.mark.parametrize(("n", "m"), [(4, 4), (5, 7), (6, 9), (25, 18)])
def test_equal_associations_have_no_effect_size(value: float, n: int, m: int) -> None:
    """Their spread is zero or rounding; a mean of them may be off by a last digit, which is no effect."""
    found = effect_interval([value] * n, [value] * m)
    assert not math.isfinite(found.effect_size)
    assert (found.low, found.high) == (None, None)


@pytest.mark.parametrize("spread", [0.0, 1e-12, 1e-9, 1e-6, 1e-3, 0.1])
def test_sets_that_do_not_overlap_have_an_effect_size_within_its_interval(spread: float) -> None:
    """Where the words of a set are all alike an interval may be missing; it never leaves out its own effect size."""
    rng = np.random.default_rng(3)
    x, y = 1.0 + spread * rng.standard_normal(8), spread * rng.standard_normal(8)
    found = effect_interval(x, y)
    assert found.effect_size == pytest.approx(by_definition(x, y), rel=1e-9)
    assert found.effect_size <= largest(8, 8) + 1e-12
    if found.low is not None:
        assert ends(found)[0] <= found.effect_size <= ends(found)[1]
        assert ends(found)[1] <= largest(8, 8) + 1e-12


def test_words_that_are_all_alike_within_a_set_say_nothing_about_other_words() -> None:
    """Resamples of them are all the same; an interval without width would claim to know other words for certain."""
    found = effect_interval([1.0] * 4, [0.0] * 4)
    assert found.low is None or found.high is None or found.high - found.low > 0.01


def test_a_set_of_one_value_and_another_of_many() -> None:
    found = effect_interval([1.0] * 4, [0.0, 0.1, 0.2, 3.0])
    assert ends(found)[0] < found.effect_size < ends(found)[1]


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, 95, math.nan])
def test_a_confidence_out_of_range_is_refused(confidence: float) -> None:
    x, y = words(5, 5, 0.5, np.random.default_rng(0))
    with pytest.raises(UsageError, match="confidence"):
        effect_interval(x, y, confidence=confidence)
    with pytest.raises(UsageError, match="confidence"):
        difference_interval(x, y, x, y, confidence=confidence)


def test_what_is_no_list_of_numbers_is_refused() -> None:
    for x, y in (([], [1.0]), ([1.0], []), ([[1.0, 2.0]], [1.0]), (1.0, [1.0])):
        with pytest.raises(UsageError, match="list of at least one number"):
            effect_interval(x, y)


def two_models(
    n: int, m: int, effects: tuple[float, float], together: float, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats, Floats]:
    """Associations of the same words in two models, correlated by ``together`` within each set."""
    first, own = rng.standard_normal((2, n + m))
    second = together * first + math.sqrt(1.0 - together**2) * own
    return *with_effect(first, n, effects[0]), *with_effect(second, n, effects[1])


def test_the_difference_is_the_second_less_the_first() -> None:
    x1, y1, x2, y2 = two_models(7, 9, (0.1, 0.6), 0.5, np.random.default_rng(0))
    found = difference_interval(x1, y1, x2, y2, confidence=0.9, rng=5)
    assert found.difference == pytest.approx(by_definition(x2, y2) - by_definition(x1, y1), rel=1e-12)
    assert ends(found)[0] < found.difference < ends(found)[1]
    assert (found.first, found.second) == tuple(
        effect_interval(x, y, confidence=0.9, rng=5) for x, y in ((x1, y1), (x2, y2))
    )
    assert found.confidence == 0.9


def test_swapped_models_have_the_swapped_interval() -> None:
    """The same words are drawn for both, so that this holds but for rounding."""
    x1, y1, x2, y2 = two_models(7, 9, (0.1, 0.6), 0.5, np.random.default_rng(0))
    one, other = difference_interval(x1, y1, x2, y2), difference_interval(x2, y2, x1, y1)
    assert other.difference == -one.difference
    assert ends(other) == pytest.approx((-ends(one)[1], -ends(one)[0]), rel=1e-9)
    assert (other.first, other.second) == (one.second, one.first)


@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize("effect", [0.0, 0.6, 0.9])
def test_a_model_does_not_differ_from_itself(n: int, m: int, effect: float) -> None:
    """Whatever words are drawn; nor does it from a copy in which all associations are larger by a factor."""
    x, y = words(n, m, effect, np.random.default_rng(2))
    for factor, shift in ((1.0, 0.0), (3.0, 0.5)):
        found = difference_interval(x, y, factor * x + shift, factor * y + shift)
        assert found.difference == pytest.approx(0.0, abs=1e-9)
        assert ends(found) == pytest.approx((0.0, 0.0), abs=1e-6)


def test_models_that_go_together_have_the_narrower_interval() -> None:
    rng = np.random.default_rng(3)
    widths = {
        together: np.mean(
            [np.ptp(ends(difference_interval(*two_models(8, 8, (0.5, 0.5), together, rng)))) for _ in "ab" * 20]
        )
        for together in (-0.8, 0.0, 0.8, 0.99)
    }
    assert widths[0.99] < 0.5 * widths[0.8]  # their differences vary by a quarter as much
    assert widths[0.8] < widths[0.0] < widths[-0.8]


def test_a_plain_bootstrap_of_many_words_agrees() -> None:
    """With 150 words a set the difference is near normal: 1.96 standard deviations of a loop's resamples either way."""
    x1, y1, x2, y2 = two_models(150, 150, (0.2, 0.4), 0.5, np.random.default_rng(4))
    rng, drawn = np.random.default_rng(98), []
    for _ in range(1000):
        a, b = rng.choice(150, 150), rng.choice(150, 150)
        drawn.append(by_definition(x2[a], y2[b]) - by_definition(x1[a], y1[b]))
    found = difference_interval(x1, y1, x2, y2)
    reach = 1.96 * np.std(drawn, ddof=1)
    assert ends(found) == pytest.approx((found.difference - reach, found.difference + reach), abs=MONTE_CARLO * reach)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m"), [(4, 4), (8, 8), (25, 25), (4, 12)])
@pytest.mark.parametrize("together", [0.0, 0.8])
@pytest.mark.parametrize("effects", [(0.0, 0.0), (0.3, 0.8), (0.9, 0.0)])
def test_intervals_hold_the_true_difference(n: int, m: int, together: float, effects: tuple[float, float]) -> None:
    """300 samples: a rate of 95% is known to 1.3 points."""
    rng = np.random.default_rng(13)
    true = (effects[1] - effects[0]) * largest(n, m)
    found = [ends(difference_interval(*two_models(n, m, effects, together, rng))) for _ in range(300)]
    assert np.mean([low <= true <= high for low, high in found]) >= 0.90


@pytest.mark.slow
def test_words_that_all_move_alike_hold_the_true_difference() -> None:
    """The second model is the first with its sets further apart, as one that was trained further may be."""
    rng = np.random.default_rng(14)
    found = [ends(difference_interval(*two_models(8, 30, (0.8, 0.9), 1.0, rng))) for _ in range(1000)]
    true = 0.1 * largest(8, 30)
    assert np.mean([low <= true <= high for low, high in found]) >= 0.90  # known to 0.7 points


def test_other_words_are_refused() -> None:
    for second in (([1.0] * 5, [0.0] * 4), ([1.0] * 4, [0.0] * 5)):
        with pytest.raises(UsageError, match="the same words"):
            difference_interval([1.0] * 4, [0.0] * 4, *second)


def test_a_difference_without_one_of_its_intervals_has_none() -> None:
    x1, y1, x2, y2 = two_models(3, 9, (0.1, 0.6), 0.5, np.random.default_rng(0))
    few = difference_interval(x1, y1, x2, y2)
    assert few.difference == pytest.approx(by_definition(x2, y2) - by_definition(x1, y1), rel=1e-12)
    assert (few.low, few.high) == (None, None)
    flat = difference_interval([1.0] * 4, [1.0] * 4, *words(4, 4, 0.5, np.random.default_rng(0)))
    assert math.isnan(flat.difference)
    assert (flat.low, flat.high) == (None, None)


@pytest.mark.parametrize("scale", [2.0**-900, 2.0**900])
def test_an_effect_size_has_no_unit(scale: float) -> None:
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=6), rng.normal(0.5, size=7)
    assert effect_interval(x * scale, y * scale) == effect_interval(x, y)
