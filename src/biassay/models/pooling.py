"""From the states of a text's tokens to one vector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from biassay.errors import UsageError
from biassay.models.family import ModelName

if TYPE_CHECKING:
    import torch

__all__ = ["POOLS", "PoolName", "check_texts", "check_words", "pool"]

PoolName = Literal["cls", "mean", "max", "first", "last"]
POOLS: tuple[PoolName, ...] = get_args(PoolName)


def check_texts(model: ModelName) -> None:
    """Refuse settings for vectors of words."""
    if "word" in model.settings:
        raise UsageError(
            f"model {model.head!r}: word= is for vectors of words in their contexts; "
            "here every text gets one vector, which pool= chooses"
        )


def check_words(model: ModelName) -> None:
    """Refuse settings for vectors of texts."""
    if "pool" in model.settings:
        raise UsageError(
            f"model {model.head!r}: the vector is that of the word, not of the text, so there is nothing to pool; "
            "leave out pool=, or choose among the parts of the word with word=last, word=first or word=mean"
        )


def pool(name: PoolName, states: torch.Tensor, mask: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """Pool states (texts, tokens, d) to (texts, d).

    ``mask`` (texts, tokens) is 1 for tokens and 0 for padding; ``words`` is 1 for tokens of the text itself and 0 for
    special ones too. ``mean`` and ``max`` go over all tokens, as sentence encoders were trained; ``first`` and ``last``
    take a token of the text itself; ``cls`` takes the special token in front.
    """
    import torch

    rows = torch.arange(len(states), device=states.device)
    if name == "cls":
        return states[:, 0]
    if name == "first":
        return states[rows, words.argmax(dim=1)]
    if name == "last":
        return states[rows, words.shape[1] - 1 - words.flip(dims=[1]).argmax(dim=1)]
    covered = mask.unsqueeze(-1).bool()
    if name == "max":
        return states.masked_fill(~covered, -torch.inf).amax(dim=1)
    return (states * covered).sum(dim=1, dtype=torch.float32) / mask.sum(dim=1, keepdim=True)
