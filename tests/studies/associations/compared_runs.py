"""Runs to compare: of other models, and with other results."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from tests.results.made_runs import with_rows

from biassay.runs.run import Run
from biassay.studies.associations.families import with_corrections
from biassay.studies.associations.records import Result

TESTS = ("weat6", "weat7", "weat8", "sent-weat6")


def other_model(run: Run, name: str, seed: int, **given: Any) -> Run:
    """The same tests with other cosines of the words and other p-values; ``given`` changes the settings."""
    rng = np.random.default_rng(seed)
    arrays = {
        place: table + table.std() * rng.normal(size=table.shape) if place.endswith("/cosines") else table
        for place, table in run.arrays.items()
    }
    results = tuple(
        dataclasses.replace(r, model=name, p_value=float(rng.random() ** 6), p_value_by_word=float(rng.random() ** 6))
        for r in run.results
    )
    models = tuple(dataclasses.replace(record, name=name) for record in run.manifest.models)
    settings = dataclasses.replace(run.manifest.settings, **given)
    rows = with_corrections(results, settings)
    made = with_rows(run, rows, run_id=name, models=models, settings=settings)
    return dataclasses.replace(made, arrays=arrays)


def in_one(first: Run, second: Run) -> Run:
    """Two runs as one that measured both models."""
    manifest = dataclasses.replace(first.manifest, models=(*first.manifest.models, *second.manifest.models))
    arrays = {**first.arrays, **{f"1/{name.removeprefix('0/')}": array for name, array in second.arrays.items()}}
    return Run(manifest, {"results": (*first.results, *second.results)}, arrays)


def keeping(run: Run, test: str, **words: Collection[str]) -> Run:
    """A run whose model knows only these of the words of a role, and its cosines of them."""
    result, arrays = of(run, test), dict(run.arrays)
    known = {r: {w: v for w, v in of_role.items() if w in words.get(r, of_role)} for r, of_role in roles(result)}
    masks = {r: [w in known[r] for w in of_role] for r, of_role in roles(result)}
    place = f"0/{test}/cosines"
    arrays[place] = arrays[place][np.ix_(masks["X"] + masks["Y"], masks["A"] + masks["B"])]
    return dataclasses.replace(edited(run, test, associations=known), arrays=arrays)


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
    changed = (dataclasses.replace(r, **given) if r.test == test else r for r in run.results)
    return with_rows(run, changed)


def without(run: Run, *tests: str) -> Run:
    return with_rows(run, (r for r in run.results if r.test not in tests))


def of(run: Run, test: str) -> Result:
    (found,) = [r for r in run.results if r.test == test]
    return found
