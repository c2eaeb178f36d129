"""All files for a paper: figures as they are drawn, tables with the numbers of the records, names that are free."""

from __future__ import annotations

import dataclasses
import html
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from tests.results.made_runs import some_samples, with_rows
from tests.studies.associations.publish_runs import NASTY, measured_in_contexts, on_models
from tests.studies.showing import cited, write_all
from tests.studies.stereotypes.made_runs import compared_with_people

import biassay
from biassay.reporting import publication as published
from biassay.reporting.charts.base import PRINT, Figure, render_figure
from biassay.reporting.latex import to_latex
from biassay.reporting.markdown import to_markdown
from biassay.reporting.methods import to_text
from biassay.runs.reports import compare_models, group_runs, with_presenters
from biassay.runs.run import Run
from biassay.studies.associations.compare import difference_table


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return biassay.run("glove", tests=["weat6", "weat7", "weat8"], cache=tmp_path_factory.mktemp("vectors"))


@pytest.fixture(scope="module")
def contexts() -> Run:
    made = measured_in_contexts()
    kept = [some_samples(place, test, 5, 120) for place in (0, 1) for test in ("C6", "C9")]
    return dataclasses.replace(made, arrays={name: array for one in kept for name, array in one.items()})


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Run:
    cache = tmp_path_factory.mktemp("vectors")
    return biassay.discover("glove", "african-american-females", n_permutations=99, keep=20, cache=cache)


@pytest.fixture(scope="module")
def stereotypes() -> Run:
    return compared_with_people()


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def figures_of(runs: dict[str, Any]) -> list[Figure]:
    """All figures of runs for print."""
    return [make(PRINT) for presenter, one in with_presenters(group_runs(runs)) for make in presenter.figures(one)]


@pytest.mark.extras
def test_every_figure_is_written_as_it_is_drawn(
    run: Run, contexts: Run, words: Run, stereotypes: Run, tmp_path: Path
) -> None:
    library = pytest.importorskip("vl_convert")
    found = {"a": run, "b": contexts, "c": words, "d": stereotypes}
    written = write_all(tmp_path / "paper", found, formats=("svg",))
    folder = tmp_path / "paper" / "figures"
    expected = figures_of(found)
    kinds = {figure.name.partition("-")[0] for figure in expected}
    assert kinds == {"forest", "distribution", "matrix", "roc", "profile"}
    stems = {name.removesuffix(".svg") for name in names(folder) if name.endswith(".svg")}
    assert stems == {figure.name for figure in expected} > {"matrix-texts", "matrix-contexts"}
    for figure in expected:
        assert (folder / f"{figure.name}.svg").read_bytes() == render_figure(figure, "svg")
        held = (folder / f"{figure.name}.vl.json").read_text(encoding="utf-8")
        assert held.encode() == render_figure(figure, "vl.json")
        assert '"url"' not in held  # it holds its data, and makes the same picture again
        assert library.vegalite_to_svg(held, vl_version="6.4").encode() == render_figure(figure, "svg")
    for path in folder.glob("*.svg"):
        assert ET.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"
        assert "var(--" not in path.read_text()  # colours of the page mean nothing on paper
    assert {path.relative_to(tmp_path / "paper").as_posix() for path in written} == names(tmp_path / "paper")


def test_the_table_of_differences_is_published_where_models_are_compared(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published, "can_draw", lambda: False)
    both = on_models(run, ("one", "two"))
    comparison = compare_models({"": both})
    write_all(tmp_path / "paper", {"": both}, comparison)
    table = difference_table(comparison)
    assert (tmp_path / "paper" / "differences.md").read_text() == to_markdown(table)
    assert (tmp_path / "paper" / "differences.tex").read_text() == to_latex(table, "tab:differences")
    write_all(tmp_path / "plain", {"": both})
    added = {"differences.md", "differences.tex", "differences-narrow.tex"}
    assert names(tmp_path / "paper") - names(tmp_path / "plain") == added


def test_names_are_free_and_safe(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "can_draw", lambda: False)
    models = (*NASTY, "../up", "a b", "a_b", "A_B", "x" * 500, "")
    written = write_all(tmp_path / "paper", {"": on_models(run, models)})
    cards = [path for path in written if path.name.startswith("model-card-")]
    assert len({path.name.lower() for path in cards}) == len(models)
    for path in written:
        assert path.parent in (tmp_path / "paper", tmp_path / "paper" / ".eval_results")
        assert path.is_file()
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,100}", path.name)
    for model, path in zip(models[9:11], cards[9:11], strict=True):
        assert model in path.read_text()


def test_citations_show_names_as_they_are(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rendered by a Markdown parser that lets HTML through: a list of plain lines comes out."""
    monkeypatch.setattr(published, "can_draw", lambda: False)
    name = "<script>alert(1)</script> [x](javascript:alert(1)) <javascript:x> ![i](//h/i) `c`"
    tests = tuple(dataclasses.replace(test, name=name, citation=name) for test in run.manifest.inputs.tests[:1])
    hostile = with_rows(run, run.results, inputs=dataclasses.replace(run.manifest.inputs, tests=tests))
    write_all(tmp_path / "paper", {"": hostile})
    rendered = MarkdownIt("commonmark", {"html": True}).render((tmp_path / "paper" / "citations.md").read_text())
    assert set(re.findall(r"<(\w+)", rendered)) == {"ul", "li"}
    assert [html.unescape(line[4:-5]) for line in rendered.splitlines()[1:-1]] == to_text(cited(hostile)).splitlines()
