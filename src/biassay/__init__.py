"""Measure social bias and stereotypes in text encoders and language models.

    import biassay
    biassay.weat(X, Y, A, B)                 effect size and p-values of four sets of vectors
    biassay.ceat(X, Y, A, B)                 effect size and p-values of words in many contexts
    biassay.name_audit(scores, groups)       differences between groups of names in documents, and selection rates
    biassay.judged_audit(scores, labels, groups)
                                             differences between groups in scores of a judge, corrected by human labels
    biassay.ibd(words, target, others, threshold=1.0)
                                             words that are closer to a group than to others
    biassay.discover("glove", "african-american-females")
                                             such words in a whole vocabulary, with p-values
    biassay.run(["use", "glove"])            run tests on models and return the results

Importing the package loads nothing heavy: each name is imported when it is first used. ``__init__.pyi`` lists them.
"""

from __future__ import annotations

from typing import Any

from biassay.stubs import attach_stub

_get_name, __dir__, __all__ = attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # takes 30 ms

        return version("biassay")
    return _get_name(name)
