"""Which templates agree best with people on the pilot groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.errors import UsageError
from biassay.stats.kendall import kendall_rows

__all__ = ["Choice", "choose_templates"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Choice:
    """The templates chosen, by name and place, their tau; that of every template alone; those that lack a score."""

    names: tuple[str, ...]
    places: tuple[int, ...]
    tau: float
    single_tau: Floats
    skipped: tuple[str, ...]


def choose_templates(scores: ArrayLike, human: ArrayLike, names: Sequence[str], at_most: int = 2) -> Choice:
    """The template, or the two whose mean score, agree best with people by Kendall's tau over all cells.

    ``scores`` (templates, groups, pairs) and ``human`` (groups, pairs) are those of the pilot groups. Two are taken
    only if they are strictly better than the best one alone; of equals the earlier. A cell that people or all templates
    lack is left out; a template that lacks a score in any other cell is skipped, for its tau would be over other cells.
    The mean is of the scores as they are: a template with larger scores weighs more.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(human, dtype=np.float64)
    if x.ndim != 3 or x.shape[1:] != y.shape or len(names) != len(x):
        raise UsageError(f"{len(names)} templates on cells {y.shape} need scores of that shape, got {x.shape}")
    if at_most not in (1, 2):
        raise UsageError(f"at most one or two templates can be chosen, got {at_most}")
    present = np.isfinite(x)
    cells = ~np.isnan(y) & present.any(axis=0)
    usable = [t for t in range(len(x)) if present[t][cells].all()]
    rows, target = x[:, cells], y[cells]
    single = np.full(len(x), np.nan)
    single[usable] = kendall_rows(rows[usable], target)
    if np.isnan(single).all():
        raise UsageError("no template has a score for every cell of the pilot, and scores that differ")
    places, tau = _best([(t,) for t in usable], single[usable])
    pairs = list(combinations(usable, 2)) if at_most == 2 else []
    if pairs:
        two, of_two = _best(pairs, kendall_rows(rows[np.array(pairs)].mean(axis=1), target))
        places, tau = (two, of_two) if of_two > tau else (places, tau)
    skipped = tuple(name for t, name in enumerate(names) if t not in usable)
    return Choice(tuple(names[t] for t in places), places, tau, single, skipped)


def _best(places: Sequence[tuple[int, ...]], taus: Floats) -> tuple[tuple[int, ...], float]:
    """The first of those with the largest tau; minus infinity if none has one."""
    at = int(np.argmax(np.where(np.isnan(taus), -np.inf, taus)))
    return places[at], float(np.where(np.isnan(taus), -np.inf, taus)[at])
