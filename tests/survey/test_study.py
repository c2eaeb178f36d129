"""Study files: what is refused and how, what is shipped, what changes the fingerprint."""

from __future__ import annotations

import copy
import json
import re
import tomllib
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from biassay.datasets.human_ratings import read_human_ratings
from biassay.errors import StimulusError, UnknownNameError
from biassay.survey.study import read_study, read_texts

OWN = """\
name = "own"
researcher = "Ada"
contact = "ada@example.org"
approval = "Board 7"
society = "Utopia"
texts = "english"
minimum_age = 16
minutes = 5
groups = ["cats", "dogs", "birds"]
pairs = [["cold", "warm"], ["poor", "wealthy"]]

[target]
annotations = 7
groups_per_participant = 2

[quality]
which_group = false
high_low = true
self_agreement = 0.75
tolerance = 5
spread = 3
seconds_per_group = 2.5

[session]
minutes = 30

[privacy]
link_demographics = true

[pool]
parameter = "PID"
required = true
signed = true
completion_url = "https://pool.example/?cc={code}"
completion_code = "C1"

[demographics.Gender]
choices = ["Woman", "Man"]

[demographics.Race]
several = true
choices = ["A", "B"]

[demographics.State]
most = 40
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "own.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(path: Path) -> str:
    with pytest.raises(StimulusError) as error:
        read_study(path)
    return str(error.value)


def toml_value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def toml(table: dict[str, Any], name: str = "") -> str:
    """A table and those within it."""
    lines = [f"[{name}]"] if name else []
    lines += [f"{key} = {toml_value(value)}" for key, value in table.items() if not isinstance(value, dict)]
    deeper = {key: value for key, value in table.items() if isinstance(value, dict)}
    return "\n".join([*lines, *(toml(value, f"{name}.{key}" if name else key) for key, value in deeper.items())])


# What stands in `OWN`, what is put there instead, the field that is named, and what the message says is allowed.
BAD = [
    ('name = "own"', "name = 3", "name", "expected a text that is not empty, got int 3"),
    ('researcher = "Ada"', "researcher = 3", "researcher", "expected a text, got int 3"),
    ("minimum_age = 16", "minimum_age = -1", "minimum_age", "expected a whole number from 0 to 120, got int -1"),
    ("minutes = 5", "minutes = 0", "minutes", "expected a whole number from 1 to 600, got int 0"),
    ('groups = ["cats", "dogs", "birds"]', "groups = []", "groups", "the list is empty"),
    ('groups = ["cats", "dogs", "birds"]', 'groups = "cats"', "groups", "expected a list of texts"),
    ('"dogs"', '"cats"', "groups", "'cats' appears twice"),
    ('[["cold", "warm"], ["poor", "wealthy"]]', "[]", "pairs", "expected a list of pairs [left, right]"),
    ('[["cold", "warm"], ["poor", "wealthy"]]', '["cold"]', "pairs[0]", "expected two opposite traits [left, right]"),
    ('["poor", "wealthy"]', '["poor"]', "pairs[1]", "expected two opposite traits [left, right]"),
    ('["poor", "wealthy"]', '["poor", "warm"]', "pairs", "the trait 'warm' appears twice"),
    (
        "annotations = 7",
        "annotations = 0",
        "target.annotations",
        "expected a whole number from 1 to 1000000, got int 0",
    ),
    (
        "per_participant = 2",
        "per_participant = 4",
        "target.groups_per_participant",
        "expected a whole number from 1 to 3",
    ),
    ("per_participant = 2", "per_participant = 1", "quality.high_low", "participants rate one group only"),
    ("which_group = false", "which_group = 0", "quality.which_group", "expected true or false, got int 0"),
    ("agreement = 0.75", "agreement = 80", "quality.self_agreement", "expected a number from 0 to 1, got int 80"),
    ("tolerance = 5", "tolerance = 101", "quality.tolerance", "expected a whole number from 0 to 100, got int 101"),
    ("minutes = 30", "minutes = 0", "session.minutes", "expected a number from 0.01 to 100000, got int 0"),
    ('"https://pool', '"javascript:pool', "pool.completion_url", "expected a URL that starts with https://"),
    ("{code}", "{code}&p={pid}", "pool.completion_url", "unknown slot {pid}; only {code} is filled in"),
    ('parameter = "PID"', 'parameter = "signature"', "pool.parameter", "choose another name"),
    ('parameter = "PID"', 'parameter = ""', "pool.required", "pool.parameter is missing"),
    ('["Woman", "Man"]', "[]", "demographics.Gender.choices", "the list is empty"),
    ('["Woman", "Man"]', '["Man", "Man"]', "demographics.Gender.choices", "'Man' appears twice"),
    ('choices = ["A", "B"]', "", "demographics.Race.several", "several answers need choices"),
    ('["A", "B"]', '["A, or B", "B"]', "demographics.Race.choices", "commas separate several answers"),
    ("most = 40", "most = 0", "demographics.State.most", "expected a whole number from 1 to 500, got int 0"),
    # Names that nobody reads.
    ("minutes = 5", "minutos = 5", "minutos", "did you mean 'minutes'?"),
    ("annotations = 7", "annotation = 7", "target.annotation", "did you mean 'annotations'?"),
    ('parameter = "PID"', 'zzz = "PID"', "pool.zzz", "allowed: completion_code, completion_url, parameter, required, "),
    ("most = 40", "least = 40", "demographics.State.least", "allowed: choices, most, several"),
]


@pytest.mark.parametrize(("there", "instead", "field", "allowed"), BAD, ids=[f"{b[2]}-{i}" for i, b in enumerate(BAD)])
def test_an_error_names_the_file_the_line_the_field_and_what_is_allowed(
    there: str, instead: str, field: str, allowed: str, tmp_path: Path
) -> None:
    assert OWN.count(there) == 1
    text = OWN.replace(there, instead)
    path = write(tmp_path, text)
    said = refusal(path)
    found = re.match(rf"{re.escape(str(path))}: line (\d+): field {re.escape(field)}: (.*)", said)
    assert found is not None, said
    assert allowed in found[2]
    name = field.partition("[")[0].rpartition(".")[2]
    assert name in text.splitlines()[int(found[1]) - 1]


@pytest.mark.parametrize("field", ["name", "society", "groups", "pairs"])
def test_what_cannot_be_left_out(field: str, tmp_path: Path) -> None:
    path = write(tmp_path, re.sub(rf"^{field} = .*\n", "", OWN, flags=re.MULTILINE))
    said = refusal(path)
    assert said.startswith(f"{path}: field {field}: expected ")
    assert said.endswith("got nothing")


def test_files_that_are_no_studies(tmp_path: Path) -> None:
    assert "not valid TOML" in refusal(write(tmp_path, "name = \n"))
    path = tmp_path / "latin.toml"
    path.write_bytes('name = "Zürich"'.encode("latin-1"))
    assert "not UTF-8 text (byte 9)" in refusal(path)
    assert "cannot be read: No such file" in refusal(tmp_path / "none.toml")
    folder = tmp_path / "folder.toml"
    folder.mkdir()
    assert "cannot be read: Is a directory" in refusal(folder)


def test_an_unknown_name_offers_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown study 'cao2023'; did you mean 'cao2022'\?"):
        read_study("cao2023")


def test_what_is_left_out_is_as_in_the_paper(tmp_path: Path) -> None:
    """Four groups a participant, 20 annotations a group, 80% agreement: Cao et al. 2022, section 4 and appendix D."""
    groups = ", ".join(f'"g{i}"' for i in range(5))
    study = read_study(write(tmp_path, f'name = "n"\nsociety = "s"\ngroups = [{groups}]\npairs = [["a", "b"]]\n'))
    assert (study.annotations, study.groups_per_participant, study.rules.self_agreement) == (20, 4, 0.8)
    assert (study.rules.which_group, study.rules.high_low) == (True, True)
    assert not study.link_demographics
    assert study.demographics == ()
    assert study.rules.spread == 1
    assert (study.researcher, study.contact, study.approval) == ("", "", "")


def test_the_shipped_study_asks_about_the_groups_and_pairs_of_the_released_judgements(reference: Path) -> None:
    released = json.loads((reference / "us_stereotypes" / "figures.json").read_text())
    study = read_study("cao2022")
    assert sorted([*study.groups, "average people"]) == sorted(released["groups"])
    assert sorted(study.pair_names) == sorted(released["pairs"])
    assert sorted(" - ".join(pair) for pair in study.pairs) == sorted(released["pairs"])


# The fingerprint


def leaves(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in leaves(inner, (*at, key))]
    if isinstance(value, list):
        return [leaf for i, inner in enumerate(value) for leaf in leaves(inner, (*at, i))]
    return [(at, value)]


def test_the_fingerprint_changes_with_every_value_of_the_file_but_those_of_the_pool(tmp_path: Path) -> None:
    """Each value is changed in turn, but the name of the texts and the pool, which have tests of their own."""
    parsed = tomllib.loads(OWN)
    digests = {read_study(write(tmp_path, OWN)).digest}
    changed = [(at, value) for at, value in leaves(parsed) if at[0] not in ("texts", "pool")]
    for at, value in changed:
        made = copy.deepcopy(parsed)
        inner = made
        for key in at[:-1]:
            inner = inner[key]
        other = (not value) if isinstance(value, bool) else f"{value}x" if isinstance(value, str) else value * 0.9
        inner[at[-1]] = int(other) if isinstance(value, int) and not isinstance(value, bool) else other
        if at == ("target", "groups_per_participant"):
            inner[at[-1]] = 3
        if at[:2] == ("demographics", "Race") and at[2] == "several":
            made["demographics"]["Race"].pop("several")
        digests.add(read_study(write(tmp_path, toml(made))).digest)
    assert len(digests) == len(changed) + 1


def test_the_fingerprint_changes_with_every_text_a_participant_reads() -> None:
    study = read_study("cao2022")
    digests = {study.digest}
    number = 0
    for section, texts in study.texts.sections.items():
        if section == "crowded":  # for those who cannot begin
            continue
        for name, text in texts.items():
            other = {**study.texts.sections, section: {**texts, name: f"{text} "}}
            digests.add(replace(study, texts=replace(study.texts, sections=other)).digest)
            number += 1
    digests.add(replace(study, texts=replace(study.texts, direction="rtl")).digest)
    digests.add(replace(study, texts=replace(study.texts, language="de")).digest)
    assert len(digests) == number + 3


# What the analysis could not read again


def test_a_group_may_not_be_called_as_facts_about_people_are_in_exports(tmp_path: Path) -> None:
    """`read_human` takes the object ``demographics`` beside an annotator's groups for facts."""
    said = refusal(write(tmp_path, OWN.replace('"birds"', '"demographics"')))
    assert "groups" in said
    assert "demographics" in said


@pytest.mark.parametrize("trait", ["a - b", "a – b", "Cold", "COLD ", "co\\u006Cd"])
def test_traits_that_an_export_could_not_tell_apart_are_refused(trait: str, tmp_path: Path) -> None:
    """`read_human` parts pairs at a dash between spaces and does not look at capitals."""
    assert "pairs" in refusal(write(tmp_path, OWN.replace('"wealthy"', f'"{trait}"')))


_TRAITS = st.lists(st.text(alphabet="abAB -–'\tß", min_size=1, max_size=5), min_size=2, max_size=6, unique=True).filter(
    lambda traits: len(traits) % 2 == 0
)


@given(traits=_TRAITS)
def test_pairs_that_are_accepted_are_read_back_from_the_released_shape(
    traits: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("pairs")
    pairs = [list(pair) for pair in zip(traits[::2], traits[1::2], strict=True)]
    text = OWN.replace('[["cold", "warm"], ["poor", "wealthy"]]', toml_value(pairs))
    try:
        study = read_study(write(folder, text))
    except StimulusError:
        return
    path = folder / "ratings.json"
    path.write_text(json.dumps({"annotator0": {"cats": {name: str(i) for i, name in enumerate(study.pair_names)}}}))
    found = read_human_ratings(path)
    assert found.ratings[0, 0].tolist() == list(range(len(study.pairs)))
    assert [tuple(" ".join(t.split()) for t in pair) for pair in found.pairs] == [
        tuple(" ".join(t.split()) for t in pair) for pair in study.pairs
    ]


SHIPPED = (resources.files("biassay.survey") / "data" / "english.toml").read_text("utf-8")


def translated(folder: Path, old: str = "", new: str = "") -> StimulusError | None:
    assert not old or old in SHIPPED
    (folder / "deutsch.toml").write_text(SHIPPED.replace(old, new, 1) if old else SHIPPED, encoding="utf-8")
    try:
        read_texts("deutsch.toml", folder)
    except StimulusError as error:
        return error
    return None


def test_a_translation_must_have_every_text(tmp_path: Path) -> None:
    parsed = tomllib.loads(SHIPPED)
    assert translated(tmp_path) is None
    for section, texts in parsed.items():
        for name in texts if isinstance(texts, dict) else ():
            kept = copy.deepcopy(parsed)
            del kept[section][name]
            (tmp_path / "part.toml").write_text(toml(kept), encoding="utf-8")
            with pytest.raises(StimulusError, match=rf"part.toml: \[{section}\] {name} is missing or empty"):
                read_texts("part.toml", tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('direction = "ltr"', 'direction = "up"', "direction must be 'ltr' or 'rtl', got 'up'"),
        ('direction = "ltr"', "", "direction is missing"),
        ('language = "en"', "language = 1", "language is missing"),
        ("[skip]\n", "[skipp]\n", "is missing or empty"),
        ('button = "Begin"', 'button = " "', "[consent] button is missing or empty"),
        ('button = "Begin"', "button = 3", "[consent] button is missing or empty"),
        ('button = "Begin"', 'button = "Begin {now}"', "[consent] button: unknown slot {now}"),
        ("{minutes} minutes", "{minuten} Minuten", "[consent] body: unknown slot {minuten}"),
        ('button = "Begin"', 'button = "Begin"\nbutton2 = "x"', "[consent] button2: unknown text"),
        ("[skip]\n", "[more]\na = 'b'\n[skip]\n", "[more] a: unknown text"),
        ("[skip]", "[skip", "not valid TOML"),
    ],
)
def test_what_is_wrong_with_a_translation_is_said(old: str, new: str, said: str, tmp_path: Path) -> None:
    error = translated(tmp_path, old, new)
    assert said in str(error)
    assert str(tmp_path / "deutsch.toml") in str(error)


@pytest.mark.parametrize(
    ("section", "old", "new"),
    [
        ("group", "How are {group} seen", "How are they seen"),
        ("done", "if you ask them to: {code}", "if you ask them to"),
    ],
)
def test_a_translation_may_not_lose_what_is_filled_in(section: str, old: str, new: str, tmp_path: Path) -> None:
    """The shipped file says of braces that they must stay."""
    assert f"[{section}]" in str(translated(tmp_path, old, new))


def test_paragraphs_are_parted_by_empty_lines() -> None:
    texts = read_texts("english")
    body = texts.paragraphs("consent", "body", society="Utopia", number=4, pairs=16, minutes=10)
    assert len(body) == 4
    assert body[0] == "You are invited to a study of how groups of people are seen in Utopia."
    assert not any("{" in paragraph or "\n" in paragraph for paragraph in body)
