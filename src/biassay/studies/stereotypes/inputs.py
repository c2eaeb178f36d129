"""What stereotypes are measured with: groups, traits, templates, contexts and judgements, read and checked."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from biassay.answers.answers import Abilities
from biassay.errors import RefusedError, UsageError
from biassay.stimuli.abc import Abc, SocialGroup, Template, groups_named, load_abc, paired_among, templates_named
from biassay.studies.stereotypes.aligning import ceiling_of
from biassay.studies.stereotypes.contexts import GroupContexts, check_contexts_asked
from biassay.studies.stereotypes.group_ceat import CEAT
from biassay.studies.stereotypes.people import Human, human_of
from biassay.studies.stereotypes.questionnaire import Questionnaire
from biassay.studies.stereotypes.records import HumanRecord, InputsRecord
from biassay.studies.stereotypes.settings import Prior, Settings

__all__ = ["StereotypeInputs", "check_output_layer", "check_same", "open_inputs"]


@dataclass(frozen=True, eq=False)
class StereotypeInputs:
    """Everything that is asked of every model, checked before anything is asked.

    ``groups`` are those that are shown. ``pairs`` are the paired groups; where there are any, the single groups that
    they are made of are asked about too.
    """

    settings: Settings
    abc: Abc
    groups: tuple[SocialGroup, ...]
    pairs: tuple[SocialGroup, ...]
    templates: tuple[Template, ...]
    human: Human | None
    contexts: GroupContexts | None
    record: InputsRecord
    _sheets: dict[tuple[str, Prior], Questionnaire] = field(default_factory=dict)

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

    def prior(self, abilities: Abilities) -> Prior:
        """What groups are compared with: a model without a mask is asked about people in general."""
        return self.settings.prior if abilities.has_mask else "word"

    def sheet(self, abilities: Abilities) -> Questionnaire:
        """The blanks for a kind of model."""
        kind, prior = abilities.kind or "masked", self.prior(abilities)
        if (kind, prior) not in self._sheets:
            made = Questionnaire(
                self.abc,
                (*self.singles, *self.pairs),
                self.templates,
                kind=kind,  # type: ignore[arg-type]
                prior=prior,
                all_adjectives=self.settings.all_adjectives,
            )
            if not made.templates:
                raise RefusedError(f"none of the templates can be asked of a {kind} model: {', '.join(made.skipped)}")
            self._sheets[kind, prior] = made
        return self._sheets[kind, prior]


def check_output_layer(settings: Settings, abilities: Abilities) -> None:
    """Refuse what only the layer over the vocabulary tells, of a model that keeps it to itself."""
    if abilities.has_output_layer:
        return
    if "set" in settings.by_templates:
        raise UsageError(
            "the sensitivity test (set) needs the output layer of a model, which an endpoint does not give; measure "
            "ilps and ilps-star: --measure ilps ilps-star, measures=['ilps', 'ilps-star']"
        )
    if settings.variant == "cao2022-code" and "ilps-star" in settings.by_templates:
        raise UsageError(
            "ilps-star as in the released code needs the probabilities of all tokens, which an endpoint does not give; "
            "measure it as in the paper, or by hf:NAME"
        )


def open_inputs(settings: Settings) -> StereotypeInputs:
    """Read what the settings name, and refuse what cannot be measured."""
    if not settings.measures:
        raise UsageError("name at least one measure")
    check_contexts_asked(settings)
    if settings.annotators and settings.human is None:
        raise UsageError("annotators are those of human judgements; name these too (--human FILE)")
    abc = load_abc([Path(file) for file in settings.files])
    groups = groups_named(abc, settings.groups)
    pairs = _pairs(abc, groups) if settings.intersections else ()
    templates = templates_named(abc, settings.templates) if settings.by_templates else ()
    contexts = None if settings.contexts is None else GroupContexts.open(settings, groups, abc.pairs)
    human = None
    if settings.human is not None:
        human = human_of(abc, groups, Path(settings.human), settings.annotators, settings.seed)
    record = _record(settings, abc, groups, templates, human, contexts)
    return StereotypeInputs(settings, abc, groups, pairs, templates, human, contexts, record)


def _pairs(abc: Abc, groups: tuple[SocialGroup, ...]) -> tuple[SocialGroup, ...]:
    pairs = paired_among(abc, groups)
    if not pairs:
        raise UsageError(
            f"the chosen groups cannot be paired ({', '.join(group.name for group in groups)}): choose groups of other "
            "domains, or leave --intersections out"
        )
    return pairs


def _record(
    settings: Settings,
    abc: Abc,
    groups: tuple[SocialGroup, ...],
    templates: tuple[Template, ...],
    human: Human | None,
    contexts: GroupContexts | None,
) -> InputsRecord:
    return InputsRecord(
        abc=abc.name,
        abc_digest=abc.digest,
        citation=abc.source.citation,
        licence=abc.source.licence,
        pairs=tuple(pair.name for pair in abc.pairs),
        traits={pair.name: (pair.left, pair.right) for pair in abc.pairs},
        dimensions={pair.name: pair.dimension for pair in abc.pairs},
        groups=tuple(group.name for group in groups),
        templates={template.name: template.text for template in templates},
        measures=(*settings.by_templates, *(() if contexts is None else (CEAT,))),
        notes=(*_replaced(abc), *_not_chosen(human)),
        human=None if human is None else _human_record(human, settings),
        contexts=None if contexts is None else contexts.source,
    )


def _replaced(abc: Abc) -> list[str]:
    """What a user's file has in the place of what is shipped."""
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


def _not_chosen(human: Human | None) -> list[str]:
    if human is None or human.has_both:
        return []
    none = "only pilot groups were" if human.pilot.any() else "no pilot group was"
    return [f"{none} rated and asked about: templates were not chosen"]


def _human_record(human: Human, settings: Settings) -> HumanRecord:
    digest = hashlib.blake2b(repr((human.ratings.groups, human.ratings.pairs)).encode(), digest_size=8)
    for label, ratings in (("all", human.ratings), *human.subgroups):
        digest.update(label.encode() + ratings.ratings.tobytes() + ratings.means.tobytes())
    ceiling = ceiling_of(human, settings.n_bootstrap, settings.seed)
    return HumanRecord(str(human.ratings.path), digest.hexdigest(), human.notes, ceiling)


def check_same(before: InputsRecord, now: InputsRecord) -> None:
    """Refuse to go on with other groups, traits, templates, contexts or judgements."""
    for what, was, is_now in (
        ("groups, traits or templates", _asked(before), _asked(now)),
        ("human judgements", before.human and before.human.digest, now.human and now.human.digest),
        ("contexts", before.contexts and before.contexts.digest, now.contexts and now.contexts.digest),
    ):
        if was != is_now:
            raise UsageError(f"the {what} changed since the run began; start a new run")


def _asked(record: InputsRecord) -> tuple[object, ...]:
    return record.abc_digest, record.groups, record.templates
