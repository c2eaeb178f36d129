"""Which layers and poolings of a model are read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from biassay.answers.answers import Abilities

__all__ = ["chosen_readings"]

_LAYERS = 8


def chosen_readings(asked: Sequence[str], abilities: Abilities) -> tuple[str, ...]:
    """The model's own first; by default up to 8 layers with its own pooling, and every pooling of its own layer."""
    own = abilities.own_reading
    if asked:
        return tuple(dict.fromkeys((own, *asked)))
    settings = {reading.name: dict(reading.settings) for reading in abilities.readings}
    of = settings[own]
    layers = [name for name, found in settings.items() if _differ(found, of) <= {"layer", "join"} and name != own]
    others = [name for name, found in settings.items() if "layer" not in _differ(found, of) and name != own]
    if len(layers) >= _LAYERS:
        layers = [layers[i] for i in np.linspace(0, len(layers) - 1, _LAYERS - 1).round().astype(int).tolist()]
    return tuple(dict.fromkeys((own, *layers, *others)))


def _differ(one: dict[str, str], other: dict[str, str]) -> set[str]:
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
