"""Texts that one model wrote: which were requested, which were answered, and how outcomes read them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from biassay.cache.outputs import ModelOutputs
from biassay.models.base import Identity, Reply
from biassay.studies.audit.decisions import select_answered
from biassay.studies.audit.inputs import AuditInputs
from biassay.studies.audit.outcomes.responses import Responses
from biassay.studies.audit.responses import ResponseDesign, ResponseKind, classify_text


@dataclass(frozen=True, eq=False)
class WrittenTexts:
    """Responses of one model to prompts for texts.

    Attributes
    ----------
    inputs : AuditInputs
    identity : Identity
    design : ResponseDesign
        The prompts that were answered.
    part : str
        Which part of all prompts they are; empty if they are all.
    replies : sequence of Reply
        One per prompt.
    """

    inputs: AuditInputs
    identity: Identity
    design: ResponseDesign
    part: str
    replies: Sequence[Reply]

    @classmethod
    def read(cls, inputs: AuditInputs, model: ModelOutputs) -> WrittenTexts:
        """Read the responses of a model, or of a balanced part of the design if the budget did not allow all."""
        whole = ResponseDesign(inputs)
        answered = model.find_answered([prompt.prompt for prompt in whole.prompts])
        return cls._read_part(select_answered(whole, answered, model.identity), model)

    @classmethod
    def _read_part(cls, design: ResponseDesign, model: ModelOutputs) -> WrittenTexts:
        part = "" if design.part is None else design.describe_part(ResponseDesign(design.inputs))
        replies = model.replies([prompt.prompt for prompt in design.prompts])
        return cls(design.inputs, model.identity, design, part, replies)

    def select_judged(self, judged: Sequence[bool], model: ModelOutputs) -> WrittenTexts:
        """Return the texts, or a balanced part of them if the budget did not allow all judgements.

        Parameters
        ----------
        judged : sequence of bool
            Whether there are all judgements of each response.
        model : ModelOutputs
        """
        design = select_answered(self.design, judged, self.identity)
        return self if design is self.design else self._read_part(design, model)

    @cached_property
    def kinds(self) -> tuple[ResponseKind, ...]:
        """Kind of every response."""
        return tuple(map(classify_text, self.replies))

    @cached_property
    def written(self) -> list[int]:
        """Numbers of the responses that are texts."""
        return [number for number, kind in enumerate(self.kinds) if kind == "parsed"]

    @cached_property
    def responses(self) -> Responses:
        """The texts, as outcomes read them."""
        names = [self.inputs.names[self.design.prompts[number].names[0]] for number in self.written]
        return Responses([self.replies[number].text for number in self.written], names)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Identifier of every response: a digest of the prompt, the name's group and the text."""
        groups = [self.inputs.names[prompt.names[0]].group for prompt in self.design.prompts]
        return tuple(
            hashlib.blake2b(
                f"{group}\n{prompt.prompt.key}\n{reply.text}".encode(errors="replace"), digest_size=6
            ).hexdigest()
            for group, prompt, reply in zip(groups, self.design.prompts, self.replies, strict=True)
        )
