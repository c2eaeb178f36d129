"""Runs to compare: of other models, and with other results."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.results.made_runs import altered, result, run_of, with_rows, with_scales

from biassay.results.comparison import Comparison
from biassay.results.outcomes import Result
from biassay.runs.run import Run
from biassay.studies.associations.compare import AssociationDifference

TESTS = ("weat6", "weat7", "weat8", "sent-weat6")


def other_model(run: Run, name: str, seed: int, noise: float = 1.0, **given: Any) -> Run:
    """The same tests with other cosines of the words and other p-values; ``given`` changes the settings."""
    rng = np.random.default_rng(seed)
    arrays = {
        place: table + noise * table.std() * rng.normal(size=table.shape) if place.endswith("/cosines") else table
        for place, table in run.arrays.items()
    }
    results = []
    for r in run.results:
        p, by_word = (float(rng.random() ** 6) for _ in range(2))
        by_word = max(by_word, r.fixed_words_p_floor or 0.0)
        results.append(altered(r, model=name, sentences_p_value=p, fixed_words_p_value=by_word))
    models = tuple(dataclasses.replace(record, name=name) for record in run.manifest.models)
    settings = dataclasses.replace(run.manifest.settings, **given)
    made = with_rows(run, results, run_id=name, models=models, settings=settings)
    return dataclasses.replace(made, arrays=arrays)


def in_one(first: Run, second: Run) -> Run:
    """Two runs as one that measured both models."""
    manifest = dataclasses.replace(first.manifest, models=(*first.manifest.models, *second.manifest.models))
    arrays = {**first.arrays, **{f"1/{name.removeprefix('0/')}": array for name, array in second.arrays.items()}}
    tables = {name: (*first.tables[name], *second.tables[name]) for name in ("results", "scales", "decisions")}
    return Run(manifest, tables, arrays)


def keeping(run: Run, test: str, **words: Collection[str]) -> Run:
    """A run whose model knows only these of the words of a role, and its cosines of them."""
    result, arrays = of(run, test), dict(run.arrays)
    known = {r: {w: v for w, v in of_role.items() if w in words.get(r, of_role)} for r, of_role in roles(result)}
    masks = {r: [w in known[r] for w in of_role] for r, of_role in roles(result)}
    place = f"0/{test}/cosines"
    arrays[place] = arrays[place][np.ix_(masks["X"] + masks["Y"], masks["A"] + masks["B"])]
    return dataclasses.replace(edited(run, test, associations=known), arrays=arrays)


def without_clusters(run: Run) -> Run:
    """Return the run with every word its own cluster."""
    return with_rows(run, (altered(row, clusters={}) for row in run.results))


def roles(result: Result) -> list[tuple[str, dict[str, float]]]:
    return [(role, result.associations[role]) for role in ("X", "Y", "A", "B")]


def cosine(run: Run, test: str) -> Callable[[str, str, str, str], float]:
    """Of a target and an attribute, by role and word."""
    words = [[(role, w) for role, own in roles(of(run, test)) if role in side for w in own] for side in ("XY", "AB")]
    rows, columns = ({word: i for i, word in enumerate(side)} for side in words)
    table = run.arrays[f"0/{test}/cosines"]
    return lambda role, target, other, attribute: float(table[rows[role, target], columns[other, attribute]])


def edited(run: Run, test: str, **given: Any) -> Run:
    """With other values in one result."""
    return with_rows(run, (altered(r, **given) if r.test == test else r for r in run.results))


def without(run: Run, *tests: str) -> Run:
    return with_rows(run, (r for r in run.results if r.test not in tests))


def of(run: Run, test: str) -> Result:
    found: Result
    (found,) = [r for r in run.results if r.test == test]
    return found


def rows_of(found: Comparison) -> tuple[AssociationDifference, ...]:
    return found.tables["associations"]


def numbers(r: AssociationDifference) -> tuple[int, ...]:
    return r.num_targ1, r.num_targ2, r.num_attr1, r.num_attr2


def effect(run: Run, test: str, words: Mapping[str, Collection[str]]) -> float:
    """(mean of X less mean of Y) / spread of all, by the book, from the cosines of these words."""
    near = cosine(run, test)

    def association(role: str, target: str) -> float:
        a, b = (statistics.fmean(near(role, target, other, w) for w in words[other]) for other in "AB")
        return a - b

    x, y = ([association(role, word) for word in words[role]] for role in "XY")
    return (statistics.fmean(x) - statistics.fmean(y)) / statistics.stdev([*x, *y])


def in_common(one: Result, other: Result) -> dict[str, list[str]]:
    return {role: [w for w in words if w in other.associations[role]] for role, words in one.associations.items()}


def cut(run: Run, test: str, words: Mapping[str, Collection[str]]) -> NDArray[np.float64]:
    near = cosine(run, test)
    targets, attributes = ([(role, w) for role in side for w in words[role]] for side in ("XY", "AB"))
    return np.array([[near(*target, *attribute) for attribute in attributes] for target in targets])


def calibrated(run: Run, test: str, words: Mapping[str, Collection[str]]) -> tuple[NDArray[np.float64], float]:
    """Cosines of words divided by the standard deviation of those of frequent words, and that standard deviation."""
    form = of(run, test).level
    sd = float(np.std(run.arrays[f"0/scales/{form}"], dtype=np.float64))
    return cut(run, test, words) / sd, sd


def calibrated_difference(run: Run, test: str, words: Mapping[str, Collection[str]]) -> float:
    """Mean association of X less that of Y, by the book, in standard deviations."""
    table, _ = calibrated(run, test, words)
    x, a = len(words["X"]), len(words["A"])
    s = table[:, :a].mean(axis=1) - table[:, a:].mean(axis=1)
    return float(s[:x].mean() - s[x:].mean())


def simulated(
    rng: np.random.Generator,
    size: int,
    tests: int,
    effect: float,
    more: float = 0.0,
    shared: float = 0.7,
    direction: int | None = None,
) -> list[Run]:
    """Two models that share so much of the variance; the second has ``more`` effect. Every test has other words.

    The standard deviation of cosines between frequent words is 0.1.
    """
    side = np.repeat([0.5, -0.5], size)
    words = {role: {f"{role}{i}": 0.0 for i in range(size)} for role in "XYAB"}

    def drawn() -> NDArray[np.float64]:
        targets, attributes = rng.normal(size=2 * size), rng.normal(size=2 * size)
        noise = rng.normal(size=(2 * size, 2 * size))
        return 0.05 * np.outer(targets, side) + 0.05 * np.outer(side, attributes) + 0.08 * noise

    arrays: list[dict[str, NDArray[np.float64]]] = [{}, {}]
    for i in range(tests):
        common = math.sqrt(shared) * drawn()
        for own_effect, of_model in zip((effect, effect + more), arrays, strict=True):
            own = math.sqrt(1.0 - shared) * drawn()
            of_model[f"0/t{i}/cosines"] = own_effect * np.outer(side, side) + common + own
    rows = [
        [result(name, f"t{i}", associations=words, direction=direction) for i in range(tests)]
        for name in ("one", "two")
    ]
    runs = [run_of(str(i), own, of_model) for i, (own, of_model) in enumerate(zip(rows, arrays, strict=True))]
    return [with_scales(run) for run in runs]
