"""What runs of stereotypes show, as records: how measures agree with people, and what goes with every group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from biassay.results.data import RunData
from biassay.results.findings import Finding, Standing
from biassay.results.slices import Slice
from biassay.stats.multiple import holm
from biassay.studies.stereotypes.records import AlignmentRow, InputsRecord, ProfileRow
from biassay.studies.stereotypes.view import closest, measure_name, measures_of, models_of, overall

__all__ = ["ALPHA", "findings_of"]

ALPHA = 0.05
_TRAITS = 5


def findings_of(run: RunData) -> Sequence[Finding]:
    """Per model one finding for every measure that was compared with people, and one for every single group."""
    models = models_of(run)
    compared = [
        (model.label, found) for model in models for one in measures_of(model) if (found := overall(one)) is not None
    ]
    p_values = [math.nan if row.p_value_shuffled is None else row.p_value_shuffled for _, row in compared]
    corrected = holm(p_values, ALPHA).adjusted.tolist() if compared else []
    agreements = [
        _agreement(label, row, None if math.isnan(p) else p)
        for (label, row), p in zip(compared, corrected, strict=True)
    ]
    return [*agreements, *(finding for model in models for finding in _groups(model, run.manifest.inputs))]


def _agreement(label: str, row: AlignmentRow, corrected: float | None) -> Finding:
    low, high = row.tau_both or row.tau_groups or (None, None)
    return Finding(
        model=label,
        item=row.measure,
        title=f"{measure_name(row.measure)}: agreement with people's ratings of groups",
        topic="people's ratings",
        about="people",
        standing=_standing(row, corrected),
        effect=row.tau,
        low=low,
        high=high,
        unit="tau",
        p_values={"groups shuffled": row.p_value_shuffled, "groups shuffled, corrected": corrected},
        reason="agreement with people is not defined" if row.tau is None else None,
    )


def _standing(row: AlignmentRow, corrected: float | None) -> Standing:
    """Is the model closer to people's ratings of a group than to those of other groups?"""
    if row.tau is None:
        return "not measured"
    if row.p_value_shuffled is None or corrected is None:
        return "described"
    if row.p_value_shuffled > ALPHA:
        return "not shown"
    return "corrected" if corrected <= ALPHA else "uncorrected"


def _groups(model: Slice, inputs: InputsRecord) -> Iterator[Finding]:
    """The traits that go most with every single group, by the measure that agrees best with people or comes first."""
    best = closest(model)
    for profile in () if best is None else best["profiles"]:
        if not profile.parts:
            yield _group(model, profile, inputs)


def _group(model: Slice, profile: ProfileRow, inputs: InputsRecord) -> Finding:
    known = [
        (score, pair)
        for score, pair in zip(profile.scores, inputs.pairs, strict=True)
        if score is not None and math.isfinite(score)
    ]
    strongest = sorted(known, key=lambda cell: -abs(cell[0]))[:_TRAITS]
    traits = tuple(_trait(score, pair, inputs) for score, pair in strongest)
    return Finding(
        model=model.label,
        item=profile.group,
        title=f"traits that go with {profile.group}, by {measure_name(profile.measure)}",
        topic=profile.domain,
        about="people",
        standing="described" if traits else "not measured",
        direction=f"traits that go with {profile.group}" if traits else "",
        effect=strongest[0][0] if strongest else None,
        unit="score",
        reason=None if traits else _why_not(model, profile.group),
        evidence=traits,
    )


def _trait(score: float, pair: str, inputs: InputsRecord) -> str:
    """The trait of a pair that a score points to; an older run may not say which are its two."""
    left, right = inputs.traits.get(pair, (f"{pair} (left)", f"{pair} (right)"))
    return right if score >= 0.0 else left


def _why_not(model: Slice, group: str) -> str:
    if any(group in row.unknown_groups for row in model["models"]):
        return "the model does not know all words of the group"
    if any(group in row.few_groups for row in model["contexts"]):
        return "the group has too few contexts"
    return "no score is defined"
