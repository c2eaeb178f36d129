"""Runs of any study shown, as the pipeline shows them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from biassay.report.html import render_page
from biassay.report.publish import Citation, citations, model_card
from biassay.report.publish.files import publish
from biassay.results.comparison import Comparison
from biassay.results.gathering import AnyRun
from biassay.studies.presenters import gather, presented, presenter_of


def compared(comparison: Comparison | None) -> Any:
    return None if comparison is None else (presenter_of(comparison.study), comparison)


def page_of(runs: Mapping[str, AnyRun], comparison: Comparison | None = None) -> str:
    return render_page(presented(gather(runs)), compared(comparison))


def write_all(
    folder: Path, runs: Mapping[str, AnyRun], comparison: Comparison | None = None, **given: Any
) -> list[Path]:
    return publish(folder, presented(gather(runs)), compared(comparison), **given)


def cited(*runs: AnyRun) -> tuple[Citation, ...]:
    shown = [(presenter_of(run.manifest.kind), run) for run in runs]
    return citations(sorted(shown, key=lambda one: not one[0].joins_runs))


def card_of(run: AnyRun, model: str | None = None) -> str:
    return model_card(presenter_of(run.manifest.kind), run, model)
