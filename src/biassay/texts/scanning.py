"""Parts of a corpus to partial samples: read, match, draw keys, and cut out the sentences of the few that stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UsageError
from biassay.texts.corpus import Part
from biassay.texts.documents import Documents, Tally, open_reader
from biassay.texts.holding import Held, Piece
from biassay.texts.matching import matcher_for
from biassay.texts.sampling import NO_LIMIT, Sample, by_stimulus, draw, ranks, sample_table, stimulus_keys
from biassay.texts.segmenting import REACH, segmenter, sentences_around
from biassay.texts.tools import tool

__all__ = ["GROUP_BYTES", "Partial", "ScanSettings", "scan"]

GROUP_BYTES = 256 << 20
# What is found is given when so many bytes were read: the longer the wait, the fewer sentences are cut out.
_GIVEN = 1 << 30
# Hits are ruled out when so many bytes of documents are held, or so many hits for each context that is wanted.
_HELD = 192 << 20
_HITS_FOR_A_CONTEXT = 2
_ALIKE = 16  # of so many sentences one may be the same as another without a second look


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
    """The result of a group of a part. ``bytes`` counts decompressed input.

    What is found in several groups is in the table of the first that is given of them.
    """

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
    parts: Sequence[Part],
    settings: ScanSettings,
    thresholds: NDArray[np.uint64] | None = None,
    skips: Sequence[int] | None = None,
    group_bytes: int = GROUP_BYTES,
    sample: Sample | None = None,
) -> Iterator[Partial]:
    """Scan parts one after the other and give a partial result for each group of about ``group_bytes`` of input.

    Parameters
    ----------
    thresholds : (stimuli,) array of uint64, optional
        Keys above which no hit matters, from any sample of the same settings. Old ones only cost time.
    skips : (parts,) sequence of int, optional
        How many groups of each part were scanned before; they are read and skipped.
    sample : Sample, optional
        Of the same settings, from other parts: what is found is added to it. A part gives what it adds, and gives it
        again if it is scanned again.
    """
    sample = Sample(settings.stimuli, settings.k) if sample is None else sample
    sample.fresh()
    left = [0] * len(parts) if skips is None else list(skips)
    places = {part: place for place, part in enumerate(parts)}
    limits = np.full(len(settings.stimuli), NO_LIMIT) if thresholds is None else thresholds
    for marked in (True, False):  # marks rest on where sentences end: where that is not so, it is done without them
        gathered = _Gathered(settings, np.minimum(limits, sample.thresholds()), sample, marked=marked)
        try:
            for partial in _scanned(parts, left, group_bytes, gathered):
                left[places[partial.part]] = partial.group + 1
                yield partial
        except _UnsoundError:
            continue
        return


class _UnsoundError(Exception):
    """Two hits with different marks are in the same sentence."""


def _scanned(parts: Sequence[Part], skips: Sequence[int], group_bytes: int, gathered: _Gathered) -> Iterator[Partial]:
    settings = gathered.settings
    for part, skip in zip(parts, tuple(skips), strict=True):
        reader = open_reader(part, settings.field, settings.document, settings.html)
        number, group = 0, _Group(part, len(settings.stimuli))
        gathered.begin(part)
        for piece in reader.pieces():
            group.bytes += piece.nbytes
            if number >= skip:
                group.found += gathered.take(piece.documents(group.tally))
            if group.bytes >= group_bytes:
                if number >= skip:
                    yield from gathered.give(group.partial(number, last=False, damaged=None), _GIVEN)
                number, group = number + 1, _Group(part, len(settings.stimuli))
        if number >= skip:
            yield from gathered.give(group.partial(number, last=True, damaged=reader.damage), _GIVEN)
    yield from gathered.give(None, 0)


class _Group:
    """What is counted in one group of a part."""

    def __init__(self, part: Part, stimuli: int) -> None:
        self.part = part
        self.tally = Tally()
        self.bytes = 0
        self.found = np.zeros(stimuli, np.int64)

    def partial(self, number: int, last: bool, damaged: str | None) -> Partial:
        """The counts."""
        tally = self.tally
        return Partial(
            part=self.part,
            group=number,
            last=last,
            table=sample_table([], [], [], [], [], []),
            found=self.found,
            documents=tally.documents,
            bytes=self.bytes,
            bad=tally.bad,
            bad_examples=tuple(tally.examples),
            undecodable=tally.undecodable,
            damaged=damaged,
        )


class _Gathered:
    """The sample of groups that are given together. ``limits`` fall as it fills."""

    def __init__(self, settings: ScanSettings, limits: NDArray[np.uint64], sample: Sample, *, marked: bool) -> None:
        self.settings, self.limits = settings, limits
        # what opens a sentence depends on what stands before it, and so do the marks
        self._marked = marked and not settings.openings
        self._matcher = matcher_for(settings.stimuli, settings.ignore_case, settings.openings)
        self._keys = stimulus_keys(settings.stimuli, settings.seed)
        self._segment = segmenter(settings.language)
        self._sample = sample
        self._held = Held()
        self._most = _HITS_FOR_A_CONTEXT * settings.k * len(settings.stimuli)
        self._bounds = np.full(len(settings.stimuli), NO_LIMIT)
        self._files: list[str] = []
        self._waiting: list[Partial] = []

    def begin(self, part: Part) -> None:
        """What comes next is of this part."""
        self._files.append(part.file.name)

    def take(self, documents: Documents) -> NDArray[np.int64]:
        """Count the hits of some documents, and hold those that may be in the sample."""
        hits = self._matcher.find(documents.joined)
        drawn = draw(hits, documents.joined, self._keys, self.limits, REACH)
        files = np.full(len(documents.places), len(self._files) - 1)
        self._held.add(Piece(documents, files, drawn).only(np.arange(len(drawn.key))))
        if self._is_full(1.0):
            self._rule_out()
            if self._is_full(0.75):
                self._settle()
        return np.bincount(hits.stimulus, minlength=len(self.limits))

    def give(self, partial: Partial | None, size: int) -> Iterator[Partial]:
        """All that waits, with what was found in it, if it is of so many bytes."""
        self._waiting += [partial] if partial else []
        if sum(one.bytes for one in self._waiting) < size or not self._waiting:
            return
        self._settle()
        first, *others = self._waiting
        self._waiting, self._files = [], self._files[-1:]
        yield replace(first, table=self._sample.fresh())
        yield from others

    def _is_full(self, share: float) -> bool:
        return self._held.size >= share * _HELD or self._held.hits >= share * self._most

    def _rule_out(self) -> None:
        """Drop hits that cannot be in the sample, as far as that is known before sentences are cut out."""
        if not self._marked:
            return
        bounds = self._held.bounds(self._matcher.lengths, self.limits, self.settings.k)
        np.minimum(self._bounds, bounds, out=self._bounds)
        np.minimum(self.limits, bounds, out=self.limits)
        possible = self._possible()
        self._held, _ = self._held.part(possible, np.zeros_like(possible))

    def _possible(self) -> NDArray[np.bool_]:
        """Which hits may be in the sample."""
        stimulus, key = self._held.keys()
        return np.asarray(key <= self.limits[stimulus])

    def _settle(self) -> None:
        """Cut out the sentences with the smallest keys, and let go of the documents.

        First those that are of the sample if next to none are the same; where more are, twice as many, and so on.
        """
        k = self.settings.k + self.settings.k // _ALIKE
        while self._held.hits:
            possible = self._possible()
            chosen = possible & self._smallest(k)
            chosen_held, self._held = self._held.part(chosen, possible & ~chosen)
            self._cut(chosen_held)
            np.minimum(self.limits, self._sample.thresholds(), out=self.limits)
            k *= 2
        if (self._sample.thresholds() > self._bounds).any():
            raise _UnsoundError

    def _smallest(self, k: int) -> NDArray[np.bool_]:
        """Which hits are among the k smallest of their stimulus, the sample's included."""
        (stimuli, keys), (held, held_keys) = self._sample.keys(), self._held.keys()
        stimulus = np.concatenate([held, stimuli])
        return (ranks(stimulus, by_stimulus(stimulus, np.concatenate([held_keys, keys]))) < k)[: len(held)]

    def _cut(self, held: Held) -> None:
        """Take the sentences of some hits into the sample."""
        pyarrow, join = tool("pyarrow"), tool("pyarrow.compute").binary_join_element_wise
        text_type = pyarrow.large_string()
        names, sources = (pyarrow.array(some, text_type) for some in (self.settings.stimuli, self._files))
        tables = []
        for documents, files, drawn in held.joined():
            lengths = self._matcher.lengths[drawn.stimulus]
            for hit, text, start, end in sentences_around(documents.joined, drawn, lengths, self._segment):
                document = drawn.document[hit]
                places = pyarrow.array(documents.places[document]).cast(text_type)
                source = join(sources.take(pyarrow.array(files[document])), places, pyarrow.scalar(":", text_type))
                stimulus = names.take(pyarrow.array(drawn.stimulus[hit]))
                tables.append(sample_table(stimulus, drawn.key[hit], text, start, end, source))
        if tables:
            self._sample.add(pyarrow.concat_tables(tables))
            self._sample.to_table()
