"""Protocols and data types shared by all models."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from biassay.errors import ModelError, UsageError, VectorError
from biassay.models.backend import ModelName, read_number_setting
from biassay.models.token_budget import TokenBudget
from biassay.prompts.requests import Blank, LikelihoodRequest, Prompt

BLANK_COLUMNS = ("log_p", "log_initial", "log_continuing", "distance")
"""Scores of a token: its log-probability, the log-probabilities that any token starts or continues a word, and the
distance of the sensitivity test."""

Span = tuple[int, int]
_CACHE_FORMAT = 2  # part of the folder name of cached vectors


@dataclass(frozen=True)
class Identity:
    """Identity of a model: its backend, weights and settings.

    Models of one backend with the same revision and settings share cached outputs, whatever their names: a copy of a
    file is the same model.

    Attributes
    ----------
    name : str
        Model string without settings, for display.
    backend : str
        Backend, such as ``hf``.
    revision : str or None
        Version or fingerprint of the weights, such as a digest of the file. It must include the name if the name alone
        determines the outputs. If None, outputs are not cached.
    settings : tuple of (name, value)
        Everything else that changes the outputs.
    oov_hint : str
        Advice for out-of-vocabulary words.
    destination : str
        For endpoints: the URL that receives the texts, and the variable that holds the key.
    """

    name: str
    backend: str
    revision: str | None
    settings: tuple[tuple[str, str], ...] = ()
    oov_hint: str = ""
    destination: str = field(default="", compare=False)

    @property
    def options(self) -> str:
        """Settings as in the column ``options`` of results: ``name=value;name=value``."""
        return ";".join(f"{name}={value}" for name, value in self.settings)

    @property
    def content(self) -> str:
        """Seed material: copies of a model under different names sample alike."""
        return f"{self.backend} {self.name if self.revision is None else self.revision}"

    @property
    def weights(self) -> str:
        """Digest of the weights, independent of the settings."""
        return weights_digest(self.backend, self.name, self.revision)

    @property
    def key(self) -> str | None:
        """Name of the cache folder, derived from weights and settings; None if nothing is cached."""
        if self.revision is None:
            return None
        content = json.dumps([_CACHE_FORMAT, self.backend, self.revision, self.settings], sort_keys=True)
        return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


def weights_digest(backend: str, name: str, revision: str | None) -> str:
    """Return a digest that copies of a model share.

    Parameters
    ----------
    backend : str
        Backend.
    name : str
        Name of the model; used only if there is no revision.
    revision : str or None
        Version or fingerprint of the weights.
    """
    content = f"{backend} {name}" if revision is None else revision
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


class Model(Protocol):
    """A model of any kind."""

    @property
    def identity(self) -> Identity:
        """Weights and settings."""


class MaskedOrCausalModel(Model, Protocol):
    """A language model."""

    @property
    def kind(self) -> Literal["masked", "causal"]:
        """Kind of language model."""


@dataclass(frozen=True, eq=False)
class TextEmbeddings:
    """Vectors of texts.

    Attributes
    ----------
    vectors : ndarray of float32, shape (n, d)
        One row per text.
    unknown : tuple of tuples of (start, end)
        Out-of-vocabulary spans per text. A text is dropped if its stimulus overlaps one of them.
    truncated_at : tuple of int or None
        Index of the first character that the model did not read; None if it read the whole text.
    """

    vectors: NDArray[np.float32]
    unknown: tuple[tuple[Span, ...], ...]
    truncated_at: tuple[int | None, ...]

    @classmethod
    def from_vectors(
        cls,
        vectors: NDArray[np.float32],
        unknown: Sequence[tuple[Span, ...]] | None = None,
        truncated_at: Sequence[int | None] | None = None,
    ) -> TextEmbeddings:
        """Make embeddings; by default all texts are in vocabulary and were read to the end.

        Parameters
        ----------
        vectors : ndarray of float32, shape (n, d)
            One row per text.
        unknown : sequence of tuples of (start, end), optional
            Out-of-vocabulary spans per text.
        truncated_at : sequence of int or None, optional
            Where each text was truncated.
        """
        n = len(vectors)
        return cls(
            vectors, tuple(unknown) if unknown else ((),) * n, tuple(truncated_at) if truncated_at else (None,) * n
        )

    def take(self, rows: Sequence[int]) -> TextEmbeddings:
        """Return some of the texts, in the given order."""
        return TextEmbeddings(
            self.vectors[list(rows)],
            tuple(self.unknown[row] for row in rows),
            tuple(self.truncated_at[row] for row in rows),
        )


_PAIR_SEPARATOR = "\x1e"


def join_text_pair(query: str, document: str) -> str:
    """Join a query and a document to the text that a scorer of pairs is given."""
    return f"{query}{_PAIR_SEPARATOR}{document}"


def split_text_pair(text: str) -> tuple[str, str]:
    """Split a text into query and document; without a query, it is empty."""
    query, separator, document = text.partition(_PAIR_SEPARATOR)
    return (query, document) if separator else ("", text)


def split_score(scores: NDArray[np.float64]) -> NDArray[np.float32]:
    """Split scores into two columns of float32, whose sum has 48 bits, so that they are cached like vectors."""
    high = scores.astype(np.float32)
    return np.stack([high, (scores - high).astype(np.float32)], axis=1)


class Encoder(Model, Protocol):
    """Encode texts as vectors.

    Creating an encoder is fast and validates the settings; `prepare` loads the weights. The size of a batch must not
    change a vector beyond rounding.

    Optional attributes:

    folds_case : bool
        If True, words that differ only in case have the same vector.
    representations : tuple of `Representation`
        All vectors that one pass can produce, the default one included. Such an encoder has a method
        ``encode_representations(texts, names) -> dict of str to TextEmbeddings``.
    prefetch(texts), prefetch_representations(texts, names), cancel_prefetch()
        Start a later batch in the background; cancel it.
    scorer : {"texts", "pairs"}
        A scorer instead of an encoder: its vectors are scores, see `split_score`, of texts or of pairs of a query and a
        document, see `join_text_pair`.
    count_tokens(texts) -> ndarray of int
        Number of tokens per text without special tokens; fast, and without loading weights.
    rank_words(words) -> ndarray of float or None
        Frequency rank per word, from 1, NaN if out of vocabulary. None if the vocabulary has another order.
    """

    @property
    def batch_size(self) -> int:
        """Number of texts per call of `encode`."""

    def prepare(self, texts: Sequence[str]) -> None:
        """Load the weights; called once with all texts before the first batch."""

    def encode(self, texts: Sequence[str]) -> TextEmbeddings:
        """Return one vector per text."""


@dataclass(frozen=True)
class Representation:
    """A text vector that a model can produce: a layer and a pooling.

    Attributes
    ----------
    settings : tuple of (name, value)
        Settings that distinguish it from the model's other representations.
    identity : Identity
        Identity of the model opened with these settings; the vectors are cached under it.
    """

    settings: tuple[tuple[str, str], ...]
    identity: Identity

    @property
    def name(self) -> str:
        """Settings as in a model string, such as ``layer=3&pool=mean``."""
        return "&".join(f"{name}={value}" for name, value in self.settings)


def list_representations(encoder: Encoder) -> tuple[Representation, ...]:
    """Return all representations of an encoder; by default a single one with an empty name."""
    return tuple(getattr(encoder, "representations", ())) or (Representation((), encoder.identity),)


def default_representation(encoder: Encoder) -> Representation:
    """Return the representation that ``encode`` produces."""
    for representation in list_representations(encoder):
        if representation.identity == encoder.identity:
            return representation
    raise ModelError(f"model {encoder.identity.name!r}: its representations do not include its default one")


@dataclass(frozen=True, eq=False)
class ContextEmbeddings:
    """Vectors of words in context, one word per text.

    Attributes
    ----------
    vectors : ndarray of float32, shape (n, d)
        One row per word; NaN if it has no vector.
    missing : tuple of str or None
        Why a word has no vector; None if it has one.
    """

    vectors: NDArray[np.float32]
    missing: tuple[str | None, ...]

    @classmethod
    def from_vectors(
        cls, name: str, texts: Sequence[str], vectors: NDArray[np.float32], missing: Sequence[str | None]
    ) -> ContextEmbeddings:
        """Set the vectors of missing words to NaN; raise VectorError if another vector is not finite.

        Parameters
        ----------
        name : str
            Name of the model, for the error message.
        texts : sequence of str
            Contexts.
        vectors : ndarray of float32, shape (n, d)
            Model outputs, changed in place.
        missing : sequence of str or None
            Why a word has no vector.
        """
        absent = np.array([reason is not None for reason in missing], dtype=bool)
        broken = ~np.isfinite(vectors).all(axis=1) & ~absent
        if broken.any():
            # A NaN would look like a missing word from here on.
            raise VectorError(
                f"model {name!r}: the vector of a word in {texts[int(np.argmax(broken))]!r} is not finite"
            )
        vectors[absent] = np.nan
        return cls(vectors, tuple(missing))


def check_spans(texts: Sequence[str], spans: Sequence[Span]) -> None:
    """Raise VectorError unless there is one valid span per text."""
    if len(texts) != len(spans):
        raise VectorError(f"got {len(texts)} texts and {len(spans)} spans; every text needs the span of its word")
    for text, (start, end) in zip(texts, spans, strict=True):
        if not 0 <= start < end <= len(text):
            raise VectorError(f"({start}, {end}) is not a span of characters in the text {text!r}")


class WordEncoder(Model, Protocol):
    """Encode words in context as vectors.

    Batches depend only on the arguments of one call, so that the same call returns the same bits.
    """

    @property
    def batch_size(self) -> int:
        """Number of texts per call of `encode_words`."""

    def prepare(self) -> None:
        """Load the weights."""

    def encode_words(self, texts: Sequence[str], spans: Sequence[Span]) -> ContextEmbeddings:
        """Return one vector per text: that of the word at the given span of characters."""


@dataclass(frozen=True, eq=False)
class BlankScores:
    """Scores of the candidate words for one blank, token by token.

    Attributes
    ----------
    lengths : ndarray of int32, shape (words,)
        Number of tokens per word; 0 if the word is out of vocabulary.
    pieces : ndarray of int32, shape (tokens,)
        Token ids of all words, one word after the other.
    columns : ndarray of float32, shape (tokens, 4)
        Scores per token given the preceding tokens of its word, see `BLANK_COLUMNS`; NaN if not available.
    unknown : int
        Number of unknown tokens outside the blank.
    passes : int
        Number of sequences that the model read.
    """

    lengths: NDArray[np.int32]
    pieces: NDArray[np.int32]
    columns: NDArray[np.float32]
    unknown: int
    passes: int

    @property
    def starts(self) -> NDArray[np.int64]:
        """Index of the first token of each word."""
        return np.cumsum(self.lengths, dtype=np.int64) - self.lengths

    @property
    def words(self) -> list[tuple[int, ...] | None]:
        """Token ids per word; None if the word is out of vocabulary."""
        ends = zip(self.starts.tolist(), self.lengths.tolist(), strict=True)
        return [tuple(self.pieces[start : start + n].tolist()) if n else None for start, n in ends]


class BlankFiller(MaskedOrCausalModel, Protocol):
    """Score candidate words for blanks in texts.

    Creating one is fast. A model that returns only log-probabilities has ``has_output_layer = False``.
    """

    @property
    def has_mask(self) -> bool:
        """True if other words of the text can be masked."""

    def prepare(self, blanks: Sequence[Blank]) -> None:
        """Load the weights."""

    def batches(self, blanks: Sequence[Blank]) -> Sequence[Sequence[int]]:
        """Group the indices of all blanks, cached or not, into batches."""

    def fill(self, blanks: Sequence[Blank]) -> list[BlankScores]:
        """Return the scores of each blank."""


FinishReason = Literal["stop", "length", "filter", "refusal", "other", "failed"]
FINISH_REASONS: tuple[FinishReason, ...] = get_args(FinishReason)  # the cache stores indices: append only


@dataclass(frozen=True)
class Reply:
    """Response of a model to a prompt.

    Attributes
    ----------
    text : str
        The response; empty if only options were scored.
    finish_reason : {"stop", "length", "filter", "refusal", "other", "failed"} or None
        Why the response ended: the model stopped, the token limit was reached, the endpoint filtered the prompt or the
        response, the endpoint flagged a refusal, or every attempt failed. A refusal in plain words is "stop". None if
        not known.
    tokens_in, tokens_out : int or None
        Number of tokens read and written; None if not known.
    log_p : tuple of float
        Log-probabilities of the prompt's options; NaN if not available.
    """

    text: str
    finish_reason: FinishReason | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    log_p: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class TokenLikelihoods:
    """Log-probability of each token of a text.

    A causal model conditions on the preceding tokens, a masked model on all others.

    Attributes
    ----------
    log_p : ndarray of float64, shape (n,)
        NaN if not available, as for a first token without context.
    spans : ndarray of int32, shape (n, 2)
        Start and end character of each token.
    tokens : ndarray of int64, shape (n,)
        Token ids, or hashes of token names if the server returns names only.
    """

    log_p: NDArray[np.float64]
    spans: NDArray[np.int32]
    tokens: NDArray[np.int64]

    def within(self, start: int, end: int) -> float:
        """Return the log-likelihood of the tokens that overlap a span; NaN if one is not known."""
        inside = (self.spans[:, 0] < end) & (self.spans[:, 1] > start)
        return float(self.log_p[inside].sum())


class TextGenerator(Model, Protocol):
    """Reply to prompts."""

    @property
    def option_log_p(self) -> str:
        """Method of scoring options: by all tokens ("continuation"), by the first ("first token"), or not ("")."""

    def prepare(self, prompts: Sequence[Prompt]) -> None:
        """Load the weights."""

    def batches(self, prompts: Sequence[Prompt]) -> Sequence[Sequence[int]]:
        """Group the indices of all prompts into batches."""

    def reply(self, prompts: Sequence[Prompt]) -> list[Reply]:
        """Return one reply per prompt."""


class LikelihoodModel(MaskedOrCausalModel, Protocol):
    """Compute the log-probabilities of texts."""

    def prepare(self, texts: Sequence[LikelihoodRequest]) -> None:
        """Load the weights."""

    def batches(self, texts: Sequence[LikelihoodRequest]) -> Sequence[Sequence[int]]:
        """Group the indices of all texts into batches."""

    def likelihoods(self, texts: Sequence[LikelihoodRequest]) -> list[TokenLikelihoods]:
        """Return the log-probabilities of each text."""


Request_contra = TypeVar("Request_contra", contravariant=True)
Output_co = TypeVar("Output_co", covariant=True)


@runtime_checkable
class StreamingModel(Protocol[Request_contra, Output_co]):
    """A model behind an endpoint that answers many requests concurrently."""

    def stream(
        self, requests: Sequence[Request_contra], token_budget: TokenBudget, *, answered_before: bool = False
    ) -> Iterator[Sequence[tuple[int, Output_co]]]:
        """Yield (request index, output) pairs as responses arrive.

        After a failure, or when the budget is used up, responses to pending requests are yielded before the error is
        raised.

        Parameters
        ----------
        requests : sequence
            Requests to send.
        token_budget : TokenBudget
            Limit for all requests of the run.
        answered_before : bool
            If True, the endpoint has answered earlier requests, so a failure does not mean that it is down.
        """

    def estimate(self, requests: Sequence[Request_contra]) -> tuple[int, int]:
        """Estimate the tokens to be read, and return the largest number to be written."""


SAMPLING_SETTINGS = {
    "temperature": "sampling temperature; 0 selects the most likely token (default 1)",
    "max_tokens": "maximum number of tokens per response (default 512)",
    "system": "system message before every prompt",
    "seed": "random seed of the responses, if the model supports one",
}


@dataclass(frozen=True)
class SamplingOptions:
    """Sampling settings of replies; part of the identity of a model."""

    temperature: float
    max_tokens: int
    system: str | None
    seed: int | None

    @classmethod
    def from_model(cls, model: ModelName, seed: int | None = None) -> SamplingOptions:
        """Read the options from a model string; `seed` is the default seed."""
        return cls(
            temperature=read_number_setting(model, "temperature", 1.0, 0, 100, whole=False),
            max_tokens=int(read_number_setting(model, "max_tokens", 512, 1, 1_000_000)),
            system=model.settings.get("system"),
            seed=int(read_number_setting(model, "seed", 0, 0, 2**31 - 1)) if "seed" in model.settings else seed,
        )

    @property
    def settings(self) -> dict[str, str]:
        """All options as settings of an identity."""
        optional = {"system": self.system, "seed": self.seed}
        always = {"temperature": f"{self.temperature:g}", "max_tokens": str(self.max_tokens)}
        return always | {name: str(value) for name, value in optional.items() if value is not None}

    def derive_seed(self, key: str) -> int | None:
        """Return a seed per request, so that repeated prompts are sampled independently."""
        if self.seed is None:
            return None
        digest = hashlib.blake2b(f"{self.seed} {key}".encode(), digest_size=4).digest()
        return int.from_bytes(digest, "big") >> 1


_APPLIES_TO = {
    "word": "words in context (for the vectors of texts use pool=)",
    "pool": "the vectors of whole texts (for words in context use word=)",
    "layer": "vectors, not to predictions",
    "join": "vectors, not to predictions",
    **dict.fromkeys(SAMPLING_SETTINGS, "generated text"),
}


def reject_settings(model: ModelName, *names: str) -> None:
    """Raise UsageError if a model string has one of the named settings, because they do not apply here."""
    for name in names:
        if name in model.settings:
            raise UsageError(f"{model.label}: {name}= applies to {_APPLIES_TO[name]}; leave it out")
