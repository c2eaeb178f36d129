"""Rows of a sample, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from biassay.corpus.sampler import make_table


class Row(NamedTuple):
    """A sentence of a sample, in the order of samples, and in which one is preferred to another of the same text."""

    key: int
    text: str
    source: str
    start: int
    end: int


def rows_table(stimuli: Sequence[str], rows: Sequence[Row]) -> Any:
    """A table of rows with their stimuli."""
    key, text, source, start, end = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    return make_table(stimuli, key, text, start, end, source)
