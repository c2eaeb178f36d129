"""What a search shows, as records; and the settings, which the function, the options and the folder share."""

from __future__ import annotations

import dataclasses
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

import biassay
from biassay.cli.discover import command
from biassay.runs.api import discover
from biassay.studies.discovery.results import count_needed_at_floor, find_needed_permutations
from biassay.studies.discovery.settings import DiscoverySettings
from biassay.studies.settings import get_setting_specs

from .planted_words import discovered, planted, with_counts


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planted(tmp_path_factory.mktemp("findings"))


@pytest.fixture(scope="module")
def found(place: Path) -> biassay.Run:
    return discovered(place, ["red-women", "blue-men"])


def test_a_finding_counts_the_words_of_a_group_and_names_the_first(found: biassay.Run) -> None:
    for finding, row in zip(found.findings(), found.tables["groups"], strict=True):
        words = [word.word for word in found.results if word.group == row.group and word.associated]
        assert len(words) == row.n_associated >= 5
        assert (finding.model, finding.item, finding.title) == ("v.txt", row.group, row.title)
        assert (finding.topic, finding.about, finding.evidence) == ("colour, gender", "people", "significant")
        assert (finding.effect, finding.unit, finding.words) == (len(words), "words", tuple(words[:5]))


@pytest.mark.parametrize(
    ("given", "evidence"), [({"threshold": 1.99}, "inconclusive"), ({"n_permutations": 9}, "not_testable")]
)
def test_where_no_word_is_found(given: dict[str, Any], evidence: str, place: Path) -> None:
    (finding,) = discovered(place, **given).findings()
    assert (finding.evidence, finding.effect, finding.words) == (evidence, 0.0, ())


@pytest.mark.parametrize(
    ("n_permutations", "associated", "together", "wanted"),
    [
        (9_999, 0, 40, 79_835),  # 19,959 words at 0.05: 39 at 1 / 10,000 are not found, 40 are
        (9_999, 80, 40, 79_835),
        (9_999, 400, 40, None),
        (79_834, 0, 6, 79_835),
        (79_835, 0, 5, None),
        (99_999, 0, 4, None),
    ],
)
def test_so_few_permutations_that_words_hang_on_the_seed(
    found: biassay.Run, n_permutations: int, associated: int, together: int, wanted: int | None
) -> None:
    settings = DiscoverySettings(n_permutations=n_permutations, alpha=0.05)
    row = with_counts(found.tables["groups"][0], words=19_959, associated=associated)
    assert (count_needed_at_floor(row, settings), find_needed_permutations(row, settings)) == (together, wanted)


def test_json_holds_findings_tables_and_the_note(found: biassay.Run) -> None:
    content = json.loads(found.to_json())
    assert {"manifest", "results", "groups", "validated", "curves", "models", "decisions", "findings"} == set(content)
    assert content["manifest"]["inputs"]["note"] == found.manifest.inputs.note
    assert len(content["findings"]) == 2


def test_function_options_and_settings_are_the_same() -> None:
    fields = {field.name: field.default for field in dataclasses.fields(DiscoverySettings)}
    parameters = {name: one.default for name, one in inspect.signature(discover).parameters.items()}
    how = {"models", "out", "cache", "engine", "listener"}
    assert {name: parameters[name] for name in parameters if name not in how} == {
        name: value for name, value in fields.items() if name != "own_words"
    }
    options = {option.name: option for option in command.params}
    for name, rule in get_setting_specs(DiscoverySettings).items():
        assert (name in options) is not rule.hidden
        if not rule.hidden and not rule.many:
            assert options[name].default == fields[name]
