"""Ask a model what the store lacks, batch by batch.

Batches are planned over all requests, kept or not, and a batch is in the store before the next one begins: a run that
was interrupted asks the same batches as a whole one, and so has the same numbers to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from biassay.answers.store import ModelStore
from biassay.errors import ModelError, VectorError
from biassay.models.base import BlankFiller, Encoded, Encoder, Filled
from biassay.texts.requests import Blank

__all__ = ["AskedBlanks", "AskedTexts", "Asker", "Progress", "ask_missing"]

Progress = Callable[[int, int], None]
Request = TypeVar("Request", bound=Hashable)
Request_contra = TypeVar("Request_contra", bound=Hashable, contravariant=True)
Answers = TypeVar("Answers")
Answers_co = TypeVar("Answers_co", covariant=True)


class Asker(Protocol[Request_contra, Answers_co]):
    """A model as it answers one kind of request. ``prepare`` sees all that will be asked, before the first batch."""

    def prepare(self, requests: Sequence[Request_contra]) -> None: ...

    def batches(self, requests: Sequence[Request_contra]) -> Sequence[Sequence[int]]: ...

    def ask(self, requests: Sequence[Request_contra]) -> Answers_co: ...


AskAll = Callable[[Sequence[Sequence[Any]]], Iterable[tuple[int, Any]]]
"""Answers batches, in any order: the number of each with its answers."""


def ask_missing(
    asker: Asker[Request, Answers],
    requests: Sequence[Request],
    store: ModelStore[Request, Answers],
    progress: Progress | None = None,
    ask_all: AskAll | None = None,
) -> int:
    """Make sure that the store holds an answer to every request; returns how many had to be asked, each once.

    ``ask_all`` asks the batches elsewhere than in this process.
    """
    missing = dict.fromkeys(store.missing(requests))
    if not missing:
        return 0
    distinct = list(dict.fromkeys(requests))
    planned = [[distinct[place] for place in places] for places in asker.batches(distinct)]
    batches = [batch for whole in planned if (batch := [request for request in whole if request in missing])]
    done = 0
    for number, answers in _here(asker, batches) if ask_all is None else ask_all(batches):
        store.add(batches[number], answers)
        done += len(batches[number])
        if progress is not None:
            progress(done, len(missing))
    return done


def _here(asker: Asker[Request, Answers], batches: Sequence[Sequence[Request]]) -> Iterator[tuple[int, Answers]]:
    asker.prepare([request for batch in batches for request in batch])
    for number, batch in enumerate(batches):
        yield number, asker.ask(batch)


class AskedTexts:
    """An encoder, asked for vectors of texts."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._dimension: int | None = None

    def prepare(self, requests: Sequence[str]) -> None:
        self._encoder.prepare(requests)

    def batches(self, requests: Sequence[str]) -> list[list[int]]:
        """Texts of one length in one batch: a model that pads wastes nothing."""
        order, size = sorted(range(len(requests)), key=lambda i: len(requests[i])), self._encoder.batch_size
        return [order[start : start + size] for start in range(0, len(order), size)]

    def ask(self, requests: Sequence[str]) -> Encoded:
        encoded = self._encoder.encode(requests)
        _check(self._encoder, requests, encoded)
        dimension = encoded.vectors.shape[1]
        if self._dimension not in (None, dimension):
            sizes = f"{self._dimension} and {dimension}"
            raise VectorError(f"model {self._encoder.identity.name!r} gave vectors of different dimensions, {sizes}")
        self._dimension = dimension
        return encoded


def _check(encoder: Encoder, texts: Sequence[str], encoded: Encoded) -> None:
    """Refuse vectors without a direction before they are stored; a text of unknown words only may be zero."""
    name = encoder.identity.name
    if not len(encoded.vectors) == len(encoded.unknown) == len(encoded.cut) == len(texts):
        raise VectorError(f"model {name!r} gave {len(encoded.vectors)} vectors for {len(texts)} texts")
    finite = np.isfinite(encoded.vectors).all(axis=1)
    if not finite.all():
        raise VectorError(f"model {name!r}: the vector of {texts[int(np.argmin(finite))]!r} is not finite")
    for row in np.flatnonzero(~encoded.vectors.any(axis=1)).tolist():
        if not encoded.unknown[row]:
            raise VectorError(f"model {name!r}: the vector of {texts[row]!r} is zero, so it has no direction")


class AskedBlanks:
    """A language model, asked to fill blanks."""

    def __init__(self, model: BlankFiller) -> None:
        self._model = model

    def prepare(self, requests: Sequence[Blank]) -> None:
        self._model.prepare(requests)

    def batches(self, requests: Sequence[Blank]) -> Sequence[Sequence[int]]:
        return self._model.batches(requests)

    def ask(self, requests: Sequence[Blank]) -> list[Filled]:
        filled = self._model.fill(requests)
        if [len(one.lengths) for one in filled] != [len(blank.words) for blank in requests]:
            raise ModelError(f"model {self._model.identity.name!r} did not answer about all words of all blanks")
        return filled
