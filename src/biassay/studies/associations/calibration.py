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
from biassay.results.run_data import RunData, belongs_to
from biassay.results.views import ModelKey, model_key
from biassay.stats.association import unit_rows
from biassay.stats.cosine_tables import log_ratio_variance, similarity_sd
from biassay.stats.model_difference import TOLERANCE
from biassay.studies.associations.contributions import MIN_SD, get_cosines, pair_cosines
from biassay.studies.associations.inputs import AssociationInputs
from biassay.studies.associations.metrics import PairwiseMetric, get_metric
from biassay.studies.associations.results import Scale
from biassay.studies.associations.weat import mean_rows
from biassay.studies.study import Array, Event, Row

__all__ = [
    "CalibratedPair",
    "Calibration",
    "SharedScale",
    "find_shared_scale",
    "has_scale",
    "list_scale_texts",
    "measure_context_scale",
    "measure_scales",
    "model_sd",
]


_WANTED, _FEWEST = 200, 50  # words
_TESTS = "tests"
_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SharedScale:
    """Scales of two models over the same words.

    Attributes
    ----------
    old, new : float
        Standard deviations of similarities between pairs of words.
    variance : float
        Jackknife variance of log(new / old).
    words : int
        Number of words that both models know.
    """

    old: float
    new: float
    variance: float
    words: int


def has_scale(metric: str) -> bool:
    """Return whether a metric declares that its similarities are divided by their standard deviation.

    A metric of a package that is not installed declares nothing.
    """
    try:
        chosen = get_metric(metric)
    except UnknownNameError:
        return False
    return isinstance(chosen, PairwiseMetric) and getattr(chosen, "scale", None) == "sd"


def list_scale_texts(inputs: AssociationInputs, capabilities: Capabilities) -> list[str]:
    """Return the texts whose vectors give the scales that the tests need."""
    lists = _word_lists(inputs, capabilities).items()
    return [text for form, words in lists for word in words for text, _ in _make_texts(form, word)]


def measure_scales(inputs: AssociationInputs, model: ModelOutputs) -> Iterator[Event]:
    """Yield a row and an array for each form of text of the tests."""
    metric = get_metric(inputs.settings.metric)
    for form, words in _word_lists(inputs, model.capabilities).items():
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
    """Yield the row and the array of words in contexts; each word has `count` contexts, others are left out."""
    means = {word: unit_rows(rows[:count], word).mean(axis=0) for word, rows in vectors.items() if len(rows) >= count}
    if means:
        table = np.stack(list(means.values()))
        yield from _make_scale_events("context", table @ table.T, tuple(means), identity)


def model_sd(scales: Mapping[str, Scale], level: str) -> float | None:
    """Return the standard deviation that calibrates the tests of a level, from a model's rows by form."""
    form = _choose_form({form: len(row.words) for form, row in scales.items()}, level)
    return None if form is None else scales[form].cosine_sd


def find_shared_scale(run: RunData, old: Result, new: Result) -> SharedScale | str:
    """Find the scales of two models over the words that both know, or say why there is none.

    Parameters
    ----------
    run : RunData
        Holds both models.
    old, new : Result
        The same test on two models.

    Returns
    -------
    SharedScale or str
    """
    tables = [_get_triangles(run, result) for result in (old, new)]
    if not all(tables):
        return "the run holds no cosines of frequent words; measure the model again"
    common = {
        form: [word for word in words if word in set(tables[1][form][0])]
        for form, (words, _) in tables[0].items()
        if form in tables[1]
    }
    form = _choose_form({form: len(words) for form, words in common.items()}, old.level)
    if form is None:
        most = max((len(words) for words in common.values()), default=0)
        return (
            f"both models know only {most} of the frequent words that give the cosine SD; at least {_FEWEST} are needed"
        )
    first, second = (_cut_triangle(*own[form], common[form]) for own in tables)
    sds = similarity_sd(first), similarity_sd(second)
    if min(sds) < MIN_SD:
        return f"not testable: the cosine SD of frequent words is {min(sds):.1g}, below {MIN_SD:g}"
    return SharedScale(*sds, log_ratio_variance(first, second), len(common[form]))


@cache
def _test_words() -> tuple[str, ...]:
    tests = [test for test in select_tests() if test.level == "word"]
    return tuple(dict.fromkeys(word for test in tests for role in ROLES for word in test.concept(role).words))


def _word_lists(inputs: AssociationInputs, capabilities: Capabilities) -> dict[str, tuple[str, ...]]:
    """The words of each form; a model that lists its words may lack frequent ones, so it gets a second list."""
    if inputs.contexts is not None or not has_scale(inputs.settings.metric):
        return {}
    levels = dict.fromkeys(test.level for test in inputs.tests if test.has_known_words)
    lists: dict[str, tuple[str, ...]] = {level: load_frequent_words() for level in levels}
    if capabilities.has_vocabulary:
        lists |= {f"{level} {_TESTS}": _test_words() for level in levels}
    return lists


def _make_texts(form: str, word: str) -> list[tuple[str, tuple[int, int]]]:
    """The texts of a word, with its place in each."""
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
        Scale(identity.name, identity.options, form, words, float(np.std(values, dtype=np.float64)), identity.revision),
    )
    yield Array(f"scales/{form}", values)


def _choose_form(numbers: Mapping[str, int], level: str) -> str | None:
    """Frequent words where there are enough, else words of the shipped tests, else the few frequent ones."""
    if numbers.get(level, 0) >= _WANTED:
        return level
    return next((form for form in (f"{level} {_TESTS}", level) if numbers.get(form, 0) >= _FEWEST), None)


def _get_triangles(run: RunData, result: Result) -> dict[str, tuple[tuple[str, ...], NDArray[np.floating]]]:
    """Words and upper triangles of a result's model, by form."""
    models = enumerate(run.manifest.models)
    place, record = next(((i, record) for i, record in models if belongs_to(result, record)), (-1, None))
    rows = [row for row in run.tables.get("scales", ()) if record is not None and belongs_to(row, record)]
    found = {row.form: (row.words, run.arrays.get(f"{place}/scales/{row.form}")) for row in rows}
    return {
        form: (words, values)
        for form, (words, values) in found.items()
        if values is not None and len(values) == len(words) * (len(words) - 1) // 2
    }


def _cut_triangle(words: Sequence[str], triangle: NDArray[np.floating], kept: Sequence[str]) -> _Floats:
    table = np.zeros((len(words), len(words)))
    table[np.triu_indices(len(words), 1)] = triangle
    table += table.T
    places = [words.index(word) for word in kept]
    return table[np.ix_(places, places)]


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CalibratedPair:
    """One test on an old and a new model.

    Attributes
    ----------
    cosines : (array, array)
        Similarities of the words in common, clusters averaged.
    sizes : (int, int, int, int)
        Words or clusters of X, Y, A and B.
    scale : SharedScale or None
        None if the metric declares no scale: then `old` and `new` are the similarities themselves.
    """

    cosines: tuple[Floats, Floats]
    sizes: tuple[int, int, int, int]
    scale: SharedScale | None

    @property
    def old(self) -> Floats:
        return self.cosines[0] if self.scale is None else self.cosines[0] / self.scale.old

    @property
    def new(self) -> Floats:
        return self.cosines[1] if self.scale is None else self.cosines[1] / self.scale.new

    @property
    def tolerance(self) -> float:
        """Largest difference of calibrated tables that rounding of float32 vectors makes: 1e-6 in cosine units."""
        return TOLERANCE if self.scale is None else TOLERANCE / min(1.0, self.scale.old, self.scale.new)

    @property
    def scale_variance(self) -> float:
        return 0.0 if self.scale is None else self.scale.variance


@dataclass(frozen=True, eq=False)
class Calibration:
    """Calibrates the tests of a run that holds several models. Scales are computed once for each pair of models."""

    run: RunData
    _scales: dict[tuple[ModelKey, ModelKey, str], SharedScale | str] = field(default_factory=dict)

    def calibrate(self, old: Result, new: Result) -> CalibratedPair | str:
        """Return the calibrated pair of two results of one test, or the reason why there is none."""
        if old.searched or new.searched:
            return "the words of the test were found by searching one of the models: it is descriptive there"
        tables = get_cosines(old, self.run), get_cosines(new, self.run)
        if tables[0] is None or tables[1] is None:
            return "the run holds no cosines of words; measure the model again"
        both = pair_cosines(old, new, (tables[0], tables[1]))
        if not all(both.sizes):
            return "no words in common"
        if not (np.isfinite(both.first).all() and np.isfinite(both.second).all()):
            return "not all cosines of words are numbers; measure again"
        scale = self.find_scale(old, new)
        return scale if isinstance(scale, str) else CalibratedPair((both.first, both.second), both.sizes, scale)

    def find_scale(self, old: Result, new: Result) -> SharedScale | str | None:
        """Return the scales of two models for the tests of one level; None if the metric declares no scale."""
        if not has_scale(old.metric):
            return None
        key = model_key(old), model_key(new), old.level
        if key not in self._scales:
            self._scales[key] = find_shared_scale(self.run, old, new)
        return self._scales[key]
