"""Human judgements: files in the released form, spellings, reversed scales, copies, subgroups, and faults of a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import kendalltau

from biassay.datasets.human_ratings import HumanRatings, read_human_ratings
from biassay.errors import StimulusError, UnknownNameError
from biassay.stats.alignment import kendall_alignment, noise_ceiling, precision_at

from ..judgements import exact_means

X = float("nan")
POWER, STATUS, THREAT, EGO = (
    ("powerless", "powerful"),
    ("low status", "high status"),
    ("threatening", "benevolent"),
    ("egoistic", "altruistic"),
)
PAIRS = (POWER, STATUS, THREAT, EGO)
ALIASES = {"egotistic": "egoistic", "low-status": "low status", "high-status": "high status"}


@pytest.fixture(scope="module")
def full(judgements: Path) -> HumanRatings:
    return read_human_ratings(judgements / "data_full.json")


@pytest.fixture(scope="module")
def aggregate(judgements: Path, full: HumanRatings) -> HumanRatings:
    return read_human_ratings(judgements / "Aggregated_scores.json", pairs=full.pairs).select_groups(full.groups)


def written(folder: Path, content: Any) -> Path:
    path = folder / "human.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_ratings_in_the_released_form_are_read_whole(full: HumanRatings, reference: Path) -> None:
    released = json.loads((reference / "us_stereotypes" / "figures.json").read_text())
    assert sorted(full.groups) == sorted(released["groups"])
    assert sorted(full.spellings) == sorted(released["pairs"])
    assert (len(full.annotators), len(full.groups), len(full.pairs)) == (released["annotators"], 26, 16)
    assert np.count_nonzero(~np.isnan(full.ratings)) == released["ratings"] == 8337
    assert full.counts is not None
    assert full.counts.sum() == 8337
    assert sum(full.raters) == 522
    raters = dict(zip(full.groups, full.raters, strict=True))
    assert {name: n for name, n in raters.items() if n != 20} == released["raters_of_other_numbers"]


def test_means_and_counts_are_those_of_the_ratings_given(full: HumanRatings, judgements: Path) -> None:
    """Exact fractions, cell by cell; people rated a group on all pairs, but one person on one pair only."""
    expected = exact_means(json.loads((judgements / "data_full.json").read_text()))
    means = {
        group: {name: full.means[g, p] for p, name in enumerate(full.spellings)} for g, group in enumerate(full.groups)
    }
    assert means == {
        group: {pair: pytest.approx(float(mean), abs=1e-12) for pair, mean in own.items()}
        for group, own in expected.items()
    }
    assert full.counts is not None
    jewish = dict(zip(full.spellings, full.counts[full.groups.index("Jewish people")].tolist(), strict=True))
    assert jewish == {**dict.fromkeys(full.spellings, 20), "powerless - powerful": 21}


def test_means_in_the_released_form_are_those_of_the_ratings_but_for_two_cells(
    full: HumanRatings, aggregate: HumanRatings
) -> None:
    assert aggregate.annotators == ()
    assert aggregate.counts is None
    assert aggregate.ratings.shape == (0, 26, 16)
    assert aggregate.notes == ()
    same = np.abs(full.means - aggregate.means) < 1e-8
    assert np.count_nonzero(same) == 414
    wrong = {(full.groups[g], full.pairs[p]) for g, p in np.argwhere(~same)}
    assert wrong == {("women", ("poor", "wealthy")), ("women", ("untrustworthy", "trustworthy"))}


def test_copies_as_in_the_released_ratings_are_named_and_can_be_left_out(
    full: HumanRatings, aggregate: HumanRatings
) -> None:
    copy = full.copies[0]
    assert len(full.copies) == 1
    assert (copy.group, copy.annotators) == ("women", 20)
    assert set(copy.pairs) == {("poor", "wealthy"), ("untrustworthy", "trustworthy"), ("egoistic", "altruistic")}
    assert any("women" in note and "poor - wealthy" in note and "copies" in note for note in full.notes)
    without = full.drop_copies()
    assert np.count_nonzero(np.isnan(without.means)) == 3  # which is the original, the ratings do not tell
    assert without.copies == ()
    assert np.nanmax(np.abs(without.means - aggregate.means)) < 1e-8
    assert sum("dropped" in note for note in without.notes) == 3
    assert aggregate.drop_copies() is aggregate


def tau_of_halves(ratings: np.ndarray, seed: int) -> float:
    """Between the means of one half of each group's annotators and those of the other."""
    rng = np.random.default_rng(seed)
    halves: list[list[np.ndarray]] = [[], []]
    for g in range(ratings.shape[1]):
        raters = rng.permutation(np.flatnonzero(~np.isnan(ratings[:, g]).all(axis=1)))
        for half, chosen in zip(halves, (raters[::2], raters[1::2]), strict=True):
            half.append(np.nanmean(ratings[chosen, g], axis=0))
    return float(kendalltau(*(np.concatenate(half) for half in halves)).statistic)


def test_people_agree_with_themselves_and_with_halves_of_themselves(full: HumanRatings) -> None:
    assert kendall_alignment(full.means, full.means).tau == 1.0
    assert precision_at(full.means, full.means).overall < 1.0  # of some groups all means are on one side
    ceiling = noise_ceiling(full.ratings, n=100, rng=0)
    assert ceiling.tau == pytest.approx(np.mean([tau_of_halves(full.ratings, rng) for rng in range(20)]), abs=0.02)
    assert ceiling.group_tau.shape == (26,)
    assert not np.isnan(ceiling.group_tau).any()


@pytest.mark.parametrize(
    ("spelt", "pair", "value"),
    [
        ("powerless - powerful", POWER, 20.0),
        ("powerless-powerful", POWER, 20.0),
        ("Powerless \u2013 Powerful", POWER, 20.0),
        ("low-status-high-status", STATUS, 20.0),
        ("low status-high status", STATUS, 20.0),
        ("low-status - high-status", STATUS, 20.0),
        ("egotistic-altruistic", EGO, 20.0),
        ("benevolent - threatening", THREAT, 80.0),
        ("altruistic-egotistic", EGO, 80.0),
    ],
)
def test_spellings_and_reversed_pairs_are_understood(
    tmp_path: Path, spelt: str, pair: tuple[str, str], value: float
) -> None:
    found = read_human_ratings(written(tmp_path, {"men": {spelt: "20"}}), pairs=PAIRS, aliases=ALIASES)
    at = found.pairs.index(pair)
    assert found.pairs == PAIRS
    assert found.means[0, at] == value
    assert found.spellings[at] == spelt
    assert [found.spellings[p] for p in range(4) if p != at] == ["", "", ""]
    assert any("reversed (100 - x), 1 values" in note for note in found.notes) == (value == 80.0)
    assert any(note.startswith("men: 3 of 4 pairs") for note in found.notes)


SURVEY = {
    "p1": {"demographics": {"Gender": "Woman", "Race": "White, Hispanic"}, "men": {"cold - warm": 10}},
    "p2": {"demographics": {"Gender": "Man", "Race": "White"}, "men": {"cold - warm": 30}, "women": {"cold - warm": 9}},
    "p3": {"men": {"cold - warm": 50}},
}


def test_subgroups_of_annotators(tmp_path: Path) -> None:
    found = read_human_ratings(written(tmp_path, SURVEY))
    assert found.groups == ("men", "women")
    assert found.means.tolist() == [[30.0], [9.0]]
    white, hispanic = found.subgroup("Race", "White"), found.subgroup("Race", "Hispanic")
    assert (white.annotators, hispanic.annotators) == (("p1", "p2"), ("p1",))
    assert white.means[0, 0] == 20.0
    np.testing.assert_array_equal(hispanic.means, [[10.0], [X]])
    assert "only annotators with Race = Hispanic: 1 of 3" in hispanic.notes
    assert any(note.startswith("women: 1 of 1 pairs") for note in hispanic.notes)
    assert hispanic.counts is not None
    assert hispanic.counts.tolist() == [[1], [0]]
    assert white.subgroup("Gender", "Man").annotators == ("p2",)
    with pytest.raises(UnknownNameError, match="did you mean 'Gender'"):
        found.subgroup("gender", "Man")
    with pytest.raises(UnknownNameError, match=r"unknown value of 'Gender' 'Men'.*Man, Woman"):
        found.subgroup("Gender", "Men")


PAIR = "cold - warm"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "line 1: not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("{}", "human.json: the object is empty; expected ratings"),
        ("[1]", "expected an object"),
        ({"men": {}}, "group 'men': the object is empty"),
        ({"men": 3}, "group 'men': expected an object"),
        ({"men": {PAIR: None}}, "the file has no rating"),
        ({"p1": {"demographics": {"Age": "3"}}}, "no annotator rated a group"),
        ({"p1": {"men": {PAIR: "x"}}}, "annotator 'p1': group 'men': pair 'cold - warm': expected a number"),
        ({"p1": {"men": {PAIR: ""}}}, "got str ''"),
        ({"p1": {"men": {PAIR: "1_0"}}}, "got str '1_0'"),
        ({"p1": {"men": {PAIR: True}}}, "got bool True"),
        ({"p1": {"men": {PAIR: "100.5"}}}, "expected a number from 0 to 100, got float 100.5"),
        ({"p1": {"men": {PAIR: -1}}}, "got int -1"),
        ('{"p1": {"men": {"cold - warm": NaN}}}', "got float nan"),
        ({"p1": {"men": {PAIR: "nan"}}}, "got str 'nan'"),
        ({"men": {PAIR: 10**400}}, "expected a number from 0 to 100"),
        ({"p1": {"men": {PAIR: {"a": 1}}}}, "nested too deep"),
        ({"p1": {"men": {PAIR: 1}, "women": 5}}, "annotator 'p1': group 'women': expected an object"),
        ({"p1": {"men": {PAIR: 1}}, "p2": {}}, "annotator 'p2': the object is empty"),
        ({"p1": {"men": {PAIR: 1}, "demographics": {"Age": 3}}}, "demographics: field 'Age': expected a text"),
        ({"men": {"warm": 1}}, "pair 'warm': not a pair of traits"),
        ({"men": {"warm - warm": 1}}, "not a pair of traits"),
        ({"men": {"religious-science-oriented": 1}}, "religious-science-oriented"),
        ({"men": {PAIR: 1, "warm-cold": 1}}, "pair 'warm-cold': the pair is repeated; it appears as 'cold - warm'"),
        ('{"men": {"cold - warm": 1, "cold - warm": 2}}', "the field 'cold - warm' appears twice"),
        ('{"men": {"cold - warm": 1}, "men": {"cold - warm": 1}}', "human.json: the field 'men' appears twice"),
    ],
)
def test_faults_are_named_with_their_place(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(StimulusError) as caught:
        read_human_ratings(written(tmp_path, content))
    assert message in str(caught.value)
    assert str(tmp_path / "human.json") in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StimulusError, match=r"none.json: cannot be read"):
        read_human_ratings(tmp_path / "none.json")
    (tmp_path / "latin.json").write_bytes(b'{"caf\xe9": 1}')
    with pytest.raises(StimulusError, match="not UTF-8 text"):
        read_human_ratings(tmp_path / "latin.json")


def test_a_pair_that_is_not_on_the_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StimulusError, match=r"group 'men': pair 'powerles - powerful': unknown pair; did you mean"):
        read_human_ratings(written(tmp_path, {"men": {"powerles - powerful": 1}}), pairs=PAIRS)
    with pytest.raises(StimulusError, match="known: powerless - powerful, low status"):
        read_human_ratings(written(tmp_path, {"men": {"cold - warm": 1}}), pairs=PAIRS)
