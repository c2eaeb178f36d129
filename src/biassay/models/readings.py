"""Readings: what a model can give of a text besides its own vectors, from one pass."""

from __future__ import annotations

from dataclasses import dataclass

from biassay.errors import ModelError
from biassay.models.base import Encoder, Identity

__all__ = ["Reading", "own_reading", "readings_of"]


@dataclass(frozen=True)
class Reading:
    """One of the vectors that a model can give of a text: that of a layer, by a way of pooling.

    Attributes
    ----------
    settings : tuple of (name, value)
        What tells it from the other readings of its model.
    identity : Identity
        Of the model opened with these settings, which gives the same vectors. They are kept under it.
    """

    settings: tuple[tuple[str, str], ...]
    identity: Identity

    @property
    def name(self) -> str:
        """The settings as a model string has them, ``layer=3&pool=mean``."""
        return "&".join(f"{name}={value}" for name, value in self.settings)


def readings_of(encoder: Encoder) -> tuple[Reading, ...]:
    """All readings of an encoder; one that names none has its own, whose name is empty."""
    return tuple(getattr(encoder, "readings", ())) or (Reading((), encoder.identity),)


def own_reading(encoder: Encoder) -> Reading:
    """The reading that ``encode`` gives."""
    for reading in readings_of(encoder):
        if reading.identity == encoder.identity:
            return reading
    raise ModelError(f"model {encoder.identity.name!r}: its own vectors are not among its readings")
