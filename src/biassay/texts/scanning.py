"""One part of a corpus to partial samples: read, match, draw keys, and cut out the sentences of the few that stay."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UsageError
from biassay.texts.corpus import Part
from biassay.texts.documents import Documents, Tally, open_reader
from biassay.texts.matching import Hits, Joined, matcher_for
from biassay.texts.sampling import NO_LIMIT, Pool, Row, hit_keys, rows_table, stimulus_keys
from biassay.texts.segmenting import REACH, sentence_around
from biassay.texts.tools import tool

__all__ = ["GROUP_BYTES", "Partial", "ScanSettings", "scan"]

GROUP_BYTES = 256 << 20
# Sentences are cut out after so many bytes of documents: by then most hits are known to be out of the sample.
_HELD = 32 << 20


@dataclass(frozen=True)
class ScanSettings:
    """What is looked for, and how documents are read."""

    stimuli: tuple[str, ...]
    k: int
    seed: int = 0
    field: str | None = None
    format: str | None = None
    document: str = "line"
    html: bool = False
    language: str = "en"
    ignore_case: bool = False

    def __post_init__(self) -> None:
        if not self.stimuli or len(set(self.stimuli)) < len(self.stimuli):
            raise UsageError("a scan needs stimuli, each of them once")
        if self.k < 1:
            raise UsageError(f"at most {self.k} contexts for each stimulus; ask for 1 or more")
        if self.document not in ("line", "paragraph"):
            raise UsageError(f"a document is a 'line' or a 'paragraph', not {self.document!r}")


@dataclass
class Partial:
    """What a group of a part gave. ``bytes`` are those of the decompressed input."""

    part: Part
    group: int
    last: bool
    table: Any
    found: NDArray[np.int64]
    documents: int
    bytes: int
    bad: int
    bad_examples: tuple[str, ...]
    undecodable: int
    damaged: str | None


def scan(
    part: Part,
    settings: ScanSettings,
    thresholds: NDArray[np.uint64] | None = None,
    skip: int = 0,
    group_bytes: int = GROUP_BYTES,
) -> Iterator[Partial]:
    """Scan a part and give a partial result for each group of about ``group_bytes`` of input.

    Parameters
    ----------
    thresholds : (stimuli,) array of uint64, optional
        Keys above which no hit matters, from any sample of the same settings. Old ones only cost time.
    skip : int
        So many groups were done before: they are read and not looked at.
    """
    limits = np.full(len(settings.stimuli), NO_LIMIT) if thresholds is None else thresholds.copy()
    reader = open_reader(part, settings.field, settings.document, settings.html)
    number, group = 0, _Group(part, settings, limits)
    for piece in reader.pieces():
        group.bytes += piece.nbytes
        if number >= skip:
            group.take(piece.documents(group.tally))
        if group.bytes >= group_bytes:
            if number >= skip:
                yield group.partial(number, last=False, damaged=None)
            number, group = number + 1, _Group(part, settings, group.limits)
    if number >= skip:
        yield group.partial(number, last=True, damaged=reader.damage)


@dataclass(frozen=True)
class _Noted:
    """Hits of a block; ``small`` are the indices of those that may be in the sample, ``keys`` their keys.

    Documents without such a hit are let go: memory that is used again is memory in the processor's cache.
    """

    hits: Hits
    ordinal: NDArray[np.int64]
    small: NDArray[np.intp]
    keys: NDArray[np.uint64]
    texts: dict[int, bytes]
    places: NDArray[np.int64]


class _Group:
    """The sample of one group of a part. ``limits`` fall as it fills."""

    def __init__(self, part: Part, settings: ScanSettings, limits: NDArray[np.uint64]) -> None:
        self.part, self.settings, self.limits = part, settings, limits
        self.tally = Tally()
        self.bytes = 0
        self.found = np.zeros(len(settings.stimuli), np.int64)
        self._matcher = matcher_for(settings.stimuli, settings.ignore_case)
        self._keys = stimulus_keys(settings.stimuli, settings.seed)
        self._digest = tool("xxhash").xxh3_64_intdigest
        self._segment = functools.partial(tool("sentencex").segment, settings.language)
        self._lengths: list[int] = self._matcher.lengths.tolist()
        self._name = part.file.name
        self._pools: dict[int, Pool] = {}
        self._noted: list[_Noted] = []
        self._held = 0

    def take(self, documents: Documents) -> None:
        """Count the hits of some documents, and note those that may be in the sample."""
        hits = self._matcher.find(Joined.of(documents.texts))
        self.found += np.bincount(hits.stimulus, minlength=len(self.found))
        ordinal = _ordinals(hits)
        keys = hit_keys(self._keys[hits.stimulus], self._document_ids(documents, hits), ordinal)
        self._note(documents, hits, ordinal, keys)
        if self._held >= _HELD:
            self._settle()

    def _note(self, documents: Documents, hits: Hits, ordinal: NDArray[np.int64], keys: NDArray[np.uint64]) -> None:
        small = np.flatnonzero(keys <= self.limits[hits.stimulus])
        if not len(small):
            return
        texts = {i: documents.texts[i] for i in np.unique(hits.document[small]).tolist()}
        self._noted.append(_Noted(hits, ordinal, small, keys[small], texts, documents.places))
        self._held += sum(map(len, texts.values()))

    def _document_ids(self, documents: Documents, hits: Hits) -> NDArray[np.uint64]:
        held = np.zeros(len(documents.texts), bool)
        held[hits.document] = True
        ids = np.zeros(len(held), np.uint64)
        ids[held] = [self._digest(documents.texts[i]) for i in np.flatnonzero(held).tolist()]
        return ids[hits.document]

    def _settle(self) -> None:
        """Cut out the sentences with the smallest keys, and let go of the documents."""
        if not self._noted:
            return
        keys = np.concatenate([noted.keys for noted in self._noted])
        stimulus = np.concatenate([noted.hits.stimulus[noted.small] for noted in self._noted])
        index = np.concatenate([noted.small for noted in self._noted])
        block = np.repeat(np.arange(len(self._noted)), [len(noted.small) for noted in self._noted])
        order = np.lexsort((keys, stimulus))
        for here in np.split(order, np.flatnonzero(np.diff(stimulus[order])) + 1) if len(order) else ():
            number = int(stimulus[here[0]])
            pool = self._pools.setdefault(number, Pool(self.settings.k, int(self.limits[number])))
            pool.add(keys[here], block[here], index[here], functools.partial(self._row, number))
            self.limits[number] = pool.limit
        self._noted, self._held = [], 0

    def _row(self, stimulus: int, key: int, block: int, i: int) -> Row:
        noted = self._noted[block]
        document, start, before = int(noted.hits.document[i]), int(noted.hits.start[i]), int(noted.ordinal[i])
        # No more hits than bytes are within reach: one document may have millions.
        earlier = noted.hits.start[i - min(before, REACH) : i].tolist() if before else ()
        text, start, end = sentence_around(
            noted.texts[document], start, self._lengths[stimulus], earlier, self._segment
        )
        return Row(key, f"{self._name}:{int(noted.places[document])}", start, end, text)

    def partial(self, number: int, last: bool, damaged: str | None) -> Partial:
        self._settle()
        rows: list[Row] = []
        names: list[str] = []
        for stimulus in sorted(self._pools):
            kept = self._pools[stimulus].rows
            rows += kept
            names += [self.settings.stimuli[stimulus]] * len(kept)
        tally = self.tally
        return Partial(
            part=self.part,
            group=number,
            last=last,
            table=rows_table(names, rows),
            found=self.found,
            documents=tally.documents,
            bytes=self.bytes,
            bad=tally.bad,
            bad_examples=tuple(tally.examples),
            undecodable=tally.undecodable,
            damaged=damaged,
        )


def _ordinals(hits: Hits) -> NDArray[np.int64]:
    """The number of each hit among those of its stimulus in its document."""
    index = np.arange(len(hits.stimulus))
    first = np.ones(len(index), bool)
    first[1:] = (np.diff(hits.stimulus) != 0) | (np.diff(hits.document) != 0)
    return index - np.maximum.accumulate(np.where(first, index, 0))
