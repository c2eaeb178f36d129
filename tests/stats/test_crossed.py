"""The crossed test: reference values, small designs, invalid input, and its level with new words."""

from __future__ import annotations

import json
import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import scipy

from biassay.errors import UsageError
from biassay.stats.association import unit_rows
from biassay.stats.crossed import crossed_rows, crossed_test

REFERENCE = Path(__file__).parents[1] / "reference" / "crossed"
CASES = json.loads((REFERENCE / "expected.json").read_text())


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def word_cosines(name: str) -> tuple[np.ndarray, int, int]:
    """Cosines of words of a reference case, by loops over texts."""
    arrays = np.load(REFERENCE / "cases.npz")
    words = CASES[name]["words"]
    rows = {role: unit_rows(arrays[f"{name}.{role}"], role) for role in "XYAB"}
    owners = {role: list(dict.fromkeys(words[role])) for role in "XYAB"}

    def mean(t: str, word: int, a: str, other: int) -> float:
        own = [i for i, w in enumerate(words[t]) if w == word]
        others = [j for j, w in enumerate(words[a]) if w == other]
        return float(np.mean([rows[t][i] @ rows[a][j] for i in own for j in others]))

    table = [[mean(t, w, a, o) for a in "AB" for o in owners[a]] for t in "XY" for w in owners[t]]
    return np.array(table), len(owners["X"]), len(owners["A"])


@pytest.mark.parametrize("name", CASES)
def test_reference(name: str) -> None:
    expected = CASES[name]
    found = crossed_test(*word_cosines(name))
    assert found.components is not None
    numbers = {key: getattr(found, key) for key in ("D", "V", "V_T", "V_A", "V_E", "df", "t")}
    numbers |= {f"var_{key}": getattr(found.components, key) for key in ("targets", "attributes", "residual")}
    assert numbers == pytest.approx({key: expected[key] for key in numbers}, rel=1e-9)
    if expected["df"] < 2:
        assert (found.p_value, found.p_greater, found.interval) == (None, None, None)
    else:
        assert found.p_value == pytest.approx(expected["p_two_sided"], rel=1e-9)
        assert found.p_greater == pytest.approx(expected["p_greater"], rel=1e-9)
        assert found.interval == pytest.approx(expected["interval"], rel=1e-9)


def test_star_and_interval_agree(rng: np.random.Generator) -> None:
    for _ in range(200):
        shift = np.outer([1] * 5 + [0] * 5, [rng.uniform(0, 2)] * 6 + [0] * 6)
        found = crossed_test(rng.normal(size=(10, 12)) + shift, 5, 6)
        if found.interval is not None and found.p_value is not None:
            assert (found.p_value <= 0.05) == (not found.interval[0] <= 0.0 <= found.interval[1])


@pytest.mark.parametrize("table", [np.zeros((6, 6)), np.full((6, 6), 0.3)])
def test_nothing_varies(table: np.ndarray) -> None:
    found = crossed_test(table, 3, 3)
    assert (found.p_value, found.interval, found.components) == (None, None, None)


def blocks(sizes: tuple[int, int, int, int], difference: float) -> np.ndarray:
    """Make cosines of a maximally biased model: X with A and Y with B, every word by the same amount."""
    n, m, k, l = sizes  # noqa: E741
    return np.outer([1.0] * n + [-1.0] * m, [1.0] * k + [-1.0] * l) * difference / 4.0


def split_p(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Two-sided and upper p-value over all splits, by a loop."""
    values, n = np.concatenate([x, y]), len(x)
    observed = x.mean() - y.mean()
    chosen = [list(part) for part in combinations(range(len(values)), n)]
    found = np.array([values[part].mean() - np.delete(values, part).mean() for part in chosen])
    return float(np.mean(np.abs(found) >= abs(observed) - 1e-9)), float(np.mean(found >= observed - 1e-9))


@pytest.mark.parametrize("sizes", [(8, 8, 8, 8), (5, 5, 3, 4), (3, 6, 5, 5), (2, 2, 2, 2)])
@pytest.mark.parametrize("difference", [0.4, -0.4, 3.9])
@pytest.mark.parametrize("noise", [0.0, 1e-9])
def test_where_all_words_agree_the_p_value_is_exact(
    rng: np.random.Generator, sizes: tuple[int, int, int, int], difference: float, noise: float
) -> None:
    table = blocks(sizes, difference) + noise * rng.normal(size=(sizes[0] + sizes[1], sizes[2] + sizes[3]))
    found = crossed_test(table, sizes[0], sizes[2])
    exact = blocks(sizes, difference)
    s, r = exact[:, 0], exact[0]
    either, above = zip(split_p(s[: sizes[0]], s[sizes[0] :]), split_p(r[: sizes[2]], r[sizes[2] :]), strict=True)
    assert found.all_agree
    assert pytest.approx(difference) == found.D
    assert found.p_value == pytest.approx(max(either))
    assert found.p_greater == pytest.approx(max(above) if difference > 0 else 1.0)
    assert (found.interval, found.p_equivalence(0.1), found.p_skew) == (None, None, None)


def test_where_all_rows_and_columns_agree_columns_have_a_sign_test() -> None:
    table = np.repeat([[0.5], [0.1]], [6, 6], axis=0) + np.zeros(5)
    assert crossed_rows(table, 6).p_value == pytest.approx(2.0 * 0.5**5)
    assert crossed_rows(np.repeat(table, 4, axis=1), 6).p_value == pytest.approx(2.0 / 924.0)


def test_the_correction_for_skewness_is_halls(rng: np.random.Generator) -> None:
    from scipy import stats

    table = rng.exponential(size=(7, 1)) * [1, 1, 1, -1, -1, -1] + 0.01 * rng.normal(size=(7, 6))
    found = crossed_test(table, 4, 3)
    s, r = table[:, :3].mean(axis=1) - table[:, 3:].mean(axis=1), table[:4].mean(axis=0) - table[4:].mean(axis=0)
    third = [float(stats.kstat(part, 3)) / len(part) ** 2 for part in (s[:4], s[4:], r[:3], r[3:])]
    skewness = (third[0] - third[1] + third[2] - third[3]) / found.V**1.5
    assert found.skewness == pytest.approx(skewness)
    t = found.t
    hall = t + skewness / 3 * t**2 + skewness**2 / 27 * t**3 + skewness / 6
    assert found.p_skew == pytest.approx(2 * stats.t.sf(abs(hall), found.df))


def test_a_small_set_may_hide_the_skew_of_a_large_one(rng: np.random.Generator) -> None:
    """Five words do not show a skew that 40 words of the other set do."""
    columns = np.repeat([0.5, -0.5], 8)
    symmetric = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    skewed = np.outer(np.concatenate([symmetric, rng.lognormal(size=40)]), columns)
    skewed += 0.01 * rng.normal(size=skewed.shape)
    found = crossed_test(skewed, 5, 8)
    assert found.hidden_skewness > 3.0 * abs(found.skewness)
    assert set(found.skewness_range) == {found.skewness, found.hidden_skewness, -found.hidden_skewness}
    normal = skewed + 0.0
    normal[5:] = np.outer(rng.normal(size=40), columns)
    assert crossed_test(normal, 5, 8).hidden_skewness == 0.0
    assert crossed_test(skewed[:25], 5, 8).hidden_skewness > 0.0
    assert crossed_test(skewed[:15], 5, 8).hidden_skewness == 0.0  # 10 words are not more than twice 5


def fisher(leanings: np.ndarray, n: int) -> float:
    """The two-sided p-value of Fisher's exact test, by enumeration of all splits."""
    total, high = len(leanings), int(leanings.sum())
    chances = [math.comb(n, i) * math.comb(total - n, high - i) / math.comb(total, high) for i in range(high + 1)]
    own = chances[int(leanings[:n].sum())]
    return sum(chance for chance in chances if chance <= own * (1.0 + 1e-9))


@pytest.mark.parametrize("noise", [0.0, 0.02])
@pytest.mark.parametrize("n", [4, 8])
def test_two_valued_associations_are_tested_exactly(rng: np.random.Generator, n: int, noise: float) -> None:
    for _ in range(50):
        leanings = (rng.random(16) < 0.4).astype(float)
        if leanings[:n].std() == leanings[n:].std() == 0.0:
            continue
        table = np.outer(leanings + noise * rng.uniform(-1.0, 1.0, 16), np.repeat([1.0, -1.0], 8))
        for own in (crossed_test(table, n, 8), crossed_test(table.T, 8, n)):  # as targets, and as attributes
            assert own.p_value is not None
            by_t = 2.0 * scipy.special.stdtr(own.df, -abs(own.t))
            assert own.p_value == pytest.approx(max(by_t, fisher(leanings, n)))
            assert own.interval is not None
            assert (own.interval[0] > 0.0 or own.interval[1] < 0.0) == (own.p_value <= 0.05)
            assert own.interval[0] <= own.D <= own.interval[1]


@pytest.mark.parametrize(("n", "m", "share"), [(8, 8, 0.5), (6, 24, 0.2), (5, 40, 0.1)])
def test_level_with_two_valued_associations(rng: np.random.Generator, n: int, m: int, share: float) -> None:
    """By t, 7.7, 20 and 34% of true nulls were rejected. Of 500, at most 25 are expected, 40 by chance."""
    rejected = 0
    for _ in range(500):
        table = np.outer(rng.random(n + m) < share, np.repeat([1.0, -1.0], 8))
        p = crossed_test(table, n, 8).p_value
        rejected += p is not None and p <= 0.05
    assert rejected <= 40


def test_strong_opposite_skew_is_noticed(rng: np.random.Generator) -> None:
    """Type-I errors of the t test of log-normal targets; few remain that the corrected p does not question."""
    drawn = rng.lognormal(size=(2000, 16)) - np.exp(0.5)
    drawn[:, 8:] *= -1
    columns = np.repeat([0.5, -0.5], 8)
    found = [crossed_test(s[:, None] * columns + 0.1 * rng.normal(size=(16, 16)), 8, 8) for s in drawn]
    rejected = np.array([test.p_value <= 0.05 for test in found])
    questioned = np.array([test.p_skew > 0.05 for test in found])
    assert rejected.mean() > 0.1
    assert (rejected & ~questioned).mean() < 0.085


@pytest.mark.parametrize("value", [np.nan, 1e60])
def test_bad_tables_are_refused(value: float) -> None:
    with pytest.raises(UsageError, match="cosines"):
        crossed_test([[value, 1.0], [1.0, 2.0]], 1, 1)


def test_equivalence(rng: np.random.Generator) -> None:
    from scipy import stats

    found = crossed_test(rng.normal(size=(60, 60)) * 0.1, 30, 30)
    p = found.p_equivalence(0.05)
    assert p == pytest.approx(stats.t.sf((0.05 - abs(found.D)) / np.sqrt(found.V), found.df))
    assert found.p_equivalence(0.06) < p


def simulated(rng: np.random.Generator, sizes: tuple[int, int, int, int], heavy: bool) -> np.ndarray:
    """Cosines with components of target words, attribute words and residual, and no association."""
    n, m, k, l = sizes  # noqa: E741

    def draw(*shape: int) -> np.ndarray:
        return rng.standard_t(3, shape) if heavy else rng.normal(size=shape)

    return draw(n + m, k + l) + np.outer(draw(n + m), [1] * k + [0] * l) + np.outer([1] * n + [0] * m, draw(k + l))


@pytest.mark.parametrize("sizes", [(8, 8, 8, 8), (16, 16, 25, 25)])
@pytest.mark.parametrize("heavy", [False, True])
def test_level(rng: np.random.Generator, sizes: tuple[int, int, int, int], heavy: bool) -> None:
    p = [crossed_test(simulated(rng, sizes, heavy), sizes[0], sizes[2]).p_value for _ in range(2000)]
    assert 0.025 <= np.mean(np.array(p, dtype=float) <= 0.05) <= 0.07
