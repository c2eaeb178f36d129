"""Contexts of groups and traits, and scores of groups over these contexts (CEAT).

The effect size is the mean cosine with the right adjectives less that with the left ones, over the standard deviation
of the cosines with all of them (Cao et al. 2022, 3.1; there A and B are the right and the left traits). Cosines are
those of every context of the group with every context of an adjective. Every adjective weighs the same, however many
contexts it has: in the mean of its side, and in the standard deviation, which is that of all these cosines as they are
(ddof 0). The cosines themselves are never made: a mean of cosines is the product of two mean directions, and a mean of
their squares the product of two matrices of second moments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from biassay.cache.outputs import ModelOutputs
from biassay.corpus.contexts import AbcCoverage, Contexts, abc_coverage, get_adjectives, get_group_forms, read_contexts
from biassay.datasets.abc_model import SocialGroup, TraitPair
from biassay.errors import UsageError
from biassay.stats.association import unit_rows
from biassay.studies.stereotypes.ilps import MEASURES
from biassay.studies.stereotypes.results import ContextsRow
from biassay.studies.stereotypes.settings import CEAT, StereotypeSettings

_NAMED = 8
_Rows = NDArray[np.floating]
_F64 = NDArray[np.float64]


def check_context_settings(settings: StereotypeSettings) -> None:
    """Raise an error unless contexts are given for CEAT and only for it, without options of templates."""
    if CEAT in settings.measures and settings.contexts is None:
        raise UsageError(
            "the measure ceat needs --contexts FILE, a file made by biassay contexts CORPUS --abc --out FILE"
        )
    if CEAT not in settings.measures and settings.contexts is not None:
        raise UsageError(f"--contexts needs the measure ceat; add --measures {','.join((*settings.measures, 'ceat'))}")
    for given, option in ((settings.templates, "templates"), (settings.intersections, "intersections")):
        if given and not settings.template_measures:
            raise UsageError(f"{option} are for {', '.join(MEASURES)}; ceat is measured over contexts of single groups")


@dataclass(frozen=True, eq=False)
class GroupContexts:
    """Contexts of groups and traits, checked before the first request."""

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
        """Read a file of contexts. Raise an error if it does not fit the groups and traits, or has too few contexts.

        Parameters
        ----------
        settings : StereotypeSettings
            Settings with the file, the adjectives and the minimum number of contexts.
        groups : sequence of SocialGroup
            Groups to measure.
        pairs : sequence of TraitPair
            Trait pairs to measure.

        Returns
        -------
        GroupContexts
        """
        path = Path(settings.contexts or "")
        contexts = read_contexts(path)
        made = cls(path, contexts, tuple(groups), tuple(pairs), settings.all_adjectives, settings.min_contexts)
        made._check_sought()
        made._check_enough()
        return made

    def coverage(self, count: Callable[[str], int] | None = None) -> AbcCoverage:
        """Return the coverage of groups and adjectives by contexts, or by contexts that `count` counts."""
        return abc_coverage(
            count or self.contexts.count, self.groups, self.pairs, self.least, all_adjectives=self.all_adjectives
        )

    def sides(self, pair: TraitPair) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the left and the right adjectives of a pair."""
        return get_adjectives(pair, all_adjectives=self.all_adjectives)

    @cached_property
    def adjectives(self) -> tuple[str, ...]:
        """Adjectives of all pairs, each once."""
        return tuple(dict.fromkeys(word for pair in self.pairs for side in self.sides(pair) for word in side))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Words to encode: forms of groups with enough contexts, and adjectives of such pairs."""
        covered = self.coverage()
        forms = [
            form for group in self.groups if group.name in covered.measurable_groups for form in get_group_forms(group)
        ]
        pairs = [pair for pair in self.pairs if pair.name in covered.measurable_pairs]
        adjectives = (word for pair in pairs for side in self.sides(pair) for word in side)
        return tuple(dict.fromkeys((*forms, *(word for word in adjectives if word not in covered.few_adjectives))))

    def find_own_words(self, group: SocialGroup) -> tuple[str, ...]:
        """Find adjectives that also name the group (Republican), whose contexts would be compared with themselves."""
        forms = {form.casefold() for form in get_group_forms(group)}
        return tuple(word for word in self.adjectives if word.casefold() in forms)

    def _check_sought(self) -> None:
        """Raise an error for words that were not searched for, which differ from words without contexts."""
        sought = set(self.contexts.stimuli)
        groups = [group.name for group in self.groups if not sought & set(get_group_forms(group))]
        words = [word for word in self.adjectives if word not in sought]
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


def score_in_contexts(contexts: GroupContexts, model: ModelOutputs) -> tuple[_F64, _F64, ContextsRow]:
    """Score every group on every pair of traits; a context of any form of a group counts as one of the group.

    Parameters
    ----------
    contexts : GroupContexts
    model : ModelOutputs

    Returns
    -------
    scores, standard_errors : (groups, pairs) float64
        NaN where a group or a side of a pair has too few contexts; positive: towards the right trait.
    row : ContextsRow
        Counts of contexts, and groups and adjectives with too few.
    """
    vectors = {word: _get_vectors(contexts.contexts, model, word) for word in contexts.words}
    # Count words that were not encoded because others of their group or pair had too few contexts, too.
    covered = contexts.coverage(lambda word: len(vectors[word]) if word in vectors else contexts.contexts.count(word))
    row = ContextsRow(
        model=model.identity.name,
        options=model.identity.options,
        words_options=model.identities["words"].options,
        groups=dict(covered.groups),
        adjectives=covered.adjectives,
        few_groups=covered.few_groups,
        few_adjectives=covered.few_adjectives,
        own_words={group.name: own for group in contexts.groups if (own := contexts.find_own_words(group))},
    )
    return *_score_groups(contexts, vectors), row


def _get_vectors(contexts: Contexts, model: ModelOutputs, word: str) -> _Rows:
    """Return the vectors of the contexts in which the model located a word."""
    rows = contexts.get_rows(word)
    return drop_unlocated(model.rows(rows)) if rows.start < rows.stop else np.empty((0, 1))


def _score_groups(contexts: GroupContexts, vectors: dict[str, _Rows]) -> tuple[_F64, _F64]:
    """Compute scores and their standard errors, (groups, pairs) each."""
    found, errors = np.full((2, len(contexts.groups), len(contexts.pairs)), np.nan)
    of_groups = {
        index: rows
        for index, g in enumerate(contexts.groups)
        if len(rows := _join_vectors(g, vectors)) >= contexts.least
    }
    usable = [word for word in contexts.adjectives if len(vectors.get(word, ())) >= contexts.least]
    if not of_groups or not usable:
        return found, errors
    cosines = GroupCosines.from_vectors(list(of_groups.values()), [vectors[word] for word in usable])
    indices = {word: index for index, word in enumerate(usable)}
    for row, group in enumerate(of_groups):
        own = contexts.find_own_words(contexts.groups[group])
        for column, pair in enumerate(contexts.pairs):
            left, right = ([indices[w] for w in side if w in indices and w not in own] for side in contexts.sides(pair))
            if left and right:
                found[group, column], errors[group, column] = cosines.association(row, left, right)
    return found, errors


def _join_vectors(group: SocialGroup, vectors: dict[str, _Rows]) -> _Rows:
    """Join the vectors of all forms of a group."""
    parts = [vectors[form] for form in get_group_forms(group) if form in vectors and len(vectors[form])]
    return np.concatenate(parts) if parts else np.empty((0, 1))


_ROWS_AT_ONCE = 4096
_BYTES_AT_ONCE = 1 << 28  # of second moments; larger tables are computed in parts
_NOISE = 1e-13  # smallest variance of cosines that is not rounding, because it is a difference of numbers up to one


def drop_unlocated(rows: _Rows) -> _Rows:
    """Return the rows that are not all NaN: contexts in which the model could locate the word."""
    missing = np.isnan(rows).all(axis=1)
    return rows[~missing] if missing.any() else rows


@dataclass(frozen=True, eq=False)
class GroupCosines:
    """Moments of the cosines between contexts of groups and contexts of words.

    Attributes
    ----------
    means, squares : (groups, words) float64
        Mean of the cosines of a group's contexts with a word's, and of their squares.
    covariances : (groups, words, words) float64
        Over the contexts of a group (ddof 1): of a context's mean cosines with the words.
    sizes : (groups,) int64
        Contexts of every group.
    """

    means: _F64
    squares: _F64
    covariances: _F64
    sizes: NDArray[np.int64]

    @classmethod
    def from_vectors(cls, groups: Sequence[_Rows], words: Sequence[_Rows]) -> GroupCosines:
        """Compute the moments from the vectors (contexts, d) of every group and word; only directions count."""
        directions = np.stack([_mean_direction(rows) for rows in words])
        found = [_project_rows(rows, directions) for rows in groups]
        return cls(
            means=np.stack([mean for mean, _ in found]),
            squares=_squares(groups, words, directions.shape[1]),
            covariances=np.stack([covariance for _, covariance in found]),
            sizes=np.array([len(rows) for rows in groups], dtype=np.int64),
        )

    def association(self, group: int, left: Sequence[int], right: Sequence[int]) -> tuple[float, float]:
        """Return how much closer a group is to the words on the right than to those on the left, and its error.

        Parameters
        ----------
        group : int
            Index of the group.
        left, right : sequence of int
            Indices of words.

        Returns
        -------
        effect_size : float
            Positive towards the words on the right. NaN if all cosines are equal.
        standard_error : float
            Variation over contexts of the group, for fixed contexts of the words. It treats contexts as independent and
            the standard deviation of cosines as known. NaN for a group with one context.
        """
        left, right = list(left), list(right)
        means, both = self.means[group], [*left, *right]
        variance = self.squares[group, both].mean() - means[both].mean() ** 2
        if not variance > _NOISE:
            return math.nan, math.nan
        spread = math.sqrt(variance)
        weights = np.zeros(len(means))
        np.add.at(weights, right, 1.0 / len(right))
        np.add.at(weights, left, -1.0 / len(left))
        error = weights @ self.covariances[group] @ weights / self.sizes[group]
        error = math.sqrt(max(0.0, error)) if self.sizes[group] > 1 else math.nan
        return float((means[right].mean() - means[left].mean()) / spread), error / spread


def _iter_unit_rows(rows: _Rows) -> Iterator[_F64]:
    """Yield unit rows in parts, because all of them may not fit into memory as float64."""
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        yield unit_rows(rows[start : start + _ROWS_AT_ONCE], f"contexts from {start} on")


def _mean_direction(rows: _Rows) -> _F64:
    return np.asarray(sum(part.sum(axis=0) for part in _iter_unit_rows(rows)) / len(rows))


def _project_rows(rows: _Rows, directions: _F64) -> tuple[_F64, _F64]:
    """Compute mean (words,) and covariance (words, words) of the products of unit rows with directions."""
    found = np.concatenate([part @ directions.T for part in _iter_unit_rows(rows)])
    mean = found.mean(axis=0)
    centred = found - mean
    return mean, centred.T @ centred / max(1, len(rows) - 1)


def _squares(groups: Sequence[_Rows], words: Sequence[_Rows], d: int) -> _F64:
    """Compute mean squared cosines (groups, words): traces of products of moments (d, d), in parts."""
    step = max(1, _BYTES_AT_ONCE // (8 * d * (len(groups) + len(words))))
    total = np.zeros((len(groups), len(words)))
    for start in range(0, d, step):
        columns = slice(start, start + step)
        of_groups, of_words = (np.stack([_moment(r, columns) for r in arrays]) for arrays in (groups, words))
        total += of_groups @ of_words.T
    return total


def _moment(rows: _Rows, columns: slice) -> _F64:
    """Compute some rows of the mean of u uᵀ over unit rows u, flattened."""
    return np.asarray(sum(part[:, columns].T @ part for part in _iter_unit_rows(rows)) / len(rows)).ravel()
