"""Debiasing as a study: a model before and after a concept is erased from its vectors."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.datasets.data_rows import read_rows
from biassay.errors import StimulusError, UsageError
from biassay.io import content_digest
from biassay.models.backend import Capability
from biassay.models.base import Model
from biassay.models.erasure import Erasure
from biassay.prompts.sentences import load_frequent_words
from biassay.results.run_data import TestRecord
from biassay.results.run_folder import StudySchema
from biassay.studies.associations.settings import AssociationSettings
from biassay.studies.associations.study import STUDY as ASSOCIATIONS
from biassay.studies.associations.study import AssociationInputs, check_held_out
from biassay.studies.associations.study import load_inputs as load_association_inputs
from biassay.studies.audit.inputs import AuditInputs, AuditInputsRecord, draw_names, hold_out_names, load_audit_inputs
from biassay.studies.audit.settings import AuditSettings
from biassay.studies.audit.study import STUDY as AUDIT
from biassay.studies.debiasing.results import TABLES
from biassay.studies.debiasing.settings import DebiasingSettings
from biassay.studies.study import Event, Requests, Study

_DATA = Path(str(resources.files("biassay.datasets") / "data" / "debiasing"))
_DOCUMENTS, _JOBS, _PAIRS = _DATA / "audit" / "resumes.txt", _DATA / "audit" / "jobs.csv", _DATA / "similarity.csv"


@dataclass(frozen=True)
class SimilarPair:
    """Two words and how similar people find them."""

    words: tuple[str, str]
    similarity: float


@dataclass(frozen=True)
class DebiasingInputsRecord:
    """Concept with the digest of its words, tests, names, documents, and the digest of the word pairs."""

    concept: str
    concept_digest: str
    tests: tuple[TestRecord, ...]
    audit: AuditInputsRecord
    similarity_digest: str


@dataclass(frozen=True, eq=False)
class DebiasingInputs:
    """Erasures, and inputs of the studies that measure a model before and after them."""

    settings: DebiasingSettings
    erasures: tuple[Erasure, ...]
    associations: AssociationInputs
    audit: AuditInputs
    similarity: tuple[SimilarPair, ...]
    record: DebiasingInputsRecord


def load_inputs(settings: DebiasingSettings) -> DebiasingInputs:
    """Load the inputs that the settings name. Raise UsageError if a concept is fitted on words of a test."""
    if not settings.method:
        raise UsageError("no method given; name one with --method")
    erasures = tuple(Erasure.make(method, settings.concept) for method in dict.fromkeys(settings.method))
    concept, words = erasures[0].concept, erasures[0].words
    tests = settings.tests or concept.tests
    if not tests:
        raise UsageError(f"the concept {concept.name!r} names no tests; name them with --tests")
    associations = load_association_inputs(
        AssociationSettings(tests=tests, random_sets=0, alpha=settings.alpha, seed=settings.seed)
    )
    check_held_out(associations.tests, erasures[0].name, words)
    own_documents = settings.documents is not None
    audit = load_audit_inputs(
        AuditSettings(
            documents=settings.documents or str(_DOCUMENTS),
            query=settings.query or (() if own_documents else (str(_JOBS),)),
            names=settings.names or concept.audit_names,
            by=settings.by or (() if settings.names else concept.audit_by),
            n_names=settings.n_names,
            alpha=settings.alpha,
            seed=settings.seed,
        )
    )
    pairs_file = Path(settings.similarity or _PAIRS)
    audit = hold_out_names(audit, words)
    record = DebiasingInputsRecord(
        concept.name, concept.digest, associations.record.tests, audit.record, content_digest(pairs_file)
    )
    return DebiasingInputs(settings, erasures, associations, audit, _read_pairs(pairs_file), record)


def _read_pairs(path: Path) -> tuple[SimilarPair, ...]:
    """Read word pairs with their similarity."""
    pairs = []
    for row in read_rows(path, "expected columns word_1, word_2 and similarity"):
        try:
            similarity = float(row.value("similarity"))
        except (TypeError, ValueError):
            similarity = math.nan
        if not math.isfinite(similarity):
            row.fail("similarity", "expected a number")
        pairs.append(SimilarPair((row.text("word_1"), row.text("word_2")), similarity))
    if len({pair.similarity for pair in pairs}) < 2:
        raise StimulusError(f"{path}: the word pairs need different similarities")
    return tuple(pairs)


class _DebiasingStudy(Study):
    name = "debiasing"
    title = "Debiasing"
    schema = StudySchema(DebiasingSettings, DebiasingInputsRecord, TABLES)
    presenter_path = "biassay.studies.debiasing.report:DebiasingPresenter"

    def packages(self, settings: DebiasingSettings) -> tuple[str, ...]:
        return (self.package, *(["concept-erasure"] if "leace" in settings.method else []))

    def load_inputs(self, settings: DebiasingSettings) -> DebiasingInputs:
        return load_inputs(settings)

    def required_capabilities(self, settings: DebiasingSettings) -> tuple[Capability, ...]:
        return ("texts",)

    def hold_out(self, inputs: DebiasingInputs, erasure: str, words: Collection[str]) -> DebiasingInputs:
        raise UsageError(f"a model already erases a concept (erase={erasure}); give it without erase=")

    def fit_inputs(self, inputs: DebiasingInputs, models: Sequence[Model]) -> DebiasingInputs:
        audit = draw_names(inputs.audit, models)
        return replace(inputs, audit=audit, record=replace(inputs.record, audit=audit.record))

    def cache_key(self, inputs: DebiasingInputs) -> Any:
        return inputs.record, inputs.associations.tests, inputs.similarity

    def requests(self, inputs: DebiasingInputs, capabilities: Capabilities) -> Requests:
        concept = inputs.erasures[0].concept
        texts = [
            *ASSOCIATIONS.requests(inputs.associations, capabilities).texts,
            *inputs.erasures[0].words,
            *(word for words in concept.held_out for word in words),
            *(word for pair in inputs.similarity for word in pair.words),
            *load_frequent_words(),
        ]
        blocks = AUDIT.requests(inputs.audit, capabilities).text_blocks
        return Requests(texts=tuple(dict.fromkeys(texts)), text_blocks=blocks)

    def measure(
        self, inputs: DebiasingInputs, model: ModelOutputs, all_outputs: Sequence[ModelOutputs]
    ) -> Iterator[Event]:
        from biassay.studies.debiasing.measure import measure_debiasing

        yield from measure_debiasing(inputs, model)


STUDY = _DebiasingStudy()
