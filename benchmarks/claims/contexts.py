"""CEAT: association tests over contexts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

import biassay
from biassay.stats.power import Design

from .associations import components
from .claim import HEADLINE, INTERVAL, Claim, Coverage, Experiment, Level, Line
from .worlds import context_sets, crossed_table

__all__ = ["CLAIMS", "lines"]

_SIZES = (8, 8, 8, 8)
_CONTEXTS, _SAMPLES, _REPLICATES = 20, 300, 200

CLAIMS = (
    Claim(
        "pooled p",
        "associations",
        "p by text, over contexts (the paper's, of the pooled effect)",
        ("associations.results.p_value",),
        "The paper's p-value: the mean over draws of contexts of these very words is not 0.",
        "Draws of contexts are independent studies.",
        "draw of contexts",
        "Draws are independent; they share their words and their contexts.",
        "The more draws, the smaller: it says nothing about other words, and not even about other contexts.",
    ),
    Claim(
        "pooled interval",
        "associations",
        "pooled, low and high",
        ("associations.results.interval_low", "associations.results.interval_high"),
        "Where the pooled effect (CES) lies, all words drawn anew.",
        "The expected pooled effect of a test of these sizes.",
        "word, on both sides",
        "Words are a sample of their kind.",
    ),
    Claim(
        "prediction interval",
        "associations",
        "prediction, low and high",
        ("associations.results.prediction_low", "associations.results.prediction_high"),
        "Where 95% of effects lie over draws of contexts, for these words.",
        "Effects of draws of contexts.",
        "draw of contexts",
        "Effects of draws are normal.",
        "Says nothing about other words.",
    ),
)


def _draw(rng: np.random.Generator, D: float) -> Mapping[str, Any]:
    parts = components(_SIZES)
    table = crossed_table(rng, _SIZES, parts, D)
    X, Y, A, B = context_sets(rng, table, 8, 8, _CONTEXTS, 2.0 * float(np.sqrt(parts.residual)))
    found = biassay.ceat(X, Y, A, B, n_samples=_SAMPLES, replicates=_REPLICATES, rng=rng, threads=1)
    assert found.interval is not None
    low, high = found.prediction_interval
    return {
        "pooled": found.p_value,
        "by word": found.p_value_by_word,
        "p": found.crossed.p_value,
        "CES": found.effect_size,
        "low": found.interval[0],
        "high": found.interval[1],
        "d": found.estimate.effect_size,
        "d_low": found.estimate.low,
        "d_high": found.estimate.high,
        "prediction low": low - found.samples,
        "prediction high": high - found.samples,
    }


def lines() -> list[Line]:
    about = f"CEAT, 8 words a set in {_CONTEXTS} contexts each, {_SAMPLES} draws, all words drawn anew"
    null = Experiment("contexts", about, partial(_draw, D=0.0), 600)
    D = Design(components(_SIZES), _SIZES).D_of(1.0)
    effect = Experiment("contexts 1", about, partial(_draw, D=D), 400)
    return [
        Line("crossed p", null, Level("p", HEADLINE)),
        Line("p by word", null, Level("by word"), "not its null: attributes are drawn anew"),
        Line("pooled p", null, Level("pooled"), "not its null: words are drawn anew"),
        *(
            line
            for world, note in ((null, "no effect"), (effect, "d about 1"))
            for line in (
                Line("d interval", world, Coverage("d_low", "d_high", "d", INTERVAL), note),
                Line("pooled interval", world, Coverage("low", "high", "CES", INTERVAL), note),
                Line("prediction interval", world, Coverage("prediction low", "prediction high", 0.0, INTERVAL), note),
            )
        ),
    ]
