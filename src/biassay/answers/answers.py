"""What one model answered, as a study reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.answers.shards import ShardStore
from biassay.answers.store import ModelStore
from biassay.errors import UsageError
from biassay.models.base import Encoded, Identity
from biassay.models.vocabulary import Block

__all__ = ["Abilities", "Answers"]


@dataclass(frozen=True)
class Abilities:
    """What a study may know of a model before it asks.

    Attributes
    ----------
    kind : {"masked", "causal"} or None
        Of language model; None: it fills no blanks.
    has_mask : bool
        Whether a group can be masked.
    has_vocabulary : bool
        Whether it can list all its words.
    folds_case : bool
        Whether words that differ in case are one word to it.
    lost_hint : str
        What a user may try when it does not know a word.
    """

    kind: str | None = None
    has_mask: bool = False
    has_vocabulary: bool = False
    folds_case: bool = False
    lost_hint: str = ""


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers of one model, all of them in the store.

    Attributes
    ----------
    identity : Identity
        Of the model; ``identities`` are those by ability, where it has several.
    abilities : Abilities
    contexts : ShardStore or None
        Vectors by row of the contexts that were asked about.
    """

    identity: Identity
    abilities: Abilities
    identities: dict[str, Identity] = field(default_factory=dict)
    contexts: ShardStore | None = None
    kept_texts: ModelStore[Any, Any] | None = None
    asked_texts: Sequence[str] = ()
    kept_blanks: Any = None
    stream: Callable[[], Iterator[Block]] | None = None

    def texts(self, texts: Sequence[str]) -> Encoded:
        """Vectors of texts that were asked about, in order."""
        encoded, rows = self._encoded
        unasked = next((text for text in texts if text not in rows), None)
        if unasked is not None:
            raise UsageError(f"the text {unasked!r} is not among the requests of the study, so it has no vector")
        return encoded.rows([rows[text] for text in texts])

    def read_texts(self, texts: Sequence[str]) -> Encoded:
        """The same, read from the store and not kept in memory."""
        assert self.kept_texts is not None
        found: Encoded = self.kept_texts.get(texts)
        return found

    @cached_property
    def _encoded(self) -> tuple[Encoded, dict[str, int]]:
        assert self.kept_texts is not None
        return self.kept_texts.get(self.asked_texts), {text: row for row, text in enumerate(self.asked_texts)}

    def blanks(self, blanks: Sequence[Any]) -> Any:
        """What fills blanks, in order."""
        return self.kept_blanks.get(blanks)

    def rows(self, rows: slice) -> NDArray[np.floating]:
        """Vectors of some contexts; a row of NaN is a word that the model could not locate."""
        assert self.contexts is not None
        return self.contexts.read(rows)

    def vocabulary(self) -> Iterator[Block]:
        """All words of the model with their vectors."""
        assert self.stream is not None
        return self.stream()
