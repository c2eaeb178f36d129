"""``biassay report`` as a user types it, and as a careless one does."""

from __future__ import annotations

import csv
import dataclasses
import html
import json
import math
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.report.publish_runs import NASTY, measured_in_contexts

import biassay
from biassay.results.discovery import Discovery
from biassay.results.records import PAPER_COLUMNS, Result
from biassay.results.run import Run, with_corrections
from biassay.results.samples import Samples

from .conftest import Cli

TESTS = ("weat6", "weat7", "weat8")
MARK = "<title>biassay:"
TABLES = {f"associations-by-{by}.{ending}" for by in ("word", "text") for ending in ("tex", "md")}
OTHERS = {"results.tsv", "citations.md", "references.bib"}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("vectors")


@pytest.fixture(scope="module")
def glove(cache: Path) -> Run:
    return biassay.run("glove", tests=list(TESTS), cache=cache)


@pytest.fixture(scope="module")
def mine(glove: Run, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A model of one's own: random vectors of the words of the same tests."""
    rng = np.random.default_rng(4)
    words = dict.fromkeys(w for r in glove.results for role in r.leaning.values() for w in role)
    path = tmp_path_factory.mktemp("mine") / "mine.txt"
    path.write_text("".join(f"{w} {' '.join(f'{v:.4f}' for v in rng.normal(size=8))}\n" for w in words))
    return biassay.run(f"vectors:{path}", tests=list(TESTS), cache=cache)


@pytest.fixture(scope="module")
def contexts() -> Run:
    run = measured_in_contexts(("one",))
    rng = np.random.default_rng(5)
    kept = {
        (0, r.test): Samples(*(rng.random(120) for _ in range(3))) for r in run.results if r.effect_size is not None
    }
    return dataclasses.replace(run, samples=kept)


@pytest.fixture(scope="module")
def words(cache: Path) -> Discovery:
    return biassay.discover("glove", "african-american-females", permutations=99, keep=20, cache=cache)


@pytest.fixture
def folder(glove: Run, tmp_path: Path) -> Path:
    return glove.save(tmp_path / "one")


@pytest.fixture
def two(mine: Run, tmp_path: Path) -> Path:
    return mine.save(tmp_path / "two")


@pytest.fixture
def refuses(cli: Cli, tmp_path: Path) -> Callable[..., str]:
    """Runs a command that must be refused, leaving all files as they are; returns what it said."""

    def call(*args: object, code: int = 2) -> str:
        before = files(tmp_path)
        found, stdout, stderr = cli(*args)
        assert (found, stdout) == (code, ""), stderr
        assert "Traceback" not in stderr
        assert files(tmp_path) == before
        return " ".join(stderr.split())

    return call


def files(folder: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def told(stdout: str) -> list[dict[str, Any]]:
    """JSON as any reader takes it."""
    found: list[dict[str, Any]] = json.loads(stdout, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    return found


def stored(folder: Path) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = json.loads((folder / "results.json").read_text())["results"]
    return results


def read(page: Path) -> str:
    """What stands on a page, without its script and data."""
    text = re.sub(r"<(script|style)\b.*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def edit(path: Path, change: Callable[[Any], Any]) -> None:
    content = json.loads(path.read_text())
    path.write_text(json.dumps(change(content) or content))


def edit_first(folder: Path, **given: Any) -> None:
    """Other values in the first result."""
    edit(folder / "results.json", lambda content: content["results"][0].update(given))


def renamed(run: Run, model: str) -> Run:
    """The run of a model of another name."""
    models = tuple(dataclasses.replace(record, name=model, text=model) for record in run.manifest.models)
    manifest = dataclasses.replace(run.manifest, models=models, run_id=f"of {model}")
    return Run(manifest, tuple(dataclasses.replace(r, model=model) for r in run.results), run.samples)


def of_models(run: Run, models: list[str]) -> Run:
    """One run of many models, all with the same results."""
    parts = [renamed(run, model) for model in models]
    results = with_corrections(tuple(r for part in parts for r in part.results), run.manifest.alpha)
    made = dataclasses.replace(run.manifest, models=tuple(m for part in parts for m in part.manifest.models))
    return Run(made, results)


def begun(run: Run, done: int) -> Run:
    """Interrupted after some results."""
    results = with_corrections(run.results[:done], run.manifest.alpha)
    return Run(dataclasses.replace(run.manifest, status="running", finished=None), results)


# ---- where everything goes


def test_the_page_of_a_run_is_in_its_folder(cli: Cli, tmp_path: Path) -> None:
    """From the start: the run is made by the command line too, and its page again by report."""
    out = tmp_path / "run"
    assert cli("run", "glove", "--tests", *TESTS, "--out", out)[0] == 0
    first = (out / "report.html").read_text()
    (out / "report.html").unlink()
    code, stdout, _ = cli("report", out)
    assert code == 0
    assert f"open {out / 'report.html'}" in stdout
    assert (out / "report.html").read_text() == first
    assert names(out) == {"manifest.json", "results.json", "results.tsv", "report.html"}
    for result in Run.load(out).results:
        (row,) = [line for line in stdout.splitlines() if line.startswith(f"│ {result.test} ")]
        assert f" {result.effect_size:.2f} " in row


def test_a_page_is_made_again(cli: Cli, folder: Path) -> None:
    for _ in range(2):
        assert cli("report", folder, "--quiet") == (0, "", "")
    page = (folder / "report.html").read_bytes()
    (folder / "report.html").write_bytes(page[:5000])
    assert cli("report", folder, "--quiet") == (0, "", "")
    assert (folder / "report.html").read_bytes() == page


def test_the_page_of_several_runs_is_in_this_folder(
    cli: Cli, folder: Path, two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    code, stdout, _ = cli("report", folder, two)
    assert code == 0
    assert stdout.rstrip().endswith("open report.html")
    assert names(here) == {"report.html"}
    assert not (folder / "report.html").exists()
    text = read(here / "report.html")
    assert "3 tests on 2 models" in text
    assert "glove" in text
    assert "vectors:mine.txt" in text


def test_out_names_the_page(cli: Cli, folder: Path, two: Path, tmp_path: Path) -> None:
    for runs in ((folder,), (folder, two)):
        page = tmp_path / f"{len(runs)}.page"
        code, stdout, _ = cli("report", *runs, "--out", page)
        assert (code, MARK in page.read_text()) == (0, True)
        assert f"open {page}" in stdout
        assert not (folder / "report.html").exists()


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


def test_quiet_prints_nothing(cli: Cli, folder: Path, tmp_path: Path) -> None:
    assert cli("report", folder, "--quiet", "--publish", tmp_path / "paper", "--format", "svg") == (0, "", "")
    assert (folder / "report.html").is_file()
    assert (tmp_path / "paper" / "results.tsv").is_file()


def test_json_of_a_run_is_what_its_folder_holds(cli: Cli, folder: Path) -> None:
    code, stdout, stderr = cli("report", folder, "--json")
    assert (code, stderr) == (0, "")
    (one,) = told(stdout)
    assert one["results"] == stored(folder)
    assert one["manifest"] == json.loads((folder / "manifest.json").read_text())
    assert (folder / "report.html").is_file()
    assert cli("report", folder, "--json", "--quiet")[1] == stdout


def test_json_of_several_runs_is_corrected_anew(cli: Cli, folder: Path, two: Path, tmp_path: Path) -> None:
    (one,) = told(cli("report", folder, two, "--json", "--out", tmp_path / "p.html")[1])
    both = [*stored(folder), *stored(two)]
    again = {"p_value_holm", "significant_holm", "p_value_by_word_holm", "significant_by_word_holm"}
    for row, before in zip(one["results"], both, strict=True):
        assert {k: v for k, v in row.items() if k not in again} == {k: v for k, v in before.items() if k not in again}
    for field in ("p_value", "p_value_by_word"):
        expected = biassay.holm([row[field] for row in both], 0.01)
        assert [row[f"{field}_holm"] for row in one["results"]] == expected.adjusted.tolist()
        stands = f"{field.replace('p_value', 'significant')}_holm"
        assert [row[stands] for row in one["results"]] == expected.rejected.tolist()
    assert [row["significant_holm"] for row in both] != [row["significant_holm"] for row in one["results"]]


def test_runs_of_all_kinds_stand_side_by_side(
    cli: Cli, folder: Path, contexts: Run, words: Discovery, tmp_path: Path
) -> None:
    runs = [folder, contexts.save(tmp_path / "contexts"), words.save(tmp_path / "words")]
    code, stdout, _ = cli("report", *runs, "--out", tmp_path / "p.html")
    assert code == 0
    assert "African American females" in stdout
    text = read(tmp_path / "p.html")
    assert " Bias report Associations in glove: 3 tests on 1 model, protocol exact, alpha 0.01 " in text
    assert "Associations over contexts in one (layer=-1): 4 tests on 1 model, over contexts, 120 samples" in text
    printed = told(cli("report", *runs, "--out", tmp_path / "p.html", "--json")[1])
    assert [one["manifest"]["kind"] for one in printed] == ["associations", "associations", "discovery"]
    for one, run in zip(printed, runs, strict=True):
        assert one["results"] == stored(run)


def test_figures_are_not_called_tests(cli: Cli, folder: Path, tmp_path: Path) -> None:
    stderr = cli("report", folder, "--publish", tmp_path / "paper", "--format", "svg")[2]
    assert not re.search(r"\btests?\b", stderr)


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
    code, stdout, _ = cli("report", folder, "--tests", *patterns, "--json")
    (one,) = told(stdout)
    assert (code, [row["test"] for row in one["results"]]) == (0, kept)
    assert [test["name"] for test in one["manifest"]["tests"]] == kept
    rows = [row for row in stored(folder) if row["test"] in kept]
    for field in ("p_value", "p_value_by_word"):
        expected = biassay.holm([row[field] for row in rows], 0.01).adjusted.tolist()
        assert [row[f"{field}_holm"] for row in one["results"]] == expected
    assert [row["effect_size"] for row in one["results"]] == [row["effect_size"] for row in rows]
    text = read(folder / "report.html")
    assert all((test in text) is (test in kept) for test in TESTS)


def test_tests_take_all_words_up_to_the_next_option(cli: Cli, folder: Path) -> None:
    (one,) = told(cli("report", folder, "--tests", "weat6", "weat8", "--json", "--tests", "weat7")[1])
    assert len(one["results"]) == 3
    (one,) = told(cli("report", "--tests=weat6", "--json", folder)[1])
    assert len(one["results"]) == 1


def test_names_of_no_test_are_refused(refuses: Callable[..., str], folder: Path, two: Path, tmp_path: Path) -> None:
    said = refuses("report", folder, "--tests", "weat9", "Weat6")
    assert "one: no test there is named weat9 or Weat6" in said
    assert "no test there is named" in refuses("report", folder, two, "--out", tmp_path / "p", "--tests", "")
    assert "requires an argument" in refuses("report", folder, "--tests")


# ---- what is not alike


def test_runs_that_differ_are_refused_unless_mixed(
    cli: Cli, refuses: Callable[..., str], folder: Path, two: Path, tmp_path: Path
) -> None:
    edit(two / "manifest.json", lambda made: made | {"protocol": "may2019"})
    page = tmp_path / "p.html"
    said = refuses("report", folder, two, "--out", page)
    assert "protocol is exact in one, may2019 in two" in said
    assert "--mixed" in said
    code, stdout, _ = cli("report", folder, two, "--out", page, "--mixed")
    assert code == 0
    assert "not alike: protocol is exact in one, may2019 in two" in " ".join(stdout.split())
    assert "These runs are not alike: protocol is exact in one, may2019 in two." in read(page)


def test_a_test_with_other_texts_is_refused_unless_mixed(
    cli: Cli, refuses: Callable[..., str], folder: Path, two: Path, tmp_path: Path
) -> None:
    edit_first(two, test_digest="another")
    said = refuses("report", folder, two, "--out", tmp_path / "p.html")
    assert "same name and other texts: weat6" in said
    assert cli("report", folder, two, "--out", tmp_path / "p.html", "--mixed", "--quiet") == (0, "", "")
    rest = ("--tests", "weat7", "weat8", "--quiet")
    assert cli("report", folder, two, "--out", tmp_path / "p.html", *rest) == (0, "", "")


# ---- a folder for a paper


def test_everything_for_a_paper_is_published(cli: Cli, folder: Path, two: Path, tmp_path: Path) -> None:
    paper = tmp_path / "new" / "paper"
    code, stdout, _ = cli("report", folder, two, "--out", tmp_path / "p.html", "--publish", paper, "--format", "svg")
    assert code == 0
    found = {name for name in names(paper) if not name.startswith("figures/")}
    cards = {"model-card-glove.md", "model-card-vectors_mine.txt_case_keep.md"}
    assert found - cards == TABLES | OTHERS
    assert len(found) == len(TABLES | OTHERS) + 2
    assert f"{len(names(paper))} files written to {paper}" in stdout
    assert "Caliskan" in (paper / "citations.md").read_text()
    assert "@article{caliskan2017," in (paper / "references.bib").read_text()
    assert (paper / "associations-by-word.tex").read_text().count("tab:associations-by-word") == 1
    card = (paper / "model-card-glove.md").read_text()
    assert card.startswith("---\n")
    assert "## Social bias (biassay)" in card


def test_published_results_have_the_papers_nine_columns(cli: Cli, folder: Path, two: Path, tmp_path: Path) -> None:
    cli("report", folder, two, "--out", tmp_path / "p.html", "--publish", tmp_path / "paper", "--format", "svg")
    with (tmp_path / "paper" / "results.tsv").open(newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t")
    assert tuple(header) == PAPER_COLUMNS
    assert len(header) == 9
    for row, result in zip(rows, [*stored(folder), *stored(two)], strict=True):
        assert row[:3] == [result["model"], result["options"], result["test"]]
        assert [float(cell) for cell in row[3:]] == [result[column] for column in PAPER_COLUMNS[3:]]


def test_tests_over_texts_and_over_contexts_are_published_apart(
    cli: Cli, folder: Path, contexts: Run, words: Discovery, tmp_path: Path
) -> None:
    runs = [folder, contexts.save(tmp_path / "contexts"), words.save(tmp_path / "words")]
    cli("report", *runs, "--out", tmp_path / "p.html", "--publish", tmp_path / "paper", "--format", "svg")
    found = names(tmp_path / "paper")
    expected = {"results-texts.tsv", "results-contexts.tsv", "associations-over-contexts.tex"} | TABLES
    assert expected <= found
    assert len([name for name in found if name.startswith("model-card-")]) == 3


@pytest.mark.extras
@pytest.mark.parametrize("formats", [(), ("svg",), ("pdf", "png"), ("svg", "svg")])
def test_figures_are_published_in_the_formats_asked_for(
    formats: tuple[str, ...], cli: Cli, folder: Path, tmp_path: Path
) -> None:
    pytest.importorskip("vl_convert")
    asked = [word for form in formats for word in ("--format", form)]
    code, stdout, _ = cli("report", folder, "--publish", tmp_path / "paper", *asked)
    assert code == 0
    figures = tmp_path / "paper" / "figures"
    endings = {*(formats or ("svg", "pdf", "png")), "vl.json"}
    expected = {f"{name}.{ending}" for name in ("forest-texts-1", "matrix-texts") for ending in endings}
    assert names(figures) == expected
    magic = {"svg": b"<svg", "pdf": b"%PDF", "png": b"\x89PNG", "vl.json": b"{"}
    for name in expected:
        assert (figures / name).read_bytes().startswith(magic[name.partition(".")[2]])
    assert "left out" not in stdout


def test_without_the_library_figures_are_left_out_and_that_is_said(
    cli: Cli, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("publish.files", "sections.section", "sections.stereotypes"):
        monkeypatch.setattr(f"biassay.report.{module}.can_draw", lambda: False)
    monkeypatch.setattr("biassay.cli.reporting.can_draw", lambda: False)
    code, stdout, _ = cli("report", folder, "--publish", tmp_path / "paper")
    assert code == 0
    assert 'figures were left out; they need: pip install "biassay[figures]"' in stdout
    assert names(tmp_path / "paper") == TABLES | OTHERS | {"model-card-glove.md"}
    assert 'pip install "biassay[figures]"' in read(folder / "report.html")


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


def test_a_published_folder_below_a_file_is_refused_before_the_page_is_written(
    cli: Cli, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")
    code, stdout, stderr = cli("report", folder, "--publish", tmp_path / "file" / "paper")
    assert (code, stdout) == (2, "")
    assert str(tmp_path / "file") in stderr
    assert not (folder / "report.html").exists()


def test_a_published_folder_that_is_the_page_is_refused_before_it_is_written(
    cli: Cli, folder: Path, tmp_path: Path
) -> None:
    code, stdout, _ = cli("report", folder, "--out", tmp_path / "x", "--publish", tmp_path / "x")
    assert (code, stdout) == (2, "")
    assert not (tmp_path / "x").exists()


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
    run = dataclasses.replace(run, results=tuple(r for r in run.results if r.test == "weat6"))
    folder, paper = run.save(tmp_path / "run"), tmp_path / "deep" / "paper"
    before = names(tmp_path)
    code, _, stderr = cli("report", folder, "--publish", paper, "--format", "svg")
    assert code == 0, stderr
    written = names(tmp_path) - before
    assert all(name.startswith("deep/paper/") or name == "run/report.html" for name in written)
    cards = [name for name in names(paper) if name.startswith("model-card-")]
    assert len({name.lower() for name in cards}) == len(cards) == len(models)
    for name in names(paper):
        assert re.fullmatch(r"(figures/)?[A-Za-z0-9][A-Za-z0-9._+-]{0,110}", name)
    with (paper / "results.tsv").open(newline="") as file:
        assert {len(row) for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)} == {9}


def test_markup_in_names_is_printed_as_it_is(cli: Cli, glove: Run, tmp_path: Path) -> None:
    folder = renamed(glove, "[bold]x[/]").save(tmp_path / "[red]run")
    code, stdout, _ = cli("report", folder)
    assert code == 0
    assert "[bold]x[/]" in stdout
    assert f"open {folder / 'report.html'}" in stdout


@pytest.mark.parametrize("model", ["\x1b[2Jgone", "a\x9bb", "\u202eabc"])
def test_a_name_cannot_steer_the_terminal(model: str, cli: Cli, glove: Run, tmp_path: Path) -> None:
    code, stdout, _ = cli("report", renamed(glove, model).save(tmp_path / "run"))
    assert code == 0
    assert not re.search(r"[\x1b\x9b\u202e]", stdout)


# ---- runs that are not as they should be


def test_what_is_no_run_is_named(refuses: Callable[..., str], folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert f"{tmp_path / 'nowhere'}: no such folder" in refuses("report", tmp_path / "nowhere")
    said = refuses("report", folder / "manifest.json")
    assert f"{folder / 'manifest.json'} is a file; name the folder of the run, {folder}" in said
    assert f"no run there (manifest.json is missing); runs inside: {folder}" in refuses("report", tmp_path)
    assert f"{tmp_path / 'empty'}: no run there (manifest.json is missing)" in refuses("report", tmp_path / "empty")
    assert "runs inside" not in refuses("report", tmp_path / "empty")
    assert "no run there" in refuses("report", folder, tmp_path / "empty")
    assert "Missing argument 'RUN ...'" in refuses("report")
    assert "No such option" in refuses("report", folder, "--baseline", "glove")
    assert "'gif' is not one of" in refuses("report", folder, "--format", "gif")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_cannot_be_read_is_named(cli: Cli, folder: Path) -> None:
    folder.chmod(0)
    code, stdout, stderr = cli("report", folder)
    folder.chmod(0o755)
    assert code in (1, 2)
    assert stdout == ""
    assert str(folder) in stderr


def test_a_run_without_results_yet_is_refused(
    refuses: Callable[..., str], glove: Run, two: Path, tmp_path: Path
) -> None:
    empty = begun(glove, 0).save(tmp_path / "empty")
    for args in ((empty,), (empty, two, "--out", tmp_path / "p.html")):
        said = refuses("report", *args)
        assert f"{empty}: the run has no results yet" in said
        assert "--resume" in said
    (empty / "results.json").unlink()
    assert "no results yet" in refuses("report", empty)


def test_an_interrupted_run_is_shown_with_a_note(cli: Cli, glove: Run, tmp_path: Path) -> None:
    folder = begun(glove, 2).save(tmp_path / "begun")
    code, _, _ = cli("report", folder, "--publish", tmp_path / "paper", "--format", "svg")
    assert code == 0
    assert "is not finished: 2 of 3 results are there." in read(folder / "report.html")
    assert "The run is not finished." in (tmp_path / "paper" / "model-card-glove.md").read_text()
    (one,) = told(cli("report", folder, "--json")[1])
    assert (one["manifest"]["status"], len(one["results"])) == ("running", 2)


def test_an_interrupted_run_is_noted_in_the_terminal_too(cli: Cli, glove: Run, tmp_path: Path) -> None:
    assert "not finished: 2 of 3 results are there" in cli("report", begun(glove, 2).save(tmp_path / "begun"))[1]


def test_the_note_counts_the_tests_that_were_asked_for(cli: Cli, glove: Run, tmp_path: Path) -> None:
    folder = begun(glove, 1).save(tmp_path / "begun")
    cli("report", folder, "--tests", "weat[67]")
    assert "is not finished: 1 of 2 results are there." in read(folder / "report.html")


def test_beside_another_run_the_note_names_the_one_that_is_not_finished(
    cli: Cli, glove: Run, two: Path, tmp_path: Path
) -> None:
    folder = begun(glove, 1).save(tmp_path / "begun")
    assert cli("report", folder, two, "--out", tmp_path / "p.html", "--quiet") == (0, "", "")
    text = read(tmp_path / "p.html")
    assert "The run begun is not finished: 1 of 3 results are there." in text
    assert text.count("is not finished") == 1


@pytest.mark.parametrize("name", ["manifest.json", "results.json"])
def test_another_format_version_is_refused_and_the_file_named(
    name: str, refuses: Callable[..., str], folder: Path, two: Path
) -> None:
    for version in (99, None, "1"):
        edit(folder / name, lambda content, v=version: content | {"format_version": v})
        for args in ((folder,), (two, folder)):
            said = refuses("report", *args, "--out", folder / "p.html")
            assert f"{folder / name}: the run has format version {version}, this biassay reads 1" in said


def test_runs_in_folders_of_one_name_are_told_apart(cli: Cli, glove: Run, mine: Run, tmp_path: Path) -> None:
    again = dataclasses.replace(glove, manifest=dataclasses.replace(glove.manifest, run_id="again"))
    runs = [run.save(tmp_path / place / "run") for place, run in (("x", glove), ("y", again), ("z", mine))]
    code, stdout, _ = cli("report", *runs, "--out", tmp_path / "p.html", "--publish", tmp_path / "q", "--format", "svg")
    assert code == 0
    assert "3 tests on 3 models" in stdout
    text = read(tmp_path / "p.html")
    for shown in (stdout, text):
        assert "glove [x/run]" in shown
        assert "glove [y/run]" in shown
    assert "[z/run]" not in text  # no other run has this model
    cards = {name for name in names(tmp_path / "q") if name.startswith("model-card-glove")}
    assert cards == {"model-card-glove_x_run.md", "model-card-glove_y_run.md"}


def test_the_same_run_twice_is_refused(
    refuses: Callable[..., str], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(folder)
    for again in (folder, "one", "one/", "./one/../one", "link"):
        assert "is named twice; name each run once" in refuses("report", folder, again)


def test_a_copy_of_a_run_is_refused(refuses: Callable[..., str], folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    said = refuses("report", folder, tmp_path / "copy", "--out", tmp_path / "p.html", "--mixed")
    assert "one and copy are copies of one run; leave one of them out" in said


def test_a_copy_of_a_discovery_is_refused(refuses: Callable[..., str], words: Discovery, tmp_path: Path) -> None:
    runs = [words.save(tmp_path / place) for place in ("one", "copy")]
    said = refuses("report", *runs, "--out", tmp_path / "p.html")
    assert "one and copy are copies of one run" in said


def test_parts_that_are_not_needed_may_be_missing(cli: Cli, contexts: Run, folder: Path, tmp_path: Path) -> None:
    """The samples of a run over contexts, and the tables: everything else is shown."""
    over = contexts.save(tmp_path / "contexts")
    assert (over / "samples" / "0.npz").is_file()
    cli("report", over, "--quiet")
    whole = read(over / "report.html")
    shutil.rmtree(over / "samples")
    for place in (over, folder):
        (place / "results.tsv").unlink()
        assert cli("report", place, "--quiet", "--publish", tmp_path / f"of-{place.name}") == (0, "", "")
    assert "How the effect varies over contexts" not in read(over / "report.html")
    assert not [name for name in names(tmp_path / "of-contexts") if "distribution" in name]
    assert "associations-over-contexts.tex" in names(tmp_path / "of-contexts")
    assert "How it was made" in whole


@pytest.mark.extras
def test_samples_are_drawn_where_they_were_kept(cli: Cli, contexts: Run, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    over = contexts.save(tmp_path / "contexts")
    cli("report", over, "--quiet", "--publish", tmp_path / "paper", "--format", "svg")
    drawn = {name for name in names(tmp_path / "paper") if name.endswith(".svg") and "distribution" in name}
    assert drawn == {f"figures/distribution-1-{test}.svg" for test in ("C6", "C9", "C10")}
    assert "How the effect varies over contexts" in read(over / "report.html")


NUMBERS = ("effect_size", "statistic", "p_value", "p_value_by_word", "effect_size_by_word", "p_error", "p_value_holm")


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("field", [*NUMBERS, "log10_p_value", "log10_p_value_by_word"])
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
    shown = {"effect_size": {"NaN": "NaN", "Infinity": "inf", "-Infinity": "-inf"}, "p_value": {"NaN": "NaN"}}
    if value in shown.get(field, {}):
        (row,) = [line for line in stdout.splitlines() if line.startswith("│ weat6 ")]
        assert shown[field][value] in row
        assert shown[field][value] in read(folder / "report.html")


def test_bare_words_for_such_numbers_are_read_too(cli: Cli, folder: Path) -> None:
    """As Python's own json writes them."""
    edit_first(folder, effect_size=math.nan, statistic=math.inf)
    assert "NaN" in (folder / "results.json").read_text()
    (one,) = told(cli("report", folder, "--json")[1])
    assert (one["results"][0]["effect_size"], one["results"][0]["statistic"]) == ("NaN", "Infinity")


@pytest.mark.parametrize("value", ["NaN", "Infinity"])
@pytest.mark.parametrize("role", ["X", "Y", "A", "B"])
def test_a_word_without_a_number_is_no_obstacle(role: str, value: str, cli: Cli, folder: Path, tmp_path: Path) -> None:
    def change(content: Any) -> None:
        leaning = content["results"][0]["leaning"][role]
        leaning[next(iter(leaning))] = value

    edit(folder / "results.json", change)
    code, _, stderr = cli("report", folder, "--quiet", "--publish", tmp_path / "paper", "--format", "svg")
    assert (code, stderr) == (0, "")


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize(
    "field", ["interval_low", "interval_high", "prediction_low", "tau2", "i2", "share_significant"]
)
def test_numbers_over_contexts_that_are_none_are_no_obstacle(
    field: str, value: str, cli: Cli, contexts: Run, tmp_path: Path
) -> None:
    over = contexts.save(tmp_path / "contexts")
    edit(over / "results.json", lambda content: content["results"][0]["contextual"].update({field: value}))
    code, stdout, stderr = cli("report", over, "--json", "--publish", tmp_path / "paper", "--format", "svg")
    assert code == 0, stderr
    assert told(stdout)[0]["results"] == stored(over)


def test_very_long_names_are_shown(cli: Cli, glove: Run, tmp_path: Path) -> None:
    run = renamed(glove, "m" * 1000)
    long = tuple(
        dataclasses.replace(r, test=f"{'t' * 500}{i}", title="title " * 100) for i, r in enumerate(run.results)
    )
    folder = dataclasses.replace(run, results=long).save(tmp_path / ("r" * 200))
    code, stdout, stderr = cli("report", folder, "--publish", tmp_path / "paper", "--format", "svg")
    assert code == 0, stderr
    for result in glove.results:
        assert f"{result.effect_size:.2f}" in stdout
    assert MARK in (folder / "report.html").read_text()
    assert len([name for name in names(tmp_path / "paper") if name.startswith("model-card-")]) == 1


def test_no_significant_result_is_said(cli: Cli, glove: Run, tmp_path: Path) -> None:
    def weak(r: Result) -> Result:
        return dataclasses.replace(r, p_value=0.9, p_value_by_word=0.8, log10_p_value=-0.05, log10_p_value_by_word=-0.1)

    results = with_corrections(tuple(map(weak, glove.results)), 0.01)
    folder = dataclasses.replace(glove, results=results).save(tmp_path / "weak")
    code, stdout, _ = cli("report", folder, "--publish", tmp_path / "paper", "--format", "svg")
    assert code == 0
    for shown in (" ".join(stdout.split()), read(folder / "report.html")):
        assert "0 of 3 tests found the association" in shown
        assert "does not show that the model is free of bias" in shown
    assert "0.900*" not in stdout
    assert "*" not in "".join(row for row in stdout.splitlines() if row.startswith("│"))


def test_nothing_measured_at_all_is_said(cli: Cli, glove: Run, tmp_path: Path) -> None:
    numbers = ("effect_size", "statistic", "p_", "log10_p_", "significant")
    nothing: dict[str, Any] = {f.name: None for f in dataclasses.fields(Result) if f.name.startswith(numbers)}
    nothing |= {"status": "refused", "reason": "too many words are lost", "leaning": {}}
    results = tuple(dataclasses.replace(r, **nothing) for r in glove.results)
    folder = dataclasses.replace(glove, results=results).save(tmp_path / "refused")
    code, stdout, stderr = cli("report", folder, "--publish", tmp_path / "paper", "--format", "svg")
    assert code == 0, stderr
    assert "too many words are lost" in stdout
    assert "too many words are lost" in read(folder / "report.html")
    rows = (tmp_path / "paper" / "results.tsv").read_text().splitlines()[1:]
    assert [row.split("\t")[3:5] for row in rows] == [["", ""]] * 3


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda _: b"",
        lambda _: b"\xff\xfe\x00 not text",
        lambda _: b"[]",
        lambda text: text.replace(b'"test": "weat6"', b'"test": ["weat6"]').replace(
            b'"effect_size": 1', b'"effect_size": "1'
        ),
        lambda text: text.replace(b'"num_targ1": 8', b'"num_targ1": "many"'),
    ],
    ids=["cut", "empty", "binary", "list", "type", "word"],
)
def test_damaged_results_name_the_file(
    damage: Callable[[bytes], bytes], refuses: Callable[..., str], folder: Path, two: Path
) -> None:
    path = folder / "results.json"
    path.write_bytes(damage(path.read_bytes()))
    for args in ((folder,), (two, folder, "--out", folder / "p.html")):
        assert str(path) in refuses("report", *args)


def test_missing_results_name_the_file(refuses: Callable[..., str], folder: Path) -> None:
    (folder / "results.json").unlink()
    assert f"{folder / 'results.json'}: the file is missing" in refuses("report", folder)


def test_damaged_samples_name_the_file(refuses: Callable[..., str], contexts: Run, tmp_path: Path) -> None:
    over = contexts.save(tmp_path / "contexts")
    (over / "samples" / "0.npz").write_bytes(b"PK nothing")
    assert f"{over / 'samples' / '0.npz'}: not a file of samples" in refuses("report", over)


def test_a_kind_that_is_not_known_is_refused(refuses: Callable[..., str], folder: Path) -> None:
    edit(folder / "manifest.json", lambda made: made | {"kind": "dreams"})
    assert "a kind that this biassay does not know ('dreams')" in refuses("report", folder)
