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
from biassay.texts.joined import Joined
from biassay.texts.matching import matcher_for
from biassay.texts.sampling import Drawn, Sample, by_stimulus, draw, sample_table, stimulus_keys
from biassay.texts.segmenting import REACH, sentences_around
from biassay.texts.tools import tool

__all__ = ["GROUP_BYTES", "Partial", "ScanSettings", "scan"]

GROUP_BYTES = 256 << 20
# Sentences are cut out when so many bytes of documents are held, or so many hits for each context that is wanted:
# the longer the wait, the more hits turn out not to be of the sample.
_HELD = 128 << 20
_HITS_FOR_A_CONTEXT = 4
_ALIKE = 32  # of so many sentences one may be the same as another without a second look


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
    sample: Sample | None = None,
) -> Iterator[Partial]:
    """Scan a part and give a partial result for each group of about ``group_bytes`` of input.

    Parameters
    ----------
    thresholds : (stimuli,) array of uint64, optional
        Keys above which no hit matters, from any sample of the same settings. Old ones only cost time.
    skip : int
        How many groups were scanned before; they are read and skipped.
    sample : Sample, optional
        Of the same settings, from other parts: what is found is added to it. A part gives what it adds, and gives it
        again if it is scanned again.
    """
    sample = Sample(settings.stimuli, settings.k) if sample is None else sample
    sample.fresh()
    limits = sample.thresholds() if thresholds is None else np.minimum(thresholds, sample.thresholds())
    reader = open_reader(part, settings.field, settings.document, settings.html)
    number, group = 0, _Group(part, settings, limits, sample)
    for piece in reader.pieces():
        group.bytes += piece.nbytes
        if number >= skip:
            group.take(piece.documents(group.tally))
        if group.bytes >= group_bytes:
            if number >= skip:
                yield group.partial(number, last=False, damaged=None)
            number, group = number + 1, _Group(part, settings, group.limits, sample)
    if number >= skip:
        yield group.partial(number, last=True, damaged=reader.damage)


class _Noted:
    """Hits that may be in a sample, and their documents."""

    def __init__(self) -> None:
        self.size = self.hits = self.documents = 0
        self._earlier = 0
        self._data: list[NDArray[np.uint8]] = []
        self._sizes: list[NDArray[np.int64]] = []
        self._places: list[NDArray[np.int64]] = []
        self._drawn: list[Drawn] = []

    def add(self, documents: Documents, drawn: Drawn) -> None:
        """Take hits of some documents, and copy those that have any."""
        numbers, document = np.unique(drawn.document, return_inverse=True)
        joined = documents.joined
        starts, stops = joined.starts[numbers], joined.stops[numbers]
        data = np.empty(int((stops - starts).sum()), np.uint8)
        tool("biassay.texts.cutting").gather(joined.data, starts, stops, data)
        self._data.append(data)
        self._sizes.append(stops - starts)
        self._places.append(documents.places[numbers])
        first, last = drawn.first + self._earlier, drawn.last + self._earlier
        self._drawn.append(drawn._replace(document=document + self.documents, first=first, last=last))
        self._earlier += len(drawn.earlier)
        self.documents += len(numbers)
        self.hits += len(drawn.key)
        self.size += len(data)

    def whole(self) -> tuple[Documents, Drawn]:
        """All documents, and all hits."""
        sizes = np.concatenate(self._sizes)
        stops = np.cumsum(sizes)
        joined = Joined(np.concatenate(self._data), stops - sizes, stops)
        drawn = Drawn(*map(np.concatenate, zip(*self._drawn, strict=True)))
        return Documents(joined, np.concatenate(self._places)), drawn


class _Group:
    """The sample of one group of a part. ``limits`` fall as it fills."""

    def __init__(self, part: Part, settings: ScanSettings, limits: NDArray[np.uint64], sample: Sample) -> None:
        self.part, self.settings, self.limits = part, settings, limits
        self.tally = Tally()
        self.bytes = 0
        self.found = np.zeros(len(settings.stimuli), np.int64)
        self._matcher = matcher_for(settings.stimuli, settings.ignore_case, settings.openings)
        self._keys = stimulus_keys(settings.stimuli, settings.seed)
        self._segment = functools.partial(tool("sentencex").segment, settings.language)
        self._sample = sample
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
        """Cut out the sentences with the smallest keys, and let go of the documents.

        First those that are of the sample if next to none are the same; where more are, twice as many, and so on.
        """
        if not self._noted.hits:
            return
        documents, drawn = self._noted.whole()
        self._noted = _Noted()
        left, k = np.arange(len(drawn.key)), self.settings.k + self.settings.k // _ALIKE
        while len(left):
            chosen = self._smallest(drawn, left, k)
            self._cut(documents, drawn.hits(left[chosen]))
            np.minimum(self.limits, self._sample.thresholds(), out=self.limits)
            left = left[~chosen]
            left = left[drawn.key[left] <= self.limits[drawn.stimulus[left]]]
            k *= 2

    def _smallest(self, drawn: Drawn, left: NDArray[np.int64], k: int) -> NDArray[np.bool_]:
        """Which hits are among the k smallest of their stimulus, the sample's included."""
        stimuli, keys = self._sample.keys()
        stimulus = np.concatenate([drawn.stimulus[left], stimuli])
        order = by_stimulus(stimulus, np.concatenate([drawn.key[left], keys]))
        counts = np.bincount(stimulus)
        rank = np.arange(len(order)) - (np.cumsum(counts) - counts)[stimulus[order]]
        chosen = np.zeros(len(order), np.bool_)
        chosen[order[rank < k]] = True
        return chosen[: len(left)]

    def _cut(self, documents: Documents, drawn: Drawn) -> None:
        """Take the sentences of some hits into the sample."""
        pyarrow, join = tool("pyarrow"), tool("pyarrow.compute").binary_join_element_wise
        names, text_type = pyarrow.array(self.settings.stimuli, pyarrow.large_string()), pyarrow.large_string()
        lengths = self._matcher.lengths[drawn.stimulus]
        tables = []
        for hit, text, start, end in sentences_around(documents.joined, drawn, lengths, self._segment):
            places = pyarrow.array(documents.places[drawn.document[hit]]).cast(text_type)
            source = join(pyarrow.scalar(self.part.file.name, text_type), places, pyarrow.scalar(":", text_type))
            stimulus = names.take(pyarrow.array(drawn.stimulus[hit]))
            tables.append(sample_table(stimulus, drawn.key[hit], text, start, end, source))
        self._sample.add(pyarrow.concat_tables(tables))
        self._sample.to_table()

    def partial(self, number: int, last: bool, damaged: str | None) -> Partial:
        self._settle()
        tally = self.tally
        return Partial(
            part=self.part,
            group=number,
            last=last,
            table=self._sample.fresh(),
            found=self.found,
            documents=tally.documents,
            bytes=self.bytes,
            bad=tally.bad,
            bad_examples=tuple(tally.examples),
            undecodable=tally.undecodable,
            damaged=damaged,
        )
