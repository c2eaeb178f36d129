"""The summary of a run as a table in the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from biassay.files import printable
from biassay.pages.formats import decimals, interval_text
from biassay.pages.plain_tables import print_run
from biassay.pages.sentences import statements
from biassay.results.data import RunData
from biassay.results.labels import model_key, model_labels
from biassay.studies.associations.findings import findings_in_short
from biassay.studies.associations.marks import LEGEND, p_by_text, p_by_word
from biassay.studies.associations.records import Result
from biassay.studies.associations.words import headline, meaning, unfinished
from biassay.studies.associations.words_contexts import COLUMNS
from biassay.studies.associations.words_lost import assumptions, lost_lines

__all__ = ["print_associations", "run_tables"]

_TEST_WIDTH, _MODEL_WIDTH = 46, 38
_CONTEXT_MODEL_WIDTH = 56


def print_associations(run: RunData, console: Console) -> None:
    """Print the table, what its signs mean, and the findings in words."""
    shown: list[RenderableType] = [Text(unfinished(run), style="yellow")] if unfinished(run) else []
    shown += [*run_tables(run, console.width), Text(LEGEND, style="dim")]
    if run.manifest.inputs.contexts is not None:
        shown += [Text(f"{name}: {sentence}", style="dim") for name, sentence in COLUMNS[:3]]
    labels = model_labels(run)
    reasons = [f"{labels[model_key(r)]}, {r.test}: {r.status}: {r.reason}" for r in run.results if r.reason]
    notes = [*assumptions(run), *lost_lines(run), *reasons]
    print_run(console, headline(run), shown, statements(findings_in_short(run)), notes, [meaning(run)])


def run_tables(run: RunData, width: int) -> Iterator[Table]:
    """Tests down, models across, as many models beside each other as the width holds."""
    labels = list(model_labels(run).items())
    over_contexts = run.manifest.inputs.contexts is not None
    beside = max(1, (width - _TEST_WIDTH) // (_CONTEXT_MODEL_WIDTH if over_contexts else _MODEL_WIDTH))
    for start in range(0, len(labels), beside):
        yield _table(run, labels[start : start + beside])


def _table(run: RunData, labels: list[tuple[tuple[str, str, str | None], str]]) -> Table:
    cells = {(r.test, model_key(r)): r for r in run.results}
    over_contexts = run.manifest.inputs.contexts is not None
    table = Table(show_lines=False)
    table.add_column("test", overflow="fold")
    for _, label in labels:
        table.add_column(Text(f"{printable(label)}\neffect"), justify="right", overflow="fold", min_width=9)
        if over_contexts:
            table.add_column("\n95% over words", justify="right", no_wrap=True)
        table.add_column("\np, paper's" if over_contexts else "\np by text", justify="right", no_wrap=True)
        table.add_column("\np by word", justify="right", no_wrap=True)
    for test, title in dict.fromkeys((r.test, r.title) for r in run.results):
        rows = [cells.get((test, key)) for key, _ in labels]
        table.add_row(
            Text.assemble(printable(test), "\n", (printable(title), "dim")),
            *(text for r in rows for text in _cells(r, over_contexts)),
        )
    return table


def _cells(result: Result | None, over_contexts: bool) -> tuple[str, ...]:
    if result is None:
        return ("",) * (4 if over_contexts else 3)
    interval = (_interval(result),) if over_contexts else ()
    if result.effect_size is None:
        return result.status, *interval, "–", "–"
    return decimals(result.effect_size), *interval, p_by_text(result), p_by_word(result)


def _interval(result: Result) -> str:
    found = result.contextual
    return "–" if found is None else interval_text(found.interval_low, found.interval_high)
