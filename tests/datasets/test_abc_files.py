"""Traits, groups and templates in a user's file: additions, replacements and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from biassay.datasets.abc_model import list_paired_groups, load_abc, select_groups
from biassay.errors import StimulusError

OWN = """
[source]
name = "mine"
citation = "Of my own"
licence = "CC0"
version = "2"

[domains]
city = "City"

[dimensions]
wit = "Wit"

[pairs.dull-witty]
dimension = "wit"
left = "dull"
right = "witty"
right_adjectives = ["witty", "quick"]
left_aliases = ["boring"]

[groups.student]
domain = "city"
singular = "university student"
plural = "university students"
modifier = "university"
article = "a"
human = ["students"]

[groups.Asian]
domain = "race"
singular = "Asian"
plural = "Asians"

[templates.own]
text = "I met {a group} who was {trait}."
number = "singular"
kind = "met"

[[exclude]]
groups = ["student"]
with = ["nationality"]
reason = "too many"
in_order = true
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.toml"
    path.write_text(OWN)
    return path


def test_ones_own_file_adds_and_takes_the_place_of(own: Path) -> None:
    abc, mine = load_abc(), load_abc([own])
    assert (mine.name, mine.source.name, mine.sources[1].version) == ("cao2022+mine", "cao2022", "2")
    assert [len(mine.pairs), len(mine.groups), len(mine.templates)] == [17, 54, 36]
    assert mine.pair("boring - witty").left_adjectives == ("dull",)
    assert [g.name for g in mine.groups[:-1]] == [g.name for g in abc.groups]
    (asian,) = select_groups(mine, ["Asian"])
    assert (asian.plural, asian.human, asian.modifier) == ("Asians", (), None)
    assert mine.human_groups["students"].article == "a"
    made = {pair.name: pair for pair in list_paired_groups(mine)}
    assert "university Irish person" not in made
    assert {"Irish university student", "university mechanic"} <= set(made)
    assert made["university mechanic"].article == "a"


def test_the_digest_tells_what_is_asked(own: Path) -> None:
    def digest(old: str, new: str) -> str:
        assert old in OWN
        own.write_text(OWN.replace(old, new))
        return load_abc([own]).digest

    before = load_abc([own]).digest
    assert before != load_abc().digest
    for same in (('"Of my own"', '"Of others"'), ('"too many"', '"too few"'), ('wit = "Wit"', 'wit = "Esprit"')):
        assert digest(*same) == before, same
    for other in (('"quick"', '"fast"'), ('"Asians"', '"Asian ones"'), ("in_order = true", ""), ("I met", "We met")):
        assert digest(*other) != before, other


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('left = "dull"\n', ""), r"field pairs\.dull-witty: the field 'left' is missing"),
        (('left = "dull"', 'left = "witless"'), r"dull-witty: the sides are 'witless' and 'witty'; name the pair 'wit"),
        (('dimension = "wit"', 'dimension = "wits"'), r"dull-witty\.dimension: unknown dimension 'wits'; did .*'wit'"),
        (('["witty", "quick"]', '["witty", "witty"]'), r"right_adjectives: the word 'witty' appears twice"),
        (('["witty", "quick"]', '["witty", "dull"]'), r"pairs\.dull-witty: 'dull' is on both sides"),
        (
            ('aliases = ["boring"]', 'aliases = ["Cold"]\nright_aliases = ["warm"]'),
            r"'cold-warm' belongs to both 'cold-warm' and",
        ),
        (
            ('aliases = ["boring"]', 'aliases = ["low-status"]'),
            r"the trait 'low-status' belongs to both 'low status' and 'd",
        ),
        (
            ('domain = "city"', 'domain = "town"'),
            r"field groups\.student\.domain: unknown domain 'town' \(domains: gen",
        ),
        (('domain = "city"\n', ""), r"field groups\.student: the field 'domain' is missing"),
        (
            ('plural = "university students"\n', ""),
            r"groups\.student: the field 'plural' is missing; templates need both",
        ),
        (('article = "a"', 'article = "the"'), r"student\.article: expected one of a, an, got str 'the'"),
        (('modifier = "university"', 'modifier = "uni "'), r"student\.modifier: 'uni ' begins or ends with a blank"),
        (('modifier = "university"', 'modifyer = "uni"'), r"student\.modifyer: unknown field; did you mean 'modifier'"),
        (('modifier = "university"', 'suffix_plural = "at"'), r"groups\.student: the field 'suffix' is missing"),
        (('["students"]', '["women"]'), r"student: the human name 'women' belongs to both 'woman' and 'student'"),
        (
            ("[groups.student]", "[groups.ASIAN]"),
            r"the name 'Asian' belongs to both .* and|the name 'ASIAN' belongs to both",
        ),
        (("[groups.student]", "[groups.pilot]"), r"groups\.pilot: 'pilot' selects several groups"),
        (("[groups.student]", "[groups.religion]"), r"groups\.religion: 'religion' selects several groups"),
        (('"university student"', '"doctor"'), r"the singular 'doctor' belongs to both 'doctor' and 'student'"),
        (
            ("{a group}", "a group"),
            r"templates\.own\.text: .* has no slots for the group; expected one of {group}, {Gr",
        ),
        (("{trait}", "good"), r"templates\.own\.text: .* has no slots for the trait; expected one of {trait}"),
        (("{trait}", "{trait} and {trait}"), r"templates\.own\.text: .* has 2 slots for the trait"),
        (("{a group}", "{an group}"), r"own\.text: .* has an unknown slot {an group}; slots: {group}, {Group}, {a gr"),
        (("{trait}", "{trait}}"), r"own\.text: .* has an unmatched brace"),
        (('number = "singular"', 'number = "plural"'), r"own\.text: .* has an article, but its number is plural"),
        (
            ('number = "singular"', 'number = "dual"'),
            r"own\.number: unknown number 'dual'; .*\(numbers: singular, plural",
        ),
        (('kind = "met"', 'kind = "very"'), r"templates\.very: 'very' is a kind of template"),
        (('"I met {a group} who was {trait}."', '"The {group} is {trait}."'), r"the text .* both 'the' and 'own'"),
        (
            ('groups = ["student"]', 'groups = ["studnet"]'),
            r"exclude\[0\]\.groups\[0\]: unknown group or domain 'studnet'; d",
        ),
        (
            ('with = ["nationality"]', 'with = ["nations"]'),
            r"\.with\[0\]: unknown group or domain 'nations'",
        ),
        (("[[exclude]]", "[exclude]"), r"field exclude: expected a list of tables \(\[\[exclude\]\]\), got dict"),
        (('version = "2"\n', ""), r"field source: the field 'version' is missing"),
        (("[domains]", "[domain]"), r"field domain: unknown field; did you mean 'domains'"),
        (("[groups.Asian]", "[groups.student]"), r"not valid TOML: "),
    ],
)
def test_faults_of_own_files_are_named(change: tuple[str, str], message: str, own: Path) -> None:
    assert change[0] in OWN
    own.write_text(OWN.replace(*change, 1))
    with pytest.raises(StimulusError, match=message) as caught:
        load_abc([own])
    assert str(caught.value).startswith(f"{own}: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "the file defines nothing; tables: dimensions, domains"), (b"\xff", "not UTF-8"), (None, "cannot be read")],
)
def test_a_file_that_cannot_be_used(content: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StimulusError, match=message):
        load_abc([path])
