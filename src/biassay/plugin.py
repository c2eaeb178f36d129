"""Everything that an extension imports: studies, metrics, model backends and benchmarks.

Names here are stable; other modules may change at any time. A name is imported when it is first
used, so that a light plugin stays light. docs/extending.md describes each of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from biassay.cache.outputs import Capabilities, ModelOutputs
    from biassay.datasets.catalogue import select_tests
    from biassay.datasets.schema import Test
    from biassay.errors import DegenerateError, MeasurementError, ModelError, StimulusError, UsageError
    from biassay.io import content_digest, read_text
    from biassay.models.backend import Capability, ModelBackend, ModelName
    from biassay.models.base import BLANK_COLUMNS, BlankScores, Identity, Reply, TextEmbeddings
    from biassay.models.representation import Representation
    from biassay.prompts.requests import Blank, LikelihoodRequest, Prompt, Slot
    from biassay.prompts.sentences import make_texts
    from biassay.results.decisions import correct_by_model
    from biassay.results.findings import Finding
    from biassay.results.outcomes import (
        DECISIONS,
        Decision,
        Evidence,
        Outcome,
        Result,
        ResultRecord,
        join_decisions,
        make_alternative_columns,
        make_outcome_columns,
    )
    from biassay.results.run_data import BaseRecord, RunData
    from biassay.results.run_folder import Fault, StudySchema
    from biassay.results.tables import Column, TableSpec
    from biassay.results.views import model_key, model_labels
    from biassay.stats.association import effect_size, unit_rows
    from biassay.stats.multiple_testing import benjamini_hochberg, holm
    from biassay.stats.permutation import permutation_test, smallest_p
    from biassay.studies.associations.metrics import Metric, SetScore, Similarity
    from biassay.studies.associations.weat import Association, weat
    from biassay.studies.settings import setting
    from biassay.studies.study import (
        Array,
        ContextRequests,
        Event,
        Inputs,
        Progress,
        Requests,
        Row,
        Study,
        StudyWarning,
        Tables,
        UnknownWords,
    )

__all__ = [
    "BLANK_COLUMNS",
    "DECISIONS",
    "Array",
    "Association",
    "BaseRecord",
    "Blank",
    "BlankScores",
    "Capabilities",
    "Capability",
    "Column",
    "ContextRequests",
    "Decision",
    "DegenerateError",
    "Event",
    "Evidence",
    "Fault",
    "Finding",
    "Identity",
    "Inputs",
    "LikelihoodRequest",
    "MeasurementError",
    "Metric",
    "ModelBackend",
    "ModelError",
    "ModelName",
    "ModelOutputs",
    "Outcome",
    "Progress",
    "Prompt",
    "Reply",
    "Representation",
    "Requests",
    "Result",
    "ResultRecord",
    "Row",
    "RunData",
    "SetScore",
    "Similarity",
    "Slot",
    "StimulusError",
    "Study",
    "StudySchema",
    "StudyWarning",
    "TableSpec",
    "Tables",
    "Test",
    "TextEmbeddings",
    "UnknownWords",
    "UsageError",
    "benjamini_hochberg",
    "content_digest",
    "correct_by_model",
    "effect_size",
    "holm",
    "join_decisions",
    "make_alternative_columns",
    "make_outcome_columns",
    "make_texts",
    "model_key",
    "model_labels",
    "permutation_test",
    "read_text",
    "select_tests",
    "setting",
    "smallest_p",
    "unit_rows",
    "weat",
]

_HOME = {
    # Studies
    "Study": "biassay.studies.study",
    "Requests": "biassay.studies.study",
    "ContextRequests": "biassay.studies.study",
    "Inputs": "biassay.studies.study",
    "Event": "biassay.studies.study",
    "Row": "biassay.studies.study",
    "Array": "biassay.studies.study",
    "Progress": "biassay.studies.study",
    "StudyWarning": "biassay.studies.study",
    "UnknownWords": "biassay.studies.study",
    "Tables": "biassay.studies.study",
    "StudySchema": "biassay.results.run_folder",
    "Fault": "biassay.results.run_folder",
    "setting": "biassay.studies.settings",
    # Results
    "Outcome": "biassay.results.outcomes",
    "ResultRecord": "biassay.results.outcomes",
    "Decision": "biassay.results.outcomes",
    "Result": "biassay.results.outcomes",
    "Evidence": "biassay.results.outcomes",
    "DECISIONS": "biassay.results.outcomes",
    "join_decisions": "biassay.results.outcomes",
    "make_outcome_columns": "biassay.results.outcomes",
    "make_alternative_columns": "biassay.results.outcomes",
    "correct_by_model": "biassay.results.decisions",
    "Finding": "biassay.results.findings",
    "BaseRecord": "biassay.results.run_data",
    "RunData": "biassay.results.run_data",
    "Column": "biassay.results.tables",
    "TableSpec": "biassay.results.tables",
    "model_key": "biassay.results.views",
    "model_labels": "biassay.results.views",
    # Metrics
    "Metric": "biassay.studies.associations.metrics",
    "SetScore": "biassay.studies.associations.metrics",
    "Similarity": "biassay.studies.associations.metrics",
    "Association": "biassay.studies.associations.weat",
    "weat": "biassay.studies.associations.weat",
    # Models
    "ModelBackend": "biassay.models.backend",
    "ModelName": "biassay.models.backend",
    "Capability": "biassay.models.backend",
    "Identity": "biassay.models.base",
    "TextEmbeddings": "biassay.models.base",
    "BlankScores": "biassay.models.base",
    "BLANK_COLUMNS": "biassay.models.base",
    "Reply": "biassay.models.base",
    "Representation": "biassay.models.representation",
    "ModelOutputs": "biassay.cache.outputs",
    "Capabilities": "biassay.cache.outputs",
    # Requests
    "Blank": "biassay.prompts.requests",
    "Slot": "biassay.prompts.requests",
    "Prompt": "biassay.prompts.requests",
    "LikelihoodRequest": "biassay.prompts.requests",
    "make_texts": "biassay.prompts.sentences",
    "Test": "biassay.datasets.schema",
    "select_tests": "biassay.datasets.catalogue",
    # Statistics
    "effect_size": "biassay.stats.association",
    "unit_rows": "biassay.stats.association",
    "permutation_test": "biassay.stats.permutation",
    "smallest_p": "biassay.stats.permutation",
    "holm": "biassay.stats.multiple_testing",
    "benjamini_hochberg": "biassay.stats.multiple_testing",
    # Files and errors
    "content_digest": "biassay.io",
    "read_text": "biassay.io",
    "DegenerateError": "biassay.errors",
    "MeasurementError": "biassay.errors",
    "ModelError": "biassay.errors",
    "StimulusError": "biassay.errors",
    "UsageError": "biassay.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'biassay.plugin' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return list(__all__)
