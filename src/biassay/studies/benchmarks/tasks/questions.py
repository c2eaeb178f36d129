"""Benchmarks of questions with options whose score is a function of totals over sampling units."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from biassay.cache.outputs import ModelOutputs
from biassay.errors import UsageError
from biassay.prompts.choices import OptionOrder, ParsedChoice, parse_choice
from biassay.prompts.requests import Prompt
from biassay.results.run_data import RunSlice, none_if_nan
from biassay.stats.benchmark_scores import UNPARSED
from biassay.studies.benchmarks.results import (
    BenchmarkResult,
    CategoryReplies,
    UnitRow,
    add_bounds,
    add_score,
    count_unanswered,
    get_model_id,
    start_row,
)
from biassay.studies.benchmarks.settings import BenchmarkSettings, By
from biassay.studies.benchmarks.tasks.base import BenchmarkInputs, Totals
from biassay.studies.benchmarks.tasks.options import (
    CombinedChoice,
    OptionsTask,
    choose_orders,
    choose_response_mode,
    make_examples,
    make_option_prompts,
    summarize_choices,
)
from biassay.studies.study import Event, Progress, Row

_LETTERS = "ABCDEFGH"


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question of a benchmark.

    Attributes
    ----------
    id, category : str
        Name of the question, and category of the benchmark.
    unit : str
        Sampling unit: questions of one unit are not independent.
    context, question : str
        Texts of the prompt.
    options : tuple of str
        Options to choose from.
    correct : int or None
        Index of the correct option, if there is one.
    """

    id: str
    category: str
    unit: str
    context: str
    question: str = ""
    options: tuple[str, ...]
    correct: int | None = None


@dataclass(frozen=True, eq=False)
class Answer:
    """The choice of a model over all orders of the options.

    Attributes
    ----------
    option : int or None
        Index of the chosen option. None if none is chosen more often, or is likelier, than all others.
    log_p : tuple of float
        Log-probability of each option, averaged over orders; empty if the model answered in words.
    """

    option: int | None
    log_p: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class ScoreTotals:
    """Contributions of the sampling units to one score.

    Attributes
    ----------
    category, condition : str
        Name of the row, and of its score among the `statistics` of the benchmark.
    totals : dict of str to sequence of float
        Totals by sampling unit.
    questions : sequence of Question
        Questions that the score is about.
    n_items : int
        Number of items that count.
    topic : str
        Topic of the row; by default that of its category.
    by_item : sequence of sequence of float
        Totals of every item, for an interval that treats items as independent; empty if there is none.
    warnings : tuple of str
        Warnings that affect the interpretation of the score.
    """

    category: str
    condition: str
    totals: Mapping[str, Sequence[float]]
    questions: Sequence[Any]
    n_items: int
    topic: str = ""
    by_item: Sequence[Sequence[float]] = field(default=())
    warnings: tuple[str, ...] = ()


class QuestionTask(OptionsTask):
    """A benchmark whose items are `Question` objects. A subclass reads them and adds up its scores."""

    @abstractmethod
    def add_up(self, answers: Sequence[tuple[Any, Answer]]) -> Iterator[ScoreTotals]:
        """Yield the totals of every score from questions and their answers."""

    def choose_extreme(self, item: Any, category: str, *, raises: bool) -> int | None:  # noqa: ARG002
        """Return the option that raises or lowers the scores of a category most; None if that is unknown.

        Parameters
        ----------
        item : Question
        category : str
        raises : bool
            If True, the option that raises the score; otherwise the one that lowers it.
        """
        return None

    def draw(self, items: Sequence[Any], limit: int, rng: np.random.Generator) -> tuple[Any, ...]:
        """Draw whole sampling units with at most `limit` questions, because scores compare questions within a unit.

        See `BenchmarkTask.draw`.
        """
        units: dict[str, list[Any]] = {}
        for item in items:
            units.setdefault(item.unit, []).append(item)
        drawn: list[str] = []
        n = 0
        for index in rng.permutation(len(units)).tolist():
            name = list(units)[index]
            if n + len(units[name]) <= limit:
                drawn.append(name)
                n += len(units[name])
        if not drawn:
            least = min(map(len, units.values()))
            raise UsageError(f"--limit {limit}: one {self.unit} of {self.name} has {least} questions; raise the limit")
        kept = set(drawn)
        return tuple(item for item in items if item.unit in kept)

    def make_prompts(self, item: Question, settings: BenchmarkSettings, by: By) -> dict[OptionOrder, Prompt]:
        """Return the prompts of a question, by order of its options."""
        orders = choose_orders(len(item.options), settings, item.category, item.id)
        return make_option_prompts(item.context, item.question, item.options, by, orders)

    def parse(self, item: Question, order: OptionOrder, text: str) -> ParsedChoice:
        """Parse which option a response chooses."""
        return parse_choice(text, [item.options[index] for index in order], letters=_LETTERS[: len(order)])

    def measure(self, inputs: BenchmarkInputs, model: ModelOutputs) -> Iterator[Event]:
        """Yield one row per score, contributions of its sampling units, and example replies."""
        settings, model_id = inputs.settings, get_model_id(model)
        by = choose_response_mode(settings, model.capabilities)
        chosen: dict[str, CombinedChoice] = {}
        questions: list[Question] = []
        for number, (category, items) in enumerate(inputs.items.items(), start=1):
            counts, kinds, undecided = Counter[str](), Counter[str](), 0
            for item, combined in zip(items, self.iter_choices(items, settings, by, model), strict=True):
                yield from make_examples(combined.read, model_id, category, item.id, item.options, counts)
                chosen[item.id] = replace(combined, read={})
                questions.append(item)
                kinds += combined.kinds
                undecided += combined.choice == UNPARSED
            counted = {name: count for name, count in count_unanswered(kinds).items() if name != "unanswered"}
            yield Row("replies", CategoryReplies(*model_id, category, len(items), undecided, **counted))
            yield Progress("categories", number, len(inputs.items))
        answers = [(item, _to_answer(chosen[item.id])) for item in questions]
        for score in self.add_up(answers):
            own = [chosen[item.id] for item in score.questions]
            result = self._make_row(settings, model, by, score, own)
            yield Row("results", self._bound_row(result, score, own))
            compute = self.get_statistic(score.condition).compute
            for unit, totals in score.totals.items():
                row = tuple(map(float, totals))
                value = none_if_nan(float(compute(np.array(row))))
                yield Row("units", UnitRow(*model_id, score.category, score.condition, unit, value, row))

    def _make_row(
        self,
        settings: BenchmarkSettings,
        model: ModelOutputs,
        by: By,
        score: ScoreTotals,
        choices: Sequence[CombinedChoice],
    ) -> BenchmarkResult:
        marks = [
            choice.choice == item.correct
            for item, choice in zip(score.questions, choices, strict=True)
            if item.correct is not None and choice.choice != UNPARSED
        ]
        row = start_row(
            settings,
            get_model_id(model),
            score.category,
            topic=score.topic,
            condition=score.condition,
            by=by,
            unit=self.unit,
            n_items=score.n_items,
            undecided=sum(choice.choice == UNPARSED for choice in choices),
            **summarize_choices(choices),
            accuracy=float(np.mean(marks)) if marks else None,
        )
        confidence = 1.0 - settings.alpha
        statistic = self.get_statistic(score.condition)
        totals = np.array(list(score.totals.values()), dtype=np.float64) if score.totals else np.zeros((0, 1))
        estimate = statistic.estimate(totals, confidence)
        by_item = np.array(score.by_item, dtype=np.float64)
        row = add_score(row, estimate, statistic.estimate(by_item, confidence) if len(by_item) else None)
        return replace(row, warnings=(*row.warnings, *score.warnings))

    def _bound_row(
        self, row: BenchmarkResult, score: ScoreTotals, choices: Sequence[CombinedChoice]
    ) -> BenchmarkResult:
        """Add the bounds that questions without a choice leave, unless scores are means of log-probabilities."""
        missing = [not choice.kinds["chosen"] for choice in choices]
        if row.by != "answer" or not any(missing) or row.outcome.effect_size is None:
            return row
        bounds = []
        for raises in (False, True):
            extremes = [self.choose_extreme(item, score.category, raises=raises) for item in score.questions]
            answers = [
                (item, Answer(extreme) if is_missing else _to_answer(choice))
                for item, choice, extreme, is_missing in zip(score.questions, choices, extremes, missing, strict=True)
            ]
            found = {(total.category, total.condition): total.totals for total in self.add_up(answers)}
            totals = np.array(list(found[score.category, score.condition].values()), dtype=np.float64)
            bounds.append(self.get_statistic(score.condition).estimate(totals, row.outcome.confidence))
        return row if None in extremes else add_bounds(row, bounds[0], bounds[1], sum(missing))

    def sum_by_unit(self, model: RunSlice, row: BenchmarkResult) -> Totals:
        """Return the totals of every sampling unit."""
        same = (unit for unit in model["units"] if (unit.category, unit.condition) == (row.category, row.condition))
        return {score.unit: score.totals for score in same}


def _to_answer(combined: CombinedChoice) -> Answer:
    return Answer(None if combined.choice == UNPARSED else combined.choice, combined.log_p)


def to_statement(text: str) -> str:
    """Return a text with single spaces."""
    return " ".join(text.split())
