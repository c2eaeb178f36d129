"""The GPU of this machine, for those who know arrays only."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

__all__ = ["gpu"]


def gpu() -> Callable[[NDArray[Any]], Any] | None:
    """A function that takes an array to the GPU; None where there is none, or no torch. Without a card, it is quick."""
    if not any(Path("/dev").glob("nvidia[0-9]*")) or find_spec("torch") is None:
        return None
    import torch

    if not torch.cuda.is_available():
        return None
    return lambda array: torch.asarray(array, device="cuda")
