"""What a language model reads to answer questions: sequences, each once, in batches of like length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from biassay.models.lm_questions import Question

__all__ = ["Batch", "Numbers", "Passes"]

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Batch:
    """Sequences that are read together, places in them, and questions about tokens there.

    Attributes
    ----------
    sequences : tuples of token numbers
    rows, places : (p,)
        The places at which something is asked: the row of the sequence, and where in it.
    at, targets : (n,)
        Of every question, in the order of the rows, which of these places it is about, and the token.
    """

    sequences: Sequence[tuple[int, ...]]
    rows: Numbers
    places: Numbers
    at: Numbers
    targets: Numbers

    def padded(self, padding: int) -> tuple[Numbers, Numbers]:
        """(ids, mask), each (sequences, longest), padded on the right."""
        lengths = np.array([len(ids) for ids in self.sequences])
        mask = np.arange(lengths.max()) < lengths[:, None]
        ids = np.full(mask.shape, padding, dtype=np.int64)
        ids[mask] = np.concatenate([np.array(one, dtype=np.int64) for one in self.sequences])
        return ids, mask.astype(np.int64)

    def halves(self) -> list[Batch]:
        """Both halves, questions in their order; none, of one sequence."""
        middle = len(self.sequences) // 2
        if not middle:
            return []
        place, question = np.searchsorted(self.rows, middle), np.searchsorted(self.rows[self.at], middle)
        return [
            Batch(
                self.sequences[:middle],
                self.rows[:place],
                self.places[:place],
                self.at[:question],
                self.targets[:question],
            ),
            Batch(
                self.sequences[middle:],
                self.rows[place:] - middle,
                self.places[place:],
                self.at[question:] - place,
                self.targets[question:],
            ),
        ]


@dataclass(frozen=True, eq=False)
class Passes:
    """All sequences that answer some questions, the shortest first, those that begin alike together.

    Attributes
    ----------
    sequences : tuples of token numbers
    rows, places, targets : (n,)
        Of every question its sequence, the place in it, and the token asked about.
    """

    sequences: Sequence[tuple[int, ...]]
    rows: Numbers
    places: Numbers
    targets: Numbers

    @classmethod
    def of(cls, questions: Sequence[Question], kind: Literal["masked", "causal"]) -> Passes:
        """Every sequence once; a causal model answers for one while it reads a longer one that begins so."""
        ordered = sorted({question.ids for question in questions})
        hosts = list(range(len(ordered)))
        if kind == "causal":
            for number in range(len(ordered) - 2, -1, -1):
                ids = ordered[number]
                if ordered[number + 1][: len(ids)] == ids:
                    hosts[number] = hosts[number + 1]
        read = sorted(set(hosts), key=lambda number: len(ordered[number]))
        row_of = np.empty(len(ordered), dtype=np.int64)
        row_of[read] = np.arange(len(read))
        number_of = {ids: number for number, ids in enumerate(ordered)}
        numbers = np.array([number_of[question.ids] for question in questions], dtype=np.int64)
        return cls(
            [ordered[number] for number in read],
            row_of[np.array(hosts, dtype=np.int64)[numbers]],
            np.array([question.place for question in questions], dtype=np.int64),
            np.array([question.target for question in questions], dtype=np.int64),
        )

    def first_asked(self, askers: Numbers, count: int) -> Numbers:
        """How many sequences are read for each of ``count`` askers and for none before it; ``askers`` (n,) ask."""
        _, first = np.unique(self.rows, return_index=True)
        return np.bincount(askers[first], minlength=count)

    def batches(self, most_rows: int, most_tokens: int) -> Iterator[tuple[Batch, NDArray[np.intp]]]:
        """Some sequences at a time, as many as one pass is meant to hold, and the questions that they answer."""
        order = np.argsort(self.rows, kind="stable")
        start = 0
        while start < len(self.sequences):
            n = most_rows
            while n > 1 and n * len(self.sequences[min(start + n, len(self.sequences)) - 1]) > most_tokens:
                n //= 2
            own = order[slice(*np.searchsorted(self.rows, (start, start + n), sorter=order))]
            yield self._batch(slice(start, start + n), own), own
            start += n

    def _batch(self, rows: slice, own: NDArray[np.intp]) -> Batch:
        longest = len(self.sequences[-1])
        keys, at = np.unique((self.rows[own] - rows.start) * longest + self.places[own], return_inverse=True)
        return Batch(self.sequences[rows], keys // longest, keys % longest, at, self.targets[own])
