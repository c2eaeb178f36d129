"""The summary of a run as a table in the terminal."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from biassay.report.words import LEGEND, MEANING, format_p, headline, mark, model_label, summary
from biassay.results.records import Result
from biassay.results.run import Run

__all__ = ["print_run", "run_table"]


def print_run(run: Run, console: Console) -> None:
    """Print the table, what its signs mean, and the findings in words."""
    parts: list[RenderableType] = [run_table(run), Text(LEGEND, style="dim"), Text("")]
    parts.extend(Text(sentence) for sentence in summary(run))
    parts.extend(
        Text(f"{model_label(result)}, {result.test}: {result.status}: {result.reason}", style="yellow")
        for result in run.results
        if result.reason
    )
    parts.append(Text(MEANING, style="dim"))
    console.print(Group(*parts))


def run_table(run: Run) -> Table:
    """Tests down, models across; effect size with its marks, and the p-value over words."""
    labels = list(dict.fromkeys(model_label(r) for r in run.results))
    cells = {(r.test, model_label(r)): r for r in run.results}
    table = Table(title=headline(run), title_justify="left")
    table.add_column("test", overflow="fold")
    table.add_column("first targets → first attributes", overflow="fold")
    for label in labels:
        table.add_column(f"{escape(label)}\neffect", justify="right", no_wrap=True)
        table.add_column("p by text", justify="right", no_wrap=True)
        table.add_column("p by word", justify="right", no_wrap=True)
    for test in dict.fromkeys(r.test for r in run.results):
        rows = [cells.get((test, label)) for label in labels]
        first = next(r for r in rows if r is not None)
        table.add_row(
            escape(test), escape(f"{first.targ1} → {first.attr1}"), *(text for r in rows for text in _cells(r))
        )
    return table


def _cells(result: Result | None) -> tuple[str, str, str]:
    if result is None:
        return "", "", ""
    if result.effect_size is None:
        return result.status, "–", "–"
    return (
        f"{result.effect_size:.2f}{mark(result):<3}",
        format_p(result.p_value, result.log10_p_value),
        format_p(result.p_value_by_word, result.log10_p_value_by_word),
    )
