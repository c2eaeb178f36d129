"""Stereotypes as one page that opens without a network."""

from __future__ import annotations

from pathlib import Path

from biassay.files import write_atomically
from biassay.report.html import REPORT, page_environment
from biassay.report.words_stereotypes import (
    MEANING_OF_PROFILES,
    domination,
    interval_text,
    measure_name,
    number,
    p_text,
    stereotypes_headline,
    stereotypes_summary,
    templates_text,
)
from biassay.results.stereotypes import MeasureRecord, Stereotypes

__all__ = ["render_stereotypes", "write_stereotypes"]


def render_stereotypes(found: Stereotypes) -> str:
    """The page as text. Names come from outside and are escaped."""
    environment = page_environment()
    environment.globals.update(
        number=number,
        p_text=p_text,
        interval_text=interval_text,
        measure_name=measure_name,
        domination=domination,
        templates_text=templates_text,
        found=found,
    )
    return environment.get_template("stereotypes.html").render(
        manifest=found.manifest,
        results=found.results,
        labels=[result.label for result in found.results],
        headline=stereotypes_headline(found),
        summary=stereotypes_summary(found),
        meaning=MEANING_OF_PROFILES,
        largest={(r.label, m.measure): _largest(m) for r in found.results for m in r.measures},
        refused=[],
    )


def _largest(record: MeasureRecord) -> float:
    """The largest score of a single group, by which cells are shaded."""
    scores = (abs(score) for p in record.profiles if not p.parts for score in p.scores if score is not None)
    return max(scores, default=1.0) or 1.0


def write_stereotypes(found: Stereotypes, folder: Path) -> Path:
    path = folder / REPORT
    write_atomically(path, render_stereotypes(found).encode())
    return path
