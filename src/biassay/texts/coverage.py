"""Whether a test has enough contexts: one rule for the table after a scan and for the measurement."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from biassay.stimuli.model import ROLES, Concept, Test

__all__ = ["MAX_LOST", "ConceptCoverage", "TestCoverage", "coverage"]

MAX_LOST = 0.2
LEAST_STIMULI = 2


@dataclass(frozen=True)
class ConceptCoverage:
    """The usable contexts of the stimuli of one concept, in the concept's order; one with fewer than ``least`` is lost.

    ``in_corpus`` counts all contexts of each, in some of which a model may be unable to locate it.
    """

    role: str
    label: str
    counts: tuple[tuple[str, int], ...]
    in_corpus: tuple[int, ...]
    least: int

    @property
    def lost(self) -> tuple[str, ...]:
        return tuple(stimulus for stimulus, count in self.counts if count < self.least)

    @property
    def too_rare(self) -> tuple[str, ...]:
        """Those lost because the corpus has too few contexts, whatever the model."""
        pairs = zip(self.counts, self.in_corpus, strict=True)
        return tuple(stimulus for (stimulus, _), number in pairs if number < self.least)

    def lack(self, max_lost: float) -> str | None:
        """Why it cannot be measured: fewer than two stimuli are left, or more than a share ``max_lost`` is lost."""
        total, gone = len(self.counts), len(self.lost)
        if total - gone >= LEAST_STIMULI and gone <= max_lost * total:
            return None
        limit = f"the limit is {max_lost:.0%}, `biassay ceat --max-lost` and `--min-contexts` change it"
        few = f"{gone} of {total} words of {self.label} have fewer than {self.least} usable contexts ({self._causes()})"
        return f"{few}; {limit if total - gone >= LEAST_STIMULI else 'too few are left'}"

    def _causes(self) -> str:
        lost = [
            (of, count, all_) for (of, count), all_ in zip(self.counts, self.in_corpus, strict=True) if of in self.lost
        ]
        rare = ", ".join(f"{of} {number}" for of, _, number in lost if of in self.too_rare)
        unplaced = ", ".join(f"{of} {count} of {number}" for of, count, number in lost if of not in self.too_rare)
        causes = {"in the corpus": rare, "placed by the model": unplaced}
        return "; ".join(f"{cause}: {words}" for cause, words in causes.items() if words)


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
    def too_rare(self) -> dict[str, tuple[str, ...]]:
        return {concept.role: concept.too_rare for concept in self.concepts}

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        return {concept.role: dict(concept.counts) for concept in self.concepts}


def coverage(
    count: Callable[[str], int],
    tests: Iterable[Test],
    least: int,
    max_lost: float = MAX_LOST,
    in_corpus: Callable[[str], int] | None = None,
) -> tuple[TestCoverage, ...]:
    """For every test how many usable contexts its stimuli have, each of which needs at least ``least``.

    ``in_corpus`` gives how many the corpus has; by default all of them are usable.
    """

    def of(role: str, concept: Concept) -> ConceptCoverage:
        counts = tuple((word, count(word)) for word in concept.words)
        of_corpus = tuple((in_corpus or count)(word) for word in concept.words)
        return ConceptCoverage(role, concept.label, counts, of_corpus, least)

    return tuple(TestCoverage(test.name, tuple(of(r, test.concept(r)) for r in ROLES), max_lost) for test in tests)
