"""The steps of a participant; there is no way back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from biassay.survey.study import Study

__all__ = ["Kind", "Step", "steps_of"]

Kind = Literal["instructions", "group", "which_group", "high_low", "demographics", "done"]


@dataclass(frozen=True)
class Step:
    """One page. ``place`` counts the pages with sliders; the last of them repeats an earlier one."""

    kind: Kind
    place: int = -1


def steps_of(study: Study) -> tuple[Step, ...]:
    """All steps after consent."""
    steps = [Step("instructions")]
    for place in range(study.groups_a_participant + 1):
        steps.append(Step("group", place))
        if place == 0 and study.rules.which_group:
            steps.append(Step("which_group"))
        if place == 1 and study.rules.high_low:
            steps.append(Step("high_low"))
    if study.demographics:
        steps.append(Step("demographics"))
    return (*steps, Step("done"))
