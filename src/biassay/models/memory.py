"""Batches that do not fit into memory are worked on by halves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from biassay.errors import ModelError

__all__ = ["halves_of", "in_halves"]

Batch = TypeVar("Batch")
Result = TypeVar("Result")
_SIGNS = ("out of memory", "DefaultCPUAllocator", "ALLOC_FAILED")  # of a GPU, of a CPU, of a library of the GPU


def in_halves(
    name: str, work: Callable[[Batch], Result], batch: Batch, halves: Callable[[Batch], Sequence[Batch]]
) -> list[Result]:
    """What ``work`` makes of a batch, in one part; where memory does not suffice, in the parts of its halves, in order.

    A batch without halves that does not fit is an error of the model ``name``.
    """
    try:
        return [work(batch)]
    except (RuntimeError, MemoryError) as error:
        if not _is_of_memory(error):
            raise
        parts = halves(batch)
        if not parts:
            raise ModelError(
                f"model {name!r}: one text does not fit into memory; dtype=bfloat16 takes half of it, and device=cpu "
                "or a larger GPU may have more"
            ) from error
    _free()  # behind the block, for as long as the error lives, so does what was computed
    return [result for part in parts for result in in_halves(name, work, part, halves)]


def halves_of(batch: Batch) -> list[Batch]:
    """Both halves of what has a length and slices; none, of one thing."""
    things: Any = batch
    middle = len(things) // 2
    return [things[:middle], things[middle:]] if middle else []


def _is_of_memory(error: Exception) -> bool:
    import torch

    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(sign in str(error) for sign in _SIGNS)


def _free() -> None:
    """Give back what the GPU's allocator keeps for later, in pieces of other sizes."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
