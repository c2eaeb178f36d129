"""``biassay outcomes``: the list of outcomes and the description of one."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from biassay.studies.audit import outcomes
from biassay.studies.audit.outcomes import outcome_names

Cli = Callable[..., tuple[int, str, str]]


def test_the_list_has_every_outcome(cli: Cli) -> None:
    code, stdout, stderr = cli("outcomes")
    assert (code, stderr) == (0, "")
    assert [
        line.split()[0] for line in stdout.splitlines() if line.split()[:1] != [] and line.split()[0] in outcome_names()
    ] == [*outcome_names()]
    assert "Share of words that praise effort rather than" in stdout
    listed = [one["outcome"] for one in json.loads(cli("outcomes", "--json")[1])]
    assert [name for name in listed if ":" not in name] == [*outcome_names()]


def test_an_outcome_is_shown_with_source_weakness_and_words(cli: Cli) -> None:
    code, stdout, _ = cli("outcomes", "hedging")
    assert code == 0
    assert stdout.startswith("hedging: hedges\nmeasures   Share of words and phrases")
    flat = " ".join(stdout.split())
    assert "source Danescu-Niculescu-Mizil" in flat
    assert "weakness Made for requests" in flat
    assert "words 99: almost, apparent, " in flat
    described = json.loads(cli("outcomes", "hedging", "--json")[1])
    assert (described["n_words"], len(described["words"]), described["languages"]) == (99, 99, ["en"])


def test_missing_libraries_come_with_the_command_that_installs_them(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "find_spec", lambda _: None)
    stdout = cli("outcomes")[1]
    assert "Install the missing packages: pip install" in stdout
    assert "[audit]" in stdout
    assert "[audit]" in cli("outcomes", "sentiment")[1]
    assert "[audit]" in json.loads(cli("outcomes", "sentiment", "--json")[1])["install"]


def test_an_unknown_outcome_is_suggested(cli: Cli) -> None:
    code, _, stderr = cli("outcomes", "lenght")
    assert code == 2
    assert "did you mean 'length'?" in stderr
