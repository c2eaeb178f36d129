"""What is asked in a word association test, and what was answered, as numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from biassay.answers.answers import Abilities
from biassay.errors import UnknownNameError, UsageError
from biassay.models.answering import Reply
from biassay.stimuli.word_associations import Form, WordAssociationTest, Wording, select_wordings
from biassay.studies.word_association.records import Unit
from biassay.studies.word_association.settings import Settings
from biassay.texts.association_prompts import AssociationPrompt, OptionPrompt, association_prompts, option_prompts
from biassay.texts.association_replies import Reading, ReplyKind, read_reply
from biassay.texts.decision_prompts import Decision, DecisionPrompt, decision_prompts, read_decision
from biassay.texts.requests import Prompt

__all__ = ["Questions", "decided", "log_odds_of", "readings_of", "unit_of", "wordings_of"]

_FORMS: tuple[Form, ...] = ("list", "word", "decision")
_UNANSWERED: dict[str, ReplyKind] = {"refusal": "refused", "filter": "filtered", "failed": "failed"}
_ASKED: dict[Unit, str] = {"share": "replies in words", "log-odds": "log-odds"}


def wordings_of(names: Sequence[str]) -> dict[Form, tuple[Wording, ...]]:
    """Wordings by form of prompt: those that are named, or all where none of the form is."""
    known = {form: select_wordings(form=form) for form in _FORMS}
    every = [wording.name for found in known.values() for wording in found]
    for name in names:
        if name not in every:
            raise UnknownNameError("wording", name, every, f"(wordings: {', '.join(every)})")
    return {form: tuple(one for one in found if one.name in names) or found for form, found in known.items()}


def unit_of(settings: Settings, abilities: Abilities) -> Unit:
    """Log-odds where they are wanted or, by default, where the model tells them of whole words."""
    if settings.read == "auto":
        return "log-odds" if abilities.option_log_p == "continuation" else "share"
    return "log-odds" if settings.read == "log-odds" else "share"


@dataclass(frozen=True)
class Questions:
    """All prompts of one test."""

    lists: tuple[AssociationPrompt, ...] = ()
    words: tuple[OptionPrompt, ...] = ()
    decisions: tuple[DecisionPrompt, ...] = ()

    @classmethod
    def of(cls, test: WordAssociationTest, settings: Settings, unit: Unit) -> Questions:
        wordings = wordings_of(settings.wordings)
        form: Form = "list" if unit == "share" else "word"
        if settings.wordings and not any(one.name in settings.wordings for one in wordings[form]):
            raise UsageError(
                f"none of the wordings {', '.join(settings.wordings)} is for {_ASKED[unit]}; those are: "
                f"{', '.join(one.name for one in wordings[form])}"
            )
        n, seed = settings.n_answers, settings.seed
        return cls(
            association_prompts(test, n, wordings=wordings["list"], seed=seed) if unit == "share" else (),
            option_prompts(test, wordings=wordings["word"]) if unit == "log-odds" else (),
            decision_prompts(test, n, wordings=wordings["decision"], seed=seed) if settings.decisions else (),
        )

    @property
    def list_prompts(self) -> list[Prompt]:
        return [Prompt(one.text, sample=one.repeat) for one in self.lists]

    @property
    def word_prompts(self) -> list[Prompt]:
        """A group word may follow at once or behind a space: how a model begins its answer is not known."""
        return [Prompt(one.text, options=(*one.options, *(f" {word}" for word in one.options))) for one in self.words]

    @property
    def decision_prompts(self) -> list[Prompt]:
        return [Prompt(one.text, sample=one.repeat) for one in self.decisions]

    @property
    def prompts(self) -> list[Prompt]:
        return [*self.list_prompts, *self.word_prompts, *self.decision_prompts]


def readings_of(test: WordAssociationTest, asked: Sequence[AssociationPrompt], said: Sequence[Reply]) -> list[Reading]:
    """What replies give to which group, by attribute word in the order of the test."""
    found = []
    for prompt, reply in zip(asked, said, strict=True):
        reading = read_reply(reply.text, test.words, prompt.groups)
        found.append(Reading(_kind(reading.kind, reply), reading.to_stigmatised, reading.left_out))
    return found


def decided(asked: Sequence[DecisionPrompt], said: Sequence[Reply]) -> list[Decision]:
    """What was decided."""
    found = []
    for prompt, reply in zip(asked, said, strict=True):
        one = read_decision(reply.text, prompt.topics, prompt.groups)
        kind = one.kind if one.kind == "undecided" else _kind(one.kind, reply)
        found.append(Decision(kind, one.follows, one.left_out))
    return found


def _kind(kind: ReplyKind, reply: Reply) -> ReplyKind:
    """Return the kind of a reply; if nothing was read, the endpoint may state why."""
    return _UNANSWERED.get(reply.ended or "", kind) if kind == "unparsed" else kind


def log_odds_of(
    test: WordAssociationTest, asked: Sequence[OptionPrompt], said: Sequence[Reply]
) -> tuple[NDArray[np.float64], list[tuple[int, str, bool]]]:
    """A table of log-odds, and of each of its rows the pair, the wording, and whether the stigmatised stands first."""
    rows = list(dict.fromkeys((one.pair, one.wording, one.stigmatised_first) for one in asked))
    places = {row: i for i, row in enumerate(rows)}
    columns = {word: i for i, word in enumerate(test.words)}
    table = np.full((len(rows), len(columns)), np.nan)
    for one, reply in zip(asked, said, strict=True):
        table[places[one.pair, one.wording, one.stigmatised_first], columns[one.word]] = _odds(reply.log_p)
    return table, rows


def _odds(log_p: Sequence[float]) -> float:
    """Of the second option against the first, by the ways of writing both that the model tells; NaN: by none."""
    told = [pair for pair in zip(log_p[::2], log_p[1::2], strict=True) if not any(map(math.isnan, pair))]
    if not told:
        return math.nan
    default, stigmatised = (float(np.logaddexp.reduce(of)) for of in zip(*told, strict=True))
    odds = stigmatised - default
    return odds if math.isfinite(odds) else math.nan
