"""Finding tests, concepts, groups, templates and traits, and names that are nearly right."""

from __future__ import annotations

import json
from pathlib import Path

from biassay.datasets.abc_model import list_paired_groups, load_abc, select_groups
from biassay.datasets.catalogue import load_catalogue, load_tests
from biassay.datasets.schema import ROLES
from biassay.prompts.sentences import make_texts

from .conftest import Cli


def test_tests_are_found_by_what_stands_in_them(cli: Cli) -> None:
    code, stdout, _ = cli("tests", "search", "john", "SCIENCE", "--json")
    found = {one["name"]: one["found"] for one in json.loads(stdout)}
    expected = {
        name
        for name, test in load_catalogue().tests.items()
        if test.alias_of is None
        and "John" in {word for role in ROLES for word in test.concept(role).words}
        and "science" in {word for role in ROLES for word in test.concept(role).words}
    }
    assert (code, set(found)) == (0, expected)
    assert found["weat8b"] == {
        "title": [load_catalogue().tests["weat8b"].title],
        "labels": ["Science"],
        "X": ["science"],
        "A": ["John"],
    }
    for where, word, name in (
        ("topic", "health", "weat9"),
        ("collection", "may2019", "sent-weat1"),
        ("name", "c1", "C1"),
    ):
        assert (
            where in {one["name"]: one["found"] for one in json.loads(cli("tests", "search", word, "--json")[1])}[name]
        )
    assert (cli("tests", "search", "zzzz")[0], json.loads(cli("tests", "search", "zzzz", "--json")[1])) == (0, [])
    assert cli("tests", "search")[0] == cli("tests", "search", " ")[0] == 2


def test_concepts_are_listed_with_their_words_and_tests(cli: Cli) -> None:
    listed = {one["concept"]: one for one in json.loads(cli("tests", "concepts", "--json")[1])}
    assert list(listed) == list(load_catalogue().concepts)
    for name, concept in load_catalogue().concepts.items():
        assert tuple(listed[name]["words"]) == concept.words
    (career,) = json.loads(cli("tests", "concepts", "career", "--json")[1])
    assert career == listed["career"]
    assert {"weat6", "sent-weat6", "EM-EF-career"} <= set(career["tests"])
    assert not {"weat7", "C6"} & set(career["tests"])
    assert [one["concept"] for one in json.loads(cli("tests", "concepts", "care*", "--json")[1])] == ["career"]
    code, _, stderr = cli("tests", "concepts", "carer")
    assert (code, "'career'" in stderr) == (2, True)
    assert len(cli("tests", "concepts")[1].splitlines()) > len(listed)


def test_sentences_with_forms_made_by_rule_are_shown(cli: Cli, tmp_path: Path) -> None:
    content = """
[concepts.care]
words = ["midwives", "wife", "doctor"]
[concepts.law]
words = ["hourly", "unicorn", "judges"]
[sets.needed]
templates = ["We need {a T}.", "I see {a T}.", "{Ts} are near.", "The {T} came."]
plurals = { %s }
articles = { %s }
[tests.jobs]
X = "care"
Y = "law"
A = "pleasant"
B = "unpleasant"
targets = "needed"
"""
    path = tmp_path / "jobs.toml"

    def shown(plurals: str = "", articles: str = "") -> list[str]:
        path.write_text(content % (plurals, articles))
        code, stdout, _ = cli("tests", "validate", path)
        assert code == 0
        return [line.strip() for line in stdout.splitlines() if line.startswith("  ") and ": " in line]

    assert shown() == [
        "midwives: We need a midwives. Midwiveses are near.",
        "wife: We need a wife. Wifes are near.",
        "doctor: We need a doctor. Doctors are near.",
        "hourly: We need a hourly. Hourlies are near.",
        "unicorn: We need an unicorn. Unicorns are near.",
        "judges: We need a judges. Judgeses are near.",
    ]
    plurals = 'midwives = "midwife", wives = "wife", judges = "judge"'
    articles = 'hour = "an", uni = "a", judge = "a", doctor = "a"'
    assert shown(plurals, articles) == [
        "midwives: We need a midwife.",
        "wife: We need a wife.",
        "doctor: Doctors are near.",
        "hourly: Hourlies are near.",
        "unicorn: Unicorns are near.",
    ]
    (test,) = load_tests(path)
    targets = (text for role in "XY" for text in make_texts(test).role(role))
    made = [text.text for text in targets if text.template in ("{Ts} are near.", "We need {a T}.")]
    assert made == [
        *("We need a midwife.", "Midwives are near.", "We need a wife.", "Wives are near."),
        *("We need a doctor.", "Doctors are near.", "We need an hourly.", "Hourlies are near."),
        *("We need a unicorn.", "Unicorns are near.", "We need a judge.", "Judges are near."),
    ]


def test_groups_templates_and_traits_are_listed(cli: Cli) -> None:
    def listed(command: str, what: str, *args: object) -> list[dict[str, object]]:
        code, stdout, _ = cli(command, "--list", what, *args, "--json")
        assert code == cli(command, "--list", what, *args)[0] == 0
        return list(json.loads(stdout))

    abc = load_abc()
    assert [one["group"] for one in listed("stereotypes", "groups")] == [group.name for group in abc.groups]
    assert [one["template"] for one in listed("stereotypes", "templates")] == [one.name for one in abc.templates]
    traits = listed("stereotypes", "traits")
    assert [(one["pair"], tuple(one["left"])) for one in traits] == [  # type: ignore[arg-type]
        (one.name, one.left_adjectives) for one in abc.pairs
    ]
    chosen = [one["group"] for one in listed("stereotypes", "groups", "--groups", "age,religion")]
    assert chosen == [group.name for group in select_groups(abc, ["age", "religion"])]
    every = listed("stereotypes", "groups", "--intersections")
    assert len(every) == len(abc.groups) + len(list_paired_groups(abc))
    some = listed("stereotypes", "groups", "--intersections", "--groups", "Asian,teenager")
    assert [one["group"] for one in some] == ["Asian", "teenager", "Asian teenager", "teenage Asian person"]
    grouping = load_catalogue().groupings["guo2021-groups"]
    for one, group in zip(listed("discover", "groups"), grouping.groups, strict=True):
        assert (one["group"], one["names"], one["race"]) == (group.name, list(group.names), group.belongs["race"])
    assert cli("stereotypes", "--list", "groups", "--groups", "no-such")[0] == 2
    assert cli("discover", "--list", "traits")[0] == 2


def test_a_test_in_the_place_of_a_model_is_named(cli: Cli, tmp_path: Path) -> None:
    for command, name in (("run", "weat6"), ("run", "gender"), ("robustness", "WEAT6"), ("run", "sent-*")):
        code, _, stderr = cli(command, "glove", name, "--out", tmp_path / "run")
        assert (code, f"--tests {name}" in stderr) == (2, True), stderr
    code, _, stderr = cli("run", "glove", "no-such", "--out", tmp_path / "run")
    assert (code, "--tests" in stderr) == (2, False)
    assert not (tmp_path / "run").exists()


def test_a_command_of_a_group_that_is_nearly_right_is_named(cli: Cli) -> None:
    for group, given, offered in (
        ("tests", "lst", "list"),
        ("survey", "exprt", "export"),
        ("tests", "zzzz", "validate"),
    ):
        code, _, stderr = cli(group, given)
        assert (code, offered in stderr) == (2, True), stderr


def test_without_a_name_everything_is_listed(cli: Cli) -> None:
    code, stdout, _ = cli("stereotypes", "--list", "--json")
    parts = {
        what: json.loads(cli("stereotypes", "--list", what, "--json")[1]) for what in ("groups", "templates", "traits")
    }
    assert (code, json.loads(stdout)) == (0, parts)
    assert cli("stereotypes", "--list")[1] == "".join(cli("stereotypes", "--list", what)[1] for what in parts)
    assert cli("discover", "--list")[1] == cli("discover", "--list", "groups")[1] != ""
