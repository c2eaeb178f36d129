"""Differences between models in the terminal: a line for every test, with its verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.text import Text

from biassay.files import printable
from biassay.pages.comparing import print_differences
from biassay.pages.formats import decimals, interval_text
from biassay.pages.gate import by_urgency, effect_text
from biassay.pages.lines import Block, Line
from biassay.pages.overview import CHECKS
from biassay.pages.plain_tables import WIDTH
from biassay.results.comparison import Comparison
from biassay.results.verdicts import OUTCOMES, Outcome, Verdict, outcome_name
from biassay.studies.associations.compare import AssociationDifference
from biassay.studies.associations.differences import (
    apart,
    difference_statements,
    parted,
    rows_of,
)
from biassay.studies.associations.marks import SIGNS

__all__ = ["print_association_differences"]

_STYLES: dict[Outcome, str] = {"worse": "bold red", "missing": "bold red", "better": "green", "no_worse": "green"}
_HEADS = ("old", "new", "growth", "interval", "80% power")
_CHECK_HEADS = ("old", "new", "difference", "95%, paired")


def print_association_differences(found: Comparison, console: Console) -> None:
    """Print the tests of each model by verdict, worse first, then checks of the method."""
    width = min(WIDTH, console.width)
    before: list[RenderableType] = []
    for model in found.models:
        own = [verdict for verdict in found.verdicts if verdict.model == model]
        before += Block(_HEADS, tuple(_judged(own)), spans=(model,), codes=True).render(width) if own else ()
    _, checks = parted(rows_of(found))
    for model in found.models if checks else ():
        lines = tuple(_check(row) for row in checks if row.model == model)
        before += Block(_CHECK_HEADS, (Line(CHECKS), *lines), spans=(model,), codes=True).render(width)
    before += [Text(line, style="dim") for line in _notes(found, bool(checks))]
    print_differences(found, console, [] if found.verdicts else difference_statements(found), before)


def _judged(verdicts: Sequence[Verdict]) -> Iterator[Line]:
    deciding = [verdict for verdict in verdicts if verdict.decides or verdict.outcome == "missing"]
    for outcome in OUTCOMES:
        own = by_urgency([v for v in deciding if v.outcome == outcome])
        if own:
            yield Line(f"{outcome_name(outcome).capitalize()} ({len(own)} of {len(deciding)})")
        yield from (_line(verdict) for verdict in own)
    others = by_urgency([verdict for verdict in verdicts if verdict not in deciding])
    if others:
        yield Line("Other forms of these questions, which do not decide")
    yield from (_line(verdict) for verdict in others)


def _line(verdict: Verdict) -> Line:
    style = _STYLES.get(verdict.outcome, "") if verdict.decides else ""
    name = verdict.test if verdict.decides else f"{verdict.test}: {outcome_name(verdict.outcome)}"
    return Line(verdict.title, name, tuple((text, style) for text in _numbers(verdict)))


def _numbers(verdict: Verdict) -> Iterator[str]:
    yield effect_text(verdict.effect_baseline, verdict.D_baseline)
    yield effect_text(verdict.effect_model, verdict.D_model)
    yield decimals(verdict.growth)
    yield "–" if verdict.low is None else interval_text(verdict.low, verdict.high)
    yield decimals(verdict.detectable) if verdict.outcome == "inconclusive" else ""


def _check(row: AssociationDifference) -> Line:
    difference = decimals(row.difference) + SIGNS[apart(row)]
    interval = "–" if row.interval_low is None else interval_text(row.interval_low, row.interval_high)
    effects = [
        decimals(effect) if D is None else effect_text(calibrated, D)
        for effect, calibrated, D in (
            (row.effect_baseline, row.calibrated_baseline, row.D_baseline),
            (row.effect_model, row.calibrated_model, row.D_model),
        )
    ]
    texts = (*effects, difference, interval)
    return Line(row.title, row.test, tuple((text, "") for text in texts))


def _growth(verdicts: Sequence[Verdict]) -> str:
    if all(verdict.direction for verdict in verdicts):
        return "change towards the stereotype, from the old model to the new one"
    return "new minus old, towards the stereotype where the test has an expected direction"


def _scales(found: Comparison) -> Iterator[str]:
    """The spread of cosines on both models, once for each pair of values."""
    told = dict.fromkeys((row.model, row.cosine_sd_baseline, row.cosine_sd_model) for row in rows_of(found))
    for model, old, new in told:
        if old is not None and new is not None:
            yield printable(f"cosine SD of frequent words: {old:.3f} on {found.baseline}, {new:.3f} on {model}")


def _left_out(verdicts: Sequence[Verdict]) -> str:
    """Explain why fewer intervals hold together than there are questions; empty if all do."""
    without = [one for one in verdicts if one.family is None and (one.decides or one.outcome == "missing")]
    identical = sum(one.identical for one in without)
    counts = {"with identical cosines on both models": identical, "without an interval": len(without) - identical}
    left = " and ".join(f"{number} {what}" for what, number in counts.items() if number)
    return f" ({left} not counted)" if left else ""


def _notes(found: Comparison, checks: bool) -> Iterator[str]:
    """What the numbers are, and why some are not there."""
    family = next((verdict for verdict in found.verdicts if verdict.family), None)
    if family is not None:
        confidence = f"{1.0 - family.alpha:.4g}"
        together = f"all {family.family} hold together" if family.family != 1 else "it holds"
        yield "old, new: calibrated difference, which is the cosine difference D divided by the cosine SD"
        yield f"growth: {_growth(found.verdicts)}"
        yield f"interval: {together} with {confidence} confidence{_left_out(found.verdicts)}; margin {family.margin:g}"
        yield "80% power: true growth that is called worse with 80% power; –: none is"
    yield from _scales(found)
    if checks:
        yield "* the interval of the difference leaves out zero"
    reasons: dict[str, dict[str, None]] = {}
    told = [(row.reason, row.test) for row in rows_of(found)] + [(v.reason, v.test) for v in found.verdicts]
    for reason, test in told:
        if reason:
            reasons.setdefault(reason, {})[test] = None
    yield from (printable(f"{', '.join(tests)}: {reason}") for reason, tests in reasons.items())
