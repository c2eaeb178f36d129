"""LEACE: the smallest affine change after which no linear probe beats a constant on the words fitted on."""

from __future__ import annotations

import warnings

import numpy as np

from biassay.models.erasure import Eraser, ErasureMethod, FittingWords


def _fit(given: FittingWords) -> Eraser:
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the package compiles a function in an outdated way
        from concept_erasure import LeaceFitter

    classes = torch.nn.functional.one_hot(torch.from_numpy(given.labels)).to(torch.float64)
    # The constraint on the trace mixes in another projection, after which classes and vectors are correlated again.
    fitted = LeaceFitter.fit(torch.from_numpy(given.vectors), classes, constrain_cov_trace=False).eraser
    kept = np.abs(fitted.proj_right.numpy()).max(axis=1) > 0.0
    return Eraser(fitted.proj_left.numpy()[:, kept], fitted.proj_right.numpy()[kept], fitted.bias.numpy())


METHOD = ErasureMethod(
    "leace",
    "LEACE",
    _fit,
    removes="All linear information about the classes of the words fitted on, with the smallest change of vectors.",
    weakness="The guarantee holds for the words fitted on; other words and nonlinear probes can show the concept.",
    source="Belrose et al. 2023, LEACE: Perfect Linear Concept Erasure in Closed Form, NeurIPS",
    requires=("concept_erasure", "debias"),
)
