"""Findings of association tests: what rows made by hand come to."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.results.made_runs import as_refused, result, run_of

from biassay.results.findings import STANDINGS, count

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


def test_findings_are_counted_and_are_json() -> None:
    rows = [result("m", "t", LOW, p_floor_by_word=0.0, about="method"), result("n", "t", HIGH, about="people")]
    run = run_of("one", rows)
    found = run.findings()
    assert [(one.model, one.item) for one in found] == [("m", "t"), ("n", "t")]
    assert count(found, "corrected") == count(found, *STANDINGS, about="method") == 1
    assert [one["standing"] for one in json.loads(run.to_json())["findings"]] == [one.standing for one in found]
