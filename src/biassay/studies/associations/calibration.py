"""Cosines of one test on two models, cut to the words in common and divided by each model's scale."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from biassay.results.data import RunData
from biassay.results.labels import ModelKey, model_key
from biassay.stats.model_difference import TOLERANCE
from biassay.studies.associations.intervals import cosines_of, pair
from biassay.studies.associations.records import Result
from biassay.studies.associations.scales import SharedScale, find_shared_scale, has_scale

__all__ = ["CalibratedPair", "Calibration"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CalibratedPair:
    """One test on an old and a new model.

    Attributes
    ----------
    cosines : (array, array)
        Similarities of the words in common, clusters averaged.
    sizes : (int, int, int, int)
        Words or clusters of X, Y, A and B.
    scale : SharedScale or None
        None if the metric declares no scale: then `old` and `new` are the similarities themselves.
    """

    cosines: tuple[Floats, Floats]
    sizes: tuple[int, int, int, int]
    scale: SharedScale | None

    @property
    def old(self) -> Floats:
        return self.cosines[0] if self.scale is None else self.cosines[0] / self.scale.old

    @property
    def new(self) -> Floats:
        return self.cosines[1] if self.scale is None else self.cosines[1] / self.scale.new

    @property
    def tolerance(self) -> float:
        """Largest difference of calibrated tables that rounding of float32 vectors makes: 1e-6 in cosine units."""
        return TOLERANCE if self.scale is None else TOLERANCE / min(1.0, self.scale.old, self.scale.new)

    @property
    def scale_variance(self) -> float:
        return 0.0 if self.scale is None else self.scale.variance


@dataclass(frozen=True, eq=False)
class Calibration:
    """Calibrates the tests of a run that holds several models. Scales are computed once for each pair of models."""

    run: RunData
    _scales: dict[tuple[ModelKey, ModelKey, str], SharedScale | str] = field(default_factory=dict)

    def calibrate(self, old: Result, new: Result) -> CalibratedPair | str:
        """Return the calibrated pair of two results of one test, or the reason why there is none."""
        if old.searched or new.searched:
            return "the words of the test were found by searching one of the models: it is descriptive there"
        tables = cosines_of(old, self.run), cosines_of(new, self.run)
        if tables[0] is None or tables[1] is None:
            return "the run holds no cosines of words; measure the model again"
        both = pair(old, new, (tables[0], tables[1]))
        if not all(both.sizes):
            return "no words in common"
        if not (np.isfinite(both.first).all() and np.isfinite(both.second).all()):
            return "not all cosines of words are numbers; measure again"
        scale = self.find_scale(old, new)
        return scale if isinstance(scale, str) else CalibratedPair((both.first, both.second), both.sizes, scale)

    def find_scale(self, old: Result, new: Result) -> SharedScale | str | None:
        """Return the scales of two models for the tests of one level; None if the metric declares no scale."""
        if not has_scale(old.metric):
            return None
        key = model_key(old), model_key(new), old.level
        if key not in self._scales:
            self._scales[key] = find_shared_scale(self.run, old, new)
        return self._scales[key]
