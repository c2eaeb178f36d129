"""Which groups a participant is asked about: at random, and so that in the end every group has what it needs."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Drawn", "draw_groups"]


@dataclass(frozen=True)
class Drawn:
    """``groups`` in the order in which they are shown, ``counted`` those of them whose annotations are wanted.

    At the very end fewer groups may lack annotations than a participant rates; the others are then asked as usual, and
    their annotations are kept without being counted. ``repeated`` is the place of the group that comes again.
    """

    groups: tuple[str, ...]
    counted: frozenset[str]
    repeated: int


def draw_groups(groups: Sequence[str], lacking: Mapping[str, int], number: int, rng: random.Random) -> Drawn | None:
    """Draw ``number`` groups for a participant; None if no group lacks annotations.

    ``lacking`` says how many annotations nobody has given or is about to give. So many participants more are needed as
    all of them together fill, ``number`` at a time: a group that lacks as many must be among those drawn, or it could
    not be filled without others going beyond. The rest is drawn at random.
    """
    open_groups = [group for group in groups if lacking.get(group, 0) > 0]
    if not open_groups:
        return None
    needed = -(-sum(lacking[group] for group in open_groups) // number)
    shuffled = rng.sample(open_groups, len(open_groups))
    urgent = [group for group in shuffled if lacking[group] >= needed]
    chosen = (urgent + [group for group in shuffled if group not in urgent])[:number]
    rest = [group for group in groups if group not in chosen]
    asked = chosen + rng.sample(rest, min(number - len(chosen), len(rest)))
    rng.shuffle(asked)
    return Drawn(tuple(asked), frozenset(chosen), rng.randrange(len(asked)))
