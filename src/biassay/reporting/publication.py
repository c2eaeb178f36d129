"""Write the tables, figures and citations of a paper to a folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from biassay.io import write_atomically
from biassay.reporting.charts.base import PRINT, Drawing, can_draw, render_figure
from biassay.reporting.document import Table
from biassay.reporting.latex import to_latex, to_narrow_latex
from biassay.reporting.markdown import escape, to_markdown
from biassay.reporting.methods import (
    collect_citations,
    make_paragraphs,
    methods_latex,
    methods_markdown,
    to_bibtex,
    to_text,
)
from biassay.reporting.model_card import format_eval_results, render_model_card
from biassay.reporting.presenter import Presenter, Shown
from biassay.results.comparison import Comparison
from biassay.results.run_data import record_labels

FIGURE_FORMATS = ("svg", "pdf", "png")
_UNSAFE = re.compile(r"[^A-Za-z0-9.+-]+")
_LONGEST = 80

_Compared = tuple[Presenter, Comparison]


def publish(
    folder: Path,
    shown: Sequence[Shown],
    compared: _Compared | None = None,
    *,
    formats: Sequence[str] = FIGURE_FORMATS,
    progress: Callable[[str, str, int, int], None] | None = None,
) -> list[Path]:
    """Write the tables, figures, citations, methods and model cards of a paper.

    Parameters
    ----------
    folder : Path
        Created if it does not exist.
    shown : sequence of (Presenter, RunGroup)
        Reports to publish, with runs of one study next to each other.
    compared : (Presenter, Comparison), optional
        Comparison to publish.
    formats : sequence of str
        File formats of figures, in addition to Vega-Lite.
    progress : callable, optional
        Called for every figure, like `Listener.progress`.

    Returns
    -------
    list of Path
        Files written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    used: set[str] = set()

    def write(name: str, ending: str, content: str | bytes, below: str = "") -> None:
        path = folder / below / _make_unique_name(name, ending, below, used)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content.encode() if isinstance(content, str) else content)
        written.append(path)

    seen: dict[str, int] = {}
    for name, table in _tables(shown, compared):
        seen[name] = seen.get(name, 0) + 1
        reference = f"tab:{name}" if seen[name] == 1 else f"tab:{name}-{seen[name]}"
        write(name, "tex", to_latex(table, reference))
        if (small := to_narrow_latex(table, f"{reference}-narrow")) is not None:
            write(f"{name}-narrow", "tex", small)
        write(name, "md", to_markdown(table))
    for presenter, of_study in groupby(shown, itemgetter(0)):
        for name, ending, content in presenter.files([gathered for _, gathered in of_study]):
            write(name, ending, content)
    runs = [(presenter, gathered.run) for presenter, gathered in shown]
    cited = collect_citations(runs)
    write("citations", "md", "".join(f"- {escape(line)}\n" for line in to_text(cited).splitlines()))
    write("references", "bib", to_bibtex(cited))
    paragraphs = make_paragraphs(runs, compared)
    write("methods", "tex", methods_latex(paragraphs, cited))
    write("methods", "md", methods_markdown(paragraphs, cited))
    for presenter, run in runs:
        for label in presenter.labels(run):
            name = presenter.card_name(label)
            write(f"model-card-{name}", "md", render_model_card(presenter, run, label))
            date = run.manifest.finished or run.manifest.created
            results = format_eval_results(presenter.card(run, label).entries, f"biassay/{run.manifest.study}", date)
            if results:
                write(f"biassay-{name}", "yaml", results, ".eval_results")
    figures = list(_figures(shown, compared)) if can_draw() else []
    for done, make in enumerate(figures):
        if progress is not None:
            progress("paper", "figures", done + 1, len(figures))
        figure = make(PRINT)
        for form in dict.fromkeys((*formats, "vl.json")):
            write(figure.name, form, render_figure(figure, form), "figures")
    return written


def _make_unique_name(name: str, ending: str, below: str, used: set[str]) -> str:
    """Return a file name that any file system accepts and that is unique in the folder."""
    stem = _UNSAFE.sub("_", name)[:_LONGEST].strip("_.") or "unnamed"
    number, candidate = 1, stem
    while f"{below}/{candidate}.{ending}".lower() in used:  # some file systems ignore case
        number += 1
        candidate = f"{stem}-{number}"
    used.add(f"{below}/{candidate}.{ending}".lower())
    return f"{candidate}.{ending}"


def _tables(shown: Sequence[Shown], compared: _Compared | None) -> Iterator[tuple[str, Table]]:
    if compared is not None:
        presenter, comparison = compared
        yield from presenter.comparison_tables(comparison)
    found = [(gathered.run, *named) for presenter, gathered in shown for named in presenter.tables(gathered)]
    names = [name for _, name, _ in found]
    for run, name, table in found:
        labels = record_labels(run)
        twice = names.count(name) > 1 and len(labels) == 1
        yield f"{name}-{labels[0]}" if twice else name, table


def _figures(shown: Sequence[Shown], compared: _Compared | None) -> Iterator[Drawing]:
    if compared is not None:
        presenter, comparison = compared
        yield from presenter.comparison_figures(comparison)
    for presenter, gathered in shown:
        yield from presenter.figures(gathered)
