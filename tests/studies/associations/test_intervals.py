"""What follows from the associations of single words: sums and loops over real runs, and results made by hand."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import biassay
from biassay.runs.run import Run
from biassay.stats.effect_interval import difference_interval, effect_interval
from biassay.studies.associations.intervals import contributions, interval_of, paired_difference
from biassay.studies.associations.records import Contextual, Result

WORDS = ("weat6", "weat9", "weat1")
SENTENCES = ("sent-weat6", "sent-weat9")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Tests over words and over sentences on the embedded vectors."""
    found = biassay.run("glove", tests=[*WORDS, *SENTENCES], cache=tmp_path_factory.mktemp("vectors"))
    assert [r.status for r in found.results] == ["measured"] * 5
    return found


def of(run: Run, test: str) -> Result:
    (found,) = [r for r in run.results if r.test == test]
    return found


def changed(result: Result, **roles: dict[str, float]) -> Result:
    """Other associations of some roles."""
    return dataclasses.replace(result, associations={**result.associations, **roles})


def values(result: Result, role: str) -> list[float]:
    return list(result.associations[role].values())


def contextual(low: float | None, high: float | None) -> Contextual:
    return Contextual(0.1, 2.0, 0.3, 40.0, 0.5, -1.0, 1.5, low, high, 0.9, 0.25, 40, {})


@pytest.mark.slow
@pytest.mark.parametrize("test", [*WORDS, *SENTENCES])
def test_contributions_of_targets_sum_to_the_effect_size_by_word(run: Run, test: str) -> None:
    result = of(run, test)
    found = contributions(result)
    assert found is not None
    assert result.effect_size_by_word is not None
    shares = [share for role in ("X", "Y") for share in found.targets[role].values()]
    assert math.fsum(shares) == pytest.approx(result.effect_size_by_word, rel=1e-9)
    assert found.effect_size == pytest.approx(result.effect_size_by_word, rel=1e-9)
    assert {role: list(found.targets[role]) for role in "XY"} == {
        role: list(result.associations[role]) for role in "XY"
    }


def test_attributes_are_their_associations_in_units_of_the_spread(run: Run) -> None:
    for result in run.results:
        found = contributions(result)
        assert found is not None
        spread = np.std([*values(result, "X"), *values(result, "Y")], ddof=1)
        for role in ("A", "B"):
            expected = {word: association / spread for word, association in result.associations[role].items()}
            assert found.attributes[role] == pytest.approx(expected, rel=1e-12)


def test_contributions_that_are_not_defined_are_none(run: Run) -> None:
    result = of(run, "weat6")
    x, y = result.associations["X"], result.associations["Y"]
    assert contributions(dataclasses.replace(result, associations={})) is None
    for role in "XYAB":
        assert contributions(changed(result, **{role: {}})) is None
    for value in (0.0, 0.1, math.nan, math.inf):
        assert contributions(changed(result, X=dict.fromkeys(x, value), Y=dict.fromkeys(y, value))) is None
    assert contributions(changed(result, X={**x, next(iter(x)): math.inf})) is None


@pytest.mark.parametrize("value", [0.1, 0.3, 1.0 / 3.0])
@pytest.mark.parametrize(("n", "m"), [(5, 7), (6, 9), (25, 18)])
def test_a_spread_that_is_rounding_gives_no_contributions(run: Run, value: float, n: int, m: int) -> None:
    x, y = ({f"w{i}": value for i in range(size)} for size in (n, m))
    assert contributions(changed(of(run, "weat6"), X=x, Y=y)) is None


def test_the_interval_is_that_of_the_associations_of_the_target_words(run: Run) -> None:
    for result in run.results:
        found = interval_of(result)
        assert found == effect_interval(values(result, "X"), values(result, "Y"))
        assert found is not None
        assert found.effect_size == pytest.approx(result.effect_size_by_word, rel=1e-9)
        assert found.low is not None
        assert found.high is not None
        assert found.low < found.effect_size < found.high


def test_a_test_over_contexts_has_its_own_interval(run: Run) -> None:
    over = dataclasses.replace(of(run, "weat6"), effect_size=0.75, contextual=contextual(0.25, 1.25))
    found = interval_of(over)
    assert found is not None
    assert (found.effect_size, found.low, found.high, found.confidence) == (0.75, 0.25, 1.25, 0.9)


def test_an_interval_over_contexts_that_was_left_out_is_not_replaced_by_that_of_another_effect_size(run: Run) -> None:
    """The pooled effect size is smaller than the one by word; an interval of the latter may well leave it out."""
    over = dataclasses.replace(of(run, "weat6"), effect_size=0.75, contextual=contextual(None, None))
    found = interval_of(over)
    assert found is None or (found.effect_size, found.low, found.high) == (0.75, None, None)


def other_model(result: Result, seed: int) -> Result:
    """The same words with other associations."""
    rng = np.random.default_rng(seed)
    associations = {
        role: {word: value + 0.05 * rng.normal() for word, value in words.items()}
        for role, words in result.associations.items()
    }
    return dataclasses.replace(result, model="other", associations=associations)


def test_a_paired_difference_is_that_of_the_same_words_in_the_same_order(run: Run) -> None:
    first = of(run, "weat6")
    second = other_model(first, 0)
    turned = changed(second, **{role: dict(reversed(second.associations[role].items())) for role in "XY"})
    expected = difference_interval(*(values(r, role) for r in (first, second) for role in "XY"))
    assert paired_difference(first, second) == (expected, 8, 8)
    assert paired_difference(first, turned) == (expected, 8, 8)


def test_words_that_one_model_does_not_know_are_left_out_of_both(run: Run) -> None:
    first = of(run, "weat6")
    second = other_model(first, 1)
    x, y = list(first.associations["X"]), list(first.associations["Y"])
    first = changed(first, X={w: first.associations["X"][w] for w in x[1:]} | {"own": 9.0})
    second = changed(second, Y={w: second.associations["Y"][w] for w in y[:5]} | {"theirs": -9.0})
    found = paired_difference(first, second)
    assert found is not None
    assert found[1:] == (7, 5)
    shared = {"X": x[1:], "Y": y[:5]}
    kept = [[r.associations[role][word] for word in shared[role]] for r in (first, second) for role in "XY"]
    assert found[0] == difference_interval(*kept)


def test_a_number_that_is_no_number_counts_only_where_it_is_compared(run: Run) -> None:
    first = of(run, "weat6")
    odd = changed(first, X={**first.associations["X"], "odd": math.nan})
    assert paired_difference(odd, first) == paired_difference(first, first)
    assert paired_difference(odd, odd) is None
