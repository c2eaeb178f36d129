"""The scale of a model's similarities, measured on frequent words, and the scale that two models share.

The words never depend on the chosen tests. Word tests use frequent words by themselves. Sentence tests use them in the
two templates that most classes of words share, averaged per word. Tests over contexts use words of the contexts file,
with equally many contexts each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from biassay.answers.answers import Abilities, Answers
from biassay.errors import UnknownNameError
from biassay.models.base import Encoded, Identity
from biassay.results.data import RunData, is_of
from biassay.stats.association import unit_rows
from biassay.stats.cosine_scale import log_ratio_variance, similarity_sd
from biassay.stimuli.catalogue import select_tests
from biassay.stimuli.model import ROLES
from biassay.studies.associations.averaging import mean_rows
from biassay.studies.associations.crossing import LEAST_SD
from biassay.studies.associations.inputs import AssociationInputs
from biassay.studies.associations.metric_registry import metric_named
from biassay.studies.associations.metrics import ByPairs
from biassay.studies.associations.records import Result, Scale
from biassay.studies.study import Array, Event, Row
from biassay.texts.vocabulary import SCALE_TEMPLATES, frequent_words

__all__ = [
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
Floats = NDArray[np.float64]


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
        chosen = metric_named(metric)
    except UnknownNameError:
        return False
    return isinstance(chosen, ByPairs) and getattr(chosen, "scale", None) == "sd"


def list_scale_texts(inputs: AssociationInputs, abilities: Abilities) -> list[str]:
    """Return the texts whose vectors give the scales that the tests need."""
    lists = _word_lists(inputs, abilities).items()
    return [text for form, words in lists for word in words for text, _ in _texts(form, word)]


def measure_scales(inputs: AssociationInputs, model: Answers) -> Iterator[Event]:
    """Yield a row and an array for each form of text of the tests."""
    metric = metric_named(inputs.settings.metric)
    for form, words in _word_lists(inputs, model.abilities).items():
        assert isinstance(metric, ByPairs)
        asked = [(word, text, span) for word in words for text, span in _texts(form, word)]
        encoded = model.only([text for _, text, _ in asked]).texts([text for _, text, _ in asked])
        usable = [_is_usable(encoded, i, span) for i, (_, _, span) in enumerate(asked)]
        lost = {word for (word, _, _), known in zip(asked, usable, strict=True) if not known}
        kept = [i for i, (word, _, _) in enumerate(asked) if word not in lost]
        if kept:
            owners, vectors = [asked[i][0] for i in kept], encoded.vectors[kept]
            table = mean_rows(metric.matrix_of_words(vectors, owners, vectors).T, owners)
            yield from _events(form, table, tuple(dict.fromkeys(owners)), model.identity)


def measure_context_scale(
    vectors: Mapping[str, NDArray[np.floating]], count: int, identity: Identity
) -> Iterator[Event]:
    """Yield the row and the array of words in contexts; each word has `count` contexts, others are left out."""
    means = {word: unit_rows(rows[:count], word).mean(axis=0) for word, rows in vectors.items() if len(rows) >= count}
    if means:
        table = np.stack(list(means.values()))
        yield from _events("context", table @ table.T, tuple(means), identity)


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
    tables = [_tables(run, result) for result in (old, new)]
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
    first, second = (_cut(*own[form], common[form]) for own in tables)
    sds = similarity_sd(first), similarity_sd(second)
    if min(sds) < LEAST_SD:
        return f"not testable: the cosine SD of frequent words is {min(sds):.1g}, below {LEAST_SD:g}"
    return SharedScale(*sds, log_ratio_variance(first, second), len(common[form]))


@cache
def _test_words() -> tuple[str, ...]:
    tests = [test for test in select_tests() if test.level == "word"]
    return tuple(dict.fromkeys(word for test in tests for role in ROLES for word in test.concept(role).words))


def _word_lists(inputs: AssociationInputs, abilities: Abilities) -> dict[str, tuple[str, ...]]:
    """The words of each form; a model that lists its words may lack frequent ones, so it gets a second list."""
    if inputs.contexts is not None or not has_scale(inputs.settings.metric):
        return {}
    levels = dict.fromkeys(test.level for test in inputs.tests if test.tells_words)
    lists: dict[str, tuple[str, ...]] = {level: frequent_words() for level in levels}
    if abilities.has_vocabulary:
        lists |= {f"{level} {_TESTS}": _test_words() for level in levels}
    return lists


def _texts(form: str, word: str) -> list[tuple[str, tuple[int, int]]]:
    """The texts of a word, with its place in each."""
    templates = SCALE_TEMPLATES if form.startswith("sentence") else ("{}",)
    starts = [template.index("{}") for template in templates]
    return [(t.format(word), (start, start + len(word))) for t, start in zip(templates, starts, strict=True)]


def _is_usable(encoded: Encoded, row: int, span: tuple[int, int]) -> bool:
    vector, cut = encoded.vectors[row], encoded.cut[row]
    if any(start < span[1] and span[0] < end for start, end in encoded.unknown[row]) or (
        cut is not None and cut < span[1]
    ):
        return False
    return bool(np.isfinite(vector).all() and vector.any())


def _events(form: str, table: Floats, words: tuple[str, ...], identity: Identity) -> Iterator[Event]:
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


def _tables(run: RunData, result: Result) -> dict[str, tuple[tuple[str, ...], NDArray[np.floating]]]:
    """Words and upper triangles of a result's model, by form."""
    models = enumerate(run.manifest.models)
    place, record = next(((i, record) for i, record in models if is_of(result, record)), (-1, None))
    rows = [row for row in run.tables.get("scales", ()) if record is not None and is_of(row, record)]
    found = {row.form: (row.words, run.arrays.get(f"{place}/scales/{row.form}")) for row in rows}
    return {
        form: (words, values)
        for form, (words, values) in found.items()
        if values is not None and len(values) == len(words) * (len(words) - 1) // 2
    }


def _cut(words: Sequence[str], triangle: NDArray[np.floating], kept: Sequence[str]) -> Floats:
    table = np.zeros((len(words), len(words)))
    table[np.triu_indices(len(words), 1)] = triangle
    table += table.T
    places = [words.index(word) for word in kept]
    return table[np.ix_(places, places)]
