"""Findings of a discovery in words, shared by the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biassay.report.formats import format_plain_p
from biassay.results.discovery import CurveRecord, Discovery, GroupFindings, WordFound

__all__ = [
    "MEANING_OF_WORDS",
    "VALIDATION_COLUMNS",
    "Task",
    "best_words",
    "columns_of",
    "discovery_headline",
    "discovery_summary",
    "lost_in",
    "most_against",
    "number",
    "q_text",
    "tasks",
]

MEANING_OF_WORDS = (
    "A score says how much closer a word is to the names of this group than to those of another, in standard "
    "deviations over the names of both (with groups of one size it stays below 2). A word found need not be a "
    "stereotype, nor offend: names that are rare, or old, or foreign to the texts the model was made from lean to "
    "words that are so too. What is not found is not absent."
)
_SOURCES = {
    "validation": "the one that fits the rated words best",
    "given": "as asked",
    "convention": "called a large effect, for no rated words tell a better one",
}
_DEALT = {
    "any": "names dealt at random to all groups would give this group as high a score; it does not single the group "
    "out, for that another group stands apart makes all others score against it",
    "every": "names dealt at random to two groups would score as high, at worst, over the groups compared with",
}
_ENOUGH = 5  # true words, below which a threshold rests on next to nothing
_CLEAR = 0.6  # area under the curve, below which it hardly differs from guessing
_MANY = 0.1  # share of all words


def columns_of(discovery: Discovery) -> tuple[tuple[str, str], ...]:
    """What the columns of the tables mean."""
    manifest = discovery.manifest
    every = manifest.compare == "every"
    decides = "smallest" if every else "largest"
    dropped = "no category is above it" if manifest.rule == "any" else "not all categories are above it"
    return (
        ("score", f"the {decides} of the scores against the other groups, and the group it comes from; a word is "
         f"associated (IBD) if it is above IBD's threshold, that is, against {'every' if every else 'at least one'} "
         "other group"),
        ("q", "p-value after correction for the number of words searched: among the words with q up to "
         f"{manifest.alpha:g}, that share is expected to be chance. p says how often {_DEALT[manifest.compare]}"),
        ("categories", "the largest score of the group's categories by themselves"),
        ("EIBD", f"the published rule, with q up to {manifest.alpha:g}: the score is above EIBD's threshold and "
         f"{dropped}. A higher threshold lets more category pass"),
        ("q excess", "a direct test, which the published method lacks: is the association more than the categories "
         f"contribute together? A word is emergent if it is found by EIBD and q excess is up to {manifest.alpha:g}"),
    )  # fmt: skip


VALIDATION_COLUMNS = (
    ("area", "under the curve of true against false positive rate: 0.5 is guessing, 1 is perfect"),
    ("accuracy, precision, recall", "at the threshold; where it was chosen on these words, they flatter"),
    ("naming none", "the accuracy of detecting nothing at all"),
    ("chance", "the share of the words that belong to the group"),
)


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
    named = (("associated (IBD)", found.curve), ("EIBD", found.curve_emergent))
    return [Task(name, curve) for name, curve in named if curve is not None]


def discovery_headline(discovery: Discovery) -> str:
    """One line: what was searched."""
    manifest = discovery.manifest
    labels = ", ".join(found.label for found in discovery.results) or "no group"
    count = discovery.results[0].num_words if discovery.results else 0
    words = f"{count:,} words ({manifest.vocabulary})"
    return f"{labels} among {len(manifest.groups)} groups ({manifest.grouping_title}); {words}"


def discovery_summary(discovery: Discovery, only: Sequence[str] | None = None) -> list[str]:
    """What was found, some sentences a group, in plain words."""
    chosen = [found for found in discovery.results if only is None or found.group in only]
    return [sentence for found in chosen for sentence in _about(found, discovery)]


def _about(found: GroupFindings, discovery: Discovery) -> list[str]:
    alpha, every = discovery.manifest.alpha, discovery.manifest.compare == "every"
    whom = "every other group" if every else "at least one other group"
    count = found.num_every
    also = "" if every else f" {_number(count).capitalize()} of them {_are(count)} above it against every other group."
    sentences = [
        f"{found.label}: {_number(found.num_associated)} of {found.num_words:,} words {_are(found.num_associated)} "
        f"associated: closer to their names than to those of {whom}, with a score above {found.threshold:g} "
        f"({_SOURCES[found.threshold_source]}) and by more than chance (q <= {alpha:g}).{also}",
        f"{found.label}: {_number(found.num_emergent)} {_are(found.num_emergent)} emergent: found by EIBD (threshold "
        f"{found.threshold_emergent:g}), with an association that exceeds what the categories contribute together "
        f"(q excess <= {alpha:g}). EIBD, the published rule, finds {_number(found.num_eibd)} with q <= {alpha:g}.",
    ]
    if found.num_associated > _MANY * found.num_words:
        sentences.append(
            f"{found.label}: so many words ({found.num_associated / found.num_words:.0%}) are hardly all stereotypes: "
            "these names differ from others in what the texts are about, or in how frequent they are."
        )
    sentences += [_validation(found, task) for task in tasks(found)]
    floor = _floor(found, discovery)
    return [*sentences, floor] if floor else sentences


def _number(n: int) -> str:
    return f"{n:,}" if n else "none"


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def _validation(found: GroupFindings, task: Task) -> str:
    curve = task.curve
    true = curve.tp[0] + curve.fn[0]
    text = (
        f"{found.label}, {task.name}, on {len(found.validated)} words of which {true} {_are(true)} of the group: area "
        f"under the curve {curve.area:.2f} (0.5 is guessing); at the threshold {curve.chosen:g} right for "
        f"{curve.accuracy:.1%} of the words, where naming no word at all would be right for {task.none_detected:.1%}."
    )
    if true < _ENOUGH:
        return f"{text} So few true words say next to nothing about the threshold."
    return f"{text} That is near guessing: take the threshold as arbitrary." if curve.area < _CLEAR else text


def _floor(found: GroupFindings, discovery: Discovery) -> str:
    """Said where so few permutations leave it to the seed whether words are found."""
    wanted = discovery.permutations_wanted(found)
    if wanted is None:
        return ""
    return (
        f"{found.label}: {discovery.manifest.permutations:,} permutations may be too few: no word can be found unless "
        f"at least {discovery.at_the_floor(found):,} of {found.num_words:,} have the smallest p-value they can give, "
        f"and another seed may find other words. Try --permutations {wanted} or more."
    )


def best_words(found: GroupFindings, *, emergent: bool, top: int) -> Sequence[WordFound]:
    """The words that rank highest among those associated, or emergent."""
    return [word for word in found.words if (word.emergent if emergent else word.associated)][:top]


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def q_text(value: float | None) -> str:
    return "–" if value is None else format_plain_p(value)


def most_against(found: GroupFindings, word: WordFound) -> str:
    """The group that the score of a word comes from."""
    known = [(score, other) for score, other in zip(word.scores, found.others, strict=True) if score is not None]
    return next((other for score, other in known if score == word.score), "")


def lost_in(discovery: Discovery) -> list[str]:
    """Names and words that the model does not know."""
    manifest = discovery.manifest
    lines = [
        f"{len(names)} of {len(manifest.groups[group])} names of {manifest.labels[group]} have no vector: "
        f"{', '.join(names)}"
        for group, names in manifest.names_lost.items()
        if names
    ]
    for words, what in (
        (manifest.validation_lost, "rated words"),
        (manifest.words_lost, f"words of {manifest.vocabulary}"),
    ):
        if words:
            shown = ", ".join(words[:40]) + (f" and {len(words) - 40} more" if len(words) > 40 else "")
            lines.append(f"{len(words)} {what} have no vector: {shown}")
    return lines
