"""Time one phase of a run with a listener."""

from __future__ import annotations

import time

from biassay.runs.progress import NullListener


class Phase(NullListener):
    """Time a counted step, such as ``texts``: from the moment the model is loaded to the last progress."""

    def __init__(self, unit: str) -> None:
        self._unit, self._began = unit, time.perf_counter()
        self.seconds, self.count = 0.0, 0

    def begin(self, who: str, what: str) -> None:  # noqa: ARG002
        if not self.count:
            self._began = time.perf_counter()

    def progress(self, who: str, unit: str, done: int, total: int) -> None:  # noqa: ARG002
        if unit == self._unit:
            self.seconds, self.count = time.perf_counter() - self._began, done
