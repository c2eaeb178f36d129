"""The summary of a run as a table in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from biassay.files import printable
from biassay.pages.plain_tables import print_run
from biassay.pages.sentences import statements
from biassay.results.data import RunData
from biassay.results.labels import model_key, model_labels
from biassay.studies.associations.findings import findings_in_short
from biassay.studies.associations.lead import Lead, lead_of_table
from biassay.studies.associations.marks import BY_WORD, legend, sides
from biassay.studies.associations.numbers import column_names, numbers_of, other_lead
from biassay.studies.associations.records import Result
from biassay.studies.associations.words import headline, meaning, unfinished
from biassay.studies.associations.words_lost import assumptions, lost_lines

__all__ = ["print_associations", "run_tables"]

_TEST_WIDTH, _BY_WORD_WIDTH = 32, 11
_MODEL_WIDTH = {"crossed": 52, "word": 24, "text": 24}
_Labels = Sequence[tuple[tuple[str, str, str | None], str]]


def print_associations(run: RunData, console: Console) -> None:
    """Print the table, what its signs mean, and the findings in words."""
    shown: list[RenderableType] = [Text(unfinished(run), style="yellow")] if unfinished(run) else []
    signs = "   ".join(filter(None, [legend(run.results), other_lead(run.results), sides(run.results)]))
    shown += [*run_tables(run, console.width), Text(signs, style="dim")]
    labels = model_labels(run)
    reasons = [f"{labels[model_key(r)]}, {r.test}: {r.status}: {r.reason}" for r in run.results if r.reason]
    notes = [*assumptions(run), *lost_lines(run), *reasons]
    print_run(console, headline(run), shown, statements(findings_in_short(run)), notes, [meaning(run)])


def run_tables(run: RunData, width: int) -> Iterator[Table]:
    """Tests down, models across, as many models beside each other as the width holds."""
    labels = list(model_labels(run).items())
    beside = max(1, (width - _TEST_WIDTH) // _MODEL_WIDTH[lead_of_table(run.results)])
    for start in range(0, len(labels), beside):
        yield _table(run, labels[start : start + beside])


def _table(run: RunData, labels: _Labels) -> Table:
    cells = {(r.test, model_key(r)): r for r in run.results}
    names, alone = column_names(run.results), len(labels) == 1
    table = Table(title=Text(printable(labels[0][1])) if alone else None, title_justify="left", title_style="bold")
    table.add_column("test", overflow="fold")
    for _, label in labels:
        above = "" if alone else f"{printable(label)}\n"
        table.add_column(Text(f"{above}{names[0]}"), justify="right", overflow="fold", min_width=6, max_width=20)
        for name in names[1:]:
            fits = {"width": _BY_WORD_WIDTH} if name == BY_WORD else {"no_wrap": True}
            table.add_column(name, justify="right", **fits)
    lead = lead_of_table(run.results)
    people = dict.fromkeys((r.test, r.title) for r in run.results if r.about != "method")
    checks = dict.fromkeys((r.test, r.title) for r in run.results if r.about == "method")
    for test, title in (*people, *checks):
        if checks and people and (test, title) == next(iter(checks)):
            table.add_section()
        rows = [cells.get((test, key)) for key, _ in labels]
        what = f"check of the method: {title}" if (test, title) in checks else title
        table.add_row(
            Text.assemble(printable(test), "\n", (printable(what), "dim")),
            *(text for row in rows for text in _cells(row, lead)),
        )
    return table


def _cells(result: Result | None, lead: Lead) -> list[str]:
    first, *others = ("".join(number) for number in numbers_of(result, lead))
    return [result.status if result is not None and result.effect_size is None else first, *others]
