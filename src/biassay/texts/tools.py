"""The tools of the corpus scan, imported when they are first needed: `biassay --help` does without them."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, TypeVar

from biassay.errors import MissingExtraError

__all__ = ["compiled", "tool", "trailing_zeros"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def tool(name: str) -> Any:
    """A module of the extra ``contexts``, by name."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:  # it is there, and something it needs is not: that is another story
            raise
        raise MissingExtraError(f"reading contexts from a corpus uses {error.name} and", "contexts") from None


def compiled(function: _Function) -> _Function:
    """A function on NumPy arrays, compiled when it is first called, and kept on disk where there is a place for it.

    A function and all that it calls have to be in one file: what is kept on disk is made anew when that file changes.
    It can make no arrays, only write to those it is given: without counting references it runs twice as fast.
    """
    njit = functools.partial(tool("numba").njit, nogil=True, error_model="numpy", _nrt=False)
    try:
        made: _Function = njit(cache=True)(function)
    except RuntimeError:  # no folder can be written to: it is compiled in every process
        made = njit()(function)
    return made


@functools.cache
def trailing_zeros() -> Any:
    """For compiled code the number of low bits that are 0, in a number that is not: one instruction, not in NumPy."""
    numba, ir = tool("numba"), tool("llvmlite.ir")

    def count(_context: Any, _number: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

        return numba.types.int64(numba.types.uint64), generate

    return tool("numba.extending").intrinsic(count)
