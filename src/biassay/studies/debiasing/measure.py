"""Measure associations, a probe, a name audit and what is lost, before and after a concept is erased."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import NDArray

from biassay.cache.outputs import ModelOutputs
from biassay.models.base import TextEmbeddings
from biassay.models.erasure import Erasure
from biassay.prompts.sentences import load_frequent_words
from biassay.results.comparison import EffectDifference
from biassay.results.outcomes import Outcome
from biassay.results.paired_comparison import make_differences
from biassay.results.run_data import (
    FORMAT_VERSION,
    Manifest,
    ModelRecord,
    RunData,
    copy_fields,
    get_model_fields,
    model_key,
    model_labels,
)
from biassay.stats.association import unit_rows
from biassay.stats.probe import compare_probes, probe_classes
from biassay.stats.rank_correlation import correlate_ranks
from biassay.studies.associations.compare import AssociationDifference, compare_associations
from biassay.studies.associations.findings import format_label
from biassay.studies.associations.study import STUDY as ASSOCIATIONS
from biassay.studies.audit.compare import pair_audit_groups
from biassay.studies.audit.study import STUDY as AUDIT
from biassay.studies.debiasing.results import AFTER, BEFORE, DebiasingResult, Part
from biassay.studies.study import Array, Event, Inputs, Progress, Row, Study, StudyWarning, derive_seed

if TYPE_CHECKING:
    from biassay.studies.debiasing.study import DebiasingInputs

Floats = NDArray[np.float64]
_FEWEST = 10  # held-out words of a class, and pairs of words
_NEIGHBOURS = 10
_N_BOOTSTRAP = 2000
_UNIT = "document SD"


def measure_debiasing(inputs: DebiasingInputs, model: ModelOutputs) -> Iterator[Event]:
    """Yield the rows of one model, and the fitted erasers as arrays."""
    outputs = [model, *map(model.erase, inputs.erasures)]
    for erasure, erased in zip(inputs.erasures, outputs[1:], strict=True):
        eraser = erased.fit_eraser()
        for name in ("left", "right", "centre"):
            yield Array(f"{erasure.method.name}/{name}", getattr(eraser, name))
    for number, measure in enumerate((_measure_associations, _measure_probe, _measure_audit, _measure_loss), start=1):
        yield from measure(inputs, outputs)
        yield Progress("parts", number, 4)


def _collect_run(study: Study, inputs: Inputs, outputs: Sequence[ModelOutputs]) -> tuple[RunData, list[Event]]:
    """Measure several models by another study; return the run, and the warnings about the first model."""
    tables, arrays, warnings = dict[str, list[Any]](), dict[str, Any](), list[Event]()
    for index, model in enumerate(outputs):
        for event in study.measure(inputs, model, [model]):
            match event:
                case Row(table, record):
                    tables.setdefault(table, []).append(record)
                case Array(name, values):
                    arrays[f"{index}/{name}"] = values
                case StudyWarning() if index == 0:
                    warnings.append(event)
    records = tuple(
        ModelRecord(one.name, one.name, one.backend, one.revision, dict(one.settings))
        for one in (output.identity for output in outputs)
    )
    manifest = Manifest(
        FORMAT_VERSION, "", study.name, study.package, "complete", "", None, {}, records, inputs.settings, inputs.record
    )
    finished = study.finalize_tables(inputs.settings, {name: tuple(rows) for name, rows in tables.items()})
    return RunData(manifest, finished, arrays), warnings


def _make_row(
    model: ModelOutputs, erasure: Erasure, part: Part, name: str, change: Outcome, *both: Outcome, **fields: Any
) -> Row:
    """Make a row from the change and the outcomes before and after erasure; without a change, it is skipped."""
    measured = change.effect_size is not None
    record = DebiasingResult(
        **get_model_fields(model.identity),
        method=erasure.method.name,
        concept=erasure.concept.title,
        part=part,
        name=name,
        status="measured" if measured else "skipped",
        reason=None if measured else change.reason,
        claim="descriptive",
        outcome=change,
        alternatives=dict(zip((BEFORE, AFTER), both, strict=False)),
        **fields,
    )
    return Row("results", record)


def _make_change(row: EffectDifference | AssociationDifference, **fields: Any) -> Outcome:
    return Outcome(effect_size=row.difference, ci_low=row.interval_low, ci_high=row.interval_high, **fields)


def _measure_associations(inputs: DebiasingInputs, outputs: Sequence[ModelOutputs]) -> Iterator[Event]:
    run, warnings = _collect_run(ASSOCIATIONS, inputs.associations, outputs)
    yield from warnings
    labels = model_labels(run)
    base, *others = labels.values()
    rows = {(labels[model_key(row)], row.test): row for row in run.tables["results"]}
    compared = compare_associations({"run": run}, baseline=base, mixed=False).tables["associations"]
    scale: dict[str, Any] = {"scale": "calibrated difference", "test": "crossed"}
    for erasure, label in zip(inputs.erasures, others, strict=True):
        for row in (row for row in compared if row.model == label):
            old, new = rows[base, row.test], rows[label, row.test]
            outcomes = (
                Outcome(
                    effect_size=one.calibrated_difference,
                    ci_low=one.calibrated_ci_low,
                    ci_high=one.calibrated_ci_high,
                    p_value=one.outcome.p_value,
                    **scale,
                )
                for one in (old, new)
            )
            change = _make_change(row, reason=old.reason or row.reason, **scale)
            about = {"title": format_label(old), **copy_fields(old, "topic", "about")}
            yield _make_row(outputs[0], erasure, "association", row.test, change, *outcomes, **about)


def _measure_audit(inputs: DebiasingInputs, outputs: Sequence[ModelOutputs]) -> Iterator[Event]:
    run, warnings = _collect_run(AUDIT, inputs.audit, outputs)
    yield from warnings
    labels = model_labels(run)
    base, *others = labels.values()
    rows = {(labels[model_key(row)], row.group): row for row in run.tables["results"]}
    differences = make_differences(pair_audit_groups({"run": run}, base))
    n = {"names": len(inputs.audit.names), "documents": len(inputs.audit.documents)}
    scale: dict[str, Any] = {"scale": _UNIT, "test": "names crossed with documents", "n": n}
    for erasure, label in zip(inputs.erasures, others, strict=True):
        for row in (row for row in differences if row.model == label and row.unit == _UNIT):
            outcomes = (
                replace(one.alternatives.get("standardized", Outcome()), p_value=one.outcome.p_value)
                for one in (rows[base, row.item], rows[label, row.item])
            )
            change = _make_change(row, p_value=row.p_value, reason=row.reason, **scale)
            title = f"{row.item} names in documents"
            yield _make_row(outputs[0], erasure, "audit", f"names: {row.item}", change, *outcomes, title=title)


def _measure_probe(inputs: DebiasingInputs, outputs: Sequence[ModelOutputs]) -> Iterator[Event]:
    concept, interval = inputs.erasures[0].concept, ("ci_low", "ci_high", "p_value")
    known = [_select_known(outputs[0], words) for words in concept.held_out]
    size = min(map(len, known))
    title = f"linear probe of {concept.title.lower()}"
    if size < _FEWEST:
        reason = f"only {size} held-out words of a class are in the vocabulary; a probe needs {_FEWEST}"
        for erasure in inputs.erasures:
            yield _make_row(outputs[0], erasure, "probe", "probe", Outcome(reason=reason), title=title)
        return
    words = [word for own in known for word in own[:size]]
    labels = np.repeat(np.arange(len(known)), size)
    vectors = [model.restrict(words).texts(words).vectors for model in outputs]
    directions: list[NDArray[np.floating]] = [unit_rows(vectors[0], "held-out words"), *vectors[1:]]
    seed = derive_seed(inputs.settings.seed, concept.name, "probe")
    base, *probes = (probe_classes(direction, labels, rng=np.random.default_rng(seed)) for direction in directions)
    for erasure, probe in zip(inputs.erasures, probes, strict=True):
        found = compare_probes(base, probe)
        own: dict[str, Any] = {"scale": "share", "test": "paired words", "n": {"held-out words": len(words)}}
        change = Outcome(effect_size=found.value, **copy_fields(found, *interval), **own)
        own = {"scale": "share", "test": "permutation of words"}
        outcomes = (
            Outcome(effect_size=one.accuracy, null=one.chance, **copy_fields(one, *interval), **own)
            for one in (base, probe)
        )
        yield _make_row(outputs[0], erasure, "probe", "probe", change, *outcomes, title=title, chance=probe.chance)


def _measure_loss(inputs: DebiasingInputs, outputs: Sequence[ModelOutputs]) -> Iterator[Event]:
    frequent = _select_known(outputs[0], load_frequent_words())
    asked = list(dict.fromkeys(word for pair in inputs.similarity for word in pair.words))
    known = set(_select_known(outputs[0], asked))
    pairs = [pair for pair in inputs.similarity if known.issuperset(pair.words)]
    base, *erased = [_WordCosines.read(model, [*known, *frequent]) for model in outputs]
    rng = np.random.default_rng(derive_seed(inputs.settings.seed, "similarity", "bootstrap"))
    for erasure, cosines in zip(inputs.erasures, erased, strict=True):
        ranks = [Outcome(reason=f"{len(pairs)} of the word pairs are in the vocabulary; {_FEWEST} are needed")]
        if len(pairs) >= _FEWEST:
            old, new = (np.array([table.get(*pair.words) for pair in pairs]) for table in (base, cosines))
            ranks = _compare_ranks(np.array([pair.similarity for pair in pairs]), old, new, rng)
        yield _make_row(outputs[0], erasure, "similarity", "similarity", *ranks, title="word similarity")
        kept = base.share_neighbours(cosines, frequent)
        means = _estimate_mean(kept - 1.0), Outcome(effect_size=1.0, scale="share"), _estimate_mean(kept)
        yield _make_row(outputs[0], erasure, "neighbours", "neighbours", *means, title="nearest neighbours")


def _select_known(model: ModelOutputs, words: Sequence[str]) -> list[str]:
    embeddings: TextEmbeddings = model.restrict(words).texts(words)
    return [
        word
        for word, vector, unknown in zip(words, embeddings.vectors, embeddings.unknown, strict=True)
        if not unknown and vector.any() and np.isfinite(vector).all()
    ]


@dataclass(frozen=True, eq=False)
class _WordCosines:
    """Cosines between words."""

    rows: dict[str, int]
    table: Floats

    @classmethod
    def read(cls, model: ModelOutputs, words: Sequence[str]) -> _WordCosines:
        words = list(dict.fromkeys(words))
        units = unit_rows(model.restrict(words).texts(words).vectors, "words")
        return cls({word: row for row, word in enumerate(words)}, units @ units.T)

    def get(self, first: str, second: str) -> float:
        return float(self.table[self.rows[first], self.rows[second]])

    def share_neighbours(self, other: _WordCosines, words: Sequence[str]) -> Floats:
        """Return the share of every word's nearest neighbours among `words` that another table has too."""
        rows = [self.rows[word] for word in words]
        nearest = []
        for one in (self, other):
            table = one.table[np.ix_(rows, rows)].copy()
            np.fill_diagonal(table, -np.inf)
            nearest.append(np.argsort(-table, axis=1)[:, :_NEIGHBOURS])
        shared = [len(np.intersect1d(*pair)) for pair in zip(*nearest, strict=True)]
        return np.array(shared) / _NEIGHBOURS


def _estimate_mean(values: Floats) -> Outcome:
    """Return the mean over words with its t interval."""
    error = float(values.std(ddof=1)) / np.sqrt(len(values))
    reach = float(scipy.stats.t(len(values) - 1).ppf(0.975)) * error
    mean = float(values.mean())
    interval = {"standard_error": error, "ci_low": mean - reach, "ci_high": mean + reach}
    return Outcome(effect_size=mean, **interval, scale="share", n={"words": len(values)})


def _compare_ranks(human: Floats, old: Floats, new: Floats, rng: np.random.Generator) -> list[Outcome]:
    """Return change, old and new rank correlation with human judgements, by a bootstrap over word pairs."""
    drawn = rng.integers(len(human), size=(_N_BOOTSTRAP, len(human)))
    ranked = scipy.stats.rankdata(np.stack([human, old, new])[:, drawn], axis=2)
    centred = ranked - ranked.mean(axis=2, keepdims=True)
    lengths = np.sqrt((centred**2).sum(axis=2))
    first, second = ((centred[0] * centred[i]).sum(axis=1) / (lengths[0] * lengths[i]) for i in (1, 2))
    low, high = np.quantile(second - first, (0.025, 0.975)).tolist()
    found = [correlate_ranks(human, one) for one in (old, new)]
    both = (
        Outcome(effect_size=one.correlation, ci_low=one.low, ci_high=one.high, scale="rank correlation")
        for one in found
    )
    change = Outcome(
        effect_size=found[1].correlation - found[0].correlation,
        ci_low=low,
        ci_high=high,
        scale="rank correlation",
        test="bootstrap of word pairs",
        n={"word pairs": len(human)},
    )
    return [change, *both]
