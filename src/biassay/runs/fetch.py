"""Define the options of a run, and fetch model outputs from the cache or the models."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Self, TypeVar
from urllib.parse import urlsplit

from biassay.cache.context_vectors import METADATA_FILE, ShardStore, StoreMetadata
from biassay.cache.files import RemoteCache
from biassay.cache.handlers import (
    BatchFetcher,
    BlankHandler,
    CacheWriter,
    LikelihoodHandler,
    ReplyHandler,
    RepresentationHandler,
    RequestHandler,
    fetch_missing,
    iter_batches,
    stream_missing,
)
from biassay.cache.outputs import ModelOutputs
from biassay.cache.responses import (
    BLANKS,
    LIKELIHOODS,
    RANKS,
    REPLIES,
    TEXTS,
    TOKENS,
    Codec,
    ModelCache,
    RepresentationCaches,
    ResponseCache,
)
from biassay.cache_usage import lock_cache
from biassay.engines.base import Executor
from biassay.engines.local import LocalExecutor
from biassay.errors import BudgetError, UnknownNameError, UsageError
from biassay.io import default_cache
from biassay.models.backend import ERASE
from biassay.models.base import ContextEmbeddings, Identity, Reply, Span, StreamingModel, WordEncoder
from biassay.models.registry import can_split_texts, open_model, parse_model
from biassay.models.token_budget import TokenBudget
from biassay.models.vector_files import HasVocabulary
from biassay.object_storage import RemoteFolder, is_url
from biassay.runs.models import OpenedModel
from biassay.runs.progress import Listener, NullListener, PathLike, SynchronizedListener, announce_step
from biassay.studies.study import ContextRequests, Requests

if TYPE_CHECKING:
    from biassay.corpus.contexts import Contexts

SHARD_ROWS = 2048
_ATTEMPTS = 3  # in case somebody deletes the cache in the meantime
_LENGTH_NOTE = " if every response used all of max_tokens=; most are far shorter"

RequestKind = Literal["texts", "blanks", "replies", "likelihoods"]


class _KindSpec(NamedTuple):
    """Caching, handling and progress names of requests of one kind."""

    codec: Codec[Any, Any]
    handler: Callable[..., RequestHandler[Any, Any]]
    verb: str
    unit: str


_KINDS: Mapping[RequestKind, _KindSpec] = {
    "texts": _KindSpec(TEXTS, RepresentationHandler, "encoding", "texts"),
    "blanks": _KindSpec(BLANKS, BlankHandler, "filling in", "blanks"),
    "replies": _KindSpec(REPLIES, ReplyHandler, "asking", "prompts"),
    "likelihoods": _KindSpec(LIKELIHOODS, LikelihoodHandler, "reading", "sentences"),
}


@dataclass(frozen=True)
class _RequestSpec:
    """A kind of request, and the names of the representations if texts are encoded."""

    kind: RequestKind
    representations: tuple[str, ...] = ()

    def make_handler(self, model: Any) -> RequestHandler[Any, Any]:
        handler = _KINDS[self.kind].handler
        return handler(model, self.representations) if self.kind == "texts" else handler(model)


@dataclass(frozen=True)
class _WorkerFactory:
    """Open the model in a worker, which then handles tasks of numbered batches."""

    model: str
    spec: _RequestSpec

    def __call__(self) -> Callable[[Sequence[tuple[int, Any]]], Iterator[tuple[int, Any]]]:
        handler = self.spec.make_handler(open_model(self.model, self.spec.kind))

        def work(task: Sequence[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
            outputs = iter_batches(handler, [batch for _, batch in task])
            yield from zip([number for number, _ in task], outputs, strict=True)

        return work


@dataclass(frozen=True)
class _ShardTask:
    """Texts of one shard, each with the span of its word."""

    number: int
    texts: tuple[str, ...]
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class _ShardTasks(Sequence[_ShardTask]):
    """Shards to encode, made on demand because all texts at once may not fit into memory."""

    contexts: Contexts
    store: ShardStore
    numbers: tuple[int, ...]
    window: int | None

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: int) -> _ShardTask:  # type: ignore[override]
        from biassay.corpus.contexts import cut_window  # most runs have no contexts

        numbers = self.store.get_rows(self.numbers[index])
        rows = slice(numbers.start, numbers.stop)
        pairs = zip(self.contexts.texts(rows), self.contexts.spans(rows), strict=True)
        texts, spans = zip(*(cut_window(text, span, self.window) for text, span in pairs), strict=True)
        return _ShardTask(self.numbers[index], texts, spans)


@dataclass(frozen=True)
class _EncoderFactory:
    """Open the model in a worker, which then encodes shards."""

    model: str

    def __call__(self) -> Callable[[_ShardTask], Iterator[tuple[int, ContextEmbeddings]]]:
        encoder: WordEncoder = open_model(self.model, "words")
        encoder.prepare()

        def work(task: _ShardTask) -> Iterator[tuple[int, ContextEmbeddings]]:
            yield task.number, encoder.encode_words(task.texts, task.spans)

        return work


@dataclass(frozen=True)
class RunOptions:
    """Where and how a study runs.

    Attributes
    ----------
    out : path, optional
        Run folder. If None, nothing is saved.
    cache : path or URL, optional
        Cache directory; by default the user's. If it is a URL in object storage, that is a remote cache
        which is synchronised with the user's directory.
    vectors : path, optional
        Folder for the vectors of words in context, instead of the cache.
    engine : Executor, optional
        Where models run; by default in this process.
    listener : Listener
        Receives progress and warnings.
    token_budget : TokenBudget
        Limits and counts the tokens of endpoints.
    remote_cache : RemoteCache or None
        Follows from `cache`.
    """

    out: PathLike | None = None
    cache: PathLike | None = None
    vectors: PathLike | None = None
    engine: Executor | None = None
    listener: Listener = field(default_factory=NullListener)
    token_budget: TokenBudget = field(default_factory=TokenBudget)
    remote_cache: RemoteCache | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "listener", SynchronizedListener(self.listener))
        if self.cache is not None and not str(self.cache):
            raise UsageError("the name of the cache is empty; leave out --cache to use the default")
        if is_url(self.cache) and self.remote_cache is None:
            remote = RemoteFolder(str(self.cache))
            remote.list_names()  # fail before the run starts if the storage is unreachable
            object.__setattr__(self, "remote_cache", RemoteCache(remote, self.listener.notice))

    @property
    def folder(self) -> Path | None:
        """Run folder, or None."""
        return None if self.out is None else Path(self.out)

    @property
    def cache_folder(self) -> Path:
        """Cache directory on this machine."""
        return default_cache() if self.cache is None or self.remote_cache is not None else Path(self.cache)

    @contextmanager
    def lock_caches(self) -> Iterator[None]:
        """Keep `biassay cache prune` from removing files that this run uses, converted models included."""
        folders = {self.cache_folder}
        with suppress(UsageError):  # $BIASSAY_CACHE is not a folder
            folders.add(default_cache())
        with ExitStack() as stack:
            for folder in sorted(folders):
                stack.enter_context(lock_cache(folder))
            yield


class RequestFetcher:
    """Fetch outputs from the cache, else from models, and cache them."""

    def __init__(self, options: RunOptions) -> None:
        self._options, self._listener, self._engine = options, options.listener, options.engine
        self._responses = ResponseCache(options.cache_folder, options.remote_cache)

    def fetch(self, model: OpenedModel, requests: Requests) -> tuple[ModelOutputs, int, int]:
        """Fetch the outputs for all requests to a model.

        Returns
        -------
        outputs : ModelOutputs
        total : int
            Number of distinct requests.
        fetched : int
            Number of requests that were not cached.
        """
        if model.identity.destination:
            self._listener.notice(
                f"{model.label}: texts go to {model.identity.destination}{_insecure_key_warning(model.identity)}"
            )
        texts: Mapping[str, ModelCache[Any, Any]] = {}
        caches: dict[str, ModelCache[Any, Any]] = {}
        contexts = None
        total = fetched = 0
        if requests.texts or requests.text_blocks:
            texts, total, fetched = self._fetch_texts(model, requests)
        by_kind: Mapping[RequestKind, Sequence[Any]] = {
            "blanks": requests.blanks,
            "replies": requests.prompts,
            "likelihoods": requests.likelihoods,
        }
        for kind, wanted in by_kind.items():
            if wanted:
                caches[kind], new = self._fetch_kind(model, kind, wanted, accepts_part=requests.accepts_part)
                total, fetched = total + len(set(wanted)), fetched + new
        if requests.contexts is not None:
            contexts, rows, new = self._fetch_contexts(model, requests.contexts)
            total, fetched = total + rows, fetched + new
        encoder = model.opened.get("texts")
        outputs = ModelOutputs(
            identity=model.identity,
            capabilities=model.capabilities,
            identities={capability: opened.identity for capability, opened in model.opened.items()},
            contexts=contexts,
            cached_texts=texts,
            requested_texts=tuple(dict.fromkeys(requests.texts)),
            erasure=model.erasure,
            cached_tokens=self._open_number_cache(model, "count_tokens", TOKENS),
            cached_ranks=self._open_number_cache(model, "rank_words", RANKS),
            cached_blanks=caches.get("blanks"),
            cached_replies=caches.get("replies"),
            cached_likelihoods=caches.get("likelihoods"),
            stream_vocabulary=encoder.vocabulary if isinstance(encoder, HasVocabulary) else None,
            count_tokens=model.find_method("count_tokens"),
            rank_words=model.find_method("rank_words"),
        )
        return outputs, total, fetched

    def _fetch_texts(
        self, model: OpenedModel, requests: Requests
    ) -> tuple[Mapping[str, ModelCache[Any, Any]], int, int]:
        """Fetch all representations of the texts, and count the texts and those that were not cached."""
        known = {representation.name: representation for representation in model.capabilities.representations}
        unknown = next((name for name in requests.representations if name not in known), None)
        if unknown is not None:
            hint = f"(representations: {', '.join(map(repr, known))})"
            raise UnknownNameError(f"representation of model {model.label!r}:", unknown, known, hint)
        names = dict.fromkeys((model.capabilities.default_representation, *requests.representations))
        caches = {name: self._responses.for_model(known[name].identity, TEXTS) for name in names}
        total = fetched = 0
        fitted = () if model.erasure is None else model.erasure.words
        for texts in chain(requests.text_blocks, [[*requests.texts, *fitted]] if requests.texts or fitted else []):
            total += len(set(texts))
            fetched += self._fetch_text_block(model, caches, texts)
        self._report_damaged([file for cache in caches.values() for file in cache.damaged])
        return caches, total, fetched

    def _fetch_text_block(
        self, model: OpenedModel, caches: Mapping[str, ModelCache[Any, Any]], texts: Sequence[str]
    ) -> int:
        """Fetch the representations that are not cached in one pass through the model; return the number of texts."""
        fetched = 0
        for _ in range(_ATTEMPTS):
            incomplete = RepresentationCaches(caches, texts)
            spec = _RequestSpec("texts", incomplete.names)
            fetched += self._fetch_missing(model, spec, texts, incomplete)
            dropped = [cache.drop_deleted() for cache in caches.values()]
            if not any(dropped):
                break
        return fetched

    def _open_number_cache(
        self, model: OpenedModel, method: str, codec: Codec[Any, Any]
    ) -> ModelCache[Any, Any] | None:
        """Open the cache of numbers that a study requests while it measures."""
        opened = model.first_with(method)
        return None if opened is None else ResponseCache(self._options.cache_folder).for_model(opened.identity, codec)

    def _fetch_kind(
        self, model: OpenedModel, kind: RequestKind, requests: Sequence[Any], *, accepts_part: bool
    ) -> tuple[ModelCache[Any, Any], int]:
        """Fetch the outputs for all requests of one kind, or for those that the budget allows."""
        opened = model.opened[kind]
        is_streamed = isinstance(opened, StreamingModel)
        cache = self._responses.for_model(opened.identity, _KINDS[kind].codec)
        fetch = self._stream if is_streamed else self._fetch_missing
        fetched = 0
        for _ in range(_ATTEMPTS):
            n_missing = len(cache.missing(requests))
            try:
                fetched += fetch(model, _RequestSpec(kind), requests, cache)
            except BudgetError as error:
                if not accepts_part:
                    raise
                missing = set(cache.missing(requests))
                requests = [request for request in requests if request not in missing]
                fetched += n_missing - len(missing)
                self._listener.notice(f"{model.label}: {error}")
            if not cache.drop_deleted():
                break
        self._report_damaged(cache.damaged)
        if kind == "replies":
            prompts = [prompt for prompt in dict.fromkeys(requests) if is_streamed or not prompt.options]
            self._report_incomplete(model, prompts, cache.get(prompts))
        return cache, fetched

    def _report_incomplete(self, model: OpenedModel, prompts: Sequence[Any], replies: Sequence[Reply]) -> None:
        """Notify the user of replies that were cut off, filtered or failed."""
        texts = [reply for prompt, reply in zip(prompts, replies, strict=True) if not prompt.options]
        if truncated := sum(reply.finish_reason == "length" for reply in texts):
            self._listener.notice(
                f"{model.label}: {truncated:,} of {len(texts):,} responses were cut off by max_tokens=; increase it"
            )
        reasons = Counter(reply.finish_reason for reply in replies)
        counts = [f"{reasons['filter']:,} filtered by the endpoint"] * bool(reasons["filter"])
        counts += [f"{reasons['failed']:,} failed after retries (run the command again to retry only these)"] * bool(
            reasons["failed"]
        )
        if counts:
            self._listener.notice(f"{model.label}: of {len(prompts):,} prompts {', '.join(counts)}")

    def _stream(
        self, model: OpenedModel, spec: _RequestSpec, requests: Sequence[Any], cache: ModelCache[Any, Any]
    ) -> int:
        """Send requests to an endpoint, always from this process, because the endpoint does the work."""
        opened, kind = model.opened[spec.kind], _KINDS[spec.kind]
        budget = self._options.token_budget
        before = budget.tokens_in, budget.tokens_out

        def announce(missing: Sequence[Any]) -> None:
            tokens_in, tokens_out = opened.estimate(missing)
            self._listener.notice(
                f"{model.label}: {len(missing):,} {kind.unit} to ask, about {tokens_in:,} tokens in and at most "
                f"{tokens_out:,} out{_LENGTH_NOTE if tokens_out > len(missing) else ''}"
            )
            announce_step(self._listener, model.label, f"{kind.verb} {len(missing):,} {kind.unit}")

        try:
            progress = self._make_progress(model, kind.unit)
            return stream_missing(opened, requests, cache, budget, progress, announce)
        finally:
            used_in, used_out = (
                budget.tokens_in - before[0],
                budget.tokens_out - before[1],
            )
            if used_in or used_out:
                self._listener.notice(f"{model.label}: used {used_in:,} tokens in and {used_out:,} out")

    def _fetch_missing(
        self, model: OpenedModel, spec: _RequestSpec, requests: Sequence[Any], cache: CacheWriter[Any, Any]
    ) -> int:
        kind = _KINDS[spec.kind]
        return fetch_missing(
            spec.make_handler(model.opened[spec.kind]),
            requests,
            cache,
            self._make_progress(model, kind.unit),
            None if self._engine is None or model.is_remote else _make_batch_fetcher(self._engine, model, spec),
            lambda: announce_step(self._listener, model.label, "loading the model"),
            lambda missing: announce_step(self._listener, model.label, f"{kind.verb} {missing:,} {kind.unit}"),
        )

    def _make_progress(self, model: OpenedModel, unit: str) -> Callable[[int, int], None]:
        return lambda done, total: self._listener.progress(model.label, unit, done, total)

    def _report_damaged(self, files: list[str]) -> None:
        if files:
            count = "a damaged cache file" if len(files) == 1 else f"{len(files)} damaged cache files"
            self._listener.notice(f"removed {count}; the contents are computed again")

    def _fetch_contexts(self, model: OpenedModel, wanted: ContextRequests) -> tuple[ShardStore, int, int]:
        """Fetch the vectors of words in context; return them with the numbers of all rows and of new ones."""
        contexts = wanted.contexts
        store = self._open_vector_store(model, wanted)
        announce_step(self._listener, model.label, "encoding new contexts")
        progress, factory = self._make_progress(model, "contexts"), _EncoderFactory(_get_absolute_model(model))
        needed = {number for word in wanted.words for number in store.find_shards(contexts.get_rows(word))}
        encoded, reasons = 0, Counter[str]()
        for _ in range(_ATTEMPTS):
            store.verify(needed)
            numbers = tuple(number for number in store.missing() if number in needed)
            if not numbers:
                break
            total = encoded + sum(len(store.get_rows(number)) for number in numbers)
            tasks = _ShardTasks(contexts, store, numbers, wanted.window)
            for number, embeddings in (self._engine or LocalExecutor()).run(factory, tasks, model=True):
                store.write(number, embeddings.vectors)
                encoded += len(embeddings.vectors)
                reasons.update(reason for reason in embeddings.missing if reason is not None)
                progress(encoded, total)
        self._report_damaged(store.damaged)
        for reason, count in reasons.most_common():
            self._listener.notice(f"{model.label}: of the contexts just encoded, {count} have no vector: {reason}")
        return store, sum(map(contexts.count, wanted.words)), encoded

    def _open_vector_store(self, model: OpenedModel, wanted: ContextRequests) -> ShardStore:
        """Open the folder of vectors that the user chose, or the one in the cache."""
        contexts, identity = wanted.contexts, model.opened["words"].identity
        metadata = StoreMetadata(
            contexts=contexts.digest,
            rows=len(contexts),
            model=identity.name,
            backend=identity.backend,
            revision=identity.revision,
            settings=identity.settings,
            window="sentence" if wanted.window is None else str(wanted.window),
            dtype=wanted.dtype,  # type: ignore[arg-type]
            shard_rows=SHARD_ROWS,
        )
        breaks = [contexts.get_rows(stimulus).start for stimulus in contexts.stimuli]
        if self._options.vectors is not None:
            return ShardStore.open(Path(self._options.vectors) / model.slug, metadata, breaks)
        folder = self._options.cache_folder / "contexts" / metadata.key
        store = ShardStore.open(folder, metadata, breaks, self._options.remote_cache, in_cache=True)
        with suppress(OSError):  # the time of the last use, for `biassay cache`
            os.utime(folder / METADATA_FILE)
        return store


def _insecure_key_warning(identity: Identity) -> str:
    """Return a warning if a key would be sent to another machine over plain http."""
    url, _, key = identity.destination.partition(", ")
    host = urlsplit(url).hostname or ""
    is_local = host == "localhost" or host.endswith(".localhost") or host == "::1" or host.startswith("127.")
    if not url.startswith("http://") or not key.startswith("with the key") or is_local:
        return ""
    return ". WARNING: http is not encrypted: others on the network can read the key and the texts; use https"


def _make_batch_fetcher(engine: Executor, model: OpenedModel, spec: _RequestSpec) -> BatchFetcher:
    """Return a function that fetches batches from the workers of an engine."""
    factory = _WorkerFactory(_get_absolute_model(model), spec)

    def fetch_batches(batches: Sequence[Sequence[Any]]) -> Iterator[tuple[int, Any]]:
        numbered = list(enumerate(batches))
        # One task for all batches if the backend reads a file once for all texts.
        tasks = [[batch] for batch in numbered] if can_split_texts(factory.model) else [numbered]
        return engine.run(factory, tasks, model=True)

    return fetch_batches


def _get_absolute_model(model: OpenedModel) -> str:
    """Return the model string with an absolute path, because a worker may have another working directory."""
    if not isinstance(model.spec.model, str):
        raise UsageError(
            f"{model.spec.text}: a Python object cannot be sent to a worker; on a cluster, name the model by a string"
        )
    text = parse_model(model.spec.model).drop_setting(ERASE).text
    head, question, settings = text.partition("?")
    backend, colon, name = head.partition(":")
    path = Path(name).expanduser()
    return f"{backend}{colon}{path.resolve()}{question}{settings}" if name and path.exists() else text


Output = TypeVar("Output")


class ModelPrefetcher(Generic[Output]):
    """Fetch model outputs in background threads, a few models ahead of the consumer.

    Only models listed in `concurrent` are fetched ahead; all others are fetched when `result` asks for them. So is a
    model that shares a cache key with an earlier one, because it finds the outputs of the first in the cache.

    Parameters
    ----------
    fetch : callable
        Function from a model's index to its outputs.
    concurrent : sequence of int
        Indices of the models that may be fetched ahead, in order of use.
    executor : Executor or None
        Decides how many models run at once. If None, nothing is fetched ahead.
    cache_keys : callable, optional
        Function from a model's index to the cache keys of its outputs.

    Notes
    -----
    At most ``executor.max_concurrent_models + 1`` results are held in memory.
    """

    def __init__(
        self,
        fetch: Callable[[int], Output],
        concurrent: Sequence[int],
        executor: Executor | None,
        cache_keys: Callable[[int], Collection[object]] = lambda model_index: (model_index,),
    ) -> None:
        self._fetch, self._executor = fetch, executor
        self._threads: ThreadPoolExecutor | None = None
        self._running: dict[int, Future[Output]] = {}
        self._waiting: deque[int] = deque()
        self._max_concurrent = min(len(concurrent), 1 if executor is None else executor.max_concurrent_models)
        if self._max_concurrent > 1:
            self._threads = ThreadPoolExecutor(self._max_concurrent)
            self._waiting = deque(_skip_shared_keys(concurrent, cache_keys))
            self._schedule()

    def __enter__(self) -> Self:
        return self

    def result(self, model_index: int) -> Output:
        """Return the outputs of one model, waiting for them if necessary."""
        future = self._running.pop(model_index, None)
        self._schedule()
        return self._fetch(model_index) if future is None else future.result()

    def _schedule(self) -> None:
        while self._threads is not None and self._waiting and len(self._running) <= self._max_concurrent:
            model_index = self._waiting.popleft()
            self._running[model_index] = self._threads.submit(self._fetch, model_index)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._threads is not None and self._executor is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            with nullcontext() if error is None else self._executor.stop():
                self._threads.shutdown()


def _skip_shared_keys(model_indices: Sequence[int], cache_keys: Callable[[int], Collection[object]]) -> Iterator[int]:
    seen = set[object]()
    for model_index in model_indices:
        keys = set(cache_keys(model_index))
        if seen.isdisjoint(keys):
            yield model_index
        seen |= keys
