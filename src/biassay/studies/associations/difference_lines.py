"""Differences between models in the terminal: a line for every test, with its verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from biassay.files import printable
from biassay.pages.comparing import print_differences
from biassay.pages.formats import decimals, interval_text
from biassay.pages.gate import TOLD
from biassay.results.comparison import Comparison
from biassay.results.verdicts import Outcome, Verdict
from biassay.studies.associations.compare import AssociationDifference
from biassay.studies.associations.differences import (
    CHECKS,
    MEANING_OF_DIFFERENCES,
    apart,
    difference_statements,
    family_of,
    parted,
    rows_of,
)
from biassay.studies.associations.marks import SIGNS

__all__ = ["print_association_differences"]

_STYLES: dict[Outcome, str] = {"worse": "bold red", "lost": "bold red", "no worse": "green"}
_WIDEST = 36


def print_association_differences(found: Comparison, console: Console) -> None:
    """Print a table for each model, worse tests first, then checks of the method, and the differences in words."""
    before: list[RenderableType] = []
    for model in found.models:
        before += [Text(printable(model), style="bold")] * (len(found.models) > 1)
        before.append(_judged([verdict for verdict in found.verdicts if verdict.model == model]))
    _, checks = parted(rows_of(found))
    before += [Text(CHECKS, style="bold"), _checks(checks, len(found.models) > 1)] if checks else []
    before += [Text(line, style="dim") for line in _notes(found, bool(checks))]
    print_differences(found, console, difference_statements(found), before, [Text(MEANING_OF_DIFFERENCES, style="dim")])


def _judged(verdicts: Sequence[Verdict]) -> Table:
    table = _table("verdict", "test", "old d", "new d", "growth of |d|", "interval", "80% power")
    for outcome in TOLD:
        for verdict in sorted((v for v in verdicts if v.outcome == outcome), key=lambda v: -(v.difference or 0.0)):
            table.add_row(
                Text(outcome, style=_STYLES.get(outcome, "")), Text(printable(verdict.test)), *_numbers(verdict)
            )
    return table


def _numbers(verdict: Verdict) -> Iterator[str]:
    yield from map(decimals, (verdict.effect_baseline, verdict.effect_model, verdict.difference))
    yield "–" if verdict.low is None else interval_text(verdict.low, verdict.high)
    yield decimals(verdict.detectable)


def _checks(rows: Sequence[AssociationDifference], several: bool) -> Table:
    table = _table("test", *["model"] * several, "old d", "new d", "difference", "95%, paired")
    for row in rows:
        names = (row.test, row.model) if several else (row.test,)
        effects = decimals(row.effect_baseline), decimals(row.effect_model)
        difference = decimals(row.difference) + SIGNS[apart(row)]
        interval = "–" if row.interval_low is None else interval_text(row.interval_low, row.interval_high)
        table.add_row(*(Text(printable(name)) for name in names), *effects, difference, interval)
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in columns:
        if name in ("verdict", "test", "model"):
            table.add_column(name, max_width=_WIDEST if name == "test" else None, overflow="fold")
        else:
            table.add_column(name, justify="right", no_wrap=True)
    return table


def _notes(found: Comparison, checks: bool) -> Iterator[str]:
    """What the numbers are, and why some are not there."""
    family = next((verdict for verdict in found.verdicts if verdict.family), None)
    if family is not None:
        confidence = f"{1.0 - family.level:.4g}"
        together = f"all {family.family} hold together" if family.family != 1 else "it holds"
        yield f"interval: {together} with {confidence} confidence; margin {family.margin:g}"
        yield "80% power: the true growth that would be called worse in 80 of 100 comparisons; –: none would"
    if checks:
        yield "* the interval leaves out zero   ** so does the simultaneous one"
    reasons: dict[str, dict[str, None]] = {}
    told = [(row.reason, row.test) for row in rows_of(found)] + [(v.reason, v.test) for v in found.verdicts]
    for reason, test in told:
        if reason:
            reasons.setdefault(reason, {})[test] = None
    yield from (printable(f"{', '.join(tests)}: {reason}") for reason, tests in reasons.items())
    yield from [family_of(found)] * bool(family_of(found))
