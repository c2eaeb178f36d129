"""Sequences that begin alike, as a causal model reads them: what they share once, and then what follows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UsageError
from biassay.models.lm_passes import Batch, Numbers, Passes

if TYPE_CHECKING:
    import torch

__all__ = ["Behind", "Families", "families_of"]

_MOST = 128  # sequences of a family
_LEAST = 1.5  # times fewer tokens are read, or every sequence is read as a whole


@dataclass(frozen=True, eq=False)
class Families:
    """Prefixes that are read once, and the suffixes behind them.

    Attributes
    ----------
    prefixes, suffixes : tuples of token numbers
    family : (suffixes,)
        Which prefix a suffix stands behind; it never falls.
    rows, places, targets : (n,)
        Of every question its suffix, the place in prefix and suffix together, and the token.
    """

    prefixes: Sequence[tuple[int, ...]]
    suffixes: Sequence[tuple[int, ...]]
    family: Numbers
    rows: Numbers
    places: Numbers
    targets: Numbers

    @property
    def lengths(self) -> Numbers:
        """Of the prefix before every suffix."""
        return np.array([len(ids) for ids in self.prefixes])[self.family]

    @property
    def in_prefix(self) -> NDArray[np.bool_]:
        """Which questions are answered by the prefix alone."""
        return np.asarray(self.places < self.lengths[self.rows])

    @property
    def first(self) -> Batch:
        """The prefixes, with their questions."""
        own = self.in_prefix
        return _batch(self.prefixes, self.family[self.rows[own]], self.places[own], self.targets[own])

    @property
    def second(self) -> Batch:
        """The suffixes, with theirs."""
        own = ~self.in_prefix
        places = (self.places - self.lengths[self.rows])[own]
        return _batch(self.suffixes, self.rows[own], places, self.targets[own])

    @property
    def whole(self) -> Batch:
        """All sequences as a whole."""
        sequences = [(*self.prefixes[of], *own) for of, own in zip(self.family, self.suffixes, strict=True)]
        return _batch(sequences, self.rows, self.places, self.targets)

    def halves(self) -> list[Families]:
        """Both halves, questions in their order: of the prefixes, or of the suffixes of one; none, of one suffix."""
        middle = len(self.prefixes) // 2
        row = int(np.searchsorted(self.family, middle)) if middle else len(self.suffixes) // 2
        question = int(np.searchsorted(self.rows, row))
        behind = slice(middle, len(self.prefixes))
        return [
            Families(
                self.prefixes[prefixes],
                self.suffixes[rows],
                self.family[rows] - prefixes.start,
                self.rows[questions] - rows.start,
                self.places[questions],
                self.targets[questions],
            )
            for prefixes, rows, questions in (
                (slice(0, middle) if middle else behind, slice(0, row), slice(0, question)),
                (behind, slice(row, len(self.suffixes)), slice(question, len(self.rows))),
            )
            if row
        ]


@dataclass(eq=False)
class Behind:
    """What a model has read before the sequences of a pass: nothing, or the keys and values of their prefixes.

    Attributes
    ----------
    keep : bool
        Whether what this pass reads is wanted for the next.
    """

    keep: bool = False
    _cache: Any = None
    _mask: Any = None
    _lengths: Any = None

    def given(self, mask: torch.Tensor) -> dict[str, Any]:
        """What the model is called with, beside the tokens."""
        import torch

        if self._lengths is None:
            return {"attention_mask": mask, "use_cache": self.keep}
        places = self._lengths[:, None] + torch.arange(mask.shape[1], device=mask.device)
        whole = torch.cat([self._mask, mask], dim=1)
        return {
            "attention_mask": whole,
            "position_ids": places,
            "past_key_values": self._cache,
            "use_cache": True,
        }

    def take(self, output: Any, mask: torch.Tensor) -> None:
        """Keep what was read, if it is wanted."""
        if self.keep:
            self._cache, self._mask = output.past_key_values, mask

    def choose(self, family: torch.Tensor, lengths: torch.Tensor) -> None:
        """What was read comes before each of the next sequences: its family, and how long that is."""
        if any(self._cache.is_sliding):
            raise UsageError("a model that forgets what is far back cannot go on behind prefixes of different lengths")
        self._cache.batch_select_indices(family)
        self._mask, self._lengths, self.keep = self._mask[family], lengths, False


def _batch(sequences: Sequence[tuple[int, ...]], rows: Numbers, places: Numbers, targets: Numbers) -> Batch:
    longest = max(map(len, sequences))
    keys, at = np.unique(rows * longest + places, return_inverse=True)
    return Batch(sequences, keys // longest, keys % longest, at, targets)


def families_of(passes: Passes, most_rows: int, most_tokens: int) -> list[tuple[Families, NDArray[np.intp]]]:
    """Batches of families, and the questions of each; none, where hardly anything is shared."""
    if not passes.sequences or len(passes.sequences[0]) == 1:  # the shortest has nothing before its end
        return []
    groups = _groups(passes.sequences)
    shared = sum(length + sum(len(passes.sequences[row]) - length for row in rows) for length, rows in groups)
    if sum(map(len, passes.sequences)) < _LEAST * shared:
        return []
    groups.sort(key=lambda group: group[0])
    return list(_in_batches(passes, groups, most_rows, most_tokens))


def _groups(sequences: Sequence[tuple[int, ...]]) -> list[tuple[int, list[int]]]:
    """How long the prefix of each group is, and its rows: neighbours in the order of the alphabet that share most."""
    groups: list[tuple[int, list[int]]] = []
    for row in sorted(range(len(sequences)), key=sequences.__getitem__):
        ids = sequences[row]
        if groups:
            length, rows = groups[-1]
            pairs = zip(sequences[rows[0]][:length], ids[:-1], strict=False)
            same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            if len(rows) < _MOST and same and 3 * same >= 2 * (length if len(rows) > 1 else min(length, len(ids) - 1)):
                groups[-1] = (same, [*rows, row])
                continue
        groups.append((len(ids) - 1, [row]))
    return groups


def _in_batches(
    passes: Passes, groups: Sequence[tuple[int, list[int]]], most_rows: int, most_tokens: int
) -> Iterator[tuple[Families, NDArray[np.intp]]]:
    together: list[tuple[int, list[int]]] = []
    rows, longest = 0, 0
    for group in groups:
        reach = max(len(passes.sequences[row]) for row in group[1])
        many = rows + len(group[1])
        if together and (many > most_rows or many * max(longest, reach) > most_tokens):
            yield _family_batch(passes, together)
            together, rows, longest = [], 0, 0
        together.append(group)
        rows, longest = rows + len(group[1]), max(longest, reach)
    if together:
        yield _family_batch(passes, together)


def _family_batch(passes: Passes, groups: Sequence[tuple[int, list[int]]]) -> tuple[Families, NDArray[np.intp]]:
    rows = [row for _, own in groups for row in own]
    number = np.full(len(passes.sequences), -1)
    number[rows] = np.arange(len(rows))
    own = np.flatnonzero(number[passes.rows] >= 0)
    own = own[np.argsort(number[passes.rows[own]], kind="stable")]
    return (
        Families(
            [passes.sequences[of[0]][:length] for length, of in groups],
            [passes.sequences[row][length:] for length, of in groups for row in of],
            np.repeat(np.arange(len(groups)), [len(of) for _, of in groups]),
            number[passes.rows[own]],
            passes.places[own],
            passes.targets[own],
        ),
        own,
    )
