"""Scale a model's similarities by those of frequent words, and calibrate two models for comparison.

The words never depend on the chosen tests. Word tests use frequent words by themselves. Sentence tests use them in the
two templates that most classes of words share, averaged per word. Tests over contexts use words of the contexts file,
with equally many contexts each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.datasets.catalogue import select_tests
from biassay.datasets.schema import ROLES
from biassay.errors import UnknownNameError
from biassay.models.base import Identity, TextEmbeddings
from biassay.prompts.sentences import SCALE_TEMPLATES, load_frequent_words
from biassay.results.outcomes import Result
from biassay.results.run_data import ModelKey, RunData, belongs_to, model_key
from biassay.stats.association import unit_rows
from biassay.stats.cosine_tables import log_contrast_variance, similarity_sd
from biassay.stats.model_difference import TOLERANCE
from biassay.studies.associations.contributions import MIN_SD, get_cosines, match_cosines
from biassay.studies.associations.inputs import AssociationInputs
from biassay.studies.associations.metrics import PairwiseMetric, get_metric
from biassay.studies.associations.results import Scale
from biassay.studies.associations.weat import mean_rows
from biassay.studies.study import Array, Event, Row

_WANTED, _FEWEST = 200, 50  # words
_TESTS = "tests"
_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SharedScale:
    """Scales of models over the same words.

    Attributes
    ----------
    sds : tuple of float
        Standard deviations of similarities between pairs of words, one per model.
    variance : float
        Jackknife variance of log(last / first), along the line through the logs if there are more than two models.
    words : int
        Number of words that all models know.
    """

    sds: tuple[float, ...]
    variance: float
    words: int


def has_scale(metric: str) -> bool:
    """Return whether a metric declares that its similarities are divided by their standard deviation.

    Without the package of a metric, its scale is unknown.
    """
    try:
        chosen = get_metric(metric)
    except UnknownNameError:
        return False
    return isinstance(chosen, PairwiseMetric) and getattr(chosen, "scale", None) == "sd"


def list_scale_texts(inputs: AssociationInputs, capabilities: Capabilities) -> list[str]:
    """Return the texts whose vectors give the scales that the tests need."""
    lists = _list_scale_words(inputs, capabilities).items()
    return [text for form, words in lists for word in words for text, _ in _make_texts(form, word)]


def measure_scales(inputs: AssociationInputs, model: ModelOutputs) -> Iterator[Event]:
    """Yield a row and an array for each form of text of the tests."""
    metric = get_metric(inputs.settings.metric)
    for form, words in _list_scale_words(inputs, model.capabilities).items():
        assert isinstance(metric, PairwiseMetric)
        asked = [(word, text, span) for word in words for text, span in _make_texts(form, word)]
        encoded = model.restrict([text for _, text, _ in asked]).texts([text for _, text, _ in asked])
        usable = [_is_usable(encoded, i, span) for i, (_, _, span) in enumerate(asked)]
        lost = {word for (word, _, _), known in zip(asked, usable, strict=True) if not known}
        kept = [i for i, (word, _, _) in enumerate(asked) if word not in lost]
        if kept:
            owners, vectors = [asked[i][0] for i in kept], encoded.vectors[kept]
            table = mean_rows(metric.word_matrix(vectors, owners, vectors).T, owners)
            yield from _make_scale_events(form, table, tuple(dict.fromkeys(owners)), model.identity)


def measure_context_scale(
    vectors: Mapping[str, NDArray[np.floating]], count: int, identity: Identity
) -> Iterator[Event]:
    """Yield the row and the array of the scale of words in contexts.

    Parameters
    ----------
    vectors : dict of str to (contexts, d) array
        Vectors of the contexts of every word.
    count : int
        Number of contexts to average per word; words with fewer are left out.
    identity : Identity
        Identity of the model.

    Yields
    ------
    Event
    """
    means = {word: unit_rows(rows[:count], word).mean(axis=0) for word, rows in vectors.items() if len(rows) >= count}
    if means:
        table = np.stack(list(means.values()))
        yield from _make_scale_events("context", table @ table.T, tuple(means), identity)


def model_sd(scales: Mapping[str, Scale], level: str) -> float | None:
    """Return the standard deviation that calibrates the tests of a level, from a model's rows by form."""
    form = _choose_form({form: len(row.words) for form, row in scales.items()}, level)
    return None if form is None else scales[form].cosine_sd


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
    form = _choose_form({form: len(words) for form, words in common.items()}, results[0].level)
    if form is None:
        most = max((len(words) for words in common.values()), default=0)
        both = "both" if len(results) == 2 else "all"
        return (
            f"{both} models know only {most} of the frequent words that give the cosine SD; "
            f"at least {_FEWEST} are needed"
        )
    cut = [_cut_triangle(*own[form], common[form]) for own in tables]
    sds = tuple(map(similarity_sd, cut))
    if min(sds) < MIN_SD:
        return f"not testable: the cosine SD of frequent words is {min(sds):.1g}, below {MIN_SD:g}"
    ends = fit_line_ends(len(cut))
    return SharedScale(sds, log_contrast_variance(cut, ends[1] - ends[0]), len(common[form]))


def fit_line_ends(count: int) -> _Floats:
    """Return the weights with which values at equal steps give both ends of their least-squares line.

    Returns
    -------
    (2, count) float64
        Weights of the first and of the last end. With two values these are the values themselves.
    """
    steps = np.arange(count) - (count - 1) / 2.0
    return 1.0 / count + np.outer(steps[[0, -1]], steps) / (steps @ steps)


@cache
def _test_words() -> tuple[str, ...]:
    tests = [test for test in select_tests() if test.level == "word"]
    return tuple(dict.fromkeys(word for test in tests for role in ROLES for word in test.concept(role).words))


def _list_scale_words(inputs: AssociationInputs, capabilities: Capabilities) -> dict[str, tuple[str, ...]]:
    """List the words of each form. A model with a vocabulary may lack frequent words, so it gets a second list."""
    if inputs.contexts is not None or not has_scale(inputs.settings.metric):
        return {}
    levels = dict.fromkeys(test.level for test in inputs.tests if test.has_known_words)
    lists: dict[str, tuple[str, ...]] = {level: load_frequent_words() for level in levels}
    if capabilities.has_vocabulary:
        lists |= {f"{level} {_TESTS}": _test_words() for level in levels}
    return lists


def _make_texts(form: str, word: str) -> list[tuple[str, tuple[int, int]]]:
    """Make the texts of a word, with its span in each."""
    templates = SCALE_TEMPLATES if form.startswith("sentence") else ("{}",)
    starts = [template.index("{}") for template in templates]
    return [(t.format(word), (start, start + len(word))) for t, start in zip(templates, starts, strict=True)]


def _is_usable(encoded: TextEmbeddings, row: int, span: tuple[int, int]) -> bool:
    vector, cut = encoded.vectors[row], encoded.truncated_at[row]
    if any(start < span[1] and span[0] < end for start, end in encoded.unknown[row]) or (
        cut is not None and cut < span[1]
    ):
        return False
    return bool(np.isfinite(vector).all() and vector.any())


def _make_scale_events(form: str, table: _Floats, words: tuple[str, ...], identity: Identity) -> Iterator[Event]:
    if len(words) < 2:
        return
    values = table[np.triu_indices(len(words), 1)].astype(np.float32)
    yield Row(
        "scales",
        Scale(identity.name, identity.options, identity.revision, form, words, float(np.std(values, dtype=np.float64))),
    )
    yield Array(f"scales/{form}", values)


def _choose_form(numbers: Mapping[str, int], level: str) -> str | None:
    """Choose frequent words if there are enough, else words of the shipped tests, else the few frequent ones."""
    if numbers.get(level, 0) >= _WANTED:
        return level
    return next((form for form in (f"{level} {_TESTS}", level) if numbers.get(form, 0) >= _FEWEST), None)


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


def _cut_triangle(words: Sequence[str], triangle: NDArray[np.floating], kept: Sequence[str]) -> _Floats:
    table = np.zeros((len(words), len(words)))
    table[np.triu_indices(len(words), 1)] = triangle
    table += table.T
    indices = [words.index(word) for word in kept]
    return table[np.ix_(indices, indices)]


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CalibratedTables:
    """One test on an old and a new model, or on the checkpoints of a series.

    Attributes
    ----------
    cosines : tuple of array
        Similarities of the words in common on each model, clusters averaged.
    sizes : (int, int, int, int)
        Words or clusters of X, Y, A and B.
    scale : SharedScale or None
        None if the metric declares no scale: then similarities are not divided.
    """

    cosines: tuple[Floats, ...]
    sizes: tuple[int, int, int, int]
    scale: SharedScale | None

    @property
    def calibrated(self) -> list[Floats]:
        """Calibrated similarities on each model."""
        sds = (1.0,) * len(self.cosines) if self.scale is None else self.scale.sds
        return [table / sd for table, sd in zip(self.cosines, sds, strict=True)]

    @property
    def ends(self) -> Floats:
        """Calibrated similarities on the old and the new model, or at both ends of the line through a series."""
        return np.tensordot(fit_line_ends(len(self.cosines)), self.calibrated, 1)

    @property
    def tolerance(self) -> float:
        """Largest difference of calibrated tables that rounding of float32 vectors makes: 1e-6 in cosine units."""
        return TOLERANCE if self.scale is None else TOLERANCE / min(1.0, *self.scale.sds)

    @property
    def scale_variance(self) -> float:
        """Variance of the log ratio of the last scale to the first."""
        return 0.0 if self.scale is None else self.scale.variance


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
        matched = match_cosines(results, tables)
        if not all(matched.sizes):
            return "no words in common"
        if not all(np.isfinite(table).all() for table in matched.tables):
            return "not all cosines of words are numbers; measure again"
        scale = self.find_scale(results)
        return scale if isinstance(scale, str) else CalibratedTables(matched.tables, matched.sizes, scale)

    def find_scale(self, results: Sequence[Result]) -> SharedScale | str | None:
        """Return the scales of models for the tests of one level; None if the metric declares no scale."""
        if not has_scale(results[0].metric):
            return None
        key = tuple(map(model_key, results)), results[0].level
        if key not in self._scales:
            self._scales[key] = find_shared_scale(self.run, results)
        return self._scales[key]
