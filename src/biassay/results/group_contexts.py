"""Records of groups and traits in the contexts of a corpus: where these came from, and how many each had."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from biassay.results.records import Record

__all__ = ["GroupContextsRecord", "GroupContextsSource"]


@dataclass(frozen=True)
class GroupContextsSource(Record):
    """The file of contexts of a run, and how it was used; a word needs ``min_contexts``.

    ``corpus`` names the files that were read.
    """

    file: str
    digest: str
    rows: int
    per_stimulus: int
    seed: int
    documents: int
    min_contexts: int
    corpus: tuple[str, ...] = ()


@dataclass(frozen=True)
class GroupContextsRecord(Record):
    """What one model made of groups and adjectives in their contexts (CEAT).

    ``groups`` and ``adjectives`` hold how many contexts each had of which the model gave a vector, ``few_groups`` and
    ``few_adjectives`` which had too few. ``own_words`` are adjectives left out for a group, because they are words for
    the group itself. ``standard_errors`` (groups, pairs) are those of the scores, with other contexts of the group.
    ``options`` are the settings of the encoder of words.
    """

    options: str
    groups: dict[str, int]
    adjectives: dict[str, int]
    few_groups: tuple[str, ...]
    few_adjectives: tuple[str, ...]
    standard_errors: tuple[tuple[float | None, ...], ...]
    own_words: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
