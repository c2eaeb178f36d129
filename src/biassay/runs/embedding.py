"""Contexts to word vectors: shard by shard into a store that an interrupted run goes on with."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from biassay.answers.shards import ABOUT, ShardStore, StoreAbout
from biassay.answers.sharing import Beyond
from biassay.engines.base import Engine
from biassay.models.base import Identity, InContext, Span, WordEncoder
from biassay.models.registry import open_as
from biassay.texts.contexts import Contexts, window

__all__ = ["Embedding", "embed", "from_anywhere", "open_store", "store_about"]

SHARD_ROWS = 2048
_ATTEMPTS = 3  # in case somebody deletes the cache in the meantime


@dataclass(frozen=True)
class Embedding:
    """What embedding did: how many contexts it encoded, and why some have no vector."""

    encoded: int
    missing: Counter[str]


@dataclass(frozen=True)
class _Task:
    """One shard: texts with the span of their word. Everything a worker needs, wherever it runs."""

    number: int
    texts: tuple[str, ...]
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class _Tasks(Sequence[_Task]):
    """The shards that are missing, made when they are asked for: all texts at once may not fit into memory."""

    contexts: Contexts
    store: ShardStore
    numbers: tuple[int, ...]
    words: int | None

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, place: int) -> _Task:  # type: ignore[override]
        numbers = self.store.rows_of(self.numbers[place])
        rows = slice(numbers.start, numbers.stop)
        pairs = zip(self.contexts.texts(rows), self.contexts.spans(rows), strict=True)
        cut = [window(text, span, self.words) for text, span in pairs]
        return _Task(self.numbers[place], tuple(text for text, _ in cut), tuple(span for _, span in cut))


@dataclass(frozen=True)
class _Make:
    """Opens the model wherever a worker starts."""

    model: str

    def __call__(self) -> Callable[[_Task], Iterator[tuple[int, InContext]]]:
        encoder = open_as(self.model, "words")
        encoder.prepare()
        return _Embedder(encoder)


@dataclass(frozen=True)
class _Embedder:
    encoder: WordEncoder

    def __call__(self, task: _Task) -> Iterator[tuple[int, InContext]]:
        yield task.number, self.encoder.encode_words(task.texts, task.spans)


def store_about(contexts: Contexts, identity: Identity, words: int | None, dtype: str) -> StoreAbout:
    """What a store of these vectors must say of itself."""
    return StoreAbout(
        contexts=contexts.digest,
        rows=len(contexts),
        model=identity.name,
        family=identity.family,
        revision=identity.revision,
        settings=identity.settings,
        window="sentence" if words is None else str(words),
        dtype=dtype,  # type: ignore[arg-type]
        shard_rows=SHARD_ROWS,
    )


def open_store(
    about: StoreAbout, contexts: Contexts, cache: Path, folder: Path | None, beyond: Beyond | None = None
) -> ShardStore:
    """A folder of the user's choice, or the one in the cache that holds exactly these vectors."""
    breaks = [contexts.of(stimulus).start for stimulus in contexts.stimuli]
    content = {name: value for name, value in asdict(about).items() if name != "model"}  # a copy is the same model
    key = hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()
    if folder is not None:
        return ShardStore.open(folder, about, breaks)
    store = ShardStore.open(cache / "contexts" / key, about, breaks, beyond, in_cache=True)
    with suppress(OSError):  # the time of the last use, for `biassay cache`
        os.utime(cache / "contexts" / key / ABOUT)
    return store


def from_anywhere(model: str) -> str:
    """The model string with an absolute path, if it names one: a worker may stand in another folder."""
    head, question, settings = model.partition("?")
    family, colon, name = head.partition(":")
    path = Path(name).expanduser()
    return f"{family}{colon}{path.resolve()}{question}{settings}" if name and path.exists() else model


def embed(
    model: str,
    contexts: Contexts,
    stimuli: Sequence[str],
    store: ShardStore,
    words: int | None,
    engine: Engine,
    progress: Callable[[int, int], None],
) -> Embedding:
    """Encode the shards with contexts of ``stimuli`` that are missing, damaged, or deleted while others are encoded."""
    needed = {number for word in stimuli for number in store.shards_of(contexts.of(word))}
    encoded, missing = 0, Counter[str]()
    for _ in range(_ATTEMPTS):
        store.verify(needed)
        numbers = tuple(number for number in store.missing() if number in needed)
        if not numbers:
            break
        total = encoded + sum(len(store.rows_of(number)) for number in numbers)
        tasks = _Tasks(contexts, store, numbers, words)
        for number, found in engine.run(_Make(from_anywhere(model)), tasks, model=True):
            store.write(number, found.vectors)
            encoded += len(found.vectors)
            missing.update(reason for reason in found.missing if reason is not None)
            progress(encoded, total)
    return Embedding(encoded, missing)
