"""Tables as data frames."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from biassay.errors import MissingExtraError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["to_frame_of"]


def to_frame_of(content: Mapping[str, list[Any]]) -> pd.DataFrame:
    """A data frame from its columns; what was not computed is ``pandas.NA``, which NaN is not."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtraError("to_frame()", "frame") from error
    return pd.DataFrame({name: _column(pd, values) for name, values in content.items()})


def _column(pd: ModuleType, values: list[Any]) -> Any:
    """Numbers and truth values with a mask for those that are missing; anything else as it is."""
    missing = np.array([value is None for value in values], dtype=bool)
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, float) for value in present):
        return pd.arrays.FloatingArray(np.array([0.0 if v is None else v for v in values], dtype=float), missing)
    if present and all(isinstance(value, bool) for value in present):
        return pd.arrays.BooleanArray(np.array([bool(v) for v in values], dtype=bool), missing)
    return values
