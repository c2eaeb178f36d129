"""Whether there are contexts enough for a test."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from biassay.stimuli.model import ROLES, Concept, Test

__all__ = ["MAX_LOST", "ConceptCoverage", "Counted", "TestCoverage", "coverage"]

MAX_LOST = 0.2
LEAST_STIMULI = 2


class Counted(Protocol):
    """What knows how many contexts a stimulus has."""

    def count(self, stimulus: str) -> int: ...


@dataclass(frozen=True)
class ConceptCoverage:
    """The contexts of the stimuli of one concept, in the concept's order."""

    role: str
    name: str
    counts: tuple[tuple[str, int], ...]
    least: int

    @property
    def none(self) -> tuple[str, ...]:
        """Stimuli without any context."""
        return tuple(stimulus for stimulus, count in self.counts if not count)

    @property
    def few(self) -> tuple[str, ...]:
        """Stimuli with contexts, but fewer than asked for."""
        return tuple(stimulus for stimulus, count in self.counts if 0 < count < self.least)

    def is_enough(self, max_lost: float) -> bool:
        """At least two stimuli have contexts, and no more than a share ``max_lost`` has none."""
        found = len(self.counts) - len(self.none)
        return found >= LEAST_STIMULI and len(self.none) <= max_lost * len(self.counts)


@dataclass(frozen=True)
class TestCoverage:
    """The contexts of one test. It is measurable where every concept has enough."""

    __test__ = False

    test: str
    concepts: tuple[ConceptCoverage, ...]
    max_lost: float

    @property
    def measurable(self) -> bool:
        return not self.lacking

    @property
    def lacking(self) -> tuple[ConceptCoverage, ...]:
        """The concepts that have not enough."""
        return tuple(concept for concept in self.concepts if not concept.is_enough(self.max_lost))


def coverage(
    contexts: Counted, tests: Iterable[Test], least: int, max_lost: float = MAX_LOST
) -> tuple[TestCoverage, ...]:
    """For every test how many contexts its stimuli have. ``least`` is how many are asked for."""
    return tuple(
        TestCoverage(test.name, tuple(_of(contexts, role, test.concept(role), least) for role in ROLES), max_lost)
        for test in tests
    )


def _of(contexts: Counted, role: str, concept: Concept, least: int) -> ConceptCoverage:
    counts = tuple((stimulus, contexts.count(stimulus)) for stimulus in concept.words)
    return ConceptCoverage(role, concept.name, counts, least)
