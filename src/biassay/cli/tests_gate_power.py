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
from biassay.pages.formats import counted
from biassay.results.data import RunData
from biassay.results.labels import model_key
from biassay.results.verdicts import check_limits
from biassay.stats.crossed import Components
from biassay.stats.power import Sizes, largest_d
from biassay.stats.stronger import TwoModels
from biassay.stimuli.model import ROLES, Test
from biassay.stimuli.typical import typical_components
from biassay.studies.associations.power import sizes_of
from biassay.studies.associations.records import Result

__all__ = ["OLD", "Gate", "gate_records", "measured", "print_gate", "typical"]


OLD = 0.5
"""The absolute d on the old model, where none is known."""


@dataclass(frozen=True)
class Gate:
    """The settings of a gate, and what is taken for granted of the models."""

    margin: float
    level: float
    family: int | None
    agreement: float
    old: float | None
    power: float


@dataclass(frozen=True)
class Judged:
    """A test about people, how its words vary, and the absolute d on the old model."""

    name: str
    sizes: Sizes | None
    components: Components | None
    old: float | None
    note: str | None = None


def typical(tests: Sequence[Test]) -> list[Judged]:
    """Tests before any model is measured."""
    return [_typical(test) for test in tests if test.about != "method"]


def _typical(test: Test) -> Judged:
    try:
        return Judged(test.name, sizes_of(test), typical_components(test), OLD)
    except UsageError as error:
        return Judged(test.name, None, None, None, str(error))


def measured(run: RunData) -> list[Judged]:
    """Tests as the first model of a run knows them."""
    if run.manifest.study != "associations":
        raise UsageError(f"a run of association tests is needed, got one of {run.manifest.study}")
    first = model_key(run.results[0]) if run.results else None
    return [_measured(row) for row in run.results if model_key(row) == first and row.about != "method"]


def _measured(row: Result) -> Judged:
    parts = row.var_targets, row.var_attributes, row.var_residual
    n, m, k, l = (len(row.associations.get(role, {})) for role in ROLES)  # noqa: E741
    if None in parts or row.effect_size_by_word is None:
        return Judged(row.test, None, None, None, row.reason or "there are too few words for a p-value")
    components = Components(*(part or 0.0 for part in parts))
    return Judged(row.test, (n, m, k, l), components, abs(row.effect_size_by_word))


def gate_records(judged: Sequence[Judged], growths: Sequence[float], gate: Gate) -> list[dict[str, Any]]:
    """Of every test how often growths of |d| are called worse, and the smallest that mostly is."""
    check_limits(gate.margin, gate.level)
    if not judged:
        raise UsageError("there is no test about people; a gate does not judge checks of the method")
    family = len(judged) if gate.family is None else gate.family
    if not 0.0 < gate.power < 1.0:
        raise UsageError(f"power must lie between 0 and 1, got {gate.power:g}")
    if family < 1:
        raise UsageError(f"the family is the number of tests that are judged together, at least 1, got {family}")
    if not ((gate.old is None or gate.old >= 0.0) and min(growths) > 0.0):
        raise UsageError("the absolute d on the old model is at least 0, and a growth above 0")
    return [_record(test, growths, gate, family) for test in judged]


def _record(test: Judged, growths: Sequence[float], gate: Gate, family: int) -> dict[str, Any]:
    old = test.old if gate.old is None else gate.old
    record: dict[str, Any] = {"name": test.name, "sizes": test.sizes, "family": family, "level": gate.level}
    record |= {"margin": gate.margin, "agreement": gate.agreement, "old": old, "power": gate.power}
    record |= {"smallest_growth": None, "growths": [], "note": test.note}
    if test.sizes is None or test.components is None or old is None:
        return record
    if not old < largest_d(*test.sizes[:2]):
        return record | {"note": f"with so few target words |d| is never {old:g}"}
    parts, confidence = test.components, 1.0 - gate.level / family
    models = TwoModels(parts, parts, (gate.agreement,) * 3, test.sizes, old, confidence, gate.margin)
    powers = [{"growth": growth, "power": models.power(growth)} for growth in growths]
    return record | {"smallest_growth": models.smallest(gate.power), "growths": powers}


def print_gate(
    records: Sequence[Mapping[str, Any]], growths: Sequence[float], gate: Gate, of: str, console: Console
) -> None:
    """A line for every test, and what the numbers are; words vary as ``of`` says."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("test", overflow="fold")
    table.add_column("words", no_wrap=True)
    for label in ("old\n|d|", *(f"power for a\ngrowth of {growth:g}" for growth in growths), "smallest\ngrowth"):
        table.add_column(label, justify="right", no_wrap=True)
    for record in records:
        known = bool(record["growths"])
        powers = [_number(one["power"], "too large") for one in record["growths"]] or ["-"] * len(growths)
        sizes = " ".join(map(str, record["sizes"] or ("?",)))
        smallest = _number(record["smallest_growth"], "none" if known else "-")
        table.add_row(escape(record["name"]), sizes, _number(record["old"]), *powers, smallest)
    console.print(table)
    for line in (
        "",
        "power: how often `biassay compare OLD NEW` calls a test worse whose true |d| has grown by so much;",
        "too large: with so few target words |d| cannot grow by so much.",
        f"smallest growth: called worse in {gate.power:.0%} of comparisons; none: no growth that |d| allows is.",
        f"margin {gate.margin:g}; level {gate.level:g} over {counted(records[0]['family'], 'test')} (--family);",
        f"words go together on both models by a correlation of {gate.agreement:g} (--agreement), and vary as on",
        f"{of}.",
        *(f"{record['name']}: {record['note']}" for record in records if record["note"]),
    ):
        click.echo(line)


def _number(value: float | None, missing: str = "-") -> str:
    return missing if value is None else f"{value:.2f}"
