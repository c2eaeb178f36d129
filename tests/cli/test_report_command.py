"""``biassay report`` as a user types it."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.results.made_runs import consistent, with_rows
from tests.studies.associations.publish_runs import NASTY

from biassay.runs.run import Run
from biassay.studies.associations.results import PAPER_COLUMNS

from .conftest import Cli
from .shown_runs import MARK, TESTS, edit_first, line_of, names, read, renamed, stored, told

# ---- where everything goes


def test_the_page_of_a_run_is_in_its_folder(cli: Cli, tmp_path: Path) -> None:
    """From the start: the run is made by the command line too, and its page again by report."""
    out = tmp_path / "run"
    assert cli("run", "glove", "--tests", ",".join(TESTS), "--out", out)[0] == 0
    first = (out / "report.html").read_text()
    (out / "report.html").unlink()
    code, stdout, _ = cli("report", out)
    assert code == 0
    assert f"Report  {out / 'report.html'}" in stdout
    assert (out / "report.html").read_text() == first
    assert names(out) == {"manifest.json", "results.json", "results.tsv", "report.html", "arrays/0.npz"}
    for result in Run.load(out).results:
        d, interval = line_of(stdout, result.test)
        assert (d, interval) == (f"{result.effect_size:.2f}", f"[{result.ci_low:.2f}, {result.ci_high:.2f}]")


def test_the_page_of_several_runs_is_in_this_folder(
    cli: Cli, folder: Path, two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    code, stdout, _ = cli("report", folder, two)
    assert code == 0
    assert stdout.rstrip().endswith("Report  report.html")
    assert names(here) == {"report.html"}
    assert not (folder / "report.html").exists()
    text = read(here / "report.html")
    assert "glove" in text
    assert "vectors:mine.txt" in text


def test_a_file_that_is_no_report_is_not_overwritten(refuses: Callable[..., str], folder: Path, tmp_path: Path) -> None:
    thesis = tmp_path / "thesis.html"
    for content in ("<title>My thesis on biassay:</title>", "", "x" * 30_000 + MARK):
        thesis.write_text(content)
        assert f"{thesis} exists and is not a report of biassay" in refuses("report", folder, "--out", thesis)
    for own in ("manifest.json", "results.json"):
        assert "is not a report" in refuses("report", folder, "--out", folder / own)
    (folder / "report.html").write_text("mine")
    assert "is not a report" in refuses("report", folder)


def test_a_page_in_no_folder_or_that_is_one(refuses: Callable[..., str], folder: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere" / "page.html"
    assert f"the folder {nowhere.parent} does not exist" in refuses("report", folder, "--out", nowhere)
    assert f"{folder} is a folder" in refuses("report", folder, "--out", folder)
    under = folder / "manifest.json" / "page.html"
    assert "does not exist" in refuses("report", folder, "--out", under)


# ---- what is said


# ---- only some tests


@pytest.mark.parametrize(
    ("patterns", "kept"),
    [
        (("weat6",), ["weat6"]),
        (("weat8", "weat[67]"), list(TESTS)),
        (("*7", "weat7"), ["weat7"]),
        (("*",), list(TESTS)),
    ],
)
def test_only_tests_that_are_named_are_shown(
    patterns: tuple[str, ...], kept: list[str], cli: Cli, folder: Path
) -> None:
    code, stdout, _ = cli("report", folder, "--tests", ",".join(patterns), "--json")
    (one,) = told(stdout)
    assert (code, [row["test"] for row in one["results"]]) == (0, kept)
    assert [test["name"] for test in one["manifest"]["inputs"]["tests"]] == kept
    rows = [row for row in stored(folder) if row["test"] in kept]
    for field in ("p_adjusted", "family", "family_size"):
        assert [row[field] for row in one["results"]] == [row[field] for row in rows]  # those of the whole run
    assert [row["effect_size"] for row in one["results"]] == [row["effect_size"] for row in rows]
    text = read(folder / "report.html")
    assert all((test in text) is (test in kept) for test in TESTS)


def test_names_of_no_test_are_refused(refuses: Callable[..., str], folder: Path, two: Path, tmp_path: Path) -> None:
    said = refuses("report", folder, "--tests", "weat9,Weat6")
    assert "one: no test is named weat9 or Weat6" in said
    assert "no test is named" in refuses("report", folder, two, "--out", tmp_path / "p", "--tests", "")
    assert "requires an argument" in refuses("report", folder, "--tests")


# ---- what is not alike


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


def of_models(run: Run, models: list[str]) -> Run:
    """One run of many models, all with the same results."""
    parts = [renamed(run, model) for model in models]
    results = tuple(r for part in parts for r in part.results)
    return consistent(with_rows(run, results, models=tuple(m for part in parts for m in part.manifest.models)))


def test_hostile_and_long_names_are_safe_and_distinct_names_of_files(cli: Cli, glove: Run, tmp_path: Path) -> None:
    models = [
        *NASTY,
        "../../etc/passwd",
        "CON",
        "a/b",
        "a\\b",
        "A_B",
        "y" * 300 + "1",
        "y" * 300 + "2",
        ".",
        "",
        "\x00",
    ]
    run = of_models(glove, models)
    run = with_rows(run, tuple(r for r in run.results if r.test == "weat6"))
    folder, paper = run.save(tmp_path / "run"), tmp_path / "deep" / "paper"
    before = names(tmp_path)
    code, _, stderr = cli("report", folder, "--publish", paper, "--format", "svg")
    assert code == 0, stderr
    written = names(tmp_path) - before
    assert all(name.startswith("deep/paper/") or name == "run/report.html" for name in written)
    cards = [name for name in names(paper) if name.startswith("model-card-")]
    assert len({name.lower() for name in cards}) == len(cards) == len(models)
    for name in names(paper):
        assert re.fullmatch(r"((figures|\.eval_results)/)?[A-Za-z0-9][A-Za-z0-9._+-]{0,110}", name)
    with (paper / "results-as-published.tsv").open(newline="") as file:
        assert {len(row) for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)} == {9}


@pytest.mark.parametrize("model", ["\x1b[2Jgone", "a\x9bb", "\u202eabc"])
def test_a_name_cannot_steer_the_terminal(model: str, cli: Cli, glove: Run, mine: Run, tmp_path: Path) -> None:
    plain, hostile = glove.save(tmp_path / "one"), renamed(mine, model).save(tmp_path / "two")
    for command in (("report", hostile), ("compare", plain, hostile)):
        code, stdout, _ = cli(*command)
        assert code == 0
        assert not re.search(r"[\x1b\x9b\u202e]", stdout)


PAPERS = tuple(column.name for column in PAPER_COLUMNS)
TABLES = {"associations.tex", "associations-narrow.tex", "associations.md"}
OTHERS = {"results-as-published.tsv", "citations.md", "references.bib", "methods.tex", "methods.md"}


def test_everything_for_a_paper_is_published(cli: Cli, folder: Path, two: Path, tmp_path: Path) -> None:
    paper = tmp_path / "new" / "paper"
    code, stdout, _ = cli("report", folder, two, "--out", tmp_path / "p.html", "--publish", paper, "--format", "svg")
    assert code == 0
    found = {name for name in names(paper) if not name.startswith("figures/")}
    cards = {"model-card-glove.md", "model-card-mine.txt.md"}
    cards |= {".eval_results/biassay-glove.yaml", ".eval_results/biassay-mine.txt.yaml"}
    assert found - cards == TABLES | OTHERS
    assert len(found) == len(TABLES | OTHERS) + 4
    assert f"{len(names(paper))} files written to {paper}" in stdout
    assert "Caliskan" in (paper / "citations.md").read_text()
    assert "@article{caliskan2017," in (paper / "references.bib").read_text()
    assert "\\label{tab:associations}" in (paper / "associations.tex").read_text()  # both models in one
    card = (paper / "model-card-glove.md").read_text()
    assert card.startswith("---\n")
    assert "## Social bias (biassay)" in card


@pytest.mark.slow
def test_tests_over_texts_and_over_contexts_are_published_apart(
    cli: Cli, folder: Path, contexts: Run, tmp_path: Path
) -> None:
    runs = [folder, contexts.save(tmp_path / "contexts")]
    cli("report", *runs, "--out", tmp_path / "p.html", "--publish", tmp_path / "paper", "--format", "svg")
    found = names(tmp_path / "paper")
    expected = {
        "results-as-published-texts.tsv",
        "results-as-published-contexts.tsv",
        "associations-over-contexts.tex",
        "pooled-effects.tex",
    } | TABLES
    assert expected <= found
    assert len([name for name in found if name.startswith("model-card-")]) == 2


def test_a_published_folder_must_be_new_or_empty(
    cli: Cli, refuses: Callable[..., str], folder: Path, tmp_path: Path
) -> None:
    full, file = tmp_path / "full", tmp_path / "file"
    (full / "below").mkdir(parents=True)
    file.write_text("mine")
    for place in (full, file, folder):
        assert f"{place} is not an empty folder" in refuses("report", folder, "--publish", place)
    (tmp_path / "empty").mkdir()
    assert cli("report", folder, "--publish", tmp_path / "empty", "--format", "svg", "--quiet") == (0, "", "")
    assert "is not an empty folder" in refuses("report", folder, "--publish", tmp_path / "empty")
