"""Linear probes of concepts before and after erasure, and rank correlations of the same word pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from biassay.stats.probe import compare_probes, probe_classes
from biassay.studies.debiasing.measure import _compare_ranks

from .claim import Claim, Coverage, Experiment, Level, Line, up_to

__all__ = ["CLAIMS", "lines"]

_STUDY, _UNIT = "debiasing", "held-out word"
_ASSUMES = "Held-out words are a sample of their classes."
_RESULTS = "debiasing.results"

CLAIMS = (
    Claim(
        "probe interval",
        _STUDY,
        "accuracy of a probe",
        tuple(f"{_RESULTS}.{when}_ci_{end}" for when in ("before", "after") for end in ("low", "high")),
        "The range of the accuracy of such a probe over words of these kinds.",
        "The mean accuracy over samples of words.",
        _UNIT,
        _ASSUMES,
        "Mostly wider than necessary.",
    ),
    Claim(
        "probe p",
        _STUDY,
        "p of a probe",
        tuple(f"{_RESULTS}.{when}_p_value" for when in ("before", "after")),
        "A linear probe recovers the class of words.",
        "Vectors are the same in all classes.",
        _UNIT,
        _ASSUMES,
    ),
    Claim(
        "probe change",
        _STUDY,
        "change of the accuracy of a probe",
        (f"{_RESULTS}.ci_low", f"{_RESULTS}.ci_high"),
        "The range of the change of the accuracy over words of these kinds.",
        "The mean change over samples of words.",
        _UNIT,
        _ASSUMES,
        "Mostly wider than necessary; slightly too narrow if neither probe finds much in many dimensions.",
    ),
    Claim(
        "probe change p",
        _STUDY,
        "p of a change of the accuracy of a probe",
        (f"{_RESULTS}.p_value",),
        "The accuracy of the probe changes.",
        "Both models lack the classes.",
        _UNIT,
        _ASSUMES,
    ),
    Claim(
        "rank change",
        _STUDY,
        "change of a rank correlation",
        (),
        "The range of the change of the rank correlation with human similarity over word pairs of this kind.",
        "The mean change over samples of word pairs.",
        "word pair",
        "Word pairs are a sample of their kind.",
    ),
)


@dataclass(frozen=True)
class _World:
    """Words per class, dimensions, distance of the classes, and the share of it that erasure leaves."""

    n: int
    d: int
    distance: float
    left: float = 0.4

    def __str__(self) -> str:
        return f"{self.n} words per class, {self.d} dimensions, distance {self.distance:g} SD, {self.left:.0%} left"


_WORLDS = (
    _World(48, 100, 0.0),
    _World(48, 100, 0.5),
    _World(48, 100, 2.0),
    _World(48, 100, 4.0),
    _World(16, 50, 2.0),
    _World(150, 50, 1.5),
)
_PAIRS = 59


def _draw(rng: np.random.Generator, world: _World) -> Mapping[str, Any]:
    """Draw words of two classes, shrink the directions of the classes, and probe both."""
    labels = np.repeat([0, 1], world.n)
    vectors = rng.normal(size=(2 * world.n, world.d))
    vectors[np.arange(len(labels)), labels] += world.distance
    erased = vectors.copy()
    erased[:, :2] *= world.left
    seed = int(rng.integers(2**32))
    old, new = (probe_classes(one, labels, n_permutations=200, rng=seed) for one in (vectors, erased))
    change = compare_probes(old, new)
    return {
        "low": old.ci_low,
        "high": old.ci_high,
        "accuracy": old.accuracy,
        "p": old.p_value,
        "change low": change.ci_low,
        "change high": change.ci_high,
        "change": change.value,
        "change p": change.p_value,
    }


def _draw_ranks(rng: np.random.Generator, noise: float) -> Mapping[str, Any]:
    """Draw similarities of word pairs, and cosines of a model before and after erasure."""
    human = rng.normal(size=_PAIRS)
    old = human + 0.7 * rng.normal(size=_PAIRS)
    change = _compare_ranks(human, old, old + noise * rng.normal(size=_PAIRS), rng)[0]
    return {"low": change.ci_low, "high": change.ci_high, "change": change.effect_size}


def lines() -> list[Line]:
    """List all rows of probes."""
    interval, p, change, change_p, ranks = (claim.name for claim in CLAIMS)
    rows = []
    for world in _WORLDS:
        drawn = Experiment(f"probe {world}", str(world), partial(_draw, world=world), 400)
        rows.append(Line(interval, drawn, Coverage("low", "high", "accuracy", (0.93, 1.0))))
        rows.append(Line(change, drawn, Coverage("change low", "change high", "change", (0.9, 1.0))))
        if not world.distance:
            rows.append(Line(p, drawn, Level("p", up_to(0.065))))
            rows.append(Line(change_p, drawn, Level("change p", up_to(0.065))))
    for noise in (0.1, 0.5):
        text = f"{_PAIRS} word pairs, erasure adds noise of {noise:g} SD"
        drawn = Experiment(f"ranks {noise:g}", text, partial(_draw_ranks, noise=noise), 400)
        rows.append(Line(ranks, drawn, Coverage("low", "high", "change", (0.9, 0.99))))
    return rows
