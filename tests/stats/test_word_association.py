"""Word association tests: shares by hand, exact and crossed p-values, orders, and missing responses."""

from __future__ import annotations

import csv
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from biassay.errors import UsageError
from biassay.stats.crossed import crossed_rows, crossed_test
from biassay.stats.word_association import (
    agreement_interval,
    bai_score_from_counts,
    bai_score_test,
    compute_bai_scores,
    word_association,
)

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "tests" / "reference" / "wat"
EXPECTED = json.loads((REFERENCE / "expected.json").read_text(encoding="utf-8"))
NEGATIVE = np.repeat([False, True], 4)
NAN = math.nan


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def released(name: str) -> np.ndarray:
    """Answers x words by plain splitting: 1 for B, 0 for A; the words of the stimuli in their order."""
    with (REFERENCE / "stimuli.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["dataset"] == name]
    words = [row["C"].lower() for row in rows]
    sides = {row[side].lower(): value for side, value in (("A", 0.0), ("B", 1.0)) for row in rows if row[side]}
    with (REFERENCE / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        answers = [row["0"].lower() for row in csv.DictReader(file)]
    table = np.full((len(answers), len(words)), NAN)
    for i, answer in enumerate(answers):
        for line in answer.splitlines():
            word, _, group = (part.strip() for part in line.partition("-"))
            if word in words and group in sides:
                table[i, words.index(word)] = sides[group]
    return table


def design(pairs: int, rounds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return pairs, orders and blocks of responses: every pair in both orders, several times."""
    blocks = np.repeat(np.arange(pairs * rounds), 2)
    return blocks % pairs, np.tile([False, True], pairs * rounds), blocks


def test_score_by_hand() -> None:
    table = np.array([[0, 0, 1, 1], [1, 1, 0, 0], [1, 1, 1, 1], [0, NAN, NAN, 1], [NAN] * 4])
    found = compute_bai_scores(table, [False, False, True, True])
    wanted = [2 / 2.01 + 2 / 2.01 - 1, -1.0, 2 / 4.01 + 0.0 - 1, 1 / 1.01 + 1 / 1.01 - 1, NAN]
    assert found == pytest.approx(wanted, abs=1e-15, nan_ok=True)
    assert bai_score_from_counts(2, 1, 0, 3) == pytest.approx(2 / 3.01 + 3 / 3.01 - 1)


def test_score_test_is_the_t_test(rng: np.random.Generator) -> None:
    scores = rng.normal(0.2, 1.0, size=30)
    wanted = stats.ttest_1samp(scores, 0.0)
    found = bai_score_test([*scores, NAN])
    assert (found.t, found.df, found.p_value) == pytest.approx((wanted.statistic, 29, wanted.pvalue))
    assert math.isnan(bai_score_test([0.5, 0.5]).p_value)


@pytest.mark.parametrize("pairs", [1, 3])
def test_exact_p_over_all_permutations(rng: np.random.Generator, pairs: int) -> None:
    of, order, blocks = design(pairs, 4)
    values = (rng.random((len(of), 8)) < np.where(NEGATIVE, 0.65, 0.4)).astype(float)
    found = word_association(values, NEGATIVE, pairs=of, stigmatised_first=order, blocks=blocks)
    shares = values.mean(axis=0)
    assert found.by_word == pytest.approx(shares)
    observed = abs(shares[4:].sum() * 2 - shares.sum())
    splits = [abs(sum(chosen) * 2 - shares.sum()) for chosen in itertools.combinations(shares, 4)]
    assert found.exact is not None
    assert found.exact.value == pytest.approx(np.mean([split >= observed - 1e-9 for split in splits]))


def test_crossed_with_pairs_and_with_answers(rng: np.random.Generator) -> None:
    """Compute in loops the variances of words, columns and residual, as in the crossed test of two sets."""
    of, order, blocks = design(6, 3)
    values = (rng.random((len(of), 8)) < np.where(NEGATIVE, 0.7, 0.3)).astype(float)
    found = word_association(values, NEGATIVE, pairs=of, stigmatised_first=order, blocks=blocks)
    by_pair = np.array([values[of == j].mean(axis=0) for j in range(6)])
    by_block = np.array([values[blocks == b].mean(axis=0) for b in range(18)])
    for crossed, columns in ((found.pair_test, by_pair), (found.response_test, by_block)):
        assert crossed is not None
        test = crossed.test
        n, J = 4, len(columns)
        V_T = sum(np.var(columns[:, part].mean(axis=0), ddof=1) / n for part in (NEGATIVE, ~NEGATIVE))
        apart = [row[NEGATIVE].mean() - row[~NEGATIVE].mean() for row in columns]
        V_A = np.var(apart, ddof=1) / J
        V_E = 0.0
        for part in (NEGATIVE, ~NEGATIVE):
            cell = columns[:, part]
            squares = 0.0
            for j, w in itertools.product(range(J), range(n)):
                squares += (cell[j, w] - cell[j].mean() - cell[:, w].mean() + cell.mean()) ** 2
            V_E += squares / ((n - 1) * (J - 1) * n * J)
        V = max(V_T + V_A - V_E, V_T, V_A)
        numbers = [test.D, test.V_T, test.V_A, test.V_E, test.V]
        assert numbers == pytest.approx([np.mean(apart), V_T, V_A, V_E, V])
        by_t = 2 * stats.t.sf(abs(test.t), test.df)
        assert test.p_value == pytest.approx(by_t)
        flips = [abs(np.dot(signs, apart)) for signs in itertools.product((1, -1), repeat=J)] if J < 10 else [-1.0]
        by_signs = np.mean([flip >= abs(np.sum(apart)) - 1e-9 for flip in flips])
        assert crossed.sign_flip_p_value == pytest.approx(by_signs)
        means = columns.mean(axis=0)
        parted = [np.mean(means[list(own)]) * 2 - np.mean(means) * 2 for own in itertools.combinations(range(8), 4)]
        by_word = np.mean(np.abs(parted) >= abs(np.mean(apart)) - 1e-9)
        assert crossed.word_p_value == pytest.approx(by_word)
        assert crossed.p_value == pytest.approx(max(by_t, by_signs, by_word))
        assert test.sizes == (4, 4, J, 0)
        assert test.variance_shares is not None
        assert sum(test.variance_shares) == pytest.approx(1.0)
    assert found.pair_test is not None
    assert found.difference == pytest.approx(by_pair[:, 4:].mean() - by_pair[:, :4].mean())
    assert (found.claim, found.crossed) == ("pairs", found.pair_test)
    assert found.interval == found.pair_test.interval == found.pair_test.test.interval


def test_one_set_of_columns_is_a_second_set_without_variance(rng: np.random.Generator) -> None:
    """The crossed test of two sets with a second one that is 0 throughout, but for its columns' own terms."""
    table = rng.normal(size=(9, 7))
    both = crossed_test(np.hstack([table, np.zeros((9, 40))]), 5, 7)
    one = crossed_rows(table, 5)
    assert (one.D, one.V, one.V_T, one.V_A, one.V_E, one.df) == pytest.approx(
        (both.D, both.V, both.V_T, both.V_A, both.V_E, both.df)
    )
    assert one.p_value == pytest.approx(both.p_value)


@pytest.mark.parametrize("by", ["first", "second", "place"])
def test_answers_by_place_give_no_difference(rng: np.random.Generator, by: str) -> None:
    """A model that names the first group, or goes by the place of a word in the list, leans to nobody."""
    of, order, blocks = design(5, 5)
    place = rng.permuted(np.tile(np.arange(8), (25, 1)), axis=1)[blocks]
    takes_first = {"first": place >= 0, "second": place < 0, "place": place % 3 == 0}[by]
    values = np.where(takes_first, order[:, None], ~order[:, None]).astype(float)
    found = word_association(values, NEGATIVE, pairs=of, stigmatised_first=order, blocks=blocks)
    assert found.difference == 0.0
    assert (found.by_word == 0.5).all()
    assert found.exact is not None
    assert found.exact.value == 1.0
    assert found.p_value == 1.0
    assert found.first == pytest.approx(takes_first.mean())


def test_few_pairs_have_a_smallest_p(rng: np.random.Generator) -> None:
    of, order, blocks = design(4, 6)
    values = np.tile(NEGATIVE, (len(of), 1)) ^ (rng.random((len(of), 8)) < 0.05)
    found = word_association(values, NEGATIVE, pairs=of, stigmatised_first=order, blocks=blocks)
    assert found.pair_test is not None
    assert found.pair_test.test.p_value is not None
    assert found.pair_test.test.p_value < 0.001
    assert found.p_value == found.pair_test.smallest_p_value == 0.125
    assert found.interval is None
    assert found.response_test is not None
    assert found.response_test.p_value is not None
    assert found.response_test.p_value == found.response_test.smallest_p_value == pytest.approx(2 / 70)


def test_interval_and_p_never_disagree_about_0(rng: np.random.Generator) -> None:
    of, order, blocks = design(6, 4)
    seen = 0
    for lean in np.linspace(0.5, 1.0, 60):
        values = (rng.random((len(of), 8)) < np.where(NEGATIVE, lean, 0.5)).astype(float)
        found = word_association(values, NEGATIVE, pairs=of, stigmatised_first=order, blocks=blocks)
        if found.interval is None or found.p_value is None:  # too few degrees of freedom, rarely
            continue
        seen += 1
        assert (found.interval[0] > 0.0 or found.interval[1] < 0.0) == (found.p_value <= 0.05)
        assert -1.0 <= found.interval[0] <= found.difference <= found.interval[1] <= 1.0
    assert seen > 50


def test_log_odds(rng: np.random.Generator) -> None:
    of, order, blocks = design(7, 1)
    values = rng.normal(size=(14, 8)) + np.where(NEGATIVE, 2.0, 0.0) + np.where(order, 5.0, -5.0)[:, None]
    found = word_association(values, NEGATIVE, pairs=of, stigmatised_first=order, blocks=blocks, log_odds=True)
    assert found.difference == pytest.approx(values[:, NEGATIVE].mean() - values[:, ~NEGATIVE].mean())
    assert found.first == pytest.approx(np.where(order[:, None], values, -values).mean())
    assert found.claim == "pairs"
    one = word_association(values[:2], NEGATIVE, stigmatised_first=order[:2], log_odds=True)
    means = values[:2].mean(axis=0)
    assert one.by_word == pytest.approx(means)
    assert one.exact is not None
    assert (one.claim, one.p_value) == ("words", one.exact.value)


def test_what_is_missing_is_left_out_and_counted() -> None:
    values = np.tile([0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0], (12, 1))
    values[::2, 3] = 1.0
    values[:, 0] = NAN  # a word that is never read
    values[4] = NAN  # an answer that is never read
    found = word_association(values, NEGATIVE, pairs=np.repeat(np.arange(6), 2))
    assert np.isnan(found.by_word[0])
    for crossed, columns in ((found.pair_test, 6), (found.response_test, 11)):
        assert crossed is not None
        assert (crossed.words_left_out, crossed.test.sizes[2]) == (1, columns)
    none = word_association(np.full((4, 8), NAN), NEGATIVE)
    assert math.isnan(none.difference)
    assert (none.exact, none.response_test, none.p_value, none.interval) == (None, None, None, None)
    positive = word_association(np.where(NEGATIVE, NAN, values), NEGATIVE)
    assert math.isnan(positive.difference)
    assert positive.p_value is None


@pytest.mark.parametrize(
    ("values", "negative", "more", "told"),
    [
        ([[0, 1, 0, 0]], [0, 0, 1, 1], {"pairs": [0, 1]}, "pairs"),
        ([[0, 1, 0, 0]], [0, 0, 1, 1], {"blocks": [0, 1]}, "blocks"),
        ([[0, 1, 0, 0]], [0, 0, 1, 1], {"stigmatised_first": [0, 1]}, "stigmatised_first needs"),
    ],
)
def test_bad_input(values: object, negative: object, more: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        word_association(values, negative, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", EXPECTED)
def test_exact_p_of_released_answers_over_all_ways_to_part_the_words(name: str) -> None:
    table = released(name)
    n = table.shape[1] // 2
    shares = np.nanmean(table, axis=0)
    apart = [2.0 * shares[list(part)].sum() - shares.sum() for part in itertools.combinations(range(2 * n), n)]
    seen = 2.0 * shares[n:].sum() - shares.sum()
    found = word_association(table, np.arange(2 * n) >= n)
    assert found.exact is not None
    assert found.exact.value == pytest.approx(np.mean(np.abs(apart) >= abs(seen) - 1e-9), rel=1e-12)


def test_of_answers_that_are_all_alike_there_is_no_t_test() -> None:
    scores = compute_bai_scores(released("racism"), np.arange(16) >= 8)
    assert bai_score_test(scores).mean == pytest.approx(EXPECTED["racism"]["mean_D"], abs=1e-9)
    assert math.isnan(bai_score_test(scores).p_value)


@pytest.mark.parametrize("unread", [0.05, 0.2])
def test_words_that_single_replies_leave_out_cost_little(unread: float, rng: np.random.Generator) -> None:
    of, order, blocks = design(1, 25)
    negative = np.arange(16) < 8
    values = (rng.random((len(of), 16)) < np.where(negative, 0.8, 0.2)).astype(float)
    values[rng.random(values.shape) < unread] = np.nan
    found = word_association(values, negative, pairs=of, stigmatised_first=order, blocks=blocks)
    crossed = found.response_test
    assert crossed is not None
    assert crossed.words_left_out <= 6
    assert 6 <= crossed.test.sizes[2] <= 25
    assert crossed.p_value is not None
    assert crossed.p_value < 0.02
    assert crossed.interval is not None
    assert crossed.interval[0] < found.difference < crossed.interval[1]


def leaning(
    share_negative: float, share_positive: float, n_blocks: int = 25
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One pair in both orders; of every word the first part of the blocks gives it to the stigmatised group."""
    _, order, blocks = design(1, n_blocks)
    share = np.where(NEGATIVE, share_negative, share_positive)
    return (blocks[:, None] < np.round(n_blocks * share)).astype(float), order, blocks


def test_selective_refusal_cannot_turn_the_sign(rng: np.random.Generator) -> None:
    """Negative words that would go to the stigmatised group are withheld: the rest has the wrong sign."""
    _, order, blocks = design(1, 100)
    negative = np.repeat([False, True], 8)
    values = (rng.random((200, 16)) < np.where(negative, 0.6, 0.4)).astype(float)
    whole = word_association(values, negative, stigmatised_first=order, blocks=blocks)
    withheld = np.where(negative & (values == 1.0) & (rng.random(values.shape) < 0.75), NAN, values)
    found = word_association(withheld, negative, stigmatised_first=order, blocks=blocks)
    assert whole.difference > 0.1
    assert found.difference < -0.1
    assert found.p_value_without_missing is not None
    assert found.p_value_without_missing <= 0.05  # what was read alone would be a finding
    low, high = found.bounds
    assert low <= 0.0 <= whole.difference <= high
    assert (found.bounds_contain_zero, found.p_value) == (True, 1.0)
    assert found.interval is not None
    assert found.interval[0] <= whole.difference <= found.interval[1]


@pytest.mark.parametrize("pairs", [1, 6])
def test_bounds_by_hand_and_around_every_completion(rng: np.random.Generator, pairs: int) -> None:
    of, order, blocks = design(pairs, 4)
    whole = (rng.random((len(of), 8)) < np.where(NEGATIVE, 0.8, 0.3)).astype(float)
    gone = rng.random(whole.shape) < 0.1
    given: dict[str, Any] = {"pairs": of, "stigmatised_first": order, "blocks": blocks}
    found = word_association(np.where(gone, NAN, whole), NEGATIVE, **given)
    ends = []
    for fill in (~NEGATIVE, NEGATIVE):
        completed = np.where(gone, fill, whole)
        ends.append(completed[:, NEGATIVE].mean() - completed[:, ~NEGATIVE].mean())
    assert found.bounds == pytest.approx(ends)
    for _ in range(20):
        completed = np.where(gone, rng.random(whole.shape) < 0.5, whole)
        one = word_association(completed, NEGATIVE, **given)
        assert found.bounds[0] - 1e-9 <= one.difference <= found.bounds[1] + 1e-9
    nothing = word_association(whole, NEGATIVE, **given)
    assert nothing.bounds == (nothing.difference, nothing.difference)
    assert nothing.p_value == nothing.p_value_without_missing


def test_missing_log_odds_have_no_bounds(rng: np.random.Generator) -> None:
    of, order, _ = design(8, 1)
    values = rng.normal(size=(16, 8)) + 5.0 * NEGATIVE
    values[0, 0] = NAN
    found = word_association(values, NEGATIVE, pairs=of, stigmatised_first=order, log_odds=True)
    assert found.bounds == (-math.inf, math.inf)
    assert (found.p_value, found.interval, found.fixed_groups_p_value) == (None, None, None)
    assert found.p_value_without_missing is not None


@pytest.mark.parametrize("log_odds", [False, True])
@pytest.mark.parametrize("pairs", [1, 6, 10])
@pytest.mark.parametrize("n", [4, 8])
def test_words_and_pairs_that_all_agree_are_significant(n: int, pairs: int, log_odds: bool) -> None:
    negative = np.repeat([False, True], n)
    of, order, blocks = design(pairs, 24 // pairs)
    values = np.tile(np.where(negative, 1.0, -1.0 if log_odds else 0.0), (len(of), 1))
    given: dict[str, Any] = {} if log_odds else {"blocks": blocks}
    found = word_association(values, negative, pairs=of, stigmatised_first=order, log_odds=log_odds, **given)
    assert found.p_value is not None
    assert found.p_value == pytest.approx(max(2.0 / math.comb(2 * n, n), 2.0 ** (1 - pairs) if pairs > 1 else 0.0))
    assert found.p_value <= 0.05
    if log_odds and pairs == 1:
        assert found.interval is None  # by word alone
        return
    columns = pairs if pairs > 1 else 24
    agree = min(0.025 ** (1 / columns), 0.025 ** (1 / (2 * n)))
    assert found.interval is not None
    assert found.interval == pytest.approx((found.difference * (2 * agree - 1), math.inf if log_odds else 1.0))
    assert found.interval[0] > 0.0


def test_unequal_poles_that_agree() -> None:
    """The fewest that agree in two populations, by a grid over one of them."""
    for n, m in ((4, 9), (2, 40), (1, 60)):
        u = np.linspace(1e-6, 1.0, 400_001)
        v = (0.025 / u**n) ** (1.0 / m)
        wanted = (u + v)[v <= 1.0].min() / 2.0
        low, high = agreement_interval(1.0, (n, m), 10_000, 1.0, 0.95, sign_known=True)
        assert (low, high) == pytest.approx((2.0 * wanted - 1.0, 1.0), abs=1e-4)


def test_one_deviating_response_does_not_acquit() -> None:
    """Below two degrees of freedom the crossed test has no p-value."""
    of, order, blocks = design(6, 4)
    values = np.tile(NEGATIVE, (len(of), 1)).astype(float)
    values[0, 0] = 1.0
    found = word_association(values, NEGATIVE, pairs=of, stigmatised_first=order, blocks=blocks)
    assert found.pair_test is not None
    assert found.pair_test.test.p_value is None
    assert found.p_value == pytest.approx(2 / 64)
    assert found.interval is not None
    assert found.interval[0] > 0.0


def test_who_follows_the_order() -> None:
    values, order, blocks = leaning(0.5, 0.5)
    first = np.repeat(order[:, None], 8, axis=1).astype(float)
    told: dict[str, Any] = {"stigmatised_first": order, "blocks": blocks}
    for table, follows, effect in ((first, True, 1.0), (1.0 - first, True, -1.0), (values, False, 0.0)):
        found = word_association(table, NEGATIVE, **told)
        assert (found.follows_order, found.order_effect) == (follows, pytest.approx(effect, abs=0.05))
    half = np.where(NEGATIVE, 1.0, first)  # negative words to the stigmatised group, positive ones by order
    found = word_association(half, NEGATIVE, **told)
    assert (found.difference, found.order_effect, found.follows_order) == (0.5, 0.5, False)
    assert not word_association(first, NEGATIVE).follows_order  # orders are not stated
