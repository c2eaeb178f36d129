"""Rows of stereotypes, made from what was asked and what was answered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from biassay.answers.answers import Answers
from biassay.errors import UsageError
from biassay.models.base import Filled
from biassay.stats.template_choice import choose_templates
from biassay.stimuli.abc import SocialGroup
from biassay.studies.stereotypes.aligning import Compared, given
from biassay.studies.stereotypes.contexts import GroupContexts, scores_in_contexts
from biassay.studies.stereotypes.group_ceat import CEAT
from biassay.studies.stereotypes.inputs import StereotypeInputs
from biassay.studies.stereotypes.pairs import Crossed, mean_over
from biassay.studies.stereotypes.people import Human
from biassay.studies.stereotypes.questionnaire import Questionnaire, pair_scores_of
from biassay.studies.stereotypes.records import MeasureRow, ModelRow, ProfileRow
from biassay.studies.stereotypes.word_associations import Measure
from biassay.studies.study import Array, Event, Lost, Notice, Progress, Row

__all__ = ["choose", "measured_by_templates", "measured_in_contexts", "unasked"]

_Floats = NDArray[np.float64]


def measured_by_templates(inputs: StereotypeInputs, model: Answers) -> Iterator[Event]:
    """What a model fills into blanks, and every measure of it."""
    sheet = inputs.sheet(model.abilities)
    answers = model.blanks(sheet.blanks)
    if inputs.prior(model.abilities) != inputs.settings.prior:
        yield Notice("a causal model has no mask; groups are compared with people in general")
    row = _model_row(inputs, model, sheet, answers)
    yield Row("models", row)
    yield Lost((*row.unknown_adjectives, *row.unknown_groups))
    if row.unknown_groups:
        yield Notice(f"does not know all words of {', '.join(row.unknown_groups)}: not measured")
    measures = inputs.settings.by_templates
    for number, measure in enumerate(measures, start=1):
        yield from _measured(inputs, model, sheet, answers, measure)
        yield Progress("measures", number, len(measures))


def _model_row(inputs: StereotypeInputs, model: Answers, sheet: Questionnaire, answers: Sequence[Filled]) -> ModelRow:
    unknown = sheet.unknown(answers)
    adjectives = sum(item.adjective not in unknown for item in sheet.items)
    return ModelRow(
        model=model.identity.name,
        options=model.identity.options,
        kind=model.abilities.kind or "masked",
        prior=inputs.prior(model.abilities),
        skipped_templates=sheet.skipped,
        unknown_adjectives=unknown,
        unknown_groups=sheet.unknown_groups(answers),
        num_questions=len(sheet.blanks),
        num_passes=sum(one.passes for one in answers),
        num_asked=(len(sheet.groups) + 1) * len(sheet.templates) * adjectives,
    )


def unasked(model: Answers) -> ModelRow:
    """A model that is asked no blanks, for CEAT needs no more than an encoder of words."""
    return ModelRow(model.identity.name, model.identity.options, "encoder", "none", (), (), (), 0, 0, 0)


def _measured(
    inputs: StereotypeInputs, model: Answers, sheet: Questionnaire, answers: Sequence[Filled], measure: Measure
) -> Iterator[Event]:
    """One measure: scores of all groups, profiles, agreement with people, and paired groups."""
    by_item = sheet.scores(answers, measure, inputs.settings.variant).scores
    scores = pair_scores_of(by_item, sheet.items, len(inputs.abc.pairs))
    names, singles = [group.name for group in sheet.groups], len(inputs.singles)
    rows = [names.index(group.name) for group in inputs.groups]
    templates = tuple(template.name for template in sheet.templates)
    chosen, pilot_tau = choose(scores[rows], templates, inputs.human)
    profiles = mean_over(scores[:, chosen], axis=1)
    shown = [*rows, *range(singles, len(sheet.groups))]
    who = _who(model, measure)
    row = MeasureRow(
        **who,
        groups=tuple(names[i] for i in shown),
        templates=templates,
        chosen=tuple(templates[i] for i in chosen),
        undefined=int(np.isnan(by_item).sum()),
    )
    yield Row("measures", row)
    yield Array(f"{measure}/scores", scores[shown])
    yield from _profiles(who, [sheet.groups[i] for i in shown], profiles[shown], inputs.human)
    if inputs.human is not None:
        compared = Compared(who, row.groups, inputs.domains, profiles[rows], inputs.human, pilot_tau)
        yield from compared.rows(inputs.settings.n_bootstrap, inputs.settings.seed)
    if inputs.settings.intersections:
        yield from Crossed(who, inputs.abc, sheet, singles, by_item[:, chosen]).rows()


def measured_in_contexts(inputs: StereotypeInputs, asked: GroupContexts, model: Answers) -> Iterator[Event]:
    """Group CEAT: no templates, so none to choose on a pilot."""
    found = scores_in_contexts(asked, model)
    who, names = _who(model, CEAT), tuple(group.name for group in inputs.groups)
    yield Row("measures", MeasureRow(**who, groups=names, templates=(), chosen=(), undefined=_missing(found.scores)))
    yield Row("contexts", found.row)
    yield Array(f"{CEAT}/standard_errors", found.standard_errors)
    yield from _profiles(who, inputs.groups, found.scores, inputs.human)
    if inputs.human is not None:
        compared = Compared(who, names, inputs.domains, found.scores, inputs.human, None)
        yield from compared.rows(inputs.settings.n_bootstrap, inputs.settings.seed)


def _missing(scores: _Floats) -> int:
    return int(np.isnan(scores).sum())


def _who(model: Answers, measure: str) -> dict[str, str]:
    return {"model": model.identity.name, "options": model.identity.options, "measure": measure}


def _profiles(
    who: dict[str, str], groups: Sequence[SocialGroup], scores: _Floats, human: Human | None
) -> Iterator[Row]:
    """The groups' scores (groups, pairs), those that people may have judged first."""
    means = {} if human is None else dict(zip(human.places.tolist(), human.ratings.means, strict=True))
    for place, group in enumerate(groups):
        row = ProfileRow(
            **who,
            group=group.name,
            domain=group.domain,
            parts=group.parts,
            scores=tuple(map(given, scores[place])),
            human=tuple(map(given, means[place])) if place in means else None,
        )
        yield Row("profiles", row)


def choose(scores: _Floats, templates: Sequence[str], human: Human | None) -> tuple[list[int], float | None]:
    """The templates that agree best with a few people on the pilot groups, and how well.

    All of them, and None, where there is nothing to choose from, or no group beside the pilot to be compared then.
    """
    everything = list(range(len(templates)))
    if human is None or len(templates) < 2 or not human.has_both:
        return everything, None
    try:
        choice = choose_templates(scores[human.places[human.pilot]].transpose(1, 0, 2), human.pilot_means, templates)
    except UsageError:  # no template has all scores of the pilot, or none that differ
        return everything, None
    return list(choice.places), choice.tau
