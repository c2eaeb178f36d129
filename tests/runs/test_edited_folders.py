"""Run folders of every study with values that biassay never writes: errors name the file and the field."""

from __future__ import annotations

import copy
import functools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.golden.running import Place

import biassay
from biassay.errors import RunFolderError
from biassay.runs.compare import compare_runs, report_runs
from biassay.runs.folders import load_run_data

ROOT = Path(__file__).parents[2]
WHOLE = {name: ROOT / "docs" / "gallery" / name for name in ("ask", "benchmark", "encoders", "stereotypes")}
MEASURED = {"discover": "discover-vectors", "ceat": "ceat-random"}  # golden cases
MISSING = object()
Path_ = tuple[str | int, ...]


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the run folder of a study, made when it is first needed."""
    place = tmp_path_factory.mktemp("runs")
    golden = functools.cache(lambda: Place(tmp_path_factory.mktemp("golden")))

    @functools.cache
    def find(study: str) -> Path:
        if study in WHOLE:
            return WHOLE[study]
        if study == "robustness":
            biassay.robustness("glove", "weat6", n_subsets=2, out=place / study)
            return place / study
        folder = golden().outcome(MEASURED[study]).folder
        assert folder is not None
        return folder

    return find


def marks_of(study: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.extras] if study == "ceat" else []


@pytest.fixture
def edited(folder_of: Callable[[str], Path], tmp_path: Path) -> Callable[..., Path]:
    """Copies a folder and changes a value in it, or takes it out."""

    def edit(study: str, file: str, path: Path_, value: object) -> Path:
        folder = tmp_path / study
        shutil.copytree(folder_of(study), folder)
        content = json.loads((folder / file).read_text())
        del content["digest"]
        holder = content
        for key in path[:-1]:
            holder = holder[key]
        if value is MISSING:
            del holder[path[-1]]
        else:
            holder[path[-1]] = value(copy.deepcopy(holder[path[-1]])) if callable(value) else value
        (folder / file).write_text(json.dumps(content))
        return folder

    return edit


@pytest.mark.parametrize("study", [pytest.param(s, marks=marks_of(s)) for s in (*WHOLE, "robustness", *MEASURED)])
def test_folders_as_they_were_written_are_read(study: str, folder_of: Callable[[str], Path]) -> None:
    load_run_data(folder_of(study))


def in_first(table: str, *fields: str) -> Path_:
    return "tables", table, 0, *fields


UNCOUNTED = {"replies": None, "refused": 3}
RESULTS, MANIFEST = "results.json", "manifest.json"
REPORTED: list[tuple[str, str, Path_, object, str]] = [
    ("benchmark", RESULTS, in_first("results", "benchmark"), "bqb", "results[0].benchmark: unknown name 'bqb'"),
    ("benchmark", MANIFEST, ("settings", "benchmark"), "bqb", "results[0].benchmark: unknown name 'bbq'"),
    ("encoders", RESULTS, in_first("results", "oov_words"), {"Z": ["x"]}, "results[0].oov_words: unknown name 'Z'"),
    (
        "encoders",
        RESULTS,
        in_first("results", "oov_words"),
        {"X": []},
        "results[0].oov_words: nothing about the words Y",
    ),
    ("encoders", MANIFEST, ("settings", "seed"), 10**400, "settings: not a record of biassay: seed: expected a whole"),
    (
        "encoders",
        MANIFEST,
        ("settings", "random_sets"),
        10**12,
        "settings: random_sets must be at least 0 and at most 1,000,000",
    ),
]
"""The edits that were reported as tracebacks."""

FOUND: list[tuple[str, str, Path_, object, str]] = [
    ("encoders", MANIFEST, ("study",), "associationz", "study 'associationz'"),
    ("encoders", MANIFEST, ("settings", "alpha"), -1.0, "settings: alpha must be above 0"),
    (
        "encoders",
        MANIFEST,
        ("settings", "max_unknown"),
        "NaN",
        "settings: max_unknown must be at least 0 and at most 1",
    ),
    ("encoders", MANIFEST, ("models", 0, "measured"), "false", "models[0].measured: expected true or false"),
    ("encoders", MANIFEST, ("models", 0, "texts"), 1.5, "models[0].texts: expected a whole number"),
    ("encoders", MANIFEST, ("models", 0, "oov_words"), "abc", "models[0].oov_words: expected a list, got 'abc'"),
    ("encoders", MANIFEST, ("models", 0, "name"), "\ud800", "models[0].name: expected a text"),
    ("encoders", MANIFEST, ("inputs", "tests"), {}, "inputs: not a record of biassay: tests: expected a list"),
    ("encoders", RESULTS, ("measured",), [["glove"]], "measured: not a record of biassay: [0]: expected a text"),
    ("encoders", RESULTS, ("measured",), 3, "measured: not a record of biassay: expected a list, got 3"),
    ("encoders", RESULTS, in_first("results", "outcome", "p_value"), 1e308, "p_value: expected a number within"),
    ("encoders", RESULTS, in_first("results", "outcome", "p_value"), float("nan"), "p_value: expected a number within"),
    ("encoders", RESULTS, in_first("results", "test"), "weat99", "results[0].test: unknown name 'weat99'"),
    ("encoders", RESULTS, in_first("results", "model"), "x" * 10**5, "results[0].model: 'xxx"),
    ("encoders", RESULTS, in_first("results", "model"), MISSING, "tables.results: not a record of biassay: [0].model"),
    ("encoders", RESULTS, in_first("results", "num_words"), [1], "[0].num_words: expected names and values, got [1]"),
    ("encoders", RESULTS, in_first("results", "associations"), {}, "cosines: its shape is"),
    ("encoders", RESULTS, in_first("results", "cosine_difference"), 0.0, "cosines: the cosines give D = "),
    ("encoders", RESULTS, in_first("diagnostics", "test"), "weat99", "diagnostics[0].test: test 'weat99' is not in"),
    ("encoders", RESULTS, in_first("diagnostics", "tokens"), {"Z": 1.0}, "diagnostics[0].tokens: unknown name 'Z'"),
    (
        "ceat",
        MANIFEST,
        ("settings", "n_samples"),
        10**12,
        "settings: n_samples must be at least 3 and at most 1,000,000",
    ),
    (
        "ceat",
        RESULTS,
        in_first("results", "alternatives", "pooled", "effect_size"),
        3.0,
        "samples: the samples give the effect size",
    ),
    ("ceat", RESULTS, ("tables", "results", 0, "n_samples"), 9, "samples: its shape is"),
    ("benchmark", RESULTS, in_first("results", "by"), "chance", "[0].by: expected 'answer' or"),
    ("benchmark", RESULTS, ("tables", "results", 0), lambda row: row | UNCOUNTED, "results[0].replies: missing"),
    ("benchmark", MANIFEST, ("inputs", "available"), {"x": 1}, "inputs.available: unknown name 'x'"),
    ("ask", RESULTS, in_first("words", "test"), "wat-x", "words[0].test: test 'wat-x' is not in the table 'results'"),
    ("robustness", RESULTS, in_first("results", "n_significant"), None, "results[0].n_significant: missing"),
    ("robustness", RESULTS, in_first("specifications", "test"), "x", "specifications[0].test: test 'x' is not in"),
    ("stereotypes", MANIFEST, ("inputs", "pairs"), lambda pairs: pairs[1:], "values for"),
    ("stereotypes", MANIFEST, ("inputs", "templates"), {}, "measures[0].templates: unknown name"),
    ("stereotypes", RESULTS, in_first("measures", "measure"), "x", "measures[0].measure: unknown name 'x'"),
    ("stereotypes", RESULTS, in_first("measures", "chosen"), ["x"], "measures[0].chosen: templates that are not"),
    ("stereotypes", RESULTS, in_first("profiles", "measure"), "x", "profiles[0].measure: measure 'x' is not in"),
    ("stereotypes", RESULTS, in_first("profiles", "group"), "x", "the measure has no group 'x'"),
    ("stereotypes", RESULTS, in_first("profiles", "scores"), lambda scores: scores[::-1], "give another profile"),
    ("stereotypes", RESULTS, in_first("profiles", "scores"), [1.0], "profiles[0].scores: 1 values for"),
    ("stereotypes", RESULTS, ("tables", "models"), [], "tables.models: no row of the model"),
    ("discover", MANIFEST, ("inputs", "labels"), {}, "inputs.labels: no label of the group"),
    (
        "discover",
        RESULTS,
        in_first("results", "group"),
        "x",
        "results[0].group: group 'x' is not in the table 'groups'",
    ),
    ("discover", RESULTS, in_first("groups", "other_groups"), ["x"], "groups[0].other_groups: unknown name 'x'"),
    ("discover", RESULTS, in_first("models", "oov_names"), {"x": ["y"]}, "models[0].oov_names: unknown name 'x'"),
    ("discover", RESULTS, in_first("curves", "accuracy"), 0.123, "give other rates than results.json"),
    ("discover", RESULTS, in_first("curves", "chosen"), 77.0, "no threshold is the one in use"),
]
"""Kinds of edits that a search with random ones found."""


@pytest.mark.parametrize(
    ("study", "file", "path", "value", "said"),
    [pytest.param(*edit, marks=marks_of(edit[0])) for edit in (*REPORTED, *FOUND)],
    ids=[f"{study}-{'.'.join(map(str, path))}-{n}" for n, (study, _, path, _, _) in enumerate([*REPORTED, *FOUND])],
)
def test_an_edited_value_is_refused_by_file_and_field(
    study: str, file: str, path: Path_, value: object, said: str, edited: Callable[..., Path]
) -> None:
    folder = edited(study, file, path, value)
    uses: list[Callable[[], Any]] = [
        lambda: biassay.load(folder),
        lambda: report_runs([folder], out=folder.parent / "page.html"),
        lambda: compare_runs([str(folder)]),
    ]
    for use in uses:
        with pytest.raises(RunFolderError) as caught:
            use()
        assert str(caught.value).startswith(f"{folder}/")
        assert said in str(caught.value)
        assert len(str(caught.value)) < 1000
    assert not (folder.parent / "page.html").exists()


@pytest.mark.parametrize("models", [3, [3], {"x": 1}, [{}], None])
def test_a_new_run_leaves_a_folder_with_an_edited_manifest_alone(models: object, edited: Callable[..., Path]) -> None:
    folder = edited("encoders", MANIFEST, ("models",), models)
    with pytest.raises(RunFolderError, match="holds a finished run"):
        biassay.run("glove", "weat6", out=folder)


@pytest.mark.parametrize("end", ["Infinity", "-Infinity"])
def test_an_interval_without_an_end_is_drawn(end: str, edited: Callable[..., Path]) -> None:
    folder = edited("benchmark", RESULTS, in_first("results", "score_high"), end)
    assert report_runs([folder], out=folder.parent / "page.html").path is not None
