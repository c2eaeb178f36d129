"""A detection curve as a small figure, in the figure's units."""

from __future__ import annotations

from dataclasses import dataclass

from biassay.results.discovery import CurveRecord

__all__ = ["RocFigure", "roc_figure"]

_SIDE, _MARGIN = 220.0, 24.0


@dataclass(frozen=True)
class RocFigure:
    """The points in the order of thresholds, those of a rising rate joined by a line, and the chosen one."""

    points: tuple[tuple[float, float, str], ...]
    line: str
    chosen: tuple[float, float]
    description: str
    side: float = _SIDE
    margin: float = _MARGIN


def roc_figure(curve: CurveRecord, name: str) -> RocFigure:
    """True against false positive rate at every threshold."""
    positives, negatives = curve.tp[0] + curve.fn[0], curve.fp[0] + curve.tn[0]
    rates = [(fp / negatives, tp / positives) for tp, fp in zip(curve.tp, curve.fp, strict=True)]
    titles = (
        f"threshold {threshold:g}: true positive rate {y:.2f}, false positive rate {x:.2f}"
        for threshold, (x, y) in zip(curve.thresholds, rates, strict=True)
    )
    points = tuple((*_place(x, y), title) for (x, y), title in zip(rates, titles, strict=True))
    line = " ".join(f"{x},{y}" for x, y, _ in points)
    description = (
        f"{name}: {len(points)} thresholds, area under the curve {curve.area:.2f}; the chosen threshold "
        f"{curve.chosen:g} has a true positive rate of {curve.recall:.2f} and a false positive rate of "
        f"{curve.false_positive_rate:.2f}"
    )
    return RocFigure(points, line, _place(curve.false_positive_rate, curve.recall), description)


def _place(x: float, y: float) -> tuple[float, float]:
    return round(_MARGIN + x * (_SIDE - _MARGIN), 1), round((1.0 - y) * (_SIDE - _MARGIN), 1)
