"""Measure social bias and stereotypes in text encoders and language models.

    import biassay
    biassay.weat(X, Y, A, B)                 effect size and p-values of four sets of vectors
    biassay.ceat(X, Y, A, B)                 the same for words in many contexts
    biassay.ibd(words, target, others, threshold=1.0)
                                             words that are closer to a group than to others
    biassay.discover("glove", "african-american-females")
                                             such words in a whole vocabulary, with p-values
    biassay.run(["use", "glove"])            run tests on models and return the results

Importing the package loads nothing heavy: each name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from biassay.datasets.catalogue import select_tests
    from biassay.errors import BiassayError
    from biassay.models.registry import open_encoder
    from biassay.reporting.charts.base import Figure
    from biassay.results.comparison import Comparison
    from biassay.results.findings import Finding
    from biassay.results.outcomes import Result
    from biassay.runs.api import ask, benchmark, discover, measure, resume, robustness, run, stereotypes
    from biassay.runs.compare import compare, report
    from biassay.runs.contexts import find_contexts
    from biassay.runs.log_import import import_logs
    from biassay.runs.run import Run, load
    from biassay.stats.alignment import kendall_alignment, precision_at
    from biassay.stats.detection import DetectionCurve, detection_curve
    from biassay.stats.multiple_testing import Correction, benjamini_hochberg, holm
    from biassay.stats.sensitivity import sensitivity
    from biassay.studies.associations.ceat import ContextualAssociation, ceat
    from biassay.studies.associations.power import Power, power
    from biassay.studies.associations.weat import Association, weat, wefat
    from biassay.studies.discovery.ibd import Detection, eibd, ibd
    from biassay.studies.word_association.scoring import ScoredResponses, score_responses

__all__ = [
    "Association",
    "BiassayError",
    "Comparison",
    "ContextualAssociation",
    "Correction",
    "Detection",
    "DetectionCurve",
    "Figure",
    "Finding",
    "Power",
    "Result",
    "Run",
    "ScoredResponses",
    "ask",
    "benchmark",
    "benjamini_hochberg",
    "ceat",
    "compare",
    "detection_curve",
    "discover",
    "eibd",
    "find_contexts",
    "holm",
    "ibd",
    "import_logs",
    "kendall_alignment",
    "load",
    "measure",
    "open_encoder",
    "power",
    "precision_at",
    "report",
    "resume",
    "robustness",
    "run",
    "score_responses",
    "select_tests",
    "sensitivity",
    "stereotypes",
    "weat",
    "wefat",
]

_MODULES = {
    "biassay.datasets.catalogue": ("select_tests",),
    "biassay.errors": ("BiassayError",),
    "biassay.models.registry": ("open_encoder",),
    "biassay.reporting.charts.base": ("Figure",),
    "biassay.results.comparison": ("Comparison",),
    "biassay.results.findings": ("Finding",),
    "biassay.results.outcomes": ("Result",),
    "biassay.runs.api": ("ask", "benchmark", "discover", "measure", "resume", "robustness", "run", "stereotypes"),
    "biassay.runs.compare": ("compare", "report"),
    "biassay.runs.contexts": ("find_contexts",),
    "biassay.runs.log_import": ("import_logs",),
    "biassay.runs.run": ("Run", "load"),
    "biassay.stats.alignment": ("kendall_alignment", "precision_at"),
    "biassay.stats.detection": ("DetectionCurve", "detection_curve"),
    "biassay.stats.multiple_testing": ("Correction", "benjamini_hochberg", "holm"),
    "biassay.stats.sensitivity": ("sensitivity",),
    "biassay.studies.associations.ceat": ("ContextualAssociation", "ceat"),
    "biassay.studies.associations.power": ("Power", "power"),
    "biassay.studies.associations.weat": ("Association", "weat", "wefat"),
    "biassay.studies.discovery.ibd": ("Detection", "eibd", "ibd"),
    "biassay.studies.word_association.scoring": ("ScoredResponses", "score_responses"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("biassay")
    if name not in _HOME:
        raise AttributeError(f"module 'biassay' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
