"""Compare models with a baseline: differences, and verdicts of a gate."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, get_args

from biassay.datasets.catalogue import load_catalogue
from biassay.errors import MeasurementError, UnknownNameError, UsageError
from biassay.grouping import group_pairs
from biassay.io import make_printable
from biassay.results.outcomes import About, Result
from biassay.results.run_data import BaseRecord, RunData, RunGroup, short_name
from biassay.results.run_folder import to_json
from biassay.results.tables import column, optional, render_html_table, table_row, to_data_frame

if TYPE_CHECKING:
    import pandas as pd


@table_row
class EffectDifference(BaseRecord):
    """An effect on the first model and on another, over the items measured on both.

    ``over`` names the sampling units over which interval and p-value generalize. ``p_value_holm`` is corrected over
    the social-bias items of a model. None if it cannot be computed, for the reason given.
    """

    item: str
    title: str = column("question", "Question of the item.")
    baseline: str
    model: str = column("model", "Model that is compared.")
    unit: str
    effect_baseline: float | None = column("first", "Effect on the first model.", "number")
    effect_model: float | None = column("new", "Effect on the model.", "number")
    reason: str | None = optional("note", "Why a number is missing.")
    difference: float | None = optional("difference", "New minus first.", "number")
    interval_low: float | None = column(
        "95%", "Paired interval.", "interval", default=None, get=attrgetter("interval_low", "interval_high")
    )
    interval_high: float | None = None
    p_value: float | None = optional("p", "Two-sided test of no difference.", "p")
    p_value_holm: float | None = optional("p, Holm", "Corrected over the social-bias items of a model.", "p")
    over: str = column("over", "Sampling unit that the interval generalizes over.", default="")
    about: About = "people"
    topic: str = ""


@dataclass(frozen=True)
class SeriesPoint(BaseRecord):
    """One test on one checkpoint of a series.

    Attributes
    ----------
    checkpoint : str
        Label of the model.
    step : int
        Position in the series, from 0.
    effect : float
        Calibrated difference, positive towards the stereotype.
    growth, low, high : float or None
        Change since the first checkpoint towards the stereotype, with an interval that is simultaneous over the
        deciding tests and the checkpoints.
    trend : float
        The same change on the least-squares line through all checkpoints.
    decides : bool
        If False, another form of the question decides.
    """

    test: str
    title: str
    checkpoint: str
    step: int
    effect: float
    growth: float
    low: float | None
    high: float | None
    trend: float
    decides: bool = True


DIFFERENCES = "differences"
"""Name of the table of `EffectDifference` in a comparison."""
FEWEST_CHECKPOINTS = 3
"""Models in a series."""
MARGIN = 0.2
ALPHA = 0.05
MIN_POWER = 0.2
GATE = "gate"
"""The collection of tests by which two models are compared if neither tests nor a run folder are given."""

VerdictOutcome = Literal["worse", "missing", "inconclusive", "better", "no_worse", "not_measured"]
VERDICT_OUTCOMES: tuple[VerdictOutcome, ...] = get_args(VerdictOutcome)
"""Outcomes, most urgent first."""
FailIf = Literal["worse", "inconclusive"]
FAIL_IF: tuple[FailIf, ...] = get_args(FailIf)
_MAX_NAMES = 5


@table_row
class Verdict(BaseRecord):
    """Verdict on one test: whether it moved towards the stereotype from the baseline to the new model.

    Attributes
    ----------
    outcome : {"worse", "better", "no_worse", "inconclusive", "missing", "not_measured"}
        Missing: measured on the old model and not on the new one. Not measured: on neither.
    reason : str or None
        Why a number is missing, or why the verdict is not the one that `low` and `high` give: responses that cannot
        be trusted, a reversal that is not excluded, or words that change by very unequal amounts.
    effect_baseline, effect_model : float or None
        Effects on both models, in `unit`: for association tests the calibrated difference.
    margin : float
        Growth that does not matter, in `unit`.
    alpha : float
        Probability that any interval of the comparison misses, over all questions and models.
    growth, low, high : float or None
        Change towards the stereotype, with its simultaneous interval. Without an expected direction, new minus old.
    reversal, reversal_low, reversal_high : float or None
        New plus old: below 0 if the association turned round and is stronger than before.
    power : float or None
        Probability that a true growth of twice the margin is called worse.
    detectable : float or None
        True growth that is called worse with 80% power. None if no growth is, or if it is not known.
    family : int or None
        Number of questions, over all models, that share `alpha`. None if this one needs no share of it.
    unit, over : str
        Scale of the effects; sampling units other than words that the interval generalizes to.
    question, topic : str
        Forms of one test share the question.
    decides : bool
        If False, another form of the question decides, and this one is reported beside it.
    identical : bool
        If True, both models gave the same numbers.
    direction : {"positive", "negative"} or None
        Sign that the stereotype predicts.
    d_baseline, d_model : float or None
        For association tests, effect sizes d.
    cosine_difference_baseline, cosine_difference_model : float or None
        For association tests, cosine differences D.
    cosine_sd_baseline, cosine_sd_model : float or None
        For association tests, standard deviations of cosines between frequent words.
    """

    test: str
    title: str = column("test", "Question of the test, and its name.", get=attrgetter("label"))
    baseline: str
    model: str = column("model", "The new model.")
    outcome: VerdictOutcome = column(
        "verdict", "Worse: moved towards the stereotype.", get=lambda verdict: verdict.described_outcome
    )
    reason: str | None = column("note", "Reason for a missing number or an inconclusive verdict.")
    effect_baseline: float | None = column("old", "Effect on the old model.", "number")
    effect_model: float | None = column("new", "Effect on the new model.", "number")
    margin: float
    alpha: float
    growth: float | None = optional("growth", "Change towards the stereotype.", "number")
    low: float | None = column("CI", "Paired interval.", "interval", default=None, get=attrgetter("low", "high"))
    high: float | None = None
    reversal: float | None = None
    reversal_low: float | None = None
    reversal_high: float | None = None
    power: float | None = None
    detectable: float | None = optional("80% power", "True growth that is called worse with 80% power.", "number")
    family: int | None = None
    unit: str = "d"
    over: str = column("over", "Sampling unit that the interval generalizes over.", default="")
    question: str = ""
    topic: str = ""
    decides: bool = True
    identical: bool = False
    direction: str | None = None
    d_baseline: float | None = None
    d_model: float | None = None
    cosine_difference_baseline: float | None = optional("old D", "Cosine difference on the old model.", "number")
    cosine_difference_model: float | None = optional("new D", "Cosine difference on the new model.", "number")
    cosine_sd_baseline: float | None = optional("old SD", "SD of cosines of frequent words, old model.", "number")
    cosine_sd_model: float | None = optional("new SD", "SD of cosines of frequent words, new model.", "number")

    @property
    def name(self) -> str:
        """Name of the question in sentences: that of the test, or the title if it begins with this name."""
        return self.title if self.title.casefold().startswith(self.test.casefold()) else self.test

    @property
    def described_outcome(self) -> str:
        """Outcome in prose, marked if another form of the question decides."""
        name = format_outcome(self.outcome)
        return name if self.decides else f"{name}, does not decide"

    @property
    def label(self) -> str:
        """Label of the question in tables: the title, with the name of the test if that says more."""
        return self.title if self.name == self.title else f"{self.title} ({self.test})"


@dataclass(frozen=True)
class PowerGap:
    """A topic on which no question could have failed the gate.

    ``power`` is the largest of its questions, for a growth of twice the margin. ``advice`` says what to change.
    """

    model: str
    topic: str
    questions: tuple[str, ...]
    power: float
    growth: float
    min_power: float
    advice: str

    def __str__(self) -> str:
        about = f"the topic {self.topic}" if self.topic else "any item"
        return (
            f"{self.model}: the gate could not have failed on {about} ({_join_names(self.questions)}): the power for a "
            f"growth of {self.growth:.3g}, twice the margin, is {self.power:.0%} at best, below --min-power "
            f"{self.min_power:g}. {self.advice}, or type --min-power 0 to skip this check"
        )


def check_limits(margin: float, alpha: float, min_power: float = MIN_POWER) -> None:
    """Raise UsageError for limits outside their ranges.

    Parameters
    ----------
    margin : float
        Smallest growth of an effect that matters; above 0.
    alpha : float
        Level of the tests; between 0 and 1.
    min_power : float
        Smallest sufficient power; at least 0 and below 1.
    """
    if not (margin > 0.0 and math.isfinite(margin)):
        raise UsageError(f"the margin must be above 0, got {margin!r}; it is the growth that does not matter")
    if not 0.0 < alpha < 1.0:
        raise UsageError(f"alpha must be between 0 and 1, got {alpha!r}; 0.05 is usual")
    if not 0.0 <= min_power < 1.0:
        raise UsageError(f"min_power must be at least 0 and below 1, got {min_power!r}; 0 switches the check off")


def format_outcome(outcome: VerdictOutcome) -> str:
    """Return an outcome as it appears in prose."""
    return outcome.replace("_", " ")


def find_failing(verdicts: Sequence[Verdict], fail_if: str) -> tuple[Verdict, ...]:
    """Return the verdicts that fail a gate.

    Parameters
    ----------
    verdicts : sequence of Verdict
    fail_if : {"worse", "inconclusive"}
        Whether questions fail that are worse, or also those that are inconclusive. A test that is missing on the new
        model fails in either case; one that was measured on neither model does not.

    Returns
    -------
    tuple of Verdict
    """
    if fail_if not in FAIL_IF:
        raise UsageError(f"fail_if must be {' or '.join(map(repr, FAIL_IF))}, got {fail_if!r}")
    if not verdicts:
        raise UsageError("there is no social-bias test to judge by; a gate needs effects with intervals")
    for model, own in _group_by_model(verdicts).items():
        if not any(verdict.growth is not None or verdict.outcome == "missing" for verdict in own):
            reason = next((verdict.reason for verdict in own if verdict.reason), "no test was measured")
            raise MeasurementError(
                f"{model} could not be compared with {own[0].baseline} by any social-bias test: {reason}"
            )
    fails = {"worse"} if fail_if == "worse" else {"worse", "inconclusive"}
    return tuple(
        verdict
        for verdict in verdicts
        if verdict.outcome == "missing" or (verdict.decides and verdict.outcome in fails)
    )


def find_power_gaps(verdicts: Sequence[Verdict], min_power: float) -> tuple[PowerGap, ...]:
    """Return the topics on which a gate could not have failed.

    Parameters
    ----------
    verdicts : sequence of Verdict
    min_power : float
        A topic is returned if each of its questions has less power than this for a growth of twice the margin,
        also if it is no_worse. A question that was measured on neither model has no power. A topic is left out if a
        question is identical on both models (no_worse with certainty), worse (it did fail) or better (it fell by more
        than the margin, so that no growth was missed).

    Returns
    -------
    tuple of PowerGap
    """
    deciding = [verdict for verdict in verdicts if verdict.decides and verdict.outcome != "missing"]
    topics = group_pairs(((verdict.model, verdict.topic), verdict) for verdict in deciding)
    gaps = []
    for (model, topic), own in topics.items():
        if not any(
            verdict.identical or verdict.outcome in ("worse", "better") or (verdict.power or 0.0) >= min_power
            for verdict in own
        ):
            power = max(verdict.power or 0.0 for verdict in own)
            questions = tuple(verdict.question or verdict.name for verdict in own)
            growth = 2.0 * own[0].margin
            gaps.append(PowerGap(model, topic, questions, power, growth, min_power, _advise_on_power(own)))
    return tuple(gaps)


def _advise_on_power(verdicts: Sequence[Verdict]) -> str:
    """Advise how to give the questions of a topic more power."""
    if all(verdict.outcome == "not_measured" for verdict in verdicts):
        return "Neither model was measured: use tests that both can answer, leave the topic out (--tests)"
    if any(verdict.over for verdict in verdicts):
        return "Ask more items of these kinds, or type a larger --margin"
    family = max(verdict.family or 0 for verdict in verdicts)
    gate = {test.name: test.topic for test in load_catalogue().tests.values() if test.source.name == GATE}
    advice = ["Use tests with more words per set"]
    if verdicts[0].topic in gate.values() and not any(verdict.test in gate for verdict in verdicts):
        advice[0] += f" (--tests {GATE})"
    if family > 1:
        advice.append(f"fewer questions at once (--tests; {family} share alpha)")
    return f"{', '.join(advice)} or a larger margin{_advise_on_margin(verdicts)}"


def _advise_on_margin(verdicts: Sequence[Verdict]) -> str:
    """Return the smallest margin at which one of the questions detects twice the margin with 80% power."""
    # The growth detected with 80% power exceeds the margin by an amount that does not depend on the margin.
    margins = [verdict.detectable - verdict.margin for verdict in verdicts if verdict.detectable is not None]
    return f" (--margin {math.ceil(100.0 * min(margins)) / 100.0:g} gives 80% power)" if margins else " (--margin)"


def make_missing_verdicts(model: str, why: str, others: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """Make verdicts on a model that could not be measured, for the tests that other models were judged by.

    Parameters
    ----------
    model : str
        Label of the model.
    why : str
        Reason why it has no results.
    others : sequence of Verdict
        Verdicts on the other models.

    Returns
    -------
    tuple of Verdict
        Verdicts "missing", or "not_measured" for tests that the baseline lacks as well.
    """
    made = []
    for row in next(iter(_group_by_model(others).values()), ()):
        neither = row.outcome == "not_measured" or (row.effect_baseline is None and row.effect_model is not None)
        outcome: VerdictOutcome = "not_measured" if neither else "missing"
        names = row.test, row.title, row.baseline, model
        about = {"unit": row.unit, "question": row.question, "topic": row.topic, "decides": row.decides}
        made.append(Verdict(*names, outcome, why, None, None, row.margin, row.alpha, **about))  # type: ignore[arg-type]
    return tuple(made)


def describe_departures(comparison: Comparison) -> list[str]:
    """Name tests of a series that grew by more than the margin at a checkpoint, although their trend is not worse."""
    lines = []
    for verdict in comparison.verdicts:
        points = [point for point in comparison.points if point.test == verdict.test]
        beyond = [point for point in points if point.low is not None and point.low > verdict.margin]
        if beyond and verdict.outcome != "worse":
            most = max(beyond, key=lambda point: point.growth)
            lines.append(
                f"{verdict.test}: the trend is {format_outcome(verdict.outcome)}, but {most.checkpoint} is worse than "
                f"{verdict.baseline}: growth {most.growth:.2f} [{most.low:.2f}, {most.high:.2f}]"
            )
    return lines


def list_unmeasured_models(verdicts: Sequence[Verdict]) -> list[str]:
    """Return the models without any measured social-bias test."""
    missing = ("missing", "not_measured")
    return [
        model for model, own in _group_by_model(verdicts).items() if all(verdict.outcome in missing for verdict in own)
    ]


def summarize_verdicts(verdicts: Sequence[Verdict]) -> str:
    """Return one sentence for each new model."""
    return " ".join(map(_summarize_model, _group_by_model(verdicts).values()))


def _group_by_model(verdicts: Iterable[Verdict]) -> dict[str, list[Verdict]]:
    return group_pairs((verdict.model, verdict) for verdict in verdicts)


_NAMED_OUTCOMES: tuple[VerdictOutcome, ...] = ("worse", "missing", "inconclusive", "better", "no_worse", "not_measured")


def _summarize_model(verdicts: Sequence[Verdict]) -> str:
    """State the verdict on a model, then list its questions by outcome. Count those that are no worse."""
    model, baseline = verdicts[0].model, verdicts[0].baseline
    counted = [verdict for verdict in verdicts if verdict.decides or verdict.outcome == "missing"]
    tests = group_pairs((verdict.outcome, verdict.name) for verdict in counted)
    parts = [
        (
            len(tests[outcome]),
            format_outcome(outcome) + ("" if outcome == "no_worse" else f" ({_join_names(tests[outcome])})"),
        )
        for outcome in _NAMED_OUTCOMES
        if outcome in tests
    ]
    questions = f"{parts[0][0]} of {len(counted)} question{'' if len(counted) == 1 else 's'} {parts[0][1]}"
    rest = [f"{number} {outcome}" for number, outcome in parts[1:]]
    return f"{model} {_summarize_outcomes(tests, counted)} {baseline}: {', '.join([questions, *rest])}."


def _summarize_outcomes(tests: Mapping[VerdictOutcome, Sequence[str]], verdicts: Sequence[Verdict]) -> str:
    if "worse" in tests:
        return f"is worse ({_explain_worse([verdict for verdict in verdicts if verdict.outcome == 'worse'])}) than"
    if not {"inconclusive", "no_worse", "better"} & tests.keys():
        return "could not be compared on any question with"
    if "missing" in tests:
        return "could not be compared on every question with"
    if "inconclusive" in tests:
        return "is inconclusive, which is not a pass, compared with"
    return "is better (farther from the stereotype) than" if "better" in tests else "is no worse than"


def _explain_worse(verdicts: Sequence[Verdict]) -> str:
    """Explain "worse": closer to the stereotype, reversed past the old size, or stronger than before."""

    def meaning(verdict: Verdict) -> str:
        if verdict.direction is None:
            return "larger difference" if verdict.over else "stronger association"
        return "reversed past its old size" if (verdict.growth or 0.0) < 0.0 else "closer to the stereotype"

    return ", ".join(sorted(set(map(meaning, verdicts))))


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"{', '.join(names[:_MAX_NAMES])}{more}"


CONFIDENCE = 0.95
_MAX_ROWS = 20  # rows of a table in a notebook
_ALWAYS = (
    "associations",
    "agreements",
    "words",
    "verdicts",
    "notes",
    "results",
)  # stable keys of the JSON output


@dataclass(frozen=True, repr=False)
class Comparison:
    """Differences of all models from the first, in tables of records with a field ``model``.

    ``results`` are the combined runs, ``gathered`` the groups of runs that are compared.
    ``verdicts`` judge each test, if the study defines verdicts. ``notes`` list differences of settings, ``remarks`` are
    further notes, and ``missing`` has the reasons why models have no results. A series has ``checkpoints``, the labels
    of its models in order, and ``points``; its only new model is the trend.
    """

    study: str
    baseline: str
    tables: Mapping[str, tuple[Any, ...]]
    notes: tuple[str, ...] = ()
    results: tuple[Any, ...] = ()
    gathered: tuple[RunGroup, ...] = ()
    confidence: float = CONFIDENCE
    verdicts: tuple[Verdict, ...] = ()
    remarks: tuple[str, ...] = ()
    missing: Mapping[str, str] = dataclasses.field(default_factory=dict)
    checkpoints: tuple[str, ...] = ()
    points: tuple[SeriesPoint, ...] = ()

    def __repr__(self) -> str:
        rows = sum(map(len, self.tables.values()))
        many = f"{rows} difference{'' if rows == 1 else 's'}"
        return f"Comparison({self.study}: {', '.join(self.models)} with {self.baseline}; {many})"

    @property
    def models(self) -> list[str]:
        """The models that are compared with the first."""
        return list(dict.fromkeys(row.model for rows in self.tables.values() for row in rows))

    @property
    def verdict(self) -> str:
        """Verdict on each of the other models in one sentence; empty if there are no verdicts."""
        return summarize_verdicts(self.verdicts)

    def failed(self, fail_if: str = "worse") -> tuple[Verdict, ...]:
        """Return the tests that fail a gate.

        Parameters
        ----------
        fail_if : {"worse", "inconclusive"}
            Whether questions fail that are worse, or also those that are inconclusive. A test that was measured on the
            old model and not on the new one fails in either case.

        Returns
        -------
        tuple of Verdict
        """
        return find_failing(self.verdicts, fail_if)

    def power_gaps(self, min_power: float = MIN_POWER) -> tuple[PowerGap, ...]:
        """Return the topics on which a gate could not have failed.

        Parameters
        ----------
        min_power : float
            Least power of one question of a topic for a growth of twice the margin. If 0, nothing is returned.

        Returns
        -------
        tuple of PowerGap
        """
        return find_power_gaps(self.verdicts, min_power)

    def to_json(self, fail_if: str | None = None, min_power: float = MIN_POWER) -> str:
        """Return the differences and their results as JSON; with ``fail_if``, also whether the gate passes."""
        given: dict[str, Any] = {**self.tables, "verdicts": self.verdicts, "notes": self.notes}
        given["results"] = [row.to_dict() if isinstance(row, Result) else row for row in self.results]
        given["remarks"] = self.remarks
        if self.checkpoints:
            given |= {"checkpoints": self.checkpoints, "points": self.points}
        if fail_if is not None:
            failed, gaps = self.failed(fail_if), self.power_gaps(min_power)
            tests = [{"model": verdict.model, "test": verdict.test, "outcome": verdict.outcome} for verdict in failed]
            given["gate"] = {"fail_if": fail_if, "passed": not failed and not gaps, "failed": tests, "power_gaps": gaps}
        about = {"baseline": self.baseline, "verdict": self.verdict, "confidence": self.confidence}
        return to_json(about | dict.fromkeys(_ALWAYS, ()) | given)

    def to_frame(self, name: str | None = None) -> pd.DataFrame:
        """Return the verdicts, or a table of differences, as a data frame.

        Parameters
        ----------
        name : str, optional
            ``"verdicts"``, ``"points"`` of a series, or the name of a table of differences. By default the verdicts,
            or the first table if the study has no verdicts.

        Returns
        -------
        pandas.DataFrame
            Values that were not computed are ``pandas.NA``.
        """
        own = {"verdicts": self.verdicts, "points": self.points}
        tables = {key: rows for key, rows in own.items() if rows} | dict(self.tables)
        if name is not None and name not in tables:
            raise UnknownNameError("table", name, tables, f"(tables of this comparison: {', '.join(tables)})")
        rows = tables[next(iter(tables)) if name is None else name]
        columns = [field.name for field in dataclasses.fields(rows[0])] if rows else []
        return to_data_frame({column: [getattr(row, column) for row in rows] for column in columns})

    def _repr_html_(self) -> str:
        """Render the verdicts with their numbers, or the differences if there are none."""
        summary = self.verdict or f"{', '.join(self.models)} compared with {self.baseline}"
        notes = "".join(f"<p>Not alike: {escape(make_printable(note))}.</p>" for note in self.notes)
        urgent = sorted(self.verdicts, key=lambda verdict: VERDICT_OUTCOMES.index(verdict.outcome))
        shown = [_render_first_rows("", urgent, _VERDICT_FIELDS)] if urgent else []
        for name, rows in self.tables.items() if not urgent else ():
            fields = [field.name for field in dataclasses.fields(rows[0])] if rows else []
            shown.append(_render_first_rows(name, rows, [one for one in fields if one not in ("baseline", "title")]))
        return f"<div><p><b>{escape(make_printable(summary))}</b></p>{notes}{''.join(shown)}</div>"


_VERDICT_FIELDS = ("label", "model", "outcome", "effect_baseline", "effect_model", "growth", "low", "high", "reason")


def _render_first_rows(title: str, rows: Sequence[Any], fields: Sequence[str]) -> str:
    lines = [[make_printable(_format_cell(getattr(row, name))) for name in fields] for row in rows[:_MAX_ROWS]]
    more = f"<p>and {len(rows) - _MAX_ROWS:,} more rows</p>" if len(rows) > _MAX_ROWS else ""
    return render_html_table(title, dict.fromkeys(fields, ""), lines) + more


def _format_cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.2f}" if isinstance(value, float) else ", ".join(value) if isinstance(value, tuple) else str(value)


def choose_baseline(labels: Sequence[str], baseline: str | None) -> str:
    """Choose the baseline: the given model, by label or as typed, or the first."""
    if len(labels) < 2:
        raise UsageError(f"only one model given ({', '.join(labels)}); name another run to compare it with")
    if baseline is not None and baseline not in labels and short_name(baseline) in labels:
        return short_name(baseline)
    if baseline is not None and baseline not in labels:
        raise UnknownNameError("model", baseline, labels, f"(models of these runs: {', '.join(labels)})")
    return baseline or labels[0]


def find_setting_differences(described: Mapping[str, Mapping[str, object]], *, mixed: bool) -> tuple[str, ...]:
    """Find settings and data that differ between runs although they should be alike.

    Parameters
    ----------
    described : dict of str to dict of str to object
        Descriptions of what must be alike, by the name of the run or model.
    mixed : bool
        If True, return the differences; otherwise raise UsageError if there are any.

    Returns
    -------
    tuple of str
        One line per setting that differs.
    """
    found = []
    for what in next(iter(described.values())):
        values = {name: own[what] for name, own in described.items()}
        if len(set(values.values())) > 1:
            found.append(f"{what}: " + ", ".join(f"{value} in {name}" for name, value in values.items()))
    if found and not mixed:
        raise UsageError("the runs cannot be compared: " + "; ".join(found) + " (add --mixed to compare them anyway)")
    return tuple(found)


def read_compared(run: RunData, fields: Mapping[str, str]) -> dict[str, object]:
    """Return settings and inputs of a run by their labels in messages."""
    values = {**vars(run.manifest.inputs), **vars(run.manifest.settings)}
    return {what: values[field] for what, field in fields.items()}
