"""``biassay report`` of runs that are not as they should be: no run, unfinished, copied, damaged, without numbers."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.results.made_runs import altered, as_refused, with_rows

import biassay
from biassay.results.outcomes import Result
from biassay.runs.run import Run

from .conftest import Cli
from .shown_runs import edit, edit_first, line_of, names, read, stored, told

NUMBERS = ("sentences_effect_size", "statistic", "p_value", "fixed_words_p_value", "effect_size")


def begun(run: Run, done: int) -> Run:
    """Interrupted after some results."""
    results = run.results[:done]
    return with_rows(run, results, status="running", finished=None)


def test_what_is_no_run_is_named(refuses: Callable[..., str], folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert f"{tmp_path / 'nowhere'}: no such folder" in refuses("report", tmp_path / "nowhere")
    said = refuses("report", folder / "manifest.json")
    assert f"{folder / 'manifest.json'} is a file; name its run folder, {folder}" in said
    assert f"not a run folder (manifest.json is missing); runs inside: {folder}" in refuses("report", tmp_path)
    assert f"{tmp_path / 'empty'}: not a run folder (manifest.json is missing)" in refuses("report", tmp_path / "empty")
    assert "runs inside" not in refuses("report", tmp_path / "empty")
    assert "not a run folder" in refuses("report", folder, tmp_path / "empty")
    assert "Missing argument 'RUN ...'" in refuses("report")
    assert "No such option" in refuses("report", folder, "--baseline", "glove")
    assert "'gif' is not one of" in refuses("report", folder, "--format", "gif")


def test_a_folder_that_cannot_be_read_is_named(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: str, _flags: int) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr("biassay.io._open_nonblocking", denied)
    code, stdout, stderr = cli("report", folder)
    assert code == 2
    assert stdout == ""
    assert str(folder / "manifest.json") in stderr
    assert os.strerror(errno.EACCES) in stderr


def test_a_run_without_results_yet_is_refused(
    refuses: Callable[..., str], glove: Run, two: Path, tmp_path: Path
) -> None:
    empty = begun(glove, 0).save(tmp_path / "empty")
    for args in ((empty,), (empty, two, "--out", tmp_path / "p.html")):
        said = refuses("report", *args)
        assert "no results yet" in said
        assert "biassay resume" in said


def test_an_interrupted_run_is_shown_with_a_note(cli: Cli, glove: Run, tmp_path: Path) -> None:
    folder = begun(glove, 2).save(tmp_path / "begun")
    code, _, _ = cli("report", folder, "--publish", tmp_path / "paper", "--format", "svg")
    assert code == 0
    assert "2 of 3 results" in read(folder / "report.html")
    assert "not finished" in (tmp_path / "paper" / "model-card-glove.md").read_text()
    (one,) = told(cli("report", folder, "--json")[1])
    assert (one["manifest"]["status"], len(one["results"])) == ("running", 2)


def test_beside_another_run_the_note_names_the_one_that_is_not_finished(
    cli: Cli, glove: Run, two: Path, tmp_path: Path
) -> None:
    folder = begun(glove, 1).save(tmp_path / "begun")
    assert cli("report", folder, two, "--out", tmp_path / "p.html", "--quiet") == (0, "", "")
    text = read(tmp_path / "p.html")
    assert "1 of 3 results" in text
    assert text.count("is not finished") == 1


def test_the_same_run_twice_is_refused(
    refuses: Callable[..., str], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(folder)
    for again in (folder, "one", "one/", "./one/../one", "link"):
        assert "is named twice" in refuses("report", folder, again)


def test_a_copy_of_a_run_is_refused(refuses: Callable[..., str], folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    said = refuses("report", folder, tmp_path / "copy", "--out", tmp_path / "p.html", "--mixed")
    assert "one and copy are copies of one run; leave one of them out" in said


def test_the_table_for_people_may_be_missing(cli: Cli, contexts: Run, folder: Path, tmp_path: Path) -> None:
    over = contexts.save(tmp_path / "contexts")
    for place in (over, folder):
        (place / "results.tsv").unlink()
        assert cli("report", place, "--quiet", "--publish", tmp_path / f"of-{place.name}") == (0, "", "")
    assert "associations-over-contexts.tex" in names(tmp_path / "of-contexts")


@pytest.mark.slow
@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("field", [*NUMBERS, "sentences_log10_p_value", "fixed_words_log10_p_value"])
def test_numbers_that_are_none_in_the_results_are_shown_as_such(
    field: str, value: str, cli: Cli, folder: Path, tmp_path: Path
) -> None:
    edit_first(folder, **{field: value})
    code, stdout, stderr = cli("report", folder, "--json", "--publish", tmp_path / "paper", "--format", "svg")
    assert code == 0, stderr
    (one,) = told(stdout)
    assert one["results"][0][field] == value
    assert one["results"] == stored(folder)
    code, stdout, _ = cli("report", folder)
    assert code == 0
    effects = {"NaN": "NaN", "Infinity": "inf", "-Infinity": "-inf"}
    shown = {"effect_size": effects, "p_value": {"NaN": "NaN"}}
    if value in shown.get(field, {}):
        assert shown[field][value] in " ".join(line_of(stdout, "weat6"))
        assert shown[field][value] in read(folder / "report.html")


@pytest.mark.parametrize("value", ["NaN", "Infinity"])
@pytest.mark.parametrize("role", ["X", "Y", "A", "B"])
def test_a_word_without_a_number_is_no_obstacle(role: str, value: str, cli: Cli, folder: Path, tmp_path: Path) -> None:
    """A metric that compares whole sets gives no cosines, which the associations would have to agree with."""

    def change(content: Any) -> None:
        content["tables"]["results"][0]["cosine_difference"] = None
        associations = content["tables"]["results"][0]["associations"][role]
        associations[next(iter(associations))] = value

    edit(folder / "results.json", change)
    code, _, stderr = cli("report", folder, "--quiet", "--publish", tmp_path / "paper", "--format", "svg")
    assert (code, stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("field", ["new_contexts_low", "new_contexts_high"])
def test_numbers_over_contexts_that_are_none_are_no_obstacle(
    field: str, value: str, cli: Cli, contexts: Run, tmp_path: Path
) -> None:
    over = contexts.save(tmp_path / "contexts")
    edit(over / "results.json", lambda content: content["tables"]["results"][0].update({field: value}))
    code, stdout, stderr = cli("report", over, "--json", "--publish", tmp_path / "paper", "--format", "svg")
    assert code == 0, stderr
    assert told(stdout)[0]["results"] == stored(over)


def test_no_significant_result_is_said(cli: Cli, glove: Run, tmp_path: Path) -> None:
    def weak(r: Result) -> Result:
        words = {"fixed_words_p_value": 0.8, "fixed_words_log10_p_value": -0.1}
        return altered(r, sentences_p_value=0.9, sentences_log10_p_value=-0.05, p_value=0.7, **words)

    results = tuple(map(weak, glove.results))
    folder = with_rows(glove, results).save(tmp_path / "weak")
    code, stdout, _ = cli("report", folder, "--all", "--publish", tmp_path / "paper", "--format", "svg")
    assert code == 0
    assert not {one.evidence for one in biassay.load(folder).findings()} & {"significant", "uncorrected"}
    assert "0.900*" not in stdout
    assert "*" not in "".join(cell for r in glove.results for cell in line_of(stdout, r.test))


def test_nothing_measured_at_all_is_said(cli: Cli, glove: Run, tmp_path: Path) -> None:
    folder = with_rows(glove, map(as_refused, glove.results)).save(tmp_path / "refused")
    code, stdout, stderr = cli("report", folder, "--all", "--publish", tmp_path / "paper", "--format", "svg")
    assert code == 0, stderr
    assert "too many words" in stdout
    assert "too many words" in read(folder / "report.html")
    rows = (tmp_path / "paper" / "results-as-published.tsv").read_text().splitlines()[1:]
    assert [row.split("\t")[3:5] for row in rows] == [["", ""]] * 3


def test_damaged_samples_name_the_file(refuses: Callable[..., str], contexts: Run, tmp_path: Path) -> None:
    over = contexts.save(tmp_path / "contexts")
    (over / "arrays" / "0.npz").write_bytes(b"PK nothing")
    assert str(over / "arrays" / "0.npz") in refuses("report", over)
