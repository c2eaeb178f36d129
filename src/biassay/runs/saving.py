"""A run is written while it is made."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from biassay.results.data import RunData
from biassay.results.storage import Types, write_run

__all__ = ["Saver"]

_QUICK = 0.2  # seconds
_SHARE = 10  # of the time, one part may go to saving


class Saver:
    """Writes a run whenever a model was measured, as long as that is quick; of very many models now and then.

    What a crash loses is measured again, from answers that are kept.
    """

    def __init__(self, folder: Path | None, types: Types) -> None:
        self._folder, self._types = folder, types
        self._places: list[int] = []
        self._ended, self._took, self._waits = 0.0, 0.0, False

    def save(self, run: RunData, places: Sequence[int] = (), *, now: bool = False) -> None:
        """Write a run with the arrays of the models at some places, which are new; ``now``: whatever it takes."""
        if self._folder is None:
            return
        self._places += places
        began = time.monotonic()
        self._waits = not now and self._took > _QUICK and began - self._ended < _SHARE * self._took
        if self._waits:
            return
        write_run(self._folder, run, self._types, self._places)
        self._places = []
        self._ended = time.monotonic()
        self._took = self._ended - began

    def settle(self, run: RunData) -> None:
        """Write what waits."""
        if self._waits:
            self.save(run, now=True)
