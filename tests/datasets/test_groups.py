"""Groups of people as data: the shipped grouping against the paper's appendix, one's own files, and their faults."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest

from biassay.datasets.catalogue import load_catalogue, load_grouping, load_tests, select_grouping
from biassay.datasets.groups import Grouping
from biassay.errors import StimulusError, UnknownNameError

# Guo and Caliskan 2021, appendix: "random chance of correct classification" of the group's intersectional biases and of
# its emergent ones, in percent of the 98 words of the validation.
CHANCE = {
    "african-american-females": (14.3, 9.2),
    "african-american-males": (13.3, 3.1),
    "european-american-females": (14.3, 1.0),
    "european-american-males": (15.3, 3.1),
    "mexican-american-females": (13.3, 6.1),
    "mexican-american-males": (15.3, 4.1),
}
CHANCE_OF_INSECTS = 25.5
CHANCE_OF_GENDERS = {"females": 13.3, "males": 13.3}
CHANCE_OF_RACES = {"african-americans": 12.2, "european-americans": 15.3, "mexican-americans": 14.3}


@pytest.fixture
def shipped() -> Grouping:
    return select_grouping("guo2021-groups")


def in_percent(words: tuple[str, ...]) -> float:
    return round(100 * len(words) / 98, 1)


def test_the_validation_has_98_words_each_once(shipped: Grouping) -> None:
    words = shipped.validation_words
    assert len(words) == len(set(words)) == 98


def test_chances_are_those_of_the_appendix(shipped: Grouping) -> None:
    found = {g.name: (in_percent(g.biases), in_percent(g.emergent)) for g in shipped.groups}
    assert found == CHANCE
    assert list(found) == list(CHANCE)
    concepts = load_catalogue().concepts
    assert in_percent(concepts["insects"].words) == CHANCE_OF_INSECTS
    for name, chance in (CHANCE_OF_GENDERS | CHANCE_OF_RACES).items():
        assert in_percent(concepts[f"validation-{name}"].words) == chance, name


def test_words_that_the_appendix_names_stand_where_it_says(shipped: Grouping) -> None:
    females, males = shipped.group("african-american-females"), shipped.group("european-american-males")
    # "'assertive' is associated with emergent intersectional biases of African American females and also ..."
    assert "assertive" in males.emergent
    assert females.emergent == (
        *("aggressive", "assertive", "bigbutt", "confident", "darkskinned", "fried-chicken"),
        *("overweight", "promiscuous", "unfeminine"),
    )
    assert shipped.group("european-american-females").emergent == ("ditsy",)
    assert males.emergent == ("assertive", "educated", "successful")


def test_every_emergent_word_is_one_of_its_group(shipped: Grouping) -> None:
    for group in shipped.groups:
        assert set(group.emergent) < set(group.biases)


def test_constituents_of_every_shipped_group(shipped: Grouping) -> None:
    races = {"african": "African Americans", "european": "European Americans", "mexican": "Mexican Americans"}
    for race, gender in itertools.product(races, ("females", "males")):
        target = shipped.group(f"{race}-american-{gender}")
        expected = []
        for other in races:
            if other != race:
                own, others = ([f"{r}-american-{g}" for g in ("females", "males")] for r in (race, other))
                expected.append((f"race: {races[race]} / {races[other]}", own, others))
        opposite = "males" if gender == "females" else "females"
        own, others = ([f"{r}-american-{g}" for r in races] for g in (gender, opposite))
        expected.append((f"gender: {gender} / {opposite}", own, others))
        found = [(pair.label, list(pair.first), list(pair.second)) for pair in shipped.constituents(target)]
        assert found == expected
        assert [g.name for g in shipped.comparison_groups(target)] == [name for name in CHANCE if name != target.name]


def write(path: Path, cells: list[dict[str, str]], more: str = "") -> Path:
    """A file of groups with two names each, by their values: ``ab`` has the names ab0 and ab1."""
    parts = [more]
    for cell in cells:
        name = "".join(cell.values())
        belongs = ", ".join(f'{category} = "{value}"' for category, value in cell.items())
        parts.append(f"[groups.{name}]\nbelongs = {{ {belongs} }}\nnames = {json.dumps([f'{name}0', f'{name}1'])}\n")
    path.write_text("\n".join(parts))
    return path


def cells_of(**values: str) -> list[dict[str, str]]:
    return [dict(zip(values, cell, strict=True)) for cell in itertools.product(*values.values())]


@pytest.mark.parametrize(
    "values", [{"race": "ab", "gender": "cd", "age": "ef"}, {"race": "abcd", "gender": "efg"}], ids=["2x2x2", "4x3"]
)
def test_a_grouping_of_another_shape(values: dict[str, str], tmp_path: Path) -> None:
    cells = cells_of(**values)
    grouping = load_grouping(write(tmp_path / "own.toml", cells))
    names = ["".join(cell.values()) for cell in cells]
    assert [g.name for g in grouping.groups] == names
    for cell, target in zip(cells, grouping.groups, strict=True):
        assert target.belongs == cell
        assert target.names == (f"{target.name}0", f"{target.name}1")
        expected = [
            (f"{category}: {value} / {other}", [n for n in names if value in n], [n for n in names if other in n])
            for category, value in cell.items()
            for other in values[category]
            if other != value
        ]
        found = [(pair.label, list(pair.first), list(pair.second)) for pair in grouping.constituents(target)]
        assert found == expected
        assert [g.name for g in grouping.comparison_groups(target)] == [n for n in names if n != target.name]
    assert len(expected) == {3: 3, 2: 5}[len(values)]
    assert (grouping.validation_words, grouping.against) == ((), None)


OWN = """
[source]
name = "mine"
citation = "Groups of my own"
licence = "CC0"
version = "3"

[concepts.weeds]
words = ["nettle", "thistle"]

[grouping]
title = "Colour by size"
against = "blue-large"
others = ["weeds", "insects"]

[groups.red-large]
belongs = { colour = "red", size = "large" }
names = ["Ann", "Amy"]
label = "Large red ones"
biases = ["bold", "brave"]
emergent = ["brave"]

[groups.red-small]
belongs = { colour = "red", size = "small" }
names = ["Bea", "Bes"]

[groups.blue-large]
belongs = { colour = "blue", size = "large" }
names = ["Cora", "Cleo"]
biases = "weeds"

[groups.blue-small]
belongs = { size = "small", colour = "blue" }
names = ["Dora", "Dina"]
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.toml"
    path.write_text(OWN)
    return path


def test_ones_own_file_with_words_in_place_and_concepts(own: Path) -> None:
    grouping = select_grouping(str(own))
    assert (grouping.name, grouping.title, grouping.against) == ("mine", "Colour by size", "blue-large")
    assert grouping.source.version == "3"
    first, second, third, _ = grouping.groups
    assert (first.label, first.biases, first.emergent) == ("Large red ones", ("bold", "brave"), ("brave",))
    assert (second.label, second.biases) == ("red-small", ())
    assert third.biases == ("nettle", "thistle")
    insects = load_catalogue().concepts["insects"].words
    assert grouping.validation_words == ("bold", "brave", "nettle", "thistle", *insects)


def test_without_names_a_group_is_a_concept_of_the_catalogue(tmp_path: Path) -> None:
    groups = [(race, gender) for race in ("african", "mexican") for gender in ("females", "males")]
    lines = [f'[groups.{r}-american-{g}]\nbelongs = {{ race = "{r}", gender = "{g}" }}\n' for r, g in groups]
    path = tmp_path / "four.toml"
    path.write_text("\n".join(lines))
    found = load_grouping(path)
    assert found.title == "four"
    assert found.groups[0].names == load_catalogue().concepts["african-american-females"].words
    assert found.groups[0].label == load_catalogue().concepts["african-american-females"].label


def test_the_digest_tells_what_decides_the_findings(own: Path, tmp_path: Path) -> None:
    def digest(old: str, new: str) -> str:
        path = tmp_path / "changed.toml"
        assert old in OWN
        path.write_text(OWN.replace(old, new))
        return load_grouping(path).digest

    before = load_grouping(own).digest
    assert digest('label = "Large red ones"', 'label = "Others"') == before
    for change in (
        ('"Amy"', '"Ada"'),
        ('"bold", ', ""),
        ('emergent = ["brave"]', ""),
        ('"weeds", "ins', '"ins'),
        ('names = ["Bea", "Bes"]', 'names = ["Bea", "Bes", "Bess"]\nclusters = [["Bes", "Bess"]]'),
    ):
        assert digest(*change) != before, change


def test_an_unknown_group_or_grouping_gets_the_nearest(own: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown group 'red-larg'; did you mean 'red-large'"):
        load_grouping(own).group("red-larg")
    with pytest.raises(UnknownNameError, match="unknown grouping 'guo2021-group'; did you mean 'guo2021-groups'"):
        select_grouping("guo2021-group")
    with pytest.raises(UnknownNameError, match=r"a file ends in \.toml"):
        select_grouping("groups.json")


FAULTS = [
    ('"Bea", "Bes"', '"Bea", "Ann"', r"field groups: the name 'Ann' appears in 'red-large' and in 'red-small'"),
    ('"Bea", "Bes"', '"Bea", "aMY"', r"field groups: the name 'aMY' appears in 'red-large' and in 'red-small'"),
    ('["Bea", "Bes"]', '["Bea"]', r"field groups\.red-small: a group needs at least two names, got only 'Bea'"),
    ('["Bea", "Bes"]', "7", r"red-small\.names: expected the name of a concept or a list of words, got int 7"),
    ('["Bea", "Bes"]', '"weed"', r"groups\.red-small: unknown concept 'weed'; did you mean 'weeds'"),
    (
        '"Bes"]',
        '"Bes"]\nclusters = [["Bes"]]',
        r"clusters\[0\]: a cluster needs at least two words, got only 'Bes'",
    ),
    ('"Bes"]', '"Bes"]\nclusters = [["Bea", "Bes"]]', r"red-small\.clusters: all names are in one cluster"),
    ('"Bes"]', '"Bes"]\nclusters = "Bea"', r"red-small\.clusters: expected a list of lists of names, got str"),
    (
        '["Bea", "Bes"]',
        '["Bea", "Bes", "B"]\nclusters = [["Bea", "Bes"], ["B", "Bea"]]',
        r"red-small\.clusters\[1\]: 'Bea' is already in another cluster",
    ),
    ('names = ["Bea", "Bes"]', "", r"groups\.red-small: the group has no names; write names = \[\"\.\.\.\""),
    ('"Bea", "Bes"', '"Bea", "bEA"', r"field groups: the name 'bEA' appears twice in 'red-small'"),
    ('emergent = ["brave"]', 'emergent = ["loud"]', r"red-large: the emergent word 'loud' is not among the b"),
    ('emergent = ["brave"]', 'emergent = "weeds"', r"red-large: the emergent word 'nettle' is not among th"),
    ('biases = ["bold", "brave"]', "", r"groups\.red-large: the emergent word 'brave' is not among the biases"),
    ('biases = "weeds"', 'biases = "wedes"', r"groups\.blue-large: unknown concept 'wedes'; did you .*'weeds'"),
    ('"weeds", "insects"', '"weeds", "insect"', r"field groups: unknown concept 'insect'; did you mean 'insects'"),
    ('against = "blue-large"', 'against = "blue-larg"', r"against: unknown group 'blue-larg'; .*'blue-large'"),
    ('title = "Colour by size"', 'titel = "Colour"', r"grouping\.titel: unknown field; did you mean 'title'"),
    ('biases = ["bold", "brave"]', 'bias = ["bold"]', r"red-large\.bias: unknown field; did you mean 'biases'"),
    ('colour = "red", size = "small"', 'colour = "red", size = "large"', r"'red-large' and 'red-small' are both r"),
    ('size = "small", colour = "blue"', 'size = "tiny", colour = "blue"', r"no group is red and tiny; every "),
    (
        'size = "small", colour = "blue"',
        'size = "small", hue = "blue"',
        r"blue-small: has the categories size, hue, the f",
    ),
    (
        'size = "small", colour = "blue"',
        'colour = "blue"',
        r"field groups\.blue-small: has the categories colour, the first group has",
    ),
    ("belongs = { size", "# { size", r"field groups\.blue-small\.belongs: .* at least one category"),
    ('{ size = "small", colour = "blue" }', '"small"', r"blue-small\.belongs: expected a table of fields, got str"),
]


@pytest.mark.parametrize(("old", "new", "message"), FAULTS)
def test_faults_of_own_groups_are_named(old: str, new: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "faulty.toml"
    assert old in OWN
    path.write_text(OWN.replace(old, new))
    with pytest.raises(StimulusError, match=message) as caught:
        load_grouping(path)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[grouping]\ntitle = "Nothing"\n', r"line 1: field grouping: the file has no groups; expected at least two"),
        ('grouping = "all"\n', r"line 1: field grouping: expected a table of fields, got str 'all'"),
        ('groups = ["a", "b"]\n', r"line 1: field groups: expected a table of fields, got list"),
        ('[groups]\nred = "Ann"\n', r"line 2: field groups\.red: expected a table of fields, got str 'Ann'"),
        ('[group.red]\nnames = ["Ann", "Amy"]\n', r"field group: unknown field; did you mean 'groups'"),
    ],
)
def test_a_file_that_is_no_grouping(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(text)
    with pytest.raises(StimulusError, match=message) as caught:
        load_grouping(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("names", ['["Ann", "Amy"]', '["Bea", "Bes"]', '["Cora", "Cleo"]', '["Dora", "Dina"]'])
@pytest.mark.parametrize("header", ["[groups.{}]", "[ groups . '{}' ]  # a group", '[groups."{}"]'])
def test_the_line_of_a_faulty_group_is_told(names: str, header: str, tmp_path: Path) -> None:
    path = tmp_path / "faulty.toml"
    text = re.sub(r"^\[groups\.(.*)\]$", lambda match: header.format(match[1]), OWN, flags=re.MULTILINE)
    path.write_text(text.replace(names, "[]"))
    line = 1 + text.splitlines().index(f"names = {names}")
    with pytest.raises(StimulusError, match=rf"faulty\.toml: line {line}: field groups\."):
        load_grouping(path)


def test_a_grouping_has_no_tests_and_a_test_file_no_groups(own: Path, tmp_path: Path) -> None:
    with pytest.raises(StimulusError, match="defines groups but no tests"):
        load_tests(own)
    path = tmp_path / "concepts.toml"
    path.write_text('[concepts.weeds]\nwords = ["nettle", "thistle"]\n')
    with pytest.raises(StimulusError, match=r"concepts\.toml: .*no groups; expected at least two tables \[groups.NAME"):
        load_grouping(path)


def test_one_category_has_no_emergent_words(tmp_path: Path) -> None:
    path = write(tmp_path / "own.toml", cells_of(race="abc"))
    grouping = load_grouping(path)
    assert [group.belongs for group in grouping.groups] == [{"race": value} for value in "abc"]
    path.write_text(path.read_text() + 'biases = ["bold"]\nemergent = ["bold"]\n')
    with pytest.raises(StimulusError, match=r"\.emergent: the group has one category only, 'race'"):
        load_grouping(path)


def test_a_category_of_one_value_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "own.toml", cells_of(race="ab", gender="c"))
    with pytest.raises(StimulusError, match=r"own\.toml: field groups: all groups have the gender 'c'; expected at le"):
        load_grouping(path)
