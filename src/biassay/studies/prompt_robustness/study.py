"""Robustness of models that respond to prompts as a study."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.datasets.word_associations import select_word_associations
from biassay.errors import UsageError
from biassay.models.backend import Capability
from biassay.reporting.formats import format_count, format_interval
from biassay.results.outcomes import (
    DECISIONS,
    Finding,
    Outcome,
    ResultRecord,
    make_alternative_columns,
    make_outcome_findings,
    make_result_columns,
)
from biassay.results.run_data import (
    RevisionRow,
    RunData,
    copy_fields,
    get_model_fields,
    model_key,
    model_labels,
    none_if_nan,
)
from biassay.results.run_folder import Fault, StudySchema, find_orphans
from biassay.results.tables import TableSpec, column, keyword_row, optional, table_row
from biassay.studies.benchmarks.settings import BenchmarkSettings
from biassay.studies.benchmarks.tasks.base import load_inputs
from biassay.studies.prompt_robustness.settings import PromptRobustnessSettings
from biassay.studies.prompt_robustness.specifications import (
    AssociationQuestionnaire,
    BenchmarkQuestionnaire,
    Kind,
    PromptSpecification,
    Questionnaire,
    SpecificationScore,
)
from biassay.studies.study import Event, Progress, Requests, Row, Study, StudyWarning, derive_seed
from biassay.studies.word_association.settings import WordAssociationSettings


@table_row
class PromptSpecificationRow(RevisionRow):
    """One specification of an item and its effect, measured from the value of a model without bias."""

    test: str = column("test", "Test, or category of the benchmark.")
    kind: Kind = column("kind", "Difference from the default: wording, order, temperature or system.")
    value: str = column("value", "The wording, order, temperature or system message.")
    effect_size: float | None = column("effect", "Effect, from the value of a model without bias.")
    ci_low: float | None = column("low", "Lower end of the interval; none for one order of group words.")
    ci_high: float | None = column("high", "Upper end; the confidence is 1 - alpha.")
    p_value: float | None = column("p", "P-value, not corrected.", "p")


@keyword_row
class PromptRobustnessResult(ResultRecord):
    """One item on one model over all specifications of its prompts.

    The primary outcome is that of the default specification: all wordings and orders, with the model's own temperature
    and system message. The alternative ``joint`` is the median effect with one p-value for all specifications.
    """

    test: str = column("test", "Test, or category of the benchmark.")
    n_specifications: int = column("specifications", "Specifications with an effect.", default=0)
    n_same_sign: int | None = optional("same sign", "Specifications with the sign of the default.")
    n_significant: int | None = optional("p at most alpha", "Number of these with p at most alpha, not corrected.")
    min_effect_size: float | None = optional("min", "Smallest effect of these specifications.")
    max_effect_size: float | None = optional("max", "Largest effect of these specifications.")

    @property
    def item(self) -> str:
        """Name of the item."""
        return self.test


@dataclass(frozen=True)
class PromptRobustnessInputsRecord:
    """Digests of the tests, or of the benchmark's data."""

    digests: dict[str, str]


@dataclass(frozen=True, eq=False)
class PromptRobustnessInputs:
    """Settings and questionnaire."""

    settings: PromptRobustnessSettings
    record: PromptRobustnessInputsRecord
    questionnaire: Questionnaire


_RESULTS = make_result_columns(
    PromptRobustnessResult,
    ("test",),
    *make_alternative_columns(
        "joint",
        effect_size=("median", "Median over specifications, in standard deviations of words or sampling units."),
        p_value=(
            "p of median",
            "Two-sided permutation p-value of the median: poles of words, or signs of sampling units, are "
            "exchanged in all specifications at once.",
        ),
    ),
    status="measured or failed.",
)
_TABLES = (
    TableSpec(
        "results",
        "All numbers",
        PromptRobustnessResult,
        _RESULTS,
        key=("test",),
        value_column="joint_effect_size",
        default_columns=(
            *("model", "test", "effect_size", "ci_low", "ci_high", "scale", "p_value", "evidence", "n_specifications"),
            *("n_same_sign", "n_significant", "min_effect_size", "max_effect_size", "joint_p_value"),
        ),
    ),
    TableSpec("specifications", "All specifications", PromptSpecificationRow, collapsed=True),
    DECISIONS,
)


class _PromptRobustnessStudy(Study):
    name = "prompt_robustness"
    title = "Robustness of responses"
    schema = StudySchema(PromptRobustnessSettings, PromptRobustnessInputsRecord, _TABLES)
    presenter_path = "biassay.studies.prompt_robustness.report:PromptRobustnessPresenter"

    def load_inputs(self, settings: PromptRobustnessSettings) -> PromptRobustnessInputs:
        if bool(settings.tests) == (settings.benchmark is not None):
            raise UsageError("give either --tests, such as wat-racism, or --benchmark NAME with --data PATH")
        if settings.benchmark is None:
            asked = WordAssociationSettings(n_answers=settings.n_answers, alpha=settings.alpha, seed=settings.seed)
            tests = select_word_associations(settings.tests)
            digests = {test.name: test.digest for test in tests}
            return PromptRobustnessInputs(
                settings, PromptRobustnessInputsRecord(digests), AssociationQuestionnaire(tests, asked)
            )
        own = copy_fields(settings, "benchmark", "data", "limit", "alpha", "seed")
        inputs = load_inputs(BenchmarkSettings(**own))
        replaced = dataclasses.replace(settings, data=inputs.settings.data)
        return PromptRobustnessInputs(
            replaced, PromptRobustnessInputsRecord(dict(inputs.record.digests)), BenchmarkQuestionnaire(inputs)
        )

    def required_capabilities(self, settings: PromptRobustnessSettings) -> tuple[Capability, ...]:
        return ("replies",)

    def requests(self, inputs: PromptRobustnessInputs, capabilities: Capabilities) -> Requests:
        asked = inputs.questionnaire
        prompts = [
            prompt
            for spec in list_specifications(inputs, capabilities)
            for prompt in asked.make_prompts(spec, capabilities)
        ]
        return Requests(prompts=tuple(dict.fromkeys(prompts)))

    def measure(
        self,
        inputs: PromptRobustnessInputs,
        model: ModelOutputs,
        all_outputs: Sequence[ModelOutputs],
    ) -> Iterator[Event]:
        specifications = list_specifications(inputs, model.capabilities)
        if inputs.settings.temperatures and not any(spec.kind == "temperature" for spec in specifications):
            yield StudyWarning("log-probabilities do not depend on the temperature, so it was not varied")
        by_item: dict[str, list[tuple[PromptSpecification, SpecificationScore]]] = {}
        for number, spec in enumerate(specifications, start=1):
            for score in inputs.questionnaire.measure(spec, model):
                by_item.setdefault(score.item, []).append((spec, score))
            yield Progress("specifications", number, len(specifications))
        for item, scores in by_item.items():
            yield from _make_rows(inputs, model, item, scores)

    def find_faults(self, run: RunData) -> Iterator[Fault]:
        yield from find_orphans(run, ("specifications",), "results", ("test",))

    def findings(self, run: RunData) -> Sequence[Finding]:
        rows = {(model_labels(run)[model_key(row)], row.test): row for row in run.tables.get("results", ())}
        return [
            replace(finding, robustness=tuple(_describe(rows[finding.model, finding.item])))
            for finding in make_outcome_findings(run)
        ]


def list_specifications(inputs: PromptRobustnessInputs, capabilities: Capabilities) -> list[PromptSpecification]:
    """Return the default specification, and those that differ from it in one respect."""
    asked, settings = inputs.questionnaire, inputs.settings
    found = [PromptSpecification()]
    wordings = asked.list_wordings(capabilities)
    found += [PromptSpecification("wording", name) for name in wordings]
    found += [PromptSpecification("order", name) for name in asked.list_orders()]
    if not any(prompt.options for prompt in asked.make_prompts(found[0], capabilities)[:1]):
        found += [PromptSpecification("temperature", f"{value:g}", value) for value in settings.temperatures]
    return [*found, *(PromptSpecification("system", text) for text in settings.systems)]


def _make_rows(
    inputs: PromptRobustnessInputs,
    model: ModelOutputs,
    item: str,
    scores: Sequence[tuple[PromptSpecification, SpecificationScore]],
) -> Iterator[Row]:
    alpha, identity = inputs.settings.alpha, model.identity
    default = scores[0][1]
    record = default.record
    shared = ("title", "topic", "about", "direction", "status", "reason", "outcome", "claim", "doubt", "warnings")
    key, fields = get_model_fields(identity), copy_fields(record, *shared)
    known = [(spec, score) for spec, score in scores if score.effect is not None]
    if default.effect is None:
        yield Row("results", PromptRobustnessResult(**key, **fields, test=item))
        return
    sign = math.copysign(1.0, default.effect)
    agree = [score for _, score in known if (score.effect or 0.0) * sign > 0.0]
    rng = np.random.default_rng(derive_seed(inputs.settings.seed, item, "robustness"))
    joint = inputs.questionnaire.test_jointly(item, [score for _, score in known], rng)
    median = Outcome(
        effect_size=none_if_nan(joint.median),
        p_value=none_if_nan(joint.p_value),
        test="permutation",
        n={"specifications": len(known)},
    )
    effects = [score.effect for _, score in known if score.effect is not None]
    result = PromptRobustnessResult(
        **key,
        **fields,
        test=item,
        alternatives={"joint": median},
        n_specifications=len(known),
        n_same_sign=len(agree),
        n_significant=sum(score.p_value is not None and score.p_value <= alpha for score in agree),
        min_effect_size=min(effects),
        max_effect_size=max(effects),
    )
    yield Row("results", result)
    for spec, score in scores:
        row = PromptSpecificationRow(
            **key,
            test=item,
            kind=spec.kind,
            value=spec.value,
            effect_size=score.effect,
            ci_low=score.low,
            ci_high=score.high,
            p_value=score.p_value,
        )
        yield Row("specifications", row)


def _describe(row: PromptRobustnessResult) -> Iterator[str]:
    if row.n_same_sign is not None:
        total = format_count(row.n_specifications, "specification")
        spread = format_interval(row.min_effect_size, row.max_effect_size)
        yield f"same sign in {row.n_same_sign:,} of {total}, p at most alpha in {row.n_significant:,}; effects {spread}"


STUDY = _PromptRobustnessStudy()
