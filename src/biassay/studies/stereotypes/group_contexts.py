"""Contexts of groups and traits in a corpus, and group CEAT scores from their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from biassay.cache.outputs import ModelOutputs
from biassay.corpus.contexts import AbcCoverage, Contexts, abc_coverage, get_adjectives, get_group_forms, read_contexts
from biassay.datasets.abc_model import SocialGroup, TraitPair
from biassay.errors import UsageError
from biassay.studies.stereotypes.group_ceat import CEAT, GroupCosines, drop_unlocated
from biassay.studies.stereotypes.ilps import MEASURES
from biassay.studies.stereotypes.results import ContextsRow, ContextsSource
from biassay.studies.stereotypes.settings import StereotypeSettings

__all__ = ["GroupContexts", "GroupScores", "check_context_settings", "score_in_contexts"]

_NAMED = 8
_Rows = NDArray[np.floating]


def check_context_settings(settings: StereotypeSettings) -> None:
    """CEAT needs contexts, and it alone; it knows nothing of templates and of paired groups."""
    if CEAT in settings.measures and settings.contexts is None:
        raise UsageError(
            "the measure ceat needs --contexts FILE, a file made by biassay contexts CORPUS --abc --out FILE"
        )
    if CEAT not in settings.measures and settings.contexts is not None:
        raise UsageError(f"--contexts is for the measure ceat; asked for: {', '.join(settings.measures)}")
    for given, option in ((settings.templates, "templates"), (settings.intersections, "intersections")):
        if given and not settings.template_measures:
            raise UsageError(f"{option} are for {', '.join(MEASURES)}; ceat is measured over contexts of single groups")


@dataclass(frozen=True, eq=False)
class GroupContexts:
    """Contexts of groups and traits, checked before anything is encoded."""

    file: Path
    contexts: Contexts
    groups: tuple[SocialGroup, ...]
    pairs: tuple[TraitPair, ...]
    all_adjectives: bool
    least: int

    @classmethod
    def open(
        cls, settings: StereotypeSettings, groups: Sequence[SocialGroup], pairs: Sequence[TraitPair]
    ) -> GroupContexts:
        """Read a file of contexts; one that was not made for these groups and traits, or has too few, is refused."""
        path = Path(settings.contexts or "")
        contexts = read_contexts(path)
        made = cls(path, contexts, tuple(groups), tuple(pairs), settings.all_adjectives, settings.min_contexts)
        made._check_sought()
        made._check_enough()
        return made

    def coverage(self, counts: dict[str, int] | None = None) -> AbcCoverage:
        """How many contexts groups and adjectives have; ``counts`` are those that a model gave a vector."""
        count = self.contexts.count if counts is None else lambda word: counts.get(word, 0)
        return abc_coverage(count, self.groups, self.pairs, self.least, all_adjectives=self.all_adjectives)

    def sides(self, pair: TraitPair) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the left and the right adjectives of a pair."""
        return get_adjectives(pair, all_adjectives=self.all_adjectives)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """What is encoded: forms of the groups that have contexts enough, adjectives of the pairs that do."""
        covered = self.coverage()
        forms = [
            form for group in self.groups if group.name in covered.measurable_groups for form in get_group_forms(group)
        ]
        pairs = [pair for pair in self.pairs if pair.name in covered.measurable_pairs]
        adjectives = (word for pair in pairs for side in self.sides(pair) for word in side)
        return tuple(dict.fromkeys((*forms, *(word for word in adjectives if word not in covered.few_adjectives))))

    @property
    def source(self) -> ContextsSource:
        """Description of the file of contexts."""
        metadata = self.contexts.metadata
        corpus = metadata.get("corpus", {})
        return ContextsSource(
            file=str(self.file.resolve()),
            digest=self.contexts.digest,
            rows=len(self.contexts),
            per_stimulus=metadata["k"],
            seed=metadata.get("seed", 0),
            documents=corpus.get("documents", 0),
            corpus=tuple(corpus.get("files", ())),
        )

    def _check_sought(self) -> None:
        """Raise an error for words that were not searched for, which differ from words without contexts."""
        sought = set(self.contexts.stimuli)
        groups = [group.name for group in self.groups if not sought & set(get_group_forms(group))]
        adjectives = dict.fromkeys(word for pair in self.pairs for side in self.sides(pair) for word in side)
        words = [word for word in adjectives if word not in sought]
        options = "--abc --all-adjectives" if self.all_adjectives else "--abc"
        for what, lacking in (("group", groups), ("adjective", words)):
            if lacking:
                named = ", ".join(lacking[:_NAMED]) + (", ..." if len(lacking) > _NAMED else "")
                raise UsageError(
                    f"{self.file}: the contexts were not collected for {len(lacking)} {what}(s): {named}; collect them "
                    f"with biassay contexts CORPUS {options} (and the same --files FILE) --out FILE"
                )

    def _check_enough(self) -> None:
        covered = self.coverage()
        for what, able, total in (
            ("group", covered.measurable_groups, len(self.groups)),
            ("pair of traits", covered.measurable_pairs, len(self.pairs)),
        ):
            if not able:
                raise UsageError(
                    f"{self.file}: no {what} of {total} has {self.least} contexts of its words; take a larger corpus, "
                    "or change --min-contexts"
                )


@dataclass(frozen=True, eq=False)
class GroupScores:
    """Group CEAT of one model.

    Attributes
    ----------
    scores, standard_errors : (groups, pairs) float64
        NaN where a group or a side of a pair has too few contexts; positive: towards the right trait.
    row : ContextsRow
        How many contexts groups and adjectives had, and which too few.
    """

    scores: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    row: ContextsRow


def score_in_contexts(asked: GroupContexts, model: ModelOutputs) -> GroupScores:
    """Score every group on every pair of traits; a context of any form of a group counts as one of the group."""
    words = asked.words
    vectors = {word: _get_vectors(asked.contexts, model, word) for word in words}
    scores, errors = _score_groups(asked, vectors)
    covered = asked.coverage({word: len(rows) for word, rows in vectors.items()} | _count_unencoded(asked, words))
    row = ContextsRow(
        model=model.identity.name,
        options=model.identity.options,
        words_options=model.identities["words"].options,
        groups=dict(covered.groups),
        adjectives=covered.adjectives,
        few_groups=covered.few_groups,
        few_adjectives=covered.few_adjectives,
        own_words={group.name: own for group in asked.groups if (own := _find_own_words(asked, group))},
    )
    return GroupScores(scores, errors, row)


def _get_vectors(contexts: Contexts, model: ModelOutputs, word: str) -> _Rows:
    """Vectors of the contexts in which the model could locate a word."""
    rows = contexts.get_rows(word)
    return drop_unlocated(model.rows(rows)) if rows.start < rows.stop else np.empty((0, 1))


def _count_unencoded(asked: GroupContexts, words: Sequence[str]) -> dict[str, int]:
    """Contexts of words that were not encoded, for others than they had too few."""
    covered = asked.coverage()
    every = (*(form for group in asked.groups for form in get_group_forms(group)), *covered.adjectives)
    return {word: asked.contexts.count(word) for word in every if word not in words}


def _find_own_words(asked: GroupContexts, group: SocialGroup) -> tuple[str, ...]:
    """Adjectives that are also words for the group (Republican): its contexts would be compared with themselves."""
    forms = {form.casefold() for form in get_group_forms(group)}
    adjectives = (word for pair in asked.pairs for side in asked.sides(pair) for word in side)
    return tuple(dict.fromkeys(word for word in adjectives if word.casefold() in forms))


def _score_groups(asked: GroupContexts, vectors: dict[str, _Rows]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores and their standard errors, (groups, pairs) each."""
    found, errors = np.full((2, len(asked.groups), len(asked.pairs)), np.nan)
    of_groups = {
        place: rows for place, g in enumerate(asked.groups) if len(rows := _join_vectors(g, vectors)) >= asked.least
    }
    adjectives = dict.fromkeys(word for pair in asked.pairs for side in asked.sides(pair) for word in side)
    usable = [word for word in adjectives if len(vectors.get(word, ())) >= asked.least]
    if not of_groups or not usable:
        return found, errors
    cosines = GroupCosines.of(list(of_groups.values()), [vectors[word] for word in usable])
    places = {word: place for place, word in enumerate(usable)}
    for row, group in enumerate(of_groups):
        own = _find_own_words(asked, asked.groups[group])
        for column, pair in enumerate(asked.pairs):
            left, right = ([places[w] for w in side if w in places and w not in own] for side in asked.sides(pair))
            if left and right:
                measured = cosines.association(row, left, right)
                found[group, column], errors[group, column] = measured.effect_size, measured.standard_error
    return found, errors


def _join_vectors(group: SocialGroup, vectors: dict[str, _Rows]) -> _Rows:
    """Vectors of a group, in whatever form."""
    parts = [vectors[form] for form in get_group_forms(group) if form in vectors and len(vectors[form])]
    return np.concatenate(parts) if parts else np.empty((0, 1))
