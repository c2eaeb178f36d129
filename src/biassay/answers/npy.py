"""The form in which NumPy writes an array."""

from __future__ import annotations

import io

import numpy as np

__all__ = ["npy_header"]


def npy_header(shape: tuple[int, ...], dtype: str) -> bytes:
    """The header that NumPy writes before an array of this shape.

    It is to be compared with what a file holds: NumPy raises whatever it likes when it parses a damaged one.
    """
    buffer = io.BytesIO()
    content = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, content)
    return buffer.getvalue()
