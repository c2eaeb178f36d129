"""Check that a stored search agrees with itself: its names, and its detection curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from biassay.results.arrays import array_path
from biassay.results.checking import find_models_without, find_orphans, find_unknown
from biassay.results.data import RunData, rows_by_model
from biassay.results.storage import MANIFEST, RESULTS_JSON, Fault
from biassay.stats.detection import DetectionCurve
from biassay.studies.discovery.making import CURVE_ARRAYS, array_name
from biassay.studies.discovery.records import CurveRow, InputsRecord

__all__ = ["find_faults"]


def find_faults(run: RunData) -> Iterator[Fault]:
    """Yield groups that are unknown, and curves whose counts do not give the stored rates."""
    inputs: InputsRecord = run.manifest.inputs
    unlabelled = next((group for group in inputs.groups if group not in inputs.labels), None)
    if unlabelled is not None:
        yield Fault(MANIFEST, f"inputs.labels: no label of the group {unlabelled!r}")
    yield from find_models_without(run, "models")
    yield from find_unknown(run, "groups", "group", inputs.groups)
    yield from find_unknown(run, "groups", "other_groups", inputs.groups)
    yield from find_unknown(run, "models", "names_lost", inputs.groups)
    yield from find_unknown(run, "models", "similar_names", inputs.groups)
    yield from find_orphans(run, ("results", "validated", "curves"), "groups", ("group",))
    arrays = run.arrays_by_model()
    for index, rows in enumerate(rows_by_model(run.manifest.models, run.tables.get("curves", ()))):
        own, file = arrays.get(str(index), {}), array_path(str(index))
        for row in rows:
            fault = _find_in_counts(row, own)
            if fault:
                yield Fault(file if own else RESULTS_JSON, f"{row.group}/{row.task}: {fault}")


def _find_in_counts(row: CurveRow, arrays: Mapping[str, NDArray[np.float64]]) -> str:
    """Compare the rates at the threshold in use with the counts at all thresholds."""
    names = [array_name(row.group, row.task, name) for name in CURVE_ARRAYS]
    missing = next((name for name in names if name not in arrays), None)
    if missing is not None:
        return f"there is no array {missing!r}"
    thresholds, *counts = (arrays[name] for name in names)
    if thresholds.ndim != 1 or any(array.shape != thresholds.shape for array in counts):
        return "thresholds and counts have different shapes"
    if any(not (np.isfinite(array).all() and (np.abs(array) < 2**53).all()) for array in counts):
        return "a count is not finite"
    at = np.flatnonzero(thresholds == row.chosen)
    if len(at) != 1 or any((array < 0).any() or (array != np.rint(array)).any() for array in counts):
        return "no threshold is the one in use, or a count is not a whole number"
    tp, fp, fn, tn = (array.astype(np.int64) for array in counts)
    curve = DetectionCurve(thresholds, tp, fp, fn, tn, area=row.area)
    with np.errstate(all="ignore"):
        found = [float(rates[at[0]]) for rates in (curve.accuracy, curve.precision, curve.tpr, curve.fpr)]
    stored = [row.accuracy, np.nan if row.precision is None else row.precision, row.recall, row.false_positive_rate]
    if not np.allclose(found, stored, rtol=1e-6, atol=1e-9, equal_nan=True):
        return f"the counts at the threshold {row.chosen:g} give other rates than {RESULTS_JSON}"
    return ""
