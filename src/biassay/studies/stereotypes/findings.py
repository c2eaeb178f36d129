"""What runs of stereotypes show, as records: how measures agree with people, and what goes with every group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from biassay.results.data import RunData
from biassay.results.findings import Finding, Standing
from biassay.results.slices import Slice
from biassay.stats.multiple import holm
from biassay.studies.stereotypes.centring import Trait, is_centred, singles, traits_of
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
    name, is_tested = measure_name(row.measure), None not in (row.tau, row.tau_shuffled, corrected)
    return Finding(
        model=label,
        item=row.measure,
        title=f"{name}: agreement with people's ratings of groups",
        topic="people's ratings",
        about="people",
        standing=_standing(row, corrected),
        direction=f"{name} fits people's ratings of a group better than those of other groups" if is_tested else "",
        effect=row.tau,
        low=low,
        high=high,
        unit="tau",
        p_values={"groups shuffled": row.p_value_shuffled, "groups shuffled, corrected": corrected},
        reason="agreement with people is not defined" if row.tau is None else None,
        notes=(f"with groups shuffled tau = {row.tau_shuffled:z.2f}",) if is_tested else (),
    )


def _standing(row: AlignmentRow, corrected: float | None) -> Standing:
    """Is the model closer to people's ratings of a group than to those of other groups?"""
    if row.tau is None:
        return "skipped"
    if row.p_value_shuffled is None or corrected is None:
        return "descriptive"
    if row.p_value_shuffled > ALPHA:
        return "inconclusive"
    return "significant" if corrected <= ALPHA else "uncorrected"


def _groups(model: Slice, inputs: InputsRecord) -> Iterator[Finding]:
    """The traits that set every single group apart, by the measure that agrees best with people or comes first."""
    best = closest(model)
    profiles = [] if best is None else singles(best)
    traits, more = traits_of(profiles, inputs), " more than with other groups" if is_centred(profiles) else ""
    for profile in profiles:
        yield _group(model, profile, traits[profile.group][:_TRAITS], more)


def _group(model: Slice, profile: ProfileRow, strongest: Sequence[Trait], more: str) -> Finding:
    """The effect is the score of the first trait, less the mean of all groups where there are others."""
    return Finding(
        model=model.label,
        item=profile.group,
        title=f"traits that go with {profile.group}{more}, by {measure_name(profile.measure)}",
        topic=profile.domain,
        about="people",
        standing="descriptive" if strongest else "skipped",
        direction=f"traits that go with {profile.group}{more}" if strongest else "",
        effect=strongest[0].beyond if strongest else None,
        unit="score",
        reason=None if strongest else _why_not(model, profile.group),
        evidence=tuple(trait.name for trait in strongest),
    )


def _why_not(model: Slice, group: str) -> str:
    if any(group in row.unknown_groups for row in model["models"]):
        return "the model does not know all words of the group"
    if any(group in row.few_groups for row in model["contexts"]):
        return "the group has too few contexts"
    return "no score is defined"
