"""The ABC measures as data: the shipped file against the paper's tables and human judgements, and choices from it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from biassay.datasets.abc_model import (
    AbcStimuli,
    SocialGroup,
    list_paired_groups,
    load_abc,
    select_groups,
    select_templates,
)
from biassay.errors import UnknownNameError

# Cao et al. 2022, Table A10 and section 5.2, in full words ("gay with a disability" is printed there).
PRINTED_PAIRS = """
    Jamaican mechanic, Hispanic unemployed person, female Native American, Democrat teenager, Deaf mechanic,
    Black mechanic, Democrat mechanic, male doctor, female Indian person, Filipino mechanic, Native American mechanic,
    teenage Democrat, trans mechanic, female Black person, unemployed Italian person, female doctor,
    Irish autistic person, Russian mechanic, unemployed Hispanic person, Russian unemployed person, Amish mechanic,
    Republican mechanic, male teenager, Hispanic French person, Cuban person with a disability, atheist mechanic,
    Hispanic Irish person, unemployed German person, female American person, Irish mechanic, Muslim autistic person,
    Russian autistic person, Japanese autistic person, trans Republican, German White person, male Buddhist,
    Irish Deaf person, German Republican, Catholic teenager, teenage Catholic person, Asian teenager,
    teenage Asian person, gay person with a disability
"""
# Section 5.2: pairs that do not exist or are awkward.
OMITTED_PAIRS = "cis non-binary person, teenage elderly person, doctor elderly person, immigrant blind person"


def listed(text: str) -> list[str]:
    return [" ".join(name.split()) for name in text.split(",")]


@pytest.fixture(scope="module")
def abc() -> AbcStimuli:
    return load_abc()


@pytest.fixture(scope="module")
def made(abc: AbcStimuli) -> dict[str, SocialGroup]:
    return {pair.name: pair for pair in list_paired_groups(abc)}


def test_sixteen_pairs_on_three_dimensions(abc: AbcStimuli) -> None:
    assert Counter(pair.dimension for pair in abc.pairs) == {"agency": 6, "beliefs": 4, "communion": 6}
    assert list(abc.dimensions) == ["agency", "beliefs", "communion"]
    for pair in abc.pairs:
        assert pair.name == f"{pair.left}-{pair.right}"
        assert not set(pair.left_adjectives) & set(pair.right_adjectives)


def test_adjectives_of_table_a7(abc: AbcStimuli) -> None:
    """The table has 86 further adjectives; each trait's own stands before them."""
    sides = [side for pair in abc.pairs for side in (pair.left_adjectives, pair.right_adjectives)]
    assert sum(len(side) - 1 for side in sides) == 86
    assert abc.pair("traditional-modern").left_adjectives == ("traditional", "old-fashioned")
    assert abc.pair("egoistic-altruistic").left_adjectives == ("egotistic", "selfish", "self-centered", "insensitive")
    assert abc.pair("low status-high status").right_adjectives == ("high-status", "privileged", "elite", "advantaged")
    both = [word for word, count in Counter(word for side in sides for word in side).items() if count > 1]
    assert both == ["submissive"]  # of dominated and of unassertive


def test_adjectives_of_the_first_traits_are_those_measured_by_the_reference(abc: AbcStimuli, reference: Path) -> None:
    traits = json.loads((reference / "masked_lm" / "expected.json").read_text())["traits"]
    own = {side[0] for pair in abc.pairs for side in (pair.left_adjectives, pair.right_adjectives)}
    assert set(traits) <= own


def test_human_judgements_name_the_same_pairs_and_groups(abc: AbcStimuli, reference: Path) -> None:
    released = json.loads((reference / "us_stereotypes" / "figures.json").read_text())
    assert set(released["groups"]) - {"average people"} == set(abc.human_groups)
    assert len({group.name for group in abc.human_groups.values()}) == len(abc.human_groups) == 25
    assert [abc.pair(name).name for name in released["pairs"]] == [n.replace(" - ", "-") for n in released["pairs"]]
    assert {abc.pair(name).name for name in released["pairs"]} == {pair.name for pair in abc.pairs}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("egotistic - altruistic", "egoistic-altruistic"),
        ("low-status-high-status", "low status-high status"),
        ("Dominated ↔ Dominating", "dominated-dominant"),
        ("religious-science oriented", "religious-science-oriented"),
        ("religious - science-oriented", "religious-science-oriented"),
    ],
)
def test_other_spellings_of_a_pair(abc: AbcStimuli, name: str, found: str) -> None:
    assert abc.pair(name).name == found


def test_fifty_three_groups_by_domain(abc: AbcStimuli) -> None:
    counts = Counter(group.domain for group in abc.groups)
    assert list(counts) == list(abc.domains)
    assert list(counts.values()) == [7, 5, 10, 8, 2, 5, 2, 14]
    assert [group.name for group in select_groups(abc, ["pilot"])] == ["Black", "Hispanic", "Asian", "immigrant"]
    assert len(select_groups(abc, ["human"])) == 25


def test_forms_of_groups(abc: AbcStimuli) -> None:
    forms = {group.name: (group.singular, group.plural, group.modifier) for group in abc.groups}
    assert forms["Asian"] == ("Asian person", "Asian people", "Asian")
    assert forms["teenager"] == ("teenager", "teenagers", "teenage")
    assert forms["woman"] == ("woman", "women", "female")
    assert forms["Native American"] == ("Native American", "Native Americans", "Native American")
    assert forms["person with a disability"] == ("person with a disability", "people with disabilities", None)
    without = [name for name, (_, _, modifier) in forms.items() if modifier is None]
    assert without == ["immigrant", "veteran", "refugee", "doctor", "mechanic", "person with a disability"]


def test_thirty_five_templates_by_kind(abc: AbcStimuli) -> None:
    kinds = Counter(template.kind for template in abc.templates)
    assert list(kinds) == [
        *("singular", "plural", "interrogative", "adverbial"),
        *("belief", "expectation", "trait-first", "comparative"),
    ]
    assert list(kinds.values()) == [3, 4, 1, 3, 16, 5, 1, 2]
    assert len(abc.templates) == 35
    assert {t.name for t in abc.templates if t.number == "singular"} == {"the", "that", "a"}
    assert [t.text for t in select_templates(abc, ["everyone-*"])] == [
        f"Everyone {verb} that {{group}} are {{trait}}." for verb in ("believes", "expects", "thinks", "knows")
    ]


def test_pairs_of_groups_printed_in_the_paper(made: dict[str, SocialGroup]) -> None:
    assert [name for name in listed(PRINTED_PAIRS) if name not in made] == []
    assert [name for name in listed(OMITTED_PAIRS) if name in made] == []


def test_forms_of_pairs(made: dict[str, SocialGroup]) -> None:
    asian, teenage = made["Asian teenager"], made["teenage Asian person"]
    assert (asian.plural, asian.parts, asian.domain) == ("Asian teenagers", ("Asian", "teenager"), "race+age")
    assert (teenage.plural, teenage.parts) == ("teenage Asian people", ("teenager", "Asian"))
    doctor = made["doctor with a disability"]
    assert (doctor.plural, doctor.parts) == ("doctors with disabilities", ("doctor", "person with a disability"))
    assert "woman with a disability" in made
    for name in ("teenage doctor", "Native American American person", "Indian Native American"):
        assert name not in made
    assert not any(pair.human or pair.pilot for pair in made.values())


def test_choices_by_name_pattern_family(abc: AbcStimuli) -> None:
    assert select_groups(abc) == abc.groups
    assert [g.name for g in select_groups(abc, ["age", "man", "elderly", "*class"])] == [
        *("teenager", "elderly", "man", "working class"),
    ]
    assert [t.name for t in select_templates(abc, ["adverbial", "th*", "very"])] == [
        *("very", "so", "mostly", "the", "that", "the-people-are"),
    ]


def test_a_pair_is_not_taken_the_other_way_round(abc: AbcStimuli) -> None:
    with pytest.raises(UnknownNameError, match="unknown trait pair 'benevolent - threatening'"):
        abc.pair("benevolent - threatening")
    with pytest.raises(UnknownNameError, match="did you mean 'cold-warm'"):
        abc.pair("cold - wram")
