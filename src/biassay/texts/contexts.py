"""Contexts: sentences in which stimuli occur, kept in a Parquet file together with how they were found."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UsageError
from biassay.files import check_digest, json_with_digest, open_file, written_whole
from biassay.texts.coverage import ConceptCoverage, TestCoverage, coverage
from biassay.texts.sampling import Sample
from biassay.texts.tools import tool

__all__ = [
    "FORMAT_VERSION",
    "UNCHECKED",
    "ConceptCoverage",
    "Contexts",
    "TestCoverage",
    "coverage",
    "read_contexts",
    "window",
    "write_contexts",
]

FORMAT_VERSION = 1
COLUMNS = ("stimulus", "text", "start", "end", "source", "key")
UNCHECKED = (
    "the file of contexts was written by an earlier biassay and has no digest, so damage may go unnoticed; "
    "`biassay contexts` writes one that has"
)
_IF_DAMAGED = "write it again with `biassay contexts`, or restore a copy"
_METADATA, _ROWS = b"biassay", "rows_digest"
_HASHED_AT_ONCE = 100_000
_ROWS_IN_A_GROUP = 100_000


@dataclass(frozen=True)
class Contexts:
    """Contexts in memory, sorted by the order of ``stimuli``, then key.

    ``table`` has the columns stimulus, text, start, end, source and key; ``start`` and ``end`` are the place of the
    stimulus in the text, in characters. ``metadata`` says how they were found, ``checked`` whether a digest said that
    all is as it was written.
    """

    stimuli: tuple[str, ...]
    table: Any
    metadata: Mapping[str, Any] = field(default_factory=dict)
    checked: bool = True

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def of(self, stimulus: str) -> slice:
        """The rows of a stimulus; an empty slice where it has none."""
        return self._rows.get(stimulus, slice(0, 0))

    def count(self, stimulus: str) -> int:
        """How many contexts a stimulus has."""
        rows = self.of(stimulus)
        return int(rows.stop - rows.start)

    def documents(self, rows: slice) -> NDArray[np.int64]:
        """Number the documents of some rows; a row without a source counts as a document of its own."""
        return self._documents[rows]

    @property
    def num_unknown_documents(self) -> int:
        """Count the rows without a source."""
        return int((self._documents < 0).sum())

    def texts(self, rows: slice | Sequence[int]) -> list[str]:
        """The texts of some rows."""
        return list(self._take(rows)["text"].to_pylist())

    def spans(self, rows: slice | Sequence[int]) -> list[tuple[int, int]]:
        """The places of the stimulus in the texts of some rows."""
        taken = self._take(rows)
        return list(zip(taken["start"].to_pylist(), taken["end"].to_pylist(), strict=True))

    @functools.cached_property
    def digest(self) -> str:
        """A fingerprint of all stimuli, texts and places."""
        made = hashlib.blake2b(digest_size=16)
        table = self.table.select(["stimulus", "text", "start", "end"])
        for start in range(0, len(self), _HASHED_AT_ONCE):
            piece = table.slice(start, _HASHED_AT_ONCE)
            made.update(json.dumps([column.to_pylist() for column in piece.columns]).encode())
        return made.hexdigest()

    @functools.cached_property
    def _documents(self) -> NDArray[np.int64]:
        encoded = self.table["source"].combine_chunks().dictionary_encode()
        numbers = np.asarray(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
        empty = tool("pyarrow.compute").index(encoded.dictionary, "").as_py()
        unknown = (numbers < 0) | (numbers == empty)
        return np.where(unknown, -1 - np.arange(len(numbers)), numbers)

    @functools.cached_property
    def _rows(self) -> dict[str, slice]:
        encoded = self.table["stimulus"].combine_chunks().dictionary_encode()
        codes = np.asarray(encoded.indices.to_numpy())
        edges = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)] if len(codes) else []
        return {
            encoded.dictionary[int(codes[start])].as_py(): slice(start, stop)
            for start, stop in itertools.pairwise(edges)
        }

    def _take(self, rows: slice | Sequence[int]) -> Any:
        if not isinstance(rows, slice):
            return self.table.take(np.asarray(rows, np.int64))
        start, stop, step = rows.indices(len(self))
        if step != 1:
            return self.table.take(np.arange(start, stop, step))
        return self.table.slice(start, max(0, stop - start))


def write_contexts(path: Path, sample: Sample, metadata: Mapping[str, Any]) -> None:
    """Write a sample, with its stimuli, its size, and as ``metadata`` anything JSON can hold.

    The file is complete or not there, and never in memory as a whole.
    """
    table = sample.to_table().select(list(COLUMNS))
    own = {"format": FORMAT_VERSION, "stimuli": sample.stimuli, "k": sample.k, _ROWS: _rows_digest(table)}
    table = table.replace_schema_metadata({_METADATA: json_with_digest({**metadata, **own}).encode()})
    with written_whole(path) as file:
        tool("pyarrow.parquet").write_table(
            table, file, compression="zstd", row_group_size=_ROWS_IN_A_GROUP, write_page_checksum=True
        )


def read_contexts(path: Path) -> Contexts:
    """Read a file that ``write_contexts`` wrote; one that was damaged since is an error."""
    table = _table(path)
    metadata = _metadata(path, table)
    table = table.replace_schema_metadata(None)
    checked = _check(path, table, metadata)
    return Contexts(tuple(metadata["stimuli"]), table, metadata, checked)


def _table(path: Path) -> Any:
    pyarrow, parquet = tool("pyarrow"), tool("pyarrow.parquet")
    try:
        with open_file(path) as file, parquet.ParquetFile(file, page_checksum_verification=True) as stored:
            table = stored.read()
        table.validate(full=True)  # texts that are not UTF-8
        return table
    except FileNotFoundError:
        raise UsageError(f"no file of contexts at {str(path)!r}; `biassay contexts` writes one") from None
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise UsageError(f"{str(path)!r} cannot be read as a file of contexts: {error}; {_IF_DAMAGED}") from error


def _metadata(path: Path, table: Any) -> dict[str, Any]:
    content = (table.schema.metadata or {}).get(_METADATA)
    if content is None or not set(COLUMNS) <= set(table.column_names):
        raise UsageError(f"{str(path)!r} is not a file of contexts; `biassay contexts` writes one")
    try:
        metadata: dict[str, Any] = dict(json.loads(content))
        version, _ = int(metadata.get("format", 0)), tuple(metadata["stimuli"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise UsageError(
            f"{str(path)!r} is damaged: what it says of itself cannot be read ({error}); {_IF_DAMAGED}"
        ) from error
    if version > FORMAT_VERSION:
        raise UsageError(
            f"{str(path)!r} has format {version} of contexts, this biassay reads up to {FORMAT_VERSION}; "
            "install a newer biassay or make the file again"
        )
    return metadata


def _check(path: Path, table: Any, metadata: dict[str, Any]) -> bool:
    """Are metadata and rows what was written? False where an earlier version wrote no digest."""
    same, rows = check_digest(metadata), metadata.pop(_ROWS, None)
    if same is None and rows is None:
        return False
    if not same or rows != _rows_digest(table):
        raise UsageError(f"{str(path)!r} is damaged: not the contexts that were written; {_IF_DAMAGED}")
    return True


def _rows_digest(table: Any) -> str | None:
    """A fingerprint of all columns, whatever the chunks in which they are held; None where they are not ours."""
    if table.schema != Sample((), 1).to_table().select(list(COLUMNS)).schema:
        return None
    made = hashlib.blake2b(digest_size=16)
    for column in table.columns:
        for chunk in column.chunks:
            made.update(_numbers(chunk))
        for chunk in column.chunks if column.type == table["text"].type else ():
            made.update(_letters(chunk))
    return made.hexdigest()


def _letters(texts: Any) -> memoryview:
    """The bytes of all texts of an Arrow array."""
    _, places, data = texts.buffers()
    start, stop = np.frombuffer(places or bytes(8), np.int64)[[texts.offset, texts.offset + len(texts)]]
    return memoryview(data or b"")[start:stop]


def _numbers(chunk: Any) -> Any:
    """The numbers of a column, or the sizes of its texts."""
    numbers = chunk if tool("pyarrow").types.is_integer(chunk.type) else tool("pyarrow.compute").binary_length(chunk)
    return numbers.to_numpy(zero_copy_only=False)


def window(text: str, span: tuple[int, int], words: int | None = 9) -> tuple[str, tuple[int, int]]:
    """Cut a text to so many words around a stimulus, as many to each side; None leaves it whole.

    Where one side has fewer, the other does not get more: so does the code released with CEAT.
    """
    if words is None:
        return text, span
    if words < 1:
        raise UsageError(f"a window of {words} words; it has at least 1, the stimulus")
    aside = (words - 1) // 2
    places = [(match.start(), match.end()) for match in re.finditer(r"\S+", text)]
    held = [number for number, (start, end) in enumerate(places) if start < span[1] and end > span[0]]
    begin = places[max(0, held[0] - aside)][0]
    stop = places[min(len(places) - 1, held[-1] + aside)][1]
    return text[begin:stop], (span[0] - begin, span[1] - begin)
