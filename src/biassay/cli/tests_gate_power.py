"""``biassay tests power --gate``: what a comparison of two models detects, before there is a new model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from biassay.errors import UsageError
from biassay.pages.formats import counted
from biassay.results.data import RunData
from biassay.results.labels import model_key
from biassay.results.verdicts import check_limits
from biassay.stats.crossed import Components
from biassay.stats.power import Design, Sizes
from biassay.stimuli.model import ROLES, Test
from biassay.stimuli.typical import calibrated_components
from biassay.studies.associations.power import sizes_of
from biassay.studies.associations.records import Result

__all__ = ["Gate", "compute_gate_power", "measured_questions", "print_gate_power", "typical_questions"]


@dataclass(frozen=True)
class Gate:
    """Settings of a gate, and what is assumed about the models.

    `agreement` is the correlation of both models over words: the difference of two tables varies by 2 (1 - agreement)
    of what one of them does.
    """

    margin: float
    alpha: float
    family: int | None
    agreement: float
    power: float


@dataclass(frozen=True)
class Question:
    """A social-bias test and how its calibrated cosines vary on one model; `note` says why that is not known."""

    name: str
    question: str
    sizes: Sizes | None
    components: Components | None
    note: str | None = None


def typical_questions(tests: Sequence[Test]) -> list[Question]:
    """Describe tests on a typical model."""
    return [_describe_test(test) for test in tests if test.about != "method"]


def _describe_test(test: Test) -> Question:
    try:
        return Question(test.name, test.question, sizes_of(test), calibrated_components(test))
    except UsageError as error:
        return Question(test.name, test.question, None, None, str(error))


def measured_questions(run: RunData) -> list[Question]:
    """Describe tests on the first model of a run."""
    if run.manifest.study != "associations":
        raise UsageError(f"--run needs a run of association tests, got one of {run.manifest.study}")
    first = model_key(run.results[0]) if run.results else None
    return [_describe_result(row) for row in run.results if model_key(row) == first and row.about != "method"]


def _describe_result(row: Result) -> Question:
    parts = row.var_targets, row.var_attributes, row.var_residual
    n, m, k, l = (row.num_clusters.get(role, 0) for role in ROLES)  # noqa: E741
    if None in parts:
        return Question(row.test, row.question, None, None, row.reason or "too few words for an interval")
    if row.calibrated_difference is None or row.cosine_sd is None:
        return Question(row.test, row.question, None, None, "the run holds no cosine SD; measure the model again")
    calibrated = Components(*(max(part or 0.0, 0.0) / row.cosine_sd**2 for part in parts))
    return Question(row.test, row.question, (n, m, k, l), calibrated)


def compute_gate_power(questions: Sequence[Question], growths: Sequence[float], gate: Gate) -> list[dict[str, Any]]:
    """Compute for each test how often growths are called worse, and the growth that is with the wanted power."""
    check_limits(gate.margin, gate.alpha)
    if not questions:
        raise UsageError("there is no social-bias test; a gate does not judge sanity checks")
    family = len({one.question for one in questions}) if gate.family is None else gate.family
    if not 0.0 < gate.power < 1.0:
        raise UsageError(f"power must lie between 0 and 1, got {gate.power:g}")
    if family < 1:
        raise UsageError(f"--family is the number of questions that are judged together, at least 1, got {family}")
    if not -1.0 <= gate.agreement < 1.0:
        raise UsageError(f"--agreement is a correlation, at least -1 and below 1, got {gate.agreement:g}")
    if not min(growths) > 0.0:
        raise UsageError(f"--effect is a growth above 0 with --gate, got {min(growths):g}")
    return [_record(one, growths, gate, family) for one in questions]


def _record(one: Question, growths: Sequence[float], gate: Gate, family: int) -> dict[str, Any]:
    record: dict[str, Any] = {"name": one.name, "question": one.question, "sizes": one.sizes, "family": family}
    record |= {"alpha": gate.alpha, "margin": gate.margin, "agreement": gate.agreement, "power": gate.power}
    record |= {"detectable_growth": None, "growths": [], "note": one.note}
    if one.sizes is None or one.components is None:
        return record
    share, alpha = 2.0 * (1.0 - gate.agreement), gate.alpha / (2 * family)
    parts = one.components.targets, one.components.attributes, one.components.residual
    design = Design(Components(*(share * part for part in parts)), one.sizes)
    powers = [{"growth": growth, "power": design.power_above(growth - gate.margin, alpha)} for growth in growths]
    smallest = design.smallest_above(alpha, gate.power) if alpha < gate.power else None
    return record | {"detectable_growth": None if smallest is None else gate.margin + smallest, "growths": powers}


def print_gate_power(
    records: Sequence[Mapping[str, Any]], growths: Sequence[float], gate: Gate, source: str, console: Console
) -> None:
    """Print a line for each test, and what the numbers mean; words vary as on `source`."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("test", overflow="fold")
    table.add_column("words", no_wrap=True)
    for label in (*(f"power for a\ngrowth of {growth:g}" for growth in growths), "detectable\ngrowth"):
        table.add_column(label, justify="right", no_wrap=True)
    for record in records:
        powers = [_number(one["power"]) for one in record["growths"]] or ["-"] * len(growths)
        sizes = " ".join(map(str, record["sizes"] or ("?",)))
        detectable = _number(record["detectable_growth"], "none" if record["growths"] else "-")
        table.add_row(escape(record["name"]), sizes, *powers, detectable)
    console.print(table)
    questions = counted(records[0]["family"], "question")
    for line in (
        "",
        "growth: change of the calibrated difference towards the stereotype, in SDs of cosines between frequent words.",
        "power: how often `biassay compare OLD NEW` calls such a growth worse.",
        f"detectable growth: called worse with {gate.power:.0%} power.",
        f"margin {gate.margin:g}; alpha {gate.alpha:g} over {questions} (--family).",
        f"Cosines of both models correlate by {gate.agreement:g} over words (--agreement) and vary as on {source}.",
        *(f"{record['name']}: {record['note']}" for record in records if record["note"]),
    ):
        click.echo(line)


def _number(value: float | None, missing: str = "-") -> str:
    return missing if value is None else f"{value:.2f}"
