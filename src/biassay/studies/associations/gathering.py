"""Runs of association tests put together as one, and corrected anew by family."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UsageError
from biassay.results.data import Manifest, ModelRecord, RunData, is_of
from biassay.results.gathering import Gathered
from biassay.results.labels import ModelKey, model_key
from biassay.results.slices import run_of_tests
from biassay.studies.associations.averaging import labels_of_words
from biassay.studies.associations.crossing import crossed_fields
from biassay.studies.associations.families import with_corrections
from biassay.studies.associations.intervals import cosines_of
from biassay.studies.associations.records import Result
from biassay.studies.associations.settings import PAPERS

__all__ = ["gather", "only_tests", "put_together"]


def only_tests(run: RunData, patterns: Sequence[str]) -> RunData:
    """Select tests of a run by name or pattern. What is shown does not change the family: corrections stay."""
    return run_of_tests(run, patterns) if patterns else run


def gather(runs: Mapping[str, RunData], *, mixed: bool = False) -> list[Gathered]:
    """Those over texts and those over contexts, each put together."""
    over_texts = {name: run for name, run in runs.items() if run.manifest.inputs.contexts is None}
    over_contexts = {name: run for name, run in runs.items() if run.manifest.inputs.contexts is not None}
    return [put_together(part, mixed=mixed) for part in (over_texts, over_contexts) if part]


def put_together(runs: Mapping[str, RunData], *, mixed: bool = False) -> Gathered:
    """Runs as one. What differs in protocol or stimuli is refused unless ``mixed``; then it is said.

    A model that several runs have tested with the same tests is shown once for each run, with the run's name.
    """
    differences = _differences(runs)
    if differences and not mixed:
        raise UsageError(
            "the runs cannot be put together: " + "; ".join(differences) + " (--mixed shows them together all the same)"
        )
    if len(runs) == 1:
        return Gathered(next(iter(runs.values())), runs)
    alpha = min(run.manifest.settings.level for run in runs.values())
    named = {name: _at_level(run, alpha) for name, run in _with_run_names(runs).items()}
    models: list[ModelRecord] = []
    arrays: dict[str, NDArray[np.float64]] = {}
    for run in named.values():
        for place, record in enumerate(run.manifest.models):
            at = next((i for i, known in enumerate(models) if _identity(known) == _identity(record)), len(models))
            models[at : at + 1] = [_joined(models[at], record) if at < len(models) else record]
            arrays |= {f"{at}/{name}": array for name, array in run.arrays_of(place).items()}
    manifest = _manifest(named, models, alpha)
    tables = {name: _ordered(named, name) for run in runs.values() for name in run.tables}
    if _changes_families(named, alpha):
        tables["results"] = with_corrections(tables.get("results", ()), manifest.settings)
    return Gathered(RunData(manifest, tables, arrays), runs, tuple(differences))


def _changes_families(runs: Mapping[str, RunData], alpha: float) -> bool:
    """Do runs together correct otherwise than each alone: a model in several, rows of a paper, another level?"""
    models = [key for run in runs.values() for key in {model_key(row) for row in run.results}]
    rows = [row for run in runs.values() for row in run.results]
    levels = {run.manifest.settings.level for run in runs.values()}
    return len(models) > len(set(models)) or any(row.protocol in PAPERS for row in rows) or levels != {alpha}


def _at_level(run: RunData, alpha: float) -> RunData:
    """The run with the intervals and what else follows from a level; those that cannot be found again are left out."""
    settings = dataclasses.replace(run.manifest.settings, alpha=alpha)

    def changed(row: Result) -> Result:
        x, y, a, b = (len(row.associations.get(role, {})) for role in ("X", "Y", "A", "B"))
        labels = labels_of_words({role: tuple(row.associations.get(role, {})) for role in "XYAB"}, row.clusters)
        sizes = x, y, a, b
        own = crossed_fields(cosines_of(row, run), sizes, settings, row.cosine_sd, labels) or dict.fromkeys(_OF_ALPHA)
        return dataclasses.replace(row, alpha=alpha, **own)

    rows = tuple(row if row.alpha == alpha else changed(row) for row in run.results)
    return RunData(run.manifest, {**run.tables, "results": rows}, run.arrays)


_OF_ALPHA = ("D_low", "D_high", "d_low", "d_high", "calibrated_ci_low", "calibrated_ci_high", "smallest_effect")


def _identity(record: ModelRecord) -> tuple[object, ...]:
    return record.name, record.family, record.revision, tuple(record.settings.items())


def _joined(one: ModelRecord, other: ModelRecord) -> ModelRecord:
    """One model in two runs: what encoding took is that of both."""
    return dataclasses.replace(
        one,
        texts=one.texts + other.texts,
        encoded=one.encoded + other.encoded,
        seconds=round(one.seconds + other.seconds, 3),
        words_lost=tuple(sorted({*one.words_lost, *other.words_lost})),
    )


def _ordered(runs: Mapping[str, RunData], table: str) -> tuple[Any, ...]:
    """All rows of a table; those of one model from several runs beside each other."""
    rows = [row for run in runs.values() for row in run.tables.get(table, ())]
    first: dict[ModelKey, int] = {}
    for row in rows:
        first.setdefault(model_key(row), len(first))
    return tuple(sorted(rows, key=lambda row: first[model_key(row)]))


def _manifest(runs: Mapping[str, RunData], models: Sequence[ModelRecord], alpha: float) -> Manifest:
    made = [run.manifest for run in runs.values()]
    finished = [manifest.finished for manifest in made]
    tests = tuple({(t.name, t.digest): t for manifest in made for t in manifest.inputs.tests}.values())
    return dataclasses.replace(
        made[0],
        run_id="+".join(manifest.run_id for manifest in made),
        status="complete" if all(manifest.status == "complete" for manifest in made) else "running",
        created=min(manifest.created for manifest in made),
        finished=None if None in finished else max(filter(None, finished)),
        models=tuple(models),
        settings=dataclasses.replace(made[0].settings, alpha=alpha),
        inputs=dataclasses.replace(made[0].inputs, tests=tests),
    )


def _with_run_names(runs: Mapping[str, RunData]) -> dict[str, RunData]:
    """The runs, with the name of the run at every model that another run has tested with one of the same tests."""
    seen: dict[tuple[ModelKey, str], set[str]] = {}
    for name, run in runs.items():
        for r in run.results:
            seen.setdefault((model_key(r), r.test), set()).add(name)
    shared = {(key, name) for (key, _), names in seen.items() if len(names) > 1 for name in names}
    return {name: _renamed(run, name, {key for key, of in shared if of == name}) for name, run in runs.items()}


def _renamed(run: RunData, name: str, keys: set[ModelKey]) -> RunData:
    def is_shared(record: ModelRecord) -> bool:
        return any(is_of(r, record) for r in run.results if model_key(r) in keys)

    def named(row: Any) -> Any:
        return dataclasses.replace(row, model=f"{row.model} [{name}]") if model_key(row) in keys else row

    models = tuple(
        dataclasses.replace(record, name=f"{record.name} [{name}]") if is_shared(record) else record
        for record in run.manifest.models
    )
    tables = {table: tuple(map(named, rows)) for table, rows in run.tables.items()}
    return RunData(dataclasses.replace(run.manifest, models=models), tables, run.arrays)


def _differences(runs: Mapping[str, RunData]) -> list[str]:
    """In what the runs differ that changes what their numbers mean."""
    found = []
    settings = {name: run.manifest.settings for name, run in runs.items()}
    for what, field in _ALIKE.items():
        found += _unlike(what, {name: getattr(of, field) for name, of in settings.items()})
    over = {name: run.manifest.inputs.contexts for name, run in runs.items()}
    found += _unlike("contexts", {name: of.digest for name, of in over.items() if of is not None})
    digests: dict[str, dict[str, str]] = {}
    for name, run in runs.items():
        for r in run.results:
            digests.setdefault(r.test, {})[name] = r.test_digest
    changed = {test: of for test, of in digests.items() if len(set(of.values())) > 1}
    if changed:
        more = f" and {len(changed) - 5} more" if len(changed) > 5 else ""
        where = dict.fromkeys(name for of in changed.values() for name in of)
        named = ", ".join(list(changed)[:5])
        found.append(f"these tests have the same name and other texts: {named}{more} (in {', '.join(where)})")
    return found


_ALIKE = {
    "metric": "metric",
    "protocol": "protocol",
    "alternative": "alternative",
    "alpha": "level",
    "family": "family",
    "number of samples": "n_samples",
    "draw of contexts": "mode",
    "window": "window",
    "fewest contexts": "min_contexts",
}


def _unlike(what: str, values: Mapping[str, object]) -> list[str]:
    if len(set(values.values())) < 2:
        return []
    return [f"{what} is " + ", ".join(f"{value} in {name}" for name, value in values.items())]
