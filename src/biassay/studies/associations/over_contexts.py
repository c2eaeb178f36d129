"""One test over contexts on one model: vectors of its stimuli in, a measurement or a refusal out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from biassay.errors import BiassayError, StimulusError, UsageError
from biassay.stimuli.model import ROLES, Test
from biassay.studies.associations.averaging import Words, associations_of_words
from biassay.studies.associations.ceat import ContextualAssociation, ceat
from biassay.studies.associations.settings import Settings
from biassay.studies.seeds import seed_of
from biassay.texts.coverage import TestCoverage, coverage

__all__ = ["ContextMeasurement", "check_word_tests", "cover", "measure_in_contexts"]

Vectors = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class ContextMeasurement:
    """What came of one test on one model; ``num_contexts`` and ``associations`` by role and stimulus.

    Of the stimuli ``lost``, the corpus has too few contexts of those ``too_rare``; others the model could not place.
    """

    association: ContextualAssociation | None
    status: Literal["measured", "refused", "failed"]
    reason: str | None
    lost: Mapping[str, tuple[str, ...]]
    too_rare: Mapping[str, tuple[str, ...]]
    num_contexts: Mapping[str, Mapping[str, int]]
    associations: Mapping[str, Mapping[str, float]]

    def num_words(self, role: str) -> int:
        return len(self.num_contexts[role]) - len(self.lost[role])


def check_word_tests(tests: tuple[Test, ...]) -> None:
    """Refuse tests that are not about words."""
    for test in tests:
        if test.level != "word":
            hint = f"; {test.variant_of!r} is the same with words" if test.variant_of else ""
            raise StimulusError(
                f"test {test.name!r} asks about sentences made from templates, and contexts come from a corpus{hint}"
            )


def cover(
    count: Callable[[str], int], test: Test, settings: Settings, found: Callable[[str], int] | None = None
) -> TestCoverage:
    """Which stimuli of a test have contexts enough, and whether that is enough for the test."""
    (covered,) = coverage(count, [test], settings.min_contexts, settings.max_lost, found)
    return covered


def measure_in_contexts(
    test: Test,
    vectors: Mapping[str, Vectors],
    settings: Settings,
    model: str,
    found_contexts: Callable[[str], int] | None = None,
    documents: Mapping[str, NDArray[np.int64]] | None = None,
) -> ContextMeasurement:
    """Measure one test; ``vectors`` holds for each stimulus the rows (contexts, d) that the model could locate.

    ``model`` takes part in the draws where every model draws its own contexts; ``found_contexts`` tells how many the
    corpus has of a stimulus, by default no more than were located. ``documents`` holds the document of every row; by
    default, every row counts as a document.
    """
    covered = cover(lambda word: len(vectors.get(word, ())), test, settings, found_contexts)
    counts, lost, rare, reason = covered.counts, covered.lost, covered.too_rare, covered.reason
    if reason is not None:
        return ContextMeasurement(None, "refused", reason, lost, rare, counts, {})
    kept = {role: [word for word in counts[role] if word not in lost[role]] for role in ROLES}
    who = model if settings.mode == "random" else ""
    try:
        found = ceat(
            *([vectors[word] for word in kept[role]] for role in ROLES),
            n_samples=settings.n_samples,
            documents=None if documents is None else _by_role(documents, kept),
            rng=np.random.default_rng(seed_of(settings.seed, test.name, "contexts", who)),
            clusters=_clusters(test, kept),
        )
    except UsageError as error:
        return ContextMeasurement(None, "refused", str(error), lost, rare, counts, {})
    except BiassayError as error:
        return ContextMeasurement(None, "failed", str(error), lost, rare, counts, {})
    n, _, k, _ = found.sizes
    targets, attributes = associations_of_words(found.cosines, found.sizes, found.clusters)
    by_role = {"X": targets[:n], "Y": targets[n:], "A": attributes[:k], "B": attributes[k:]}
    associations = {role: dict(zip(kept[role], map(float, by_role[role]), strict=True)) for role in ROLES}
    return ContextMeasurement(found, "measured", None, lost, rare, counts, associations)


def _clusters(test: Test, kept: Mapping[str, list[str]]) -> Words | None:
    """Return the cluster of every stimulus; None if no cluster has several words."""
    if not any(test.concept(role).clusters for role in ROLES):
        return None
    x, y, a, b = ([test.concept(role).cluster_labels[word] for word in kept[role]] for role in ROLES)
    return x, y, a, b


def _by_role(
    documents: Mapping[str, NDArray[np.int64]], kept: Mapping[str, Sequence[str]]
) -> tuple[Sequence[NDArray[np.int64]], ...]:
    return tuple([documents[word] for word in kept[role]] for role in ROLES)
