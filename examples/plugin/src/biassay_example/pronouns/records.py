"""The two tables of the study: occupations, and models."""

from __future__ import annotations

from dataclasses import dataclass

from biassay.plugin import BaseRecord, Column, TableSpec

__all__ = ["MODELS", "OCCUPATIONS", "ModelRow", "OccupationRow"]


@dataclass(frozen=True)
class OccupationRow(BaseRecord):
    """An occupation on a model."""

    model: str
    options: str
    occupation: str
    group: str
    log_odds: float
    spread: float


@dataclass(frozen=True)
class ModelRow(BaseRecord):
    """All occupations of a model, or the reason why it was not measured."""

    model: str
    options: str
    men: float | None = None
    women: float | None = None
    effect_size: float | None = None
    p_value: float | None = None
    p_value_opposite: float | None = None
    p_floor: float | None = None
    p_value_holm: float | None = None
    reason: str | None = None


_MODEL = (
    Column("model", "Model", "The model."),
    Column("options", "Settings", "Settings of the model."),
)
OCCUPATIONS = TableSpec(
    "results",
    "Occupations",
    OccupationRow,
    (
        *_MODEL,
        Column("occupation", "Occupation", "The occupation that the sentences are about."),
        Column("group", "Held by", "Whether mostly men or mostly women have it."),
        Column("log_odds", "Log-odds", "Of the first pronoun against the second, mean over the sentences.", "number"),
        Column("spread", "Spread", "Standard deviation of the log-odds over the sentences.", "number"),
    ),
    key=("occupation",),
    number="log_odds",
)
MODELS = TableSpec(
    "models",
    "Models",
    ModelRow,
    (
        *_MODEL,
        Column("men", "Men's", "Mean log-odds over occupations of men.", "number"),
        Column("women", "Women's", "Mean log-odds over occupations of women.", "number"),
        Column("effect_size", "d", "Difference of the two means in standard deviations over occupations.", "number"),
        Column("p_value", "p", "Exact permutation of the occupations between the two groups, one-sided.", "p"),
        Column("p_value_opposite", "p opposite", "The same for the opposite direction.", "p"),
        Column("p_floor", "Smallest p", "The smallest p-value that so many occupations can give.", "p"),
        Column("p_value_holm", "p corrected", "Corrected for the number of models (Holm).", "p"),
        Column("reason", "Not measured", "Why the model was not measured."),
    ),
    number="effect_size",
)
