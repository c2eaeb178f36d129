"""Contexts files (sentences that contain stimuli, in Parquet), and their coverage of tests and groups."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.corpus.sampler import ContextSample
from biassay.datasets.abc_model import AbcStimuli, SocialGroup, TraitPair
from biassay.datasets.schema import ROLES, Concept, Test
from biassay.errors import UsageError, format_examples
from biassay.io import atomic_writer, check_digest, dump_json_with_digest, open_file
from biassay.packages import require

FORMAT_VERSION = 1
COLUMNS = ("stimulus", "text", "start", "end", "source", "key")
_DAMAGE_HINT = "write it again with `biassay contexts`, or restore a copy"
_METADATA, _ROWS = b"biassay", "rows_digest"
_ROWS_PER_HASH = 100_000
_ROWS_PER_GROUP = 100_000


@dataclass(frozen=True)
class Contexts:
    """Contexts in memory.

    Attributes
    ----------
    stimuli : tuple of str
        Stimuli that were searched for.
    table : pyarrow.Table
        Columns stimulus, text, start, end, source and key, sorted by stimulus and key. ``start`` and ``end`` are the
        position of the stimulus in the text, in characters.
    metadata : mapping
        Settings and counts of the scan.
    """

    stimuli: tuple[str, ...]
    table: Any
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def get_rows(self, stimulus: str) -> slice:
        """Return the rows of a stimulus; an empty slice if it has none."""
        return self._rows.get(stimulus, slice(0, 0))

    def count(self, stimulus: str) -> int:
        """Return the number of contexts of a stimulus."""
        rows = self.get_rows(stimulus)
        return int(rows.stop - rows.start)

    def documents(self, rows: slice) -> NDArray[np.int64]:
        """Return the document number of some rows; a row without a source is a separate document."""
        return self._documents[rows]

    @property
    def num_unknown_documents(self) -> int:
        """Count the rows without a source."""
        return int((self._documents < 0).sum())

    def texts(self, rows: slice | Sequence[int]) -> list[str]:
        """Return the texts of some rows."""
        return list(self._take(rows)["text"].to_pylist())

    def spans(self, rows: slice | Sequence[int]) -> list[tuple[int, int]]:
        """Return the position of the stimulus in the texts of some rows."""
        taken = self._take(rows)
        return list(zip(taken["start"].to_pylist(), taken["end"].to_pylist(), strict=True))

    @functools.cached_property
    def digest(self) -> str:
        """Hash of all stimuli, texts and positions."""
        digest = hashlib.blake2b(digest_size=16)
        table = self.table.select(["stimulus", "text", "start", "end"])
        for start in range(0, len(self), _ROWS_PER_HASH):
            rows = table.slice(start, _ROWS_PER_HASH)
            digest.update(json.dumps([column.to_pylist() for column in rows.columns]).encode())
        return digest.hexdigest()

    @functools.cached_property
    def _documents(self) -> NDArray[np.int64]:
        encoded = self.table["source"].combine_chunks().dictionary_encode()
        numbers = np.asarray(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
        empty = require("pyarrow.compute").index(encoded.dictionary, "").as_py()
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


def write_contexts(path: Path, sample: ContextSample, metadata: Mapping[str, Any]) -> None:
    """Write a sample to a Parquet file, atomically.

    Parameters
    ----------
    path : Path
        File to write.
    sample : ContextSample
        Sample of all stimuli.
    metadata : mapping
        Any JSON values to store in the file.
    """
    table = sample.to_table().select(list(COLUMNS))
    fields = {"format": FORMAT_VERSION, "stimuli": sample.stimuli, "k": sample.k, _ROWS: _hash_rows(table)}
    table = table.replace_schema_metadata({_METADATA: dump_json_with_digest({**metadata, **fields}).encode()})
    with atomic_writer(path) as file:
        require("pyarrow.parquet").write_table(
            table, file, compression="zstd", row_group_size=_ROWS_PER_GROUP, write_page_checksum=True
        )


def read_contexts(path: Path) -> Contexts:
    """Read a contexts file. Raise UsageError if it is damaged."""
    table = _read_table(path)
    metadata = _read_metadata(path, table)
    table = table.replace_schema_metadata(None)
    _verify(path, table, metadata)
    return Contexts(tuple(metadata["stimuli"]), table, metadata)


def _read_table(path: Path) -> Any:
    pyarrow, parquet = require("pyarrow"), require("pyarrow.parquet")
    try:
        with open_file(path) as file, parquet.ParquetFile(file, page_checksum_verification=True) as stored:
            table = stored.read()
        table.validate(full=True)  # texts that are not UTF-8
        return table
    except FileNotFoundError:
        raise UsageError(f"no contexts file at {str(path)!r}; write one with `biassay contexts`") from None
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise UsageError(f"{str(path)!r} cannot be read as a contexts file: {error}; {_DAMAGE_HINT}") from error


def _read_metadata(path: Path, table: Any) -> dict[str, Any]:
    content = (table.schema.metadata or {}).get(_METADATA)
    if content is None or not set(COLUMNS) <= set(table.column_names):
        raise UsageError(f"{str(path)!r} is not a contexts file; write one with `biassay contexts`")
    try:
        metadata: dict[str, Any] = dict(json.loads(content))
        version, _ = int(metadata.get("format", 0)), tuple(metadata["stimuli"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise UsageError(f"{str(path)!r} is damaged: its metadata cannot be read ({error}); {_DAMAGE_HINT}") from error
    if version > FORMAT_VERSION:
        raise UsageError(
            f"{str(path)!r} has contexts format {version}, and this version of biassay reads up to {FORMAT_VERSION}; "
            "install a newer biassay or write the file again"
        )
    return metadata


def _verify(path: Path, table: Any, metadata: dict[str, Any]) -> None:
    """Raise UsageError unless metadata and rows have the digests that were written with them."""
    same, rows = check_digest(metadata), metadata.pop(_ROWS, None)
    if not same or rows != _hash_rows(table):
        raise UsageError(f"{str(path)!r} is damaged: the contexts differ from those that were written; {_DAMAGE_HINT}")


def _hash_rows(table: Any) -> str | None:
    """Return a hash of all columns that does not depend on chunks, or None for another schema."""
    if table.schema != ContextSample((), 1).to_table().select(list(COLUMNS)).schema:
        return None
    digest = hashlib.blake2b(digest_size=16)
    for column in table.columns:
        for chunk in column.chunks:
            digest.update(_get_numbers(chunk))
        for chunk in column.chunks if column.type == table["text"].type else ():
            digest.update(_get_text_bytes(chunk))
    return digest.hexdigest()


def _get_text_bytes(texts: Any) -> memoryview:
    """Return the bytes of all texts of an Arrow array."""
    _, offsets, data = texts.buffers()
    start, stop = np.frombuffer(offsets or bytes(8), np.int64)[[texts.offset, texts.offset + len(texts)]]
    return memoryview(data or b"")[start:stop]


def _get_numbers(chunk: Any) -> Any:
    """Return the numbers of a column, or the sizes of its texts."""
    numbers = (
        chunk if require("pyarrow").types.is_integer(chunk.type) else require("pyarrow.compute").binary_length(chunk)
    )
    return numbers.to_numpy(zero_copy_only=False)


def cut_window(text: str, span: tuple[int, int], words: int | None = 9) -> tuple[str, tuple[int, int]]:
    """Cut a text to a window of words around a stimulus.

    Parameters
    ----------
    text : str
        Text that contains the stimulus.
    span : tuple of int
        Position of the stimulus in the text.
    words : int or None
        Number of words in the window, half of them on each side. A side with fewer words does not extend the other,
        as in the code released with CEAT. If None, the text stays whole.

    Returns
    -------
    text : str
        The window.
    span : tuple of int
        Position of the stimulus in the window.
    """
    if words is None:
        return text, span
    if words < 1:
        raise UsageError(f"a window of {words} words; use 1 or more")
    margin = (words - 1) // 2
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    inside = [index for index, (start, end) in enumerate(spans) if start < span[1] and end > span[0]]
    begin = spans[max(0, inside[0] - margin)][0]
    stop = spans[min(len(spans) - 1, inside[-1] + margin)][1]
    return text[begin:stop], (span[0] - begin, span[1] - begin)


MAX_LOST = 0.2
LEAST_STIMULI = 2


@dataclass(frozen=True)
class ConceptCoverage:
    """Number of contexts per stimulus of a word set.

    Attributes
    ----------
    role, label : str
        Role of the word set in the test, and its label.
    counts : tuple of (str, int)
        Usable contexts per stimulus.
    in_corpus : tuple of int
        All contexts per stimulus, including those in which the model cannot locate it.
    least : int
        A stimulus with fewer usable contexts is missing.
    """

    role: str
    label: str
    counts: tuple[tuple[str, int], ...]
    in_corpus: tuple[int, ...]
    least: int

    @property
    def missing(self) -> tuple[str, ...]:
        """Stimuli with too few usable contexts."""
        return tuple(stimulus for stimulus, count in self.counts if count < self.least)

    @property
    def too_rare(self) -> tuple[str, ...]:
        """Stimuli that are missing because the corpus has too few contexts, whatever the model."""
        pairs = zip(self.counts, self.in_corpus, strict=True)
        return tuple(stimulus for (stimulus, _), number in pairs if number < self.least)

    def lack(self, max_unknown: float) -> str | None:
        """Return why the word set cannot be measured, or None.

        It needs two stimuli, and at most a share `max_unknown` may be missing.
        """
        total, gone = len(self.counts), len(self.missing)
        if total - gone >= LEAST_STIMULI and gone <= max_unknown * total:
            return None
        limit = f"the limit is {max_unknown:.0%}, `biassay run --max-unknown` and `--min-contexts` change it"
        few = f"{gone} of {total} words of {self.label} have fewer than {self.least} usable contexts ({self._causes()})"
        return f"{few}; {limit if total - gone >= LEAST_STIMULI else 'too few are left'}"

    def _causes(self) -> str:
        rows = zip(self.counts, self.in_corpus, strict=True)
        missing = [(word, count, total) for (word, count), total in rows if word in self.missing]
        rare = format_examples([f"{word} {total}" for word, _, total in missing if word in self.too_rare])
        unlocated = format_examples(
            [f"{word} {count} of {total}" for word, count, total in missing if word not in self.too_rare]
        )
        causes = {"in the corpus": rare, "located by the model": unlocated}
        return "; ".join(f"{cause}: {words}" for cause, words in causes.items() if words)


@dataclass(frozen=True)
class TestCoverage:
    """Contexts of one test. The test is measurable if every word set has enough."""

    __test__ = False

    test: str
    concepts: tuple[ConceptCoverage, ...]
    max_unknown: float

    @property
    def measurable(self) -> bool:
        """Whether every word set has enough contexts."""
        return self.reason is None

    @property
    def reason(self) -> str | None:
        """Why the test cannot be measured, or None."""
        return next((lack for concept in self.concepts if (lack := concept.lack(self.max_unknown)) is not None), None)

    @property
    def missing(self) -> dict[str, tuple[str, ...]]:
        """Stimuli with too few usable contexts, by role."""
        return {concept.role: concept.missing for concept in self.concepts}

    @property
    def too_rare(self) -> dict[str, tuple[str, ...]]:
        """Stimuli with too few contexts in the corpus, by role."""
        return {concept.role: concept.too_rare for concept in self.concepts}

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """Usable contexts per stimulus, by role."""
        return {concept.role: dict(concept.counts) for concept in self.concepts}


def coverage(
    count: Callable[[str], int],
    tests: Iterable[Test],
    least: int,
    max_unknown: float = MAX_LOST,
    in_corpus: Callable[[str], int] | None = None,
) -> tuple[TestCoverage, ...]:
    """Count the contexts of tests.

    Parameters
    ----------
    count : callable
        Function from a word to its number of usable contexts.
    tests : iterable of Test
        Tests to cover.
    least : int
        Number of contexts that a stimulus needs.
    max_unknown : float
        Largest share of a word set that may have fewer.
    in_corpus : callable, optional
        Function from a word to its number of contexts in the corpus. By default all of them are usable.
    """

    def count_concept(role: str, concept: Concept) -> ConceptCoverage:
        counts = tuple((word, count(word)) for word in concept.words)
        corpus_counts = tuple((in_corpus or count)(word) for word in concept.words)
        return ConceptCoverage(role, concept.label, counts, corpus_counts, least)

    return tuple(
        TestCoverage(test.name, tuple(count_concept(role, test.concept(role)) for role in ROLES), max_unknown)
        for test in tests
    )


Counts = tuple[tuple[str, int], ...]


def get_group_forms(group: SocialGroup) -> tuple[str, ...]:
    """Return the words for a group. A context of any of them is a context of the group."""
    return tuple(dict.fromkeys((group.singular, group.plural)))


def get_adjectives(pair: TraitPair, *, all_adjectives: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the adjectives of the left and of the right side: the first one, or all."""
    sides = pair.left_adjectives, pair.right_adjectives
    return sides if all_adjectives else (sides[0][:1], sides[1][:1])


def abc_words(abc: AbcStimuli, *, all_adjectives: bool = False) -> tuple[str, ...]:
    """Return all words to search for, each once: forms of groups, then adjectives."""
    forms = [form for group in abc.groups for form in get_group_forms(group)]
    sides = [side for pair in abc.pairs for side in get_adjectives(pair, all_adjectives=all_adjectives)]
    return tuple(dict.fromkeys((*forms, *(word for side in sides for word in side))))


@dataclass(frozen=True)
class PairCoverage:
    """Contexts of the adjectives of a trait pair. Both sides need an adjective with enough contexts."""

    pair: str
    left: Counts
    right: Counts
    least: int

    @property
    def measurable(self) -> bool:
        """Whether both sides have an adjective with enough contexts."""
        return all(any(count >= self.least for _, count in side) for side in (self.left, self.right))


@dataclass(frozen=True)
class AbcCoverage:
    """Contexts of all groups, in any of their forms, and of all trait pairs.

    A group or adjective needs `least` contexts.
    """

    groups: Counts
    pairs: tuple[PairCoverage, ...]
    least: int

    @property
    def adjectives(self) -> dict[str, int]:
        """Contexts per adjective."""
        return {word: count for pair in self.pairs for side in (pair.left, pair.right) for word, count in side}

    @property
    def few_groups(self) -> tuple[str, ...]:
        """Groups with too few contexts."""
        return tuple(name for name, count in self.groups if count < self.least)

    @property
    def few_adjectives(self) -> tuple[str, ...]:
        """Adjectives with too few contexts."""
        return tuple(word for word, count in self.adjectives.items() if count < self.least)

    @property
    def measurable_groups(self) -> tuple[str, ...]:
        """Groups with enough contexts."""
        return tuple(name for name, count in self.groups if count >= self.least)

    @property
    def measurable_pairs(self) -> tuple[str, ...]:
        """Trait pairs with enough contexts on both sides."""
        return tuple(pair.pair for pair in self.pairs if pair.measurable)


def abc_coverage(
    count: Callable[[str], int],
    groups: Sequence[SocialGroup],
    pairs: Sequence[TraitPair],
    least: int,
    *,
    all_adjectives: bool = False,
) -> AbcCoverage:
    """Count the contexts of groups and trait adjectives.

    Parameters
    ----------
    count : callable
        Function from a word to its number of contexts.
    groups : sequence of SocialGroup
        Groups to cover.
    pairs : sequence of TraitPair
        Trait pairs to cover.
    least : int
        Number of contexts that a group or adjective needs.
    all_adjectives : bool
        If True, count all adjectives of a trait, not only its first.
    """

    def count_pair(pair: TraitPair) -> PairCoverage:
        sides = get_adjectives(pair, all_adjectives=all_adjectives)
        left, right = (tuple((word, count(word)) for word in side) for side in sides)
        return PairCoverage(pair.name, left, right, least)

    group_counts = tuple((group.name, sum(map(count, get_group_forms(group)))) for group in groups)
    return AbcCoverage(group_counts, tuple(map(count_pair, pairs)), least)
