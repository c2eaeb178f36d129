"""Command `biassay tests power`, including the power of a gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

import click
from rich.markup import escape

from biassay.cli.listings import make_table, print_json, print_table
from biassay.cli.options import SectionedCommand, json_option, settings_options
from biassay.cli.word_association_tests import match_word_association_tests
from biassay.datasets.catalogue import select_tests
from biassay.datasets.schema import ROLES, Test
from biassay.datasets.variance_priors import calibrated_components, list_measured_models, typical_components
from biassay.errors import UsageError
from biassay.reporting.formats import format_count
from biassay.results.comparison import GATE, MARGIN, check_limits
from biassay.results.outcomes import Result
from biassay.results.run_data import model_key
from biassay.runs.compare import restrict_to_tests
from biassay.runs.folders import load_run_data
from biassay.stats.crossed import VarianceComponents
from biassay.stats.power import ALPHA, MOST_WORDS, POWER, CrossedDesign, Sizes, Sought, largest_d, words_needed
from biassay.studies.associations.power import count_clusters
from biassay.studies.settings import list_setting, setting


@dataclass(frozen=True)
class GateSettings:
    """Settings of a gate, and assumptions about the models.

    `agreement` is the correlation of both models over words: the difference of two tables has 2 (1 - agreement)
    times the variance of one table.
    """

    margin: float
    alpha: float
    family: int | None
    agreement: float
    power: float


@dataclass(frozen=True)
class GateQuestion:
    """A social-bias test and how its calibrated cosines vary on one model; `note` says why that is not known."""

    name: str
    question: str
    sizes: Sizes | None
    components: VarianceComponents | None
    note: str | None = None


def describe_typical_test(test: Test) -> GateQuestion:
    """Describe a test on a typical model."""
    try:
        return GateQuestion(test.name, test.question, count_clusters(test), calibrated_components(test))
    except UsageError as error:
        return GateQuestion(test.name, test.question, None, None, str(error))


def describe_measured_test(row: Result) -> GateQuestion:
    """Describe a test on the model that was measured."""
    parts, note = (row.var_targets, row.var_attributes, row.var_residual), None
    if None in parts:
        note = row.reason or "too few words for an interval"
    elif row.calibrated_difference is None or row.cosine_sd is None:
        note = "the run holds no cosine SD; measure the model again"
    if note is not None:
        return GateQuestion(row.test, row.question_or_item, None, None, note)
    n, m, k, l = (row.num_clusters.get(role, 0) for role in ROLES)  # noqa: E741
    calibrated = VarianceComponents(*(max(part or 0.0, 0.0) / row.cosine_sd**2 for part in parts))
    return GateQuestion(row.test, row.question_or_item, (n, m, k, l), calibrated)


def _list_questions(patterns: Sequence[str], folder: str | None) -> list[GateQuestion]:
    """Describe the selected social-bias tests on the first model of a run, or on a typical model without a run."""
    if folder is None:
        tests = select_tests(patterns or (GATE,))
        return [describe_typical_test(test) for test in tests if test.about != "method"]
    (run,) = restrict_to_tests({folder: load_run_data(Path(folder))}, patterns).values()
    if run.manifest.study != "associations":
        raise UsageError(f"--run needs a run of association tests, got one of {run.manifest.study}")
    rows = [row for row in run.results if model_key(row) == model_key(run.results[0]) and row.about != "method"]
    return [describe_measured_test(row) for row in rows]


def compute_gate_power(
    questions: Sequence[GateQuestion], growths: Sequence[float], gate: GateSettings
) -> list[dict[str, Any]]:
    """Compute the power of a gate for each test.

    Parameters
    ----------
    questions : sequence of GateQuestion
        Tests to describe.
    growths : sequence of float
        Growths towards the stereotype, in SDs of cosines.
    gate : GateSettings
        Settings of the gate.

    Returns
    -------
    list of dict
        Power for each growth, and the growth detected with the wanted power.
    """
    check_limits(gate.margin, gate.alpha)
    if not questions:
        raise UsageError("no social-bias test selected; a gate does not judge sanity checks")
    family = len({question.question for question in questions}) if gate.family is None else gate.family
    if not 0.0 < gate.power < 1.0:
        raise UsageError(f"power must lie between 0 and 1, got {gate.power:g}")
    if family < 1:
        raise UsageError(f"--family is the number of questions that are judged together, at least 1, got {family}")
    if not -1.0 <= gate.agreement < 1.0:
        raise UsageError(f"--agreement is a correlation, at least -1 and below 1, got {gate.agreement:g}")
    if not min(growths) > 0.0:
        raise UsageError(f"--effect is a growth above 0 with --gate, got {min(growths):g}")
    return [_make_gate_record(question, growths, gate, family) for question in questions]


def _make_gate_record(one: GateQuestion, growths: Sequence[float], gate: GateSettings, family: int) -> dict[str, Any]:
    record: dict[str, Any] = {"name": one.name, "question": one.question, "sizes": one.sizes, "family": family}
    record |= {"alpha": gate.alpha, "margin": gate.margin, "agreement": gate.agreement, "power": gate.power}
    record |= {"detectable_growth": None, "growths": [], "note": one.note}
    if one.sizes is None or one.components is None:
        return record
    share, alpha = 2.0 * (1.0 - gate.agreement), gate.alpha / (2 * family)
    parts = one.components.targets, one.components.attributes, one.components.residual
    design = CrossedDesign(VarianceComponents(*(share * part for part in parts)), one.sizes)
    powers = [{"growth": growth, "power": design.power_above(growth - gate.margin, alpha)} for growth in growths]
    smallest = design.smallest_difference_above(alpha, gate.power) if alpha < gate.power else None
    return record | {"detectable_growth": None if smallest is None else gate.margin + smallest, "growths": powers}


def print_gate_power(
    records: Sequence[Mapping[str, Any]], growths: Sequence[float], gate: GateSettings, source: str
) -> None:
    """Print one line per test, and explain the numbers.

    Parameters
    ----------
    records : sequence of mapping
        Result of `compute_gate_power`.
    growths : sequence of float
        Growths of the columns.
    gate : GateSettings
        Settings of the gate.
    source : str
        Models from which the variance of words is taken.
    """
    rows = [
        (*[one["power"] for one in record["growths"] or [{"power": None}] * len(growths)], record["detectable_growth"])
        for record in records
    ]
    numbers = (*(f"power for a\ngrowth of {growth:g}" for growth in growths), "detectable\ngrowth")
    _print_numbers(records, numbers, [[_format_number(value) for value in row] for row in rows])
    questions = format_count(records[0]["family"], "question")
    for line in (
        "",
        "growth: change of the calibrated difference towards the stereotype, in SDs of cosines between frequent words.",
        "power: how often `biassay compare OLD NEW` calls such a growth worse.",
        f"detectable growth: called worse with {gate.power:.0%} power; -: none.",
        f"margin {gate.margin:g}; alpha {gate.alpha:g} over {questions} (--family).",
        f"Assumed: cosines correlate at {gate.agreement:g} over words (--agreement) and vary as on {source}.",
        *(f"{record['name']}: {record['note']}" for record in records if record["note"]),
    ):
        click.echo(line)


AGREEMENT = 0.9
_EFFECTS = (0.5, 0.8)


@dataclass(frozen=True)
class PowerOptions:
    """Options of `biassay tests power`."""

    power: float = setting(POWER, "Find the effect that is detected with this power.")
    alpha: float = setting(ALPHA, "Set the two-sided significance level; with --gate, that of all verdicts together.")
    effects: tuple[float, ...] = list_setting(
        "Compute power for these effect sizes.  [default: 0.5,0.8; with --gate 2 and 5 margins]",
        metavar="D[,...]",
        option="--effect",
    )
    gate: bool = setting(
        False, "Compute the power of `biassay compare OLD NEW`; --effect is a growth in SDs.", section="gate"
    )
    margin: float = setting(MARGIN, "Ignore growth up to this margin. Only with --gate.", section="gate")
    family: int | None = setting(
        None, "Judge this many questions together. Only with --gate.  [default: those selected]", section="gate"
    )
    folder: str | None = setting(
        None,
        "Use the words of this run of the old model. Only with --gate.",
        metavar="FOLDER",
        option="--run",
        section="gate",
    )
    agreement: float = setting(
        AGREEMENT, "Assume this correlation of both models over words. Only with --gate.", section="gate"
    )


@click.command("power", cls=SectionedCommand)
@click.argument("patterns", nargs=-1, metavar="[TOPIC|PATTERN ...]")
@settings_options(PowerOptions)
@json_option
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
    """Compute the smallest effect that each test detects on a typical model, and how many words an effect needs.

    Patterns select tests as in 'biassay tests list'; by default the main collections, or with --gate the collection
    gate. With --gate, compute how often `biassay compare` calls a growth towards the stereotype worse.
    """
    effects = effects or ((2.0 * margin, 5.0 * margin) if gate else _EFFECTS)
    for effect in effects:
        if not gate and not 0.0 < abs(effect) < 2.0:
            raise UsageError(f"--effect must be between 0 and 2 (or -2), got {effect:g}")
    asked = next((pattern for pattern in patterns if not folder and match_word_association_tests(pattern)), None)
    if asked is not None:
        raise UsageError(f"{asked!r} is for chat or instruct models; measure it: biassay ask MODEL --tests {asked}")
    settings = GateSettings(margin, alpha, family, agreement, power)
    if gate:
        records = compute_gate_power(_list_questions(patterns, folder), effects, settings)
    else:
        records = [_make_record(test, effects, alpha, power, every=as_json) for test in select_tests(patterns)]
    if as_json:
        print_json(records)
        return
    if gate:
        print_gate_power(records, effects, settings, folder or f"{_list_typical_models()} (medians)")
        return
    numbers = ("smallest\nd", "largest\nd", *(f"words for\nd {effect:g}" for effect in effects))
    rows = [
        (
            _format_number(record["smallest_d"]),
            _format_number(record["largest_d"]),
            *("-" if words is None else f"{words:,}" for words in _list_words(record, len(effects))),
        )
        for record in records
    ]
    _print_numbers(records, numbers, rows)
    share, models = f"{power:.0%}", _list_typical_models()
    for line in (
        "",
        f"smallest d: detected with {share} power (alpha {alpha:g}, two-sided) on a typical model,",
        f"the median of {models}. largest d: upper bound of d for this number of target words.",
        "words for d: words per set needed to detect an effect of this size.",
        f"'-': more than {MOST_WORDS:,}, or not possible.",
        *(f"{record['name']}: {record['note']}" for record in records if record["note"]),
    ):
        click.echo(line)


def _make_record(test: Test, effects: Sequence[float], alpha: float, power: float, *, every: bool) -> dict[str, Any]:
    """Return the figures of a test: all if `every`, or those of the table."""
    components = typical_components(test)
    record: dict[str, Any] = {"name": test.name, "sizes": None, "alpha": alpha, "power": power}
    record |= {"components": asdict(components), "smallest_d": None, "largest_d": None, "effects": [], "note": None}
    try:
        sizes = count_clusters(test)
        record["sizes"] = sizes
        design = CrossedDesign(components, sizes)
    except UsageError as error:
        return record | {"note": str(error)}
    D, most = design.smallest_difference(alpha, power), largest_d(*sizes[:2])
    if D is None:
        record["note"] = "too few words: no effect is detected with this power, however large"
    found = [_describe_effect(design, effect, alpha, power, every=every) for effect in effects]
    return record | {"smallest_d": None if D is None else design.d_from_D(D), "largest_d": most, "effects": found}


def _describe_effect(
    design: CrossedDesign, effect: float, alpha: float, power: float, *, every: bool
) -> dict[str, Any]:
    """Return the power of an effect and the words it needs; None if d cannot be so large with these targets."""
    sought = dict(zip(("words", "targets", "attributes")[: 3 if every else 1], get_args(Sought), strict=False))
    if not abs(effect) < largest_d(*design.sizes[:2]):
        return {"effect": effect, "power": None} | dict.fromkeys(sought)
    D = design.D_from_d(effect)
    needed = {name: words_needed(design.components, D, design.sizes, of, alpha, power) for name, of in sought.items()}
    return {"effect": effect, "power": design.power(D, alpha)} | needed


def _print_numbers(records: Sequence[Mapping[str, Any]], numbers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print one line per test: its name, the sizes of its word sets, and the given numbers."""
    table = make_table("test", "words", *numbers, right=numbers, whole=("words", *numbers))
    for record, row in zip(records, rows, strict=True):
        table.add_row(escape(record["name"]), " ".join(map(str, record["sizes"] or ("?",))), *row)
    print_table(table)


def _list_typical_models() -> str:
    return ", ".join("USE" if name == "use" else name for name in list_measured_models())


def _list_words(record: Mapping[str, Any], count: int) -> list[int | None]:
    return [effect["words"] for effect in record["effects"]] or [None] * count


def _format_number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
