"""What language models tie to social groups, and whether people agree: typed records, in memory and in a folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biassay.results.codec import to_json
from biassay.results.folder import frame_of_table, load_folder, save_folder
from biassay.results.group_contexts import GroupContextsRecord, GroupContextsSource
from biassay.results.older import update_stereotypes
from biassay.results.records import FORMAT_VERSION, Provenance, Record

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "KIND",
    "AlignmentRecord",
    "CeilingRecord",
    "DominanceRecord",
    "EmergentRecord",
    "GroupAlignment",
    "IntersectionRecord",
    "MeanRecord",
    "MeasureRecord",
    "ModelStereotypes",
    "ProfileRecord",
    "RatedRecord",
    "StereotypeManifest",
    "Stereotypes",
]

KIND = "stereotypes"
Interval = tuple[float, float] | None


@dataclass(frozen=True)
class GroupAlignment(Record):
    """How one group's profile agrees with people's; None: not defined, or too few ratings.

    ``pilot``: templates were chosen on this group, among others.
    """

    group: str
    human_group: str
    tau: float | None
    p_value: float | None
    tau_interval: Interval
    top: float | None
    bottom: float | None
    precision: float | None
    pilot: bool


@dataclass(frozen=True)
class AlignmentRecord(Record):
    """How a measure agrees with people.

    All numbers are over the groups on which its templates were not chosen: where they were chosen on the pilot groups
    (``pilot_tau`` is how well these fit), all others. ``..._with_pilot`` are over all groups, the pilot's included, as
    the paper has them; None where none was left out. Intervals: other annotators, other groups, both. ``tau_shuffled``
    is the mean tau if ratings are dealt at random to the groups, ``p_value_shuffled`` how often it is then as high.
    """

    annotators: str
    num_annotators: int | None
    num_groups: int
    num_cells: int
    pilot_tau: float | None
    tau: float | None
    p_value: float | None
    tau_shuffled: float | None
    p_value_shuffled: float | None
    tau_with_pilot: float | None
    p_value_with_pilot: float | None
    precision: float | None
    precision_with_pilot: float | None
    tau_annotators: Interval
    tau_groups: Interval
    tau_both: Interval
    precision_annotators: Interval
    precision_groups: Interval
    precision_both: Interval
    groups: tuple[GroupAlignment, ...]


@dataclass(frozen=True)
class CeilingRecord(Record):
    """How well one half of the people agrees with the other, over all groups that were rated, the pilot's included.

    No upper bound, for both halves are noisier than all.
    """

    tau: float | None
    interval: Interval


@dataclass(frozen=True)
class ProfileRecord(Record):
    """A group's scores by pair, the mean over the templates chosen; people's mean ratings where there are any."""

    group: str
    domain: str
    parts: tuple[str, ...]
    scores: tuple[float | None, ...]
    human: tuple[float | None, ...] | None


@dataclass(frozen=True)
class MeasureRecord(Record):
    """One measure of one model: scores (groups, templates, pairs), and what follows from them.

    A measure over contexts (CEAT) has no templates; its scores are those of the profiles.
    """

    measure: str
    templates: tuple[str, ...]
    chosen: tuple[str, ...]
    scores: tuple[tuple[tuple[float | None, ...], ...], ...]
    profiles: tuple[ProfileRecord, ...]
    alignments: tuple[AlignmentRecord, ...]
    undefined: int

    @property
    def pilot(self) -> frozenset[str]:
        """The groups on which templates were chosen."""
        return frozenset(group.group for found in self.alignments for group in found.groups if group.pilot)


@dataclass(frozen=True)
class MeanRecord(Record):
    """A mean over paired groups and its standard error."""

    value: float | None
    standard_error: float | None
    n: int


@dataclass(frozen=True)
class DominanceRecord(Record):
    """Two domains: mean tau of their paired groups with the component of either."""

    domain_a: str
    domain_b: str
    tau_a: float | None
    tau_b: float | None
    difference: float | None
    interval: Interval
    num_pairs: int
    dominates: str | None


@dataclass(frozen=True)
class EmergentRecord(Record):
    """A trait that a paired group has more, or less, than both of its components: described, not tested.

    Both p-values rank (see `biassay.stats.emergence`); the additive q-value is 1 whatever the scores.
    """

    group: str
    parts: tuple[str, ...]
    trait: str
    direction: str
    excess: float
    bound: float
    p_value: float | None
    q_value: float | None
    p_value_additive: float | None
    q_value_additive: float | None


@dataclass(frozen=True)
class RatedRecord(Record):
    """How well traits that emerge fit what people say of men and women of three races, by dimension and side.

    A cell is a paired group, a dimension and a side; it is found if any adjective of it emerges. ``chance_...`` are
    those of guessing with a coin.
    """

    source: str
    num_groups: int
    precision: float | None
    recall: float | None
    chance_precision: float | None
    chance_recall: float | None
    p_value: float | None


@dataclass(frozen=True)
class IntersectionRecord(Record):
    """Paired groups under one measure: order (Q1), dominance (Q2), emergence (Q3).

    ``num_both_orders``: how many pairs stand in both orders. ``num_emergent`` is None: traits that emerge are ranked,
    and none can be established without knowing the noise.
    """

    measure: str
    num_groups: int
    tau_first: MeanRecord
    tau_second: MeanRecord
    tau_reversed: MeanRecord
    tau_closest: MeanRecord
    dominance: tuple[DominanceRecord, ...]
    emergent: tuple[EmergentRecord, ...]
    num_both_orders: int
    num_emergent: int | None
    rated: RatedRecord | None


@dataclass(frozen=True)
class ModelStereotypes(Record):
    """One model: its measures, what it could not be asked, and what it took; ``contexts`` where CEAT was measured."""

    model: str
    options: str
    kind: str
    prior: str
    measures: tuple[MeasureRecord, ...]
    intersections: tuple[IntersectionRecord, ...]
    skipped_templates: tuple[str, ...]
    unknown_adjectives: tuple[str, ...]
    unknown_groups: tuple[str, ...]
    num_questions: int
    num_passes: int
    num_asked: int
    contexts: GroupContextsRecord | None = None

    @property
    def label(self) -> str:
        """The model, with its settings where it has any."""
        settings = ";".join(part for part in self.options.split(";") if part and not part.startswith("head="))
        return f"{self.model} ({settings})" if settings else self.model

    @property
    def closest(self) -> MeasureRecord | None:
        """The measure that agrees best with people: of equals, and where none has a tau, the first."""
        taus = [found.alignments[0].tau if found.alignments else None for found in self.measures]
        best = max((tau for tau in taus if tau is not None), default=None)
        return self.measures[taus.index(best)] if taus else None


@dataclass(frozen=True)
class StereotypeManifest(Provenance):
    """How it was made."""

    abc: str
    abc_digest: str
    citation: str
    licence: str
    pairs: tuple[str, ...]
    dimensions: dict[str, str]
    groups: tuple[str, ...]
    templates: dict[str, str]
    measures: tuple[str, ...]
    variant: str
    prior: str
    all_adjectives: bool
    human: str | None
    human_notes: tuple[str, ...]
    notes: tuple[str, ...]
    draws: int
    ceiling: CeilingRecord | None
    seed: int
    contexts: GroupContextsSource | None = None


@dataclass(frozen=True)
class _ResultsFile:
    format_version: int
    results: tuple[ModelStereotypes, ...]


@dataclass(frozen=True, repr=False)
class Stereotypes:
    """Everything that was found and how it was made."""

    manifest: StereotypeManifest
    results: tuple[ModelStereotypes, ...]

    def __repr__(self) -> str:
        models = ", ".join(result.model for result in self.results)
        return f"Stereotypes({len(self.manifest.groups)} groups in {models})"

    def to_json(self) -> str:
        """Manifest and results as JSON."""
        return to_json({"manifest": self.manifest, "results": self.results})

    def to_frame(self) -> pd.DataFrame:
        """All scores as a data frame, columns as in results.tsv."""
        return frame_of_table(self._table())

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write manifest.json, results.json and results.tsv, each whole or not at all."""
        return save_folder(folder, self.manifest, _ResultsFile(FORMAT_VERSION, self.results), self._table())

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Stereotypes:
        """Read a folder back; the result equals what was saved."""
        manifest, content = load_folder(folder, StereotypeManifest, _ResultsFile, KIND, update_stereotypes)
        return cls(manifest, content.results)

    def _table(self) -> list[list[Any]]:
        """One row a model, measure, template, group and pair; of a measure over contexts one a group and pair."""
        rows: list[list[Any]] = [["model", "options", "measure", "template", "chosen", "group", "pair", "score"]]
        for result in self.results:
            for found in result.measures:
                for profile, of_group in zip(found.profiles, found.scores, strict=True):
                    by_template = list(zip(found.templates, of_group, strict=True))
                    for template, scores in by_template or [("", profile.scores)]:
                        chosen = template in found.chosen if template else None
                        start = [result.model, result.options, found.measure, template, chosen]
                        rows += [
                            [*start, profile.group, pair, score]
                            for pair, score in zip(self.manifest.pairs, scores, strict=True)
                        ]
        return rows
