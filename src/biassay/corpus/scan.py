"""Scan parts of a corpus: read documents, match stimuli, draw matches and cut out their sentences."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.corpus.files import CorpusPart
from biassay.corpus.matcher import get_matcher
from biassay.corpus.reader import PackedDocuments, ReadStats, open_reader
from biassay.corpus.sampler import NO_LIMIT, ContextSample, draw_matches, make_stimulus_seeds, make_table
from biassay.corpus.segmenter import TextSpan, find_sentence, get_segmenter
from biassay.errors import UsageError

GROUP_BYTES = 256 << 20
_BUFFERED_ROWS = 10_000


@dataclass(frozen=True)
class ScanSettings:
    """Stimuli of a scan, and how documents are read and matched.

    See `biassay.find_contexts` for the meaning of each setting.
    """

    stimuli: tuple[str, ...]
    k: int
    seed: int = 0
    field: str | None = None
    format: str | None = None
    document: str = "line"
    html: bool = False
    language: str = "en"
    ignore_case: bool = False
    openings: bool = False

    def __post_init__(self) -> None:
        if not self.stimuli or len(set(self.stimuli)) < len(self.stimuli):
            raise UsageError("a scan needs at least one stimulus, and each only once")
        if self.k < 1:
            raise UsageError(f"at most {self.k} contexts per stimulus; use 1 or more")
        if self.document not in ("line", "paragraph"):
            raise UsageError(f"a document is a 'line' or a 'paragraph', not {self.document!r}")


@dataclass(frozen=True)
class PartResult:
    """Result of a group of chunks of a part.

    Attributes
    ----------
    part : CorpusPart
        Part of the corpus.
    group : int
        Number of the group in the part.
    last : bool
        True for the last group of the part.
    table : pyarrow.Table
        Rows that the group adds to the sample.
    found : (stimuli,) array of int
        Number of matches per stimulus.
    bytes : int
        Decompressed size.
    stats : ReadStats
        Counts of documents.
    damage : str or None
        Why reading stopped before the end of the file.
    """

    part: CorpusPart
    group: int
    last: bool
    table: Any
    found: NDArray[np.int64]
    bytes: int
    stats: ReadStats
    damage: str | None


def scan_part(
    part: CorpusPart,
    settings: ScanSettings,
    limits: NDArray[np.uint64] | None = None,
    skip: int = 0,
    group_bytes: int = GROUP_BYTES,
) -> Iterator[PartResult]:
    """Scan a part and yield a result per group of about `group_bytes`.

    Parameters
    ----------
    part : CorpusPart
        Part to scan.
    settings : ScanSettings
        Stimuli and options.
    limits : (stimuli,) array of uint64, optional
        Largest key per stimulus that can be in the sample, from any sample with the same settings. Outdated limits
        cost time but do not change the sample.
    skip : int
        Number of groups that were scanned before. They are read but not parsed.
    group_bytes : int
        Size of a group.
    """
    reader = open_reader(part, settings.field, settings.document, settings.html)
    scanner = _PartScanner(part, settings, limits)
    group, size, stats, found = 0, 0, ReadStats(), np.zeros(len(settings.stimuli), np.int64)
    for chunk in reader.chunks():
        size += chunk.nbytes
        if group >= skip:
            found += scanner.scan(chunk.parse(stats))
        if size >= group_bytes:
            if group >= skip:
                yield PartResult(part, group, False, scanner.take_rows(), found, size, stats, None)
            group, size, stats, found = group + 1, 0, ReadStats(), np.zeros_like(found)
    if group >= skip:
        rows = scanner.take_rows()
        del scanner  # frees memory while the caller merges the rows
        yield PartResult(part, group, True, rows, found, size, stats, reader.damage)


class _PartScanner:
    """Sample of the part scanned so far."""

    def __init__(self, part: CorpusPart, settings: ScanSettings, limits: NDArray[np.uint64] | None) -> None:
        self._file_name, self._stimuli = part.file.name, settings.stimuli
        self._matcher = get_matcher(settings.stimuli, settings.ignore_case, settings.openings)
        self._lengths = self._matcher.lengths
        self._segmenter = get_segmenter(settings.language)
        self._seeds = make_stimulus_seeds(settings.stimuli, settings.seed)
        self._limits = np.full(len(settings.stimuli), NO_LIMIT) if limits is None else limits
        self._sample = ContextSample(settings.stimuli, settings.k)
        self._rows: list[tuple[str, int, str, int, int, str]] = []

    def scan(self, documents: PackedDocuments) -> NDArray[np.int64]:
        """Add the matches in some documents to the sample. Return the number of matches per stimulus."""
        matches = self._matcher.find(documents)
        drawn = draw_matches(matches, documents, self._seeds, self._limits)
        document = matches.document[drawn.indices]
        columns = (
            *(drawn.indices, drawn.ordinal, drawn.key, matches.stimulus[drawn.indices], matches.start[drawn.indices]),
            *(documents.starts[document], documents.stops[document], documents.positions[document]),
        )
        for index, ordinal, key, stimulus, start, document_start, document_stop, position in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            earlier = matches.start[index - ordinal : index].tolist() if ordinal else ()
            span = TextSpan(documents.data, document_start, document_stop)
            sentence = find_sentence(span, start, start + self._lengths[stimulus], earlier, self._segmenter)
            self._rows.append((self._stimuli[stimulus], key, *sentence, f"{self._file_name}:{position}"))
        if len(self._rows) >= _BUFFERED_ROWS:
            self._flush()
        return np.bincount(matches.stimulus, minlength=len(self._stimuli))

    def take_rows(self) -> Any:
        """Return the rows that were added to the sample since the last call."""
        self._flush()
        return self._sample.take_new_rows()

    def _flush(self) -> None:
        if self._rows:
            self._sample.add(make_table(*zip(*self._rows, strict=True)))
            self._rows = []
            self._limits = np.minimum(self._limits, self._sample.get_limits())


@dataclass(frozen=True)
class ScanTask:
    """A part for a worker to scan, with the limits known when it is handed out."""

    part_index: int
    part: CorpusPart
    skip: int
    limits: NDArray[np.uint64]


@dataclass(frozen=True)
class ScannerFactory:
    """Make a worker that scans one task after the other."""

    settings: ScanSettings

    def __call__(self) -> Callable[[ScanTask], Iterator[tuple[int, PartResult]]]:
        """Return the function that scans a task."""
        return functools.partial(_scan_task, self.settings)


def _scan_task(settings: ScanSettings, task: ScanTask) -> Iterator[tuple[int, PartResult]]:
    for result in scan_part(task.part, settings, task.limits, task.skip):
        yield task.part_index, result
