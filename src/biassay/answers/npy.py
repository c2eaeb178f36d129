"""The form in which NumPy writes an array."""

from __future__ import annotations

import io

import numpy as np

__all__ = ["npy_header"]


def npy_header(shape: tuple[int, ...], dtype: str) -> bytes:
    """The header that NumPy writes before an array of this shape.

    Compare it with the bytes of a file: NumPy's parser raises arbitrary errors on a damaged one.
    """
    buffer = io.BytesIO()
    content = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, content)
    return buffer.getvalue()
