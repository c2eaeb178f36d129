"""Ask questions with options in several orders, and combine the choices."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from string import ascii_uppercase
from typing import Any

import numpy as np

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.errors import UsageError
from biassay.models.base import Reply
from biassay.prompts.choices import OptionOrder, ParsedChoice, average_options, list_option_orders, make_options_prompt
from biassay.prompts.requests import Prompt
from biassay.stats.benchmark_scores import UNPARSED
from biassay.studies.benchmarks.results import ModelId, ReplyExample, count_unanswered
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

Parser = Callable[[OptionOrder, str], ParsedChoice]
"""Function from the order of the options and a response to the position that it chooses."""


@dataclass(frozen=True)
class CombinedChoice:
    """Choice over all orders: an option's index or `UNPARSED`, number of agreeing orders, and kinds of all replies.

    ``positions`` counts at which position the chosen options were shown. ``read`` are replies in words with their
    kinds, by order. ``log_p`` are log-probabilities of the options as a mean over orders; empty for answers in words.
    """

    choice: int
    agreement: float
    kinds: Counter[str]
    positions: Counter[int] = field(default_factory=Counter)
    read: Mapping[OptionOrder, tuple[str, str]] = field(default_factory=dict)
    log_p: tuple[float, ...] = ()


@dataclass(frozen=True)
class ReadReply:
    """A response: its kind, and the log-probabilities of the options by position if it chooses one."""

    kind: str
    log_p: Sequence[float] | None

    @property
    def positions(self) -> tuple[int, ...]:
        """Position of the chosen option; none if the response chooses none or two are equally likely."""
        if self.log_p is None:
            return ()
        largest = [position for position, value in enumerate(self.log_p) if value == max(self.log_p)]
        return tuple(largest) if len(largest) == 1 else ()


def choose_response_mode(settings: BenchmarkSettings, capabilities: Capabilities) -> By:
    """Return how to ask a model: as the settings say, or by log-probability if it reports that of any text."""
    if settings.by is None:
        return "log-probability" if capabilities.option_log_p == "continuation" else "answer"
    if settings.by == "log-probability" and not capabilities.option_log_p:
        raise UsageError("--by log-probability: the model does not report them for options; use --by answer")
    return BY[BY.index(settings.by)]


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


def make_option_prompts(
    context: str,
    question: str,
    options: Sequence[str],
    by: By,
    orders: Sequence[OptionOrder] = (),
    language: str = "en",
) -> dict[OptionOrder, Prompt]:
    """Return the prompts of a question, by order of its options.

    Parameters
    ----------
    context, question : str
    options : sequence of str
    by : {"answer", "log-probability"}
    orders : sequence of OptionOrder
        Orders of the options. By default all.
    language : str
        Language of the question, and of the request for a letter.
    """
    end = _OTHER_ENDS.get(language, PROMPT_END)
    if language in _OTHER_ENDS:
        context, question = f"{context}\n\n{question}", ""  # without the English word "Question"
    letters = tuple(ascii_uppercase[: len(options)]) if by == "log-probability" else ()
    return {
        order: Prompt(make_options_prompt(context, question, options, order) + end, options=letters)
        for order in orders or list_option_orders(len(options))
    }


def read_reply(order: OptionOrder, reply: Reply, by: By, parse: Parser) -> ReadReply:
    """Read the log-probabilities of the options, or parse the option that a response chooses.

    Parameters
    ----------
    order : OptionOrder
        Option at each position.
    reply : Reply
    by : {"answer", "log-probability"}
    parse : Parser
    """
    if by == "log-probability":
        # Unreported log-probabilities are below all reported ones.
        reported = [-math.inf if math.isnan(value) else value for value in reply.log_p]
        if any(value > -math.inf for value in reported):
            return ReadReply("chosen", reported)
        return ReadReply(_UNANSWERED.get(reply.finish_reason or "", "unparsed"), None)
    if reply.finish_reason in _UNANSWERED:
        return ReadReply(_UNANSWERED[reply.finish_reason], None)
    parsed = parse(order, reply.text)
    if parsed.option is None:
        return ReadReply(parsed.kind, None)
    return ReadReply(parsed.kind, [0.0 if position == parsed.option else -math.inf for position in range(len(order))])


def combine_choices(replies: Mapping[OptionOrder, Reply], by: By, parse: Parser) -> CombinedChoice:
    """Combine the replies in all orders to the option chosen most often, or most likely on average.

    Parameters
    ----------
    replies : dict of OptionOrder to Reply
    by : {"answer", "log-probability"}
    parse : Parser
    """
    kinds: Counter[str] = Counter()
    positions: Counter[int] = Counter()
    log_p: dict[OptionOrder, Sequence[float]] = {}
    texts: dict[OptionOrder, tuple[str, str]] = {}
    for order, reply in replies.items():
        read = read_reply(order, reply, by, parse)
        if by == "answer":
            texts[order] = read.kind, reply.text
        kinds[read.kind] += 1
        if read.log_p is not None:
            log_p[order] = read.log_p
            positions.update(read.positions)
    if not log_p:
        return CombinedChoice(UNPARSED, math.nan, kinds, positions, texts)
    averaged = average_options(log_p)
    choice = UNPARSED if averaged.chosen is None else averaged.chosen
    means = _average_log_p(log_p) if by == "log-probability" else ()
    return CombinedChoice(choice, averaged.agreement, kinds, positions, texts, means)


def _average_log_p(log_p: Mapping[OptionOrder, Sequence[float]]) -> tuple[float, ...]:
    """Average the log-probabilities of the options over orders, in which a preference for a position cancels."""
    rows = [[values[order.index(option)] for option in range(len(order))] for order, values in log_p.items()]
    return tuple(np.mean(rows, axis=0).tolist())


def find_favoured_position(positions: Counter[int]) -> dict[str, Any]:
    """Return the fields of a row on the position that was chosen most often, with its share of the responses."""
    if not positions:
        return {}
    position, largest = positions.most_common(1)[0]
    return {"position": ascii_uppercase[position], "position_share": largest / positions.total()}


def summarize_choices(choices: Sequence[CombinedChoice]) -> dict[str, Any]:
    """Return the fields of a row on responses by kind, the favoured position, and the agreement of orders."""
    kinds = sum((choice.kinds for choice in choices), Counter[str]())
    agreed = [choice.agreement for choice in choices if choice.choice != UNPARSED]
    fields: dict[str, Any] = {"items": len(choices), **count_unanswered(kinds)}
    fields["agreement"] = float(np.mean(agreed)) if agreed and kinds.total() > len(choices) else None
    return fields | find_favoured_position(sum((choice.positions for choice in choices), Counter[int]()))


def make_examples(
    read: Mapping[OptionOrder, tuple[str, str]],
    model_id: ModelId,
    category: str,
    question: str,
    names: Sequence[str],
    taken: Counter[str],
) -> Iterator[Row]:
    """Yield example replies while there are too few of their kind.

    Parameters
    ----------
    read : dict of OptionOrder to (str, str)
        Kinds and texts of the replies to a question.
    model_id : ModelId
    category, question : str
        Category and name of the question.
    names : sequence of str
        Names of the options.
    taken : Counter
        Number of examples by kind so far.
    """
    replies = ((kind, (order, kind, text)) for order, (kind, text) in read.items())
    for order, kind, text in take_examples(replies, taken):
        options = ", ".join(names[index] for index in order)
        yield Row("examples", ReplyExample(*model_id, category, question, options, kind, shorten_reply(text)))


class OptionsTask(BenchmarkTask):
    """A benchmark of questions with options, which are shown in several orders."""

    @abstractmethod
    def make_prompts(self, item: Any, settings: BenchmarkSettings, by: By) -> dict[OptionOrder, Prompt]:
        """Return the prompts of a question, by order of its options."""

    @abstractmethod
    def parse(self, item: Any, order: OptionOrder, text: str) -> ParsedChoice:
        """Parse the option that a response chooses, given the order in which options were shown."""

    def requests(self, inputs: BenchmarkInputs, capabilities: Capabilities) -> Requests:
        """Return every question with its options in all requested orders."""
        by = choose_response_mode(inputs.settings, capabilities)
        prompts = (one for item in inputs.all_items for one in self.make_prompts(item, inputs.settings, by).values())
        return Requests(prompts=tuple(dict.fromkeys(prompts)))

    def iter_choices(
        self, items: Sequence[Any], settings: BenchmarkSettings, by: By, model: ModelOutputs
    ) -> Iterator[CombinedChoice]:
        """Yield the choice for every question over all orders."""
        prompts_by_item = [self.make_prompts(item, settings, by) for item in items]
        replies = iter(model.replies([prompt for prompts in prompts_by_item for prompt in prompts.values()]))
        for item, prompts in zip(items, prompts_by_item, strict=True):
            yield combine_choices({order: next(replies) for order in prompts}, by, partial(self.parse, item))
