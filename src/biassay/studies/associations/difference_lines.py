"""Differences between models in the terminal: a line for every test, with its verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.text import Text

from biassay.files import printable
from biassay.pages.comparing import print_differences
from biassay.pages.formats import decimals, interval_text
from biassay.pages.gate import TOLD, by_urgency
from biassay.pages.lines import Block, Line
from biassay.pages.overview import CHECKS
from biassay.pages.plain_tables import WIDTH
from biassay.results.comparison import Comparison
from biassay.results.verdicts import Outcome, Verdict
from biassay.studies.associations.compare import AssociationDifference
from biassay.studies.associations.differences import (
    apart,
    difference_statements,
    parted,
    rows_of,
)
from biassay.studies.associations.marks import SIGNS

__all__ = ["print_association_differences"]

_STYLES: dict[Outcome, str] = {"worse": "bold red", "lost": "bold red", "no worse": "green"}
_HEADS = ("old d", "new d", "growth", "interval", "80% power")
_CHECK_HEADS = ("old d", "new d", "difference", "95%, paired")


def print_association_differences(found: Comparison, console: Console) -> None:
    """Print the tests of each model by verdict, worse first, then checks of the method."""
    width = min(WIDTH, console.width)
    before: list[RenderableType] = []
    for model in found.models:
        own = [verdict for verdict in found.verdicts if verdict.model == model]
        before += Block(_HEADS, tuple(_judged(own)), spans=(model,)).render(width) if own else ()
    _, checks = parted(rows_of(found))
    for model in found.models if checks else ():
        lines = tuple(_check(row) for row in checks if row.model == model)
        before += Block(_CHECK_HEADS, (Line(CHECKS), *lines), spans=(model,)).render(width)
    before += [Text(line, style="dim") for line in _notes(found, bool(checks))]
    print_differences(found, console, [] if found.verdicts else difference_statements(found), before)


def _judged(verdicts: Sequence[Verdict]) -> Iterator[Line]:
    for outcome in TOLD:
        own = by_urgency([v for v in verdicts if v.outcome == outcome])
        if own:
            yield Line(f"{outcome[0].upper()}{outcome[1:]} ({len(own)} of {len(verdicts)})")
        for verdict in own:
            style = _STYLES.get(outcome, "")
            yield Line(verdict.title, verdict.test, tuple((text, style) for text in _numbers(verdict)))


def _numbers(verdict: Verdict) -> Iterator[str]:
    yield from map(decimals, (verdict.effect_baseline, verdict.effect_model, verdict.difference))
    yield "–" if verdict.low is None else interval_text(verdict.low, verdict.high)
    yield decimals(verdict.detectable) if verdict.outcome == "cannot tell" else ""


def _check(row: AssociationDifference) -> Line:
    difference = decimals(row.difference) + SIGNS[apart(row)]
    interval = "–" if row.interval_low is None else interval_text(row.interval_low, row.interval_high)
    texts = (decimals(row.effect_baseline), decimals(row.effect_model), difference, interval)
    return Line(row.title, row.test, tuple((text, "") for text in texts))


def _notes(found: Comparison, checks: bool) -> Iterator[str]:
    """What the numbers are, and why some are not there."""
    family = next((verdict for verdict in found.verdicts if verdict.family), None)
    if family is not None:
        confidence = f"{1.0 - family.level:.4g}"
        together = f"all {family.family} hold together" if family.family != 1 else "it holds"
        yield "growth: of |d|, from the old model to the new one"
        yield f"interval: {together} with {confidence} confidence; margin {family.margin:g}"
        yield "80% power: a true growth that would be called worse in 80 of 100 comparisons; –: none would"
    if checks:
        yield "* the interval of the difference leaves out zero"
    reasons: dict[str, dict[str, None]] = {}
    told = [(row.reason, row.test) for row in rows_of(found)] + [(v.reason, v.test) for v in found.verdicts]
    for reason, test in told:
        if reason:
            reasons.setdefault(reason, {})[test] = None
    yield from (printable(f"{', '.join(tests)}: {reason}") for reason, tests in reasons.items())
