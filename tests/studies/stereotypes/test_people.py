"""Human judgements matched to groups: files in the released form and others, the pilot's few ratings, subgroups."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biassay.datasets.abc_model import AbcStimuli, load_abc, select_groups
from biassay.errors import StimulusError, UnknownNameError, UsageError
from biassay.studies.stereotypes.agreement import HumanJudgements, match_judgements

PAIRS = ("powerless - powerful", "cold - warm", "egotistic - altruistic")
PILOT = ("Blacks/African Americans", "Hispanic people", "Asian people", "immigrants")


@pytest.fixture(scope="module")
def abc() -> AbcStimuli:
    return load_abc()


@pytest.fixture(scope="module")
def released(judgements: Path, abc: AbcStimuli) -> HumanJudgements:
    return match_judgements(abc, abc.groups, judgements / "data_full.json", (), seed=0)


def written(folder: Path, content: Any) -> Path:
    path = folder / "human.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def rated(groups: list[str], annotators: int = 8, demographics: bool = False) -> dict[str, Any]:
    """Annotators who rate all groups on three pairs, by draw."""
    rng = np.random.default_rng(5)
    made: dict[str, Any] = {}
    for number in range(annotators):
        own: dict[str, Any] = {
            group: dict(zip(PAIRS, rng.integers(0, 101, 3).tolist(), strict=True)) for group in groups
        }
        if demographics:
            own["demographics"] = {
                "Gender": "Woman" if number < 3 else "Man",
                "Race": "White, Asian" if number else "Asian",
            }
        made[f"annotator{number}"] = own
    return made


def drawn_from(means: np.ndarray, ratings: np.ndarray, size: int) -> int:
    """How many choices of so many of the raters (n, pairs) have these means."""
    raters = ratings[~np.isnan(ratings).all(axis=1)]
    chosen = raters[np.array(list(combinations(range(len(raters)), size)))].mean(axis=1)
    known = ~np.isnan(means)
    return int(np.isclose(chosen[:, known], means[known], atol=1e-9).all(axis=1).sum())


def test_released_groups_are_matched_to_ours(released: HumanJudgements, abc: AbcStimuli) -> None:
    ratings = released.ratings
    assert (len(ratings.groups), ratings.means.shape) == (25, (25, 16))
    ours = [abc.groups[index] for index in released.group_indices]
    assert len({group.name for group in ours}) == 25
    for name, group in zip(ratings.groups, ours, strict=True):
        assert name in group.human
    named = dict(zip(ratings.groups, (group.name for group in ours), strict=True))
    assert named["men"] == "man"
    assert named["Blacks/African Americans"] == "Black"
    assert named["transgender people"] == "trans"
    assert ratings.pairs == tuple((pair.left, pair.right) for pair in abc.pairs)


def test_released_ratings_lose_what_is_copied_and_say_so(released: HumanJudgements, abc: AbcStimuli) -> None:
    assert "groups without a match here: average people" in released.notes
    means = dict(zip(released.ratings.groups, released.ratings.means, strict=True))
    gone = [abc.pairs[p].name for p in np.flatnonzero(np.isnan(means["women"]))]
    assert gone == ["poor-wealthy", "untrustworthy-trustworthy", "egoistic-altruistic"]
    assert sum(int(np.isnan(row).sum()) for row in means.values()) == 3
    for pair in ("poor - wealthy", "untrustworthy - trustworthy", "egoistic - altruistic"):
        assert f"women: {pair}: dropped as a copy of another pair" in released.notes
    assert any("annotator127" in note and "Jewish people" in note for note in released.notes)


def test_the_pilot_is_four_groups_with_five_ratings_each(released: HumanJudgements) -> None:
    """Of all choices of five raters of a group, one has the means of the pilot."""
    groups = [name for name, is_so in zip(released.ratings.groups, released.pilot, strict=True) if is_so]
    assert set(groups) == set(PILOT)
    assert released.pilot_means.shape == (4, 16)
    for name, means in zip(groups, released.pilot_means, strict=True):
        ratings = released.ratings.ratings[:, released.ratings.groups.index(name)]
        assert drawn_from(means, ratings, 5) == 1


def test_only_groups_that_are_asked_about_stay_in_the_order_of_the_file(abc: AbcStimuli, tmp_path: Path) -> None:
    content = rated(["elderly people", "martians", "men", "Asian people"])
    path, groups = written(tmp_path, content), select_groups(abc, ["man", "Asian", "gay", "elderly"])
    found = match_judgements(abc, groups, path, (), seed=0)
    assert found.ratings.groups == ("elderly people", "men", "Asian people")
    assert found.group_indices.tolist() == [3, 0, 1]
    assert found.pilot.tolist() == [False, False, True]
    assert [note for note in found.notes if "match" in note] == ["groups without a match here: martians"]
    for name, means in zip(found.ratings.groups, found.ratings.means, strict=True):
        for pair, ours in zip(PAIRS, ("powerless-powerful", "cold-warm", "egoistic-altruistic"), strict=True):
            expected = np.mean([own[name][pair] for own in content.values()])
            assert means[abc.pairs.index(abc.pair(ours))] == pytest.approx(expected)
    fewer = match_judgements(abc, select_groups(abc, ["man"]), path, (), seed=0)
    assert fewer.ratings.groups == ("men",)
    assert fewer.pilot_means.shape == (0, 16)


@pytest.mark.parametrize(("annotators", "few"), [(3, 3), (5, 5), (9, 5)])
def test_the_pilot_has_as_many_as_there_are_up_to_five(
    abc: AbcStimuli, tmp_path: Path, annotators: int, few: int
) -> None:
    found = match_judgements(abc, abc.groups, written(tmp_path, rated(["Asian people", "men"], annotators)), (), seed=3)
    ratings = found.ratings.ratings[:, found.ratings.groups.index("Asian people")]
    assert drawn_from(found.pilot_means[0], ratings, few) >= 1
    assert np.array_equal(np.isnan(found.pilot_means[0]), np.isnan(found.ratings.means[0]))


def test_subgroups_are_annotators_of_one_kind(abc: AbcStimuli, tmp_path: Path) -> None:
    content = rated(["men", "Asian people"], demographics=True)
    wanted = [("Gender", "Woman"), ("Race", "White"), ("Gender", "Man")]
    found = match_judgements(abc, abc.groups, written(tmp_path, content), wanted, seed=0)
    assert [label for label, _ in found.subgroups] == ["Gender=Woman", "Race=White", "Gender=Man"]
    members = [range(3), range(1, 8), range(3, 8)]
    power = abc.pairs.index(abc.pair("powerless-powerful"))
    for (_, ratings), who in zip(found.subgroups, members, strict=True):
        assert ratings.annotators == tuple(f"annotator{i}" for i in who)
        assert ratings.groups == found.ratings.groups
        for group, means in zip(ratings.groups, ratings.means, strict=True):
            expected = np.mean([content[f"annotator{i}"][group]["powerless - powerful"] for i in who])
            assert means[power] == pytest.approx(expected)


def test_subgroups_that_are_not_there_are_refused(abc: AbcStimuli, tmp_path: Path, judgements: Path) -> None:
    path = written(tmp_path, rated(["men"], demographics=True))
    with pytest.raises(UnknownNameError, match=r"did you mean 'Woman' or 'Man'\?"):
        match_judgements(abc, abc.groups, path, [("Gender", "Womann")], seed=0)
    with pytest.raises(UnknownNameError, match=r"did you mean 'Gender'\?"):
        match_judgements(abc, abc.groups, path, [("Gendre", "Woman")], seed=0)
    for plain in ("data_full.json", "Aggregated_scores.json"):
        with pytest.raises(UsageError, match=r"annotators.*Gender"):
            match_judgements(abc, abc.groups, judgements / plain, [("Gender", "Woman")], seed=0)


def test_a_file_without_any_of_the_groups_is_refused(abc: AbcStimuli, tmp_path: Path) -> None:
    path = written(tmp_path, rated(["martians", "men"]))
    for groups in (select_groups(abc, ["elderly"]), select_groups(abc, ["gay"])):
        with pytest.raises(
            StimulusError, match=r"human\.json: has ratings of none of the chosen groups; it has martians, men\. A"
        ):
            match_judgements(abc, groups, path, (), seed=0)
