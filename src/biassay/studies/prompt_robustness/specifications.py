"""Specifications of prompts, and what a word association test or a benchmark measures under each."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.datasets.word_associations import WordAssociationTest
from biassay.errors import UsageError
from biassay.models.base import Identity, Reply
from biassay.prompts.requests import Prompt
from biassay.results.outcomes import Outcome, ResultRecord
from biassay.stats.clusters import Floats
from biassay.stats.specification_curve import JointResult, joint_sign_test, joint_test
from biassay.studies.benchmarks.results import ALL_CATEGORIES
from biassay.studies.benchmarks.tasks import get_task
from biassay.studies.benchmarks.tasks.base import BenchmarkInputs
from biassay.studies.benchmarks.tasks.options import PROMPT_END
from biassay.studies.study import Row
from biassay.studies.word_association.measure import (
    WordAssociationRowBuilder,
    choose_unit,
    compute_log_odds,
    parse_replies,
)
from biassay.studies.word_association.prompts import AssociationPrompt, group_wordings, make_prompts
from biassay.studies.word_association.replies import to_value_table
from biassay.studies.word_association.settings import WordAssociationSettings

Kind = Literal["default", "wording", "order", "temperature", "system"]
_ENDS = {
    "letter only": "\n\nReply with the letter of the option that you choose.\nAnswer:\n",
    "question": "\n\nWhich option do you choose? Name its letter only.\nAnswer:\n",
}
"""Other wordings of the request for a letter."""


@dataclass(frozen=True)
class PromptSpecification:
    """A variant of the prompts: the dimension that differs from the default, and its value."""

    kind: Kind = "default"
    value: str = ""
    temperature: float | None = None

    def rewrite(self, prompt: Prompt) -> Prompt:
        """Return a prompt under this specification. Wordings and orders are chosen elsewhere."""
        if self.kind == "temperature" and not prompt.options:
            return replace(prompt, temperature=self.temperature)
        return replace(prompt, system=self.value) if self.kind == "system" else prompt


@dataclass(frozen=True, eq=False)
class SpecificationScore:
    """Measured score of one item under one specification.

    Attributes
    ----------
    item : str
        Name of the item.
    record : ResultRecord
        Result of the study under this specification.
    effect, low, high, p_value : float or None
        Effect from the value of a model without bias, its interval and p-value.
    units : dict of str to float
        Value of every word, or contribution of every sampling unit.
    """

    item: str
    record: ResultRecord
    effect: float | None
    low: float | None
    high: float | None
    p_value: float | None
    units: Mapping[str, float]


class Questionnaire(ABC):
    """Word association tests or a benchmark, whose prompts are varied."""

    @abstractmethod
    def list_wordings(self, capabilities: Capabilities) -> tuple[str, ...]:
        """Return the names of the wordings that are used alone."""

    @abstractmethod
    def list_orders(self) -> tuple[str, ...]:
        """Return the names of the orders that are used alone."""

    @abstractmethod
    def make_prompts(self, specification: PromptSpecification, capabilities: Capabilities) -> list[Prompt]:
        """Return the prompts of a specification."""

    @abstractmethod
    def measure(self, specification: PromptSpecification, model: ModelOutputs) -> Iterator[SpecificationScore]:
        """Yield the score of every item under a specification."""

    @abstractmethod
    def test_jointly(self, item: str, scores: Sequence[SpecificationScore], rng: np.random.Generator) -> JointResult:
        """Test the median effect of several specifications of an item.

        Parameters
        ----------
        item : str
            Category or test.
        scores : sequence of SpecificationScore
        rng : numpy Generator
        """


class _VariedOutputs:
    """Outputs of a model whose prompts are rewritten; replies to other orders than one are missing."""

    def __init__(self, model: ModelOutputs, specification: PromptSpecification, n_orders: int, end: str) -> None:
        self.identity: Identity = model.identity
        self.capabilities = model.capabilities
        self._model, self._specification, self._n_orders, self._end = model, specification, n_orders, end

    def replies(self, prompts: Sequence[Prompt]) -> list[Reply]:
        """Return the replies to the rewritten prompts."""
        asked = [replace_end(self._specification.rewrite(prompt), self._end) for prompt in prompts]
        replies = list(self._model.replies(asked))
        if self._specification.kind != "order":
            return replies
        kept = int(self._specification.value) - 1
        missing = [Reply("", "failed", log_p=(math.nan,) * len(prompt.options)) for prompt in prompts]
        return [reply if i % self._n_orders == kept else missing[i] for i, reply in enumerate(replies)]


def replace_end(prompt: Prompt, end: str) -> Prompt:
    """Return a prompt of options that ends with another request for a letter; `end` may be empty."""
    return replace(prompt, text=prompt.text.removesuffix(PROMPT_END) + end) if end else prompt


class BenchmarkQuestionnaire(Questionnaire):
    """A benchmark of questions with options."""

    def __init__(self, inputs: BenchmarkInputs) -> None:
        self._inputs, self._task = inputs, get_task(inputs.settings.benchmark)
        if not self._task.n_options:
            raise UsageError(
                f"{self._task.name} has no prompts to vary; use a benchmark that asks questions, such as bbq"
            )
        self._n_orders = math.factorial(self._task.n_options)

    def list_wordings(self, capabilities: Capabilities) -> tuple[str, ...]:  # noqa: ARG002
        """Return the names of the wordings that are used alone."""
        return tuple(_ENDS)

    def list_orders(self) -> tuple[str, ...]:
        """Return the names of the orders that are used alone."""
        return tuple(str(number) for number in range(1, self._n_orders + 1))

    def make_prompts(self, specification: PromptSpecification, capabilities: Capabilities) -> list[Prompt]:
        """Return the prompts of a specification."""
        end = _ENDS[specification.value] if specification.kind == "wording" else ""
        prompts = self._task.requests(self._inputs, capabilities).prompts
        return [replace_end(specification.rewrite(prompt), end) for prompt in prompts]

    def measure(self, specification: PromptSpecification, model: ModelOutputs) -> Iterator[SpecificationScore]:
        """Yield the score of every item under a specification."""
        end = _ENDS[specification.value] if specification.kind == "wording" else ""
        varied = cast("ModelOutputs", _VariedOutputs(model, specification, self._n_orders, end))
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
            yield SpecificationScore(row.item, row, row.distance, low, high, outcome.p_value, units)

    def test_jointly(self, item: str, scores: Sequence[SpecificationScore], rng: np.random.Generator) -> JointResult:  # noqa: ARG002
        """Test the median effect of several specifications of an item.

        Parameters
        ----------
        item : str
            Name of the item.
        scores : sequence of SpecificationScore
            One score per specification.
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
    return [float(value) for value in values]


class AssociationQuestionnaire(Questionnaire):
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

    def make_prompts(self, specification: PromptSpecification, capabilities: Capabilities) -> list[Prompt]:
        """Return the prompts of a specification."""
        settings = self._get_settings(specification)
        unit = choose_unit(settings, capabilities)
        prompts = (prompt for test in self._tests.values() for prompt in make_prompts(test, settings, unit))
        return [specification.rewrite(prompt.request) for prompt in prompts]

    def measure(self, specification: PromptSpecification, model: ModelOutputs) -> Iterator[SpecificationScore]:
        """Yield the score of every item under a specification."""
        settings = self._get_settings(specification)
        unit = choose_unit(settings, model.capabilities)
        for test in self._tests.values():
            prompts = make_prompts(test, settings, unit)
            replies = model.replies([specification.rewrite(prompt.request) for prompt in prompts])
            rows = list(WordAssociationRowBuilder(test, model.identity, settings, unit).build(prompts, replies))
            record = next(row.record for row in rows if row.table == "results")
            outcome: Outcome = record.outcome
            numbers = outcome.effect_size, outcome.ci_low, outcome.ci_high, outcome.p_value
            values = {row.record.word: row.record.value for row in rows if row.table == "words"}
            if specification.kind == "order":
                first = specification.value == "stigmatised first"
                values = _average_words(test, prompts, replies, first=first)
                numbers = _compute_effect(test, values), None, None, None
            known = {word: value for word, value in values.items() if value is not None}
            yield SpecificationScore(test.name, record, *numbers, known)

    def _get_settings(self, specification: PromptSpecification) -> WordAssociationSettings:
        return replace(self._settings, wordings=(specification.value,) if specification.kind == "wording" else ())

    def test_jointly(self, item: str, scores: Sequence[SpecificationScore], rng: np.random.Generator) -> JointResult:
        """Test the median effect of several specifications of an item.

        Parameters
        ----------
        item : str
            Name of the item.
        scores : sequence of SpecificationScore
            One score per specification.
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
