"""Word discovery as a study, its inputs, and consistency checks of stored runs."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.datasets.catalogue import select_grouping
from biassay.datasets.groups import Group, Grouping
from biassay.errors import StimulusError, UsageError
from biassay.io import read_text
from biassay.models.backend import Capability
from biassay.models.word_vectors import frequent_words
from biassay.results.outcomes import Decision, Finding, ResultRecord
from biassay.results.run_data import RunData, group_rows_by_model
from biassay.results.run_folder import (
    MANIFEST_JSON,
    RESULTS_JSON,
    Fault,
    StudySchema,
    array_path,
    find_models_without,
    find_orphans,
    find_unknown,
)
from biassay.stats.detection import DetectionCurve
from biassay.studies.discovery.measure import (
    CURVE_ARRAYS,
    VocabularySearch,
    find_known_rows,
    make_group_events,
    make_group_name_vectors,
    validate_words,
)
from biassay.studies.discovery.results import (
    TABLES,
    CurveRow,
    DiscoveryInputsRecord,
    DiscoveryModelRow,
    GroupResult,
    decide_group,
    make_findings,
)
from biassay.studies.discovery.settings import DiscoverySettings
from biassay.studies.study import Event, Progress, Requests, Row, Study, Tables, UnknownWords, derive_seed


@dataclass(frozen=True, eq=False)
class DiscoveryInputs:
    """Groups and words of a search, checked before the first request. `listed` holds the user's words."""

    settings: DiscoverySettings
    grouping: Grouping
    targets: tuple[Group, ...]
    listed: tuple[str, ...] | None
    record: DiscoveryInputsRecord

    @property
    def names(self) -> list[str]:
        """Names of all groups, group by group."""
        return [name for group in self.grouping.groups for name in group.names]

    def searched(self, model: Capabilities) -> Sequence[str] | None:
        """Return the words to request, or None if the model lists its own.

        Words that differ in case only are requested once if the model ignores case.
        """
        if self.listed is None:
            return None if model.has_vocabulary else frequent_words()
        if not model.folds_case:
            return self.listed
        return tuple({word.lower(): word for word in reversed(self.listed)}.values())[::-1]

    def vocabulary(self, model: Capabilities) -> str:
        """Describe the words to search."""
        if self.listed is not None:
            return self.settings.words or "a list of words"
        return "the words of the model" if model.has_vocabulary else "the most frequent words of the embedded vectors"


def _read_given_words(settings: DiscoverySettings) -> tuple[str, ...] | None:
    """Read distinct words from a list, or from a file with one word per line."""
    if settings.own_words is not None:
        found = tuple(dict.fromkeys(filter(str.strip, settings.own_words)))
    elif settings.words is not None:
        found = tuple(dict.fromkeys(filter(None, map(str.strip, read_text(Path(settings.words)).splitlines()))))
    else:
        return None
    if not found:
        raise StimulusError(f"{settings.words or 'a list of words'}: no words; write one word per line")
    return found


def _find_in_counts(row: CurveRow, arrays: Mapping[str, NDArray[np.float64]]) -> str:
    """Compare the rates at the threshold in use with the counts at all thresholds."""
    found = [arrays.get(f"{row.group}/{row.task}/{name}") for name in CURVE_ARRAYS]
    thresholds, *counts = (array for array in found if array is not None)
    if len(counts) < 4 or thresholds.ndim != 1 or any(array.shape != thresholds.shape for array in counts):
        return "thresholds and counts are missing or have different shapes"
    at, table = np.flatnonzero(thresholds == row.chosen), np.stack(counts)
    if len(at) != 1 or not ((table >= 0) & (table < 2**53) & (table == np.rint(table))).all():
        return "no threshold is the one in use, or a count is not a whole number"
    tp, fp, fn, tn = table.astype(np.int64)
    curve = DetectionCurve(thresholds, tp, fp, fn, tn, area=row.outcome.effect_size or 0.0)
    with np.errstate(all="ignore"):
        rates = [float(rates[at[0]]) for rates in (curve.accuracy, curve.precision, curve.tpr, curve.fpr)]
    stored = [row.accuracy, np.nan if row.precision is None else row.precision, row.recall, row.false_positive_rate]
    if not np.allclose(rates, stored, rtol=1e-6, atol=1e-9, equal_nan=True):
        return f"the counts at the threshold {row.chosen:g} give other rates than {RESULTS_JSON}"
    return ""


_BATCH_WORDS = 8192


class _DiscoveryStudy(Study):
    name = "discovery"
    title = "Words associated with groups"
    schema = StudySchema(DiscoverySettings, DiscoveryInputsRecord, TABLES)
    presenter_path = "biassay.studies.discovery.report:DiscoveryPresenter"

    def load_inputs(self, settings: DiscoverySettings) -> DiscoveryInputs:
        grouping = select_grouping(settings.grouping)
        if not settings.groups:
            raise UsageError(f"no group given; choose from: {', '.join(group.name for group in grouping.groups)}")
        targets = tuple(grouping.group(name) for name in dict.fromkeys(settings.groups))
        if settings.rule == "all" and len(targets[0].belongs) == 1:
            raise UsageError(
                f"{grouping.name}: the groups have one category only, so --rule all does not apply; use --rule any"
            )
        listed = _read_given_words(settings)
        digest = hashlib.blake2b("\n".join(listed or ()).encode(), digest_size=8).hexdigest()
        record = DiscoveryInputsRecord(
            grouping=grouping.name,
            grouping_title=grouping.title,
            grouping_digest=grouping.digest,
            citation=grouping.source.citation,
            licence=grouping.source.licence,
            groups={group.name: group.names for group in grouping.groups},
            labels={group.name: group.label for group in grouping.groups},
            vocabulary_digest=None if listed is None else digest,
            clusters={group.name: group.clusters for group in grouping.groups if group.clusters},
            language=grouping.source.language,
        )
        return DiscoveryInputs(settings, grouping, targets, listed, record)

    def required_capabilities(self, settings: DiscoverySettings) -> tuple[Capability, ...]:
        return ("texts",)

    def cache_key(self, inputs: DiscoveryInputs) -> Any:
        return inputs.record, inputs.grouping, inputs.targets

    def requests(self, inputs: DiscoveryInputs, capabilities: Capabilities) -> Requests:
        texts = (*inputs.names, *inputs.grouping.validation_words, *(inputs.searched(capabilities) or ()))
        return Requests(tuple(dict.fromkeys(texts)))

    def measure(
        self, inputs: DiscoveryInputs, model: ModelOutputs, all_outputs: Sequence[ModelOutputs]
    ) -> Iterator[Event]:
        grouping, settings = inputs.grouping, inputs.settings
        name_vectors = make_group_name_vectors(
            grouping, model.read_texts(inputs.names), settings.max_unknown, model.capabilities.oov_hint
        )
        rated, vectors, oov_rated = _encode_known(model, grouping.validation_words)
        validations = {
            target.name: validate_words(name_vectors, target, rated, vectors, settings) for target in inputs.targets
        }
        thresholds = {name: validation.thresholds for name, validation in validations.items()}
        rng = np.random.default_rng(derive_seed(settings.seed, grouping.name, "names"))
        search = VocabularySearch(name_vectors, inputs.targets, thresholds, settings, rng)
        unknown = yield from _search_vocabulary(search, inputs, model)
        found = search.ranked()
        for target in inputs.targets:
            of_group = validations[target.name], found[target.name]
            yield from make_group_events(model.identity, grouping, target, *of_group)
        oov_words = () if inputs.listed is None else tuple(unknown)
        row = DiscoveryModelRow(
            model=model.identity.name,
            options=model.identity.options,
            vocabulary=inputs.vocabulary(model.capabilities),
            oov_names=dict(name_vectors.oov_names),
            oov_validation=tuple(oov_rated),
            oov_words=oov_words,
            similar_names=dict(name_vectors.similar),
        )
        yield Row("models", row)
        oov_names = (name for names in name_vectors.oov_names.values() for name in names)
        yield UnknownWords((*oov_names, *oov_rated, *oov_words))

    def finalize_tables(self, settings: DiscoverySettings, tables: Tables) -> Tables:
        return {**tables, "decisions": self.decide(settings, tables.get("groups", ()))}

    def decide(self, settings: DiscoverySettings, records: Sequence[ResultRecord]) -> tuple[Decision, ...]:
        """Decide by the number of associated words, whose false discovery rate is controlled over the vocabulary."""
        return tuple(decide_group(record, settings) for record in records if isinstance(record, GroupResult))

    def find_faults(self, run: RunData) -> Iterator[Fault]:
        """Yield groups that are unknown, and curves whose counts do not reproduce the stored rates."""
        inputs: DiscoveryInputsRecord = run.manifest.inputs
        for group in inputs.groups.keys() - inputs.labels.keys():
            yield Fault(MANIFEST_JSON, f"inputs.labels: no label of the group {group!r}")
        yield from find_models_without(run, "models")
        for table, fields in (("groups", ("group", "other_groups")), ("models", ("oov_names", "similar_names"))):
            for field in fields:
                yield from find_unknown(run, table, field, inputs.groups)
        yield from find_orphans(run, ("results", "validated", "curves"), "groups", ("group",))
        arrays = run.arrays_by_model()
        for index, rows in enumerate(group_rows_by_model(run.manifest.models, run.tables.get("curves", ()))):
            own, file = arrays.get(str(index), {}), array_path(str(index))
            for row in rows:
                if fault := _find_in_counts(row, own):
                    yield Fault(file if own else RESULTS_JSON, f"{row.group}/{row.task}: {fault}")

    def findings(self, run: RunData) -> Sequence[Finding]:
        return make_findings(run)


def _encode_known(model: ModelOutputs, words: Sequence[str]) -> tuple[list[str], NDArray[np.floating], list[str]]:
    """Return the words in the vocabulary, their vectors, and the out-of-vocabulary words."""
    encoded = model.read_texts(words)
    known = find_known_rows(encoded)
    there = [words[row] for row in np.flatnonzero(known).tolist()]
    return there, encoded.vectors[known], [words[row] for row in np.flatnonzero(~known).tolist()]


def _search_vocabulary(
    search: VocabularySearch, inputs: DiscoveryInputs, model: ModelOutputs
) -> Generator[Event, None, list[str]]:
    """Search the vocabulary block by block, and return the requested words that are out of vocabulary."""
    words, oov = inputs.searched(model.capabilities), list[str]()
    if words is None:
        for block in model.vocabulary():
            search.add(block.words, block.vectors)
            yield Progress(block.unit, block.done, block.total)
        return []
    for at in range(0, len(words), _BATCH_WORDS):
        there, vectors, unknown = _encode_known(model, words[at : at + _BATCH_WORDS])
        search.add(there, vectors)
        oov += unknown
        yield Progress("words", min(at + _BATCH_WORDS, len(words)), len(words))
    return oov


STUDY = _DiscoveryStudy()
