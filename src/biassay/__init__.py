"""biassay measures social bias and stereotypes in text encoders and language models.

    import biassay
    biassay.weat(X, Y, A, B)                 four sets of vectors -> effect size and p-values
    biassay.ceat(X, Y, A, B)                 the same with many contexts per word -> a distribution and its mean
    biassay.ibd(words, target, others, threshold=1.0)
                                             which words are closer to a group than to others
    biassay.discover("glove", "african-american-females")
                                             the same over a whole vocabulary, with p-values
    biassay.run(["use", "glove"])            models and tests by name -> a run with its results

Importing the package loads nothing heavy; each name below is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from biassay.errors import BiassayError
    from biassay.models.registry import open_encoder
    from biassay.pages.charts.drawing import Figure
    from biassay.results.comparison import Comparison
    from biassay.results.findings import Finding
    from biassay.runs.associations import run, run_ceat
    from biassay.runs.benchmarks import benchmark
    from biassay.runs.corpus import find_contexts
    from biassay.runs.discovery import discover
    from biassay.runs.functions import measure, resume
    from biassay.runs.importing import import_logs
    from biassay.runs.reporting import compare, report
    from biassay.runs.robustness import robustness
    from biassay.runs.run import Run, load
    from biassay.runs.stereotypes import stereotypes
    from biassay.runs.word_association import ask
    from biassay.stats.alignment import kendall_alignment, precision_at
    from biassay.stats.detection import DetectionCurve, detection_curve
    from biassay.stats.multiple import Correction, benjamini_hochberg, holm
    from biassay.stats.sensitivity import sensitivity
    from biassay.stimuli.catalogue import select_tests
    from biassay.studies.associations.ceat import ContextualAssociation, ceat
    from biassay.studies.associations.power import Power, power
    from biassay.studies.associations.records import Result
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
    "run_ceat",
    "score_responses",
    "select_tests",
    "sensitivity",
    "stereotypes",
    "weat",
    "wefat",
]

_HOME = {
    "Association": "biassay.studies.associations.weat",
    "BiassayError": "biassay.errors",
    "ContextualAssociation": "biassay.studies.associations.ceat",
    "Comparison": "biassay.results.comparison",
    "Correction": "biassay.stats.multiple",
    "Detection": "biassay.studies.discovery.ibd",
    "DetectionCurve": "biassay.stats.detection",
    "Figure": "biassay.pages.charts.drawing",
    "Finding": "biassay.results.findings",
    "Power": "biassay.studies.associations.power",
    "Result": "biassay.studies.associations.records",
    "Run": "biassay.runs.run",
    "ScoredResponses": "biassay.studies.word_association.scoring",
    "ask": "biassay.runs.word_association",
    "benchmark": "biassay.runs.benchmarks",
    "benjamini_hochberg": "biassay.stats.multiple",
    "ceat": "biassay.studies.associations.ceat",
    "compare": "biassay.runs.reporting",
    "detection_curve": "biassay.stats.detection",
    "discover": "biassay.runs.discovery",
    "eibd": "biassay.studies.discovery.ibd",
    "find_contexts": "biassay.runs.corpus",
    "holm": "biassay.stats.multiple",
    "ibd": "biassay.studies.discovery.ibd",
    "import_logs": "biassay.runs.importing",
    "kendall_alignment": "biassay.stats.alignment",
    "load": "biassay.runs.run",
    "measure": "biassay.runs.functions",
    "open_encoder": "biassay.models.registry",
    "power": "biassay.studies.associations.power",
    "precision_at": "biassay.stats.alignment",
    "report": "biassay.runs.reporting",
    "resume": "biassay.runs.functions",
    "robustness": "biassay.runs.robustness",
    "run": "biassay.runs.associations",
    "run_ceat": "biassay.runs.associations",
    "score_responses": "biassay.studies.word_association.scoring",
    "select_tests": "biassay.stimuli.catalogue",
    "sensitivity": "biassay.stats.sensitivity",
    "stereotypes": "biassay.runs.stereotypes",
    "weat": "biassay.studies.associations.weat",
    "wefat": "biassay.studies.associations.weat",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("biassay")
    if name not in _HOME:
        raise AttributeError(f"module 'biassay' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
