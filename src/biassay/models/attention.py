"""The kernel that computes attention on a GPU."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

__all__ = ["without_plans"]

_SHORT = 64  # tokens: up to here the memory-efficient kernel is twice as fast as the flash one


def without_plans(device: str, longest: int) -> AbstractContextManager[None]:
    """Attention by kernels that are ready for texts of any length.

    cuDNN's, which torch prefers on recent GPUs, first makes a plan for every new shape of a batch: up to a second, for
    some milliseconds of work.
    """
    if device == "cpu":
        return nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel

    ready = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    found: AbstractContextManager[None] = sdpa_kernel(
        ready if longest <= _SHORT else [SDPBackend.FLASH_ATTENTION, *ready]
    )
    return found
