"""The models of a run, opened for what a study asks of them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from biassay.answers.answers import Abilities
from biassay.errors import UsageError
from biassay.models.answering import Streams
from biassay.models.base import Identity
from biassay.models.family import ModelName
from biassay.models.python import wrap
from biassay.models.readings import own_reading, readings_of
from biassay.models.registry import open_as, parse_model
from biassay.models.vocabulary import HasVocabulary
from biassay.results.data import ModelRecord
from biassay.results.labels import told_apart
from biassay.runs.failing import is_own, reason_of
from biassay.runs.listener import Listener, begin
from biassay.runs.models import Asked, identified, identities_of
from biassay.studies.study import Ability

__all__ = ["Member", "open_team"]


@dataclass(frozen=True, eq=False)
class Member:
    """A model of a run.

    Attributes
    ----------
    asked : Asked
    opened : ability -> model
    identity : Identity
        Under which results name it.
    label : str
        What it is called beside the others, in results and on the way to them.
    failed : str or None
        Why it could not be opened.
    """

    asked: Asked
    opened: dict[Ability, Any]
    identity: Identity
    label: str
    failed: str | None = None

    @property
    def record(self) -> ModelRecord:
        return dataclasses.replace(identified(self.asked.text, self.identity), failed=self.failed)

    @property
    def is_elsewhere(self) -> bool:
        """Is it behind an endpoint, so that it is asked from here?"""
        return bool(self.identity.sends_to) or any(isinstance(model, Streams) for model in self.opened.values())

    @property
    def keys(self) -> frozenset[str]:
        """Under which its answers are kept."""
        return frozenset(model.identity.key for model in self.opened.values() if model.identity.key is not None)

    @property
    def slug(self) -> str:
        """A name for a folder of its own."""
        return re.sub(r"[^\w.=-]+", "-", self.asked.text).strip("-")

    def method(self, name: str) -> Any:
        """What an opened model can do besides what all can; None: none can."""
        model = self.having(name)
        return None if model is None else getattr(model, name)

    def having(self, name: str) -> Any:
        """The first opened model that can do something besides what all can; None: none can."""
        return next((model for model in self.opened.values() if getattr(model, name, None) is not None), None)

    @property
    def abilities(self) -> Abilities:
        texts, blanks = self.opened.get("texts"), self.opened.get("blanks")
        return Abilities(
            kind=self.method("kind"),
            has_mask=bool(getattr(blanks, "has_mask", False)),
            has_output_layer=bool(getattr(blanks, "has_output_layer", True)),
            has_vocabulary=isinstance(texts, HasVocabulary),
            folds_case=bool(self.method("folds_case")),
            lost_hint=self.identity.lost_hint,
            readings=() if texts is None else readings_of(texts),
            own_reading="" if texts is None else own_reading(texts).name,
            option_log_p=self.method("option_log_p") or "",
        )


def open_team(asked: Sequence[Asked], needs: Sequence[Ability], listener: Listener) -> tuple[Member, ...]:
    """Every model opened, after the strings of all were checked; of several, some may have failed, but not all."""
    parsed = [parse_model(one.model) if isinstance(one.model, str) else one.model for one in asked]
    opened: list[dict[Ability, Any]] = []
    errors: dict[int, Exception] = {}
    labels = told_apart([_unopened(one, model) for one, model in zip(asked, parsed, strict=True)])
    for place, (one, model, label) in enumerate(zip(asked, parsed, labels, strict=True)):
        begin(listener, label, "opening the model")
        opened.append({})
        try:
            opened[place] = {ability: _opened(one, model, ability) for ability in needs}
        except Exception as error:
            if not is_own(error, asked, place, "opening"):
                raise
            listener.notice(f"{label}: cannot be opened: {reason_of(error)}")
            errors[place] = error
    if len(errors) == len(asked):
        raise errors[0]
    found = [
        models[needs[0]].identity if models else _unknown(one, model)
        for one, model, models in zip(asked, parsed, opened, strict=True)
    ]
    identities = identities_of(asked, found)
    labels = told_apart([identified(one.text, own) for one, own in zip(asked, identities, strict=True)])
    failed = [reason_of(errors[place]) if place in errors else None for place in range(len(asked))]
    return tuple(Member(*one) for one in zip(asked, opened, identities, labels, failed, strict=True))


def _unknown(asked: Asked, model: object) -> Identity:
    """What stands for the identity of a model that could not be opened."""
    record = _unopened(asked, model)
    return Identity(record.name, record.family, None, tuple(record.settings.items()))


def _unopened(asked: Asked, model: object) -> ModelRecord:
    """What is known of a model before it is opened."""
    if isinstance(model, ModelName):
        return ModelRecord(asked.text, asked.name or model.head, model.family, None, dict(model.settings))
    return ModelRecord(asked.text, asked.name or asked.text, asked.text.partition(":")[0], None, {})


def _opened(asked: Asked, model: object, ability: Ability) -> Any:
    if isinstance(model, ModelName):
        return open_as(model, ability)
    if ability != "texts":
        raise UsageError(
            f"{asked.text}: an object gives vectors of texts only; a model that is asked about {ability} is a string "
            f"such as hf:NAME, got {type(model).__name__}"
        )
    return wrap(model, asked.text)
