"""Runs of association tests made by hand, and runs changed by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.results.data import FORMAT_VERSION, Manifest, ModelRecord, TestRecord, place_finder
from biassay.runs.run import Run
from biassay.stats.crossed import crossed_test
from biassay.stats.meta import random_effects
from biassay.studies.associations.averaging import associations_of_words, average_clusters, labels_of_words
from biassay.studies.associations.families import with_corrections
from biassay.studies.associations.records import ContextsRecord, InputsRecord, Result, Scale
from biassay.studies.associations.samples import SAMPLE_ARRAYS
from biassay.studies.associations.settings import Settings

ROLES = ("X", "Y", "A", "B")
LATER = ("p_value_holm", "significant", "significant_holm")
LATER_BY_WORD = ("p_value_by_word_holm", "significant_by_word", "significant_by_word_holm")


def result(model: str = "m", test: str = "t", p: float | None = 0.5, **given: Any) -> Result:
    """A result without settings of its model; ``given`` replaces fields."""
    names = ("title", "targ1", "targ2", "attr1", "attr2", "p_route", "p_route_by_word", "source", "test_version")
    numbers = ("effect_size", "statistic", "log10_p_value", "p_error", "effect_size_by_word", "log10_p_value_by_word")
    fields: dict[str, Any] = {name: name for name in names}
    fields |= dict.fromkeys((*numbers, "p_error_by_word"), 0.25) | {"p_floor_by_word": 0.0}
    fields |= dict.fromkeys((*LATER, *LATER_BY_WORD, "reason", "model_revision"))
    fields |= dict.fromkeys(("num_targ1", "num_targ2", "num_attr1", "num_attr2"), 4)
    fields |= {"model": model, "options": "", "test": test, "p_value": p, "p_value_by_word": p}
    fields |= {"p_value_crossed": p, "D": None if p is None else 0.1, "df_crossed": 10.0, "D_low": 0.0, "D_high": 0.2}
    fields |= {"d_low": 0.0, "d_high": 0.5}
    fields |= {"status": "measured", "level": "word", "protocol": "exact", "alternative": "greater", "alpha": 0.05}
    fields |= {"num_words": dict.fromkeys(ROLES, 4), "num_cut": dict.fromkeys(ROLES, 0), "seed": 0}
    fields |= {"lost": dict.fromkeys(ROLES, ()), "associations": {}, "test_digest": f"digest of {test}"}
    return Result(**fields | given)


def as_refused(row: Result) -> Result:
    """The same test, refused: nothing was computed."""
    numbers = (
        "effect_size",
        "statistic",
        "p_",
        "log10_p_",
        "significant",
        "d_",
        "D",
        "df_",
        "share",
        "smallest",
        "family",
        "calibrated",
    )
    nothing: dict[str, Any] = {f.name: None for f in dataclasses.fields(Result) if f.name.startswith(numbers)}
    return dataclasses.replace(
        row, **nothing, status="refused", reason="too many words", associations={}, contextual=None
    )


def d_span(low: float, high: float, words: Mapping[str, int]) -> str:
    """The interval of d as it is read, by the largest d that so many target words can give."""
    n, m = words["X"], words["Y"]
    most = f"{((n + m) * (n + m - 1) / (n * m)) ** 0.5:.2f}"
    ends = f"{low:z.2f}", f"{high:z.2f}"
    return "any" if ends == (f"-{most}", most) else " to ".join(ends)


def record(name: str, **given: Any) -> ModelRecord:
    fields = {"text": name, "name": name, "family": "f", "revision": None, "settings": {}, "measured": True}
    return ModelRecord(**fields | given)


def contexts(**given: Any) -> ContextsRecord:
    return dataclasses.replace(ContextsRecord("c.parquet", "d", 16, 8, 0, 99, 1000), **given)


def run_of(
    run_id: str,
    rows: Iterable[Result],
    arrays: Mapping[str, NDArray[np.float64]] | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    contexts: ContextsRecord | None = None,
    **given: Any,
) -> Run:
    """A run with these rows, corrected on its own; its models in the order of their rows."""
    rows = tuple(rows)
    tests = dict.fromkeys((r.test, r.test_digest) for r in rows)
    fields: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "run_id": run_id,
        "study": "associations",
        "package": "biassay",
        "status": "complete",
        "created": "2026-01-02T00:00:00+00:00",
        "finished": "2026-01-03T00:00:00+00:00",
        "versions": {"biassay": "0"},
        "models": tuple(record(name) for name in dict.fromkeys(r.model for r in rows)),
        "settings": Settings(**{"contexts": contexts.file if contexts else None} | dict(settings or {})),
        "inputs": InputsRecord(tuple(TestRecord(name, name, d, "s", "c", "l", "1") for name, d in tests), contexts),
    }
    made = Manifest(**fields | given)
    tables = {"results": with_corrections(rows, made.settings), "diagnostics": (), "scales": ()}
    return Run(made, tables if rows else {}, arrays or {})


def some_samples(place: int, test: str, seed: int = 0, count: int = 5) -> dict[str, NDArray[np.float64]]:
    """The arrays of a test over contexts."""
    rng = np.random.default_rng(seed)
    return {f"{place}/{test}/{name}": rng.random(count) for name in SAMPLE_ARRAYS}


def consistent(run: Run) -> Run:
    """The same run with effects as its arrays give them, and with arrays for effects that have none.

    A folder whose arrays give other effects is refused.
    """
    arrays, places = dict(run.arrays), place_finder(run.manifest.models)
    results = tuple(_consistent(row, places(row), arrays) for row in run.tables.get("results", ()))
    scales = tuple(
        dataclasses.replace(row, cosine_sd=float(np.std(arrays[f"{places(row)}/scales/{row.form}"], dtype=np.float64)))
        for row in run.tables.get("scales", ())
    )
    return Run(run.manifest, {**run.tables, "results": results, "scales": scales} if run.tables else {}, arrays)


def _consistent(row: Result, place: int | None, arrays: dict[str, NDArray[np.float64]]) -> Result:
    own = f"{place}/{row.test}"
    if row.contextual is not None:
        if f"{own}/samples" not in arrays:
            arrays |= some_samples(place or 0, row.test)
        effects, variances, p_values = (arrays[f"{own}/{name}"] for name in SAMPLE_ARRAYS)
        pooled, share = random_effects(effects, variances), float((p_values <= row.alpha).mean())
        numbers = {"standard_error": pooled.standard_error, "z": pooled.z, "share_significant": share}
        over = dataclasses.replace(row.contextual, **numbers, n_samples=len(effects))
        row = dataclasses.replace(row, effect_size=pooled.mean, contextual=over)
    if row.D is None or row.searched:
        return row
    words = {role: list(row.associations.get(role, ())) or [f"{role}1", f"{role}2"] for role in ROLES}
    x, y, a, b = sizes = tuple(len(words[role]) for role in ROLES)
    if f"{own}/cosines" not in arrays:
        table = np.zeros((x + y, a + b))
        table[:x, :a] = row.D
        arrays[f"{own}/cosines"] = table
    cosines = arrays[f"{own}/cosines"]
    targets, attributes = associations_of_words(cosines, sizes, labels_of_words(words, row.clusters))
    values = np.split(np.concatenate([targets, attributes]), np.cumsum(sizes)[:-1])
    associations = {
        role: dict(zip(words[role], own.tolist(), strict=True)) for role, own in zip(ROLES, values, strict=True)
    }
    clusters, (n, _, k, _) = average_clusters(cosines, sizes, labels_of_words(words, row.clusters))
    return dataclasses.replace(row, associations=associations, D=crossed_test(clusters, n, k).D)


def with_rows(run: Run, rows: Iterable[Result], **given: Any) -> Run:
    """The same run with other rows; ``given`` changes its manifest."""
    rows = tuple(rows)
    of = {(r.model, r.options, r.model_revision, r.test) for r in rows}
    known = (r for r in run.tables.get("diagnostics", ()) if (r.model, r.options, r.model_revision, r.test) in of)
    tables: dict[str, tuple[Any, ...]] = {"results": rows, "diagnostics": tuple(known)} if rows else {"results": ()}
    if "scales" in run.tables:
        alone = {n: getattr(rows[0], n) for n in ("model", "options", "model_revision")} if rows else {}
        if len(run.manifest.models) > 1:
            alone = {}
        scales = (dataclasses.replace(scale, **alone) for scale in run.tables["scales"])
        tables["scales"] = tuple(scale for scale in scales if scale.model in {r.model for r in rows})
    return Run(dataclasses.replace(run.manifest, **given), tables, run.arrays)


def with_scales(run: Run, sd: float = 0.1, words: int = 80) -> Run:
    """The same run with cosines of frequent words on every model, alike and with this standard deviation."""
    values = np.random.default_rng(0).normal(size=words * (words - 1) // 2)
    values = ((values - values.mean()) / values.std() * sd).astype(np.float32)
    forms = dict.fromkeys(r.level for r in run.results)
    names = tuple(f"frequent{i}" for i in range(words))
    rows = tuple(Scale(m.name, m.options, f, names, sd, m.revision) for m in run.manifest.models for f in forms)
    arrays: dict[str, Any] = {f"{place}/scales/{f}": values for place in range(len(run.manifest.models)) for f in forms}
    return Run(run.manifest, {**run.tables, "scales": rows}, {**run.arrays, **arrays})


def with_settings(run: Run, **given: Any) -> Run:
    """The same run with other settings."""
    return with_rows(run, run.results, settings=dataclasses.replace(run.manifest.settings, **given))


def stopped(run: Run, measured: int = 0) -> Run:
    """The run as it was when only its first models were measured."""
    models = tuple(dataclasses.replace(m, measured=i < measured) for i, m in enumerate(run.manifest.models))
    kept = {(m.name, m.options) for m in models if m.measured}
    rows = tuple(r for r in run.results if (r.model, r.options) in kept)
    arrays = {name: array for name, array in run.arrays.items() if int(name.partition("/")[0]) < measured}
    manifest = dataclasses.replace(run.manifest, status="running", finished=None, models=models)
    own = tuple(r for r in run.tables.get("diagnostics", ()) if (r.model, r.options) in kept)
    return Run(manifest, {"results": rows, "diagnostics": own} if measured else {}, arrays)
