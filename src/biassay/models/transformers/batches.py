"""Prefetch batches and split those that do not fit into memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, Generic, TypeVar

from biassay.errors import ModelError

BatchInput = TypeVar("BatchInput")
BatchOutput = TypeVar("BatchOutput")


class BatchPrefetcher(Generic[BatchInput, BatchOutput]):
    """Apply a function to batches, some of them in a background thread before they are requested.

    Several threads may use it at once.

    Attributes
    ----------
    stopping : threading.Event
        Set while `cancel` waits. A long-running function checks it and stops.
    """

    def __init__(self, work: Callable[[BatchInput], BatchOutput]) -> None:
        self._work = work
        self._coming: list[tuple[BatchInput, Future[BatchOutput]]] = []
        self._lock = threading.Lock()
        self.stopping = threading.Event()

    @cached_property
    def _thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max_workers=1)

    def prefetch(self, batch: BatchInput) -> None:
        """Start on a batch that will be requested soon."""
        with self._lock:
            self._coming.append((batch, self._thread.submit(self._work, batch)))

    def __call__(self, batch: BatchInput) -> BatchOutput:
        """Return the result for a batch; drop the results of batches announced before it."""
        with self._lock:
            position = next((i for i, (expected, _) in enumerate(self._coming) if expected == batch), None)
            if position is not None:
                _, result = self._coming[position]
                del self._coming[: position + 1]
        return self._work(batch) if position is None else result.result()

    def cancel(self) -> None:
        """Drop all announced batches and wait until the background thread is idle."""
        with self._lock:
            for _, result in self._coming:
                result.cancel()
            self._coming.clear()
        if "_thread" in self.__dict__:
            self.stopping.set()
            try:
                self._thread.submit(int).result()  # runs after whatever the one thread is doing now
            finally:
                self.stopping.clear()


Batch = TypeVar("Batch")
Result = TypeVar("Result")
_MEMORY_ERRORS = ("out of memory", "DefaultCPUAllocator", "ALLOC_FAILED")  # from GPU, CPU and GPU libraries


def retry_in_halves(
    label: str, work: Callable[[Batch], Result], batch: Batch, halves: Callable[[Batch], Sequence[Batch]]
) -> list[Result]:
    """Apply a function to a batch; if memory runs out, apply it to both halves instead.

    Parameters
    ----------
    label : str
        The model, for the error message.
    work : callable
        Function from a batch to its result.
    batch : object
        The batch.
    halves : callable
        Function from a batch to its halves; empty if it cannot be split, which raises ModelError.

    Returns
    -------
    list
        Results of the parts, in order.
    """
    try:
        return [work(batch)]
    except (RuntimeError, MemoryError) as error:
        if not _is_memory_error(error):
            raise
        parts = halves(batch)
        if not parts:
            raise ModelError(
                f"{label}: one text does not fit into memory; use dtype=bfloat16, which needs half of it, "
                "device=cpu or a larger GPU"
            ) from error
    _free_gpu_memory()  # after the block, because the error keeps tensors alive
    return [result for part in parts for result in retry_in_halves(label, work, part, halves)]


def split_in_half(batch: Batch) -> list[Batch]:
    """Return both halves of a sequence; empty for a single item."""
    items: Any = batch
    middle = len(items) // 2
    return [items[:middle], items[middle:]] if middle else []


def _is_memory_error(error: Exception) -> bool:
    import torch

    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(sign in str(error) for sign in _MEMORY_ERRORS)


def _free_gpu_memory() -> None:
    """Release memory that the GPU's allocator holds in blocks of other sizes."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()


_SHORT_TEXT = 64  # tokens; up to here the memory-efficient kernel is twice as fast as the flash kernel


def avoid_cudnn_attention(device: str, longest: int) -> AbstractContextManager[None]:
    """Use attention kernels that need no preparation.

    torch prefers cuDNN on recent GPUs, which plans for up to a second per batch shape, for milliseconds of work.
    """
    if device == "cpu":
        return nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel

    kernels = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    if longest > _SHORT_TEXT:
        kernels.insert(0, SDPBackend.FLASH_ATTENTION)
    context: AbstractContextManager[None] = sdpa_kernel(kernels)
    return context
