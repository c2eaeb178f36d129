"""One part of a corpus to partial samples: read, match, draw keys, and cut out the sentences of the few that stay."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UsageError
from biassay.texts.corpus import Part
from biassay.texts.documents import Documents, Tally, open_reader
from biassay.texts.matching import matcher_for
from biassay.texts.sampling import NO_LIMIT, Drawn, Pool, Row, draw, rows_table, stimulus_keys
from biassay.texts.segmenting import REACH, sentence_around
from biassay.texts.tools import tool

__all__ = ["GROUP_BYTES", "Partial", "ScanSettings", "scan"]

GROUP_BYTES = 256 << 20
# Sentences are cut out when so many bytes of documents are held, or so many hits for each context that is wanted:
# the longer the wait, the more hits turn out not to be of the sample.
_HELD = 32 << 20
_HITS_FOR_A_CONTEXT = 4


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
    openings: bool = False

    def __post_init__(self) -> None:
        if not self.stimuli or len(set(self.stimuli)) < len(self.stimuli):
            raise UsageError("a scan needs stimuli, each of them once")
        if self.k < 1:
            raise UsageError(f"at most {self.k} contexts for each stimulus; ask for 1 or more")
        if self.document not in ("line", "paragraph"):
            raise UsageError(f"a document is a 'line' or a 'paragraph', not {self.document!r}")


@dataclass
class Partial:
    """The result of a group of a part. ``bytes`` counts decompressed input."""

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
        How many groups were scanned before; they are read and skipped.
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


class _Noted:
    """Hits that may be in a sample, and their documents."""

    def __init__(self) -> None:
        self.texts: list[bytes] = []
        self.places: list[int] = []
        self.size = self.hits = self._earlier = 0
        self._drawn: list[Drawn] = []

    def add(self, documents: Documents, drawn: Drawn) -> None:
        """Take hits of some documents, and copy those that have any."""
        numbers, document = np.unique(drawn.document, return_inverse=True)
        joined = documents.joined
        data, base = joined.data.tobytes(), len(self.texts)
        spans = zip(joined.starts[numbers].tolist(), joined.stops[numbers].tolist(), strict=True)
        self.texts += [data[start:stop] for start, stop in spans]
        self.places += documents.places[numbers].tolist()
        first, last = drawn.first + self._earlier, drawn.last + self._earlier
        self._drawn.append(drawn._replace(document=document + base, first=first, last=last))
        self._earlier += len(drawn.earlier)
        self.hits += len(drawn.key)
        self.size += int((joined.stops[numbers] - joined.starts[numbers]).sum())

    def by_stimulus(self) -> Iterator[tuple[int, Drawn]]:
        """The hits of each stimulus by rising key."""
        whole = Drawn(*map(np.concatenate, zip(*self._drawn, strict=True)))
        order = np.lexsort((whole.key, whole.stimulus))
        for here in np.split(order, np.flatnonzero(np.diff(whole.stimulus[order])) + 1):
            drawn = Drawn._make([*(column[here] for column in whole[:-1]), whole.earlier])
            yield int(drawn.stimulus[0]), drawn


class _Group:
    """The sample of one group of a part. ``limits`` fall as it fills."""

    def __init__(self, part: Part, settings: ScanSettings, limits: NDArray[np.uint64]) -> None:
        self.part, self.settings, self.limits = part, settings, limits
        self.tally = Tally()
        self.bytes = 0
        self.found = np.zeros(len(settings.stimuli), np.int64)
        self._matcher = matcher_for(settings.stimuli, settings.ignore_case, settings.openings)
        self._keys = stimulus_keys(settings.stimuli, settings.seed)
        self._segment = functools.partial(tool("sentencex").segment, settings.language)
        self._name = part.file.name
        self._pools: dict[int, Pool] = {}
        self._noted = _Noted()

    def take(self, documents: Documents) -> None:
        """Count the hits of some documents, and note those that may be in the sample."""
        hits = self._matcher.find(documents.joined)
        self.found += np.bincount(hits.stimulus, minlength=len(self.found))
        drawn = draw(hits, documents.joined, self._keys, self.limits, REACH)
        if len(drawn.key):
            self._noted.add(documents, drawn)
        if self._noted.size >= _HELD or self._noted.hits >= _HITS_FOR_A_CONTEXT * self.settings.k * len(self.found):
            self._settle()

    def _settle(self) -> None:
        """Cut out the sentences with the smallest keys, and let go of the documents."""
        if not self._noted.hits:
            return
        with _no_collection():
            for stimulus, drawn in self._noted.by_stimulus():
                pool = self._pools.setdefault(stimulus, Pool(self.settings.k, int(self.limits[stimulus])))
                pool.add(drawn.key.tolist(), self._cutter(stimulus, drawn))
                self.limits[stimulus] = pool.limit
        self._noted = _Noted()

    def _cutter(self, stimulus: int, drawn: Drawn) -> Callable[[int], Row]:
        """A function from the number of a hit to its row. It is called for every context, so all is prepared first."""
        texts, places, segment, name = self._noted.texts, self._noted.places, self._segment, self._name
        length = int(self._matcher.lengths[stimulus])
        _, documents, starts, keys, first, last = (column.tolist() for column in drawn[:-1])

        def cut(i: int) -> Row:
            earlier = drawn.earlier[first[i] : last[i]].tolist() if first[i] < last[i] else ()
            document = documents[i]
            text, start, end = sentence_around(texts[document], starts[i], length, earlier, segment)
            return Row(keys[i], text, f"{name}:{places[document]}", start, end)

        return cut

    def partial(self, number: int, last: bool, damaged: str | None) -> Partial:
        self._settle()
        rows: list[Row] = []
        names: list[str] = []
        for stimulus in sorted(self._pools):
            kept = self._pools[stimulus].rows
            rows += kept
            names += [self.settings.stimuli[stimulus]] * len(kept)
        self._pools = {}  # the group is held until the next one begins
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


@contextmanager
def _no_collection() -> Iterator[None]:
    """No garbage collection: hundreds of thousands of rows without reference cycles make it slow."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
