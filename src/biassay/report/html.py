"""The run as one page that opens without a network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biassay.files import write_atomically
from biassay.report.distribution import P_NAMES, figure_of
from biassay.report.words import (
    LEGEND,
    MEANING,
    cannot_reach,
    headline,
    model_key,
    model_labels,
    p_by_text,
    p_by_word,
    size_word,
    summary,
)
from biassay.report.words_contexts import COLUMNS, MEANING_OVER_CONTEXTS, context_range, contexts_found
from biassay.results.making import is_of
from biassay.results.run import Run

if TYPE_CHECKING:
    import jinja2

__all__ = ["REPORT", "page_environment", "render_report", "write_report"]

REPORT = "report.html"


def page_environment() -> jinja2.Environment:
    """Templates of pages; whatever they are given is escaped."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader("biassay.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render_report(run: Run) -> str:
    """The page as text. Names and reasons come from outside and are escaped."""
    environment = page_environment()
    labels = model_labels(run)
    environment.globals.update(
        p_by_text=p_by_text,
        p_by_word=p_by_word,
        model_label=lambda result: labels[model_key(result)],
        size_word=size_word,
        context_range=context_range,
    )
    own = _of_texts(run) if run.manifest.contexts is None else _of_contexts(run, labels)
    page = "run.html" if run.manifest.contexts is None else "contexts.html"
    return environment.get_template(page).render(
        run=run,
        manifest=run.manifest,
        headline=headline(run),
        summary=summary(run),
        legend=LEGEND,
        labels=list(labels.values()),
        tests=list({r.test: r for r in run.results}.values()),
        cells={(r.test, labels[model_key(r)]): r for r in run.results},
        refused=[r for r in run.results if r.reason],
        **own,
    )


def _of_texts(run: Run) -> dict[str, Any]:
    """What the page of a run over words and sentences has beside the tables."""
    return {
        "meaning": MEANING,
        "disagreeing": [
            r for r in run.results if r.significant and r.significant_by_word is False and not cannot_reach(r)
        ],
        "lossy": [r for r in run.results if any(r.lost.values())],
    }


def _of_contexts(run: Run, labels: Mapping[tuple[str, str, str | None], str]) -> dict[str, Any]:
    """What the page of a run over contexts has beside the tables."""
    figures = []
    for place, record in enumerate(run.manifest.models):
        of_model = [
            (r, figure_of(run.samples[place, r.test], r.effect_size, r.test))
            for r in run.results
            if is_of(r, record) and r.effect_size is not None and (place, r.test) in run.samples
        ]
        if of_model:
            figures.append((labels[model_key(of_model[0][0])], of_model))
    return {
        "meaning": MEANING_OVER_CONTEXTS,
        "columns": COLUMNS,
        "figures": figures,
        "p_names": P_NAMES,
        "found": contexts_found(run, labels),
    }


def write_report(run: Run, folder: Path) -> Path:
    path = folder / REPORT
    write_atomically(path, render_report(run).encode())
    return path
