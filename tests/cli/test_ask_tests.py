"""User tests for ``biassay ask``: dicts and files of both kinds, and errors for tests of vectors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.models import api_server
from tests.models.api_server import Endpoint
from tests.studies.word_association.answering import giving, model_of, stereotyped

import biassay
from biassay.datasets.word_associations import select_word_associations
from biassay.errors import StimulusError

from .conftest import Cli

pytestmark = pytest.mark.extras

no_key = api_server.no_key
GROUPS = {"default": ["julia", "anna"], "stigmatised": ["fatima", "aisha"]}
POLES = {"positive": ["joy", "love", "peace", "hope"], "negative": ["war", "pain", "hate", "evil"]}
BY_ROLE: dict[str, Any] = {"name": "own", "title": "Own", "topic": "race", **GROUPS, **POLES}
BY_LETTER: dict[str, Any] = {
    "name": "own",
    "title": "Own",
    "topic": "race",
    **dict(zip("XYAB", (*GROUPS.values(), *POLES.values()), strict=True)),
}
DATASETS = "[datasets.own]\ntopic = 'race'\n" + "".join(
    f"{role} = {{ label = '{role} ones', words = {words} }}\n" for role, words in {**GROUPS, **POLES}.items()
)
TESTS = (
    "[concepts]\n"
    + "".join(f"{role} = {{ words = {words} }}\n" for role, words in {**GROUPS, **POLES}.items())
    + "[tests.own]\ntopic = 'race'\nX = 'default'\nY = 'stigmatised'\nA = 'positive'\nB = 'negative'\n"
)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    for server in api_server.endpoint.__wrapped__():  # type: ignore[attr-defined]
        server.always = giving(stereotyped(*select_word_associations(BY_ROLE)))
        yield server


def asked(server: Endpoint, folder: Path, tests: Any) -> biassay.Run:
    return biassay.ask(model_of(server), tests, n_answers=4, wordings="bai2025", cache=folder / "cache")


@pytest.mark.parametrize("tests", [BY_ROLE, BY_LETTER, [BY_ROLE], {"own": {k: BY_ROLE[k] for k in (*GROUPS, *POLES)}}])
def test_a_test_may_be_a_dict(endpoint: Endpoint, tmp_path: Path, tests: Any) -> None:
    run = asked(endpoint, tmp_path, tests)
    (row,) = run.results
    assert (row.test, row.pairs, row.effect_size, row.complete) == ("own", 2, 1.0, 4)
    assert [row.word for row in run.tables["words"]] == [*POLES["positive"], *POLES["negative"]]
    assert (row.default, row.negative) == ("julia, anna", "war, pain ...")
    assert run.manifest.inputs.tests[0].pattern == "given as words"


@pytest.mark.parametrize("content", [DATASETS, TESTS])
def test_files_of_both_kinds_are_asked_checked_and_shown(
    cli: Cli, endpoint: Endpoint, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(content)
    (row,) = asked(endpoint, tmp_path, file).results
    assert (row.test, row.topic, row.effect_size) == ("own", "race", 1.0)
    code, stdout, _ = cli("tests", "validate", file)
    assert (code, "own: valid" in stdout) == (0, True)
    code, stdout, _ = cli("tests", "show", file, "--json")
    words = [tuple(one["words"]) for one in json.loads(stdout)["concepts"].values()]
    assert (code, words) == (0, [tuple(of) for of in (*GROUPS.values(), *POLES.values())])
    assert cli("tests", "list", file)[0] == 0


def test_a_test_in_sentences_is_refused_and_the_one_of_words_is_named(cli: Cli) -> None:
    code, _, stderr = cli("ask", "chat:x", "--tests", "sent-weat6")
    assert (code, "'weat6'" in stderr) == (2, True)
    with pytest.raises(StimulusError, match="templates"):
        select_word_associations(BY_LETTER | {"templates": "bleached"})
    found = select_word_associations("may2019")
    assert len(found) == 9  # those of words
    assert not [test for test in found if test.name.startswith("sent-")]


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "chat:a", "chat:b"),
        ("compare", "chat:a", "chat:b", "--tests", "wat-science"),
        ("compare", "glove", "use", "--tests", "wat-science"),
        ("tests", "power", "wat-career"),
    ],
)
def test_what_is_for_answers_is_sent_to_ask(cli: Cli, words: tuple[str, ...]) -> None:
    code, _, stderr = cli(*words)
    assert (code, "biassay ask" in stderr) == (2, True)


@pytest.mark.parametrize(
    ("change", "named"),
    [({"negative": "war"}, "negative"), ({"negative": ["joy", "war"]}, "joy"), ({"nagative": []}, "nagative")],
)
def test_an_error_in_a_dict_names_the_test_and_the_field(change: dict[str, Any], named: str) -> None:
    with pytest.raises(StimulusError, match=f"'own'.*{named}"):
        select_word_associations(BY_ROLE | change)
