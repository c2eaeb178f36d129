"""Runs of any study shown, as commands show them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from biassay.pages.html import render_page
from biassay.pages.publish.citations import Citation, citations
from biassay.pages.publish.files import publish
from biassay.pages.publish.model_card import model_card
from biassay.results.comparison import Comparison
from biassay.results.data import RunData
from biassay.runs.showing import gather, presented, presenter_of, print_run


def compared(comparison: Comparison | None) -> Any:
    return None if comparison is None else (presenter_of(comparison.study), comparison)


def page_of(runs: Mapping[str, RunData], comparison: Comparison | None = None) -> str:
    return render_page(presented(gather(runs)), compared(comparison))


def write_all(
    folder: Path, runs: Mapping[str, RunData], comparison: Comparison | None = None, **given: Any
) -> list[Path]:
    return publish(folder, presented(gather(runs)), compared(comparison), **given)


def cited(*runs: RunData) -> tuple[Citation, ...]:
    shown = [(presenter_of(run.manifest.study), run) for run in runs]
    return citations(sorted(shown, key=lambda one: not one[0].joins_runs))


def card_of(run: RunData, model: str | None = None) -> str:
    return model_card(presenter_of(run.manifest.study), run, model)


def printed(run: RunData, width: int = 160, **shown: Any) -> str:
    out = io.StringIO()
    print_run(run, Console(file=out, width=width), **shown)
    return out.getvalue()
