"""How an effect differs between two models, whatever was measured."""

from __future__ import annotations

from dataclasses import dataclass

from biassay.results.data import Record
from biassay.results.findings import About

__all__ = ["EffectDifference"]


@dataclass(frozen=True)
class EffectDifference(Record):
    """An effect on the first model and on another, over what both were asked.

    ``over`` is what the interval and the p-value hold for, beside what was asked. ``p_value_holm`` is corrected over
    the items about people of a model. None: not to be said, for the reason given.
    """

    item: str
    title: str
    baseline: str
    model: str
    unit: str
    effect_baseline: float | None
    effect_model: float | None
    reason: str | None = None
    difference: float | None = None
    interval_low: float | None = None
    interval_high: float | None = None
    p_value: float | None = None
    p_value_holm: float | None = None
    over: str = ""
    about: About = "people"
    topic: str = ""
