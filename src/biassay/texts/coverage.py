"""Whether there are contexts enough for a test: the one rule, for the table after a scan and for the measurement."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from biassay.stimuli.model import ROLES, Concept, Test

__all__ = ["MAX_LOST", "ConceptCoverage", "TestCoverage", "coverage"]

MAX_LOST = 0.2
LEAST_STIMULI = 2


@dataclass(frozen=True)
class ConceptCoverage:
    """The contexts of the stimuli of one concept, in the concept's order; one with fewer than ``least`` is lost."""

    role: str
    label: str
    counts: tuple[tuple[str, int], ...]
    least: int

    @property
    def lost(self) -> tuple[str, ...]:
        return tuple(stimulus for stimulus, count in self.counts if count < self.least)

    def lack(self, max_lost: float) -> str | None:
        """What is wrong if fewer than two stimuli are left, or more than a share ``max_lost`` is lost."""
        total, gone = len(self.counts), len(self.lost)
        if total - gone >= LEAST_STIMULI and gone <= max_lost * total:
            return None
        words = ", ".join(f"{stimulus} {count}" for stimulus, count in self.counts if count < self.least)
        limit = f"the limit is {max_lost:.0%}, --max-lost and --min-contexts change it"
        few = f"{gone} of {total} words of {self.label} have fewer than {self.least} usable contexts ({words})"
        return f"{few}; {limit if total - gone >= LEAST_STIMULI else 'too few are left'}"


@dataclass(frozen=True)
class TestCoverage:
    """The contexts of one test. It is measurable where every concept has enough."""

    __test__ = False

    test: str
    concepts: tuple[ConceptCoverage, ...]
    max_lost: float

    @property
    def measurable(self) -> bool:
        return self.reason is None

    @property
    def reason(self) -> str | None:
        """Why it cannot be measured."""
        return next((lack for concept in self.concepts if (lack := concept.lack(self.max_lost)) is not None), None)

    @property
    def lost(self) -> dict[str, tuple[str, ...]]:
        return {concept.role: concept.lost for concept in self.concepts}

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        return {concept.role: dict(concept.counts) for concept in self.concepts}


def coverage(
    count: Callable[[str], int], tests: Iterable[Test], least: int, max_lost: float = MAX_LOST
) -> tuple[TestCoverage, ...]:
    """For every test how many contexts its stimuli have, each of which needs at least ``least``."""
    return tuple(
        TestCoverage(test.name, tuple(_of(count, role, test.concept(role), least) for role in ROLES), max_lost)
        for test in tests
    )


def _of(count: Callable[[str], int], role: str, concept: Concept, least: int) -> ConceptCoverage:
    return ConceptCoverage(role, concept.label, tuple((word, count(word)) for word in concept.words), least)
