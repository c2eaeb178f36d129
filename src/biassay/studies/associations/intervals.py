"""What follows from the associations of single words, which a result keeps: intervals, contributions, differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from biassay.stats.effect_interval import Difference, difference_interval
from biassay.studies.associations.records import Result

__all__ = ["Contributions", "contributions", "paired_difference"]


@dataclass(frozen=True)
class Contributions:
    """How much every target adds to the effect size by word, their sum; and how much closer every attribute lies to X
    than to Y, in the same unit. Attributes have no exact share: words have unequal numbers of texts.
    """

    effect_size: float
    targets: Mapping[str, Mapping[str, float]]
    attributes: Mapping[str, Mapping[str, float]]


def contributions(result: Result) -> Contributions | None:
    """What every word adds to the effect size by word; None where words are not known or it is not defined.

    The effect size is (mean over X less mean over Y) / spread. An association counts from the mean of all targets, so
    that a word in the middle adds nothing; a word of Y adds by its association with B.
    """
    roles = {role: result.associations.get(role, {}) for role in ("X", "Y", "A", "B")}
    if not all(roles.values()) or result.effect_size_by_word is None:
        return None
    scores = np.array([*roles["X"].values(), *roles["Y"].values()])
    spread = float(scores.std(ddof=1)) if len(scores) > 1 and np.isfinite(scores).all() else 0.0
    if not spread > 1e-12 * float(np.abs(scores).max()):
        return None
    centre = float(scores.mean())

    def shares(role: str, sign: int) -> dict[str, float]:
        words = roles[role]
        return {word: sign * (score - centre) / (len(words) * spread) for word, score in words.items()}

    return Contributions(
        effect_size=float(np.mean(list(roles["X"].values())) - np.mean(list(roles["Y"].values()))) / spread,
        targets={"X": shares("X", 1), "Y": shares("Y", -1)},
        attributes={role: {word: score / spread for word, score in roles[role].items()} for role in ("A", "B")},
    )


def paired_difference(first: Result, second: Result, *, confidence: float = 0.95) -> tuple[Difference, int, int] | None:
    """The effect size by word of ``second`` less that of ``first``, over the target words that both know.

    Also the numbers of words of X and of Y. None where one of them has no words, or they share none.
    """
    shared = {
        role: [w for w in first.associations.get(role, {}) if w in second.associations.get(role, {})]
        for role in ("X", "Y")
    }
    if not shared["X"] or not shared["Y"] or None in (first.effect_size_by_word, second.effect_size_by_word):
        return None
    numbers = [
        [result.associations[role][w] for w in shared[role]] for result in (first, second) for role in ("X", "Y")
    ]
    if not np.isfinite(np.concatenate(numbers)).all():
        return None
    return difference_interval(*numbers, confidence=confidence), len(shared["X"]), len(shared["Y"])
