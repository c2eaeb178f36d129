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
from biassay.results.verdicts import OUTCOMES, PowerGap, Verdict, outcome_name, verdict_sentence

__all__ = [
    "by_urgency",
    "effect_text",
    "gate_junit",
    "gate_markdown",
    "gate_meaning",
    "gate_power",
    "gate_statements",
    "name_of_outcome",
    "said_of",
    "verdict_columns",
]

_NAMED = 8
_NUMBER = re.compile(r"[\d,]+ ")


def said_of(verdict: Verdict) -> str:
    """Return a verdict in words, with its numbers."""
    if verdict.growth is None:
        return f"{name_of_outcome(verdict)}: {verdict.reason}"
    towards = "towards the stereotype" if verdict.direction or verdict.over else "in the direction of the test's words"
    said = (
        f"{name_of_outcome(verdict)}: growth {towards} {decimals(verdict.growth)} ({_interval_text(verdict)}, margin "
    )
    said += (
        f"{verdict.margin:.3g}); {unit_name(verdict.unit)} {effect_text(verdict.effect_baseline, verdict.D_baseline)} "
    )
    said += f"on {verdict.baseline}, {effect_text(verdict.effect_model, verdict.D_model)} on {verdict.model}"
    if verdict.cosine_sd_baseline is not None and verdict.cosine_sd_model is not None:
        said += f"; cosine SD {verdict.cosine_sd_baseline:.3f} and {verdict.cosine_sd_model:.3f}"
    if verdict.reason is not None:
        return f"{said}; {verdict.reason}"
    return said + (f"; {_seen(verdict)}" if verdict.outcome == "inconclusive" and _seen(verdict) else "")


def effect_text(effect: float | None, D: float | None) -> str:
    """Return a calibrated difference with the cosine difference that it comes from."""
    return decimals(effect) if D is None or effect is None else f"{decimals(effect)} (D {D:.3f})"


def name_of_outcome(verdict: Verdict) -> str:
    """Return the outcome, and that it does not decide where another form of the question does."""
    name = outcome_name(verdict.outcome)
    return name if verdict.decides else f"{name}, does not decide"


def gate_statements(verdicts: Sequence[Verdict]) -> list[Statement]:
    """Make a statement for each model, with all tests that are not no worse, most urgent first; then the power."""
    made = []
    for model in dict.fromkeys(verdict.model for verdict in verdicts):
        own = [verdict for verdict in verdicts if verdict.model == model]
        told = [v for outcome in OUTCOMES for v in own if v.outcome == outcome != "no_worse"]
        more = [f"and {len(told) - _NAMED} more"] if len(told) > _NAMED else []
        points = [f"{v.test} ({v.title}): {said_of(v)}" for v in told[:_NAMED]]
        made.append(Statement(verdict_sentence(own), (*points, *more), model))
    return [*made, *(Statement(text) for text in [gate_power(verdicts)] if text)]


def by_urgency(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Sort verdicts: worse first, and within an outcome what grew most; forms that do not decide come last."""
    return sorted(verdicts, key=lambda v: (OUTCOMES.index(v.outcome), not v.decides, -(v.growth or 0.0)))


def verdict_columns(verdicts: Sequence[Verdict]) -> list[Column]:
    """Return the columns of the numbers that verdicts rest on."""
    several = len({verdict.model for verdict in verdicts}) > 1
    unit, old = unit_name(verdicts[0].unit), verdicts[0].baseline
    over = [Column("over", "over", "What else of the same kind the interval generalises to.")] * _others(verdicts)
    power = Column("detectable", "80% power", "True growth that is called worse with 80% power.", "number")
    sds = [
        Column("D_baseline", "old D", "Cosine difference on the old model.", "number"),
        Column("D_model", "new D", "Cosine difference on the new model.", "number"),
        Column("cosine_sd_baseline", "old SD", "SD of cosines between frequent words, old model.", "number"),
        Column("cosine_sd_model", "new SD", "SD of cosines between frequent words, new model.", "number"),
    ]
    calibrated = any(verdict.cosine_sd_baseline is not None for verdict in verdicts)
    return [
        Column("title", "test", "What the test asks.", get=lambda v: f"{v.title} ({v.test})"),
        *[Column("model", "model", "The new model.")] * several,
        Column("outcome", "verdict", "Worse: moved towards the stereotype.", get=name_of_outcome),
        Column("effect_baseline", "old", f"The {unit} on {old}.", "number"),
        Column("effect_model", "new", f"The {unit} on the new model.", "number"),
        Column("growth", "growth", "Change towards the stereotype.", "number"),
        Column(
            "low", "interval", f"Paired interval of the growth; alpha {verdicts[0].alpha:g} overall.", "interval", _ends
        ),
        *(over or [power]),
        *(sds if calibrated else []),
        Column("reason", "note", "Why a number is missing, or what makes the verdict inconclusive."),
    ]


def _others(verdicts: Sequence[Verdict]) -> bool:
    """Do they generalise to something else than words?"""
    return any(verdict.over for verdict in verdicts)


def _ends(verdict: Verdict) -> tuple[float | None, float | None]:
    return verdict.low, verdict.high


def gate_meaning(verdicts: Sequence[Verdict]) -> str:
    """Explain how verdicts are made."""
    first = verdicts[0]
    kinds = " or ".join(dict.fromkeys(_NUMBER.sub("", verdict.over) for verdict in verdicts if verdict.over))
    margin = f"{first.margin:.3g}"
    scale = (
        "The calibrated difference is the cosine difference D divided by the SD of cosines between frequent words. "
        if any(verdict.cosine_sd_baseline is not None for verdict in verdicts)
        else ""
    )
    undirected = any(verdict.direction is None and not verdict.over for verdict in verdicts)
    without = (
        " For a test without an expected direction, a growth away from 0 is worse, in either direction."
        if undirected
        else ""
    )
    return (
        f"{scale}Growth is the change from {first.baseline} to the new model, positive towards the stereotype. Worse: "
        f"the interval of the growth lies above the margin, {margin}, also where an association against the stereotype "
        f"fell to 0; or the association turned round and is stronger than before. Better: the interval lies below "
        f"-{margin}. No worse: the interval ends at {margin} or below. Both also need that a reversal past the old "
        f"size is excluded. Inconclusive: none of these; do not read it as a pass.{without} All intervals hold "
        f"together with {1.0 - first.alpha:.4g} confidence, for other "
        f"{kinds or 'words'} of the same kind."
    )


def gate_power(verdicts: Sequence[Verdict]) -> str:
    """Say what the questions can catch; empty if nothing is known of it."""
    judged = [verdict for verdict in verdicts if verdict.family is not None and not verdict.over]
    powers = [verdict.power or 0.0 for verdict in judged]
    if not powers:
        return ""
    over = "" if len(powers) == 1 else f" (median of {counted(len(powers), 'question')})"
    growth = f"a true growth of {2.0 * judged[0].margin:.3g} would be called worse {median(powers):.0%} of the time"
    return f"Power: {growth}{over}."


def gate_markdown(verdicts: Sequence[Verdict], gaps: Sequence[PowerGap] = ()) -> str:
    """Write the sentence, and a table with one row per test."""
    rows = tuple(
        Row((clean(v.test), clean(v.title), clean(v.model)), tuple(map(Cell, (*_numbers(v), _short(v)))))
        for v in by_urgency(verdicts)
    )
    unit = unit_name(verdicts[0].unit)
    spans = tuple(Span(column) for column in ("old", "new", "growth", "interval", "verdict"))
    table = Table(
        f"{unit[0].upper()}{unit[1:]}. {gate_meaning(verdicts)}", ("test", "about", "model"), spans, (Group("", rows),)
    )
    power = f"{escape(gate_power(verdicts))}\n\n" if gate_power(verdicts) else ""
    low = "".join(f"**{escape(clean(f'{gap}.'))}**\n\n" for gap in gaps)
    return f"**{escape(verdict_sentence(verdicts))}**\n\n{low}{power}{to_markdown(table)}"


def gate_junit(verdicts: Sequence[Verdict], failed: Collection[Verdict], gaps: Sequence[PowerGap] = ()) -> str:
    """Write one test case per test and per power gap; unmeasured tests are skipped."""
    root = Xml.Element("testsuites", name="biassay")
    for model in dict.fromkeys(verdict.model for verdict in verdicts):
        own = [verdict for verdict in verdicts if verdict.model == model]
        low = [gap for gap in gaps if gap.model == model]
        failures = sum(v in failed for v in own) + len(low)
        counts = {"failures": failures, "skipped": sum(v.outcome == "not_measured" for v in own)}
        name = clean(f"{model} compared with {own[0].baseline}")
        numbers = {key: str(number) for key, number in {"tests": len(own) + len(low), "errors": 0, **counts}.items()}
        suite = Xml.SubElement(root, "testsuite", {"name": name, **numbers})
        for verdict in by_urgency(own):
            _case(suite, verdict, verdict in failed)
        for gap in low:
            case = Xml.SubElement(
                suite, "testcase", classname=f"biassay.{clean(model)}", name=clean(f"power: {gap.topic or 'all'}")
            )
            Xml.SubElement(case, "failure", type="power", message=clean(str(gap))).text = clean(str(gap))
    Xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _case(suite: Xml.Element, verdict: Verdict, fails: bool) -> None:
    case = Xml.SubElement(suite, "testcase", classname=f"biassay.{clean(verdict.model)}", name=clean(verdict.test))
    said = clean(said_of(verdict))
    if fails:
        Xml.SubElement(case, "failure", type=verdict.outcome, message=said).text = said
    elif verdict.outcome == "not_measured":
        Xml.SubElement(case, "skipped", message=said)
    else:
        Xml.SubElement(case, "system-out").text = said


def _numbers(verdict: Verdict) -> tuple[str, str, str, str]:
    old = effect_text(verdict.effect_baseline, verdict.D_baseline)
    return old, effect_text(verdict.effect_model, verdict.D_model), decimals(verdict.growth), _interval_text(verdict)


def _interval_text(verdict: Verdict) -> str:
    return "–" if verdict.low is None else interval_text(verdict.low, verdict.high)


def _short(verdict: Verdict) -> str:
    name = name_of_outcome(verdict)
    if verdict.reason is not None:
        return f"{name} ({verdict.reason})"
    told = verdict.outcome == "inconclusive" and _seen(verdict)
    return f"{name} ({_seen(verdict)})" if told else name


def _seen(verdict: Verdict) -> str:
    if verdict.over:
        return ""
    if verdict.detectable is None:
        return "no growth is called worse with 80% power"
    return f"80% power for a growth of {decimals(verdict.detectable)}"
