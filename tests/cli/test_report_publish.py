"""The folder for a paper that ``biassay report --publish`` writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from biassay.runs.run import Run
from biassay.studies.associations.results import PAPER_COLUMNS

from .conftest import Cli
from .shown_runs import names

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
