"""Benchmarks of questions with options whose score is a function of totals over sampling units."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import ascii_uppercase
from typing import Any

import numpy as np

from biassay.cache.outputs import ModelOutputs
from biassay.errors import UsageError
from biassay.grouping import group_pairs
from biassay.prompts.choices import ParsedChoice, parse_choice
from biassay.results.run_data import RunSlice, get_model_fields, none_if_nan
from biassay.stats.benchmark_scores import UNPARSED
from biassay.stats.clusters import ClusterEstimate
from biassay.studies.benchmarks.results import (
    BenchmarkResult,
    CategoryReplies,
    ModelId,
    UnitRow,
    add_bounds,
    add_score,
    get_model_id,
    start_row,
)
from biassay.studies.benchmarks.settings import BenchmarkSettings, By
from biassay.studies.benchmarks.tasks.base import BenchmarkInputs, Totals
from biassay.studies.benchmarks.tasks.options import (
    CombinedChoice,
    OptionOrder,
    OptionsTask,
    choose_response_mode,
    count_choices,
    summarize_choices,
)
from biassay.studies.study import Event, Progress, Row


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
        units = group_pairs((item.unit, item) for item in items)
        drawn = set[str]()
        n = 0
        for index in rng.permutation(len(units)).tolist():
            name = list(units)[index]
            if n + len(units[name]) <= limit:
                drawn.add(name)
                n += len(units[name])
        if not drawn:
            least = min(map(len, units.values()))
            raise UsageError(f"--limit {limit}: one {self.unit} of {self.name} has {least} questions; raise the limit")
        return tuple(item for item in items if item.unit in drawn)

    def parse(self, item: Question, order: OptionOrder, text: str) -> ParsedChoice:
        """Parse which option a response chooses."""
        return parse_choice(text, [item.options[index] for index in order], letters=ascii_uppercase[: len(order)])

    def measure(self, inputs: BenchmarkInputs, model: ModelOutputs) -> Iterator[Event]:
        """Yield one row per score, contributions of its sampling units, and example replies."""
        settings, model_id = inputs.settings, get_model_id(model)
        by = choose_response_mode(settings, model.capabilities)
        chosen: dict[str, CombinedChoice] = {}
        for number, (category, items) in enumerate(inputs.items.items(), start=1):
            choices = yield from self.choose(category, items, settings, model)
            chosen.update(zip((item.id for item in items), choices, strict=True))
            fields: dict[str, Any] = {**get_model_fields(model.identity), **count_choices(choices)}
            yield Row("replies", CategoryReplies(category=category, **fields))
            yield Progress("categories", number, len(inputs.items))
        answers = [(item, _to_answer(chosen[item.id])) for item in inputs.all_items]
        for score in self.add_up(answers):
            own = [chosen[item.id] for item in score.questions]
            yield Row("results", self._make_row(settings, model_id, by, score, own))
            compute = self.get_statistic(score.condition).compute
            for unit, totals in score.totals.items():
                row = tuple(map(float, totals))
                value = none_if_nan(float(compute(np.array(row))))
                yield Row("units", UnitRow(*model_id, score.category, score.condition, unit, value, row))

    def _make_row(
        self,
        settings: BenchmarkSettings,
        model_id: ModelId,
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
            model_id,
            score.category,
            topic=score.topic,
            condition=score.condition,
            by=by,
            unit=self.unit,
            n_items=score.n_items,
            **summarize_choices(choices),
            accuracy=float(np.mean(marks)) if marks else None,
        )
        confidence = 1.0 - settings.alpha
        by_item = self._estimate(score.condition, score.by_item, confidence) if len(score.by_item) else None
        row = add_score(row, self._estimate(score.condition, score.totals.values(), confidence), by_item)
        row = replace(row, warnings=(*row.warnings, *score.warnings))
        return self._bound_row(row, score, choices)

    def _estimate(self, condition: str, totals: Collection[Sequence[float]], confidence: float) -> ClusterEstimate:
        table = np.array(list(totals), dtype=np.float64) if totals else np.zeros((0, 1))
        return self.get_statistic(condition).estimate(table, confidence)

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
            if None in extremes:
                return row
            answers = [
                (item, Answer(extreme) if is_missing else _to_answer(choice))
                for item, choice, extreme, is_missing in zip(score.questions, choices, extremes, missing, strict=True)
            ]
            found = {(total.category, total.condition): total.totals for total in self.add_up(answers)}
            totals = found[score.category, score.condition].values()
            bounds.append(self._estimate(score.condition, totals, row.outcome.confidence))
        return add_bounds(row, bounds[0], bounds[1], sum(missing))

    def sum_by_unit(self, model: RunSlice, row: BenchmarkResult) -> Totals:
        """Return the totals of every sampling unit."""
        same = (unit for unit in model["units"] if (unit.category, unit.condition) == (row.category, row.condition))
        return {score.unit: score.totals for score in same}


def _to_answer(combined: CombinedChoice) -> Answer:
    return Answer(None if combined.choice == UNPARSED else combined.choice, combined.log_p)
