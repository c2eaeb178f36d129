"""Models are asked what a study requests, once; what they answered before is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from biassay.answers.answers import Answers
from biassay.answers.codecs import BLANKS, LIKELIHOODS, RANKS, REPLIES, TEXTS, TOKENS, Codec
from biassay.answers.fill import (
    AskedBlanks,
    AskedLikelihoods,
    AskedReadings,
    AskedReplies,
    Asker,
    Keeper,
    ask_missing,
    in_turn,
)
from biassay.answers.shards import ShardStore
from biassay.answers.sharing import Beyond
from biassay.answers.store import AnswerStore, ModelStore, ReadingStores
from biassay.answers.streaming import stream_missing
from biassay.engines.base import Engine
from biassay.engines.local import LocalEngine
from biassay.errors import UnknownNameError, UsageError
from biassay.models.answering import Streams
from biassay.models.base import Identity
from biassay.models.registry import open_as, splits
from biassay.models.spending import Spending
from biassay.models.vocabulary import HasVocabulary
from biassay.runs.embedding import embed, from_anywhere, open_store, store_about
from biassay.runs.listener import Listener, begin
from biassay.runs.team import Member
from biassay.studies.study import ContextRequests, Requests
from biassay.texts.contexts import UNCHECKED

__all__ = ["Interview"]

Ability = Literal["texts", "blanks", "replies", "likelihoods"]


class _Kind(NamedTuple):
    """How requests of one kind are kept, asked, and called."""

    codec: Codec[Any, Any]
    asker: Callable[[Any], Asker[Any, Any]]
    doing: str
    unit: str


_KINDS: Mapping[Ability, _Kind] = {
    "blanks": _Kind(BLANKS, AskedBlanks, "filling in", "blanks"),
    "replies": _Kind(REPLIES, AskedReplies, "asking", "prompts"),
    "likelihoods": _Kind(LIKELIHOODS, AskedLikelihoods, "reading", "sentences"),
}
_ATTEMPTS = 3  # in case somebody deletes the cache in the meantime
_MOSTLY = ", were all answers as long as max_tokens=; most are far shorter"


@dataclass(frozen=True)
class Interview:
    """Asks models, and keeps what they answer.

    Attributes
    ----------
    cache : Path
    contexts : Path or None
        A folder for the vectors of contexts, instead of the cache.
    engine : Engine or None
        Where models run; None: here.
    listener : Listener
    spending : Spending
        The tokens that endpoints use, of all models together.
    beyond : Beyond or None
        Object storage behind the cache.
    """

    cache: Path
    contexts: Path | None
    engine: Engine | None
    listener: Listener
    spending: Spending = field(default_factory=Spending)
    beyond: Beyond | None = None

    def ask(self, member: Member, requests: Requests) -> tuple[Answers, int, int]:
        """Answers to all requests; how many requests there are, and how many the model had to answer now."""
        if member.identity.sends_to:
            self.listener.notice(f"{member.label}: texts go to {member.identity.sends_to}{_unsafe(member.identity)}")
        texts: Mapping[str, ModelStore[Any, Any]] = {}
        contexts = None
        total = answered = 0
        if requests.texts:
            texts, now = self._texts(member, requests)
            total, answered = total + len(dict.fromkeys(requests.texts)), answered + now
        asked = {"blanks": requests.blanks, "replies": requests.prompts, "likelihoods": requests.likelihoods}
        stores: dict[str, ModelStore[Any, Any]] = {}
        for ability in _KINDS:
            if asked[ability]:
                stores[ability], now = self._kept(member, ability, asked[ability])
                total, answered = total + len(dict.fromkeys(asked[ability])), answered + now
        if requests.contexts is not None:
            contexts, rows, now = self._contexts(member, requests.contexts)
            total, answered = total + rows, answered + now
        encoder = member.opened.get("texts")
        answers = Answers(
            identity=member.identity,
            abilities=member.abilities,
            identities={ability: model.identity for ability, model in member.opened.items()},
            contexts=contexts,
            kept_texts=texts,
            asked_texts=tuple(dict.fromkeys(requests.texts)),
            kept_tokens=self._kept_numbers(member, "count_tokens", TOKENS),
            kept_ranks=self._kept_numbers(member, "rank_words", RANKS),
            kept_blanks=stores.get("blanks"),
            kept_replies=stores.get("replies"),
            kept_likelihoods=stores.get("likelihoods"),
            stream=encoder.vocabulary if isinstance(encoder, HasVocabulary) else None,
            count_tokens=member.method("count_tokens"),
            rank_words=member.method("rank_words"),
        )
        return answers, total, answered

    def _texts(self, member: Member, requests: Requests) -> tuple[Mapping[str, ModelStore[Any, Any]], int]:
        """A store for every reading; a pass through the model fills all that lack something."""
        known = {reading.name: reading for reading in member.abilities.readings}
        unknown = next((name for name in requests.readings if name not in known), None)
        if unknown is not None:
            hint = f"(readings: {', '.join(map(repr, known))})"
            raise UnknownNameError(f"reading of model {member.label!r}:", unknown, known, hint)
        names = dict.fromkeys((member.abilities.own_reading, *requests.readings))
        stores = {name: AnswerStore(self.cache, self.beyond).of(known[name].identity, TEXTS) for name in names}
        answered = 0
        for _ in range(_ATTEMPTS):
            lacking = ReadingStores(stores, requests.texts)
            answered += self._ask(member, _Asks("texts", lacking.names), requests.texts, lacking)
            lost = [store.drop_lost() for store in stores.values()]
            if not any(lost):
                break
        self._tell_damaged([file for store in stores.values() for file in store.damaged])
        return stores, answered

    def _kept_numbers(self, member: Member, method: str, codec: Codec[Any, Any]) -> ModelStore[Any, Any] | None:
        """Where numbers of texts are kept, which a study asks for while it measures."""
        numbering = member.having(method)
        return None if numbering is None else AnswerStore(self.cache).of(numbering.identity, codec)

    def _kept(self, member: Member, ability: Ability, requests: Sequence[Any]) -> tuple[ModelStore[Any, Any], int]:
        """The store that holds an answer to every request of a kind, and how many were asked now."""
        model = member.opened[ability]
        store = AnswerStore(self.cache, self.beyond).of(model.identity, _KINDS[ability].codec)
        asked = self._streamed if isinstance(model, Streams) else self._ask
        answered = 0
        for _ in range(_ATTEMPTS):
            answered += asked(member, _Asks(ability), requests, store)
            if not store.drop_lost():
                break
        self._tell_damaged(store.damaged)
        if ability == "replies":
            self._tell_cut_off(member, [prompt for prompt in dict.fromkeys(requests) if not prompt.options], store)
            if isinstance(model, Streams):
                self._report_unanswered(member, list(dict.fromkeys(requests)), store)
        return store, answered

    def _tell_cut_off(self, member: Member, prompts: Sequence[Any], store: ModelStore[Any, Any]) -> None:
        cut_off = sum(reply.ended == "length" for reply in store.get(prompts)) if prompts else 0
        if cut_off:
            of = f"{cut_off:,} of {len(prompts):,} answers"
            self.listener.notice(f"{member.label}: {of} were cut off by max_tokens=; a larger one lets them end")

    def _report_unanswered(self, member: Member, prompts: Sequence[Any], store: ModelStore[Any, Any]) -> None:
        ended = [reply.ended for reply in store.get(prompts)]
        filtered, failed = ended.count("filter"), ended.count("failed")
        counts = [f"{filtered:,} filtered by the endpoint"] * bool(filtered)
        counts += [f"{failed:,} failed after retries (run the command again to ask only these)"] * bool(failed)
        if counts:
            self.listener.notice(f"{member.label}: of {len(prompts):,} prompts {', '.join(counts)}")

    def _streamed(self, member: Member, asks: _Asks, requests: Sequence[Any], store: ModelStore[Any, Any]) -> int:
        """Ask an endpoint, always from here: it is what answers, and it takes many requests at once."""
        model, kind = member.opened[asks.ability], _KINDS[asks.ability]
        before = self.spending.tokens_in, self.spending.tokens_out

        def tell(missing: Sequence[Any]) -> None:
            tokens_in, tokens_out = model.estimate(missing)
            self.listener.notice(
                f"{member.label}: {len(missing):,} {kind.unit} to ask, about {tokens_in:,} tokens in and at most "
                f"{tokens_out:,} out{_MOSTLY if tokens_out > len(missing) else ''}"
            )
            begin(self.listener, member.label, f"{kind.doing} {len(missing):,} {kind.unit}")

        progress = self._progress(member, f"{kind.unit} asked")
        try:
            return stream_missing(model, requests, store, self.spending, progress, tell)
        finally:
            used_in, used_out = self.spending.tokens_in - before[0], self.spending.tokens_out - before[1]
            if used_in or used_out:
                self.listener.notice(f"{member.label}: used {used_in:,} tokens in and {used_out:,} out")

    def _ask(self, member: Member, asks: _Asks, requests: Sequence[Any], store: Keeper[Any, Any]) -> int:
        here = self.engine is None or member.is_elsewhere
        elsewhere = None if here or self.engine is None else _Elsewhere(self.engine, _worker(member, asks))
        progress = self._progress(member, f"{asks.unit} asked")

        def load() -> None:
            begin(self.listener, member.label, "loading the model")

        def start(missing: int) -> None:
            begin(self.listener, member.label, f"{asks.doing} {missing:,} {asks.unit}")

        return ask_missing(asks.of(member.opened[asks.ability]), requests, store, progress, elsewhere, load, start)

    def _progress(self, member: Member, unit: str) -> Callable[[int, int], None]:
        return lambda done, total: self.listener.progress(member.label, unit, done, total)

    def _tell_damaged(self, files: list[str]) -> None:
        if files:
            count = "a damaged cache file" if len(files) == 1 else f"{len(files)} damaged cache files"
            self.listener.notice(f"removed {count}; the contents are computed again")

    def _contexts(self, member: Member, asked: ContextRequests) -> tuple[ShardStore, int, int]:
        """The store of vectors by row; how many rows were asked about, and how many encoded now."""
        about = store_about(asked.contexts, member.opened["words"].identity, asked.window, asked.dtype)
        folder = None if self.contexts is None else self.contexts / member.slug
        store = open_store(about, asked.contexts, self.cache, folder, self.beyond)
        if not asked.contexts.checked:
            self.listener.notice(UNCHECKED)
        begin(self.listener, member.label, "encoding contexts that were not encoded before")
        engine, progress = self.engine or LocalEngine(), self._progress(member, "contexts asked")
        done = embed(str(member.asked.model), asked.contexts, asked.words, store, asked.window, engine, progress)
        self._tell_damaged(store.damaged)
        for reason, count in done.missing.most_common():
            self.listener.notice(f"{member.label}: of the contexts just encoded, {count} have no vector: {reason}")
        return store, sum(map(asked.contexts.count, asked.words)), done.encoded


def _unsafe(identity: Identity) -> str:
    """A warning, where a key would go over plain http to another machine."""
    address, _, key = identity.sends_to.partition(", ")
    host = urlsplit(address).hostname or ""
    is_here = host == "localhost" or host.endswith(".localhost") or host == "::1" or host.startswith("127.")
    if not address.startswith("http://") or not key.startswith("with the key") or is_here:
        return ""
    return ". WARNING: http is not encrypted: anyone on the way can read the key and the texts; use https"


@dataclass(frozen=True)
class _Asks:
    """What a model is asked for: readings of texts, by name, or another kind of request."""

    ability: Ability
    readings: tuple[str, ...] = ()

    @property
    def doing(self) -> str:
        return "encoding" if self.ability == "texts" else _KINDS[self.ability].doing

    @property
    def unit(self) -> str:
        return "texts" if self.ability == "texts" else _KINDS[self.ability].unit

    def of(self, model: Any) -> Asker[Any, Any]:
        return AskedReadings(model, self.readings) if self.ability == "texts" else _KINDS[self.ability].asker(model)


@dataclass(frozen=True)
class _Make:
    """Opens the model wherever a worker starts."""

    model: str
    asks: _Asks

    def __call__(self) -> Callable[[Sequence[tuple[int, Any]]], Iterator[tuple[int, Any]]]:
        return _Worker(self.asks.of(open_as(self.model, self.asks.ability)))


@dataclass(frozen=True)
class _Worker:
    """Answers the batches of a task, which it sees as a whole first."""

    asker: Asker[Any, Any]

    def __call__(self, task: Sequence[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        yield from zip([number for number, _ in task], in_turn(self.asker, [batch for _, batch in task]), strict=True)


@dataclass(frozen=True)
class _Elsewhere:
    """Batches answered by the workers of an engine; all in one task where the family reads a file once for all."""

    engine: Engine
    make: _Make

    def __call__(self, batches: Sequence[Sequence[Any]]) -> Iterator[tuple[int, Any]]:
        numbered = list(enumerate(batches))
        tasks = [[one] for one in numbered] if splits(self.make.model) else [numbered]
        return self.engine.run(self.make, tasks, model=True)


def _worker(member: Member, asks: _Asks) -> _Make:
    if not isinstance(member.asked.model, str):
        raise UsageError(f"{member.asked.text}: an object stays in this process; on a cluster a model is a string")
    return _Make(from_anywhere(member.asked.model), asks)
