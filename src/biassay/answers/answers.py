"""What one model answered, as a study reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.answers.codecs import RANKS, TOKENS
from biassay.answers.shards import ShardStore
from biassay.answers.store import ModelStore
from biassay.errors import ModelError, UsageError
from biassay.models.answering import Reply, TokenLikelihoods
from biassay.models.base import Encoded, Identity
from biassay.models.readings import Reading
from biassay.models.vocabulary import Block
from biassay.texts.requests import Likelihood, Prompt

__all__ = ["Abilities", "Answers"]


@dataclass(frozen=True)
class Abilities:
    """What a study may know of a model before it asks.

    Attributes
    ----------
    kind : {"masked", "causal"} or None
        Of language model; None: it was opened neither to fill blanks nor for likelihoods.
    has_mask : bool
        Whether a group can be masked.
    has_output_layer : bool
        Whether what fills a blank comes with the mass of tokens and the distance of the sensitivity test, as the layer
        over the vocabulary gives them. An endpoint keeps it to itself.
    has_vocabulary : bool
        Whether it can list all its words.
    folds_case : bool
        Whether words that differ in case are one word to it.
    lost_hint : str
        What a user may try when it does not know a word.
    readings : tuple of Reading
        What it can give of a text, its own vectors among them: of a transformer every layer from the embedding to the
        top, with every pooling; of most others its own alone. None: it encodes no texts.
    own_reading : str
        The name of its own.
    option_log_p : {"continuation", "first token", ""}
        How it tells the likelihood of an option of a prompt: of all its tokens; only where it is one token and among
        the likeliest ones; or not at all.
    """

    kind: str | None = None
    has_mask: bool = False
    has_output_layer: bool = True
    has_vocabulary: bool = False
    folds_case: bool = False
    lost_hint: str = ""
    readings: tuple[Reading, ...] = ()
    own_reading: str = ""
    option_log_p: str = ""


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
    kept_texts: Mapping[str, ModelStore[str, Encoded]] = field(default_factory=dict)
    asked_texts: Sequence[str] = ()
    kept_tokens: ModelStore[str, NDArray[np.int64]] | None = None
    kept_ranks: ModelStore[str, NDArray[np.float64]] | None = None
    kept_blanks: Any = None
    kept_replies: ModelStore[Prompt, Sequence[Reply]] | None = None
    kept_likelihoods: ModelStore[Likelihood, Sequence[TokenLikelihoods]] | None = None
    stream: Callable[[], Iterator[Block]] | None = None
    count_tokens: Callable[[Sequence[str]], Any] | None = None
    rank_words: Callable[[Sequence[str]], Any] | None = None

    @property
    def files(self) -> tuple[str, ...] | None:
        """Names of the files with the answers, which are hashes of what they hold; None: some are in memory only."""
        stores = [*self.kept_texts.values(), self.kept_blanks, self.kept_replies, self.kept_likelihoods, self.contexts]
        names = [store.used for store in stores if store is not None]
        whole = self.identity.key is not None and None not in names
        return tuple(sorted(name for own in names for name in own or ())) if whole else None

    def texts(self, texts: Sequence[str], reading: str | None = None) -> Encoded:
        """Vectors of texts that were asked about, in order: those of a reading that was asked for, or the model's own.

        Its own stay in memory, and of the other readings the one that was wanted last.
        """
        encoded = self._encoded(self._asked_reading(reading))
        try:
            return encoded.rows([self._rows[text] for text in texts])
        except KeyError as error:
            unasked = error.args[0]
            raise UsageError(
                f"the text {unasked!r} is not among the requests of the study, so it has no vector"
            ) from None

    def only(self, texts: Iterable[str]) -> Answers:
        """The same with the vectors of some texts in memory, and not of all."""
        return replace(self, asked_texts=tuple(dict.fromkeys(texts)))

    def read_texts(self, texts: Sequence[str], reading: str | None = None) -> Encoded:
        """The same, read from the store and not kept in memory."""
        return self.kept_texts[self._asked_reading(reading)].get(texts)

    def _asked_reading(self, reading: str | None) -> str:
        name = self.abilities.own_reading if reading is None else reading
        if name not in self.kept_texts:
            asked = ", ".join(map(repr, self.kept_texts)) or "none"
            raise UsageError(f"the reading {name!r} is not among the requests of the study (asked for: {asked})")
        return name

    def _encoded(self, name: str) -> Encoded:
        if name not in self._memory:
            for other in set(self._memory) - {self.abilities.own_reading}:
                del self._memory[other]
            self._memory[name] = self.kept_texts[name].get(self.asked_texts)
        return self._memory[name]

    @cached_property
    def _memory(self) -> dict[str, Encoded]:
        return {}

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {text: row for row, text in enumerate(self.asked_texts)}

    def tokens(self, texts: Sequence[str]) -> NDArray[np.int64] | None:
        """How many tokens the model makes of every text, special ones left out. None: that is not known.

        An unknown word has the tokens that stand for it, mostly one. The texts need not be among the requests.
        """
        if self.count_tokens is None:
            return None
        kept = ModelStore(None, TOKENS) if self.kept_tokens is None else self.kept_tokens
        missing = kept.missing(texts)
        if missing:
            counts = np.asarray(self.count_tokens(missing), dtype=np.int64)
            if counts.shape != (len(missing),) or (counts < 0).any():
                raise ModelError(f"model {self.identity.name!r} did not count the tokens of {len(missing)} texts")
            kept.add(missing, counts)
        return kept.get(texts)

    def ranks(self, words: Sequence[str]) -> NDArray[np.float64] | None:
        """Places of words in the model's vocabulary by frequency: 1 is the most frequent, NaN a word that it lacks.

        None: the model has no such order, which is kept as a rank of 0. It may have to read a large file: ask once, for
        all words.
        """
        if self.rank_words is None:
            return None
        kept = ModelStore(None, RANKS) if self.kept_ranks is None else self.kept_ranks
        missing = kept.missing(words)
        if missing:
            found = self.rank_words(missing)
            ranks = np.zeros(len(missing)) if found is None else np.asarray(found, dtype=np.float64)
            if ranks.shape != (len(missing),):
                raise ModelError(f"model {self.identity.name!r} did not rank {len(missing)} words")
            kept.add(missing, ranks)
        ranks = kept.get(words)
        return None if (ranks == 0.0).any() else ranks

    def blanks(self, blanks: Sequence[Any]) -> Any:
        """What fills blanks, in order."""
        return self.kept_blanks.get(blanks)

    def replies(self, prompts: Sequence[Prompt]) -> Sequence[Reply]:
        """What was answered to prompts that were asked, in order."""
        assert self.kept_replies is not None
        return self.kept_replies.get(prompts)

    def likelihoods(self, texts: Sequence[Likelihood]) -> Sequence[TokenLikelihoods]:
        """Likelihoods of texts that were asked about, in order."""
        assert self.kept_likelihoods is not None
        return self.kept_likelihoods.get(texts)

    def rows(self, rows: slice) -> NDArray[np.floating]:
        """Vectors of some contexts; a row of NaN is a word that the model could not locate."""
        assert self.contexts is not None
        return self.contexts.read(rows)

    def vocabulary(self) -> Iterator[Block]:
        """All words of the model with their vectors."""
        assert self.stream is not None
        return self.stream()
