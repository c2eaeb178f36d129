"""Recognize copies and descendants of a model that was searched for the words of a test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from biassay.cache.outputs import ModelOutputs
from biassay.datasets.schema import Fingerprint, Test
from biassay.models.base import TextEmbeddings
from biassay.stats.association import unit_rows
from biassay.stats.cosine_tables import interaction_correlation

MIN_RELATED_CORRELATION = 0.7
"""Correlation with the cosines of a searched model from which a model counts as its relative.

Measured over names and attributes of seven tests: GloVe, USE and MiniLM reach 0.55 at most with each other, MiniLM with
10% noise on its weights 0.89 at least, with 20% noise 0.65 to 0.90.
"""
_FEWEST = 4  # words per side that a correlation needs


def fingerprint_words(tests: Iterable[Test]) -> list[str]:
    """Return the words whose vectors are needed to recognize relatives of searched models."""
    return [word for fingerprint in _iter_fingerprints(tests) for word in fingerprint.words]


def find_related_correlations(tests: Iterable[Test], model: ModelOutputs) -> dict[str, float]:
    """Return, by test, how closely a model agrees with the one that was searched, if it counts as its relative."""
    own = list(tests)
    correlations = {fingerprint: _correlation(fingerprint, model) for fingerprint in _iter_fingerprints(own)}
    found: dict[str, float] = {}
    for test in own:
        largest = max((correlations[fingerprint] for fingerprint in test.source.fingerprints), default=0.0)
        if largest >= MIN_RELATED_CORRELATION:
            found[test.name] = largest
    return found


def _iter_fingerprints(tests: Iterable[Test]) -> Iterator[Fingerprint]:
    return iter(dict.fromkeys(fingerprint for test in tests for fingerprint in test.source.fingerprints))


def _correlation(fingerprint: Fingerprint, model: ModelOutputs) -> float:
    """Correlate the cosines of a searched model with those of another, over the words that it knows; 0 if too few."""
    sides = [model.texts(words) for words in (fingerprint.targets, fingerprint.attributes)]
    known = [_find_known(encoded) for encoded in sides]
    if min(map(np.count_nonzero, known)) < _FEWEST:
        return 0.0
    targets, attributes = (
        unit_rows(encoded.vectors[there], "fingerprint") for encoded, there in zip(sides, known, strict=True)
    )
    searched = np.array(fingerprint.cosines)[np.ix_(*known)]
    return interaction_correlation(searched, targets @ attributes.T)


def _find_known(encoded: TextEmbeddings) -> NDArray[np.bool_]:
    """Return which of some words have a vector with a direction."""
    known = [not unknown and cut is None for unknown, cut in zip(encoded.unknown, encoded.truncated_at, strict=True)]
    return np.asarray(known, dtype=np.bool_) & np.asarray(encoded.vectors.any(axis=1))
