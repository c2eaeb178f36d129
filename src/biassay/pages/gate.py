"""Verdicts for the page and the terminal, for a pull request (Markdown) and for what runs tests (JUnit XML)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from statistics import median
from xml.etree import ElementTree as Xml

from biassay.pages.formats import counted, decimals, interval_text
from biassay.pages.publish.layout import Cell, Group, Row, Span, Table, clean
from biassay.pages.publish.markdown import escape, to_markdown
from biassay.pages.section import Statement
from biassay.results.verdicts import GROWTH, Outcome, Verdict, verdict_sentence

__all__ = ["TOLD", "gate_junit", "gate_markdown", "gate_power", "gate_statements", "said_of"]

TOLD: tuple[Outcome, ...] = ("worse", "lost", "cannot tell", "no worse", "not measured")
"""The order in which verdicts are told."""
_NAMED = 8
_COLUMNS = ("old", "new", "difference of |d|", "interval", "verdict")


def said_of(verdict: Verdict) -> str:
    """A verdict in words, with its numbers."""
    if verdict.difference is None:
        return f"{verdict.outcome}: {verdict.reason}"
    said = f"{verdict.outcome}: |d| {decimals(abs(verdict.effect_baseline or 0.0))} on {verdict.baseline}, "
    said += f"{decimals(abs(verdict.effect_model or 0.0))} on {verdict.model}; difference {_numbers(verdict)[2]} "
    said += f"({_numbers(verdict)[3]}, margin {verdict.margin:g})"
    if verdict.reason is not None:
        return f"{said}; {verdict.reason}"
    return said + (f"; {_seen(verdict)}" if verdict.outcome == "cannot tell" else "")


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


def gate_power(verdicts: Sequence[Verdict]) -> str:
    """What the tests can catch, in a sentence; empty: nothing is known of it."""
    judged = [verdict for verdict in verdicts if verdict.family is not None]
    powers = [verdict.power for verdict in judged if verdict.power is not None]
    if not powers:
        return ""
    tests = counted(len(powers), "test")
    said = (
        f"Power: a true growth of {GROWTH:g} in |d| would be called worse with probability {decimals(median(powers))}"
    )
    said += f" ({'median of ' if len(powers) > 1 else ''}{tests}); "
    caught = sorted(verdict.detectable for verdict in judged if verdict.detectable is not None)
    if not caught:
        return f"{said}no growth would be in 80 of 100 comparisons."
    least = f"{decimals(caught[0])} on"
    if len(judged) == 1:
        return f"{said}in 80 of 100 comparisons from {least}."
    never = len(judged) - len(caught)
    told = f"; on {never} of {len(judged)} tests none would" if never else f" ({decimals(caught[-1])} on every test)"
    return f"{said}in 80 of 100 comparisons from {least} at best{told}."


def gate_markdown(verdicts: Sequence[Verdict]) -> str:
    """The sentence, and a table with one row a test."""
    rows = tuple(
        Row((clean(v.test), clean(v.title), clean(v.model)), tuple(map(Cell, (*_numbers(v), _short(v)))))
        for v in verdicts
    )
    spans = tuple(Span(column) for column in _COLUMNS)
    table = Table(_caption(verdicts), ("test", "about", "model"), spans, (Group("", rows),))
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
        for verdict in own:
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
    return f"{verdict.outcome} ({_seen(verdict)})" if verdict.outcome == "cannot tell" else verdict.outcome


def _seen(verdict: Verdict) -> str:
    seen = "no growth" if verdict.detectable is None else f"a growth of {decimals(verdict.detectable)}"
    return f"{seen} would be seen in 80 of 100"


def _caption(verdicts: Sequence[Verdict]) -> str:
    first = verdicts[0]
    return (
        f"Effect sizes (d by word), compared with {first.baseline}. Worse: the interval lies above 0 and the "
        f"difference of absolute values above {first.margin:g}. No worse: the interval ends at {first.margin:g} or "
        f"below. All intervals hold together with {1.0 - first.level:.4g} confidence."
    )
