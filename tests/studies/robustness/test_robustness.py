"""Robustness on real word vectors: every choice against the same measured by itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import biassay
from biassay.errors import BiassayError, UnknownNameError
from biassay.runs.run import Run
from biassay.stats.joint import joint_test
from biassay.studies.robustness.records import Specification


@pytest.fixture(scope="module")
def glove() -> Run:
    return biassay.robustness("glove", ["weat6", "weat9", "sent-weat7", "weat1"])


def of(run: Run, test: str, *kinds: str) -> list[Specification]:
    return [row for row in run.tables["specifications"] if row.test == test and row.kind in kinds]


def test_the_first_specification_is_the_run(glove: Run) -> None:
    for plain in biassay.run("glove", ["weat6", "sent-weat7"]).results:
        first = of(glove, plain.test, "model")[0]
        assert (first.d, first.p_value_crossed) == pytest.approx((plain.effect_size_by_word, plain.p_value_crossed))
        assert (first.d_low, first.d_high) == pytest.approx((plain.d_low, plain.d_high))


def test_choices_are_counted_and_summed_up(glove: Run) -> None:
    for result in glove.results:
        choices = of(glove, result.test, "model", "template")
        effects = [row.d for row in choices if row.d is not None]
        assert result.choices == len(choices)
        assert (result.d_smallest, result.d_largest) == (min(effects), max(effects))
        assert result.d_median == pytest.approx(np.median(effects))
        assert result.share_sign == pytest.approx(np.mean(np.sign(effects) == np.sign(effects[0])))
        sure = [row.p_value_crossed is not None and row.p_value_crossed <= 0.05 for row in choices]
        assert result.share_significant == pytest.approx(
            np.mean(np.array(sure) & (np.sign(effects) == np.sign(effects[0])))
        )


def test_kinds_of_specifications(glove: Run) -> None:
    assert [row.similarity for row in of(glove, "weat6", "model")] == ["cosine", "centred", "components", "rank"]
    assert not of(glove, "weat6", "template")
    assert [row.template for row in of(glove, "sent-weat7", "template")] == [
        *("This is {T}.", "That is {T}.", "There is {T}.", "It is {T}."),
    ]
    assert len(of(glove, "weat6", "word")) == 32
    assert len(of(glove, "weat6", "subset")) == 20
    assert {row.num_words["X"] for row in of(glove, "weat6", "subset")} == {4}
    assert not of(glove, "weat9", "subset")


def test_a_word_left_out_is_the_test_without_it(glove: Run) -> None:
    test = biassay.select_tests("weat6")[0]
    words = {role: list(test.concept(role).words) for role in "XYAB"}
    without = words | {"B": [word for word in words["B"] if word != "cousins"]}
    expected = biassay.run("glove", {"weat6": without}).results[0]
    (found,) = [row for row in of(glove, "weat6", "word") if row.words == "without cousins"]
    assert (found.d, found.p_value_crossed) == pytest.approx((expected.effect_size_by_word, expected.p_value_crossed))
    result = glove.results[0]
    assert (result.without_word, result.d_without_word) == ("cousins", pytest.approx(expected.effect_size_by_word))


def test_only_tests_about_people_are_corrected(glove: Run) -> None:
    people = [row for row in glove.results if row.about == "people"]
    expected = biassay.holm([row.p_joint for row in people]).adjusted
    assert [row.p_joint_holm for row in people] == pytest.approx(expected.tolist())
    assert [row.family for row in glove.results] == [3, 3, 3, None]


def test_the_joint_p_value_is_that_of_the_median(glove: Run) -> None:
    assert glove.results[0].p_joint == pytest.approx(2 / 12870)  # no split of weat6 does as well, in either direction
    assert 0.0 < glove.results[1].p_joint < 0.05
    assert joint_test(np.eye(2, 8), 4).p_value > 0.05


def test_findings_say_how_many_agree(glove: Run) -> None:
    finding = glove.findings()[0]
    assert (finding.item, finding.standing, finding.unit) == ("weat6", "corrected", "median d")
    assert finding.effect == glove.results[0].d_median
    assert not finding.evidence  # these are words, and a choice is none
    assert all(number in finding.notes[0] for number in ("100%", "4"))


def test_one_seed_one_answer_and_a_folder_holds_everything(tmp_path: Path) -> None:
    run = biassay.robustness("glove", "weat6", out=tmp_path / "run")
    assert biassay.robustness("glove", "weat6").tables == run.tables == biassay.load(tmp_path / "run").tables
    assert (tmp_path / "run" / "report.html").exists()


def test_bad_settings_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="cosin"):
        biassay.robustness("glove", "weat6", similarities="cosin")
    with pytest.raises(BiassayError, match="layer=3"):
        biassay.robustness("glove", "weat6", readings="layer=3")


def test_a_test_with_too_many_words_lost_is_refused_alone(tmp_path: Path) -> None:
    file = tmp_path / "few.txt"
    vectors = np.random.default_rng(0).normal(size=(32, 5))
    words = [w.lower() for role in "XYAB" for w in biassay.select_tests("weat6")[0].concept(role).words]
    file.write_text("\n".join(f"{w} {' '.join(map(str, v))}" for w, v in zip(words, vectors, strict=True)) + "\n")
    run = biassay.robustness(f"vectors:{file}?case=fold", ["weat6", "weat1"])
    assert [row.status for row in run.results] == ["measured", "refused"]
    assert run.findings()[1].standing == "not measured"
