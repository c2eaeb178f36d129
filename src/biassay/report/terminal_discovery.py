"""A discovery as tables in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from biassay.report.words_discovery import (
    COLUMNS,
    MEANING_OF_WORDS,
    best_words,
    discovery_headline,
    discovery_summary,
    lost_in,
    number,
    q_text,
    tasks,
)
from biassay.results.discovery import Discovery, GroupFindings, WordFound

__all__ = ["print_discovery"]


def print_discovery(discovery: Discovery, console: Console, *, top: int) -> None:
    """Print what was validated, the words that rank highest, what the columns mean, and the note."""
    parts: list[RenderableType] = [Text(discovery_headline(discovery), style="bold")]
    for found in discovery.results:
        if tasks(found):
            parts += [_title(f"{found.label}: words that people rated"), _validation_table(found)]
        for emergent, what in ((False, "associated"), (True, "emergent")):
            words = best_words(found, emergent=emergent, top=top)
            total = found.num_emergent if emergent else found.num_associated
            parts.append(_title(f"{found.label}: {what} words, the first {len(words)} of {total:,}"))
            parts.append(_word_table(found, words) if words else Text("none"))
    parts += [Text(f"{name}: {sentence}", style="dim") for name, sentence in COLUMNS]
    parts.append(Text(""))
    parts += [Text(sentence) for sentence in discovery_summary(discovery)]
    parts += [Text(line, style="yellow") for line in lost_in(discovery)]
    parts += [Text(MEANING_OF_WORDS, style="dim"), Text(discovery.note, style="bold")]
    console.print(Group(*parts))


def _title(text: str) -> Text:
    return Text(f"\n{text}", style="bold")


def _validation_table(found: GroupFindings) -> Table:
    table = Table()
    for name in ("", "area", "threshold", "detected", "accuracy", "naming none", "precision", "recall", "chance"):
        table.add_column(name, justify="left" if name in ("", "detected") else "right")
    for task in tasks(found):
        curve = task.curve
        precision = "–" if curve.precision is None else f"{curve.precision:.1%}"
        shares = (f"{value:.1%}" for value in (curve.accuracy, task.none_detected))
        rates = (f"{value:.1%}" for value in (curve.recall, curve.chance))
        table.add_row(task.name, f"{curve.area:.3f}", f"{curve.chosen:g}", task.found, *shares, precision, *rates)
    return table


def _word_table(found: GroupFindings, words: Sequence[WordFound]) -> Table:
    table = Table()
    table.add_column("word", overflow="fold")
    for name in ("score", "q"):
        table.add_column(name, justify="right", no_wrap=True)
    for other in found.others:
        table.add_column(f"against\n{escape(other)}", justify="right", min_width=8)
    for name in ("categories", "q excess"):
        table.add_column(name, justify="right")
    for word in words:
        largest = max((score for score in word.constituents if score is not None), default=None)
        table.add_row(
            escape(word.word),
            number(word.score),
            q_text(word.q_value),
            *map(number, word.scores),
            number(largest),
            q_text(word.q_value_emergent),
        )
    return table
