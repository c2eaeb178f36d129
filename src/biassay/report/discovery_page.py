"""A discovery as one page that opens without a network."""

from __future__ import annotations

from pathlib import Path

from biassay.files import write_atomically
from biassay.report.html import REPORT, page_environment
from biassay.report.roc import roc_figure
from biassay.report.words_discovery import (
    MEANING_OF_WORDS,
    VALIDATION_COLUMNS,
    best_words,
    columns_of,
    discovery_headline,
    discovery_summary,
    lost_in,
    most_against,
    number,
    q_text,
    tasks,
)
from biassay.results.discovery import Discovery

__all__ = ["render_discovery", "write_discovery"]

_SHOWN = 100


def render_discovery(discovery: Discovery) -> str:
    """The page as text. Words come from outside and are escaped."""
    environment = page_environment()
    environment.globals.update(number=number, q_text=q_text, most_against=most_against)
    groups = [
        {
            "found": found,
            "tasks": [(task, roc_figure(task.curve, f"{found.label}, {task.name}")) for task in tasks(found)],
            "lists": [
                ("Associated words", found.num_associated, best_words(found, emergent=False, top=_SHOWN)),
                ("Emergent words", found.num_emergent, best_words(found, emergent=True, top=_SHOWN)),
            ],
        }
        for found in discovery.results
    ]
    return environment.get_template("discovery.html").render(
        manifest=discovery.manifest,
        labels=[record.name for record in discovery.manifest.models],
        headline=discovery_headline(discovery),
        summary=discovery_summary(discovery),
        meaning=MEANING_OF_WORDS,
        columns=columns_of(discovery),
        validation_columns=VALIDATION_COLUMNS,
        groups=groups,
        lost=lost_in(discovery),
        refused=[],
    )


def write_discovery(discovery: Discovery, folder: Path) -> Path:
    path = folder / REPORT
    write_atomically(path, render_discovery(discovery).encode())
    return path
