"""Calibrate the cosines of one test on several models, for comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from biassay.datasets.schema import ROLES
from biassay.results.outcomes import Result
from biassay.results.run_data import ModelKey, RunData, belongs_to, model_key
from biassay.stats.association import log_contrast_variance, similarity_sd
from biassay.stats.model_difference import TOLERANCE
from biassay.studies.associations.measure import FEWEST_WORDS, choose_form, has_scale
from biassay.studies.associations.results import COSINES, MIN_SD, AnyResult
from biassay.studies.associations.weat import average_texts

Floats = NDArray[np.float64]


def get_cosines(result: AnyResult, run: RunData) -> NDArray[np.float64] | None:
    """Return the cosines of the words of a result, rows X and Y, columns A and B; None if the run has none that fit."""
    index = next((i for i, record in enumerate(run.manifest.models) if belongs_to(result, record)), None)
    table = run.arrays.get(f"{index}/{result.test}/{COSINES}")
    x, y, a, b = (len(result.associations.get(role, {})) for role in ROLES)
    return table if table is not None and table.shape == (x + y, a + b) else None


def find_common_words(*results: AnyResult) -> dict[str, list[str]]:
    """Find the words that all results have, by role, in the order of the first."""
    first, *others = results
    return {
        role: [
            word
            for word in first.associations.get(role, {})
            if all(word in other.associations.get(role, {}) for other in others)
        ]
        for role in ROLES
    }


def match_cosines(
    results: Sequence[AnyResult], cosines: Sequence[NDArray[np.float64]]
) -> tuple[tuple[Floats, ...], tuple[int, int, int, int]]:
    """Select the cosines of the words that all results share, and average the words of each cluster.

    Parameters
    ----------
    results : sequence of Result
        Results of one test on several models.
    cosines : sequence of (targets, attributes) array
        Cosines of the words of each result.

    Returns
    -------
    tables : tuple of (targets, attributes) array
        Cosines of the same words, in the same order.
    sizes : (int, int, int, int)
        Words of X, Y, A and B, with every cluster counted once; all 0 if a word set has no word in common.
    """
    words = find_common_words(*results)
    if not all(words.values()):
        return (), (0, 0, 0, 0)
    x, y, a, b = ([results[0].clusters.get(role, {}).get(word, word) for word in words[role]] for role in ROLES)
    sizes = len(x), len(y), len(a), len(b)
    averaged = [
        average_texts(_select_words(table, result, words), sizes, (x, y, a, b))
        for table, result in zip(cosines, results, strict=True)
    ]
    return tuple(table for table, _ in averaged), averaged[0][1]


def _select_words(table: NDArray[np.float64], result: AnyResult, words: Mapping[str, list[str]]) -> NDArray[np.float64]:
    indices = {role: {word: i for i, word in enumerate(result.associations[role])} for role in ROLES}
    rows, columns = (
        [indices[one][w] for w in words[one]] + [len(indices[one]) + indices[other][w] for w in words[other]]
        for one, other in (("X", "Y"), ("A", "B"))
    )
    return table[np.ix_(rows, columns)]


@dataclass(frozen=True)
class SharedScale:
    """Scales of models over the same words.

    Attributes
    ----------
    sds : tuple of float
        Standard deviations of similarities between pairs of words, one per model.
    variance : float
        Jackknife variance of log(last / first), along the line through the logs if there are more than two models.
    """

    sds: tuple[float, ...]
    variance: float


def find_shared_scale(run: RunData, results: Sequence[Result]) -> SharedScale | str:
    """Find the scales of models over the words that all know, or say why there is none.

    Parameters
    ----------
    run : RunData
        Holds the models.
    results : sequence of Result
        The same test on each model.

    Returns
    -------
    SharedScale or str
    """
    tables = [_get_triangles(run, result) for result in results]
    if not all(tables):
        return "the run holds no cosines of frequent words; measure the model again"
    common = {
        form: [word for word in words if all(word in set(other[form][0]) for other in tables[1:])]
        for form, (words, _) in tables[0].items()
        if all(form in other for other in tables)
    }
    form = choose_form({form: len(words) for form, words in common.items()}, results[0].level)
    if form is None:
        most = max((len(words) for words in common.values()), default=0)
        both = "both" if len(results) == 2 else "all"
        return (
            f"{both} models have vectors for only {most} of the frequent words for the cosine SD; "
            f"at least {FEWEST_WORDS} are needed"
        )
    cut = [_cut_triangle(*own[form], common[form]) for own in tables]
    sds = tuple(map(similarity_sd, cut))
    if min(sds) < MIN_SD:
        return f"not testable: the cosine SD of frequent words is {min(sds):.1g}, below {MIN_SD:g}"
    ends = fit_line_ends(len(cut))
    return SharedScale(sds, log_contrast_variance(cut, ends[1] - ends[0]))


def fit_line_ends(count: int) -> Floats:
    """Return the weights with which values at equal steps give both ends of their least-squares line.

    Returns
    -------
    (2, count) float64
        Weights of the first and of the last end. With two values these are the values themselves.
    """
    steps = np.arange(count) - (count - 1) / 2.0
    return 1.0 / count + np.outer(steps[[0, -1]], steps) / (steps @ steps)


def _get_triangles(run: RunData, result: Result) -> dict[str, tuple[tuple[str, ...], NDArray[np.floating]]]:
    """Return words and upper triangles of similarities of a result's model, by form."""
    models = enumerate(run.manifest.models)
    index, record = next(((i, record) for i, record in models if belongs_to(result, record)), (-1, None))
    rows = [row for row in run.tables.get("scales", ()) if record is not None and belongs_to(row, record)]
    found = {row.form: (row.words, run.arrays.get(f"{index}/scales/{row.form}")) for row in rows}
    return {
        form: (words, values)
        for form, (words, values) in found.items()
        if values is not None and len(values) == len(words) * (len(words) - 1) // 2
    }


def _cut_triangle(words: Sequence[str], triangle: NDArray[np.floating], kept: Sequence[str]) -> Floats:
    table = np.zeros((len(words), len(words)))
    table[np.triu_indices(len(words), 1)] = triangle
    table += table.T
    indices = [words.index(word) for word in kept]
    return table[np.ix_(indices, indices)]


@dataclass(frozen=True, eq=False)
class CalibratedTables:
    """One test on an old and a new model, or on the checkpoints of a series.

    Attributes
    ----------
    cosines : tuple of array
        Similarities of the words in common on each model, clusters averaged.
    sizes : (int, int, int, int)
        Words or clusters of X, Y, A and B.
    scale : SharedScale
        All standard deviations are 1 if the metric declares no scale.
    """

    cosines: tuple[Floats, ...]
    sizes: tuple[int, int, int, int]
    scale: SharedScale

    @property
    def calibrated(self) -> list[Floats]:
        """Calibrated similarities on each model."""
        return [table / sd for table, sd in zip(self.cosines, self.scale.sds, strict=True)]

    @property
    def ends(self) -> Floats:
        """Calibrated similarities on the old and the new model, or at both ends of the line through a series."""
        return np.tensordot(fit_line_ends(len(self.cosines)), self.calibrated, 1)

    @property
    def tolerance(self) -> float:
        """Largest difference of calibrated tables that rounding of float32 vectors makes: 1e-6 in cosine units."""
        return TOLERANCE / min(1.0, *self.scale.sds)


@dataclass(frozen=True, eq=False)
class Calibration:
    """Calibrates the tests of a run that holds several models. Scales are computed once for each set of models."""

    run: RunData
    _scales: dict[tuple[tuple[ModelKey, ...], str], SharedScale | str] = field(default_factory=dict)

    def calibrate(self, *results: Result) -> CalibratedTables | str:
        """Return the calibrated tables of results of one test on several models, or the reason why there are none."""
        if any(result.searched for result in results):
            return "the words of the test were found by searching one of the models: it is descriptive there"
        tables = [table for result in results if (table := get_cosines(result, self.run)) is not None]
        if len(tables) < len(results):
            return "the run holds no cosines of words; measure the model again"
        matched, sizes = match_cosines(results, tables)
        if not all(sizes):
            return "no words in common"
        if not all(np.isfinite(table).all() for table in matched):
            return "not all cosines of words are numbers; measure again"
        key = tuple(map(model_key, results)), results[0].level
        if not has_scale(results[0].metric):
            return CalibratedTables(matched, sizes, SharedScale((1.0,) * len(results), 0.0))
        if key not in self._scales:
            self._scales[key] = find_shared_scale(self.run, results)
        scale = self._scales[key]
        return scale if isinstance(scale, str) else CalibratedTables(matched, sizes, scale)
