"""Runs of any study shown, as commands show them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from biassay.reporting.html import render_page
from biassay.reporting.methods import Citation, collect_citations
from biassay.reporting.model_card import render_model_card
from biassay.reporting.publication import publish
from biassay.results.comparison import Comparison
from biassay.results.run_data import RunData
from biassay.runs.reports import get_presenter, group_runs, print_run, with_presenters


def compared(comparison: Comparison | None) -> Any:
    return None if comparison is None else (get_presenter(comparison.study), comparison)


def page_of(runs: Mapping[str, RunData], comparison: Comparison | None = None) -> str:
    return render_page(with_presenters(group_runs(runs)), compared(comparison))


def write_all(
    folder: Path, runs: Mapping[str, RunData], comparison: Comparison | None = None, **given: Any
) -> list[Path]:
    return publish(folder, with_presenters(group_runs(runs)), compared(comparison), **given)


def cited(*runs: RunData) -> tuple[Citation, ...]:
    shown = [(get_presenter(run.manifest.study), run) for run in runs]
    return collect_citations(sorted(shown, key=lambda one: not one[0].joins_runs))


def card_of(run: RunData, model: str | None = None) -> str:
    return render_model_card(get_presenter(run.manifest.study), run, model)


def printed(run: RunData, width: int = 160, **shown: Any) -> str:
    out = io.StringIO()
    print_run(run, Console(file=out, width=width), **shown)
    return out.getvalue()
