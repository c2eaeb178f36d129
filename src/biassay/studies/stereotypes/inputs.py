"""Read and check the groups, traits, templates, contexts and human ratings of a run."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from biassay.cache.outputs import Capabilities
from biassay.datasets.abc_model import (
    AbcStimuli,
    SocialGroup,
    Template,
    load_abc,
    pair_groups,
    select_groups,
    select_templates,
)
from biassay.errors import InsufficientVocabularyError, UsageError
from biassay.studies.stereotypes.agreement import HumanJudgements, compute_ceiling, match_judgements
from biassay.studies.stereotypes.cloze_items import ClozeItems
from biassay.studies.stereotypes.group_ceat import CEAT
from biassay.studies.stereotypes.group_contexts import GroupContexts, check_context_settings
from biassay.studies.stereotypes.results import HumanRecord, StereotypeInputsRecord
from biassay.studies.stereotypes.settings import Prior, StereotypeSettings

__all__ = ["StereotypeInputs", "check_output_layer", "check_same", "load_inputs"]


@dataclass(frozen=True, eq=False)
class StereotypeInputs:
    """Everything that is asked of every model, checked before anything is asked.

    ``groups`` are those that are shown. ``pairs`` are the paired groups; where there are any, the single groups that
    they are made of are asked about too.
    """

    settings: StereotypeSettings
    abc: AbcStimuli
    groups: tuple[SocialGroup, ...]
    pairs: tuple[SocialGroup, ...]
    templates: tuple[Template, ...]
    human: HumanJudgements | None
    contexts: GroupContexts | None
    record: StereotypeInputsRecord
    _sheets: dict[tuple[str, Prior], ClozeItems] = field(default_factory=dict)

    @property
    def singles(self) -> tuple[SocialGroup, ...]:
        """The single groups that are asked about."""
        if not self.pairs:
            return self.groups
        asked = {group.name for group in self.groups} | {part for pair in self.pairs for part in pair.parts}
        return tuple(group for group in self.abc.groups if group.name in asked)

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains of the groups that are shown."""
        return tuple(group.domain for group in self.groups)

    def prior(self, capabilities: Capabilities) -> Prior:
        """Return the prior; for a model without a mask, it is people in general."""
        return self.settings.prior if capabilities.has_mask else "word"

    def sheet(self, capabilities: Capabilities) -> ClozeItems:
        """Return the blanks for a kind of model."""
        kind, prior = capabilities.kind or "masked", self.prior(capabilities)
        if (kind, prior) not in self._sheets:
            made = ClozeItems(
                self.abc,
                (*self.singles, *self.pairs),
                self.templates,
                kind=kind,  # type: ignore[arg-type]
                prior=prior,
                all_adjectives=self.settings.all_adjectives,
            )
            if not made.templates:
                raise InsufficientVocabularyError(
                    f"none of the templates can be asked of a {kind} model: {', '.join(made.skipped)}"
                )
            self._sheets[kind, prior] = made
        return self._sheets[kind, prior]


def check_output_layer(settings: StereotypeSettings, capabilities: Capabilities) -> None:
    """Refuse what only the layer over the vocabulary tells, of a model that keeps it to itself."""
    if capabilities.has_output_layer:
        return
    if "set" in settings.template_measures:
        raise UsageError(
            "the sensitivity test (set) needs the output layer of a model, which an endpoint does not give; measure "
            "ilps and ilps-star: --measures ilps ilps-star, measures=['ilps', 'ilps-star']"
        )
    if settings.variant == "cao2022-code" and "ilps-star" in settings.template_measures:
        raise UsageError(
            "ilps-star as in the released code needs the probabilities of all tokens, which an endpoint does not give; "
            "measure it as in the paper, or by hf:NAME"
        )


def load_inputs(settings: StereotypeSettings) -> StereotypeInputs:
    """Read what the settings name, and refuse what cannot be measured."""
    if not settings.measures:
        raise UsageError("name at least one measure")
    check_context_settings(settings)
    if settings.annotators and settings.human is None:
        raise UsageError("annotators are those of human judgements; name these too (--human FILE)")
    abc = load_abc([Path(file) for file in settings.files])
    groups = select_groups(abc, settings.groups)
    pairs = _make_pairs(abc, groups) if settings.intersections else ()
    templates = select_templates(abc, settings.templates) if settings.template_measures else ()
    contexts = None if settings.contexts is None else GroupContexts.open(settings, groups, abc.pairs)
    human = None
    if settings.human is not None:
        human = match_judgements(abc, groups, Path(settings.human), settings.annotators, settings.seed)
    record = _make_record(settings, abc, groups, templates, human, contexts)
    return StereotypeInputs(settings, abc, groups, pairs, templates, human, contexts, record)


def _make_pairs(abc: AbcStimuli, groups: tuple[SocialGroup, ...]) -> tuple[SocialGroup, ...]:
    pairs = pair_groups(abc, groups)
    if not pairs:
        raise UsageError(
            f"the chosen groups cannot be paired ({', '.join(group.name for group in groups)}): choose groups of other "
            "domains, or leave --intersections out"
        )
    return pairs


def _make_record(
    settings: StereotypeSettings,
    abc: AbcStimuli,
    groups: tuple[SocialGroup, ...],
    templates: tuple[Template, ...],
    human: HumanJudgements | None,
    contexts: GroupContexts | None,
) -> StereotypeInputsRecord:
    return StereotypeInputsRecord(
        abc=abc.name,
        abc_digest=abc.digest,
        citation=abc.source.citation,
        licence=abc.source.licence,
        pairs=tuple(pair.name for pair in abc.pairs),
        traits={pair.name: (pair.left, pair.right) for pair in abc.pairs},
        dimensions={pair.name: pair.dimension for pair in abc.pairs},
        groups=tuple(group.name for group in groups),
        templates={template.name: template.text for template in templates},
        measures=(*settings.template_measures, *(() if contexts is None else (CEAT,))),
        notes=(*_list_replaced(abc), *_explain_not_chosen(human)),
        human=None if human is None else _make_human_record(human, settings),
        contexts=None if contexts is None else contexts.source,
    )


def _list_replaced(abc: AbcStimuli) -> list[str]:
    """Return the names in a user's file that replace shipped ones."""
    shipped = load_abc()
    return [
        f"{what} {one.name!r} is not the one that is shipped: a file of yours replaced it"
        for what, known, own in (
            ("group", shipped.groups, abc.groups),
            ("template", shipped.templates, abc.templates),
            ("pair", shipped.pairs, abc.pairs),
        )
        for one in own
        if any(one.name == other.name and one != other for other in known)
    ]


def _explain_not_chosen(human: HumanJudgements | None) -> list[str]:
    if human is None or human.has_both:
        return []
    none = "only pilot groups were" if human.pilot.any() else "no pilot group was"
    return [f"{none} rated and asked about: templates were not chosen"]


def _make_human_record(human: HumanJudgements, settings: StereotypeSettings) -> HumanRecord:
    digest = hashlib.blake2b(repr((human.ratings.groups, human.ratings.pairs)).encode(), digest_size=8)
    for label, ratings in (("all", human.ratings), *human.subgroups):
        digest.update(label.encode() + ratings.ratings.tobytes() + ratings.means.tobytes())
    ceiling = compute_ceiling(human, settings.n_bootstrap, settings.seed)
    return HumanRecord(str(human.ratings.path), digest.hexdigest(), human.notes, ceiling)


def check_same(before: StereotypeInputsRecord, now: StereotypeInputsRecord) -> None:
    """Refuse to go on with other groups, traits, templates, contexts or judgements."""
    for what, was, is_now in (
        ("groups, traits or templates", _identify_inputs(before), _identify_inputs(now)),
        ("human judgements", before.human and before.human.digest, now.human and now.human.digest),
        ("contexts", before.contexts and before.contexts.digest, now.contexts and now.contexts.digest),
    ):
        if was != is_now:
            raise UsageError(f"the {what} changed since the run began; start a new run")


def _identify_inputs(record: StereotypeInputsRecord) -> tuple[object, ...]:
    return record.abc_digest, record.groups, record.templates
