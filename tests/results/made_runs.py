"""Runs of association tests made by hand, and runs changed by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from biassay.datasets.schema import load_topics
from biassay.results.outcomes import Outcome, Result
from biassay.results.run_data import FORMAT_VERSION, Manifest, ModelRecord, TestRecord, make_model_index_finder
from biassay.runs.run import Run
from biassay.stats.crossed import crossed_test
from biassay.stats.power import largest_d
from biassay.stats.random_effects import random_effects
from biassay.studies.associations.results import (
    SAMPLE_ARRAYS,
    AssociationInputsRecord,
    AssociationRecord,
    Scale,
    decide_associations,
)
from biassay.studies.associations.settings import AssociationSettings
from biassay.studies.associations.weat import associate_words, average_texts, label_words
from biassay.studies.study import ContextsRecord

ROLES = ("X", "Y", "A", "B")
_RECORD = {field.name for field in dataclasses.fields(AssociationRecord)}


def result(model: str = "m", test: str = "t", p: float | None = 0.5, **given: Any) -> AssociationRecord:
    """A record without settings of its model; ``given`` replaces fields as in `altered`."""
    names = ("title", "targ1", "targ2", "attr1", "attr2", "sentences_route", "fixed_words_route", "source")
    fields: dict[str, Any] = {name: name for name in (*names, "test_version")}
    fields |= dict.fromkeys(("num_targ1", "num_targ2", "num_attr1", "num_attr2"), 4)
    fields |= {"model": model, "options": "", "test": test, "statistic": 0.25}
    fields |= {"cosine_difference": None if p is None else 0.1, "cosine_ci_low": 0.0, "cosine_ci_high": 0.2}
    fields |= {"status": "measured", "level": "word", "protocol": "exact", "alternative": "greater", "alpha": 0.05}
    fields |= {"num_words": dict.fromkeys(ROLES, 4), "num_cut": dict.fromkeys(ROLES, 0), "seed": 0}
    fields |= {"oov_words": dict.fromkeys(ROLES, ()), "associations": {}, "test_digest": f"digest of {test}"}
    crossed = Outcome(
        effect_size=0.25, ci_low=0.0, ci_high=0.5, limit=largest_d(4, 4), p_value=p, df=10.0, test="crossed"
    )
    plain = Outcome(effect_size=0.25, p_value=p, log10_p_value=0.25)
    words, sentences = (dataclasses.replace(plain, test=name) for name in ("fixed_words", "sentences"))
    alternatives = {"fixed_words": dataclasses.replace(words, p_floor=0.0), "sentences": sentences}
    return altered(AssociationRecord(**fields, outcome=crossed, alternatives=alternatives), **given)


def stored(row: Result | AssociationRecord) -> AssociationRecord:
    """The record of a result."""
    return cast("AssociationRecord", row.record) if isinstance(row, Result) else row


def altered(row: Result | AssociationRecord, **given: Any) -> AssociationRecord:
    """The record with other values, named as attributes of a result: ``p_value``, ``sentences_p_value``, ``title``."""
    record = stored(row)
    outcomes = {record.outcome.test: record.outcome, **record.alternatives}
    own: dict[str, Any] = {name: value for name, value in given.items() if name in _RECORD}
    for name, value in given.items():
        if name in own:
            continue
        prefix = next((one for one in AssociationRecord.outcome_names if name.startswith(f"{one}_")), None)
        which, field = record.outcome.test if prefix is None else prefix, name.removeprefix(f"{prefix}_")
        outcomes[which] = dataclasses.replace(outcomes.get(which) or Outcome(test=which), **{field: value})
    primary = outcomes.pop(record.outcome.test)
    changed: dict[str, Any] = {"outcome": primary, "alternatives": outcomes, **own}
    return dataclasses.replace(record, **changed)


def led_by(row: Result | AssociationRecord, test: str, **given: Any) -> AssociationRecord:
    """The record with another primary outcome; those that lead before it are left out, except under a protocol."""
    record = stored(row)
    outcomes = {record.outcome.test: record.outcome, **record.alternatives}
    primary = outcomes.pop(test)
    return altered(dataclasses.replace(record, outcome=primary, alternatives=outcomes), **given)


def as_papers(row: Result | AssociationRecord, protocol: str = "may2019", **given: Any) -> AssociationRecord:
    """The record under a protocol of the papers: the test over texts leads."""
    return led_by(row, "sentences", protocol=protocol, **given)


def as_by_word(row: Result | AssociationRecord, **given: Any) -> AssociationRecord:
    """The record without a crossed test: the test over target words leads."""
    record = led_by(row, "fixed_words", cosine_difference=None, **given)
    return dataclasses.replace(record, alternatives={k: v for k, v in record.alternatives.items() if k != "crossed"})


def as_by_text(row: Result | AssociationRecord, **given: Any) -> AssociationRecord:
    """The record of texts whose words are unknown: the test over texts is described."""
    record = led_by(row, "sentences", cosine_difference=None, claim="descriptive", **given)
    return dataclasses.replace(record, alternatives={})


def over_contexts(row: Result | AssociationRecord, **given: Any) -> AssociationRecord:
    """The record as one over contexts, with a pooled effect."""
    numbers = {"pooled_effect_size": 0.25, "pooled_standard_error": 0.125, "pooled_p_value": 0.5, "statistic": 2.0}
    own: dict[str, Any] = {
        "share_significant": 0.25,
        "n_samples": 40,
        "new_contexts_low": -0.5,
        "new_contexts_high": 0.75,
    }
    own |= {"fewest_documents": 3, "num_contexts": {role: {"one": 7, "two": 8} for role in ROLES}}
    return altered(row, **numbers | own | given)


def as_refused(row: Result | AssociationRecord) -> AssociationRecord:
    """The same test, skipped: nothing was computed."""
    numbers = ("statistic", "p_equi", "cosine_", "share_", "calibrated", "n_samples", "new_contexts", "num_contexts")
    nothing: dict[str, Any] = {name: None for name in _RECORD if name.startswith(numbers)}
    nothing |= {"outcome": Outcome(), "alternatives": {}, "fewest_documents": None}
    return dataclasses.replace(
        stored(row), **nothing, status="skipped", reason="too many words", associations={}, shared_templates=None
    )


def d_span(low: float, high: float, words: Mapping[str, int]) -> str:
    """The interval of d as it is read, by the largest d that so many target words can give."""
    n, m = words["X"], words["Y"]
    most = f"{((n + m) * (n + m - 1) / (n * m)) ** 0.5:.2f}"
    ends = f"{low:z.2f}", f"{high:z.2f}"
    return "full range" if ends == (f"-{most}", most) else f"[{', '.join(ends)}]"


def record(name: str, **given: Any) -> ModelRecord:
    fields: dict[str, Any] = {
        "text": name,
        "name": name,
        "backend": "f",
        "revision": None,
        "settings": {},
        "measured": True,
    }
    return ModelRecord(**fields | given)


def contexts(**given: Any) -> ContextsRecord:
    return dataclasses.replace(ContextsRecord("c.parquet", "d", 16, 8, 0, 99, 1000), **given)


def run_of(
    run_id: str,
    rows: Iterable[Result | AssociationRecord],
    arrays: Mapping[str, NDArray[np.float64]] | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    contexts: ContextsRecord | None = None,
    **given: Any,
) -> Run:
    """A run with these rows, corrected on its own; its models in the order of their rows."""
    records = tuple(map(stored, rows))
    tests = dict.fromkeys((r.test, r.test_digest) for r in records)
    fields: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "run_id": run_id,
        "study": "associations",
        "package": "biassay",
        "status": "complete",
        "created": "2026-01-02T00:00:00+00:00",
        "finished": "2026-01-03T00:00:00+00:00",
        "versions": {"biassay": "0"},
        "models": tuple(record(name) for name in dict.fromkeys(r.model for r in records)),
        "settings": AssociationSettings(**{"contexts": contexts.file if contexts else None} | dict(settings or {})),
        "inputs": AssociationInputsRecord(
            tuple(TestRecord(name, name, d, "s", "c", "l", "1") for name, d in tests), contexts
        ),
    }
    made = Manifest(**fields | given)
    decisions = decide_associations(made.settings, records)
    tables = {"results": records, "diagnostics": (), "measures": (), "scales": (), "topics": (), "decisions": decisions}
    return Run(made, tables if records else {}, arrays or {})


def decided(row: AssociationRecord) -> Result:
    """The record with the decision of a run that has no other."""
    (only,) = run_of("one", [row]).results
    return cast("Result", only)


def some_samples(place: int, test: str, seed: int = 0, count: int = 5) -> dict[str, NDArray[np.float64]]:
    """The arrays of a test over contexts."""
    rng = np.random.default_rng(seed)
    return {f"{place}/{test}/{name}": rng.random(count) for name in SAMPLE_ARRAYS}


def consistent(run: Run) -> Run:
    """The same run with effects as its arrays give them, and with arrays for effects that have none.

    A folder whose arrays give other effects is refused.
    """
    arrays, places = dict(run.arrays), make_model_index_finder(run.manifest.models)
    results = tuple(_consistent(row, places(row), arrays) for row in run.tables.get("results", ()))
    scales = tuple(
        dataclasses.replace(row, cosine_sd=float(np.std(arrays[f"{places(row)}/scales/{row.form}"], dtype=np.float64)))
        for row in run.tables.get("scales", ())
    )
    return Run(run.manifest, {**run.tables, "results": results, "scales": scales} if run.tables else {}, arrays)


def _consistent(row: AssociationRecord, place: int | None, arrays: dict[str, NDArray[np.float64]]) -> AssociationRecord:
    own = f"{place}/{row.test}"
    if row.get_outcome("pooled") is not None:
        if f"{own}/samples" not in arrays:
            arrays |= some_samples(place or 0, row.test)
        effects, variances, p_values = (arrays[f"{own}/{name}"] for name in SAMPLE_ARRAYS)
        pooled, share = random_effects(effects, variances), float((p_values <= row.alpha).mean())
        row = altered(
            row,
            pooled_effect_size=pooled.mean,
            pooled_standard_error=pooled.standard_error,
            statistic=pooled.z,
            share_significant=share,
            n_samples=len(effects),
        )
    if row.cosine_difference is None or row.searched:
        return row
    words = {role: list(row.associations.get(role, ())) or [f"{role}1", f"{role}2"] for role in ROLES}
    x, y, a, b = (len(words[role]) for role in ROLES)
    sizes = x, y, a, b
    if f"{own}/cosines" not in arrays:
        table = np.zeros((x + y, a + b))
        table[:x, :a] = row.cosine_difference
        arrays[f"{own}/cosines"] = table
    cosines = arrays[f"{own}/cosines"]
    targets, attributes = associate_words(cosines, sizes, label_words(words, row.clusters))
    values = np.split(np.concatenate([targets, attributes]), np.cumsum(sizes)[:-1])
    associations = {
        role: dict(zip(words[role], own.tolist(), strict=True)) for role, own in zip(ROLES, values, strict=True)
    }
    clusters, (n, _, k, _) = average_texts(cosines, sizes, label_words(words, row.clusters))
    return dataclasses.replace(row, associations=associations, cosine_difference=crossed_test(clusters, n, k).D)


def with_rows(run: Run, rows: Iterable[Result | AssociationRecord], **given: Any) -> Run:
    """The same run with other rows, decided anew; ``given`` changes its manifest."""
    records, manifest = tuple(map(stored, rows)), dataclasses.replace(run.manifest, **given)
    of = {(r.model, r.options, r.model_revision, r.test) for r in records}
    known = (r for r in run.tables.get("diagnostics", ()) if (r.model, r.options, r.model_revision, r.test) in of)
    tables: dict[str, tuple[Any, ...]] = (
        {"results": records, "diagnostics": tuple(known)} if records else {"results": ()}
    )
    if "scales" in run.tables:
        alone = {n: getattr(records[0], n) for n in ("model", "options", "model_revision")} if records else {}
        if len(run.manifest.models) > 1:
            alone = {}
        scales = (dataclasses.replace(scale, **alone) for scale in run.tables["scales"])
        tables["scales"] = tuple(scale for scale in scales if scale.model in {r.model for r in records})
    tables["decisions"] = decide_associations(manifest.settings, records)
    return Run(manifest, tables, run.arrays)


def with_scales(run: Run, sd: float = 0.1, words: int = 80) -> Run:
    """The same run with cosines of frequent words on every model, alike and with this standard deviation."""
    values = np.random.default_rng(0).normal(size=words * (words - 1) // 2)
    values = ((values - values.mean()) / values.std() * sd).astype(np.float32)
    forms = dict.fromkeys(r.level for r in run.results)
    names = tuple(f"frequent{i}" for i in range(words))
    rows = tuple(Scale(m.name, m.options, m.revision, f, names, sd) for m in run.manifest.models for f in forms)
    arrays: dict[str, Any] = {f"{place}/scales/{f}": values for place in range(len(run.manifest.models)) for f in forms}
    return Run(run.manifest, {**run.tables, "scales": rows}, {**run.arrays, **arrays})


def stopped(run: Run, measured: int = 0) -> Run:
    """The run as it was when only its first models were measured."""
    models = tuple(dataclasses.replace(m, measured=i < measured) for i, m in enumerate(run.manifest.models))
    kept = {(m.name, m.options) for m in models if m.measured}
    rows, decisions = (
        tuple(r for r in run.tables[table] if (r.model, r.options) in kept) for table in ("results", "decisions")
    )
    arrays = {name: array for name, array in run.arrays.items() if int(name.partition("/")[0]) < measured}
    manifest = dataclasses.replace(run.manifest, status="running", finished=None, models=models)
    own = tuple(r for r in run.tables.get("diagnostics", ()) if (r.model, r.options) in kept)
    return Run(manifest, {"results": rows, "diagnostics": own, "decisions": decisions} if measured else {}, arrays)


def ordered(run: Run) -> list[Result]:
    """Return the results in the order of the report: by topic as the data file lists them, sanity checks last."""
    topics: list[str | None] = [*load_topics(), None]
    return sorted(run.results, key=lambda row: (row.about == "method", topics.index(row.topic)))
