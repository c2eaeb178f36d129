"""Items that others found faulty, left out by a list of their ids.

Blodgett et al. (2021) describe pitfalls of CrowS-Pairs and StereoSet by kind and give shares; neither data set came
with a list of such items. So a list is the user's: one id in each line, or a table with a column ``id``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from biassay.errors import StimulusError
from biassay.files import read_text
from biassay.stimuli.benchmarks.places import content_of
from biassay.stimuli.benchmarks.rows import read_rows

__all__ = ["Flagged", "read_flagged", "take_out"]


@dataclass(frozen=True)
class Flagged:
    """Ids of items to leave out, each with its place in the file, and a digest of them."""

    path: Path
    ids: dict[str, str]
    digest: str


class _Item(Protocol):
    @property
    def id(self) -> str: ...


_Any = TypeVar("_Any", bound=_Item)


def read_flagged(path: Path | str) -> Flagged:
    """Read a list of ids: a text file with one in each line (# begins a remark), or a table with a column ``id``."""
    path = Path(path)
    if path.suffix.lower() in (".txt", ""):
        lines = (line.partition("#")[0].strip() for line in read_text(path).splitlines())
        ids = {text: f"line {number}" for number, text in enumerate(lines, start=1) if text}
    else:
        hint = "expected a column 'id', or a .txt file with one id in each line"
        ids = {str(row.value("id")): row.place for row in read_rows(path, hint)}
    if not ids:
        raise StimulusError(f"{path}: no id in it; to leave nothing out, leave out the option")
    return Flagged(path, ids, content_of(sorted(ids)))


def take_out(items: Iterable[_Any], flagged: Flagged | None) -> tuple[tuple[_Any, ...], int]:
    """The items that are not flagged, and the number of those that are. An id of no item is an error."""
    items = tuple(items)
    if flagged is None:
        return items, 0
    known = {item.id for item in items}
    for name, place in flagged.ids.items():
        if name not in known:
            raise StimulusError(
                f"{flagged.path}: {place}: no item has the id {name!r}; ids look like {', '.join(sorted(known)[:3])}; "
                "is the list of another version of the data?"
            )
    kept = tuple(item for item in items if item.id not in flagged.ids)
    return kept, len(items) - len(kept)
