"""The folder for a paper that ``biassay report --publish`` writes."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from biassay.runs.run import Run
from biassay.studies.associations.results import PAPER_COLUMNS

from .conftest import Cli
from .shown_runs import names, read, stored

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


def test_published_results_have_the_papers_nine_columns(cli: Cli, folder: Path, two: Path, tmp_path: Path) -> None:
    cli("report", folder, two, "--out", tmp_path / "p.html", "--publish", tmp_path / "paper", "--format", "svg")
    with (tmp_path / "paper" / "results-as-published.tsv").open(newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t")
    assert tuple(header) == PAPERS
    assert len(header) == 9
    for row, result in zip(rows, [*stored(folder), *stored(two)], strict=True):
        assert row[:3] == [result["model"], result["options"], result["test"]]
        assert [float(cell) for cell in row[3:]] == [
            *(result["sentences_p_value"], result["sentences_effect_size"]),
            *(result[column] for column in PAPERS[5:]),
        ]


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
    for module in ("reporting.publication", "reporting.document", "cli.report"):
        monkeypatch.setattr(f"biassay.{module}.can_draw", lambda: False)
    code, stdout, _ = cli("report", folder, "--publish", tmp_path / "paper")
    assert code == 0
    assert 'no figures were drawn; install: pip install "biassay[figures]"' in stdout
    assert names(tmp_path / "paper") == TABLES | OTHERS | {"model-card-glove.md", ".eval_results/biassay-glove.yaml"}


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


@pytest.mark.extras
def test_samples_are_drawn_where_they_were_kept(cli: Cli, contexts: Run, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    over = contexts.save(tmp_path / "contexts")
    cli("report", over, "--quiet", "--publish", tmp_path / "paper", "--format", "svg")
    drawn = {name for name in names(tmp_path / "paper") if name.endswith(".svg") and "distribution" in name}
    assert drawn == {f"figures/distribution-1-{test}.svg" for test in ("C6", "C9", "C10")}
    assert "How the effect varies over contexts" in read(over / "report.html")
