"""What is said of a run of association tests beside its findings."""

from __future__ import annotations

from biassay.pages.formats import counted
from biassay.results.data import RunData
from biassay.results.labels import model_labels
from biassay.studies.associations.lead import lead_of, lead_of_table
from biassay.studies.associations.marks import BY_WORD

__all__ = ["ABSENCE", "headline", "meaning", "unfinished"]

ABSENCE = "Inconclusive does not mean unbiased."
_EFFECT = (
    "A positive {unit} says that the first targets go with the first attributes and the second targets with the "
    "second; a negative one, the other way round."
)
_CONCEPTS = (
    "Would other words of the same kinds show it too? That is what p asks (crossed, two-sided), and what the interval "
    "is of: target words and attribute words both count as samples, so that the answer is about the concepts."
)
_THESE_WORDS = (
    f"Do these targets differ towards these attribute words? That is {BY_WORD}; towards words drawn at random they "
    "often do."
)
_ORDINARY = (
    "A significant effect is called large if random English word sets of the same sizes reach it at most 5% of the "
    "time. Where they often reach it, the association is there but ordinary in size."
)
_THESE_TEXTS = (
    "Do these texts differ? That is p by text, the papers' own: it counts every text as an observation, speaks of "
    "these texts only, and is too often small where there is nothing."
)
_ON_CORPUS = "Each word is averaged over its contexts; all of it is about this model on this corpus."


def meaning(run: RunData) -> str:
    """What the numbers of a run mean: which question each p-value asks."""
    units = " or ".join(dict.fromkeys(row.unit for row in run.results)) or "d"
    asked = {"crossed": (_CONCEPTS, _THESE_WORDS), "word": (_THESE_WORDS,), "text": (_THESE_TEXTS,)}
    corpus = "" if run.manifest.inputs.contexts is None else _ON_CORPUS
    drawn = any(row.share_random is not None and lead_of(row) == "crossed" for row in run.results)
    size = _ORDINARY if drawn else ""
    said = (_EFFECT.format(unit=units), *asked[lead_of_table(run.results)], size, corpus, ABSENCE)
    return " ".join(filter(None, said))


def headline(run: RunData) -> str:
    """One line: what was run."""
    tests = len({r.test for r in run.results})
    counts = f"{counted(tests, 'test')} on {counted(len(model_labels(run)), 'model')}"
    over = run.manifest.inputs.contexts
    protocols = list(dict.fromkeys(r.protocol for r in run.results)) or [run.manifest.settings.protocol]
    how = (
        f"protocol {' and '.join(protocols)}"
        if over is None
        else f"over contexts, {run.manifest.settings.n_samples:,} samples"
    )
    metric = "" if run.manifest.settings.metric == "cosine" else f"metric {run.manifest.settings.metric}, "
    return f"{counts}, {metric}{how}, alpha {run.manifest.settings.level:g}"


def unfinished(run: RunData, name: str = "") -> str:
    """Said of a run that was interrupted; nothing of one that is complete."""
    if run.manifest.status == "complete":
        return ""
    total = len(run.manifest.models) * len(run.manifest.inputs.tests)
    return f"The run{f' {name}' if name else ''} is not finished: {len(run.results)} of {total} results are there."
