"""What a search shows, as records; and the settings, which the function, the options and the folder share."""

from __future__ import annotations

import dataclasses
import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from tests.golden.record import kept

import biassay
from biassay.cli.discover import command
from biassay.results.findings import Finding
from biassay.runs.discovery import discover
from biassay.studies.discovery.findings import at_the_floor, permutations_wanted
from biassay.studies.discovery.settings import Settings
from biassay.studies.settings import rules_of

from .planted_words import discovered, planted


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planted(tmp_path_factory.mktemp("findings"))


@pytest.fixture(scope="module")
def found(place: Path) -> biassay.Run:
    return discovered(place, ["red-women", "blue-men"])


def test_a_finding_counts_the_words_of_a_group_and_names_the_first(found: biassay.Run) -> None:
    for finding, row in zip(found.findings(), found.tables["groups"], strict=True):
        words = [word.word for word in found.results if word.group == row.group and word.associated]
        assert len(words) == row.num_associated >= 5
        assert (finding.model, finding.item, finding.title) == ("v.txt", row.group, row.label)
        assert (finding.topic, finding.about, finding.standing) == ("colour, gender", "people", "significant")
        assert (finding.effect, finding.unit, finding.evidence) == (len(words), "words", tuple(words[:5]))


@pytest.mark.parametrize(
    ("given", "standing"), [({"threshold": 1.99}, "inconclusive"), ({"n_permutations": 9}, "not_testable")]
)
def test_where_no_word_is_found(given: dict[str, Any], standing: str, place: Path) -> None:
    (finding,) = discovered(place, **given).findings()
    assert (finding.standing, finding.effect, finding.evidence) == (standing, 0.0, ())


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
    settings = Settings(n_permutations=n_permutations, alpha=0.05)
    row = dataclasses.replace(found.tables["groups"][0], num_words=19_959, num_associated=associated)
    assert (at_the_floor(row, settings), permutations_wanted(row, settings)) == (together, wanted)


def test_json_holds_findings_tables_and_the_note(found: biassay.Run) -> None:
    content = json.loads(found.to_json())
    assert {"manifest", "results", "groups", "validated", "curves", "models", "findings"} == set(content)
    assert content["manifest"]["inputs"]["note"] == found.manifest.inputs.note
    assert len(content["findings"]) == 2


def test_function_options_and_settings_are_the_same() -> None:
    fields = {field.name: field.default for field in dataclasses.fields(Settings)}
    parameters = {name: one.default for name, one in inspect.signature(discover).parameters.items()}
    how = {"models", "out", "cache", "engine", "listener"}
    assert {name: parameters[name] for name in parameters if name not in how} == {
        name: value for name, value in fields.items() if name != "own_words"
    }
    options = {option.name: option for option in command.params}
    for name, rule in rules_of(Settings).items():
        assert (name in options) is not rule.hidden
        if not rule.hidden and not rule.many:
            assert options[name].default == fields[name]


def old_folder(folder: Path) -> Path:
    """A folder from before EIBD and emergent were two things."""
    folder.mkdir()
    for name in ("manifest.json", "results.json"):
        content = json.loads((kept("discover-vectors") / name).read_text())
        del content["digest"]
        for group in content.get("results", ()):
            group |= {"num_excess": group["num_emergent"], "num_emergent": group.pop("num_eibd")}
            for word in group["words"]:
                word["emergent"] = word.pop("eibd")
        (folder / name).write_text(json.dumps(content))
    return folder


def test_in_an_older_folder_emergent_was_what_eibd_detects(tmp_path: Path) -> None:
    present, older = biassay.load(kept("discover-vectors")), biassay.load(old_folder(tmp_path / "old"))
    assert older == present
    assert sum(word.emergent for word in older.results) < sum(word.eibd for word in older.results)
    assert older.manifest.settings.n_permutations == 199
    assert biassay.load(older.save(tmp_path / "new")) == older
    assert all(isinstance(finding, Finding) for finding in older.findings())
    assert older.report(tmp_path / "page.html").is_file()


@pytest.mark.parametrize("fault", ["curve", "scores", "models", "permutations"])
def test_an_older_folder_that_lacks_something_is_named(fault: str, tmp_path: Path) -> None:
    folder = old_folder(tmp_path / "old")
    manifest, results = (json.loads((folder / f"{name}.json").read_text()) for name in ("manifest", "results"))
    if fault in manifest:
        manifest[fault] = manifest[fault] * 2 if fault == "models" else "many"
    elif fault == "curve":
        results["results"][0]["curve"] = 3
    else:
        results["results"][0]["words"][0]["scores"] = [1.0]
    for name, content in (("manifest", manifest), ("results", results)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    with pytest.raises(biassay.BiassayError, match="old"):
        biassay.load(folder)
