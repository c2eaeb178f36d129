"""The ABC model on one page: groups and templates become blanks, answers become scores, scores meet people's.

Answers are kept as vectors are, batch by batch, so that a run that was stopped asks nothing twice.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from biassay.encoders.lm import LanguageModel
from biassay.encoders.registry import open_as
from biassay.engines.base import Engine
from biassay.errors import MeasurementError, UsageError
from biassay.files import default_cache
from biassay.measures.agreement import Human, human_of
from biassay.measures.group_ceat import CEAT
from biassay.measures.stereotypes import Prior, Questionnaire
from biassay.measures.word_associations import MEASURES, VARIANTS, Measure, Variant
from biassay.pipeline.common import Listener, PathLike, Silent, check_free, taken_back_if_empty
from biassay.pipeline.group_contexts import GroupContexts, check_contexts_asked, measure_groups
from biassay.results.making import beginning, identified, libraries, now
from biassay.results.making_agreement import ceiling_of
from biassay.results.making_stereotypes import intersection_of, measured, measured_in_contexts
from biassay.results.records import ModelRecord
from biassay.results.run import make_folder
from biassay.results.stereotypes import KIND, ModelStereotypes, StereotypeManifest, Stereotypes
from biassay.stats.permutation import check_choice
from biassay.stimuli.abc import Abc, SocialGroup, Template, groups_named, load_abc, paired_groups, templates_named
from biassay.studies.presenters import write_report
from biassay.texts.contexts import UNCHECKED
from biassay.vectors.codecs import BLANKS
from biassay.vectors.fill import AskedBlanks, ask_missing
from biassay.vectors.store import VectorStore

__all__ = ["ALL_MEASURES", "stereotypes"]

ALL_MEASURES = (*MEASURES, CEAT)


@dataclass(frozen=True)
class _Settings:
    """``measures`` are those by templates; CEAT is measured where there are contexts."""

    measures: tuple[Measure, ...]
    variant: Variant
    prior: Prior
    all_adjectives: bool
    intersections: bool
    draws: int
    seed: int


def stereotypes(
    models: str | Sequence[str],
    *,
    measures: str | Sequence[str] = MEASURES,
    groups: str | Sequence[str] = (),
    templates: str | Sequence[str] = (),
    files: Sequence[PathLike] = (),
    contexts: PathLike | None = None,
    min_contexts: int = 5,
    human: PathLike | None = None,
    annotators: Sequence[tuple[str, str]] = (),
    prior: str = "mask",
    variant: str = "paper",
    all_adjectives: bool = False,
    intersections: bool = False,
    draws: int = 1000,
    seed: int = 0,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    engine: Engine | None = None,
    listener: Listener | None = None,
) -> Stereotypes:
    """What language models tie to social groups along agency, beliefs and communion, and whether people agree.

    Parameters
    ----------
    models : str or list of str
        Masked or causal language models, ``hf:NAME``; for ``ceat`` alone any model of words in contexts (``elmo:DIR``).
    measures : str or list of str
        Of ``ilps``, ``ilps-star``, ``set`` and ``ceat``; the first three by default.
    groups, templates : list of str
        Names, patterns, domains or kinds; all by default.
    files : list of path
        TOML files that add groups, traits or templates.
    contexts : path, optional
        For ``ceat``: a file made by ``biassay contexts --abc``.
    min_contexts : int
        For ``ceat``: a group or an adjective with fewer contexts is left out.
    human : path, optional
        Human judgements: means, or the ratings of annotators.
    annotators : list of (field, value)
        Further alignments with annotators of one kind only, where the file says what they are.
    prior : {"mask", "word"}
        What a group is compared with: the group masked, or "person" and "people". Causal models have no mask.
    variant : {"paper", "cao2022-code"}
    all_adjectives : bool
        Whether a trait is the median over all its adjectives, instead of its own only.
    intersections : bool
        Whether groups are also paired.
    draws : int
        Of the bootstrap and of the split halves.
    seed : int
        Of these, and of the pilot's annotators.
    out : path, optional
        A new folder for what is found.
    cache : path, optional
        Where answers and vectors are kept; by default the user's cache folder.
    engine : Engine, optional
        For ``ceat``: where contexts are encoded; by default here.
    """
    names = (measures,) if isinstance(measures, str) else tuple(dict.fromkeys(measures))
    for name in names:
        check_choice("measure", name, ALL_MEASURES)
    by_templates = tuple(name for name in names if name != CEAT)
    check_contexts_asked(names, contexts, templates, intersections=intersections)
    check_choice("variant", variant, VARIANTS)
    check_choice("prior", prior, get_args(Prior))
    if seed < 0:
        raise UsageError(f"the seed must not be negative, got {seed}")
    if draws < 10:
        raise UsageError(f"draws must be at least 10, got {draws}")
    asked = (models,) if isinstance(models, str) else tuple(dict.fromkeys(models))
    if not asked or not names:
        raise UsageError("name at least one model and one measure")
    abc = load_abc([Path(file) for file in files])
    chosen = groups_named(abc, (groups,) if isinstance(groups, str) else groups)
    kinds = templates_named(abc, (templates,) if isinstance(templates, str) else templates) if by_templates else ()
    in_contexts = None
    if contexts is not None:
        in_contexts = GroupContexts.open(
            contexts, chosen, abc.pairs, all_adjectives=all_adjectives, min_contexts=min_contexts
        )
    settings = _Settings(by_templates, variant, prior, all_adjectives, intersections, draws, seed)  # type: ignore[arg-type]
    people = None if human is None else human_of(abc, chosen, Path(human), annotators, seed)
    folder = None if out is None else Path(out)
    if folder is not None:
        check_free(folder)
    if in_contexts is not None:
        for text in asked:
            open_as(text, "words")  # one that cannot be opened is told before the first one works
    opened = [(text, open_as(text, "blanks") if by_templates else None) for text in asked]
    place = Path(cache) if cache is not None else default_cache()
    work = _Work(abc, chosen, kinds, settings, people, in_contexts, place, engine, listener or Silent())
    if in_contexts is not None and not in_contexts.contexts.checked:
        work.listener.notice(UNCHECKED)
    if folder is None:
        return work.carry_out(opened)
    with taken_back_if_empty(folder, also=(MeasurementError, KeyboardInterrupt)):
        make_folder(folder)
        found = work.carry_out(opened)
        found.save(folder)
        write_report(found, folder)
    return found


@dataclass(frozen=True)
class _Work:
    """What is asked of every model."""

    abc: Abc
    groups: tuple[SocialGroup, ...]
    templates: tuple[Template, ...]
    settings: _Settings
    human: Human | None
    contexts: GroupContexts | None
    cache: Path
    engine: Engine | None
    listener: Listener

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of what was asked."""
        shipped = load_abc()
        replaced = [
            f"{what} {one.name!r} is not the one that is shipped: a file of yours replaced it"
            for what, known, own in (
                ("group", shipped.groups, self.abc.groups),
                ("template", shipped.templates, self.abc.templates),
                ("pair", shipped.pairs, self.abc.pairs),
            )
            for one in own
            if any(one.name == other.name and one != other for other in known)
        ]
        if self.human is None or self.human.has_both:
            return tuple(replaced)
        none = "only pilot groups were" if self.human.pilot.any() else "no pilot group was"
        return (*replaced, f"{none} rated and asked about: templates were not chosen")

    def carry_out(self, models: Sequence[tuple[str, LanguageModel | None]]) -> Stereotypes:
        manifest = beginning()
        found = [self._one_model(text, model) for text, model in models]
        records = tuple(record for record, _ in found)
        manifest |= {"status": "complete", "finished": now(), "versions": manifest["versions"] | libraries(records)}
        settings, people = self.settings, self.human
        return Stereotypes(
            StereotypeManifest(
                **manifest,
                models=records,
                kind=KIND,
                abc=self.abc.name,
                abc_digest=self.abc.digest,
                citation=self.abc.source.citation,
                licence=self.abc.source.licence,
                pairs=tuple(pair.name for pair in self.abc.pairs),
                dimensions={pair.name: pair.dimension for pair in self.abc.pairs},
                groups=tuple(group.name for group in self.groups),
                templates={template.name: template.text for template in self.templates},
                measures=(*settings.measures, *(() if self.contexts is None else (CEAT,))),
                variant=settings.variant,
                prior=settings.prior,
                all_adjectives=settings.all_adjectives,
                human=None if people is None else str(people.ratings.path),
                human_notes=() if people is None else people.notes,
                notes=self.notes,
                draws=settings.draws,
                ceiling=None if people is None else ceiling_of(people, settings.draws, settings.seed),
                seed=settings.seed,
                contexts=None if self.contexts is None else self.contexts.source,
            ),
            tuple(result for _, result in found),
        )

    def _one_model(self, text: str, model: LanguageModel | None) -> tuple[ModelRecord, ModelStereotypes]:
        began = time.monotonic()
        record, found = _unasked(text) if model is None else self._asked(text, model)
        if self.contexts is not None:
            record, found = self._in_contexts(text, record, found, self.contexts)
        return dataclasses.replace(record, seconds=round(time.monotonic() - began, 3)), found

    def _in_contexts(
        self, text: str, record: ModelRecord, found: ModelStereotypes, contexts: GroupContexts
    ) -> tuple[ModelRecord, ModelStereotypes]:
        """The same with CEAT."""
        seen = measure_groups(text, contexts, cache=self.cache, engine=self.engine, listener=self.listener)
        made = measured_in_contexts(self.groups, seen.scores, self.human, self.settings.draws, self.settings.seed)
        whole = dataclasses.replace(found, measures=(*found.measures, made), contexts=seen.record)
        texts, encoded = record.texts + seen.texts, record.encoded + seen.encoded
        return dataclasses.replace(record, texts=texts, encoded=encoded), whole

    def _asked(self, text: str, model: LanguageModel) -> tuple[ModelRecord, ModelStereotypes]:
        """The measures by templates."""
        prior: Prior = self.settings.prior
        if prior == "mask" and not model.has_mask:
            prior = "word"
            self.listener.notice(f"{text}: a causal model has no mask; groups are compared with people in general")
        pairs = paired_groups(self.abc) if self.settings.intersections else ()
        singles = self.abc.groups if pairs else self.groups
        sheet = Questionnaire(
            self.abc,
            (*singles, *pairs),
            self.templates,
            kind=model.kind,
            prior=prior,
            all_adjectives=self.settings.all_adjectives,
        )
        if not sheet.templates:
            raise MeasurementError(f"{text}: none of the templates can be asked: {', '.join(sheet.skipped)}")
        kept = VectorStore(self.cache).of(model.identity, BLANKS)
        asked = ask_missing(
            AskedBlanks(model), sheet.blanks, kept, lambda done, total: self.listener.asking(text, done, total)
        )
        answers = kept.get(sheet.blanks)
        made = [
            measured(
                self.abc,
                sheet,
                len(singles),
                self.groups,
                answers,
                measure,
                self.settings.variant,
                self.human,
                self.settings.draws,
                self.settings.seed,
            )
            for measure in self.settings.measures
        ]
        crossed = [
            intersection_of(self.abc, sheet, len(singles), answers, record, self.settings.variant, self.settings.seed)
            for record in made
            if pairs
        ]
        unknown, unknown_groups = sheet.unknown(answers), sheet.unknown_groups(answers)
        adjectives = sum(item.adjective not in unknown for item in sheet.items)
        if unknown_groups:
            self.listener.notice(f"{text}: does not know all words of {', '.join(unknown_groups)}: not measured")
        record = dataclasses.replace(
            identified(text, model.identity),
            texts=len(sheet.blanks),
            encoded=asked,
        )
        return record, ModelStereotypes(
            model=model.identity.name,
            options=model.identity.options,
            kind=model.kind,
            prior=prior,
            measures=tuple(made),
            intersections=tuple(crossed),
            skipped_templates=sheet.skipped,
            unknown_adjectives=unknown,
            unknown_groups=unknown_groups,
            num_questions=len(sheet.blanks),
            num_passes=sum(one.passes for one in answers),
            num_asked=(len(sheet.groups) + 1) * len(sheet.templates) * adjectives,
        )


def _unasked(text: str) -> tuple[ModelRecord, ModelStereotypes]:
    """A model that is asked nothing, for CEAT needs no more than an encoder of words."""
    identity = open_as(text, "words").identity
    found = ModelStereotypes(
        model=identity.name,
        options=identity.options,
        kind="encoder",
        prior="none",
        measures=(),
        intersections=(),
        skipped_templates=(),
        unknown_adjectives=(),
        unknown_groups=(),
        num_questions=0,
        num_passes=0,
        num_asked=0,
    )
    return identified(text, identity), found
