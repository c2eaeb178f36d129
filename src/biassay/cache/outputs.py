"""Outputs and capabilities of one model, as studies read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.cache.context_vectors import ShardStore
from biassay.cache.responses import RANKS, TOKENS, ModelCache
from biassay.errors import ModelError, UsageError
from biassay.models.base import Identity, Reply, Representation, TextEmbeddings, TokenLikelihoods
from biassay.models.erasure import Eraser, Erasure
from biassay.models.vector_files import VocabularyBlock
from biassay.prompts.requests import LikelihoodRequest, Prompt


@dataclass(frozen=True)
class Capabilities:
    """Capabilities of a model, which a study knows before it makes requests.

    Attributes
    ----------
    kind : {"masked", "causal"} or None
        Kind of language model. None if it fills no blanks and gives no likelihoods.
    has_mask : bool
        Whether a group can be masked.
    has_output_layer : bool
        Whether the scores of a blank include the probability mass of tokens and the distance of the sensitivity test,
        which need the output layer. Endpoints do not give it.
    has_vocabulary : bool
        Whether the model can list all its words.
    folds_case : bool
        Whether words that differ in case are the same word.
    oov_hint : str
        Advice for words that are out of vocabulary.
    representations : tuple of Representation
        Representations of a text, the default among them. A transformer has every layer with every pooling, most other
        encoders the default only, and models that do not encode texts none.
    default_representation : str
        Name of the default representation.
    option_log_p : {"continuation", "first token", ""}
        How the likelihood of an option of a prompt is known: for all its tokens, only for single tokens among the
        likeliest ones, or not at all.
    scorer : {"texts", "pairs", ""}
        Whether the vectors of texts are scores, and of what; see `Encoder`.
    """

    kind: str | None = None
    has_mask: bool = False
    has_output_layer: bool = True
    has_vocabulary: bool = False
    folds_case: bool = False
    oov_hint: str = ""
    representations: tuple[Representation, ...] = ()
    default_representation: str = ""
    option_log_p: str = ""
    scorer: str = ""


@dataclass(frozen=True, eq=False)
class ModelOutputs:
    """Cached outputs of one model.

    Attributes
    ----------
    identity : Identity
        Identity that results show.
    capabilities : Capabilities
    identities : dict
        Identity by capability, because a model may be opened with different settings for each.
    contexts : ShardStore or None
        Vectors of words in context, by row.
    cached_texts, cached_tokens, cached_ranks, cached_blanks, cached_replies, cached_likelihoods
        Caches by kind of request.
    requested_texts : sequence of str
        Texts of the study's requests.
    stream_vocabulary, count_tokens, rank_words : callable or None
        Methods of the model, if it has them.
    judge : ModelOutputs or None
        Outputs of a second model that judges the responses of this one.
    erasure : Erasure or None
        Concept that is erased from the vectors of texts. The caches hold the vectors of the model itself, those of the
        words to fit on included.
    """

    identity: Identity
    capabilities: Capabilities
    identities: dict[str, Identity] = field(default_factory=dict)
    contexts: ShardStore | None = None
    cached_texts: Mapping[str, ModelCache[str, TextEmbeddings]] = field(default_factory=dict)
    requested_texts: Sequence[str] = ()
    cached_tokens: ModelCache[str, NDArray[np.int64]] | None = None
    cached_ranks: ModelCache[str, NDArray[np.float64]] | None = None
    cached_blanks: Any = None
    cached_replies: ModelCache[Prompt, Sequence[Reply]] | None = None
    cached_likelihoods: ModelCache[LikelihoodRequest, Sequence[TokenLikelihoods]] | None = None
    stream_vocabulary: Callable[[], Iterator[VocabularyBlock]] | None = None
    count_tokens: Callable[[Sequence[str]], Any] | None = None
    rank_words: Callable[[Sequence[str]], Any] | None = None
    judge: ModelOutputs | None = None
    erasure: Erasure | None = None
    _erasers: dict[str, Eraser] = field(default_factory=dict)

    @property
    def cache_files(self) -> tuple[str, ...] | None:
        """Names of the files with the outputs, which are hashes of their content; None if some are in memory only.

        The digests of fitted erasers are among them.
        """
        caches = [
            *self.cached_texts.values(),
            self.cached_blanks,
            self.cached_replies,
            self.cached_likelihoods,
            self.contexts,
        ]
        used = [cache.used for cache in caches if cache is not None]
        if self.identity.key is None or None in used:
            return None
        erasers = [] if self.erasure is None else [self.fit_eraser(name).digest for name in self.cached_texts]
        return (*sorted(name for names in used for name in names or ()), *erasers)

    def erase(self, erasure: Erasure) -> ModelOutputs:
        """Return outputs without a concept. The words to fit on must be among the requested texts."""
        return replace(self, erasure=erasure, identity=erasure.identify(self.identity), _erasers={})

    def fit_eraser(self, representation: str | None = None) -> Eraser:
        """Return the eraser of the concept, fitted to a representation."""
        assert self.erasure is not None
        name = self._resolve_representation(representation)
        if name not in self._erasers:
            embeddings = self.cached_texts[name].get(self.erasure.words)
            self._erasers[name] = self.erasure.fit(embeddings, self.identity.name)
        return self._erasers[name]

    def _read(self, name: str, texts: Sequence[str]) -> TextEmbeddings:
        embeddings = self.cached_texts[name].get(texts)
        return embeddings if self.erasure is None else self.fit_eraser(name).apply(texts, embeddings)

    def texts(self, texts: Sequence[str], representation: str | None = None) -> TextEmbeddings:
        """Return the vectors of requested texts, in order.

        The default representation stays in memory, and the latest of the others.

        Parameters
        ----------
        texts : sequence of str
        representation : str, optional
            Name of a requested representation; by default the model's default.
        """
        embeddings = self._load(self._resolve_representation(representation))
        try:
            return embeddings.take([self._rows[text] for text in texts])
        except KeyError as error:
            raise UsageError(f"the text {error.args[0]!r} is not among the requests of the study") from None

    def restrict(self, texts: Iterable[str]) -> ModelOutputs:
        """Return outputs that hold only the vectors of some texts in memory."""
        return replace(self, requested_texts=tuple(dict.fromkeys(texts)))

    def read_texts(self, texts: Sequence[str], representation: str | None = None) -> TextEmbeddings:
        """Return the vectors of requested texts without keeping them in memory."""
        return self._read(self._resolve_representation(representation), texts)

    def _resolve_representation(self, representation: str | None) -> str:
        name = self.capabilities.default_representation if representation is None else representation
        if name not in self.cached_texts:
            requested = ", ".join(map(repr, self.cached_texts)) or "none"
            raise UsageError(
                f"the representation {name!r} is not among the requests of the study (requested: {requested})"
            )
        return name

    def _load(self, name: str) -> TextEmbeddings:
        if name not in self._memory:
            for other in set(self._memory) - {self.capabilities.default_representation}:
                del self._memory[other]
            self._memory[name] = self._read(name, self.requested_texts)
        return self._memory[name]

    @cached_property
    def _memory(self) -> dict[str, TextEmbeddings]:
        return {}

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {text: row for row, text in enumerate(self.requested_texts)}

    def tokens(self, texts: Sequence[str]) -> NDArray[np.int64] | None:
        """Return the number of tokens of every text without special ones, or None if the model cannot count them.

        An unknown word counts as the tokens that replace it, mostly one. The texts need not be requested.
        """
        if self.count_tokens is None:
            return None
        cache = ModelCache(None, TOKENS) if self.cached_tokens is None else self.cached_tokens
        missing = cache.missing(texts)
        if missing:
            counts = np.asarray(self.count_tokens(missing), dtype=np.int64)
            if counts.shape != (len(missing),) or (counts < 0).any():
                raise ModelError(f"model {self.identity.name!r} did not count the tokens of {len(missing)} texts")
            cache.add(missing, counts)
        return cache.get(texts)

    def ranks(self, words: Sequence[str]) -> NDArray[np.float64] | None:
        """Return the frequency ranks of words in the model's vocabulary, or None if it is not sorted by frequency.

        1 is the most frequent word, NaN an unknown one. The model may read a large file: call it once for all words.
        """
        if self.rank_words is None:
            return None
        cache = ModelCache(None, RANKS) if self.cached_ranks is None else self.cached_ranks
        missing = cache.missing(words)
        if missing:
            ranked = self.rank_words(missing)
            ranks = np.zeros(len(missing)) if ranked is None else np.asarray(ranked, dtype=np.float64)  # 0: no order
            if ranks.shape != (len(missing),):
                raise ModelError(f"model {self.identity.name!r} did not rank {len(missing)} words")
            cache.add(missing, ranks)
        ranks = cache.get(words)
        return None if (ranks == 0.0).any() else ranks

    def blanks(self, blanks: Sequence[Any]) -> Any:
        """Return the scores of requested blanks, in order."""
        return self.cached_blanks.get(blanks)

    def replies(self, prompts: Sequence[Prompt]) -> Sequence[Reply]:
        """Return the replies to requested prompts, in order."""
        assert self.cached_replies is not None
        return self.cached_replies.get(prompts)

    def find_answered(self, prompts: Sequence[Prompt]) -> list[bool]:
        """Return whether there is a reply to each prompt; only with `Requests.accepts_part` some may be missing."""
        assert self.cached_replies is not None
        missing = set(self.cached_replies.missing(prompts))
        return [prompt not in missing for prompt in prompts]

    def likelihoods(self, texts: Sequence[LikelihoodRequest]) -> Sequence[TokenLikelihoods]:
        """Return the likelihoods of requested texts, in order."""
        assert self.cached_likelihoods is not None
        return self.cached_likelihoods.get(texts)

    def rows(self, rows: slice) -> NDArray[np.floating]:
        """Return the vectors of some contexts; a row of NaN is a word that the model could not locate."""
        assert self.contexts is not None
        return self.contexts.read(rows)

    def vocabulary(self) -> Iterator[VocabularyBlock]:
        """Iterate over all words of the model with their vectors."""
        assert self.stream_vocabulary is not None
        blocks = self.stream_vocabulary()
        if self.erasure is None:
            return blocks
        eraser = self.fit_eraser()
        return (replace(block, vectors=eraser.erase(block.words, block.vectors)) for block in blocks)
