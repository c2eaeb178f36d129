"""All that goes into a paper, in one folder: tables, figures, citations, and sections for model cards."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from biassay.files import write_atomically
from biassay.report.charts.drawing import Figure, can_draw, drawn
from biassay.report.charts.matrix import MatrixCell, matrix
from biassay.report.charts.style import PRINT, Style
from biassay.report.publish.agreement_table import agreement_table
from biassay.report.publish.citations import citations, to_bibtex, to_text
from biassay.report.publish.difference_table import difference_table
from biassay.report.publish.latex import to_latex
from biassay.report.publish.layout import Table
from biassay.report.publish.markdown import escape, to_markdown
from biassay.report.publish.model_card import model_card
from biassay.report.publish.tables import associations_table, contexts_table
from biassay.report.publish.tsv import nine_columns
from biassay.report.sections.associations import distribution_figures, forest_figures
from biassay.report.sections.comparison import difference_figures
from biassay.report.sections.discovery import roc_figures
from biassay.report.sections.stereotypes import profile_figures
from biassay.report.view import NOT_MEASURED, RunView, found_code
from biassay.report.words import decimals
from biassay.report.words_found import effect_by_word
from biassay.results.comparison import Comparison
from biassay.results.discovery import Discovery
from biassay.results.gathering import Found, Gathered
from biassay.results.stereotypes import Stereotypes

__all__ = ["FIGURE_FORMATS", "publish"]

FIGURE_FORMATS = ("svg", "pdf", "png")
_UNSAFE = re.compile(r"[^A-Za-z0-9.+-]+")
_LONGEST = 80

Drawing = Callable[[Style], Figure]


def publish(
    folder: Path,
    together: Sequence[Gathered],
    others: Mapping[str, Found],
    comparison: Comparison | None = None,
    *,
    formats: Sequence[str] = FIGURE_FORMATS,
    told: Callable[[str, int, int], None] | None = None,
) -> list[Path]:
    """Write everything into ``folder``, which is made; the files written. ``told`` hears how the figures get on."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    used: set[str] = set()

    def write(name: str, ending: str, content: str | bytes, below: str = "") -> None:
        path = folder / below / _free(name, ending, below, used)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content.encode() if isinstance(content, str) else content)
        written.append(path)

    seen: dict[str, int] = {}
    for name, table in _tables(together, others, comparison):
        seen[name] = seen.get(name, 0) + 1
        reference = f"tab:{name}" if seen[name] == 1 else f"tab:{name}-{seen[name]}"
        write(name, "tex", to_latex(table, reference))
        write(name, "md", to_markdown(table))
    for gathered in together:
        kind = "texts" if gathered.run.manifest.contexts is None else "contexts"
        write(f"results-{kind}" if len(together) > 1 else "results", "tsv", nine_columns(gathered.run))
    found = [*(gathered.run for gathered in together), *others.values()]
    cited = citations(*found)
    write("citations", "md", "".join(f"- {escape(line)}\n" for line in to_text(cited).splitlines()))
    write("references", "bib", to_bibtex(cited))
    for one in found:
        for label in _labels(one):
            write(f"model-card-{label or _words_card(one)}", "md", model_card(one, label))
    figures = list(_figures(together, others, comparison)) if can_draw() else []
    for done, make in enumerate(figures):
        if told is not None:
            told("figures", done + 1, len(figures))
        figure = make(PRINT)
        for form in dict.fromkeys((*formats, "vl.json")):
            write(figure.name, form, drawn(figure, form), "figures")
    return written


def _free(name: str, ending: str, below: str, used: set[str]) -> str:
    """A name that any file system takes, and that no other file of the folder has."""
    stem = _UNSAFE.sub("_", name)[:_LONGEST].strip("_.") or "unnamed"
    number, candidate = 1, stem
    while f"{below}/{candidate}.{ending}".lower() in used:  # some file systems take a and A for the same
        number += 1
        candidate = f"{stem}-{number}"
    used.add(f"{below}/{candidate}.{ending}".lower())
    return f"{candidate}.{ending}"


def _words_card(found: Found) -> str:
    return f"words-{found.manifest.models[0].name}" if found.manifest.models else "words"


def _labels(found: Found) -> list[str | None]:
    if isinstance(found, Discovery):
        return [None]
    if isinstance(found, Stereotypes):
        return [result.label for result in found.results]
    return list(RunView(Gathered(found, {"": found})).models)


def _tables(
    together: Sequence[Gathered], others: Mapping[str, Found], comparison: Comparison | None
) -> Iterator[tuple[str, Table]]:
    differences = None if comparison is None else difference_table(comparison)
    if differences is not None:
        yield "differences", differences
    for gathered in together:
        if gathered.run.manifest.contexts is None:
            yield "associations-by-word", associations_table(gathered.run, "word")
            yield "associations-by-text", associations_table(gathered.run, "text")
        else:
            yield "associations-over-contexts", contexts_table(gathered.run)
    for found in others.values():
        table = agreement_table(found) if isinstance(found, Stereotypes) else None
        if table is not None:
            yield "agreement-with-people", table


def _figures(
    together: Sequence[Gathered], others: Mapping[str, Found], comparison: Comparison | None
) -> Iterator[Drawing]:
    if comparison is not None:
        yield from (make for _, make in difference_figures(comparison))
    for gathered in together:
        view = RunView(gathered)
        yield from (make for _, make in forest_figures(view))
        yield _matrix_of(view)
        yield from (make for _, _, make in distribution_figures(view))
    for found in others.values():
        if isinstance(found, Discovery):
            yield from (make for _, make in roc_figures(found))
        elif isinstance(found, Stereotypes):
            for result in found.results:
                for record in result.measures:
                    yield from (make for _, make in profile_figures(found, result, record))


def _matrix_of(view: RunView) -> Drawing:
    kind = "contexts" if view.over_contexts else "texts"
    cells = [
        MatrixCell(
            view.label(r),
            r.test,
            None if (code := found_code(r, by_word=True)) == NOT_MEASURED else code,
            "" if r.effect_size is None else decimals(effect_by_word(r)),
            view.tip(r),
        )
        for r in view.run.results
    ]
    tests = [test.test for test in view.tests]
    return lambda style: matrix(f"matrix-{kind}", "Significance by word", cells, tests, view.models, style)
