"""``biassay report`` of invalid runs: no run, unfinished, copied, damaged, without numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.results.made_runs import with_rows

from biassay.runs.run import Run

from .conftest import Cli
from .shown_runs import edit_first, line_of, read, stored, told

NUMBERS = (
    *("sentences_effect_size", "statistic", "p_value", "fixed_words_p_value", "effect_size"),
    *("sentences_log10_p_value", "fixed_words_log10_p_value"),
)


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
    assert "missing argument 'RUN ...'" in refuses("report")
    assert "No such option" in refuses("report", folder, "--baseline", "glove")
    assert "'gif' is not one of" in refuses("report", folder, "--format", "gif")


def test_a_run_without_results_yet_is_refused(
    refuses: Callable[..., str], glove: Run, two: Path, tmp_path: Path
) -> None:
    empty = begun(glove, 0).save(tmp_path / "empty")
    for args in ((empty,), (empty, two, "--out", tmp_path / "p.html")):
        said = refuses("report", *args)
        assert "no results yet" in said
        assert "biassay resume" in said


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


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_none_in_the_results_are_shown_as_such(
    value: str, cli: Cli, folder: Path, tmp_path: Path
) -> None:
    edit_first(folder, **dict.fromkeys(NUMBERS, value))
    code, stdout, stderr = cli("report", folder, "--json", "--publish", tmp_path / "paper", "--format", "svg")
    assert code == 0, stderr
    (one,) = told(stdout)
    assert {name: one["results"][0][name] for name in NUMBERS} == dict.fromkeys(NUMBERS, value)
    assert one["results"] == stored(folder)
    code, stdout, _ = cli("report", folder, "--all")
    assert code == 0
    shown = {"NaN": "NaN", "Infinity": "inf", "-Infinity": "-inf"}[value]
    assert shown in " ".join(line_of(stdout, "weat6"))
    assert shown in read(folder / "report.html")
