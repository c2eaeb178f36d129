"""How a run of an older kind was made."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

from biassay.results.data import ModelRecord, Record

__all__ = ["FORMAT_VERSION", "ModelRecord", "Provenance", "Record"]

FORMAT_VERSION = 1


@dataclass(frozen=True)
class Provenance(Record):
    """How a run was made, whatever it measured."""

    format_version: int
    run_id: str
    status: Literal["running", "complete"]
    created: str
    finished: str | None
    versions: dict[str, str]
    models: tuple[ModelRecord, ...]
    kind: str = dataclasses.field(default="associations", kw_only=True)
