"""Log the tokens that the endpoints of a run use.

The manifest is written after every model, the log after every response. So a killed run still knows how many tokens it
used, and a budget covers the whole run however often it is resumed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from biassay.errors import RunFolderError
from biassay.models.token_budget import TokenBudget
from biassay.results.run_data import ModelRecord

USAGE = "usage.jsonl"


class UsageLog:
    """Count the tokens of every model of a run.

    Parameters
    ----------
    folder : Path or None
        The run folder. If None, nothing is written.
    records : sequence of ModelRecord
        Models with their tokens in the manifest. The log of an earlier process takes precedence.
    token_budget : TokenBudget
        Counts the tokens of this process. Tokens of earlier processes are added to it.
    """

    def __init__(self, folder: Path | None, records: Sequence[ModelRecord], token_budget: TokenBudget) -> None:
        self._path = None if folder is None else folder / USAGE
        self._token_budget = token_budget
        self.tokens = [(record.tokens_in, record.tokens_out) for record in records]
        if self._path is not None and self._path.exists():
            self._read(self._path)
        token_budget.carry_over(sum(used for used, _ in self.tokens), sum(used for _, used in self.tokens))

    def _read(self, path: Path) -> None:
        tokens = [(0, 0)] * len(self.tokens)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            try:
                entry = json.loads(line)
                model_index, used_in, used_out = (int(entry[key]) for key in ("model", "tokens_in", "tokens_out"))
                if min(model_index, used_in, used_out) < 0:
                    raise ValueError("negative number")
                tokens[model_index] = tokens[model_index][0] + used_in, tokens[model_index][1] + used_out
            except (ValueError, KeyError, TypeError, IndexError) as error:
                if number == len(path.read_bytes().splitlines()):
                    break  # the process was killed while it wrote the last line
                raise RunFolderError(f"{path}: line {number} is damaged; delete the file to count from 0") from error
        self.tokens = tokens

    def get_counts(self, model_index: int) -> dict[str, int]:
        """Return the tokens of a model as fields of its record."""
        tokens_in, tokens_out = self.tokens[model_index]
        return {"tokens_in": tokens_in, "tokens_out": tokens_out}

    def begin(self) -> None:
        """Write the totals so far as the first lines of a new log."""
        if self._path is None:
            return
        lines = [{"model": index, **self.get_counts(index)} for index in range(len(self.tokens))]
        self._path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")

    @contextmanager
    def recording(self, model_index: int) -> Iterator[None]:
        """Attribute the tokens that are used in the meantime to one model."""

        def record(used_in: int, used_out: int) -> None:
            before = self.tokens[model_index]
            self.tokens[model_index] = before[0] + used_in, before[1] + used_out
            if self._path is not None:
                with self._path.open("a", encoding="utf-8") as log:
                    log.write(f"{json.dumps({'model': model_index, 'tokens_in': used_in, 'tokens_out': used_out})}\n")

        self._token_budget.on_use = record
        try:
            yield
        finally:
            self._token_budget.on_use = None

    def end(self) -> None:
        """Delete the log, because the manifest of a complete run has the totals."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
