"""CrowS-Pairs and StereoSet: which of two or three sentences a model finds more likely."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import scipy
from numpy.typing import NDArray

from biassay.answers.answers import Abilities, Answers
from biassay.models.answering import TokenLikelihoods
from biassay.stats.benchmark_scores import pair_difference, pair_score, preferences, stereoset_score
from biassay.stimuli.benchmarks.crows_pairs import CrowsPair
from biassay.stimuli.benchmarks.stereoset import StereoSetItem, filled_spans
from biassay.studies.benchmarks.inputs import BenchmarkInputs
from biassay.studies.benchmarks.numbers import Named, found_by, who, with_score
from biassay.studies.benchmarks.records import PairRow, Result, TermRow, Unit
from biassay.studies.benchmarks.settings import Settings
from biassay.studies.benchmarks.topics import topic_of
from biassay.studies.study import Array, Event, Progress, Row
from biassay.texts.requests import Likelihood
from biassay.texts.shared_tokens import shared_likelihoods

__all__ = [
    "ALL",
    "crows_row",
    "crows_rows",
    "measured_crows",
    "measured_stereoset",
    "pair_likelihoods",
    "sentence_likelihood",
    "stereoset_rows",
    "texts_of",
]

ALL = "all"
_TOGETHER = 5_000  # items: reading few at a time would open every file of answers again and again
Floats = NDArray[np.float64]


def texts_of(item: CrowsPair | StereoSetItem, abilities: Abilities) -> tuple[Likelihood, ...]:
    """The sentences of an item, the stereotyping one first; a masked model is asked what fills a blank."""
    if isinstance(item, CrowsPair):
        return Likelihood(item.more), Likelihood(item.less)
    texts, masked = (item.stereotype, item.anti_stereotype, item.unrelated), abilities.kind == "masked"
    if masked:
        return tuple(Likelihood(text, filled_spans(item.context, text)) for text in texts)
    return tuple(Likelihood(text, start_before="first") for text in texts)


def _found(
    items: Sequence[CrowsPair] | Sequence[StereoSetItem], model: Answers
) -> Iterator[tuple[TokenLikelihoods, ...]]:
    """What was answered to the sentences of every item, read for many at once."""
    for start in range(0, len(items), _TOGETHER):
        texts = [texts_of(item, model.abilities) for item in items[start : start + _TOGETHER]]
        found = iter(model.likelihoods([text for own in texts for text in own]))
        yield from (tuple(next(found) for _ in own) for own in texts)


def _groups(inputs: BenchmarkInputs, values: Floats) -> Iterator[tuple[str, list[int]]]:
    """Places of the items of every category, and of all where there are several."""
    start = 0
    for category, items in inputs.items.items():
        yield category, list(range(start, start + len(items)))
        start += len(items)
    if len(inputs.items) > 1:
        yield ALL, list(range(len(values)))


def _base(settings: Settings, named: Named, category: str, unit: Unit, items: int, left_out: int) -> Result:
    """A row before its score."""
    return Result(
        *named,
        benchmark=settings.benchmark,
        category=category,
        condition="",
        topic=topic_of(category),
        by="likelihood",
        status="measured",
        reason=None,
        unit=unit,
        items=items,
        left_out=left_out,
        alpha=settings.alpha,
    )


# CrowS-Pairs


def measured_crows(inputs: BenchmarkInputs, model: Answers) -> Iterator[Event]:
    """A row for every bias type and one over all, and the two log-likelihoods of every pair."""
    pairs: list[CrowsPair] = inputs.all_items
    values = np.array([pair_likelihoods(more, less, inputs.settings.score) for more, less in _found(pairs, model)])
    for number, (category, places) in enumerate(_groups(inputs, values), start=1):
        yield from crows_rows(inputs.settings, who(model), category, [pairs[place] for place in places], values[places])
        yield Progress("categories", number, len(inputs.items) + (len(inputs.items) > 1))
    yield Array("log_likelihoods", values)


def crows_rows(
    settings: Settings, named: Named, category: str, pairs: Sequence[CrowsPair], values: Floats
) -> Iterator[Row]:
    """The row of a bias type and those of its pairs."""
    yield Row("results", crows_row(settings, named, category, [pair.writer for pair in pairs], values))
    if category != ALL:
        for pair, apart in zip(pairs, pair_difference(values[:, 0], values[:, 1]).tolist(), strict=True):
            yield Row("pairs", PairRow(*named, category, pair.id, found_by(apart), pair.writer))


def crows_row(settings: Settings, named: Named, category: str, writers: Sequence[str], values: Floats) -> Result:
    """The row of a bias type, from log-likelihoods (pairs, 2) of the more and the less stereotyping sentence."""
    told = ~np.isnan(values).any(axis=1)
    own = [writers[place] for place in np.flatnonzero(told).tolist()]
    score = pair_score(values[told, 0], values[told, 1], own, confidence=1.0 - settings.alpha)
    unit: Unit = "writer" if any(writers) else "pair"
    row = _base(settings, named, category, unit, len(values), len(values) - int(told.sum()))
    return with_score(replace(row, n=score.n, undecided=score.ties), score.share, score.by_pair)


def pair_likelihoods(more: TokenLikelihoods, less: TokenLikelihoods, score: str) -> tuple[float, float]:
    """Return the log-likelihoods of two sentences: of all their tokens, or of those that both share.

    NaN where no token of a sentence has a likelihood.
    """
    if any(np.isnan(own.log_p).all() for own in (more, less)):
        return math.nan, math.nan
    if score == "sentence":
        return float(np.nansum(more.log_p)), float(np.nansum(less.log_p))
    sides = [(own.tokens.tolist(), own.log_p.tolist()) for own in (more, less)]
    return shared_likelihoods(*sides)


# StereoSet


def measured_stereoset(inputs: BenchmarkInputs, model: Answers) -> Iterator[Event]:
    """A row for every bias type and one over all, rows of terms, and three log-likelihoods of every item."""
    items: list[StereoSetItem] = inputs.all_items
    masked = model.abilities.kind == "masked"
    values = np.array([_of_item(item, own, masked) for item, own in zip(items, _found(items, model), strict=True)])
    for number, (category, places) in enumerate(_groups(inputs, values), start=1):
        told = [place for place in places if not np.isnan(values[place]).any()]
        terms, left_out = [items[place].target for place in told], len(places) - len(told)
        preferred = preferences(*values[told].T)
        yield from stereoset_rows(inputs.settings, who(model), category, terms, preferred, left_out)
        yield Progress("categories", number, len(inputs.items) + (len(inputs.items) > 1))
    yield Array("log_likelihoods", values)


def _of_item(item: StereoSetItem, found: Sequence[TokenLikelihoods], masked: bool) -> list[float]:
    texts = (item.stereotype, item.anti_stereotype, item.unrelated)
    return [sentence_likelihood(item.context, text, own, masked) for text, own in zip(texts, found, strict=True)]


def sentence_likelihood(context: str, text: str, found: TokenLikelihoods, masked: bool) -> float:
    """Of a causal model the mean log-likelihood of a token, of a masked one the logarithm of the mean likelihood of the
    tokens that fill the blank.

    As the authors of StereoSet do it, so that words of several tokens, and longer sentences, are not at a disadvantage.
    Their causal models read the start token before the first token only.
    NaN: the sentence is not its context filled, or the model says nothing of it.
    """
    if not masked:
        told = found.log_p[~np.isnan(found.log_p)]
        return float(told.mean()) if len(told) else math.nan
    inside = np.zeros(len(found.log_p), dtype=bool)
    for start, end in filled_spans(context, text):
        inside |= (found.spans[:, 0] < end) & (found.spans[:, 1] > start)
    return float(scipy.special.logsumexp(found.log_p[inside]) - np.log(inside.sum())) if inside.any() else math.nan


def stereoset_rows(
    settings: Settings,
    named: Named,
    category: str,
    terms: Sequence[str],
    preferred: tuple[Floats, Floats],
    left_out: int,
) -> Iterator[Row]:
    """The row of a bias type and those of its terms, from what is preferred in every item (see `preferences`)."""
    row = _base(settings, named, category, "term", len(terms) + left_out, left_out)
    if not terms:
        yield Row("results", replace(row, status="failed", reason="no item has a likelihood", null=50.0))
        return
    score = stereoset_score(*preferred, terms, confidence=1.0 - settings.alpha)
    row = replace(
        row,
        n=score.n - score.ties,
        undecided=score.ties,
        lms=found_by(score.lms.value),
        lms_low=found_by(score.lms.interval[0]),
        lms_high=found_by(score.lms.interval[1]),
        icat=found_by(score.icat),
        icat_low=found_by(score.icat_interval[0]),
        icat_high=found_by(score.icat_interval[1]),
    )
    yield Row("results", with_score(row, score.ss, score.ss_by_item))
    if category != ALL:
        for term in score.terms:
            numbers = found_by(term.lms), found_by(term.ss)
            yield Row("terms", TermRow(*named, category, term.term, term.n, *numbers))
