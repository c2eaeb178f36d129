"""A search for the words of groups as tables in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from biassay.pages.formats import printable
from biassay.results.data import RunData
from biassay.studies.discovery.records import WordRow
from biassay.studies.discovery.view import GroupView, groups_of
from biassay.studies.discovery.words import (
    MEANING_OF_WORDS,
    VALIDATION_COLUMNS,
    columns_of,
    discovery_headline,
    discovery_summary,
    lost_in,
    number,
    q_text,
)

__all__ = ["print_discovery"]

_WIDE = 130  # columns of a terminal from which on there is room for the scores against every group


def print_discovery(run: RunData, console: Console, *, top: int, only: Sequence[str] | None = None) -> None:
    """Print what was validated, the words that rank highest, what the columns mean, and the note.

    ``only`` names the groups to print, all by default.
    """
    shown = [view for view in groups_of(run) if only is None or view.row.group in only]
    parts: list[RenderableType] = [Text(discovery_headline(run), style="bold")]
    for view in shown:
        if view.tasks:
            parts += [_title(f"{view.title}: words with known truth"), _validation_table(view)]
        for emergent, what in ((False, "associated"), (True, "emergent")):
            words = view.best_words(emergent=emergent, top=top)
            total = view.row.num_emergent if emergent else view.row.num_associated
            count = f"{total:,}" if len(words) == total else f"the first {len(words)} of {total:,}"
            parts.append(_title(f"{view.title}: {what} words ({count if words else 'none'})"))
            if words:
                parts.append(_word_table(view, words, wide=console.width >= _WIDE))
    notes = columns_of(run.manifest.settings) + (VALIDATION_COLUMNS if any(view.tasks for view in shown) else ())
    parts += [Text(""), *(Text(f"{name}: {sentence}", style="dim") for name, sentence in notes), Text("")]
    parts += [Text(sentence) for sentence in discovery_summary(run, only)]
    parts += [Text(printable(line), style="yellow") for line in lost_in(run)]
    parts += [Text(MEANING_OF_WORDS, style="dim"), Text(run.manifest.inputs.note, style="bold")]
    console.print(Group(*parts))


def _title(text: str) -> Text:
    return Text(f"\n{text}", style="bold")


def _validation_table(view: GroupView) -> Table:
    table = Table()
    for name in ("", "area", "threshold", "detected", "accuracy", "naming none", "precision", "recall", "chance"):
        table.add_column(name, justify="left" if name in ("", "detected") else "right")
    for task in view.tasks:
        curve = task.row
        precision = "–" if curve.precision is None else f"{curve.precision:.1%}"
        shares = (f"{value:.1%}" for value in (curve.accuracy, task.none_detected))
        rates = (f"{value:.1%}" for value in (curve.recall, curve.chance))
        table.add_row(task.name, f"{curve.area:.3f}", f"{curve.chosen:g}", task.found, *shares, precision, *rates)
    return table


def _word_table(view: GroupView, words: Sequence[WordRow], *, wide: bool) -> Table:
    """With the scores against every group where there is room, else with the group that the score comes from."""
    table = Table()
    table.add_column("word", overflow="fold", min_width=10)
    table.add_column("score", justify="right", no_wrap=True)
    if not wide:
        table.add_column("against", overflow="fold")
    table.add_column("q", justify="right", no_wrap=True)
    for other in view.others.values() if wide else ():
        table.add_column(f"against {_breakable(other)}", justify="right", min_width=8)
    for name in ("categories", "EIBD", "q excess"):
        table.add_column(name, justify="right", no_wrap=True)
    for word in words:
        largest = max((score for score in word.constituents.values() if score is not None), default=None)
        table.add_row(
            Text(printable(word.word)),
            number(word.score),
            *(() if wide else (Text(view.most_against(word)),)),
            q_text(word.q_value),
            *(map(number, word.scores.values()) if wide else ()),
            number(largest),
            "yes" if word.eibd else "",
            q_text(word.q_value_excess),
        )
    return table


def _breakable(label: str) -> str:
    """A heading of a column; names joined by hyphens may go on in the next line."""
    return escape(label.replace("-", "- ") if " " not in label else label)
