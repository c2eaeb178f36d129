"""Ask a model what the store lacks, batch by batch.

Batches are planned over all requests, kept or not, and batches are stored in order, each before the next one is read:
a run that was interrupted asks the same batches as a whole one, and so has the same numbers to the last bit. A model
may start on the next `_COMING` batches before they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from biassay.errors import ModelError, VectorError
from biassay.models.answering import Answerer, LikelihoodModel, Reply, TokenLikelihoods
from biassay.models.base import BlankFiller, Encoded, Encoder, Filled
from biassay.models.readings import own_reading
from biassay.texts.requests import Blank, Likelihood, Prompt

__all__ = [
    "AskedBlanks",
    "AskedLikelihoods",
    "AskedReadings",
    "AskedReplies",
    "Asker",
    "Keeper",
    "Progress",
    "ask_missing",
    "in_turn",
]

_TOGETHER = 512  # texts: of each there are as many vectors as readings
_COMING = 2  # batches: one in the model, one on its way there
Progress = Callable[[int, int], None]
Request = TypeVar("Request", bound=Hashable)
Request_contra = TypeVar("Request_contra", bound=Hashable, contravariant=True)
Answers = TypeVar("Answers")
Answers_co = TypeVar("Answers_co", covariant=True)
Answers_contra = TypeVar("Answers_contra", contravariant=True)


class Asker(Protocol[Request_contra, Answers_co]):
    """A model as it answers one kind of request.

    ``prepare`` sees all that will be asked, before the first batch; ``expect`` sees every batch but the first, before
    those up to `_COMING` places ahead of it are asked. ``cancel`` ends the work on batches that were expected and will
    not be asked, because the run was interrupted.
    """

    def prepare(self, requests: Sequence[Request_contra]) -> None: ...

    def batches(self, requests: Sequence[Request_contra]) -> Sequence[Sequence[int]]: ...

    def expect(self, requests: Sequence[Request_contra]) -> None: ...

    def ask(self, requests: Sequence[Request_contra]) -> Answers_co: ...

    def cancel(self) -> None: ...


class Keeper(Protocol[Request, Answers_contra]):
    """Where answers are kept: a store, or several that are filled together."""

    def missing(self, requests: Sequence[Request]) -> list[Request]: ...

    def add(self, requests: Sequence[Request], answers: Answers_contra) -> None: ...


AskAll = Callable[[Sequence[Sequence[Any]]], Iterable[tuple[int, Any]]]
"""Answers batches, in any order: the number of each with its answers."""


def ask_missing(
    asker: Asker[Request, Answers],
    requests: Sequence[Request],
    store: Keeper[Request, Answers],
    progress: Progress | None = None,
    ask_all: AskAll | None = None,
    load: Callable[[], None] | None = None,
    begin: Callable[[int], None] | None = None,
) -> int:
    """Ask for all answers that the store lacks, each once; return how many there were.

    Parameters
    ----------
    asker : Asker
    requests : sequence
    store : Keeper
    progress : callable, optional
        Called with the number of requests answered and of all that were missing, after every batch.
    ask_all : callable, optional
        Asks the batches elsewhere than in this process.
    load : callable, optional
        Called before the model is loaded, if anything is missing.
    begin : callable, optional
        Called with the number of missing requests, when the model is loaded.
    """
    missing = dict.fromkeys(store.missing(requests))
    if not missing:
        return 0
    if load is not None:
        load()
    distinct = list(dict.fromkeys(requests))
    planned = [[distinct[place] for place in places] for places in asker.batches(distinct)]
    batches = [batch for whole in planned if (batch := [request for request in whole if request in missing])]
    done = 0

    def on_ready() -> None:
        if begin is not None:
            begin(len(missing))

    if ask_all is not None:
        on_ready()
    try:
        for number, answers in enumerate(in_turn(asker, batches, on_ready)) if ask_all is None else ask_all(batches):
            store.add(batches[number], answers)
            done += len(batches[number])
            if progress is not None:
                progress(done, len(missing))
    except BaseException:
        asker.cancel()
        raise
    return done


def in_turn(
    asker: Asker[Request, Answers],
    batches: Sequence[Sequence[Request]],
    on_ready: Callable[[], None] | None = None,
) -> Iterator[Answers]:
    """Yield the answers to batches in order, and announce the next batches before asking for one.

    Parameters
    ----------
    asker : Asker
    batches : sequence of batches
    on_ready : callable, optional
        Called once, when the model is loaded and before the first batch.
    """
    asker.prepare([request for batch in batches for request in batch])
    if on_ready is not None:
        on_ready()
    told = 1
    for number, batch in enumerate(batches):
        for following in batches[told : number + 1 + _COMING]:
            asker.expect(following)
        told = number + 1 + _COMING
        yield asker.ask(batch)


class _Asked:
    """A model; it may have ``expect(requests)``, to get ready for the next batch in a thread of its own."""

    def __init__(self, model: Any) -> None:
        self._expect = getattr(model, "expect", None)

    def expect(self, requests: Sequence[Any]) -> None:
        if self._expect is not None:
            self._expect(requests)

    def cancel(self) -> None:
        pass


class AskedReadings(_Asked):
    """An encoder, asked for readings of texts, all of them in one pass.

    It may have ``prefetch(texts, names)``, to start on the next batches before they are asked for, and
    ``cancel_prefetch()``, which an interrupted run calls.
    """

    def __init__(self, encoder: Encoder, names: Sequence[str]) -> None:
        super().__init__(encoder)
        self._encoder = encoder
        self._names = tuple(names)
        self._dimensions: dict[str, int] = {}

    @property
    def _size(self) -> int:
        """Texts of a batch; an encoder may have to look for a GPU to tell, so it is asked when there is one to make."""
        size = self._encoder.batch_size
        return size if len(self._names) == 1 else min(size, _TOGETHER)

    def prepare(self, requests: Sequence[str]) -> None:
        self._encoder.prepare(requests)

    def batches(self, requests: Sequence[str]) -> list[list[int]]:
        """Texts of one length in one batch: a model that pads wastes nothing."""
        order, size = sorted(range(len(requests)), key=lambda i: len(requests[i])), self._size
        return [order[start : start + size] for start in range(0, len(order), size)]

    def expect(self, requests: Sequence[str]) -> None:
        prefetch = getattr(self._encoder, "prefetch", None)
        if prefetch is None:
            super().expect(requests)
        else:
            prefetch(requests, self._names)

    def cancel(self) -> None:
        cancel = getattr(self._encoder, "cancel_prefetch", None)
        if cancel is not None:
            cancel()

    def ask(self, requests: Sequence[str]) -> dict[str, Encoded]:
        found = self._read(requests)
        lacking = next((name for name in self._names if name not in found), None)
        if lacking is not None:
            raise ModelError(f"model {self._encoder.identity.name!r} did not give the reading {lacking!r}")
        return {name: self._checked(requests, found[name], name) for name in self._names}

    def _read(self, texts: Sequence[str]) -> Mapping[str, Encoded]:
        if self._names == (own_reading(self._encoder).name,):
            return {self._names[0]: self._encoder.encode(texts)}
        encoder: Any = self._encoder  # readings come with the method
        found: Mapping[str, Encoded] = encoder.encode_readings(texts, self._names)
        return found

    def _checked(self, texts: Sequence[str], encoded: Encoded, reading: str = "") -> Encoded:
        name = f"model {self._encoder.identity.name!r}" + (f", reading {reading}" if reading else "")
        _check(name, texts, encoded)
        dimension = encoded.vectors.shape[1]
        before = self._dimensions.setdefault(reading, dimension) if dimension else 0
        if before and before != dimension:
            raise VectorError(f"{name} gave vectors of different dimensions, {before} and {dimension}")
        return encoded


def _check(name: str, texts: Sequence[str], encoded: Encoded) -> None:
    """Refuse vectors without a direction before they are stored; a text of unknown words only may be zero."""
    if not len(encoded.vectors) == len(encoded.unknown) == len(encoded.cut) == len(texts):
        raise VectorError(f"{name} gave {len(encoded.vectors)} vectors for {len(texts)} texts")
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        squared = np.einsum("ij,ij->i", encoded.vectors, encoded.vectors)
    for row in np.flatnonzero(~(np.isfinite(squared) & (squared > 0.0))).tolist():  # one pass leaves few to look at
        if not np.isfinite(encoded.vectors[row]).all():
            raise VectorError(f"{name}: the vector of {texts[row]!r} is not finite")
        if not encoded.vectors[row].any() and not encoded.unknown[row]:
            raise VectorError(f"{name}: the vector of {texts[row]!r} is zero, so it has no direction")


class AskedBlanks(_Asked):
    """A language model, asked to fill blanks."""

    def __init__(self, model: BlankFiller) -> None:
        super().__init__(model)
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


class AskedReplies(_Asked):
    """A model, asked to answer prompts."""

    def __init__(self, model: Answerer) -> None:
        super().__init__(model)
        self._model = model

    def prepare(self, requests: Sequence[Prompt]) -> None:
        self._model.prepare(requests)

    def batches(self, requests: Sequence[Prompt]) -> Sequence[Sequence[int]]:
        return self._model.batches(requests)

    def ask(self, requests: Sequence[Prompt]) -> list[Reply]:
        replies = self._model.reply(requests)
        if [len(one.log_p) for one in replies] != [len(prompt.options) for prompt in requests]:
            raise ModelError(f"model {self._model.identity.name!r} did not answer all prompts about all their options")
        return replies


class AskedLikelihoods(_Asked):
    """A language model, asked for likelihoods of texts."""

    def __init__(self, model: LikelihoodModel) -> None:
        super().__init__(model)
        self._model = model

    def prepare(self, requests: Sequence[Likelihood]) -> None:
        self._model.prepare(requests)

    def batches(self, requests: Sequence[Likelihood]) -> Sequence[Sequence[int]]:
        return self._model.batches(requests)

    def ask(self, requests: Sequence[Likelihood]) -> list[TokenLikelihoods]:
        found = self._model.likelihoods(requests)
        if len(found) != len(requests):
            raise ModelError(
                f"model {self._model.identity.name!r} gave likelihoods of {len(found)} of {len(requests)} texts"
            )
        return found
