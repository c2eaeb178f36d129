"""Stereotypes from groups and templates to a folder: numbers as loops and SciPy give them, nothing asked twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import kendalltau

import biassay
from biassay.errors import InsufficientVocabularyError, StimulusError, UnknownNameError, UsageError
from biassay.results.run_data import RunSlice
from biassay.runs.progress import NullListener
from biassay.runs.run import Run

from .asked_models import GROUPS, HUMAN_NAMES, TEMPLATES, Place, measures, numbers, profiles

pytestmark = [pytest.mark.extras, pytest.mark.usefixtures("one_thread")]
OURS = ("north", "south", "east", "baker", "smith")  # as HUMAN_NAMES
PILOT = ("north", "baker")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    pytest.importorskip("transformers")
    return Place(tmp_path_factory.mktemp("asked"))


@pytest.fixture(scope="module")
def compared(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Run:
    cache = tmp_path_factory.mktemp("answers")
    return place(human=place.human, annotators=[("Gender", "Woman")], cache=cache)


def means(place: Place, gender: str | None = None) -> dict[str, np.ndarray]:
    """Mean ratings by the names of our groups, in the order of the pairs."""
    people = json.loads(place.human.read_text()).values()
    people = [own for own in people if gender in (None, own["demographics"]["Gender"])]
    found = {}
    for ours, theirs in zip(OURS, HUMAN_NAMES, strict=True):
        rows = [[own[theirs].get(f"{pair.left} - {pair.right}", np.nan) for pair in place.abc.pairs] for own in people]
        found[ours] = np.mean(rows, axis=0)
    return found


def scores_of(measure: RunSlice) -> np.ndarray:
    return measure.arrays[f"{measure.label}/scores"]


def tau(model: list[np.ndarray], human: list[np.ndarray]) -> tuple[float, float]:
    x, y = np.concatenate(model), np.concatenate(human)
    known = ~(np.isnan(x) | np.isnan(y))
    found = kendalltau(x[known], y[known])
    return float(found.statistic), float(found.pvalue)


def precision(model: np.ndarray, human: np.ndarray) -> tuple[float, float]:
    known = sorted((m, h) for m, h in zip(model, human, strict=True) if not np.isnan(m + h))
    top, bottom = [h > 50 for _, h in known[-3:]], [h < 50 for _, h in known[:3]]
    return sum(top) / 3, sum(bottom) / 3


def test_a_profile_is_the_mean_over_the_templates_chosen(place: Place, compared: Run) -> None:
    alone = place()
    for run, few in ((alone, False), (compared, True)):
        for record in measures(run):
            assert record.row.templates == TEMPLATES
            assert (len(record.row.chosen) <= 2) is few
            at = [record.row.templates.index(name) for name in record.row.chosen]
            assert [profile.group for profile in record["profiles"]] == list(GROUPS)
            for profile, scores in zip(record["profiles"], scores_of(record), strict=True):
                expected = scores[at].mean(axis=0)
                np.testing.assert_allclose(numbers(profile.scores), expected, atol=1e-12)
    for one, other in zip(measures(alone), measures(compared), strict=True):
        np.testing.assert_allclose(scores_of(one), scores_of(other), atol=1e-5)
    assert all(profile.human is None for record in measures(alone) for profile in record["profiles"])


def test_alignment_is_that_of_scipy_on_the_profiles(place: Place, compared: Run) -> None:
    for record in measures(compared):
        model = profiles(record)
        assert [a.annotators for a in record["alignments"]] == ["all", "Gender=Woman"]
        assert [a.outcome.n["annotators"] for a in record["alignments"]] == [9, 5]
        for found, people in zip(record["alignments"], (means(place), means(place, "Woman")), strict=True):
            held = [name for name in OURS if name not in PILOT]
            whole = tau([model[n] for n in OURS], [people[n] for n in OURS])
            rest = tau([model[n] for n in held], [people[n] for n in held])
            cells, with_pilot = found.alternatives["cells"], found.alternatives["with_pilot"]
            assert (found.outcome.effect_size, cells.p_value) == pytest.approx(rest)
            assert (with_pilot.effect_size, with_pilot.p_value) == pytest.approx(whole)
            assert (found.outcome.n["groups"], found.outcome.n["cells"]) == (3, 3 * 16)
            shares = {name: precision(model[name], people[name]) for name in OURS}
            precisions = [found.alternatives[name].effect_size for name in ("precision", "precision_with_pilot")]
            assert precisions == pytest.approx([np.mean([shares[name] for name in names]) for names in (held, OURS)])
            for group, ours, theirs in zip(
                record.where("annotators", found.annotators)["group_alignments"], OURS, HUMAN_NAMES, strict=True
            ):
                assert (group.group, group.human_group, group.pilot) == (ours, theirs, ours in PILOT)
                own_tau, own_p = tau([model[ours]], [people[ours]])
                assert group.effect_size == pytest.approx(own_tau)
                assert group.p_value == (None if group.pilot else pytest.approx(own_p))
                assert (group.top, group.bottom) == pytest.approx(shares[ours])
                assert group.precision == pytest.approx(sum(shares[ours]) / 2)
                assert (group.ci_low is None) is group.pilot
            for outcome in (found.outcome, found.alternatives["annotators"], found.alternatives["groups"]):
                assert outcome.ci_low <= found.outcome.effect_size <= outcome.ci_high


@pytest.mark.parametrize(
    ("groups", "templates", "notes"),
    [
        (list(PILOT), ["mine"], ("templates were not chosen, because only pilot groups were rated and measured",)),
        (["south", "east"], ["mine"], ("templates were not chosen, because no pilot group was rated and measured",)),
        (list(OURS), ["own-that"], ()),
    ],
)
def test_templates_that_were_not_chosen_are_compared_on_all_groups(
    place: Place, groups: list[str], templates: list[str], notes: tuple[str, ...]
) -> None:
    found = place(human=place.human, groups=groups, templates=templates, measures="ilps")
    (record,) = measures(found)
    model, people = profiles(record), means(place)
    overall = record["alignments"][0]
    assert record.row.chosen == record.row.templates
    assert found.manifest.inputs.notes == notes
    names = [name for name in OURS if name in groups]
    assert overall.outcome.effect_size == pytest.approx(tau([model[n] for n in names], [people[n] for n in names])[0])
    assert {overall.alternatives[name].effect_size for name in ("pilot", "with_pilot")} == {None}
    assert not any(group.pilot for group in record["group_alignments"])


def test_peoples_means_stand_by_the_profiles(place: Place, compared: Run) -> None:
    people = means(place)
    for profile in measures(compared)[0]["profiles"]:
        if profile.group == "miller":
            assert profile.human is None
        else:
            assert profile.human is not None
            np.testing.assert_allclose(numbers(profile.human), people[profile.group])
    assert "groups without a match here: average people" in compared.manifest.inputs.human.notes
    assert compared.manifest.inputs.human.ceiling is not None


class Hearing(NullListener):
    def __init__(self, heard: list[str]) -> None:
        self.heard = heard

    def notice(self, message: str) -> None:
        self.heard.append(message)


def test_a_causal_model_is_compared_with_people_in_general(place: Place, causal_model: str, tmp_path: Path) -> None:
    heard: list[str] = []
    found = place(causal_model, groups=["north"], measures="ilps", listener=Hearing(heard))
    (result,) = found.tables["models"]
    assert len(heard) == 1
    assert heard[0].startswith(f"{Path(causal_model).name}: a causal model has no mask")
    assert (result.kind, result.prior) == ("causal", "word")
    assert result.skipped_templates == ("own-first",)
    assert measures(found)[0].row.templates == ("own-that", "own-many", "own-so")
    heard.clear()
    asked = place(causal_model, groups=["north"], measures="ilps", prior="word", listener=Hearing(heard))
    assert heard == []
    assert asked.tables == found.tables
    with pytest.raises(InsufficientVocabularyError, match="own-first"):
        place(causal_model, templates=["own-first"], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_part_of_a_run_is_about_one_measure_or_group(compared: Run) -> None:
    assert {row.measure for row in compared["set"].results} == {"set"}
    south = compared["south"]
    assert {row.group for row in south.results} == {"south"}
    assert [row for row in compared.results if row.group == "south"] == list(south.results)
    (alone,) = [finding for finding in south.findings() if finding.item == "south"]
    (whole,) = [finding for finding in compared.findings() if finding.item == "south"]
    assert alone == whole  # scores stay those less the mean of all groups
    with pytest.raises(UnknownNameError, match="'south'"):
        _ = compared["suoth"]


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"measures": ["ilps", "ipls"]}, UnknownNameError, "'ipls'.*'ilps'"),
        ({"measures": []}, UsageError, "measure"),
        ({"model": []}, UsageError, "model"),
        ({"variant": "papre"}, UnknownNameError, "'papre'.*'paper'"),
        ({"prior": "maks"}, UnknownNameError, "'maks'.*'mask'"),
        ({"groups": ["nort"]}, UnknownNameError, "'nort'.*'north'"),
        ({"templates": ["own-tht"]}, UnknownNameError, "'own-tht'.*'own-that'"),
        ({"seed": -1}, UsageError, "seed"),
        ({"n_bootstrap": 9}, UsageError, "n_bootstrap must be at least 10 and at most 1,000,000, got 9"),
        ({"min_contexts": 0}, UsageError, "min_contexts"),
        ({"annotators": [("Gender", "Woman")]}, UsageError, "--human"),
        ({"measures": "ceat"}, UsageError, "--contexts"),
        ({"contexts": "c.parquet"}, UsageError, "ceat"),
        ({"measures": "ceat", "contexts": "c.parquet"}, UsageError, "templates"),
        ({"measures": "ceat", "contexts": "c.parquet", "templates": (), "intersections": True}, UsageError, "inters"),
        ({"model": "glove"}, UsageError, "glove"),
        ({"files": ["none.toml"]}, StimulusError, "none.toml"),
        ({"human": "none.json"}, StimulusError, "none.json"),
    ],
)
def test_what_cannot_work_is_refused(
    place: Place, tmp_path: Path, wrong: dict[str, Any], error: type[Exception], words: str
) -> None:
    wrong, model = dict(wrong), wrong.get("model", place.model)
    wrong.pop("model", None)
    asked: dict[str, Any] = {
        "files": place.files,
        "groups": ["land"],
        "templates": ["mine"],
        "out": tmp_path / "out",
    } | wrong
    with pytest.raises(error, match=words):
        biassay.stereotypes(model, **asked)
    assert not (tmp_path / "out").exists()


def test_a_score_that_is_not_defined_in_the_pilot_ends_no_run(place: Place) -> None:
    """Distances of one and more have no score in the released form of SeT; ILPS has all of them."""
    found = place(human=place.human, variant="cao2022-code")
    assert measures(found)[2].row.undefined > 0
    assert measures(found)[0]["alignments"][0].outcome.effect_size is not None
