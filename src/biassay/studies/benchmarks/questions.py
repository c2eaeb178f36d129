"""BBQ asked of a model: every question with its options in several orders, and one choice over all of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from biassay.answers.answers import Abilities, Answers
from biassay.errors import UsageError
from biassay.models.answering import Reply
from biassay.stats.benchmark_scores import UNPARSED, bbq_counts, bbq_score
from biassay.stats.clusters import Floats, cluster_totals
from biassay.stimuli.benchmarks.bbq import UNKNOWN_PHRASES, BbqItem
from biassay.studies.benchmarks.inputs import BenchmarkInputs
from biassay.studies.benchmarks.numbers import Named, found_by, unanswered, who, with_score
from biassay.studies.benchmarks.records import Example, NamedRow, Result, TemplateRow
from biassay.studies.benchmarks.settings import BY, ORDERS, By, Settings
from biassay.studies.benchmarks.topics import topic_of
from biassay.studies.examples import first_of_each, trimmed
from biassay.studies.seeds import seed_of
from biassay.studies.study import Array, Event, Progress, Row
from biassay.texts.choices import Choice, read_choice
from biassay.texts.options import Order, averaged_options, option_orders, options_prompt
from biassay.texts.requests import Prompt

__all__ = ["Chosen", "asked_by", "bbq_row", "bbq_rows", "chosen_over", "measured_bbq", "prompts_of"]

_LETTERS = ("A", "B", "C")
_UNANSWERED = {"refusal": "refused", "filter": "filtered", "failed": "failed"}
"""Kinds of replies without a choice, by the reason that the endpoint states."""
_END = "\n\nAnswer with the letter of one option, and nothing else.\nAnswer:\n"


@dataclass(frozen=True)
class Chosen:
    """What is chosen over all orders: a place, or `UNPARSED`; how many orders agree; kinds of all replies.

    ``positions`` counts at which position the chosen options were shown. ``read`` are replies in words with their
    kinds, by order.
    """

    choice: int
    agreement: float
    kinds: Counter[str]
    positions: Counter[int] = field(default_factory=Counter)
    read: Mapping[Order, tuple[str, str]] = field(default_factory=dict)


def asked_by(settings: Settings, abilities: Abilities) -> By:
    """How a model is asked: as the user says, or by log-probability where it gives that of any text."""
    if settings.by is None:
        return "log-probability" if abilities.option_log_p == "continuation" else "answer"
    if settings.by == "log-probability" and not abilities.option_log_p:
        raise UsageError("the model does not tell the likelihoods of options; ask by answer")
    return BY[BY.index(settings.by)]


def prompts_of(item: BbqItem, settings: Settings, by: By) -> dict[Order, Prompt]:
    """A question in every order in which its options are shown."""
    options = _LETTERS if by == "log-probability" else ()
    return {
        order: Prompt(options_prompt(item.context, item.question, item.options, order) + _END, options=options)
        for order in _orders(item, settings)
    }


def _orders(item: BbqItem, settings: Settings) -> Sequence[Order]:
    every = option_orders(3)
    if settings.orders == ORDERS:
        return every
    rng = np.random.default_rng(seed_of(settings.seed, item.category, str(item.example)))
    return [every[place] for place in sorted(rng.permutation(ORDERS)[: settings.orders])]


def measured_bbq(inputs: BenchmarkInputs, model: Answers) -> Iterator[Event]:
    """A row for every category and kind of context, and the choice of every question."""
    by = asked_by(inputs.settings, model.abilities)
    every: list[float] = []
    for number, (category, items) in enumerate(inputs.items.items(), start=1):
        chosen, taken = [], Counter[str]()
        for item, one in zip(items, _chosen(items, inputs.settings, by, model), strict=True):
            yield from _examples(item, one, who(model), taken)
            chosen.append(replace(one, read={}))
        every += [math.nan if one.choice == UNPARSED else one.choice for one in chosen]
        for ambiguous in (True, False):
            own = [(item, one) for item, one in zip(items, chosen, strict=True) if item.ambiguous == ambiguous]
            if own:
                yield from bbq_rows(inputs.settings, who(model), category, by, own)
        yield Progress("categories", number, len(inputs.items))
    yield Array("choices", np.array(every))


def _examples(item: BbqItem, chosen: Chosen, named: Named, taken: Counter[str]) -> Iterator[Row]:
    """Replies to be read, where there are too few of their kind yet."""
    read = ((kind, (order, kind, text)) for order, (kind, text) in chosen.read.items())
    for order, kind, text in first_of_each(read, taken):
        shown = ", ".join(f"ans{place}" for place in order)
        yield Row("examples", Example(*named, item.category, item.example, shown, kind, trimmed(text)))


def _chosen(items: Sequence[BbqItem], settings: Settings, by: By, model: Answers) -> Iterator[Chosen]:
    asked = [prompts_of(item, settings, by) for item in items]
    replies = iter(model.replies([prompt for prompts in asked for prompt in prompts.values()]))
    for item, prompts in zip(items, asked, strict=True):
        yield chosen_over(item, {order: next(replies) for order in prompts}, by)


def chosen_over(item: BbqItem, replies: dict[Order, Reply], by: By) -> Chosen:
    """One choice over all orders: the option most often chosen, or most likely on average."""
    kinds: Counter[str] = Counter()
    positions: Counter[int] = Counter()
    log_p: dict[Order, Sequence[float]] = {}
    read: dict[Order, tuple[str, str]] = {}
    for order, reply in replies.items():
        if by == "log-probability":
            places = _told(reply)
            kind = _UNANSWERED.get(reply.ended or "", "unparsed") if places is None else "chosen"
        else:
            kind, places = _read(item, order, reply)
            read[order] = kind, reply.text
        kinds[kind] += 1
        if places is not None:
            log_p[order] = places
            largest = [position for position, value in enumerate(places) if value == max(places)]
            positions.update(largest if len(largest) == 1 else ())
    if not log_p:
        return Chosen(UNPARSED, math.nan, kinds, positions, read)
    averaged = averaged_options(log_p)
    choice = UNPARSED if averaged.chosen is None else averaged.chosen
    return Chosen(choice, averaged.agreement, kinds, positions, read)


def _told(reply: Reply) -> list[float] | None:
    """Log-probabilities by place. One that an endpoint does not tell is below those that it tells."""
    given = [-math.inf if math.isnan(value) else value for value in reply.log_p]
    return given if any(value > -math.inf for value in given) else None


def _read(item: BbqItem, order: Order, reply: Reply) -> tuple[str, list[float] | None]:
    if reply.ended in _UNANSWERED:
        return _UNANSWERED[reply.ended], None
    found = _choice(item, order, reply.text)
    if found.option is None:
        return found.kind, None
    return found.kind, [0.0 if place == found.option else -math.inf for place in range(3)]


def _choice(item: BbqItem, order: Order, text: str) -> Choice:
    shown = [item.options[place] for place in order]
    unknown = order.index(item.unknown)
    return read_choice(text, shown, letters=_LETTERS, unknown=unknown, unknown_phrases=UNKNOWN_PHRASES)


def bbq_rows(
    settings: Settings, named: Named, category: str, by: By, own: Sequence[tuple[BbqItem, Chosen]]
) -> Iterator[Row]:
    """The row of a category in one kind of context, and those of its templates and names."""
    row = bbq_row(settings, named, category, by, own)
    yield Row("results", row)
    templates = np.array([item.template for item, _ in own])
    items = _counts(own)
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


def _counts(own: Sequence[tuple[BbqItem, Chosen]]) -> Floats:
    return bbq_counts(
        [one.choice for _, one in own],
        correct=[item.correct for item, _ in own],
        target=[-2 if item.target is None else item.target for item, _ in own],
        unknown=[item.unknown for item, _ in own],
    )


def _positions(chosen: Sequence[Chosen]) -> dict[str, Any]:
    """Return the position that was chosen most often, and in which share of the answers."""
    counts = sum((one.positions for one in chosen), Counter[int]())
    if not counts:
        return {}
    position, most = counts.most_common(1)[0]
    return {"position": _LETTERS[position], "position_share": most / counts.total()}


def bbq_row(settings: Settings, named: Named, category: str, by: By, own: Sequence[tuple[BbqItem, Chosen]]) -> Result:
    """The row of a category in one kind of context."""
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
    row = Result(
        model=named[0],
        options=named[1],
        model_revision=named[2],
        benchmark="bbq",
        category=category,
        condition="ambiguous" if items[0].ambiguous else "disambiguated",
        topic=topic_of(category),
        by=by,
        status="measured",
        reason=None,
        unit="template",
        items=len(items),
        n=found.n,
        undecided=found.unparsed,
        **unanswered(kinds),
        **_positions(chosen),
        agreement=float(np.mean(agreed)) if agreed and kinds.total() > len(items) else None,
        accuracy=found_by(found.accuracy),
        bias=found_by(found.bias),
        alpha=settings.alpha,
    )
    return with_score(row, found.score, found.by_item)
