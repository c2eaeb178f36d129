"""Verdicts for the page and the terminal, for a pull request (Markdown) and for what runs tests (JUnit XML)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from statistics import median
from xml.etree import ElementTree as Xml

from biassay.pages.formats import clean, counted, decimals, interval_text, unit_name
from biassay.pages.publish.layout import Cell, Group, Row, Span, Table
from biassay.pages.publish.markdown import escape, to_markdown
from biassay.pages.section import Statement
from biassay.results.tables import Column
from biassay.results.verdicts import GROWTH, Outcome, Verdict, verdict_sentence

__all__ = [
    "TOLD",
    "by_urgency",
    "gate_junit",
    "gate_markdown",
    "gate_meaning",
    "gate_power",
    "gate_statements",
    "said_of",
    "verdict_columns",
]

TOLD: tuple[Outcome, ...] = ("worse", "lost", "cannot tell", "no worse", "not measured")
"""The order in which verdicts are told."""
_NAMED = 8
_HARDLY = 0.2
_NUMBER = re.compile(r"[\d,]+ ")


def said_of(verdict: Verdict) -> str:
    """A verdict in words, with its numbers."""
    if verdict.difference is None:
        return f"{verdict.outcome}: {verdict.reason}"
    size = _size(verdict)
    said = f"{verdict.outcome}: {size} {decimals(abs(verdict.effect_baseline or 0.0))} on {verdict.baseline}, "
    said += f"{decimals(abs(verdict.effect_model or 0.0))} on {verdict.model}; growth {_numbers(verdict)[2]} "
    said += f"({_numbers(verdict)[3]}, margin {verdict.margin:g})"
    if verdict.reason is not None:
        return f"{said}; {verdict.reason}"
    return said + (f"; {_seen(verdict)}" if verdict.outcome == "cannot tell" and _seen(verdict) else "")


def _size(verdict: Verdict) -> str:
    """Of an effect, whatever its direction."""
    return f"|{unit_name(verdict.unit)}|"


def gate_statements(verdicts: Sequence[Verdict]) -> list[Statement]:
    """A sentence for each model, with its tests that are not shown to be no worse, surest first; then the power."""
    made = []
    for model in dict.fromkeys(verdict.model for verdict in verdicts):
        own = [verdict for verdict in verdicts if verdict.model == model]
        told = [v for outcome in TOLD for v in own if v.outcome == outcome != "no worse"]
        more = [f"and {len(told) - _NAMED} more"] if len(told) > _NAMED else []
        points = [f"{v.test} ({v.title}): {said_of(v)}" for v in told[:_NAMED]]
        made.append(Statement(verdict_sentence(own), (*points, *more), model))
    return [*made, *(Statement(text) for text in [gate_power(verdicts)] if text)]


def by_urgency(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Worse first; of one outcome what grew most."""
    return sorted(verdicts, key=lambda v: (TOLD.index(v.outcome), -(v.difference or 0.0)))


def verdict_columns(verdicts: Sequence[Verdict]) -> list[Column]:
    """The numbers that verdicts rest on."""
    together = f"of all tests together {1.0 - verdicts[0].level:.4g}"
    several = len({verdict.model for verdict in verdicts}) > 1
    unit, size = unit_name(verdicts[0].unit), _size(verdicts[0])
    over = [Column("over", "over", "Of what other ones of the same kind the interval holds.")] * _others(verdicts)
    power = Column("detectable", "80% power", "A true growth that is called worse in 80 of 100 comparisons.", "number")
    what = "effect size" if unit == "d" else unit
    return [
        Column("title", "test", "What is asked.", get=lambda v: f"{v.title} ({v.test})"),
        *[Column("model", "model", "The new model.")] * several,
        Column("outcome", "verdict", "Whether the association is stronger on the new model."),
        Column("effect_baseline", _head(unit, "old"), f"The {what} on {verdicts[0].baseline}.", "number"),
        Column("effect_model", _head(unit, "new"), f"The {what} on the new model.", "number"),
        Column("difference", f"growth of {size}", "By how much it is stronger, whatever its direction.", "number"),
        Column("low", "interval", f"Of the growth, paired; confidence {together}.", "interval", _interval),
        *(over or [power]),
        Column("reason", "note", "Why a number is missing."),
    ]


def _head(unit: str, which: str) -> str:
    return f"{which} d" if unit == "d" else which


def _others(verdicts: Sequence[Verdict]) -> bool:
    """Do they hold for something else than other words?"""
    return any(verdict.over for verdict in verdicts)


def _interval(verdict: Verdict) -> tuple[float | None, float | None]:
    return verdict.low, verdict.high


def gate_meaning(verdicts: Sequence[Verdict]) -> str:
    """How verdicts are made."""
    first = verdicts[0]
    over = "over what both were asked" if _others(verdicts) else "over the words that both know"
    kinds = " or ".join(dict.fromkeys(_NUMBER.sub("", verdict.over) for verdict in verdicts if verdict.over))
    margin = f"{first.margin:.3g}"
    return (
        f"Growth is that of {_size(first)}, from {first.baseline} to the new model, {over}. Worse: its "
        f"interval lies above 0 and the growth above the margin, {margin}. No worse: the interval ends at "
        f"{margin} or below. Cannot tell: neither, which is no permission. All intervals hold together with "
        f"{1.0 - first.level:.4g} confidence, for other {kinds or 'words'} of the same kinds too."
    )


def gate_power(verdicts: Sequence[Verdict]) -> str:
    """What the tests can catch, in a sentence or two; empty: nothing is known of it."""
    judged = [verdict for verdict in verdicts if verdict.family is not None]
    powers = [verdict.power for verdict in judged if verdict.power is not None]
    if not powers:
        return ""
    typical, room = median(powers), len(judged) - len(powers)
    over = "" if len(powers) == 1 else f" (median of {counted(len(powers), 'comparison')})"
    beyond = f"; {room} cannot grow by so much" if room else ""
    failed = any(verdict.outcome in ("worse", "lost") for verdict in verdicts)
    hardly = " This gate could hardly have failed." if typical < _HARDLY and not failed else ""
    growth = f"a true growth of {GROWTH:g} in |d| would be called worse with probability {decimals(typical)}"
    return f"Power: {growth}{over}{beyond}.{hardly}"


def gate_markdown(verdicts: Sequence[Verdict]) -> str:
    """The sentence, and a table with one row a test."""
    rows = tuple(
        Row((clean(v.test), clean(v.title), clean(v.model)), tuple(map(Cell, (*_numbers(v), _short(v)))))
        for v in by_urgency(verdicts)
    )
    unit, size = unit_name(verdicts[0].unit), _size(verdicts[0])
    columns = (_head(unit, "old"), _head(unit, "new"), f"growth of {size}", "interval", "verdict")
    spans = tuple(Span(column) for column in columns)
    what = "Effect sizes (d by word)." if unit == "d" else f"{unit[0].upper()}{unit[1:]}."
    table = Table(f"{what} {gate_meaning(verdicts)}", ("test", "about", "model"), spans, (Group("", rows),))
    power = f"{escape(gate_power(verdicts))}\n\n" if gate_power(verdicts) else ""
    return f"**{escape(verdict_sentence(verdicts))}**\n\n{power}{to_markdown(table)}"


def gate_junit(verdicts: Sequence[Verdict], failed: Collection[Verdict]) -> str:
    """One test case a test; those of ``failed`` fail, and one that was measured on neither model is skipped."""
    root = Xml.Element("testsuites", name="biassay")
    for model in dict.fromkeys(verdict.model for verdict in verdicts):
        own = [verdict for verdict in verdicts if verdict.model == model]
        counts = {"failures": sum(v in failed for v in own), "skipped": sum(v.outcome == "not measured" for v in own)}
        name = clean(f"{model} compared with {own[0].baseline}")
        numbers = {key: str(number) for key, number in {"tests": len(own), "errors": 0, **counts}.items()}
        suite = Xml.SubElement(root, "testsuite", {"name": name, **numbers})
        for verdict in by_urgency(own):
            _case(suite, verdict, verdict in failed)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _case(suite: Xml.Element, verdict: Verdict, fails: bool) -> None:
    case = Xml.SubElement(suite, "testcase", classname=f"biassay.{clean(verdict.model)}", name=clean(verdict.test))
    said = clean(said_of(verdict))
    if fails:
        Xml.SubElement(case, "failure", type=verdict.outcome, message=said).text = said
    elif verdict.outcome == "not measured":
        Xml.SubElement(case, "skipped", message=said)
    else:
        Xml.SubElement(case, "system-out").text = said


def _numbers(verdict: Verdict) -> tuple[str, str, str, str]:
    effects = decimals(verdict.effect_baseline), decimals(verdict.effect_model)
    interval = "–" if verdict.low is None else interval_text(verdict.low, verdict.high)
    return *effects, decimals(verdict.difference), interval


def _short(verdict: Verdict) -> str:
    if verdict.reason is not None:
        return f"{verdict.outcome} ({verdict.reason})"
    told = verdict.outcome == "cannot tell" and _seen(verdict)
    return f"{verdict.outcome} ({_seen(verdict)})" if told else verdict.outcome


def _seen(verdict: Verdict) -> str:
    if verdict.over:
        return ""
    seen = "no growth" if verdict.detectable is None else f"a growth of {decimals(verdict.detectable)}"
    return f"{seen} would be seen in 80 of 100"
