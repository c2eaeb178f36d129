"""Diagnostics of stimuli on real vectors, and when they warn."""

from __future__ import annotations

import dataclasses

import pytest
from tests.results.made_runs import altered, decided

import biassay
from biassay.errors import BiassayError
from biassay.runs.run import Run
from biassay.studies.associations.findings import list_warnings

WORDS = {"X": ["rose", "lily", "tulip"], "Y": ["ant", "fly", "wasp"], "A": ["joy", "love"], "B": ["hate", "war"]}


@pytest.fixture(scope="module")
def glove() -> Run:
    return biassay.run("glove", ["weat6", "weat3b", "sent-weat9"])


def test_tokens_frequency_and_the_word_an_effect_hangs_on(glove: Run) -> None:
    weat6, weat3b, _ = glove.tables["diagnostics"]
    assert (weat6.tokens, weat6.single) == (dict.fromkeys("XYAB", 1.0), dict.fromkeys("XYAB", 1.0))
    assert weat6.frequency["X"] < weat6.frequency["Y"]  # male names are more frequent
    assert (weat3b.single["X"], weat3b.frequency) == (0.0, None)  # "white people"
    test = biassay.select_tests("weat6")[0]
    words = {role: [w for w in test.concept(role).words if w != weat6.driver] for role in "XYAB"}
    without = biassay.run("glove", {"weat6": words}).results[0]
    assert (weat6.d_without, weat6.p_without) == pytest.approx((without.effect_size, without.p_value))


def test_only_what_changes_the_reading_is_said(glove: Run) -> None:
    row, found = glove.results[0], glove.tables["diagnostics"][0]

    def said(**given: object) -> int:
        return len(list(list_warnings(row, dataclasses.replace(found, **given))))

    assert said() == 0
    assert said(single={"X": 1.0, "Y": 0.2, "A": 1.0, "B": 1.0}) == 1
    assert said(frequency={"X": 100.0, "Y": 900.0, "A": 1.0, "B": 1.0}) == 1
    assert said(p_without=0.2, d_without=0.5) == 1
    assert said(p_without=0.06, d_without=0.5) == 0  # a p-value just below alpha easily crosses it
    assert said(p_skew=0.04) == 0
    assert said(p_skew=0.06) == 1
    weak = decided(altered(row, p_value=0.4))
    assert not list(list_warnings(weak, dataclasses.replace(found, p_without=0.9)))


def test_unequal_sizes_with_unequal_spreads_are_said(glove: Run) -> None:
    row = glove.results[0]
    x = {f"x{i}": 1.0 + 0.01 * i for i in range(4)}
    y = {f"y{i}": 0.1 * i for i in range(12)}
    unequal = decided(altered(row, associations={**row.associations, "X": x, "Y": y}))
    assert len(list(list_warnings(unequal, None))) == 1


@pytest.mark.parametrize(
    "change", [{"A": ["joy", "war"]}, {"X": ["rose", "rose", "lily"]}, {"X": ["rose", "ant", "lily"]}, {"A": ["joy"]}]
)
def test_sets_of_one_word_and_words_that_stand_twice_are_refused(change: dict[str, list[str]]) -> None:
    with pytest.raises(BiassayError):
        biassay.run("glove", {"own": WORDS | change})
