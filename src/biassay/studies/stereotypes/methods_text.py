"""How stereotypes were measured, in sentences for a paper."""

from __future__ import annotations

from collections.abc import Iterator

from biassay.pages.formats import counted
from biassay.pages.publish.methods import Sentence, listed, models_text, seeds
from biassay.pages.publish.model_card import version_of
from biassay.results.data import RunData
from biassay.studies.stereotypes.group_ceat import CEAT
from biassay.studies.stereotypes.records import MeasureRow
from biassay.studies.stereotypes.shown import templates_text
from biassay.studies.stereotypes.view import measure_name, models_of

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
            f"By {listed(own)} a score says how much more a group raises the right trait of a pair than the left one, "
            f"compared with {against}{variant}",
            ("cao2022",),
        )
        yield from _templates(run)
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
            "which templates were not chosen. 95% intervals combine a bootstrap over people "
            f"({settings.n_bootstrap:,} samples) with a jackknife over the domains of groups",
            ("cao2022",),
        )
    paired = max((row.num_groups for row in run.tables.get("orders", ())), default=0)
    if paired:
        yield Sentence(f"{paired:,} groups that combine two domains were also measured", ("cao2022",))
    if any(row.q_value is not None for row in run.tables.get("emergent", ())):
        yield Sentence(
            "p-values of traits that emerge in pairs of groups were corrected by the method of Benjamini and Hochberg",
            ("benjamini1995",),
        )
    yield seeds([settings.seed])


def _templates(run: RunData) -> Iterator[Sentence]:
    """Over which templates scores are means, and how these were chosen."""
    by_text: dict[tuple[str, str], list[str]] = {}
    models = models_of(run)
    for model in models:
        for row in model["measures"]:
            if row.templates:
                who = measure_name(row.measure) if len(models) == 1 else f"{measure_name(row.measure)} of {model.label}"
                by_text.setdefault((_used(row, run), _choice(row)), []).append(who)
    if not by_text:
        return
    alone = len(by_text) == 1
    parts = [used if alone else f"{used} ({', '.join(who)})" for (used, _), who in by_text.items()]
    choices = list(dict.fromkeys(choice for _, choice in by_text if choice))
    pilot = list(dict.fromkeys(row.group for row in run.tables.get("group_alignments", ()) if row.pilot))
    chosen = ""
    if choices:
        chosen = f"; these were chosen from {listed(choices, 'or')} as those that agree best with people's ratings of "
        chosen += f"{counted(len(pilot), 'pilot group')} ({', '.join(pilot)})" if pilot else "pilot groups"
    yield Sentence(f"Scores are means over {listed(parts)}{chosen}", ("cao2022",))


def _used(row: MeasureRow, run: RunData) -> str:
    text = templates_text(row, run.manifest.inputs)
    return f"the template {text}" if len(row.chosen) == 1 else text


def _choice(row: MeasureRow) -> str:
    return counted(len(row.templates), "template") if len(row.chosen) < len(row.templates) else ""
