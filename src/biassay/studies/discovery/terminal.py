"""A discovery as tables in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from biassay.report.formats import printable
from biassay.results.discovery import Discovery, GroupFindings, WordFound
from biassay.studies.discovery.words import (
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

__all__ = ["print_discovery"]

_WIDE = 130  # columns of a terminal from which on there is room for the scores against every group


def print_discovery(discovery: Discovery, console: Console, *, top: int, only: Sequence[str] | None = None) -> None:
    """Print what was validated, the words that rank highest, what the columns mean, and the note.

    ``only`` names the groups to print, all by default.
    """
    shown = [found for found in discovery.results if only is None or found.group in only]
    parts: list[RenderableType] = [Text(discovery_headline(discovery), style="bold")]
    for found in shown:
        if tasks(found):
            parts += [_title(f"{found.label}: words with known truth"), _validation_table(found)]
        for emergent, what in ((False, "associated"), (True, "emergent")):
            words = best_words(found, emergent=emergent, top=top)
            total = found.num_emergent if emergent else found.num_associated
            count = f"{total:,}" if len(words) == total else f"the first {len(words)} of {total:,}"
            parts.append(_title(f"{found.label}: {what} words ({count if words else 'none'})"))
            if words:
                parts.append(_word_table(found, words, wide=console.width >= _WIDE))
    notes = columns_of(discovery) + (VALIDATION_COLUMNS if any(map(tasks, shown)) else ())
    parts += [Text(""), *(Text(f"{name}: {sentence}", style="dim") for name, sentence in notes), Text("")]
    parts += [Text(sentence) for sentence in discovery_summary(discovery, only)]
    parts += [Text(printable(line), style="yellow") for line in lost_in(discovery)]
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


def _word_table(found: GroupFindings, words: Sequence[WordFound], *, wide: bool) -> Table:
    """With the scores against every group where there is room, else with the group that the score comes from."""
    table = Table()
    table.add_column("word", overflow="fold", min_width=10)
    table.add_column("score", justify="right", no_wrap=True)
    if not wide:
        table.add_column("against", overflow="fold")
    table.add_column("q", justify="right", no_wrap=True)
    for other in found.others if wide else ():
        table.add_column(f"against {_breakable(other)}", justify="right", min_width=8)
    for name in ("categories", "EIBD", "q excess"):
        table.add_column(name, justify="right", no_wrap=True)
    for word in words:
        largest = max((score for score in word.constituents if score is not None), default=None)
        table.add_row(
            Text(printable(word.word)),
            number(word.score),
            *(() if wide else (Text(most_against(found, word)),)),
            q_text(word.q_value),
            *(map(number, word.scores) if wide else ()),
            number(largest),
            "yes" if word.eibd else "",
            q_text(word.q_value_excess),
        )
    return table


def _breakable(label: str) -> str:
    """A heading of a column; names joined by hyphens may go on in the next line."""
    return escape(label.replace("-", "- ") if " " not in label else label)
