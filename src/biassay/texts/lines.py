"""Compiled code that finds the lines of a block."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from biassay.texts.skimming import CLEAR, UNCLEAR, WIDE
from biassay.texts.tools import compiled

__all__ = ["Lines", "skim_lines"]


class Lines(NamedTuple):
    """For every line where it starts and ends, where its document does, and what is known of it."""

    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    text_start: NDArray[np.int64]
    text_stop: NDArray[np.int64]
    state: NDArray[np.uint8]


@compiled
def skim_lines(data: NDArray[np.uint8], size: int, longest: int, lines: Lines) -> int:
    """The lines that are not blank, and how many these are."""
    i = count = 0
    while i < size:
        end, every, blank = i, np.uint8(0), True
        while data[end] != 10:
            every |= data[end]
            blank = blank and (data[end] == 32 or 9 <= data[end] <= 13)
            end += 1
        lines.start[count], lines.stop[count] = i, end
        lines.text_start[count] = i
        lines.text_stop[count] = end - 1 if end > i and data[end - 1] == 13 else end
        lines.state[count] = UNCLEAR if end - i > longest else CLEAR if every < 128 else WIDE
        count += not blank
        i = end + 1
    return count
