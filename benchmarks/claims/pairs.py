"""Stereotypes of paired groups and their components."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from biassay.stats.intersections import PairedGroups, dominance, emergence, precision_recall

from .claim import Claim, Coverage, Experiment, Level, Line, Share, up_to
from .worlds import Tails, made

__all__ = ["CLAIMS", "lines"]

CLAIMS = (
    Claim(
        "dominance",
        "stereotypes",
        "95% of dominance",
        ("stereotypes.dominance.ci_low", "stereotypes.dominance.ci_high"),
        "The range of the difference in mean tau between two domains, over other groups of both.",
        "Expected difference.",
        "group of either domain",
        "Groups of both domains are a sample.",
        "Conservative with fewer than five groups per domain.",
    ),
    Claim(
        "emergence p",
        "stereotypes",
        "p and q of traits that emerge",
        ("stereotypes.emergent.p_value", "stereotypes.emergent.p_adjusted"),
        "A rank among random pairs of the same domains; not a test.",
        "The score of a pair is unrelated to the groups in it.",
        "pair",
        "Conservative if pairs resemble their groups.",
        "With one score per pair and trait, no single cell can be significant.",
    ),
    Claim(
        "additive p",
        "stereotypes",
        "p, additive",
        ("stereotypes.emergent.additive_p_value",),
        "A rank among the residuals of pairs and traits after both groups' parts are subtracted; not a test.",
        "The score is the sum of both groups' contributions and noise.",
        "pair and trait",
        "Noise is exchangeable, of any shape.",
        "A share x of all cells has a p-value up to x, whatever the scores.",
    ),
    Claim(
        "rated p",
        "stereotypes",
        "p of rated pairs",
        ("stereotypes.rated.p_value",),
        "Emergent traits match people's ratings more often than guesses at the same rate, if cells are independent.",
        "Emergent cells are a random sample.",
        "cell",
        "Cells are independent, although those of one group are not.",
        "Rejects too often if cells of a group are correlated.",
    ),
)


def _paired(
    rng: np.random.Generator, each: int, noise: Tails = "normal", other: int | None = None, skewed: bool = False
) -> PairedGroups:
    """Draw groups of two domains and all pairs: a weighted sum of both components, and noise."""
    sizes = (each, each if other is None else other)
    single = rng.normal(size=(sum(sizes), 16))
    weight = np.exp(0.4 * rng.normal(size=sum(sizes)))[:, None]
    if skewed:
        weight = rng.exponential(size=(sum(sizes), 1))
    places = np.meshgrid(np.arange(each), each + np.arange(sizes[1]), indexing="ij")
    first, second = (side.ravel() for side in places)
    scores = weight[first] * single[first] + weight[second] * single[second] + 0.5 * made(rng, noise, len(first), 16)
    return PairedGroups(scores, single, first, second, np.full(len(first), -1), np.repeat([0, 1], sizes))


def _dominance(rng: np.random.Generator, each: int, other: int, skewed: bool) -> Mapping[str, Any]:
    found = dominance(_paired(rng, each, other=other, skewed=skewed))
    low, high = found.interval[0]
    return {"difference": found.difference[0], "low": low, "high": high, "claimed": found.dominates.any()}


def _emerging(rng: np.random.Generator) -> Mapping[str, Any]:
    """Draw pairs unrelated to their components, and pairs that are their sum with heavy-tailed noise."""
    paired = _paired(rng, 7)
    random = PairedGroups(
        rng.normal(size=paired.scores.shape),
        paired.components,
        paired.first,
        paired.second,
        paired.reverse,
        paired.domains,
    )
    ranks = emergence(random).increase
    added = emergence(_paired(rng, 7, "t3")).increase
    one = added.p_additive[0]
    return {"p": ranks.p_value, "q": (ranks.adjusted <= 0.05).any(), "additive": one}


def _guessed(rng: np.random.Generator, together: bool) -> Mapping[str, Any]:
    """Draw guesses for twelve groups of eight cells; if `together`, cells of a group are correlated."""
    sides = [rng.normal(size=(12, 8)) + (rng.normal(size=(12, 1)) if together else 0.0) for _ in range(2)]
    return {"p": precision_recall(sides[0] > 0.3, sides[1] > 0.5).p_value}


def lines() -> list[Line]:
    domains = [
        Experiment(
            f"domains {n} {m}{' skewed' if skewed else ''}",
            f"two domains of {n} and {m} groups, all pairs{', weights of groups skewed' if skewed else ''}",
            partial(_dominance, each=n, other=m, skewed=skewed),
            400,
        )
        for n, m, skewed in ((2, 2, False), (3, 10, True), (5, 5, False), (5, 5, True), (10, 10, False))
    ]
    emerging = Experiment("emerging", "two domains of 7 groups, 16 traits", _emerging, 400)
    independent, together = (
        Experiment(
            f"guesses {how}", f"12 groups, 8 cells each, {how}", partial(_guessed, together=how == "together"), 2000
        )
        for how in ("independent", "together")
    )
    return [
        *(Line("dominance", world, Coverage("low", "high", "difference", (0.93, 1.0))) for world in domains),
        *(
            Line("dominance", world, Share("claimed", 0.065), "domains alike: share called dominant")
            for world in domains
        ),
        Line("emergence p", emerging, Level("p", up_to(0.055))),
        Line("emergence p", emerging, Share("q", 0.05), "q: runs with a false finding"),
        Line("additive p", emerging, Level("additive", up_to(0.06)), "one pair, t3 noise"),
        Line("rated p", independent, Level("p", up_to(0.06))),
        Line("rated p", together, Level("p"), "not its null: cells of a group go together"),
    ]
