"""How stereotypes were measured, in sentences for a paper."""

from __future__ import annotations

from collections.abc import Iterator

from biassay.pages.formats import counted
from biassay.pages.publish.methods import Sentence, listed, models_text, seeds
from biassay.pages.publish.model_card import version_of
from biassay.results.data import RunData
from biassay.studies.stereotypes.group_ceat import CEAT
from biassay.studies.stereotypes.view import measure_name

__all__ = ["sentences_of"]

_PRIORS = {"mask": "the same sentence with the group masked", "word": "the same sentence about people in general"}


def sentences_of(run: RunData, sources: tuple[str, ...]) -> Iterator[Sentence]:
    """Which groups and traits, by which measures, and how they were compared with people."""
    inputs, settings = run.manifest.inputs, run.manifest.settings
    own = [measure_name(name) for name in inputs.measures if name != CEAT]
    yield Sentence(
        f"With biassay {version_of(run)} we measured how {counted(len(inputs.pairs), 'pair')} of opposite traits (the "
        f"ABC model) go with {counted(len(inputs.groups), 'social group')} in {models_text(run)}",
        ("biassay", "cao2022", *sources),
    )
    if own:
        priors = dict.fromkeys(_PRIORS[row.prior] for row in run.tables.get("models", ()) if row.prior in _PRIORS)
        against = listed(list(priors) or [_PRIORS[settings.prior]], "or")
        variant = "" if settings.variant == "paper" else f", in the variant {settings.variant}"
        yield Sentence(
            f"By {listed(own)} a score says how much more a group raises the right trait of a pair than the left one "
            f"in {counted(len(inputs.templates), 'template')}, compared with {against}{variant}",
            ("cao2022",),
        )
    if inputs.contexts is not None:
        of = f" of {counted(inputs.contexts.documents, 'document')}" if inputs.contexts.documents else ""
        yield Sentence(
            f"By CEAT a score says how much closer a group is to the right trait, in {inputs.contexts.rows:,} contexts "
            f"from a corpus{of}, found with seed {inputs.contexts.seed}",
            ("guo2021",),
        )
    if inputs.human is not None:
        yield Sentence(
            "Scores are compared with people's mean ratings by Kendall's tau and precision at 3, over the groups on "
            f"which templates were not chosen, with 95% intervals of {settings.n_bootstrap:,} bootstrap samples over "
            "people and groups",
            ("cao2022",),
        )
    if settings.intersections:
        yield Sentence("All pairs of groups from different domains were asked about too", ("cao2022",))
    if any(row.q_value is not None for row in run.tables.get("emergent", ())):
        yield Sentence(
            "p-values of traits that emerge in pairs of groups were corrected by the method of Benjamini and Hochberg",
            ("benjamini1995",),
        )
    yield seeds([settings.seed])
