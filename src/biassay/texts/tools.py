"""The tools of the corpus scan, imported when they are first needed: `biassay --help` does without them."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, TypeVar

from biassay.errors import MissingExtraError

__all__ = ["WIDTH", "compiled", "eight_bytes", "matching_bytes", "moved_bytes", "tool", "trailing_zeros"]

WIDTH = 64  # bytes that compiled code looks at in one step; so many can be read after the end of any text

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


@functools.cache
def eight_bytes() -> Any:
    """For compiled code the eight bytes from a place on as one number, the first byte the lowest."""
    numba, ir = tool("numba"), tool("llvmlite.ir")

    def eight(_context: Any, data: Any, _place: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            at = builder.bitcast(builder.gep(array.data, [arguments[1]]), ir.IntType(64).as_pointer())
            return builder.load(at, align=1)

        return numba.types.uint64(data, numba.types.int64), generate

    return tool("numba.extending").intrinsic(eight)


@functools.cache
def matching_bytes(*ranges: tuple[int, int]) -> Any:
    """For compiled code, which of the 64 bytes from a place on are in one of these ranges, by a bit each."""
    numba = tool("numba")

    def match(_context: Any, data: Any, _place: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            read = builder.load(_lanes(context, builder, signature.args[0], *arguments), align=1)
            return _bits(builder, read, ranges)

        return numba.types.uint64(data, numba.types.int64), generate

    return tool("numba.extending").intrinsic(match)


@functools.cache
def moved_bytes(*ranges: tuple[int, int]) -> Any:
    """The same, and the 64 bytes are copied to a place of another array."""
    numba = tool("numba")

    def move(_context: Any, data: Any, _place: Any, out: Any, _to: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            read = builder.load(_lanes(context, builder, signature.args[0], *arguments[:2]), align=1)
            builder.store(read, _lanes(context, builder, signature.args[2], *arguments[2:]), align=1)
            return _bits(builder, read, ranges)

        return numba.types.uint64(data, numba.types.int64, out, numba.types.int64), generate

    return tool("numba.extending").intrinsic(move)


def _lanes(context: Any, builder: Any, kind: Any, array: Any, place: Any) -> Any:
    """A pointer to 64 bytes of an array."""
    ir = tool("llvmlite.ir")
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [place]), ir.VectorType(ir.IntType(8), WIDTH).as_pointer())


def _bits(builder: Any, read: Any, ranges: tuple[tuple[int, int], ...]) -> Any:
    ir = tool("llvmlite.ir")
    found = None
    for first, last in ranges:
        low, size = (ir.Constant(read.type, [number] * WIDTH) for number in (first, last - first))
        here = builder.icmp_unsigned("<=", builder.sub(read, low), size)
        found = here if found is None else builder.or_(found, here)
    return builder.bitcast(found, ir.IntType(WIDTH))
