"""What a search for the words of a group found: typed records, in memory and in a folder."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biassay.errors import UnknownNameError
from biassay.results.codec import to_json
from biassay.results.folder import frame_of_table, load_folder, save_folder
from biassay.results.older import update_discovery
from biassay.results.records import FORMAT_VERSION, Provenance, Record

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "DUAL_USE",
    "KIND",
    "CurveRecord",
    "Discovery",
    "DiscoveryManifest",
    "GroupFindings",
    "ValidatedWord",
    "WordFound",
]

KIND = "discovery"
DUAL_USE = (
    "These words describe the model, not people: they show which associations it took from its texts. The same list "
    "can be misused, to write what stereotypes a group or to set people against each other; pass it on with care and "
    "with this note."
)
_TOGETHER = 5  # words at the smallest p-value; if more are needed there, a few deals decide whether any is found
_CLEARED = 10  # times as many found: the last of them has a p-value of as many deals, which hardly hangs on the seed
_OWN_COLUMNS = (
    "score",
    "p_value",
    "q_value",
    "p_value_excess",
    "q_value_excess",
    "associated",
    "eibd",
    "emergent",
)


@dataclass(frozen=True)
class CurveRecord(Record):
    """How well the words of the validation are detected at every threshold, and at the one that is used.

    ``chance`` is the share of words that belong to the group; ``precision`` is None where none is detected.
    """

    thresholds: tuple[float, ...]
    tp: tuple[int, ...]
    fp: tuple[int, ...]
    fn: tuple[int, ...]
    tn: tuple[int, ...]
    area: float
    chance: float
    chosen: float
    accuracy: float
    precision: float | None
    recall: float
    false_positive_rate: float


@dataclass(frozen=True)
class ValidatedWord(Record):
    """A word of the validation: whether people tie it to the group, and whether the model was found to do so."""

    word: str
    of_group: bool
    emergent_of_group: bool
    scores: tuple[float | None, ...]
    constituents: tuple[float | None, ...]
    detected: bool
    detected_emergent: bool


@dataclass(frozen=True)
class WordFound(Record):
    """A word of the vocabulary.

    ``scores`` are those against every other group; ``score`` is the largest of them, or the smallest where words had to
    differ from every group; ``constituents`` are the scores of the group's categories. q-values are corrected over the
    whole vocabulary. ``associated``: detected by IBD, and q at most alpha; ``eibd``: by EIBD, the paper's rule, and q
    at most alpha; ``emergent``: of these, with ``q_value_excess`` at most alpha, so that the association exceeds what
    the categories contribute together.
    """

    word: str
    score: float | None
    scores: tuple[float | None, ...]
    constituents: tuple[float | None, ...]
    p_value: float | None
    q_value: float | None
    p_value_excess: float | None
    q_value_excess: float | None
    associated: bool
    eibd: bool
    emergent: bool


@dataclass(frozen=True)
class GroupFindings(Record):
    """What was found of one group.

    ``other_groups`` and ``others`` are the names and labels of the groups it is compared with; ``words`` are those that
    rank highest, by score; the counts are of all.
    """

    group: str
    label: str
    belongs: dict[str, str]
    other_groups: tuple[str, ...]
    others: tuple[str, ...]
    constituents: tuple[str, ...]
    threshold: float
    threshold_source: str
    threshold_emergent: float
    threshold_emergent_source: str
    curve: CurveRecord | None
    curve_emergent: CurveRecord | None
    validated: tuple[ValidatedWord, ...]
    words: tuple[WordFound, ...]
    num_words: int
    num_above: int
    num_associated: int
    num_every: int
    num_eibd: int
    num_emergent: int


@dataclass(frozen=True)
class DiscoveryManifest(Provenance):
    """How a discovery was made.

    ``validation_lost`` are words of the validation without a vector, ``words_lost`` those of a user's list;
    ``vocabulary_digest`` is a fingerprint of that list. ``threshold`` is None where the validation chose it.
    """

    grouping: str
    grouping_title: str
    grouping_digest: str
    citation: str
    licence: str
    groups: dict[str, tuple[str, ...]]
    labels: dict[str, str]
    names_lost: dict[str, tuple[str, ...]]
    validation_lost: tuple[str, ...]
    words_lost: tuple[str, ...]
    vocabulary: str
    vocabulary_digest: str | None
    threshold: float | None
    rule: str
    compare: str
    positive_only: bool
    permutations: int
    alpha: float
    max_lost: float
    keep: int
    seed: int
    note: str


@dataclass(frozen=True)
class _ResultsFile:
    format_version: int
    note: str
    results: tuple[GroupFindings, ...]


@dataclass(frozen=True, repr=False)
class Discovery:
    """Everything a discovery found and how it was made."""

    manifest: DiscoveryManifest
    results: tuple[GroupFindings, ...]

    def __repr__(self) -> str:
        groups = ", ".join(found.group for found in self.results)
        return f"Discovery({groups} in {self.manifest.models[0].text})"

    def of(self, group: str) -> GroupFindings:
        """The findings of one group."""
        known = {found.group: found for found in self.results}
        if group not in known:
            raise UnknownNameError("group", group, known, f"(groups that were looked at: {', '.join(known)})")
        return known[group]

    def at_the_floor(self, found: GroupFindings) -> int:
        """How many words must have the smallest p-value together before the correction lets any of them be found."""
        return math.ceil(found.num_words / ((self.manifest.permutations + 1) * self.manifest.alpha))

    def permutations_wanted(self, found: GroupFindings) -> int | None:
        """With how many permutations findings would not hang on the seed; None where there are enough."""
        together = self.at_the_floor(found)
        if together <= _TOGETHER or found.num_associated >= _CLEARED * together:
            return None
        return math.ceil(found.num_words / (_TOGETHER * self.manifest.alpha)) - 1

    @property
    def note(self) -> str:
        """What whoever passes the words on should pass on with them."""
        return self.manifest.note

    def to_json(self) -> str:
        """Manifest and results as JSON."""
        return to_json({"manifest": self.manifest, "results": self.results})

    def to_frame(self) -> pd.DataFrame:
        """The words as a data frame, columns as in results.tsv."""
        return frame_of_table(self._table())

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write manifest.json, results.json and results.tsv, each whole or not at all."""
        return save_folder(folder, self.manifest, _ResultsFile(FORMAT_VERSION, self.note, self.results), self._table())

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Discovery:
        """Read a folder back; the result equals what was saved."""
        manifest, content = load_folder(folder, DiscoveryManifest, _ResultsFile, KIND, update_discovery)
        return cls(manifest, content.results)

    def _table(self) -> list[list[Any]]:
        """One row a word and group; a column for every group and for every pair of categories."""
        model = self.manifest.models[0]
        groups = list(self.manifest.groups)
        pairs = list(dict.fromkeys(label for found in self.results for label in found.constituents))
        header = ["model", "options", "group", "word", *_OWN_COLUMNS]
        rows: list[list[Any]] = [[*header, *(f"against {name}" for name in groups), *pairs]]
        options = ";".join(f"{name}={value}" for name, value in model.settings.items())
        for found in self.results:
            for word in found.words:
                own = [getattr(word, column) for column in _OWN_COLUMNS]
                scores = dict(zip(found.other_groups, word.scores, strict=True))
                categories = dict(zip(found.constituents, word.constituents, strict=True))
                numbers = [*map(scores.get, groups), *map(categories.get, pairs)]
                rows.append([model.name, options, found.group, word.word, *own, *numbers])
        return rows
