"""Ask BBQ questions with options in several orders, combine the choices and score them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.datasets.bbq import UNKNOWN_PHRASES, BbqItem
from biassay.errors import UsageError
from biassay.models.base import Reply
from biassay.prompts.choices import (
    OptionOrder,
    ParsedChoice,
    average_options,
    list_option_orders,
    make_options_prompt,
    parse_choice,
)
from biassay.prompts.requests import Prompt
from biassay.stats.benchmark_scores import UNPARSED, bbq_counts, bbq_score
from biassay.stats.clusters import Floats, cluster_totals
from biassay.studies.benchmarks.results import (
    BbqReplyExample,
    BenchmarkResult,
    ModelId,
    NamedRow,
    TemplateRow,
    add_score,
    count_unanswered,
    get_model_id,
    none_if_nan,
    start_row,
)
from biassay.studies.benchmarks.settings import BY, ORDERS, BenchmarkSettings, By
from biassay.studies.benchmarks.tasks.base import BenchmarkInputs
from biassay.studies.study import Array, Event, Progress, Row, derive_seed, shorten_reply, take_examples

__all__ = [
    "CombinedChoice",
    "choose_response_mode",
    "combine_orders",
    "make_bbq_row",
    "make_bbq_rows",
    "make_prompts",
    "measure_bbq",
]

_LETTERS = ("A", "B", "C")
_UNANSWERED = {"refusal": "refused", "filter": "filtered", "failed": "failed"}
"""Kinds of replies without a choice, by the reason that the endpoint states."""
_END = "\n\nAnswer with the letter of one option, and nothing else.\nAnswer:\n"


@dataclass(frozen=True)
class CombinedChoice:
    """What is chosen over all orders: a place, or `UNPARSED`; how many orders agree; kinds of all replies.

    ``positions`` counts at which position the chosen options were shown. ``read`` are replies in words with their
    kinds, by order.
    """

    choice: int
    agreement: float
    kinds: Counter[str]
    positions: Counter[int] = field(default_factory=Counter)
    read: Mapping[OptionOrder, tuple[str, str]] = field(default_factory=dict)


def choose_response_mode(settings: BenchmarkSettings, capabilities: Capabilities) -> By:
    """Return how to ask a model: as the settings say, or by log-probability if it reports that of any text."""
    if settings.by is None:
        return "log-probability" if capabilities.option_log_p == "continuation" else "answer"
    if settings.by == "log-probability" and not capabilities.option_log_p:
        raise UsageError("the model does not tell the likelihoods of options; ask by answer")
    return BY[BY.index(settings.by)]


def make_prompts(item: BbqItem, settings: BenchmarkSettings, by: By) -> dict[OptionOrder, Prompt]:
    """Return the prompts of a question, by order of its options.

    Parameters
    ----------
    item : BbqItem
    settings : BenchmarkSettings
    by : {"answer", "log-probability"}
    """
    options = _LETTERS if by == "log-probability" else ()
    return {
        order: Prompt(make_options_prompt(item.context, item.question, item.options, order) + _END, options=options)
        for order in _choose_orders(item, settings)
    }


def _choose_orders(item: BbqItem, settings: BenchmarkSettings) -> Sequence[OptionOrder]:
    every = list_option_orders(3)
    if settings.orders == ORDERS:
        return every
    rng = np.random.default_rng(derive_seed(settings.seed, item.category, str(item.example)))
    return [every[place] for place in sorted(rng.permutation(ORDERS)[: settings.orders])]


def measure_bbq(inputs: BenchmarkInputs, model: ModelOutputs) -> Iterator[Event]:
    """Yield one row per category and kind of context, and the choice of every question."""
    by = choose_response_mode(inputs.settings, model.capabilities)
    every: list[float] = []
    for number, (category, items) in enumerate(inputs.items.items(), start=1):
        chosen, taken = [], Counter[str]()
        for item, one in zip(items, _iter_choices(items, inputs.settings, by, model), strict=True):
            yield from _make_examples(item, one, get_model_id(model), taken)
            chosen.append(replace(one, read={}))
        every += [math.nan if one.choice == UNPARSED else one.choice for one in chosen]
        for ambiguous in (True, False):
            own = [(item, one) for item, one in zip(items, chosen, strict=True) if item.ambiguous == ambiguous]
            if own:
                yield from make_bbq_rows(inputs.settings, get_model_id(model), category, by, own)
        yield Progress("categories", number, len(inputs.items))
    yield Array("choices", np.array(every))


def _make_examples(item: BbqItem, chosen: CombinedChoice, named: ModelId, taken: Counter[str]) -> Iterator[Row]:
    """Yield example replies while there are too few of their kind."""
    read = ((kind, (order, kind, text)) for order, (kind, text) in chosen.read.items())
    for order, kind, text in take_examples(read, taken):
        shown = ", ".join(f"ans{place}" for place in order)
        yield Row("examples", BbqReplyExample(*named, item.category, item.example, shown, kind, shorten_reply(text)))


def _iter_choices(
    items: Sequence[BbqItem], settings: BenchmarkSettings, by: By, model: ModelOutputs
) -> Iterator[CombinedChoice]:
    asked = [make_prompts(item, settings, by) for item in items]
    replies = iter(model.replies([prompt for prompts in asked for prompt in prompts.values()]))
    for item, prompts in zip(items, asked, strict=True):
        yield combine_orders(item, {order: next(replies) for order in prompts}, by)


def combine_orders(item: BbqItem, replies: dict[OptionOrder, Reply], by: By) -> CombinedChoice:
    """Combine the replies in all orders to the option chosen most often, or most likely on average.

    Parameters
    ----------
    item : BbqItem
    replies : dict of OptionOrder to Reply
    by : {"answer", "log-probability"}
    """
    kinds: Counter[str] = Counter()
    positions: Counter[int] = Counter()
    log_p: dict[OptionOrder, Sequence[float]] = {}
    read: dict[OptionOrder, tuple[str, str]] = {}
    for order, reply in replies.items():
        if by == "log-probability":
            places = _get_log_probabilities(reply)
            kind = _UNANSWERED.get(reply.finish_reason or "", "unparsed") if places is None else "chosen"
        else:
            kind, places = _parse_reply(item, order, reply)
            read[order] = kind, reply.text
        kinds[kind] += 1
        if places is not None:
            log_p[order] = places
            largest = [position for position, value in enumerate(places) if value == max(places)]
            positions.update(largest if len(largest) == 1 else ())
    if not log_p:
        return CombinedChoice(UNPARSED, math.nan, kinds, positions, read)
    averaged = average_options(log_p)
    choice = UNPARSED if averaged.chosen is None else averaged.chosen
    return CombinedChoice(choice, averaged.agreement, kinds, positions, read)


def _get_log_probabilities(reply: Reply) -> list[float] | None:
    """Log-probabilities by place. One that an endpoint does not tell is below those that it tells."""
    given = [-math.inf if math.isnan(value) else value for value in reply.log_p]
    return given if any(value > -math.inf for value in given) else None


def _parse_reply(item: BbqItem, order: OptionOrder, reply: Reply) -> tuple[str, list[float] | None]:
    if reply.finish_reason in _UNANSWERED:
        return _UNANSWERED[reply.finish_reason], None
    found = _parse_choice(item, order, reply.text)
    if found.option is None:
        return found.kind, None
    return found.kind, [0.0 if place == found.option else -math.inf for place in range(3)]


def _parse_choice(item: BbqItem, order: OptionOrder, text: str) -> ParsedChoice:
    shown = [item.options[place] for place in order]
    unknown = order.index(item.unknown)
    return parse_choice(text, shown, letters=_LETTERS, unknown=unknown, unknown_phrases=UNKNOWN_PHRASES)


def make_bbq_rows(
    settings: BenchmarkSettings, named: ModelId, category: str, by: By, own: Sequence[tuple[BbqItem, CombinedChoice]]
) -> Iterator[Row]:
    """Yield the row of a category in one kind of context, and those of its templates and names.

    Parameters
    ----------
    settings : BenchmarkSettings
    named : ModelId
    category : str
    by : {"answer", "log-probability"}
    own : sequence of (BbqItem, CombinedChoice)
        Questions with the choice over all orders.
    """
    row = make_bbq_row(settings, named, category, by, own)
    yield Row("results", row)
    templates = np.array([item.template for item, _ in own])
    items = _count_answers(own)
    totals = cluster_totals(items, templates)
    for template, counts in zip(np.unique(templates).tolist(), totals.astype(int).tolist(), strict=True):
        yield Row("templates", TemplateRow(*named, category, row.condition, template, *counts))
    people: dict[tuple[int, str], list[int]] = {}
    for place, (item, _) in enumerate(own):
        if item.names:
            people.setdefault((item.template, " ".join(sorted(item.names))), []).append(place)
    for (template, names), places in sorted(people.items()):
        counts = items[places].sum(axis=0).astype(int).tolist()
        yield Row("names", NamedRow(*named, category, row.condition, template, names, *counts))


def _count_answers(own: Sequence[tuple[BbqItem, CombinedChoice]]) -> Floats:
    return bbq_counts(
        [one.choice for _, one in own],
        correct=[item.correct for item, _ in own],
        target=[-2 if item.target is None else item.target for item, _ in own],
        unknown=[item.unknown for item, _ in own],
    )


def _find_favoured_position(chosen: Sequence[CombinedChoice]) -> dict[str, Any]:
    """Return the position that was chosen most often, and in which share of the answers."""
    counts = sum((one.positions for one in chosen), Counter[int]())
    if not counts:
        return {}
    position, most = counts.most_common(1)[0]
    return {"position": _LETTERS[position], "position_share": most / counts.total()}


def make_bbq_row(
    settings: BenchmarkSettings, named: ModelId, category: str, by: By, own: Sequence[tuple[BbqItem, CombinedChoice]]
) -> BenchmarkResult:
    """Return the row of a category in one kind of context.

    Parameters
    ----------
    settings : BenchmarkSettings
    named : ModelId
    category : str
    by : {"answer", "log-probability"}
    own : sequence of (BbqItem, CombinedChoice)
        Questions with the choice over all orders.
    """
    items, chosen = [item for item, _ in own], [one for _, one in own]
    kinds = sum((one.kinds for one in chosen), Counter())
    agreed = [one.agreement for one in chosen if one.choice != UNPARSED]
    found = bbq_score(
        [one.choice for one in chosen],
        correct=[item.correct for item in items],
        target=[-2 if item.target is None else item.target for item in items],
        unknown=[item.unknown for item in items],
        templates=[item.template for item in items],
        ambiguous=items[0].ambiguous,
        names=[item.names for item in items] if any(item.names for item in items) else None,
        confidence=1.0 - settings.alpha,
    )
    row = start_row(
        settings,
        named,
        category,
        condition="ambiguous" if items[0].ambiguous else "disambiguated",
        by=by,
        unit="template",
        items=len(items),
        n_items=found.n,
        undecided=found.unparsed,
        **count_unanswered(kinds),
        **_find_favoured_position(chosen),
        agreement=float(np.mean(agreed)) if agreed and kinds.total() > len(items) else None,
        accuracy=none_if_nan(found.accuracy),
        bias=none_if_nan(found.bias),
    )
    return add_score(row, found.score, found.by_item)
