"""Findings of a discovery in words, shared by the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biassay.report.words import format_plain_p
from biassay.results.discovery import CurveRecord, Discovery, GroupFindings, WordFound

__all__ = [
    "COLUMNS",
    "MEANING_OF_WORDS",
    "Task",
    "best_words",
    "discovery_headline",
    "discovery_summary",
    "lost_in",
    "number",
    "q_text",
    "tasks",
    "threshold_text",
]

MEANING_OF_WORDS = (
    "A score says how much closer a word is to the names of this group than to those of another, in standard "
    "deviations over the names of both (with groups of one size it stays below 2). A word is associated if it is "
    "closer than to one other group: its row says to which. It need not be a stereotype, nor offend: names that are "
    "rare, or old, or foreign to the texts the model was made from lean to words that are so too. What is not found is "
    "not absent."
)
COLUMNS = (
    ("score", "the largest of the scores against the other groups; a word is associated if it is above the threshold"),
    ("q", "p-value after correction for searching all words: of the words with q up to alpha at most that share is "
     "chance. The p-value says how often names dealt at random to the groups would give as high a score"),
    ("categories", "the largest score of the group's categories by themselves; a word is emergent if it is associated "
     "and no category is above the threshold"),
    ("q excess", "whether the association is more than the categories contribute together, tested directly; a word may "
     "be emergent by the threshold without being so by this test"),
)  # fmt: skip
_KEPT = {"any": "no category of theirs is", "all": "not all categories of theirs are"}
_SOURCES = {
    "validation": "fits the words that people rated best",
    "given": "as asked",
    "convention": "called a large effect; there are no rated words to choose by",
}


@dataclass(frozen=True)
class Task:
    """One row of the validation table."""

    name: str
    curve: CurveRecord

    @property
    def at(self) -> int:
        return self.curve.thresholds.index(self.curve.chosen)

    @property
    def found(self) -> str:
        """True and all words that are detected at the chosen threshold, and how many there are to detect."""
        tp, fp, fn = (getattr(self.curve, name)[self.at] for name in ("tp", "fp", "fn"))
        return f"{tp} of {tp + fn}, and {fp} others"

    @property
    def none_detected(self) -> float:
        """Accuracy of detecting nothing."""
        return 1.0 - self.curve.chance


def tasks(found: GroupFindings) -> list[Task]:
    named = (("associated (IBD)", found.curve), ("emergent (EIBD)", found.curve_emergent))
    return [Task(name, curve) for name, curve in named if curve is not None]


def discovery_headline(discovery: Discovery) -> str:
    """One line: what was searched."""
    manifest = discovery.manifest
    labels = ", ".join(found.label for found in discovery.results)
    words = f"{discovery.results[0].num_words:,} words ({manifest.vocabulary})"
    return f"{labels} among {len(manifest.groups)} groups ({manifest.grouping_title}); {words}"


def discovery_summary(discovery: Discovery) -> list[str]:
    """What was found, some sentences a group, in plain words."""
    return [sentence for found in discovery.results for sentence in _about(found, discovery)]


def _about(found: GroupFindings, discovery: Discovery) -> list[str]:
    alpha = discovery.manifest.alpha
    sentences = [
        f"{found.label}: {found.num_associated:,} of {found.num_words:,} words are closer to their names than to those "
        f"of some other group, by a score above {threshold_text(found.threshold, found.threshold_source)} and by more "
        f"than chance explains (q <= {alpha:g}). {found.num_emergent:,} are emergent: above "
        f"{threshold_text(found.threshold_emergent, found.threshold_emergent_source)}, and "
        f"{_KEPT[discovery.manifest.rule]}; of {found.num_excess:,} of these the excess over the categories together "
        "is itself more than chance."
    ]
    sentences += [_validation(found, task) for task in tasks(found)]
    floor = _floor(found, discovery)
    return [*sentences, floor] if floor else sentences


def _validation(found: GroupFindings, task: Task) -> str:
    curve = task.curve
    return (
        f"{found.label}, against {len(found.validated)} words that people rated, {task.name}: area under the curve "
        f"{curve.area:.2f} (0.5 is guessing); at its best threshold, {curve.chosen:g}, right for {curve.accuracy:.1%} "
        f"of the words. Naming no word at all would be right for {task.none_detected:.1%}."
    )


def _floor(found: GroupFindings, discovery: Discovery) -> str:
    """Said where more permutations could find more."""
    manifest = discovery.manifest
    smallest = 1 / (manifest.permutations + 1)
    if not found.num_at_floor or smallest * found.num_words / found.num_at_floor <= manifest.alpha:
        return ""
    wanted = int(found.num_words / (manifest.alpha * found.num_at_floor))
    return (
        f"{found.label}: {found.num_at_floor} words have the smallest p-value that {manifest.permutations:,} "
        f"permutations can give, too large to stand up to correction over {found.num_words:,} words; try "
        f"--permutations {wanted}."
    )


def threshold_text(value: float, source: str) -> str:
    return f"{value:g} ({_SOURCES[source]})"


def best_words(found: GroupFindings, *, emergent: bool, top: int) -> Sequence[WordFound]:
    """The words that rank highest among those associated, or emergent."""
    return [word for word in found.words if (word.emergent if emergent else word.associated)][:top]


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def q_text(value: float | None) -> str:
    return "–" if value is None else format_plain_p(value)


def lost_in(discovery: Discovery) -> list[str]:
    """Names and words that the model does not know."""
    manifest = discovery.manifest
    lines = [
        f"names of {manifest.labels[group]} without a vector: {', '.join(names)} ({len(names)} of "
        f"{len(manifest.groups[group])})"
        for group, names in manifest.names_lost.items()
        if names
    ]
    if manifest.words_lost:
        shown = ", ".join(manifest.words_lost[:40])
        more = f" and {len(manifest.words_lost) - 40} more" if len(manifest.words_lost) > 40 else ""
        lines.append(f"words without a vector: {shown}{more}")
    return lines
