"""Files of contexts as they were before they had digests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["without_digest"]


def without_digest(path: Path, *names: str) -> None:
    """Take the digests, or some of them, out of a file of contexts."""
    import pyarrow.parquet as pq

    table: Any = pq.read_table(path)
    metadata = json.loads(table.schema.metadata[b"biassay"])
    for name in names or ("digest", "rows_digest"):
        del metadata[name]
    pq.write_table(table.replace_schema_metadata({b"biassay": json.dumps(metadata).encode()}), path)
