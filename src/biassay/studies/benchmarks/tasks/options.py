"""Ask questions with options in several orders, and combine the choices."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import permutations
from string import ascii_uppercase
from typing import Any

import numpy as np

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.errors import UsageError
from biassay.models.base import Reply
from biassay.prompts.choices import ParsedChoice
from biassay.prompts.requests import Prompt
from biassay.stats.benchmark_scores import UNPARSED
from biassay.stats.clusters import Floats
from biassay.studies.benchmarks.results import ReplyExample, count_kinds, get_model_id
from biassay.studies.benchmarks.settings import BY, BenchmarkSettings, By
from biassay.studies.benchmarks.tasks.base import BenchmarkInputs, BenchmarkTask
from biassay.studies.study import Requests, Row, derive_seed, shorten_reply, take_examples

_UNANSWERED = {"refusal": "refused", "filter": "filtered", "failed": "failed"}
"""Kinds of replies without a choice, by the reason that the endpoint states."""
PROMPT_END = "\n\nAnswer with the letter of one option, and nothing else.\nAnswer:\n"

_OTHER_ENDS = {
    "es": "\n\nResponde con la letra de una sola opción y nada más.\nRespuesta:\n",
    "ko": "\n\n선택지 하나의 알파벳으로만 답하시오.\n답:\n",
    "nl": "\n\nAntwoord met de letter van één optie en niets anders.\nAntwoord:\n",
    "tr": "\n\nYalnızca bir seçeneğin harfiyle cevap verin.\nCevap:\n",
}
"""Ends of prompts in other languages. They are ours."""

OptionOrder = tuple[int, ...]
"""Option at each position."""
Parser = Callable[[OptionOrder, str], ParsedChoice]
"""Function from the order of the options and a response to the position that it chooses."""
_TIE = 1e-9  # probabilities that differ by less are equal


@dataclass(frozen=True)
class CombinedChoice:
    """Choice over all orders: index of the option or `UNPARSED`, share of agreeing orders, and kinds of replies.

    ``positions`` counts at which position the chosen options were shown. ``read`` are replies in words with their
    kinds, by order. ``log_p`` are log-probabilities of the options as a mean over orders; empty for answers in words.
    """

    choice: int
    agreement: float
    kinds: Counter[str]
    positions: Counter[int] = field(default_factory=Counter)
    read: Mapping[OptionOrder, tuple[str, str]] = field(default_factory=dict)
    log_p: tuple[float, ...] = ()


def choose_response_mode(settings: BenchmarkSettings, capabilities: Capabilities) -> By:
    """Return how to ask a model: as the settings say, or by log-probability if it reports that of any text."""
    if settings.by is None:
        return "log-probability" if capabilities.option_log_p == "continuation" else "answer"
    if settings.by == "log-probability" and not capabilities.option_log_p:
        raise UsageError("--by log-probability: the model does not report them for options; use --by answer")
    return BY[BY.index(settings.by)]


def list_option_orders(n: int) -> tuple[OptionOrder, ...]:
    """Return all orders of n options, the original one first."""
    return tuple(permutations(range(n)))


def choose_orders(n: int, settings: BenchmarkSettings, *question: str) -> Sequence[OptionOrder]:
    """Return the orders in which the n options of a question are shown, drawn at random if not all are.

    Parameters
    ----------
    n : int
    settings : BenchmarkSettings
    *question : str
        Name of the question, from which its random numbers are derived.
    """
    orders = list_option_orders(n)
    if settings.orders >= len(orders):
        return orders
    rng = np.random.default_rng(derive_seed(settings.seed, *question))
    return [orders[index] for index in sorted(rng.permutation(len(orders))[: settings.orders])]


def read_reply(order: OptionOrder, reply: Reply, by: By, parse: Parser) -> tuple[str, Sequence[float] | None]:
    """Return the kind of a response, and the log-probabilities of the options by position if it chooses one.

    Parameters
    ----------
    order : OptionOrder
    reply : Reply
    by : {"answer", "log-probability"}
    parse : Parser
    """
    if by == "log-probability":
        # Unreported log-probabilities are below all reported ones.
        reported = [-math.inf if math.isnan(value) else value for value in reply.log_p]
        if any(value > -math.inf for value in reported):
            return "chosen", reported
        return _UNANSWERED.get(reply.finish_reason or "", "unparsed"), None
    if reply.finish_reason in _UNANSWERED:
        return _UNANSWERED[reply.finish_reason], None
    parsed = parse(order, reply.text)
    if parsed.option is None:
        return parsed.kind, None
    return parsed.kind, [0.0 if position == parsed.option else -math.inf for position in range(len(order))]


def combine_choices(replies: Mapping[OptionOrder, Reply], by: By, parse: Parser) -> CombinedChoice:
    """Combine the replies in all orders to the option chosen most often, or most likely on average.

    Within an order, probabilities are scaled to sum to 1, so that all orders count equally, however likely the model is
    to respond otherwise. A model that prefers a position, not an option, chooses none.

    Parameters
    ----------
    replies : dict of OptionOrder to Reply
    by : {"answer", "log-probability"}
    parse : Parser
    """
    kinds, positions = Counter[str](), Counter[int]()
    read: dict[OptionOrder, tuple[str, str]] = {}
    log_p, probabilities = [], []
    for order, reply in replies.items():
        kind, values = read_reply(order, reply, by, parse)
        kinds[kind] += 1
        if by == "answer":
            read[order] = kind, reply.text
        if values is not None:
            largest = [position for position, value in enumerate(values) if value == max(values)]
            positions.update(largest if len(largest) == 1 else ())
            shown = np.array(values, dtype=np.float64)
            scaled, to_options = np.exp(shown - shown.max()), np.argsort(order)
            log_p.append(shown[to_options])
            probabilities.append((scaled / scaled.sum())[to_options])
    chosen = _find_largest(np.mean(probabilities, axis=0)) if probabilities else None
    means = tuple(np.mean(log_p, axis=0).tolist()) if log_p and by == "log-probability" else ()
    if chosen is None:
        return CombinedChoice(UNPARSED, math.nan, kinds, positions, read, means)
    agreement = float(np.mean([_find_largest(row) == chosen for row in probabilities]))
    return CombinedChoice(chosen, agreement, kinds, positions, read, means)


def _find_largest(values: Floats) -> int | None:
    """Return the index of the largest value, or None if two are equal."""
    order = np.argsort(values)
    return None if len(values) > 1 and values[order[-1]] - values[order[-2]] <= _TIE else int(order[-1])


def find_favoured_position(positions: Counter[int]) -> dict[str, Any]:
    """Return the fields of a row on the position that was chosen most often, with its share of the responses."""
    if not positions:
        return {}
    position, largest = positions.most_common(1)[0]
    return {"position": ascii_uppercase[position], "position_share": largest / positions.total()}


def count_choices(choices: Sequence[CombinedChoice]) -> dict[str, int]:
    """Return the fields of a row that count questions, undecided questions, and responses by kind."""
    undecided = sum(choice.choice == UNPARSED for choice in choices)
    kinds = sum((choice.kinds for choice in choices), Counter[str]())
    return {"items": len(choices), "undecided": undecided, **count_kinds(kinds)}


def summarize_choices(choices: Sequence[CombinedChoice]) -> dict[str, Any]:
    """Return the fields of a row on responses by kind, the favoured position, and the agreement of orders."""
    counts = count_choices(choices)
    agreed = [choice.agreement for choice in choices if choice.choice != UNPARSED]
    agreement = float(np.mean(agreed)) if agreed and counts["replies"] > len(choices) else None
    positions = sum((choice.positions for choice in choices), Counter[int]())
    return {**counts, "agreement": agreement, **find_favoured_position(positions)}


class OptionsTask(BenchmarkTask):
    """A benchmark of questions with options, which are shown in several orders."""

    @abstractmethod
    def parse(self, item: Any, order: OptionOrder, text: str) -> ParsedChoice:
        """Parse the option that a response chooses, given the order in which options were shown."""

    def describe_question(self, item: Any) -> tuple[str, Sequence[str]]:
        """Return the id of a question and the names of its options."""
        return item.id, item.options

    def make_prompts(self, item: Any, settings: BenchmarkSettings, by: By) -> dict[OptionOrder, Prompt]:
        """Return the prompts of a question, by order of its options.

        Parameters
        ----------
        item : object
            Question with its context and options.
        settings : BenchmarkSettings
        by : {"answer", "log-probability"}
        """
        language = getattr(item, "language", "en")
        letters = ascii_uppercase[: len(item.options)]
        if language in _OTHER_ENDS:
            question = [item.question, ""]  # without the English word "Question"
        else:
            question = [f"Question: {item.question}"] if item.question else []
        prompts = {}
        for order in choose_orders(len(item.options), settings, item.category, self.describe_question(item)[0]):
            lines = [f"{letter}. {item.options[option]}" for letter, option in zip(letters, order, strict=True)]
            text = "\n".join([item.context, "", *question, *lines]) + _OTHER_ENDS.get(language, PROMPT_END)
            prompts[order] = Prompt(text, options=tuple(letters) if by == "log-probability" else ())
        return prompts

    def requests(self, inputs: BenchmarkInputs, capabilities: Capabilities) -> Requests:
        """Return every question with its options in all requested orders."""
        by = choose_response_mode(inputs.settings, capabilities)
        prompts = (one for item in inputs.all_items for one in self.make_prompts(item, inputs.settings, by).values())
        return Requests(prompts=tuple(dict.fromkeys(prompts)))

    def choose(
        self, category: str, items: Sequence[Any], settings: BenchmarkSettings, model: ModelOutputs
    ) -> Generator[Row, None, list[CombinedChoice]]:
        """Yield example replies for a category, and return the combined choice for every question.

        Parameters
        ----------
        category : str
        items : sequence
        settings : BenchmarkSettings
        model : ModelOutputs
        """
        by = choose_response_mode(settings, model.capabilities)
        prompts_by_item = [self.make_prompts(item, settings, by) for item in items]
        replies = iter(model.replies([prompt for prompts in prompts_by_item for prompt in prompts.values()]))
        choices: list[CombinedChoice] = []
        taken: Counter[str] = Counter()
        for item, prompts in zip(items, prompts_by_item, strict=True):
            combined = combine_choices({order: next(replies) for order in prompts}, by, partial(self.parse, item))
            choices.append(replace(combined, read={}))
            question, names = self.describe_question(item)
            read = ((kind, (order, kind, text)) for order, (kind, text) in combined.read.items())
            for order, kind, text in take_examples(read, taken):
                shown = ", ".join(names[index] for index in order)
                fields = (*get_model_id(model), category, question, shown, kind, shorten_reply(text))
                yield Row("examples", ReplyExample(*fields))
        return choices
