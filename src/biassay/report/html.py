"""The run as one page that opens without a network."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from biassay.files import write_atomically
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
from biassay.results.run import Run

__all__ = ["REPORT", "render_report", "write_report"]

REPORT = "report.html"


def render_report(run: Run) -> str:
    """The page as text. Names and reasons come from outside and are escaped."""
    import jinja2

    source = (resources.files("biassay.report") / "templates" / "run.html").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    labels = model_labels(run)
    environment.globals.update(
        p_by_text=p_by_text,
        p_by_word=p_by_word,
        model_label=lambda result: labels[model_key(result)],
        size_word=size_word,
    )
    return environment.from_string(source).render(
        run=run,
        manifest=run.manifest,
        headline=headline(run),
        summary=summary(run),
        legend=LEGEND,
        meaning=MEANING,
        labels=list(labels.values()),
        tests=list({r.test: r for r in run.results}.values()),
        cells={(r.test, labels[model_key(r)]): r for r in run.results},
        refused=[r for r in run.results if r.reason],
        disagreeing=[
            r for r in run.results if r.significant and r.significant_by_word is False and not cannot_reach(r)
        ],
        lossy=[r for r in run.results if any(r.lost.values())],
    )


def write_report(run: Run, folder: Path) -> Path:
    path = folder / REPORT
    write_atomically(path, render_report(run).encode())
    return path
