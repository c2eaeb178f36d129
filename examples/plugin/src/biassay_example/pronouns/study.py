"""The study itself: what it asks of a model, and how it measures the answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from biassay.encoders.base import Filled
from biassay.errors import RefusedError
from biassay.results.data import RunData
from biassay.results.findings import Finding
from biassay.results.storage import Types
from biassay.stats.association import effect_size
from biassay.stats.multiple import holm
from biassay.stats.permutation import permutation_test, smallest_p
from biassay.studies.study import Ability, Array, Event, Progress, Requests, Row, Study, Tables
from biassay.vectors.answers import Abilities, Answers
from biassay_example.pronouns.findings import findings_of
from biassay_example.pronouns.inputs import Inputs, InputsRecord, open_inputs
from biassay_example.pronouns.records import MODELS, OCCUPATIONS, ModelRow, OccupationRow
from biassay_example.pronouns.settings import Settings

__all__ = ["STUDY"]


class _Pronouns(Study):
    name = "pronouns"
    title = "Pronouns with occupations"
    package = "biassay-example"
    types = Types(Settings, InputsRecord, (OCCUPATIONS, MODELS))

    def open(self, settings: Settings) -> Inputs:
        return open_inputs(settings)

    def asks(self, settings: Settings) -> tuple[Ability, ...]:  # noqa: ARG002
        return ("blanks",)

    def requests(self, inputs: Inputs, abilities: Abilities) -> Requests:  # noqa: ARG002
        return Requests(blanks=[blank for name, _ in inputs.occupations for blank in inputs.blanks(name)])

    def measure(self, inputs: Inputs, model: Answers, everyone: Sequence[Answers]) -> Iterator[Event]:  # noqa: ARG002
        who = (model.identity.name, model.identity.options)
        found = []
        for number, (name, group) in enumerate(inputs.occupations, start=1):
            odds = np.array([_log_odds(filled, inputs, who[0]) for filled in model.blanks(inputs.blanks(name))])
            found.append(odds)
            yield Row("results", OccupationRow(*who, name, group, float(odds.mean()), float(odds.std(ddof=1))))
            yield Progress("occupations", number, len(inputs.occupations))
        grid = np.array(found)
        yield Array("log_odds", grid)
        yield Row("models", _model_row(*who, grid.mean(axis=1), len(inputs.record.occupations["men"])))

    def complete(self, settings: Settings, tables: Tables) -> Tables:
        """Every model is a test of its own: p-values are corrected for their number."""
        rows: tuple[ModelRow, ...] = tables.get("models", ())
        adjusted = holm([row.p_value for row in rows], settings.alpha).adjusted if rows else ()
        corrected = tuple(replace(row, p_value_holm=float(p)) for row, p in zip(rows, adjusted, strict=True))
        return {**tables, "models": corrected}

    def findings(self, run: RunData) -> Sequence[Finding]:
        return findings_of(run)


def _log_odds(filled: Filled, inputs: Inputs, model: str) -> float:
    """How much more likely the first pronoun is than the second, in a sentence."""
    words = (inputs.settings.first, inputs.settings.second)
    for word, length in zip(words, filled.lengths.tolist(), strict=True):
        if not length:
            raise RefusedError(f"model {model!r} does not know {word!r}; choose other words with --first and --second")
    first, second = np.add.reduceat(filled.columns[:, 0].astype(np.float64), filled.starts)
    return float(first - second)


def _model_row(model: str, options: str, odds: NDArray[np.float64], men: int) -> ModelRow:
    x, y = odds[:men], odds[men:]
    return ModelRow(
        model,
        options,
        men=float(x.mean()),
        women=float(y.mean()),
        effect_size=effect_size(x, y),
        p_value=permutation_test(x, y).value,
        p_value_opposite=permutation_test(-x, -y).value,
        p_floor=smallest_p(len(x), len(y)),
    )


STUDY = _Pronouns()
