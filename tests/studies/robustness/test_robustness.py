"""Robustness on real word vectors and on a small transformer: every choice against the same measured by itself."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import biassay
from biassay.errors import BiassayError, UnknownNameError
from biassay.reporting.findings import make_points
from biassay.runs.run import Run
from biassay.studies.robustness.results import Specification

TESTS = ["weat6", "weat9", "sent-weat7", "weat1", "weat7"]


@pytest.fixture(scope="module")
def glove() -> Run:
    return biassay.robustness("glove", TESTS)


def of(run: Run, test: str, *kinds: str) -> list[Specification]:
    return [row for row in run.tables["specifications"] if row.test == test and row.kind in kinds]


def test_the_first_specification_and_the_findings_are_those_of_run(glove: Run) -> None:
    plain = biassay.run("glove", TESTS)
    for mine, row in zip(glove.results, plain.results, strict=True):
        first = of(glove, row.test, "model")[0]
        numbers = (row.effect_size, row.ci_low, row.ci_high, row.p_value)
        assert (first.effect_size, first.ci_low, first.ci_high, first.p_value) == pytest.approx(numbers)
        assert (mine.effect_size, mine.ci_low, mine.ci_high, mine.p_value) == pytest.approx(numbers)
        assert mine.p_adjusted == pytest.approx(row.p_adjusted)
        assert (mine.family_size, mine.model_revision) == (row.family_size, row.model_revision)
    shown = [(one.item, one.evidence, one.direction, one.effect) for one in glove.findings()]
    assert [one[:3] for one in shown] == [(one.item, one.evidence, one.direction) for one in plain.findings()]
    assert [one[3] for one in shown] == pytest.approx([one.effect for one in plain.findings()])
    assert {one[:2] for one in shown} >= {("weat6", "significant"), ("weat7", "inconclusive")}


def test_a_finding_says_what_it_survives_whatever_its_standing(glove: Run) -> None:
    for row, one in zip(glove.results, glove.findings(), strict=True):
        said = " ".join(one.robustness)
        joint, without_word = row.alternatives["joint"], row.alternatives["without_word"]
        for number in (joint.effect_size, row.min_effect_size, row.max_effect_size, without_word.effect_size):
            assert f"{number:.2f}" in said
        assert f"{row.n_same_sign} of {row.n_specifications}" in said
        assert row.without_word in said
        assert one.p_values["p of median (these words only)"] == joint.p_value
        assert not one.words
    told = {name for _, name in make_points(glove.findings())}
    assert told == {f" ({row.test})" for row in glove.results if row.about == "people"}


def test_choices_are_counted_and_summed_up(glove: Run) -> None:
    for result in glove.results:
        choices = of(glove, result.test, "model", "template")
        effects = [row.effect_size for row in choices if row.effect_size is not None]
        assert result.n_specifications == len(choices)
        assert (result.min_effect_size, result.max_effect_size) == (min(effects), max(effects))
        assert result.alternatives["joint"].effect_size == pytest.approx(np.median(effects))
        same = np.sign(effects) == np.sign(effects[0])
        sure = [row.p_value is not None and row.p_value <= 0.05 for row in choices]
        assert (result.n_same_sign, result.n_significant) == (same.sum(), (same & sure).sum())


def test_a_word_left_out_is_the_test_without_it(glove: Run) -> None:
    test = biassay.select_tests("weat6")[0]
    words = {role: list(test.concept(role).words) for role in "XYAB"}
    without = words | {"B": [word for word in words["B"] if word != "cousins"]}
    expected = biassay.run("glove", {"weat6": without}).results[0]
    (found,) = [row for row in of(glove, "weat6", "word") if row.words == "without cousins"]
    assert (found.effect_size, found.p_value) == pytest.approx((expected.effect_size, expected.p_value))
    result = glove.results[0]
    assert result.without_word == "cousins"
    assert result.alternatives["without_word"].effect_size == pytest.approx(expected.effect_size)


def test_social_bias_questions_are_corrected_and_their_forms_count_once(glove: Run) -> None:
    first = [row for row in glove.results if row.about == "people" and row.form_of is None]
    smallest = min(first, key=lambda row: row.p_value or 1.0)
    assert smallest.p_adjusted == pytest.approx(3 * (smallest.p_value or 1.0))
    assert [row.family_size for row in glove.results] == [3, 3, 3, None, 3]


def test_bad_settings_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="cosin"):
        biassay.robustness("glove", "weat6", similarities="cosin")
    with pytest.raises(BiassayError, match="layer=3"):
        biassay.robustness("glove", "weat6", representations="layer=3")


def test_a_test_whose_words_are_not_known_is_refused_alone(tmp_path: Path) -> None:
    test = biassay.select_tests("weat6")[0]
    texts = {f"{kind}{i}": [f"It is {word}." for word in test.concept(role).words]
             for kind, i, role in (("targ", 1, "X"), ("targ", 2, "Y"), ("attr", 1, "A"), ("attr", 2, "B"))}  # fmt: skip
    file = tmp_path / "given.json"
    file.write_text(json.dumps({name: {"category": name, "examples": own} for name, own in texts.items()}))
    assert not biassay.select_tests(str(file))[0].has_known_words
    run = biassay.robustness("glove", [str(file), "weat6"])
    assert [(row.test, row.status) for row in run.results] == [("given", "skipped"), ("weat6", "measured")]
    assert "which words" in (run.results[0].reason or "")
