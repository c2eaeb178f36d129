"""``biassay tests power --gate``: what a comparison of two models will catch, before there is a new model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from biassay.errors import UsageError
from biassay.results.verdicts import check_limits
from biassay.stats.power import largest_d
from biassay.stats.stronger import TwoModels
from biassay.stimuli.model import Test
from biassay.stimuli.typical import models_measured, typical_components
from biassay.studies.associations.power import sizes_of

__all__ = ["Gate", "gate_records", "print_gate"]


@dataclass(frozen=True)
class Gate:
    """The settings of a gate, and what is taken for granted of the models."""

    margin: float
    level: float
    family: int | None
    agreement: float
    old: float
    power: float


def gate_records(tests: Sequence[Test], growths: Sequence[float], gate: Gate) -> list[dict[str, Any]]:
    """Of every test about people how often growths of |d| are called worse, and the smallest that mostly is."""
    check_limits(gate.margin, gate.level)
    judged = [test for test in tests if test.about != "method"]
    if not judged:
        raise UsageError("these are checks of the method, which a gate does not judge; name tests about people")
    family = len(judged) if gate.family is None else gate.family
    if not 0.0 < gate.power < 1.0:
        raise UsageError(f"power must lie between 0 and 1, got {gate.power:g}")
    if family < 1:
        raise UsageError(f"the family is the number of tests that are judged together, at least 1, got {family}")
    if not (gate.old >= 0.0 and min(growths) > 0.0):
        raise UsageError("the absolute d on the old model is at least 0, and a growth above 0")
    return [_record(test, growths, gate, family) for test in judged]


def _record(test: Test, growths: Sequence[float], gate: Gate, family: int) -> dict[str, Any]:
    record: dict[str, Any] = {"name": test.name, "sizes": None, "family": family, "level": gate.level}
    record |= {"margin": gate.margin, "agreement": gate.agreement, "old": gate.old, "power": gate.power}
    record |= {"smallest_growth": None, "growths": [], "note": None}
    try:
        sizes = sizes_of(test)
    except UsageError as error:
        return record | {"note": str(error)}
    parts, confidence = typical_components(test), 1.0 - gate.level / family
    models = TwoModels(parts, parts, (gate.agreement,) * 3, sizes, gate.old, confidence, gate.margin)
    if not gate.old < largest_d(*sizes[:2]):
        return record | {"sizes": sizes, "note": f"with so few target words |d| is never {gate.old:g}"}
    powers = [{"growth": growth, "power": models.power(growth)} for growth in growths]
    return record | {"sizes": sizes, "smallest_growth": models.smallest(gate.power), "growths": powers}


def print_gate(records: Sequence[Mapping[str, Any]], growths: Sequence[float], gate: Gate, console: Console) -> None:
    """A line for every test, and what the numbers are."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("test", overflow="fold")
    table.add_column("words", no_wrap=True)
    for label in (*(f"power for a\ngrowth of {growth:g}" for growth in growths), "smallest\ngrowth"):
        table.add_column(label, justify="right", no_wrap=True)
    for record in records:
        powers = [_number(of["power"]) for of in record["growths"]] or ["-"] * len(growths)
        sizes = " ".join(map(str, record["sizes"] or ("?",)))
        table.add_row(escape(record["name"]), sizes, *powers, _number(record["smallest_growth"]))
    console.print(table)
    for line in (
        "",
        "power: how often `biassay compare OLD NEW` calls a test worse whose true |d| has grown by so much.",
        f"smallest growth: called worse in {gate.power:.0%} of comparisons; '-': none is, or |d| cannot grow so much.",
        f"margin {gate.margin:g}; level {gate.level:g} over {records[0]['family']} tests (--family);",
        f"|d| on the old model {gate.old:g} (--old); words go together on both models by a correlation of",
        f"{gate.agreement:g} (--agreement), and vary as on {', '.join(models_measured())} (medians).",
        *(f"{record['name']}: {record['note']}" for record in records if record["note"]),
    ):
        click.echo(line)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
