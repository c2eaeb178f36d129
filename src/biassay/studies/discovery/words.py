"""What was found of groups in words, shared by the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biassay.pages.formats import format_p
from biassay.results.data import RunData
from biassay.studies.discovery.findings import at_the_floor, permutations_wanted
from biassay.studies.discovery.records import ModelRow
from biassay.studies.discovery.settings import Settings
from biassay.studies.discovery.view import GroupView, TaskView, groups_of, lost_of

__all__ = [
    "MEANING_OF_WORDS",
    "VALIDATION_COLUMNS",
    "columns_of",
    "discovery_headline",
    "discovery_summary",
    "lost_in",
    "number",
    "q_text",
]

MEANING_OF_WORDS = (
    "A score says how much closer a word is to the names of this group than to those of another, in standard "
    "deviations over the names of both (with groups of one size it stays below 2). A word found need not be a "
    "stereotype, nor offend: names that are rare, or old, or foreign in the texts that the model was trained on are "
    "close to words that are so too. What is not found is not absent."
)
_SOURCES = {
    "validation": "the one that fits the rated words best",
    "given": "as asked",
    "convention": "called a large effect, for no rated words tell a better one",
}
_PERMUTED = {
    "any": "a random permutation of names over all groups gives this group as high a score; a small p does not single "
    "the group out: where another group stands apart, all others score high against it",
    "every": "a random permutation of names over two groups scores as high; of the groups compared with, the one for "
    "which that is most frequent counts",
}
_ENOUGH = 5  # true words, below which a threshold rests on next to nothing
_CLEAR = 0.6  # area under the curve, below which it hardly differs from guessing
_MANY = 0.1  # share of all words


def columns_of(settings: Settings) -> tuple[tuple[str, str], ...]:
    """What the columns of the tables mean."""
    every = settings.compare == "every"
    decides = "smallest" if every else "largest"
    dropped = "no category is above it" if settings.rule == "any" else "not all categories are above it"
    return (
        ("score", f"the {decides} of the scores against the other groups, and the group it comes from; a word is "
         f"associated (IBD) if it is above IBD's threshold, that is, against {'every' if every else 'at least one'} "
         "other group"),
        ("q", "p-value after correction for the number of words searched: among the words with q up to "
         f"{settings.alpha:g}, that share is expected to be chance. p says how often {_PERMUTED[settings.compare]}"),
        ("categories", "the largest score of the group's categories by themselves"),
        ("EIBD", f"the published rule, with q up to {settings.alpha:g}: the score is above EIBD's threshold and "
         f"{dropped}. A higher threshold lets more category pass"),
        ("q excess", "a direct test, which the published method lacks: is the association more than the categories "
         f"contribute together? A word is emergent if it is found by EIBD and q excess is up to {settings.alpha:g}"),
    )  # fmt: skip


VALIDATION_COLUMNS = (
    ("area", "under the curve of true against false positive rate: 0.5 is guessing, 1 is perfect"),
    ("accuracy, precision, recall", "at the threshold; where it was chosen on these words, they flatter"),
    ("naming none", "the accuracy of detecting nothing at all"),
    ("chance", "the share of the words that belong to the group"),
)


def discovery_headline(run: RunData) -> str:
    """One line: what was searched."""
    inputs, found, lost = run.manifest.inputs, groups_of(run), lost_of(run)
    labels = ", ".join(dict.fromkeys(view.row.label for view in found)) or "no group"
    counts = {view.model: view.row.num_words for view in found}
    words = {label: f"{counts[label]:,} words ({row.vocabulary})" for label, row in lost.items() if label in counts}
    alike = len(set(words.values())) == 1
    shown = list(words.values())[:1] if alike else [f"{text} in {label}" for label, text in words.items()]
    return f"{labels} among {len(inputs.groups)} groups ({inputs.grouping_title}); {', '.join(shown) or '0 words'}"


def discovery_summary(run: RunData, only: Sequence[str] | None = None, model: str | None = None) -> list[str]:
    """What was found, some sentences a group, in plain words; of some groups, or of one model by its label."""
    chosen = [view for view in groups_of(run) if only is None or view.row.group in only]
    views = [view for view in chosen if model in (None, view.model)]
    return [sentence for view in views for sentence in _about(view, run.manifest.settings)]


def _about(view: GroupView, settings: Settings) -> list[str]:
    row, alpha, every = view.row, settings.alpha, settings.compare == "every"
    whom = "every other group" if every else "at least one other group"
    count = row.num_every
    also = "" if every else f" {_number(count).capitalize()} of them {_are(count)} above it against every other group."
    sentences = [
        f"{view.title}: {_number(row.num_associated)} of {row.num_words:,} words {_are(row.num_associated)} "
        f"associated: closer to their names than to those of {whom}, with a score above {row.threshold:g} "
        f"({_SOURCES[row.threshold_source]}) and by more than chance (q <= {alpha:g}).{also}",
        f"{view.title}: {_number(row.num_emergent)} {_are(row.num_emergent)} emergent: found by EIBD (threshold "
        f"{row.threshold_emergent:g}), with an association that exceeds what the categories contribute together "
        f"(q excess <= {alpha:g}). EIBD, the published rule, finds {_number(row.num_eibd)} with q <= {alpha:g}.",
    ]
    if row.num_associated > _MANY * row.num_words:
        sentences.append(
            f"{view.title}: so many words ({row.num_associated / row.num_words:.0%}) are hardly all stereotypes: "
            "these names differ from others in what the texts are about, or in how frequent they are."
        )
    sentences += [_validation(view, task) for task in view.tasks]
    floor = _floor(view, settings)
    return [*sentences, floor] if floor else sentences


def _number(n: int) -> str:
    return f"{n:,}" if n else "none"


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def _validation(view: GroupView, task: TaskView) -> str:
    curve, true = task.row, task.num_true
    text = (
        f"{view.title}, {task.name}, on {len(view.validated)} words of which {true} {_are(true)} of the group: area "
        f"under the curve {curve.area:.2f} (0.5 is guessing); at the threshold {curve.chosen:g} right for "
        f"{curve.accuracy:.1%} of the words, where naming no word at all would be right for {task.none_detected:.1%}."
    )
    if true < _ENOUGH:
        return f"{text} So few true words say next to nothing about the threshold."
    return f"{text} That is near guessing: take the threshold as arbitrary." if curve.area < _CLEAR else text


def _floor(view: GroupView, settings: Settings) -> str:
    """Said where so few permutations leave it to the seed whether words are found."""
    wanted = permutations_wanted(view.row, settings)
    if wanted is None:
        return ""
    return (
        f"{view.title}: {settings.n_permutations:,} permutations may be too few: no word can be found unless at least "
        f"{at_the_floor(view.row, settings):,} of {view.row.num_words:,} have the smallest p-value they can give, and "
        f"another seed may find other words. Try --n-permutations {wanted} or more."
    )


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def q_text(value: float | None) -> str:
    return format_p(value)


def lost_in(run: RunData) -> list[str]:
    """Names and words that models do not know."""
    found = lost_of(run)
    return [f"{label}: {line}" if len(found) > 1 else line for label, row in found.items() for line in _lost(run, row)]


def _lost(run: RunData, row: ModelRow) -> Iterator[str]:
    inputs = run.manifest.inputs
    for group, names in row.names_lost.items():
        if names:
            of = f"{len(names)} of {len(inputs.groups[group])} names of {inputs.labels[group]}"
            yield f"{of} have no vector: {', '.join(names)}"
    for words, what in ((row.validation_lost, "rated words"), (row.words_lost, f"words of {row.vocabulary}")):
        if words:
            shown = ", ".join(words[:40]) + (f" and {len(words) - 40} more" if len(words) > 40 else "")
            yield f"{len(words)} {what} have no vector: {shown}"
