"""Represent participants and their steps through a study, and read the forms that they submit."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from biassay.survey.study import DemographicField, SurveyStudy

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams

Status = Literal["active", "valid", "rejected", "abandoned", "deleted"]


class DuplicateParticipantError(Exception):
    """A participant with this number of the pool exists already."""


class QuotaFullError(Exception):
    """The quota of every group was full when a participant reached the first one."""


@dataclass(frozen=True)
class Participant:
    """State of a participant. `asked` lists their groups in order, and is empty before the first rated page."""

    id: str
    status: Status
    step: int
    asked: tuple[str, ...]
    repeated: int
    code: str
    seen: float

    def group(self, place: int) -> str:
        """Return the group of a page with sliders; the last page repeats one."""
        return self.asked[place] if place < len(self.asked) else self.asked[self.repeated]


def make_participant(row: Mapping[str, Any]) -> Participant:
    """Create a participant from a row of the database."""
    same = ("id", "status", "step", "repeated", "code", "seen")
    return Participant(asked=tuple(json.loads(row["asked"])), **{name: row[name] for name in same})


StepKind = Literal["instructions", "group", "which_group", "high_low", "demographics", "done"]


@dataclass(frozen=True)
class Step:
    """One page. `place` is the index among the pages with sliders; the last of them repeats an earlier one."""

    kind: StepKind
    place: int = -1


def list_steps(study: SurveyStudy) -> tuple[Step, ...]:
    """List the steps after consent."""
    steps = [Step("instructions")]
    for place in range(study.groups_per_participant + 1):
        steps.append(Step("group", place))
        if place == 0 and study.rules.which_group:
            steps.append(Step("which_group"))
        if place == 1 and study.rules.high_low:
            steps.append(Step("high_low"))
    if study.demographics:
        steps.append(Step("demographics"))
    return (*steps, Step("done"))


_N_CHOICES = 5


@dataclass(frozen=True)
class ParsedForm:
    """Parsed form: `answers` for the store, or `missing`, the reason why it is incomplete, with what was `entered`."""

    answers: Mapping[str, Any] = field(default_factory=dict)
    missing: str | None = None
    entered: Mapping[str, Any] = field(default_factory=dict)


def parse_step(study: SurveyStudy, participant: Participant, step: Step, form: QueryParams) -> ParsedForm:
    """Parse the answers of one step.

    Parameters
    ----------
    study : SurveyStudy
        The study.
    participant : Participant
        Participant who sent the form.
    step : Step
        The step of the form.
    form : QueryParams
        The form.
    """
    if step.kind == "group":
        return _parse_ratings(study, participant, form)
    if step.kind == "which_group":
        chosen = form.get("group", "").strip()
        known = draw_group_choices(study, participant)
        if chosen in known:
            return ParsedForm({"which_group": chosen})
        return ParsedForm(missing=study.texts["which_group"]["missing"])
    if step.kind == "high_low":
        high, low = form.get("high", "").strip(), form.get("low", "").strip()
        traits = list_traits(study)
        if high in traits and low in traits and high != low:
            return ParsedForm({"high": high, "low": low})
        return ParsedForm(missing=study.texts["high_low"]["missing"], entered={"high": high, "low": low})
    if step.kind == "demographics":
        return _parse_demographics(study, form)
    return ParsedForm()


def draw_group_choices(study: SurveyStudy, participant: Participant) -> list[str]:
    """Draw the group just rated and some others, the same whenever the page is shown."""
    rng = random.Random(participant.id)
    others = [group for group in study.groups if group != participant.asked[0]]
    choices = [participant.asked[0], *rng.sample(others, min(_N_CHOICES - 1, len(others)))]
    rng.shuffle(choices)
    return choices


def list_traits(study: SurveyStudy) -> list[str]:
    """List all traits in alphabetical order."""
    return sorted(trait for pair in study.pairs for trait in pair)


def _parse_ratings(study: SurveyStudy, participant: Participant, form: QueryParams) -> ParsedForm:
    found = [_parse_rating(form.get(f"pair-{i}", "").strip()) for i in range(len(study.pairs))]
    ratings = [rating for rating in found if rating is not None]
    if len(ratings) == len(found):
        return ParsedForm({"ratings": ratings, "since": participant.seen})
    names = [f"{pair[0]} – {pair[1]}" for pair, rating in zip(study.pairs, found, strict=True) if rating is None]
    return ParsedForm(
        missing=study.texts.format_text("group", "missing", names=", ".join(names)), entered={"ratings": found}
    )


def _parse_rating(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 3 and int(text) <= 100 else None


def _parse_demographics(study: SurveyStudy, form: QueryParams) -> ParsedForm:
    answers: dict[str, str] = {}
    for place, asked in enumerate(study.demographics):
        given = [value.strip() for value in form.getlist(f"field-{place}") if value.strip()]
        answer = _parse_fact(asked, given)
        if len(answer) > asked.most and not asked.choices:
            too_long = study.texts.format_text("demographics", "too_long", most=asked.most)
            fields = [form.getlist(f"field-{place}") for place in range(len(study.demographics))]
            return ParsedForm(missing=f"{asked.name}: {too_long}", entered={"fields": fields})
        if answer:
            answers[asked.name] = answer
    return ParsedForm({"answers": answers})


def _parse_fact(asked: DemographicField, given: Sequence[str]) -> str:
    """Return the answer; ignore choices that were not offered."""
    if not asked.choices:
        return " ".join(given[0].split()) if given else ""
    chosen = [choice for choice in asked.choices if choice in given]
    return ",".join(chosen if asked.several else chosen[:1])
