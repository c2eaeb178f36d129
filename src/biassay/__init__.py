"""biassay measures social bias and stereotypes in text encoders and language models.

    import biassay
    biassay.weat(X, Y, A, B)                 four sets of vectors -> effect size and p-values
    biassay.ceat(X, Y, A, B)                 the same with many contexts per word -> a distribution and its mean
    biassay.ibd(words, target, others, threshold=1.0)
                                             which words lean to a group more than to others
    biassay.discover("glove", "african-american-females")
                                             the same over a whole vocabulary, with p-values
    biassay.run(["use", "glove"])            models and tests by name -> a run with its results

Importing the package loads nothing heavy; each name below is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from biassay.encoders.registry import open_encoder
    from biassay.errors import BiassayError
    from biassay.measures.ceat import ContextualAssociation, ceat
    from biassay.measures.ibd import Detection, eibd, ibd
    from biassay.measures.weat import Association, weat, wefat
    from biassay.pipeline.associations import run
    from biassay.pipeline.contextual import resume_ceat, run_ceat
    from biassay.pipeline.corpus import find_contexts
    from biassay.pipeline.discovery import discover
    from biassay.pipeline.resuming import resume
    from biassay.pipeline.stereotypes import stereotypes
    from biassay.results.discovery import Discovery
    from biassay.results.records import Result
    from biassay.results.run import Run
    from biassay.results.stereotypes import Stereotypes
    from biassay.stats.alignment import kendall_alignment, precision_at
    from biassay.stats.detection import DetectionCurve, detection_curve
    from biassay.stats.multiple import Correction, benjamini_hochberg, holm
    from biassay.stats.sensitivity import sensitivity
    from biassay.stimuli.catalogue import select_tests

__all__ = [
    "Association",
    "BiassayError",
    "ContextualAssociation",
    "Correction",
    "Detection",
    "DetectionCurve",
    "Discovery",
    "Result",
    "Run",
    "Stereotypes",
    "benjamini_hochberg",
    "ceat",
    "detection_curve",
    "discover",
    "eibd",
    "find_contexts",
    "holm",
    "ibd",
    "kendall_alignment",
    "open_encoder",
    "precision_at",
    "resume",
    "resume_ceat",
    "run",
    "run_ceat",
    "select_tests",
    "sensitivity",
    "stereotypes",
    "weat",
    "wefat",
]

_HOME = {
    "Association": "biassay.measures.weat",
    "BiassayError": "biassay.errors",
    "ContextualAssociation": "biassay.measures.ceat",
    "Correction": "biassay.stats.multiple",
    "Detection": "biassay.measures.ibd",
    "DetectionCurve": "biassay.stats.detection",
    "Discovery": "biassay.results.discovery",
    "Result": "biassay.results.records",
    "Run": "biassay.results.run",
    "Stereotypes": "biassay.results.stereotypes",
    "benjamini_hochberg": "biassay.stats.multiple",
    "ceat": "biassay.measures.ceat",
    "detection_curve": "biassay.stats.detection",
    "discover": "biassay.pipeline.discovery",
    "eibd": "biassay.measures.ibd",
    "find_contexts": "biassay.pipeline.corpus",
    "holm": "biassay.stats.multiple",
    "ibd": "biassay.measures.ibd",
    "kendall_alignment": "biassay.stats.alignment",
    "open_encoder": "biassay.encoders.registry",
    "precision_at": "biassay.stats.alignment",
    "resume": "biassay.pipeline.resuming",
    "resume_ceat": "biassay.pipeline.contextual",
    "run": "biassay.pipeline.associations",
    "run_ceat": "biassay.pipeline.contextual",
    "select_tests": "biassay.stimuli.catalogue",
    "sensitivity": "biassay.stats.sensitivity",
    "stereotypes": "biassay.pipeline.stereotypes",
    "weat": "biassay.measures.weat",
    "wefat": "biassay.measures.weat",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("biassay")
    if name not in _HOME:
        raise AttributeError(f"module 'biassay' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
