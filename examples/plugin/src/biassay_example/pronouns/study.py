"""The study itself: what it asks of a model, and how it measures the answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from biassay.plugin import (
    Array,
    BlankScores,
    Capabilities,
    Capability,
    DegenerateError,
    Event,
    Finding,
    ModelOutputs,
    Progress,
    Requests,
    Row,
    RunData,
    Study,
    StudySchema,
    Tables,
    UnknownWords,
    effect_size,
    holm,
    permutation_test,
    smallest_p,
)
from biassay_example.pronouns.findings import findings_of
from biassay_example.pronouns.inputs import Inputs, InputsRecord, open_inputs
from biassay_example.pronouns.records import MODELS, OCCUPATIONS, ModelRow, OccupationRow
from biassay_example.pronouns.settings import Settings

__all__ = ["STUDY"]


class _Pronouns(Study):
    name = "pronouns"
    title = "Pronouns with occupations"
    package = "biassay-example"
    schema = StudySchema(Settings, InputsRecord, (OCCUPATIONS, MODELS))

    def load_inputs(self, settings: Settings) -> Inputs:
        return open_inputs(settings)

    def required_capabilities(self, settings: Settings) -> tuple[Capability, ...]:  # noqa: ARG002
        return ("blanks",)

    def requests(self, inputs: Inputs, capabilities: Capabilities) -> Requests:  # noqa: ARG002
        return Requests(blanks=[blank for name, _ in inputs.occupations for blank in inputs.blanks(name)])

    def measure(self, inputs: Inputs, model: ModelOutputs, all_outputs: Sequence[ModelOutputs]) -> Iterator[Event]:  # noqa: ARG002
        who = (model.identity.name, model.identity.options)
        answers = [model.blanks(inputs.blanks(name)) for name, _ in inputs.occupations]
        if unknown := _unknown(inputs, answers):
            yield UnknownWords(unknown)
            yield Row("models", ModelRow(*who, reason=f"the model does not know {', '.join(map(repr, unknown))}"))
            return
        grid = np.array([[_log_odds(filled) for filled in of] for of in answers])
        yield Array("log_odds", grid)
        for number, ((name, group), odds) in enumerate(zip(inputs.occupations, grid, strict=True), start=1):
            yield Row("results", OccupationRow(*who, name, group, float(odds.mean()), float(odds.std(ddof=1))))
            yield Progress("occupations", number, len(grid))
        yield Row("models", _model_row(*who, grid.mean(axis=1), len(inputs.record.occupations["men"])))

    def finalize_tables(self, settings: Settings, tables: Tables) -> Tables:
        """Every model is a test of its own: p-values are corrected for their number."""
        rows: tuple[ModelRow, ...] = tables.get("models", ())
        tested = [row.p_value for row in rows if row.p_value is not None]
        adjusted = iter(holm(tested, settings.alpha).adjusted.tolist() if tested else ())
        return {
            **tables,
            "models": tuple(row if row.p_value is None else replace(row, p_value_holm=next(adjusted)) for row in rows),
        }

    def findings(self, run: RunData) -> Sequence[Finding]:
        return findings_of(run)

    def has_failures(self, run: RunData) -> bool:
        return any(row.reason is not None for row in run.tables.get("models", ()))


def _unknown(inputs: Inputs, answers: Sequence[Sequence[BlankScores]]) -> tuple[str, ...]:
    """The pronouns that the model does not know in some sentence."""
    words = (inputs.settings.first, inputs.settings.second)
    lengths = [filled.lengths for of in answers for filled in of]
    return tuple(word for place, word in enumerate(words) if not all(own[place] for own in lengths))


def _log_odds(filled: BlankScores) -> float:
    """How much more likely the first pronoun is than the second, in a sentence."""
    first, second = np.add.reduceat(filled.columns[:, 0].astype(np.float64), filled.starts)
    return float(first - second)


def _model_row(model: str, options: str, odds: NDArray[np.float64], men: int) -> ModelRow:
    x, y = odds[:men], odds[men:]
    try:
        effect = effect_size(x, y)
    except DegenerateError:
        return ModelRow(model, options, reason="the log-odds of all occupations are the same")
    return ModelRow(
        model,
        options,
        men=float(x.mean()),
        women=float(y.mean()),
        effect_size=effect,
        p_value=permutation_test(x, y).value,
        p_value_opposite=permutation_test(-x, -y).value,
        p_floor=smallest_p(len(x), len(y)),
    )


STUDY = _Pronouns()
