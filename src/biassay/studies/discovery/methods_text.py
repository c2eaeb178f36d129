"""How words of groups were searched for, in sentences for a paper."""

from __future__ import annotations

from collections.abc import Iterator

from biassay.pages.formats import counted, percent
from biassay.pages.publish.methods import Sentence, listed, models_text, seeds
from biassay.pages.publish.model_card import version_of
from biassay.results.data import RunData
from biassay.studies.discovery.records import Source
from biassay.studies.discovery.view import groups_of

__all__ = ["sentences_of"]

_SOURCES: dict[Source, str] = {
    "validation": "the threshold that fits words rated by people best",
    "given": "a threshold that was given",
    "convention": "a threshold set by convention",
}


def sentences_of(run: RunData, sources: tuple[str, ...]) -> Iterator[Sentence]:
    """Which groups and words, how a word was found, and how its p-value was corrected."""
    inputs, settings, views = run.manifest.inputs, run.manifest.settings, groups_of(run)
    labels = list(dict.fromkeys(view.row.label for view in views))
    words = listed([f"{n:,}" for n in dict.fromkeys(view.row.num_words for view in views)] or ["0"])
    searched = listed(list(dict.fromkeys(row.vocabulary for row in run.tables.get("models", ()))) or ["no words"])
    yield Sentence(
        f"With biassay {version_of(run)} we searched {words} words ({searched}) for those associated with "
        f"{listed(labels or ['no group'])}, among {counted(len(inputs.groups), 'group')} represented by names "
        f"({inputs.grouping_title}), in {models_text(run)}",
        ("biassay", *sources),
    )
    against = "any other group" if settings.compare == "any" else "every other group"
    found = [f"{view.row.threshold:.2f} ({_SOURCES[view.row.threshold_source]})" for view in views]
    above = f" of {listed(list(dict.fromkeys(found)), 'or')}" if found else ""
    yield Sentence(
        "A word is associated with a group (IBD) where its standardised difference of mean cosines, the group's names "
        f"against those of {against}, exceeds a threshold{above}",
        ("guo2021",),
    )
    yield Sentence(
        "It is emergent where it also exceeds, by a test, what the categories of the group explain (EIBD with the rule "
        f"{settings.rule!r})".replace("'", ""),
        ("guo2021",),
    )
    yield Sentence(
        f"p-values come from up to {settings.n_permutations:,} permutations of names between groups, and the false "
        f"discovery rate over all words searched is held at {settings.alpha:g} by the method of Benjamini and Hochberg",
        ("benjamini1995",),
    )
    clusters = [cluster for own in inputs.clusters.values() for cluster in own]
    if clusters:
        yield Sentence(
            f"Near-duplicate names ({'; '.join(', '.join(cluster) for cluster in clusters)}) count as one name each, "
            "with the mean of their cosines"
        )
    yield Sentence(f"A group was left out where a model lacks more than {percent(settings.max_lost)} of its names")
    yield seeds([settings.seed])
