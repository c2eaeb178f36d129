"""Repeat a benchmark or word association tests over variants of the prompts."""

# ruff: noqa: ARG002  (a study ignores some arguments)

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.datasets.word_associations import WordAssociationTest, select_word_associations
from biassay.errors import UsageError
from biassay.grouping import group_pairs
from biassay.models.backend import Capability
from biassay.models.base import Reply
from biassay.prompts.requests import Prompt
from biassay.results.outcomes import Finding, Outcome, ResultRecord, make_outcome_finding
from biassay.results.run_data import RunData, copy_fields, get_model_fields, model_key, model_labels
from biassay.results.run_folder import Fault, StudySchema, find_orphans
from biassay.stats.clusters import Floats
from biassay.stats.specification_curve import JointResult, joint_sign_test, joint_test
from biassay.studies.benchmarks.results import ALL_CATEGORIES
from biassay.studies.benchmarks.settings import BenchmarkSettings
from biassay.studies.benchmarks.tasks import get_task
from biassay.studies.benchmarks.tasks.base import BenchmarkInputs, load_inputs
from biassay.studies.benchmarks.tasks.options import PROMPT_END
from biassay.studies.robustness.results import (
    PROMPT_TABLES,
    PromptKind,
    PromptRobustnessInputsRecord,
    PromptRobustnessResult,
    PromptSpecification,
    describe_robustness,
    summarize_specifications,
)
from biassay.studies.robustness.settings import PromptRobustnessSettings
from biassay.studies.study import Event, Progress, Requests, Row, Study, StudyWarning, derive_seed
from biassay.studies.word_association.measure import (
    WordAssociationRowBuilder,
    choose_unit,
    compute_log_odds,
    parse_replies,
)
from biassay.studies.word_association.prompts import AssociationPrompt, group_wordings, make_prompts
from biassay.studies.word_association.replies import to_value_table
from biassay.studies.word_association.settings import WordAssociationSettings

_ENDS = {
    "letter only": "\n\nReply with the letter of the option that you choose.\nAnswer:\n",
    "question": "\n\nWhich option do you choose? Name its letter only.\nAnswer:\n",
}
"""Other wordings of the request for a letter."""


@dataclass(frozen=True)
class PromptVariant:
    """A variant of the prompts: the dimension that differs from the default, and its value."""

    kind: PromptKind = "default"
    value: str = ""
    temperature: float | None = None

    def rewrite(self, prompt: Prompt) -> Prompt:
        """Apply this variant to a prompt. Orders, and wordings of word association tests, are applied by the study."""
        if self.kind == "temperature" and not prompt.options:
            return replace(prompt, temperature=self.temperature)
        if self.kind == "wording" and self.value in _ENDS:
            return replace(prompt, text=prompt.text.removesuffix(PROMPT_END) + _ENDS[self.value])
        return replace(prompt, system=self.value) if self.kind == "system" else prompt


@dataclass(frozen=True, eq=False)
class VariantScore:
    """Measured score of one item under one variant.

    Attributes
    ----------
    record : ResultRecord
        Result of the study under this variant.
    row : PromptSpecification
        Distance of the effect from that of an unbiased model, with interval and p-value.
    units : dict of str to float
        Value of every word, or contribution of every sampling unit.
    """

    record: ResultRecord
    row: PromptSpecification
    units: Mapping[str, float]


def _make_score(
    model: ModelOutputs,
    variant: PromptVariant,
    record: ResultRecord,
    numbers: Sequence[float | None],
    units: Mapping[str, float],
) -> VariantScore:
    """Make the score of an item. `numbers` are effect, lower end, upper end and p-value."""
    effect: dict[str, Any] = dict(zip(("effect_size", "ci_low", "ci_high", "p_value"), numbers, strict=True))
    key = get_model_fields(model.identity)
    row = PromptSpecification(**key, test=record.item, kind=variant.kind, value=variant.value, **effect)
    return VariantScore(record, row, units)


class _VariedOutputs:
    """Outputs of a model whose prompts are rewritten; replies to other orders than one are missing."""

    def __init__(self, model: ModelOutputs, variant: PromptVariant, n_orders: int) -> None:
        self.identity, self.capabilities = model.identity, model.capabilities
        self._model, self._variant, self._n_orders = model, variant, n_orders

    def replies(self, prompts: Sequence[Prompt]) -> list[Reply]:
        """Return the replies to the rewritten prompts."""
        replies = list(self._model.replies([self._variant.rewrite(prompt) for prompt in prompts]))
        if self._variant.kind == "order":
            for i, prompt in enumerate(prompts):
                if i % self._n_orders != int(self._variant.value) - 1:
                    replies[i] = Reply("", "failed", log_p=(math.nan,) * len(prompt.options))
        return replies


class BenchmarkQuestionnaire:
    """A benchmark of questions with options."""

    def __init__(self, inputs: BenchmarkInputs) -> None:
        self._inputs, self._task = inputs, get_task(inputs.settings.benchmark)
        if not self._task.n_options:
            raise UsageError(
                f"{self._task.name} has no prompts to vary; use a benchmark that asks questions, such as bbq"
            )
        self._n_orders = math.factorial(self._task.n_options)

    def list_wordings(self, capabilities: Capabilities) -> tuple[str, ...]:
        """Return the names of the wordings that are used alone."""
        return tuple(_ENDS)

    def list_orders(self) -> tuple[str, ...]:
        """Return the names of the orders that are used alone."""
        return tuple(str(number) for number in range(1, self._n_orders + 1))

    def make_prompts(self, variant: PromptVariant, capabilities: Capabilities) -> list[Prompt]:
        """Return the prompts of a variant."""
        return [variant.rewrite(prompt) for prompt in self._task.requests(self._inputs, capabilities).prompts]

    def measure(self, variant: PromptVariant, model: ModelOutputs) -> Iterator[VariantScore]:
        """Yield the score of every item under a variant."""
        varied = cast("ModelOutputs", _VariedOutputs(model, variant, self._n_orders))
        tables: dict[str, list[Any]] = {"results": [], "units": [], "templates": []}
        for event in self._task.measure(self._inputs, varied):
            if isinstance(event, Row):
                tables.setdefault(event.table, []).append(event.record)
        for row in tables["results"]:
            if row.category == ALL_CATEGORIES:
                continue
            statistic, outcome = self._task.get_statistic(row.condition), row.outcome
            low, high = (None if end is None else end - outcome.null for end in (outcome.ci_low, outcome.ci_high))
            totals = self._task.sum_by_unit(cast("Any", tables), row)
            values = compute_pseudo_values(np.array(list(totals.values()), dtype=np.float64), statistic.compute)
            units = dict(zip(map(str, totals), values, strict=True))
            yield _make_score(model, variant, row, (row.distance, low, high, outcome.p_value), units)

    def test_jointly(self, item: str, scores: Sequence[VariantScore], rng: np.random.Generator) -> JointResult:
        """Test the median effect of several variants of an item.

        Parameters
        ----------
        item : str
            Name of the item.
        scores : sequence of VariantScore
            One score per variant.
        rng : numpy Generator
        """
        shared = [name for name in scores[0].units if all(name in score.units for score in scores)]
        return joint_sign_test([[score.units[name] for name in shared] for score in scores], rng=rng)


def compute_pseudo_values(totals: Floats, compute: Any) -> list[float]:
    """Return the jackknife pseudo-values of a score, whose mean is the score up to its bias."""
    if not len(totals):
        return []
    n, total = len(totals), totals.sum(axis=0)
    values = n * float(compute(total[None])[0]) - (n - 1) * np.asarray(compute(total - totals), dtype=np.float64)
    return list(map(float, values))


class AssociationQuestionnaire:
    """Word association tests."""

    def __init__(self, tests: Sequence[WordAssociationTest], settings: WordAssociationSettings) -> None:
        self._tests, self._settings = {test.name: test for test in tests}, settings

    def list_wordings(self, capabilities: Capabilities) -> tuple[str, ...]:
        """Return the names of the wordings that are used alone."""
        form = "list" if choose_unit(self._settings, capabilities) == "share" else "word"
        return tuple(wording.name for wording in group_wordings(())[cast("Any", form)])

    def list_orders(self) -> tuple[str, ...]:
        """Return the names of the orders that are used alone."""
        return "default first", "stigmatised first"

    def make_prompts(self, variant: PromptVariant, capabilities: Capabilities) -> list[Prompt]:
        """Return the prompts of a variant."""
        settings = self._get_settings(variant)
        unit = choose_unit(settings, capabilities)
        prompts = (prompt for test in self._tests.values() for prompt in make_prompts(test, settings, unit))
        return [variant.rewrite(prompt.request) for prompt in prompts]

    def measure(self, variant: PromptVariant, model: ModelOutputs) -> Iterator[VariantScore]:
        """Yield the score of every item under a variant."""
        settings = self._get_settings(variant)
        unit = choose_unit(settings, model.capabilities)
        for test in self._tests.values():
            prompts = make_prompts(test, settings, unit)
            replies = model.replies([variant.rewrite(prompt.request) for prompt in prompts])
            rows = list(WordAssociationRowBuilder(test, model.identity, settings, unit).build(prompts, replies))
            record = next(row.record for row in rows if row.table == "results")
            outcome: Outcome = record.outcome
            numbers = outcome.effect_size, outcome.ci_low, outcome.ci_high, outcome.p_value
            values = {row.record.word: row.record.value for row in rows if row.table == "words"}
            if variant.kind == "order":
                first = variant.value == "stigmatised first"
                values = _average_words(test, prompts, replies, first=first)
                numbers = _compute_effect(test, values), None, None, None
            known = {word: value for word, value in values.items() if value is not None}
            yield _make_score(model, variant, record, numbers, known)

    def _get_settings(self, variant: PromptVariant) -> WordAssociationSettings:
        return replace(self._settings, wordings=(variant.value,) if variant.kind == "wording" else ())

    def test_jointly(self, item: str, scores: Sequence[VariantScore], rng: np.random.Generator) -> JointResult:
        """Test the median effect of several variants of an item.

        Parameters
        ----------
        item : str
            Name of the item.
        scores : sequence of VariantScore
            One score per variant.
        rng : numpy Generator
        """
        test = self._tests[item]
        negative = [word for word in test.negative.words if all(word in score.units for score in scores)]
        positive = [word for word in test.positive.words if all(word in score.units for score in scores)]
        if min(len(negative), len(positive)) < 2:
            return JointResult(np.full(len(scores), np.nan), math.nan, math.nan, 0, exact=False)
        table = [[score.units[word] for word in (*negative, *positive)] for score in scores]
        return joint_test(table, len(negative), rng=rng)


def _average_words(
    test: WordAssociationTest, prompts: Sequence[AssociationPrompt], replies: Sequence[Reply], *, first: bool
) -> dict[str, float | None]:
    """Average the values of words over the prompts that name the stigmatised group first, or last."""
    kept = [
        (prompt, reply) for prompt, reply in zip(prompts, replies, strict=True) if prompt.stigmatised_first == first
    ]
    own, answers = [prompt for prompt, _ in kept], [reply for _, reply in kept]
    if prompts[0].form == "list":
        table: NDArray[np.float64] = to_value_table(parse_replies(test, own, answers))
    else:
        table = compute_log_odds(test, own, answers)[0]
    counts = (~np.isnan(table)).sum(axis=0)
    sums = np.nansum(table, axis=0)
    return {
        word: float(total / count) if count else None
        for word, total, count in zip(test.words, sums, counts, strict=True)
    }


def _compute_effect(test: WordAssociationTest, values: Mapping[str, float | None]) -> float | None:
    means = []
    for pole in (test.negative, test.positive):
        known = [value for word in pole.words if (value := values[word]) is not None]
        if not known:
            return None
        means.append(float(np.mean(known)))
    return means[0] - means[1]


@dataclass(frozen=True, eq=False)
class PromptRobustnessInputs:
    """Settings and questionnaire."""

    settings: PromptRobustnessSettings
    record: PromptRobustnessInputsRecord
    questionnaire: AssociationQuestionnaire | BenchmarkQuestionnaire


class _PromptRobustnessStudy(Study):
    name = "prompt_robustness"
    title = "Robustness of responses"
    schema = StudySchema(PromptRobustnessSettings, PromptRobustnessInputsRecord, PROMPT_TABLES)
    presenter_path = "biassay.studies.robustness.report:PromptRobustnessPresenter"

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
        replaced = replace(settings, data=inputs.settings.data)
        return PromptRobustnessInputs(
            replaced, PromptRobustnessInputsRecord(dict(inputs.record.digests)), BenchmarkQuestionnaire(inputs)
        )

    def required_capabilities(self, settings: PromptRobustnessSettings) -> tuple[Capability, ...]:
        return ("replies",)

    def requests(self, inputs: PromptRobustnessInputs, capabilities: Capabilities) -> Requests:
        variants = list_variants(inputs, capabilities)
        prompts = (prompt for one in variants for prompt in inputs.questionnaire.make_prompts(one, capabilities))
        return Requests(prompts=tuple(dict.fromkeys(prompts)))

    def measure(
        self, inputs: PromptRobustnessInputs, model: ModelOutputs, all_outputs: Sequence[ModelOutputs]
    ) -> Iterator[Event]:
        variants = list_variants(inputs, model.capabilities)
        if inputs.settings.temperatures and not any(variant.kind == "temperature" for variant in variants):
            yield StudyWarning("log-probabilities do not depend on the temperature, so it was not varied")
        scores: list[VariantScore] = []
        for number, variant in enumerate(variants, start=1):
            scores += inputs.questionnaire.measure(variant, model)
            yield Progress("specifications", number, len(variants))
        for item, own in group_pairs((score.record.item, score) for score in scores).items():
            yield from _make_rows(inputs, item, own)

    def find_faults(self, run: RunData) -> Iterator[Fault]:
        yield from find_orphans(run, ("specifications",), "results", ("test",))

    def findings(self, run: RunData) -> Sequence[Finding]:
        labels, alpha = model_labels(run), run.manifest.settings.alpha
        return [
            make_outcome_finding(
                result,
                labels[model_key(result)],
                robustness=() if result.n_same_sign is None else tuple(describe_robustness(result, alpha)),
            )
            for result in run.results
        ]


def list_variants(inputs: PromptRobustnessInputs, capabilities: Capabilities) -> list[PromptVariant]:
    """Return the default prompts, and variants that differ from them in one respect."""
    asked, settings = inputs.questionnaire, inputs.settings
    default = PromptVariant()
    found = [default, *(PromptVariant("wording", name) for name in asked.list_wordings(capabilities))]
    found += [PromptVariant("order", name) for name in asked.list_orders()]
    if not any(prompt.options for prompt in asked.make_prompts(default, capabilities)[:1]):
        found += [PromptVariant("temperature", f"{value:g}", value) for value in settings.temperatures]
    return [*found, *(PromptVariant("system", text) for text in settings.systems)]


_COPIED_FIELDS = ("title", "topic", "about", "direction", "status", "reason", "outcome", "claim", "doubt", "warnings")


def _make_rows(inputs: PromptRobustnessInputs, item: str, scores: Sequence[VariantScore]) -> Iterator[Row]:
    """Yield the result of one item and its specifications. The first score is the default."""
    rows, record = [score.row for score in scores], scores[0].record
    fields = {**copy_fields(rows[0], "model", "options", "model_revision"), **copy_fields(record, *_COPIED_FIELDS)}
    if rows[0].effect_size is None:
        yield Row("results", PromptRobustnessResult(**fields, test=item))
        return
    rng = np.random.default_rng(derive_seed(inputs.settings.seed, item, "robustness"))
    known = [score for score in scores if score.row.effect_size is not None]
    joint = inputs.questionnaire.test_jointly(item, known, rng)
    counts, median = summarize_specifications(rows, inputs.settings.alpha, joint, "permutation")
    yield Row("results", PromptRobustnessResult(**fields, **counts, test=item, alternatives={"joint": median}))
    yield from (Row("specifications", row) for row in rows)


STUDY = _PromptRobustnessStudy()
