"""Stereotypes as a study: inputs, requests, and consistency checks of stored runs."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.datasets.abc_model import (
    AbcStimuli,
    SocialGroup,
    Template,
    load_abc,
    pair_groups,
    select_groups,
    select_templates,
)
from biassay.errors import InsufficientVocabularyError, UnknownNameError, UsageError
from biassay.grouping import group_pairs
from biassay.models.backend import Capability
from biassay.results.outcomes import Decision, Finding, ResultRecord, correct_rows
from biassay.results.run_data import RunData, RunSlice, group_rows_by_model
from biassay.results.run_folder import (
    RESULTS_JSON,
    Fault,
    StudySchema,
    array_path,
    find_models_without,
    find_orphans,
    find_unknown,
    make_row_fault,
)
from biassay.studies.stereotypes.agreement import HumanJudgements, compute_ceiling, match_judgements, nan_mean
from biassay.studies.stereotypes.cloze_items import ClozeItems
from biassay.studies.stereotypes.group_ceat import GroupContexts, check_context_settings
from biassay.studies.stereotypes.measure import measure_contexts, measure_templates
from biassay.studies.stereotypes.results import (
    ALPHA,
    TABLES,
    HumanRecord,
    MeasureRow,
    ProfileRow,
    StereotypeInputsRecord,
    describe_groups,
    make_findings,
)
from biassay.studies.stereotypes.settings import CEAT, Prior, StereotypeSettings
from biassay.studies.study import ContextRequests, Event, Requests, Row, Study, Tables, make_contexts_record


@dataclass(frozen=True, eq=False)
class StereotypeInputs:
    """Inputs of a run, checked before the first request.

    Attributes
    ----------
    groups : tuple of SocialGroup
        Groups that are shown.
    pairs : tuple of SocialGroup
        Paired groups; the single groups that they are made of are measured too.
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
        """Single groups to measure."""
        if not self.pairs:
            return self.groups
        asked = {group.name for group in self.groups} | {part for pair in self.pairs for part in pair.parts}
        return tuple(group for group in self.abc.groups if group.name in asked)

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
    """Raise an error for measures that need the output layer of a model without access to it."""
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


def _make_pairs(abc: AbcStimuli, groups: tuple[SocialGroup, ...]) -> tuple[SocialGroup, ...]:
    pairs = pair_groups(abc, groups)
    if not pairs:
        raise UsageError(
            f"the chosen groups cannot be paired ({', '.join(group.name for group in groups)}): choose groups of other "
            "domains, or leave --intersections out"
        )
    return pairs


def _list_replaced(abc: AbcStimuli) -> list[str]:
    """Return the names in a user's file that replace shipped ones."""
    shipped = load_abc()
    return [
        f"your file replaces the {what} {item.name!r}"
        for what, known, own in (
            ("group", shipped.groups, abc.groups),
            ("template", shipped.templates, abc.templates),
            ("pair", shipped.pairs, abc.pairs),
        )
        for item in own
        if any(item.name == other.name and item != other for other in known)
    ]


def _make_human_record(human: HumanJudgements, settings: StereotypeSettings) -> HumanRecord:
    digest = hashlib.blake2b(repr((human.ratings.groups, human.ratings.pairs)).encode(), digest_size=8)
    for label, ratings in (("all", human.ratings), *human.subgroups):
        digest.update(label.encode() + ratings.ratings.tobytes() + ratings.means.tobytes())
    ceiling = compute_ceiling(human, settings.n_bootstrap, settings.seed)
    return HumanRecord(str(human.ratings.path), digest.hexdigest(), human.notes, ceiling)


_OF_MEASURES = ("profiles", "alignments", "group_alignments", "orders", "dominance", "emergent", "rated")


def _find_in_rows(run: RunData, inputs: StereotypeInputsRecord) -> Iterator[Fault]:
    pairs = len(inputs.pairs)
    for number, row in enumerate(run.tables.get("measures", ())):
        if not set(row.chosen) <= set(row.templates):
            yield make_row_fault("measures", number, "chosen", "templates that are not among those of the measure")
        if len(set(row.groups)) < len(row.groups) or len(set(row.templates)) < len(row.templates):
            yield make_row_fault("measures", number, "groups", "a group or a template appears twice")
    for number, row in enumerate(run.tables.get("profiles", ())):
        for column, values in (("scores", row.scores), ("human", row.human)):
            if values is not None and len(values) != pairs:
                yield make_row_fault("profiles", number, column, f"{len(values)} values for {pairs} pairs of traits")
    for number, row in enumerate(run.tables.get("contexts", ())):
        for column, counts in (("few_groups", row.groups), ("few_adjectives", row.adjectives)):
            for name in set(getattr(row, column)) - counts.keys():
                yield make_row_fault("contexts", number, column, f"the number of contexts of {name!r} is missing")


def _find_in_scores(
    row: MeasureRow, profiles: Sequence[ProfileRow], arrays: Mapping[str, NDArray[np.float64]], pairs: int
) -> str:
    """Compare the profile of every group with the mean of its scores over the chosen templates."""
    for profile in profiles:
        if profile.group not in row.groups:
            return f"the measure has no group {profile.group!r}, but a profile does"
    if not row.templates:
        return ""
    scores, shape = arrays.get(f"{row.measure}/scores"), (len(row.groups), len(row.templates), pairs)
    if scores is None or scores.shape != shape:
        got = "the array is missing" if scores is None else f"its shape is {scores.shape}"
        return f"{got}; expected values for {shape[0]} groups, {shape[1]} templates and {pairs} pairs of traits"
    with np.errstate(all="ignore"):
        means = nan_mean(scores[:, [row.templates.index(name) for name in row.chosen]], axis=1)
    for profile in profiles:
        stored = np.array(profile.scores, dtype=np.float64)  # None becomes NaN
        if not np.allclose(means[row.groups.index(profile.group)], stored, rtol=1e-6, atol=1e-9, equal_nan=True):
            return f"the scores by template give another profile of {profile.group!r} than {RESULTS_JSON}"
    return ""


_DTYPE = "float32"  # a word's vector may have numbers that are too large for float16


class _StereotypeStudy(Study):
    name = "stereotypes"
    title = "Stereotypes of social groups"
    schema = StudySchema(StereotypeSettings, StereotypeInputsRecord, TABLES)
    presenter_path = "biassay.studies.stereotypes.report:StereotypePresenter"

    def load_inputs(self, settings: StereotypeSettings) -> StereotypeInputs:
        if not settings.measures:
            raise UsageError("no measure given; choose from ilps, ilps-star, set and ceat")
        check_context_settings(settings)
        if settings.annotators and settings.human is None:
            raise UsageError("--annotators selects human ratings; add --human FILE")
        abc = load_abc([Path(file) for file in settings.files])
        groups = select_groups(abc, settings.groups)
        pairs = _make_pairs(abc, groups) if settings.intersections else ()
        templates = select_templates(abc, settings.templates) if settings.template_measures else ()
        contexts = None if settings.contexts is None else GroupContexts.open(settings, groups, abc.pairs)
        human = None
        if settings.human is not None:
            human = match_judgements(abc, groups, Path(settings.human), settings.annotators, settings.seed)
        notes = _list_replaced(abc)
        if human is not None and not human.has_both:
            none = "only pilot groups were" if human.pilot.any() else "no pilot group was"
            notes.append(f"templates were not chosen, because {none} rated and measured")
        record = StereotypeInputsRecord(
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
            notes=tuple(notes),
            human=None if human is None else _make_human_record(human, settings),
            contexts=None if contexts is None else make_contexts_record(contexts.file, contexts.contexts),
        )
        return StereotypeInputs(settings, abc, groups, pairs, templates, human, contexts, record)

    def required_capabilities(self, settings: StereotypeSettings) -> tuple[Capability, ...]:
        blanks: tuple[Capability, ...] = ("blanks",) if settings.template_measures else ()
        return blanks if settings.contexts is None else (*blanks, "words")

    def cache_key(self, inputs: StereotypeInputs) -> Any:
        return inputs.record, inputs.abc

    def requests(self, inputs: StereotypeInputs, capabilities: Capabilities) -> Requests:
        check_output_layer(inputs.settings, capabilities)
        blanks = inputs.sheet(capabilities).blanks if inputs.settings.template_measures else ()
        asked = inputs.contexts
        contexts = None if asked is None else ContextRequests(asked.contexts, asked.words, None, _DTYPE)
        return Requests(blanks=blanks, contexts=contexts)

    def measure(
        self, inputs: StereotypeInputs, model: ModelOutputs, all_outputs: Sequence[ModelOutputs]
    ) -> Iterator[Event]:
        rows = []
        for event in chain(measure_templates(inputs, model), measure_contexts(inputs, model)):
            if isinstance(event, Row):
                rows.append((event.table, event.record))
            yield event
        tables = {name: tuple(records) for name, records in group_pairs(rows).items()}
        for group in describe_groups(RunSlice("", None, tables), inputs.record, model.identity.revision):
            yield Row("groups", group)

    def finalize_tables(self, settings: StereotypeSettings, tables: Tables) -> Tables:
        records = (*tables.get("alignments", ()), *tables.get("groups", ()))
        return {**tables, "decisions": self.decide(settings, records)}

    def decide(self, settings: StereotypeSettings, records: Sequence[ResultRecord]) -> tuple[Decision, ...]:
        """Correct over the measures of all models by Holm's method; traits of groups are descriptive."""
        return correct_rows(records, ALPHA)

    def find_faults(self, run: RunData) -> Iterator[Fault]:
        """Yield unknown names, rows of another length than the pairs, and profiles that the scores do not reproduce."""
        inputs: StereotypeInputsRecord = run.manifest.inputs
        yield from find_models_without(run, "models")
        yield from find_unknown(run, "measures", "measure", inputs.measures)
        yield from find_unknown(run, "measures", "templates", inputs.templates)
        yield from find_orphans(run, _OF_MEASURES, "measures", ("measure",))
        yield from find_orphans(run, ("group_alignments", "emergent"), "profiles", ("measure", "group"))
        yield from _find_in_rows(run, inputs)
        arrays = run.arrays_by_model()
        measures = group_rows_by_model(run.manifest.models, run.tables.get("measures", ()))
        profiles = group_rows_by_model(run.manifest.models, run.tables.get("profiles", ()))
        for index, (of_measures, of_groups) in enumerate(zip(measures, profiles, strict=True)):
            own, file = arrays.get(str(index), {}), array_path(str(index))
            for row in of_measures:
                shown = [profile for profile in of_groups if profile.measure == row.measure]
                if fault := _find_in_scores(row, shown, own, len(inputs.pairs)):
                    name = f"{row.measure}/scores"
                    yield Fault(file if name in own else RESULTS_JSON, f"{name}: {fault}")

    def findings(self, run: RunData) -> Sequence[Finding]:
        return make_findings(run)

    def has_failures(self, run: RunData) -> bool:
        profiles = run.tables.get("profiles", ())
        of_models = group_rows_by_model(run.manifest.models, profiles)
        return not all(any(score is not None for row in own for score in row.scores) for own in of_models)

    def select_item(self, run: RunData, item: str) -> RunData:
        """Return the part of a run about one measure or one group. Agreement over all groups stays."""
        known: dict[str, str] = {}
        for key in ("group", "measure"):
            known |= {getattr(row, key): key for row in run.tables.get("profiles", ())}
        if item not in known:
            raise UnknownNameError("measure or group", item, known, f"(of this run: {', '.join(list(known)[:20])})")
        tables = {
            name: tuple(row for row in rows if getattr(row, known[item], item) == item)
            for name, rows in run.tables.items()
        }
        return dataclasses.replace(run, tables=tables)

    def check_same(self, before: StereotypeInputsRecord, now: StereotypeInputsRecord) -> None:
        for text, names in (
            ("groups, traits or templates", ("abc_digest", "groups", "templates")),
            ("human judgements", ("human",)),
            ("contexts", ("contexts",)),
        ):
            if any(getattr(before, name) != getattr(now, name) for name in names):
                raise UsageError(f"the {text} changed since the run began; start a new run")


STUDY = _StereotypeStudy()
