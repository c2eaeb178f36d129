"""Layer and pooling of a text vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from biassay.errors import ModelError, UsageError
from biassay.models.backend import ModelName
from biassay.models.base import Encoder, Identity

if TYPE_CHECKING:
    import torch


__all__ = [
    "POOLS",
    "PoolName",
    "Representation",
    "check_text_settings",
    "check_word_settings",
    "default_representation",
    "list_representations",
    "pool",
]


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


PoolName = Literal["cls", "mean", "max", "first", "last"]
POOLS: tuple[PoolName, ...] = get_args(PoolName)


def check_text_settings(model: ModelName) -> None:
    """Raise UsageError if the model string has settings for words in context."""
    if "word" in model.settings:
        raise UsageError(f"{model.label}: word= applies to words in context; for the vectors of whole texts use pool=")


def check_word_settings(model: ModelName) -> None:
    """Raise UsageError if the model string has settings for whole texts."""
    if "pool" in model.settings:
        raise UsageError(
            f"{model.label}: pool= applies to the vectors of whole texts; for words in context use word=last, "
            "word=first or word=mean"
        )


def pool(name: PoolName, states: torch.Tensor, mask: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """Pool token states into one vector per text.

    Parameters
    ----------
    name : {"cls", "mean", "max", "first", "last"}
        "mean" and "max" pool all tokens, as sentence encoders were trained; "first" and "last" select a token of the
        text itself; "cls" selects the special token at the start.
    states : Tensor, shape (texts, tokens, d)
        Token states.
    mask : Tensor, shape (texts, tokens)
        1 for tokens, 0 for padding.
    words : Tensor, shape (texts, tokens)
        1 for tokens of the text, 0 for special tokens and padding.

    Returns
    -------
    Tensor, shape (texts, d)
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
