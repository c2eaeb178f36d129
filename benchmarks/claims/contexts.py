"""CEAT: association tests over contexts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from math import nan
from typing import Any, Literal

import numpy as np

import biassay
from biassay.stats.power import CrossedDesign

from .associations import components
from .claim import HEADLINE, INTERVAL, Claim, Coverage, Experiment, Level, Line
from .worlds import SMALL, Tails, context_sets, crossed_table, made, vectors

__all__ = ["CLAIMS", "lines"]

_SIZES = (8, 8, 8, 8)
_CONTEXTS, _SAMPLES = 20, 300
_NEW, _MOST = 100, 0.8

CLAIMS = (
    Claim(
        "pooled p",
        "associations",
        "sentence-level p, over contexts (the paper's, of the pooled effect)",
        ("associations.results.pooled_p_value",),
        "The paper's p-value: the mean over samples of contexts of these words is not 0.",
        "Samples of contexts are independent studies.",
        "sample of contexts",
        "Samples are independent, although they share words and contexts.",
        "Shrinks with the number of samples: it says nothing about other words or other contexts.",
    ),
    Claim(
        "prediction interval",
        "associations",
        "new contexts, low and high",
        ("associations.results.new_contexts_low", "associations.results.new_contexts_high"),
        "The range of 95% of effects of these words if every word is read in one new context, from a new document.",
        "Effects of samples of contexts that were not measured, each from a document of its own.",
        "document",
        "Documents are independent; those that supply many contexts are like the others.",
        "Says nothing about other words. Too wide if one document supplies most contexts; there is no "
        "interval if it supplies all.",
    ),
)

Documents = Literal["own", "one has most", "two"]


def _draw(rng: np.random.Generator, D: float) -> Mapping[str, Any]:
    parts = components(_SIZES)
    table = crossed_table(rng, _SIZES, parts, D)
    X, Y, A, B = context_sets(rng, table, 8, 8, _CONTEXTS, 2.0 * float(np.sqrt(parts.residual)))
    found = biassay.ceat(X, Y, A, B, n_samples=_SAMPLES, rng=rng, threads=1)
    return {
        "pooled": found.p_value,
        "by word": found.p_value_by_word,
        "p": found.crossed.p_value,
        "d": found.estimate.effect_size,
        "d_low": found.estimate.low,
        "d_high": found.estimate.high,
    }


def _new_contexts(
    rng: np.random.Generator, contexts: int, documents: Documents = "own", tails: Tails = "normal"
) -> Mapping[str, Any]:
    """Draw words with the contexts that are measured, and new contexts of the same words."""
    parts = components(_SIZES)
    words = vectors(crossed_table(rng, _SIZES, parts, CrossedDesign(parts, _SIZES).D_from_d(1.0)), 8, 8)
    noise = float(np.sqrt(2.0 * parts.residual)) * SMALL
    own, new = _document_numbers(contexts, documents), _document_numbers(_NEW, "own")
    found = biassay.ceat(
        *_in_documents(rng, words, own, noise, tails), n_samples=_SAMPLES, documents=own, rng=rng, threads=1
    )
    each = np.repeat(np.arange(_NEW)[:, None], sum(_SIZES), axis=1)
    others = biassay.ceat(*_in_documents(rng, words, new, noise, tails), draws=each, threads=1).samples
    low, high = found.prediction_interval or (nan, nan)
    return {"low": low - others, "high": high - others}


def _document_numbers(contexts: int, documents: Documents) -> list[list[list[int]]]:
    """Number the document of every context, by set and word."""
    number = itertools.count(2)
    most = round(_MOST * contexts)
    shared = {"own": [], "one has most": [0] * most, "two": [i % 2 for i in range(contexts)]}[documents]
    return [[[*shared, *itertools.islice(number, contexts - len(shared))] for _ in range(size)] for size in _SIZES]


def _in_documents(
    rng: np.random.Generator, words: Sequence[Any], documents: Sequence[Any], noise: float, tails: Tails
) -> list[list[Any]]:
    """Draw contexts with independent noise, plus document noise that all words of a document share."""
    d = words[0].shape[1]
    shared: dict[int, Any] = {}
    for number in (number for of_set in documents for own in of_set for number in own):
        if number not in shared:
            shared[number] = made(rng, tails, d)
    return [
        [
            word + noise * (made(rng, tails, len(own), d) + np.stack([shared[number] for number in own]))
            for word, own in zip(of_set, numbers, strict=True)
        ]
        for of_set, numbers in zip(words, documents, strict=True)
    ]


def lines() -> list[Line]:
    about = f"CEAT, 8 words per set in {_CONTEXTS} contexts each, {_SAMPLES} draws, all words redrawn"
    null = Experiment("contexts", about, partial(_draw, D=0.0), 600)
    D = CrossedDesign(components(_SIZES), _SIZES).D_from_d(1.0)
    effect = Experiment("contexts 1", about, partial(_draw, D=D), 400)
    return [
        Line("crossed p", null, Level("p", HEADLINE)),
        Line("p by word", null, Level("by word"), "not its null: attributes are redrawn"),
        Line("pooled p", null, Level("pooled"), "not its null: words are redrawn"),
        *(
            Line("d interval", world, Coverage("d_low", "d_high", "d", INTERVAL), note)
            for world, note in ((null, "no effect"), (effect, "d about 1"))
        ),
        *_of_new_contexts(),
    ]


def _of_new_contexts() -> list[Line]:
    found = []
    designs: list[tuple[int, Documents, Tails]] = [
        *((contexts, "own", "normal") for contexts in (2, 5, 20, 200)),
        *((contexts, "own", "t3") for contexts in (2, 5, 20)),
        *((20, documents, "normal") for documents in ("one has most", "two")),
    ]
    says = {
        "own": "each from its own document",
        "one has most": f"{_MOST:.0%} of them from one document",
        "two": "from two documents",
    }
    for contexts, documents, tails in designs:
        about = f"CEAT, 8 words per set in {contexts} contexts each, {says[documents]}, {tails} noise, d about 1"
        draw = partial(_new_contexts, contexts=contexts, documents=documents, tails=tails)
        world = Experiment(f"new contexts {contexts} {documents} {tails}", about, draw, 100 if contexts > 20 else 250)
        wanted = INTERVAL if documents == "own" else (0.93, 1.0)  # few documents may make the interval too wide
        found.append(Line("prediction interval", world, Coverage("low", "high", 0.0, wanted), "new contexts"))
    return found
