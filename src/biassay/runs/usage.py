"""Tokens that the endpoints of a run have used, written down as they are used.

The manifest is written when a model is done. The log in the run folder is appended to after every response, so that a
run that was killed still knows what it has spent, and a budget covers the whole run however often it is resumed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from biassay.errors import RunFolderError
from biassay.models.spending import Spending
from biassay.results.data import ModelRecord

__all__ = ["USAGE", "UsageLog"]

USAGE = "usage.jsonl"


class UsageLog:
    """Tokens by model of one run.

    Parameters
    ----------
    folder : Path or None
        The run folder. If None, nothing is written.
    records : sequence of ModelRecord
        Models with the tokens that the manifest knows of; the log of an earlier process knows better.
    spending : Spending
        Counts the tokens of this process. Tokens of earlier processes are added to it, so that a budget covers the
        whole run.
    """

    def __init__(self, folder: Path | None, records: Sequence[ModelRecord], spending: Spending) -> None:
        self._path = None if folder is None else folder / USAGE
        self._spending = spending
        self.tokens = [(record.tokens_in, record.tokens_out) for record in records]
        if self._path is not None and self._path.exists():
            self._read(self._path)
        spending.carry_over(sum(used for used, _ in self.tokens), sum(used for _, used in self.tokens))

    def _read(self, path: Path) -> None:
        tokens = [(0, 0)] * len(self.tokens)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            try:
                entry = json.loads(line)
                place, used_in, used_out = (int(entry[key]) for key in ("model", "tokens_in", "tokens_out"))
                if min(place, used_in, used_out) < 0:
                    raise ValueError("negative number")
                tokens[place] = tokens[place][0] + used_in, tokens[place][1] + used_out
            except (ValueError, KeyError, TypeError, IndexError) as error:
                if number == len(path.read_bytes().splitlines()):
                    break  # the process was killed while it wrote the last line
                raise RunFolderError(f"{path}: line {number} is damaged; delete the file to count from 0") from error
        self.tokens = tokens

    def begin(self) -> None:
        """Write the totals so far as the first lines of a new log."""
        if self._path is None:
            return
        lines = [
            {"model": place, "tokens_in": used_in, "tokens_out": used_out}
            for place, (used_in, used_out) in enumerate(self.tokens)
        ]
        self._path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")

    @contextmanager
    def recording(self, place: int) -> Iterator[None]:
        """Attribute the tokens that are used meanwhile to one model."""

        def record(used_in: int, used_out: int) -> None:
            before = self.tokens[place]
            self.tokens[place] = before[0] + used_in, before[1] + used_out
            if self._path is not None:
                with self._path.open("a", encoding="utf-8") as log:
                    log.write(f"{json.dumps({'model': place, 'tokens_in': used_in, 'tokens_out': used_out})}\n")

        self._spending.on_use = record
        try:
            yield
        finally:
            self._spending.on_use = None

    def end(self) -> None:
        """Delete the log: the manifest of a complete run holds the totals."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
