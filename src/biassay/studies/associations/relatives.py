"""Recognition of models that are copies or descendants of a model that was searched for the words of a test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from biassay.answers.answers import Answers
from biassay.models.base import Encoded
from biassay.stats.association import unit_rows
from biassay.stats.fingerprints import interaction_correlation
from biassay.stimuli.model import Fingerprint, Test

__all__ = ["RELATED", "fingerprint_words", "related_correlations"]

RELATED = 0.7
"""Correlation with the cosines of a searched model from which a model counts as its relative.

Measured over names and attributes of seven tests: GloVe, USE and MiniLM reach 0.55 at most with each other, MiniLM with
10% noise on its weights 0.89 at least, with 20% noise 0.65 to 0.90.
"""
_FEWEST = 4  # words per side that a correlation needs


def fingerprint_words(tests: Iterable[Test]) -> list[str]:
    """Return the words whose vectors are needed to recognise relatives of searched models."""
    return [word for fingerprint in _fingerprints(tests) for word in fingerprint.words]


def related_correlations(tests: Iterable[Test], model: Answers) -> dict[str, float]:
    """Return, by test, how closely a model agrees with the one that was searched, if it counts as its relative."""
    own = list(tests)
    correlations = {fingerprint: _correlation(fingerprint, model) for fingerprint in _fingerprints(own)}
    found: dict[str, float] = {}
    for test in own:
        largest = max((correlations[fingerprint] for fingerprint in test.source.fingerprints), default=0.0)
        if largest >= RELATED:
            found[test.name] = largest
    return found


def _fingerprints(tests: Iterable[Test]) -> Iterator[Fingerprint]:
    return iter(dict.fromkeys(fingerprint for test in tests for fingerprint in test.source.fingerprints))


def _correlation(fingerprint: Fingerprint, model: Answers) -> float:
    """Correlate the cosines of a searched model with those of another, over the words that it knows; 0 if too few."""
    sides = [model.texts(words) for words in (fingerprint.targets, fingerprint.attributes)]
    known = [_known(encoded) for encoded in sides]
    if min(map(np.count_nonzero, known)) < _FEWEST:
        return 0.0
    targets, attributes = (
        unit_rows(encoded.vectors[there], "fingerprint") for encoded, there in zip(sides, known, strict=True)
    )
    searched = np.array(fingerprint.cosines)[np.ix_(*known)]
    return interaction_correlation(searched, targets @ attributes.T)


def _known(encoded: Encoded) -> NDArray[np.bool_]:
    """Return which of some words have a vector with a direction."""
    known = [not unknown and cut is None for unknown, cut in zip(encoded.unknown, encoded.cut, strict=True)]
    return np.asarray(known, dtype=np.bool_) & np.asarray(encoded.vectors.any(axis=1))
