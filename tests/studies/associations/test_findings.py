"""Findings of association tests: what rows made by hand come to."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.results.made_runs import as_refused, result, run_of

from biassay.results.findings import STANDINGS, count
from biassay.studies.associations.marks import SIGNS, mark_of, p_by_text, p_by_word

LOW, HIGH = 0.001, 0.4
UNKNOWN = dict.fromkeys(("p_value_by_word", "p_floor_by_word", "effect_size_by_word"))


def standings(*rows: Any, **settings: Any) -> list[str]:
    return [finding.standing for finding in run_of("one", rows, settings=settings).findings()]


def test_correction_tells_what_holds_from_what_holds_before_it() -> None:
    rows = [result("m", f"t{i}", p, p_floor_by_word=0.0) for i, p in enumerate((LOW, 0.008, HIGH))]
    assert standings(*rows) == ["corrected", "uncorrected", "not shown"]


@pytest.mark.parametrize(
    ("given", "standing"),
    [
        ({"p": LOW, "effect_size_by_word": -0.7}, "opposite"),  # two-sided
        ({"p": 0.99, "effect_size_by_word": -0.7, "p_value_by_word_opposite": LOW}, "opposite"),
        (
            {"p": 0.99, "effect_size_by_word": -0.7, "p_value_by_word_opposite": HIGH, "p_floor_by_word": 0.0},
            "not shown",
        ),
        ({"p": HIGH, "p_floor_by_word": 0.02}, "too few"),
        ({"p": HIGH, "p_floor_by_word": 0.0}, "not shown"),
        ({"p": LOW, "p_floor_by_word": 0.0}, "corrected"),
    ],
)
def test_the_standing_of_a_row(given: dict[str, Any], standing: str) -> None:
    assert standings(result("m", "t", **given)) == [standing]


def test_where_words_are_not_known_the_standing_is_by_text() -> None:
    assert standings(result("m", "t", p_value=LOW, **UNKNOWN)) == ["corrected"]
    assert standings(result("m", "t", p_value=HIGH, **UNKNOWN)) == ["not shown"]
    assert standings(result("m", "t", p_value=LOW, effect_size=-0.5, **UNKNOWN)) == ["opposite"]


def test_what_was_not_measured_says_why_and_has_no_numbers() -> None:
    (found,) = run_of("one", [as_refused(result("m", "t"))]).findings()
    assert (found.standing, found.reason, found.direction) == ("not measured", "too many words", "")
    assert (found.effect, found.low, found.high) == (None, None, None)
    assert set(found.p_values.values()) == {None}


def test_a_finding_holds_the_numbers_of_its_row() -> None:
    associations = {"X": {f"x{i}": 0.3 + i / 100 for i in range(5)}, "Y": {f"y{i}": -0.2 - i / 50 for i in range(5)}}
    associations |= {"A": {"a": 0.1}, "B": {"b": -0.1}}
    given = {"targ1": "Flowers", "targ2": "Insects", "attr1": "Pleasant", "attr2": "Unpleasant"}
    row = result("m", "t", LOW, associations=associations, about="method", topic="things", **given)
    run = run_of("one", [row])
    (found,) = run.findings()
    assert (found.model, found.item, found.about, found.topic, found.unit) == ("m", "t", "method", "things", "d")
    assert found.low < found.effect < found.high
    assert found.p_values == {
        "by word": LOW,
        "by word, corrected": run.results[0].p_value_by_word_holm,
        "by text": LOW,
        "by text, corrected": run.results[0].p_value_holm,
    }
    assert len(found.evidence) == 5
    assert found.evidence[0] == "y4"  # the farthest from the middle of all targets
    first, second = found.direction.lower().split(", ")
    assert [word in first for word in ("flowers", "pleasant", "insects")] == [True, True, False]
    assert "insects" in second
    turned = run_of("one", [result("m", "t", LOW, effect_size_by_word=-0.5, effect_size=-0.5, **given)]).findings()[0]
    assert "unpleasant" in turned.direction.lower().split(", ")[0]


@pytest.mark.parametrize("by_text", [0.1, -0.1])
@pytest.mark.parametrize(("by_word", "first"), [(0.9, "A"), (-0.9, "B")])
def test_the_direction_is_that_of_the_effect_by_word(by_text: float, by_word: float, first: str) -> None:
    """It is the effect that stands beside it; that by text may have another sign."""
    given = {"targ1": "X", "targ2": "Y", "attr1": "A", "attr2": "B"}
    row = result("m", "t", effect_size=by_text, effect_size_by_word=by_word, **given)
    (found,) = run_of("one", [row]).findings()
    assert re.findall(r"\b[XYAB]\b", found.direction) == ["X", first, "Y", "B" if first == "A" else "A"]
    assert found.effect == by_word


def test_of_the_opposite_direction_its_own_p_value_comes_first() -> None:
    row = result("m", "t", 0.99, effect_size_by_word=-0.7, p_value_by_word_opposite=0.002)
    (found,) = run_of("one", [row]).findings()
    assert next(iter(found.p_values.values())) == 0.002
    assert found.p_values["by word"] == 0.99


@pytest.mark.parametrize(
    ("significant", "corrected", "floor", "mark"),
    [
        (True, True, 0.0, 2),
        (True, False, 0.0, 1),
        (False, False, 0.0, 0),
        (False, False, 0.02, 3),
        (None, None, 0.0, 4),
    ],
)
def test_each_p_value_has_its_own_mark(significant: Any, corrected: Any, floor: float, mark: int) -> None:
    by_word = {"significant_by_word": significant, "significant_by_word_holm": corrected}
    row = result(p=0.25, p_floor_by_word=floor, significant=True, significant_holm=True, **by_word)
    assert (mark_of(row, "word"), mark_of(row, "text")) == (mark, 2)
    assert (p_by_word(row), p_by_text(row)) == (f"0.250{SIGNS[mark]}", "0.250**")


def test_findings_are_counted_and_are_json() -> None:
    rows = [result("m", "t", LOW, p_floor_by_word=0.0, about="method"), result("n", "t", HIGH, about="people")]
    run = run_of("one", rows)
    found = run.findings()
    assert [(one.model, one.item) for one in found] == [("m", "t"), ("n", "t")]
    assert count(found, "corrected") == count(found, *STANDINGS, about="method") == 1
    assert [one["standing"] for one in json.loads(run.to_json())["findings"]] == [one.standing for one in found]
