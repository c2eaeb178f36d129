"""What a participant sent, checked against the step it belongs to. What is missing is asked for again."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import FormData

from biassay.survey.flow import Step
from biassay.survey.participant import Participant
from biassay.survey.study import Field, Study

__all__ = ["Read", "group_choices", "read_step", "traits_of"]

_CHOICES = 5


@dataclass(frozen=True)
class Read:
    """What was understood: ``given`` goes to the store; ``missing`` says in words why it cannot yet."""

    given: Mapping[str, Any] = field(default_factory=dict)
    missing: str | None = None
    shown: Mapping[str, Any] = field(default_factory=dict)


def read_step(study: Study, participant: Participant, step: Step, form: FormData) -> Read:
    """The answers of one step."""
    if step.kind == "group":
        return _ratings(study, participant, form)
    if step.kind == "which_group":
        chosen = _text(form, "group")
        known = group_choices(study, participant)
        return Read({"which_group": chosen}) if chosen in known else Read(missing=study.texts["which_group"]["missing"])
    if step.kind == "high_low":
        high, low = _text(form, "high"), _text(form, "low")
        traits = traits_of(study)
        if high in traits and low in traits and high != low:
            return Read({"high": high, "low": low})
        return Read(missing=study.texts["high_low"]["missing"], shown={"high": high, "low": low})
    if step.kind == "demographics":
        return _demographics(study, form)
    return Read()


def group_choices(study: Study, participant: Participant) -> list[str]:
    """The group just rated and some others, the same ones whenever the page is shown."""
    rng = random.Random(participant.id)
    others = [group for group in study.groups if group != participant.asked[0]]
    choices = [participant.asked[0], *rng.sample(others, min(_CHOICES - 1, len(others)))]
    rng.shuffle(choices)
    return choices


def traits_of(study: Study) -> list[str]:
    return sorted(trait for pair in study.pairs for trait in pair)


def _ratings(study: Study, participant: Participant, form: FormData) -> Read:
    found = [_rating(_text(form, f"pair-{i}")) for i in range(len(study.pairs))]
    ratings = [rating for rating in found if rating is not None]
    if len(ratings) == len(found):
        return Read({"ratings": ratings, "since": participant.seen})
    names = [f"{pair[0]} – {pair[1]}" for pair, rating in zip(study.pairs, found, strict=True) if rating is None]
    return Read(missing=study.texts.filled("group", "missing", names=", ".join(names)), shown={"ratings": found})


def _rating(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 3 and int(text) <= 100 else None


def _demographics(study: Study, form: FormData) -> Read:
    answers: dict[str, str] = {}
    for place, asked in enumerate(study.demographics):
        given = [value.strip() for value in _texts(form, f"field-{place}") if value.strip()]
        answer = _fact(asked, given)
        if len(answer) > asked.most and not asked.choices:
            too_long = study.texts.filled("demographics", "too_long", most=asked.most)
            return Read(missing=f"{asked.name}: {too_long}", shown={"fields": _shown(study, form)})
        if answer:
            answers[asked.name] = answer
    return Read({"answers": answers})


def _fact(asked: Field, given: Sequence[str]) -> str:
    """What was said; a choice that was not offered is none."""
    if not asked.choices:
        return " ".join(given[0].split()) if given else ""
    chosen = [choice for choice in asked.choices if choice in given]
    return ",".join(chosen if asked.several else chosen[:1])


def _shown(study: Study, form: FormData) -> list[list[str]]:
    return [_texts(form, f"field-{place}") for place in range(len(study.demographics))]


def _texts(form: FormData, name: str) -> list[str]:
    return [value for value in form.getlist(name) if isinstance(value, str)]


def _text(form: FormData, name: str) -> str:
    value = form.get(name)
    return value.strip() if isinstance(value, str) else ""
