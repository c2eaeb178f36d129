"""What a worker is given to scan. A module of its own, so that a worker imports no more than it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from biassay.texts.corpus import Part
from biassay.texts.sampling import Sample
from biassay.texts.scanning import Partial, ScanSettings, scan

__all__ = ["MakeScanner", "ScanTask"]


@dataclass(frozen=True)
class ScanTask:
    """Some parts; ``thresholds`` are what is known when they are handed out: hits above them need not be looked at."""

    numbers: tuple[int, ...]
    parts: tuple[Part, ...]
    skips: tuple[int, ...]
    thresholds: NDArray[np.uint64]


@dataclass(frozen=True)
class MakeScanner:
    """Makes what scans one task after the other."""

    settings: ScanSettings

    def __call__(self) -> Callable[[ScanTask], Iterator[tuple[int, Partial]]]:
        return _Scanner(self.settings)


class _Scanner:
    """Scans one task after the other. The more it has seen, the fewer sentences it need cut out."""

    def __init__(self, settings: ScanSettings) -> None:
        self._settings = settings
        self._sample = Sample(settings.stimuli, settings.k)

    def __call__(self, task: ScanTask) -> Iterator[tuple[int, Partial]]:
        numbers = dict(zip(task.parts, task.numbers, strict=True))
        for partial in scan(task.parts, self._settings, task.thresholds, task.skips, sample=self._sample):
            yield numbers[partial.part], partial
