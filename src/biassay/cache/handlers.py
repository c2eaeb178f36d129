"""Fetch model outputs that are not cached yet.

Batches are planned over all requests, cached or not, and cached in order, each before the next one is read. So an
interrupted run has the same batches as a complete one, and the same numbers to the last bit. A model may start on the
next batches before they are fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from biassay.cache.responses import ModelCache
from biassay.errors import ModelError, VectorError
from biassay.models.base import (
    BlankScores,
    Encoder,
    Reply,
    StreamingModel,
    TextEmbeddings,
    TokenLikelihoods,
    default_representation,
)
from biassay.models.token_budget import TokenBudget
from biassay.prompts.requests import Blank, LikelihoodRequest, Prompt

_MAX_BATCH_TEXTS = 512  # if several representations of each are held in memory
_BATCHES_AHEAD = 2  # one in the model, one on its way there
_FILES_PER_MERGE = 256
ProgressCallback = Callable[[int, int], None]
Request = TypeVar("Request", bound=Hashable)
Outputs = TypeVar("Outputs")
Outputs_contra = TypeVar("Outputs_contra", contravariant=True)


class RequestHandler(Generic[Request, Outputs]):
    """Pass requests of one kind to a model and check its outputs.

    The model may have ``prefetch(requests)``, to prepare the next batch in a background thread.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._name = f"model {model.identity.name!r}"

    def prepare(self, requests: Sequence[Request]) -> None:
        """Pass all requests to the model."""
        self._model.prepare(requests)

    def batches(self, requests: Sequence[Request]) -> Sequence[Sequence[int]]:
        """Return the indices of the requests in each batch. The model decides how to split them."""
        batches: Sequence[Sequence[int]] = self._model.batches(requests)
        return batches

    def prefetch(self, requests: Sequence[Request]) -> None:
        """Start on a batch that is fetched soon. The first batch is never prefetched."""
        if hasattr(self._model, "prefetch"):
            self._model.prefetch(requests)

    def fetch(self, requests: Sequence[Request]) -> Outputs:
        """Return the checked outputs of a batch."""
        raise NotImplementedError

    def cancel(self) -> None:
        """Stop prefetching after an interrupted run. Do nothing unless a subclass prefetches in the background."""


class CacheWriter(Protocol[Request, Outputs_contra]):
    """Cache outputs in one cache, or in several that are filled together."""

    def missing(self, requests: Sequence[Request]) -> list[Request]:
        """Return the distinct requests that are not cached, in order."""

    def add(self, requests: Sequence[Request], outputs: Outputs_contra) -> None:
        """Cache the outputs of a batch."""


BatchFetcher = Callable[[Sequence[Sequence[Any]]], Iterable[tuple[int, Any]]]
"""Function from batches to their outputs, each with the number of its batch, in any order."""


def fetch_missing(
    handler: RequestHandler[Request, Outputs],
    requests: Sequence[Request],
    cache: CacheWriter[Request, Outputs],
    progress: ProgressCallback | None = None,
    fetch_batches: BatchFetcher | None = None,
    on_load: Callable[[], None] | None = None,
    on_ready: Callable[[int], None] | None = None,
) -> int:
    """Fetch and cache all outputs that are not cached, each once; return their number.

    Parameters
    ----------
    handler : RequestHandler
    requests : sequence
    cache : CacheWriter
    progress : callable, optional
        Called after every batch with the number of requests fetched and of all missing ones.
    fetch_batches : callable, optional
        Fetches the batches in other processes.
    on_load : callable, optional
        Called before the model is loaded, if anything is missing.
    on_ready : callable, optional
        Called with the number of missing requests when the model is loaded.
    """
    missing = dict.fromkeys(cache.missing(requests))
    if not missing:
        return 0
    if on_load is not None:
        on_load()
    distinct = list(dict.fromkeys(requests))
    planned = [[distinct[index] for index in indices] for indices in handler.batches(distinct)]
    batches = [batch for whole in planned if (batch := [request for request in whole if request in missing])]
    done = 0
    announce_ready = None if on_ready is None else partial(on_ready, len(missing))
    try:
        if fetch_batches is None:
            fetched: Iterable[tuple[int, Any]] = enumerate(iter_batches(handler, batches, announce_ready))
        else:
            if announce_ready is not None:
                announce_ready()
            fetched = fetch_batches(batches)
        for number, outputs in fetched:
            cache.add(batches[number], outputs)
            done += len(batches[number])
            if progress is not None:
                progress(done, len(missing))
    except BaseException:
        handler.cancel()
        raise
    return done


def iter_batches(
    handler: RequestHandler[Request, Outputs],
    batches: Sequence[Sequence[Request]],
    on_ready: Callable[[], None] | None = None,
) -> Iterator[Outputs]:
    """Yield the outputs of batches in order, and prefetch the next batches before each one.

    Parameters
    ----------
    handler : RequestHandler
    batches : sequence of batches
    on_ready : callable, optional
        Called once, when the model is loaded and before the first batch.
    """
    handler.prepare([request for batch in batches for request in batch])
    if on_ready is not None:
        on_ready()
    start = 1
    for number, batch in enumerate(batches):
        for following in batches[start : number + 1 + _BATCHES_AHEAD]:
            handler.prefetch(following)
        start = number + 1 + _BATCHES_AHEAD
        yield handler.fetch(batch)


class RepresentationHandler(RequestHandler[str, Mapping[str, TextEmbeddings]]):
    """Encode texts, all representations in one pass.

    The encoder may have ``prefetch_representations(texts, names)``, to start on the next batches, and
    ``cancel_prefetch()``, which an interrupted run calls.
    """

    def __init__(self, encoder: Encoder, names: Sequence[str]) -> None:
        super().__init__(encoder)
        self._names = tuple(names)
        self._is_scorer = bool(getattr(encoder, "scorer", ""))
        self._dimensions: dict[str, int] = {}

    def batches(self, requests: Sequence[str]) -> list[list[int]]:
        """Return batches of texts of similar length, so that little padding is needed."""
        size = self._model.batch_size  # read late, because an encoder may have to look for a GPU
        if len(self._names) > 1:
            size = min(size, _MAX_BATCH_TEXTS)
        order = sorted(range(len(requests)), key=lambda index: len(requests[index]))
        return [order[start : start + size] for start in range(0, len(order), size)]

    def prefetch(self, requests: Sequence[str]) -> None:
        """Start on the next batch."""
        if hasattr(self._model, "prefetch_representations"):
            self._model.prefetch_representations(requests, self._names)
        else:
            super().prefetch(requests)

    def cancel(self) -> None:
        """Stop work on prefetched batches."""
        if hasattr(self._model, "cancel_prefetch"):
            self._model.cancel_prefetch()

    def fetch(self, requests: Sequence[str]) -> dict[str, TextEmbeddings]:
        """Return the checked vectors of a batch by representation."""
        if self._names == (default_representation(self._model).name,):
            embeddings = {self._names[0]: self._model.encode(requests)}
        else:
            embeddings = self._model.encode_representations(requests, self._names)
        missing = next((name for name in self._names if name not in embeddings), None)
        if missing is not None:
            raise ModelError(f"{self._name} did not give the representation {missing!r}")
        for name in self._names:
            self._check(requests, embeddings[name], name)
        return {name: embeddings[name] for name in self._names}

    def _check(self, texts: Sequence[str], embeddings: TextEmbeddings, representation: str) -> None:
        name = f"{self._name}, representation {representation}" if representation else self._name
        _check_vectors(name, texts, embeddings, may_be_zero=self._is_scorer)
        dimension = embeddings.vectors.shape[1]
        before = self._dimensions.setdefault(representation, dimension) if dimension else 0
        if before and before != dimension:
            raise VectorError(f"{name} gave vectors of different dimensions, {before} and {dimension}")


def _check_vectors(name: str, texts: Sequence[str], encoded: TextEmbeddings, *, may_be_zero: bool) -> None:
    """Raise VectorError for vectors without a direction; a score, or a text of unknown words only, may be zero."""
    if not len(encoded.vectors) == len(encoded.unknown) == len(encoded.truncated_at) == len(texts):
        raise VectorError(f"{name} gave {len(encoded.vectors)} vectors for {len(texts)} texts")
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        squared = np.einsum("ij,ij->i", encoded.vectors, encoded.vectors)
    for row in np.flatnonzero(~(np.isfinite(squared) & (squared > 0.0))).tolist():
        if not np.isfinite(encoded.vectors[row]).all():
            raise VectorError(f"{name}: the vector of {texts[row]!r} is not finite")
        if not may_be_zero and not encoded.vectors[row].any() and not encoded.unknown[row]:
            raise VectorError(f"{name}: the vector of {texts[row]!r} is zero, so it has no direction")


class BlankHandler(RequestHandler[Blank, Sequence[BlankScores]]):
    """Fill blanks with a language model."""

    def fetch(self, requests: Sequence[Blank]) -> list[BlankScores]:
        """Return the scores of all words of a batch of blanks."""
        scores: list[BlankScores] = self._model.fill(requests)
        if [len(score.lengths) for score in scores] != [len(blank.words) for blank in requests]:
            raise ModelError(f"{self._name} did not score all words of all blanks")
        return scores


class ReplyHandler(RequestHandler[Prompt, Sequence[Reply]]):
    """Fetch replies to prompts."""

    def fetch(self, requests: Sequence[Prompt]) -> list[Reply]:
        """Return the replies to a batch of prompts."""
        replies: list[Reply] = self._model.reply(requests)
        if [len(reply.log_p) for reply in replies] != [len(prompt.options) for prompt in requests]:
            raise ModelError(f"{self._name} did not score all options of all prompts")
        return replies


class LikelihoodHandler(RequestHandler[LikelihoodRequest, Sequence[TokenLikelihoods]]):
    """Fetch likelihoods of texts."""

    def fetch(self, requests: Sequence[LikelihoodRequest]) -> list[TokenLikelihoods]:
        """Return the likelihoods of a batch of texts."""
        likelihoods: list[TokenLikelihoods] = self._model.likelihoods(requests)
        if len(likelihoods) != len(requests):
            raise ModelError(f"{self._name} gave likelihoods of {len(likelihoods)} of {len(requests)} texts")
        return likelihoods


def stream_missing(
    model: StreamingModel[Request, Any],
    requests: Sequence[Request],
    cache: ModelCache[Request, Any],
    token_budget: TokenBudget,
    progress: ProgressCallback | None = None,
    on_ready: Callable[[Sequence[Request]], None] | None = None,
) -> int:
    """Fetch all responses of an endpoint that are not cached, each once; return their number.

    Every response is cached before the next one is read. Failed requests are cached in memory only, so that the next
    run sends them again.

    Parameters
    ----------
    model : StreamingModel
    requests : sequence
    cache : ModelCache
    token_budget : TokenBudget
    progress : callable, optional
        Called with the number of requests fetched and of all missing ones.
    on_ready : callable, optional
        Called with the missing requests before the first is sent.
    """
    missing = cache.missing(requests)
    if not missing:
        return 0
    has_cached = len(missing) < len(set(requests))
    if on_ready is not None:
        on_ready(missing)
    done, files, small_files = 0, 0, list[tuple[Request, Any]]()
    try:
        for responses in model.stream(missing, token_budget, answered_before=has_cached):
            failed = [(missing[index], response) for index, response in responses if _has_failed(response)]
            succeeded = [(missing[index], response) for index, response in responses if not _has_failed(response)]
            if failed:
                cache.add(*_unzip(failed), in_memory=True)
            if succeeded:
                cache.add(*_unzip(succeeded), merge_later=True)
                files += 1
            done += len(responses)
            small_files += succeeded
            if files == _FILES_PER_MERGE:
                _merge_small_files(cache, small_files, files)
                files = 0
            if progress is not None:
                progress(done, len(missing))
    finally:
        _merge_small_files(cache, small_files, files)
        cache.push()
    return done


def _has_failed(response: Any) -> bool:
    return getattr(response, "finish_reason", None) == "failed"


def _unzip(pairs: Sequence[tuple[Request, Any]]) -> tuple[list[Request], list[Any]]:
    return [request for request, _ in pairs], [response for _, response in pairs]


def _merge_small_files(cache: ModelCache[Request, Any], pairs: list[tuple[Request, Any]], files: int) -> None:
    if files > 1:
        cache.merge(*_unzip(pairs))
    pairs.clear()
