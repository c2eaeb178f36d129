"""Models that fail alone: one of several that cannot be opened or asked does not keep the others from it."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Literal

from biassay.errors import BiassayError, BudgetError, ModelError, StorageError, UsageError, VectorError
from biassay.runs.models import Asked

__all__ = ["Stage", "is_own", "reason_of"]

Stage = Literal["opening", "asking", "measuring"]
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}


def is_own(error: Exception, asked: Sequence[Asked], place: int, stage: Stage) -> bool:
    """Is an error that of one model of several, and not of the request, disk, storage, budget or the user's own object?

    While models are opened, what is wrong with the request stops the run, for nothing has begun. While one is measured,
    no library of models is at work: an error that nobody raised on purpose is one of the program.
    """
    if len(asked) < 2 or not isinstance(asked[place].model, str) or isinstance(error, BudgetError | StorageError):
        return False
    if isinstance(error, OSError) and error.errno in _DISK:
        return False
    if stage == "measuring" and not isinstance(error, BiassayError | OSError):
        return False
    return stage == "asking" or not isinstance(error, UsageError) or isinstance(error, ModelError | VectorError)


def reason_of(error: Exception) -> str:
    """Why a model failed, on one line; a fault of a program says its kind."""
    if isinstance(error, BiassayError | OSError):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else 'no message'}; run it alone to see where"
