"""What a model that answers is: replies to prompts, and likelihoods of texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from biassay.models.base import Identity
from biassay.models.spending import Spending
from biassay.texts.requests import Likelihood, Prompt

__all__ = ["ENDED", "Answerer", "Ended", "LikelihoodModel", "Reply", "Streams", "TokenLikelihoods"]

Ended = Literal["stop", "length", "filter", "refusal", "other", "failed"]
ENDED: tuple[Ended, ...] = get_args(Ended)  # the store keeps places in it: add at the end only


@dataclass(frozen=True)
class Reply:
    """What a model answered to a prompt.

    Attributes
    ----------
    text : str
        Empty where it said nothing, and where it was asked for the likelihoods of options only.
    ended : {"stop", "length", "filter", "refusal", "other", "failed"} or None
        Why it ended: the model was done, it had no more tokens, the endpoint filtered the prompt or the response, the
        endpoint marks it as a refusal, or the endpoint failed on this prompt at every attempt. A refusal in plain words
        is "stop": only its text shows it. None: not known.
    tokens_in, tokens_out : int or None
        How many tokens were read and written. None: not known.
    log_p : tuple of float
        Log-probabilities of the prompt's options; NaN: the model does not say.
    """

    text: str
    ended: Ended | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    log_p: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class TokenLikelihoods:
    """How likely every token of a text is: to a causal model behind those before it, to a masked one among all others.

    Attributes
    ----------
    log_p : (n,) float64
        NaN: the model does not say; so it is with the first token where nothing stands before it.
    spans : (n, 2) int32
        The characters of the text that every token stands for, first and behind the last.
    tokens : (n,) int64
        What token it is: its number in the vocabulary, or, from a server that gives names only, a hash of its name.
    """

    log_p: NDArray[np.float64]
    spans: NDArray[np.int32]
    tokens: NDArray[np.int64]

    def within(self, start: int, end: int) -> float:
        """The log-likelihood of the tokens that stand for characters of a span; NaN where one is not known."""
        inside = (self.spans[:, 0] < end) & (self.spans[:, 1] > start)
        return float(self.log_p[inside].sum())


class Answerer(Protocol):
    """Answers prompts.

    ``prepare`` is where weights are loaded; ``batches`` plans what is asked together, by the places of all prompts.

    Attributes
    ----------
    option_log_p : {"continuation", "first token", ""}
        How it tells the likelihood of an option: of all its tokens; only where it is one token and among the likeliest
        ones; or not at all.
    """

    @property
    def identity(self) -> Identity: ...

    @property
    def option_log_p(self) -> str: ...

    def prepare(self, prompts: Sequence[Prompt]) -> None: ...

    def batches(self, prompts: Sequence[Prompt]) -> Sequence[Sequence[int]]: ...

    def reply(self, prompts: Sequence[Prompt]) -> list[Reply]: ...


class LikelihoodModel(Protocol):
    """Gives likelihoods of texts; ``kind`` says of which sort."""

    @property
    def identity(self) -> Identity: ...

    @property
    def kind(self) -> Literal["masked", "causal"]: ...

    def prepare(self, texts: Sequence[Likelihood]) -> None: ...

    def batches(self, texts: Sequence[Likelihood]) -> Sequence[Sequence[int]]: ...

    def likelihoods(self, texts: Sequence[Likelihood]) -> list[TokenLikelihoods]: ...


Request_contra = TypeVar("Request_contra", contravariant=True)
Answer_co = TypeVar("Answer_co", covariant=True)


@runtime_checkable
class Streams(Protocol[Request_contra, Answer_co]):
    """A model behind an endpoint, which many requests reach at once: it gives answers as they come.

    Each has the place of its request. What is under way when one fails, or when the budget is used up, is waited for
    and given before the error. If ``answered_before``, the endpoint has answered other requests of the run, so that a
    failure of the first one does not mean that the endpoint is down.
    """

    def stream(
        self, requests: Sequence[Request_contra], spending: Spending, *, answered_before: bool = False
    ) -> Iterator[Sequence[tuple[int, Answer_co]]]: ...

    def estimate(self, requests: Sequence[Request_contra]) -> tuple[int, int]:
        """About how many tokens would be read, and how many would be written at most."""
        ...
