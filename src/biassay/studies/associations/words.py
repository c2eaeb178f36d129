"""What is said of a run of association tests beside its findings."""

from __future__ import annotations

from biassay.pages.formats import counted
from biassay.results.data import RunData
from biassay.results.labels import model_labels

__all__ = ["ABSENCE", "headline", "meaning", "unfinished"]

ABSENCE = "A test that finds nothing does not show that a model is free of bias."
_CUSTOM = "in standard deviations over all targets (by convention 0.2 is called small, 0.5 medium, 0.8 large)"
_HOLDS = (
    "An association holds where p by word is at or below alpha (p by text where the words of texts are not known), and "
    "after correction where Holm's correction over all rows leaves it so. Of many tests some hold by chance; those "
    "that hold after correction hardly do."
)
_OVER_TEXTS = (
    f"A positive effect size says that the first targets go with the first attributes and the second targets with the "
    f"second, {_CUSTOM}. A small p-value says that a random split of the same targets would hardly do as well. Unless "
    f"a run is two-sided, tests look in one direction: a p-value near 1 beside a clearly negative effect says that the "
    f"association runs the other way. {_HOLDS} All of it speaks of these words. {ABSENCE}"
)
_OVER_CONTEXTS = (
    f"A positive effect says that, over the contexts in which the words occur, the first targets go with the first "
    f"attributes and the second targets with the second, {_CUSTOM}. {_HOLDS} It speaks of this model on this corpus. "
    f"{ABSENCE}"
)


def meaning(run: RunData) -> str:
    """What the numbers of a run mean."""
    return _OVER_TEXTS if run.manifest.inputs.contexts is None else _OVER_CONTEXTS


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
