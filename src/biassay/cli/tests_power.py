"""``biassay tests power``: which effects tests can detect, and how many words an effect needs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import click
from rich.markup import escape
from rich.table import Table

from biassay.cli.common import console_for_tables
from biassay.cli.tests_asked import asked_of
from biassay.cli.tests_gate_power import (
    Gate,
    compute_gate_power,
    measured_questions,
    print_gate_power,
    typical_questions,
)
from biassay.errors import UsageError
from biassay.pages.plain_tables import WIDTH
from biassay.results.verdicts import GATE, MARGIN
from biassay.runs.loading import load_data
from biassay.runs.sides import only_tests_of
from biassay.stats.power import ALPHA, MOST_WORDS, POWER, Design, Sought, largest_d, words_needed
from biassay.stimuli.catalogue import select_tests
from biassay.stimuli.model import Test
from biassay.stimuli.typical import models_measured, typical_components
from biassay.studies.associations.power import sizes_of

__all__ = ["show_power"]

AGREEMENT = 0.9
_EFFECTS = (0.5, 0.8)


@click.command("power")
@click.argument("patterns", nargs=-1, metavar="[TOPIC|PATTERN ...]")
@click.option("--power", type=float, default=POWER, show_default=True, help="How often an effect is to be found.")
@click.option(
    "--alpha",
    type=float,
    default=ALPHA,
    show_default=True,
    help="Level of the test, two-sided; with --gate, of all verdicts together.",
)
@click.option(
    "--effect",
    "effects",
    type=float,
    multiple=True,
    help="Effect size d over words. May be repeated.  [default: 0.5 and 0.8; with --gate 2 and 5 margins]",
)
@click.option("--gate", is_flag=True, help="Power of `biassay compare OLD NEW`; --effect is then a growth in SDs.")
@click.option(
    "--margin", type=float, default=MARGIN, show_default=True, help="With --gate, growth that does not matter."
)
@click.option("--family", type=int, help="With --gate, number of questions judged together.  [default: those named]")
@click.option("--run", "folder", metavar="FOLDER", help="With --gate, a run of the old model, to use its own words.")
@click.option(
    "--agreement",
    type=float,
    default=AGREEMENT,
    show_default=True,
    help="With --gate, correlation of both models over words.",
)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON, with more figures.")
def show_power(
    patterns: tuple[str, ...],
    power: float,
    alpha: float,
    effects: tuple[float, ...],
    gate: bool,
    margin: float,
    family: int | None,
    folder: str | None,
    agreement: float,
    as_json: bool,
) -> None:
    """The smallest effect that each test can detect on a typical model, and how many words an effect needs.

    Tests are chosen as by 'biassay tests list'; without patterns, those of the main collections, or with --gate
    the collection gate. With --gate: how likely a growth towards the stereotype is called worse when models are
    compared.
    """
    effects = effects or ((2.0 * margin, 5.0 * margin) if gate else _EFFECTS)
    for effect in effects:
        if not gate and not 0.0 < abs(effect) < 2.0:
            raise UsageError(f"an effect is a d by word between 0 and 2 (or -2), got {effect:g}")
    asked = next((pattern for pattern in patterns if not folder and asked_of(pattern)), None)
    if asked is not None:
        raise UsageError(f"{asked!r} is for chat or instruct models; measure it: biassay ask MODEL --tests {asked}")
    settings = Gate(margin, alpha, family, agreement, power)
    if gate and folder is not None:
        (run,) = only_tests_of({folder: load_data(Path(folder))}, patterns).values()
        records = compute_gate_power(measured_questions(run), effects, settings)
    elif gate:
        records = compute_gate_power(typical_questions(select_tests(patterns or (GATE,))), effects, settings)
    else:
        records = [_record(test, effects, alpha, power, every=as_json) for test in select_tests(patterns)]
    if as_json:
        click.echo(json.dumps(records, indent=1, ensure_ascii=False))
        return
    console = console_for_tables()
    console.width = min(console.width, WIDTH)
    if gate:
        print_gate_power(records, effects, settings, folder or f"{', '.join(models_measured())} (medians)", console)
        return
    console.print(_table(records, effects))
    share, models = f"{power:.0%}", ", ".join(models_measured())
    for line in (
        "",
        f"smallest d: found in {share} of cases by the crossed test (alpha {alpha:g}, two-sided) on a typical model,",
        f"the median of {models}. largest d: what d stays below with so many target words.",
        "words for d: in each set, to find the effect that shows as this d with the test's own words.",
        f"'-': more than {MOST_WORDS:,}, or not possible.",
        *(f"{record['name']}: {record['note']}" for record in records if record["note"]),
    ):
        click.echo(line)


def _record(test: Test, effects: Sequence[float], alpha: float, power: float, *, every: bool) -> dict[str, Any]:
    """What is known of a test; ``every`` figure, or those of the table."""
    components = typical_components(test)
    record: dict[str, Any] = {"name": test.name, "sizes": None, "alpha": alpha, "power": power}
    record |= {"components": asdict(components), "smallest_d": None, "largest_d": None, "effects": [], "note": None}
    try:
        sizes = sizes_of(test)
        record["sizes"] = sizes
        design = Design(components, sizes)
    except UsageError as error:
        return record | {"note": str(error)}
    D, most = design.smallest(alpha, power), largest_d(*sizes[:2])
    if D is None:
        record["note"] = "too few words for a p-value: no effect is found so often, however large it is"
    found = [_of_effect(design, effect, alpha, power, every=every) for effect in effects]
    return record | {"smallest_d": None if D is None else design.d_of(D), "largest_d": most, "effects": found}


def _of_effect(design: Design, effect: float, alpha: float, power: float, *, every: bool) -> dict[str, Any]:
    """Its power, and words that it needs; neither where d cannot be so large with these targets."""
    sought = dict(zip(("words", "targets", "attributes")[: 3 if every else 1], get_args(Sought), strict=False))
    if not abs(effect) < largest_d(*design.sizes[:2]):
        return {"effect": effect, "power": None} | dict.fromkeys(sought)
    D = design.D_of(effect)
    needed = {name: words_needed(design.components, D, design.sizes, of, alpha, power) for name, of in sought.items()}
    return {"effect": effect, "power": design.power(D, alpha)} | needed


def _table(records: Sequence[Mapping[str, Any]], effects: Sequence[float]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("test", overflow="fold")
    table.add_column("words", no_wrap=True)
    for label in ("smallest\nd", "largest\nd", *(f"words for\nd {effect:g}" for effect in effects)):
        table.add_column(label, justify="right", no_wrap=True)
    for record in records:
        able = [_number(record["smallest_d"]), _number(record["largest_d"])]
        needed = [f"{of['words']:,}" if of["words"] is not None else "-" for of in record["effects"]]
        sizes = " ".join(map(str, record["sizes"] or ("?",)))
        table.add_row(escape(record["name"]), sizes, *able, *(needed or ["-"] * len(effects)))
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
