"""Make prompts, parse replies and compute the rows of a word association test."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.cache.outputs import Capabilities
from biassay.datasets.word_associations import PromptForm, WordAssociationTest, Wording, select_wordings
from biassay.errors import UnknownNameError, UsageError
from biassay.models.base import Identity, Reply
from biassay.prompts.requests import Prompt
from biassay.reporting.formats import format_count, format_decimal, format_interval, format_p, format_percent
from biassay.results.outcomes import Claim, Outcome
from biassay.results.run_data import copy_fields, get_model_fields, none_if_nan
from biassay.stats.relative_decisions import relative_decisions
from biassay.stats.word_association import (
    MissingRates,
    WordAssociation,
    bai_score_test,
    compute_bai_scores,
    missing_by_level,
    missing_by_pole,
    word_association,
)
from biassay.studies.study import Row, shorten_reply, take_examples
from biassay.studies.word_association.prompts import (
    AssociationPrompt,
    DecisionPrompt,
    OptionPrompt,
    ParsedDecision,
    make_association_prompts,
    make_decision_prompts,
    make_option_prompts,
    parse_decision,
)
from biassay.studies.word_association.replies import (
    REPLY_KINDS,
    ParsedReply,
    ReplyKind,
    count_kinds,
    parse_reply,
    to_value_table,
)
from biassay.studies.word_association.results import (
    MissingResponses,
    RelativeDecisionsRow,
    ReplyCounts,
    Unit,
    WordAssociationReplyExample,
    WordAssociationResult,
    WordResult,
    label_kind,
)
from biassay.studies.word_association.settings import WordAssociationSettings

_FORMS: tuple[PromptForm, ...] = ("list", "word", "decision")
_UNANSWERED: dict[str, ReplyKind] = {"refusal": "refused", "filter": "filtered", "failed": "failed"}
_READ: dict[Unit, str] = {"share": "replies in words", "log-odds": "log-odds"}
_LEANS: dict[str, tuple[float, float]] = {"share": (0.5, 0.2), "log-odds": (0.0, 0.85)}
"""Value of the group word named first if order does not matter, and the distance from it that is reported."""


def group_wordings(names: Sequence[str]) -> dict[PromptForm, tuple[Wording, ...]]:
    """Return the named wordings by form of prompt; all wordings of a form of which none is named."""
    by_form = {form: select_wordings(form=form) for form in _FORMS}
    known = [wording.name for wordings in by_form.values() for wording in wordings]
    for name in names:
        if name not in known:
            raise UnknownNameError("wording", name, known, f"(wordings: {', '.join(known)})")
    return {
        form: tuple(wording for wording in wordings if wording.name in names) or wordings
        for form, wordings in by_form.items()
    }


def choose_unit(settings: WordAssociationSettings, capabilities: Capabilities) -> Unit:
    """Return the scale to measure on: by default log-odds if the model reports them for whole words."""
    if settings.read == "auto":
        return "log-odds" if capabilities.option_log_p == "continuation" else "share"
    return "log-odds" if settings.read == "log-odds" else "share"


@dataclass(frozen=True)
class WordAssociationPrompts:
    """All prompts of one test."""

    lists: tuple[AssociationPrompt, ...] = ()
    words: tuple[OptionPrompt, ...] = ()
    decisions: tuple[DecisionPrompt, ...] = ()

    @property
    def list_prompts(self) -> list[Prompt]:
        """Prompts that list attribute words."""
        return [Prompt(prompt.text, sample=prompt.repeat) for prompt in self.lists]

    @property
    def word_prompts(self) -> list[Prompt]:
        """Prompts for log-odds. Each group word is an option with and without a leading space."""
        return [
            Prompt(prompt.text, options=(*prompt.options, *(f" {word}" for word in prompt.options)))
            for prompt in self.words
        ]

    @property
    def decision_prompts(self) -> list[Prompt]:
        """Prompts that ask for a relative decision."""
        return [Prompt(prompt.text, sample=prompt.repeat) for prompt in self.decisions]

    @property
    def prompts(self) -> list[Prompt]:
        """All prompts of the test."""
        return [*self.list_prompts, *self.word_prompts, *self.decision_prompts]


def make_prompt_set(test: WordAssociationTest, settings: WordAssociationSettings, unit: Unit) -> WordAssociationPrompts:
    """Make the prompts of a test.

    Parameters
    ----------
    test : WordAssociationTest
    settings : WordAssociationSettings
    unit : {"share", "log-odds"}
        Scale to measure on.
    """
    wordings = group_wordings(settings.wordings)
    form: PromptForm = "list" if unit == "share" else "word"
    names = [wording.name for wording in wordings[form]]
    if settings.wordings and not set(names) & set(settings.wordings):
        raise UsageError(
            f"none of the wordings {', '.join(settings.wordings)} is for {_READ[unit]}; those are: {', '.join(names)}"
        )
    n, seed = settings.n_answers, settings.seed
    return WordAssociationPrompts(
        make_association_prompts(test, n, wordings=wordings["list"], seed=seed) if unit == "share" else (),
        make_option_prompts(test, wordings=wordings["word"]) if unit == "log-odds" else (),
        make_decision_prompts(test, n, wordings=wordings["decision"], seed=seed) if settings.decisions else (),
    )


def parse_replies(
    test: WordAssociationTest, prompts: Sequence[AssociationPrompt], replies: Sequence[Reply]
) -> list[ParsedReply]:
    """Parse which group each reply gives every attribute word to.

    Parameters
    ----------
    test : WordAssociationTest
    prompts : sequence of AssociationPrompt
    replies : sequence of Reply
        One reply per prompt.
    """
    parsed = [
        (reply, parse_reply(reply.text, test.words, prompt.groups))
        for prompt, reply in zip(prompts, replies, strict=True)
    ]
    return [replace(item, kind=_refine_kind(item.kind, reply)) for reply, item in parsed]


def parse_decisions(prompts: Sequence[DecisionPrompt], replies: Sequence[Reply]) -> list[ParsedDecision]:
    """Parse replies to decision prompts."""
    parsed = [
        (reply, parse_decision(reply.text, prompt.topics, prompt.groups))
        for prompt, reply in zip(prompts, replies, strict=True)
    ]
    return [
        item if item.kind == "undecided" else replace(item, kind=_refine_kind(item.kind, reply))
        for reply, item in parsed
    ]


def _refine_kind(kind: ReplyKind, reply: Reply) -> ReplyKind:
    """Return the kind of a reply; if nothing was read, the endpoint may state why."""
    return _UNANSWERED.get(reply.finish_reason or "", kind) if kind == "unparsed" else kind


def compute_log_odds(
    test: WordAssociationTest, prompts: Sequence[OptionPrompt], replies: Sequence[Reply]
) -> tuple[NDArray[np.float64], list[tuple[int, str, bool]]]:
    """Return a table of log-odds, and the pair, wording and order of each of its rows.

    Parameters
    ----------
    test : WordAssociationTest
    prompts : sequence of OptionPrompt
    replies : sequence of Reply
        One reply per prompt.
    """
    keys = [(prompt.pair, prompt.wording, prompt.stigmatised_first) for prompt in prompts]
    rows = {key: index for index, key in enumerate(dict.fromkeys(keys))}
    columns = {word: index for index, word in enumerate(test.words)}
    table = np.full((len(rows), len(columns)), np.nan)
    for key, prompt, reply in zip(keys, prompts, replies, strict=True):
        table[rows[key], columns[prompt.word]] = combine_log_odds(reply.log_p)
    return table, list(rows)


def combine_log_odds(log_p: Sequence[float]) -> float:
    """Return the log-odds of the second option, summed over the reported spellings of both; NaN if there are none."""
    reported = [pair for pair in zip(log_p[::2], log_p[1::2], strict=True) if not any(map(math.isnan, pair))]
    if not reported:
        return math.nan
    default, stigmatised = (float(np.logaddexp.reduce(option)) for option in zip(*reported, strict=True))
    odds = stigmatised - default
    return odds if math.isfinite(odds) else math.nan


class WordAssociationRowBuilder:
    """Builder of the rows of one test on one model."""

    def __init__(
        self, test: WordAssociationTest, identity: Identity, settings: WordAssociationSettings, unit: Unit
    ) -> None:
        self._test, self._settings, self._unit = test, settings, unit
        self._key = {**get_model_fields(identity), "test": test.name}

    def build_from_replies(self, prompts: Sequence[AssociationPrompt], replies: Sequence[Reply]) -> Iterator[Row]:
        """Yield the rows of replies in words, as shares."""
        parsed = parse_replies(self._test, prompts, replies)
        values = to_value_table(parsed)
        association = word_association(
            values,
            self._test.is_negative,
            pairs=[prompt.pair for prompt in prompts],
            stigmatised_first=[prompt.stigmatised_first for prompt in prompts],
            blocks=[prompt.block for prompt in prompts],
            confidence=1.0 - self._settings.alpha,
        )
        published = bai_score_test(compute_bai_scores(values, self._test.is_negative))
        kinds = count_kinds(parsed)
        counts: dict[str, Any] = {
            **{str(kind): count for kind, count in kinds.items()},
            "cut_off": sum(map(_is_cut_off, replies)),
            "refusal_rate": kinds["refused"] / len(parsed),
        }
        bai = Outcome(
            effect_size=none_if_nan(published.mean),
            p_value=none_if_nan(published.p_value),
            scale="D",
            test="t-test over answers",
        )
        listed = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items() if count)
        reason = f"no word was read in both orders ({listed})"
        yield Row("results", self._make_result(association, len(prompts), reason, counts, bai=bai))
        yield from self._count_replies("list", [prompt.wording for prompt in prompts], parsed, replies)
        yield from self._make_missing_rows(prompts, association.missing)
        yield from self._make_word_rows(association)

    def build_from_log_odds(self, prompts: Sequence[OptionPrompt], replies: Sequence[Reply]) -> Iterator[Row]:
        """Yield the rows of the likelihoods of the two group words, as log-odds."""
        values, keys = compute_log_odds(self._test, prompts, replies)
        association = word_association(
            values,
            self._test.is_negative,
            pairs=[pair for pair, _, _ in keys],
            stigmatised_first=[stigmatised_first for _, _, stigmatised_first in keys],
            log_odds=True,
            confidence=1.0 - self._settings.alpha,
        )
        reason = "the model does not report log-probabilities of the group words"
        reported = int((~np.isnan(values)).sum())
        filtered, failed = (sum(reply.finish_reason == kind for reply in replies) for kind in ("filter", "failed"))
        counts: dict[str, Any] = {
            "complete": reported,
            "partial": 0,
            "refused": 0,
            "filtered": filtered,
            "failed": failed,
            "unparsed": len(prompts) - reported - filtered - failed,
        }
        yield Row("results", self._make_result(association, len(prompts), reason, counts))
        yield from self._make_word_rows(association)

    def build_from_decisions(self, prompts: Sequence[DecisionPrompt], replies: Sequence[Reply]) -> Iterator[Row]:
        """Yield the rows of relative decisions: which of two people gets which task."""
        parsed = parse_decisions(prompts, replies)
        follows = [math.nan if item.follows is None else float(item.follows) for item in parsed]
        decisions = relative_decisions(
            follows,
            [prompt.task for prompt in prompts],
            orders=[prompt.stigmatised_first for prompt in prompts],
            confidence=1.0 - self._settings.alpha,
        )
        low, high = decisions.interval or (None, None)
        row = RelativeDecisionsRow(
            **self._key,
            answers=len(prompts),
            decided=int(decisions.counts.sum()),
            tasks=len(decisions.by_task),
            share=none_if_nan(decisions.share),
            low=low,
            high=high,
            bound_low=none_if_nan(decisions.bounds[0]),
            bound_high=none_if_nan(decisions.bounds[1]),
            **copy_fields(decisions, "p_by_task", "p_by_decision"),
        )
        yield Row("relative_decisions", row)
        yield from self._count_replies("decision", [prompt.wording for prompt in prompts], parsed, replies)

    def _make_result(
        self, association: WordAssociation, answers: int, reason: str, counts: dict[str, Any], **published: Outcome
    ) -> WordAssociationResult:
        test, is_known = self._test, not math.isnan(association.difference)
        row = WordAssociationResult(
            **self._key,
            title=test.title,
            topic=test.topic,
            about=test.about,
            question=test.variant_of,
            direction=1,
            status="measured" if is_known else "failed",
            reason=None if is_known else reason,
            outcome=Outcome(
                scale=self._unit,
                limit=1.0 if self._unit == "share" else None,
                confidence=1.0 - self._settings.alpha,
            ),
            alternatives=published,
            default=test.default.label,
            stigmatised=test.stigmatised.label,
            positive=test.positive.label,
            negative=test.negative.label,
            pairs=len(association.by_pair),
            answers=answers,
            missing_rate=float(association.missing.mean()),
            **counts,
        )
        return self._add_difference(row, association) if is_known else replace(row, warnings=tuple(list_warnings(row)))

    def _add_difference(self, row: WordAssociationResult, association: WordAssociation) -> WordAssociationResult:
        """Return the row with its outcomes, and with the claim and the warnings that follow from them."""
        (low, high), (bound_low, bound_high) = _finite(association.interval), _finite(association.bounds)
        n = {"words": len(self._test.words)}
        if association.claim != "words":
            n[association.claim] = row.pairs if association.claim == "pairs" else row.answers
        outcome = replace(
            row.outcome,
            effect_size=association.difference,
            ci_low=low,
            ci_high=high,
            p_value=association.p_value,
            p_floor=association.smallest_p_value,
            test="permutation of words" if association.claim == "words" else f"words crossed with {association.claim}",
            n=n,
            bound_low=bound_low,
            bound_high=bound_high,
        )
        p_values = {
            "read": association.p_value_without_missing,
            "fixed_groups": association.fixed_groups_p_value,
            "fixed_words": None if association.exact is None else association.exact.value,
        }
        alternatives = {
            name: Outcome(effect_size=association.difference, scale=self._unit, p_value=p_value)
            for name, p_value in p_values.items()
        }
        row = replace(
            row,
            alternatives={**alternatives, **row.alternatives},
            generalizes_to=association.claim,
            words_left_out=None if association.crossed is None else association.crossed.words_left_out,
            follows_order=association.follows_order,
            first=none_if_nan(association.first),
            outcome=outcome,
        )
        alpha = self._settings.alpha
        claim, doubt = choose_claim(row, alpha, is_descriptive=self._test.is_descriptive(alpha))
        outcome = replace(outcome, reason=explain_no_interval(row, alpha))
        row = replace(row, outcome=outcome, claim=claim, doubt=doubt)
        return replace(row, warnings=tuple(list_warnings(row)))

    def _count_replies(
        self,
        form: str,
        wordings: Sequence[str],
        parsed: Sequence[ParsedReply | ParsedDecision],
        replies: Sequence[Reply],
    ) -> Iterator[Row]:
        """Yield the counts of replies by wording, then the first replies of each kind."""
        for wording in dict.fromkeys(wordings):
            indices = [index for index, name in enumerate(wordings) if name == wording]
            kinds = Counter[str](parsed[index].kind for index in indices)
            counts: dict[str, Any] = {kind: kinds[kind] for kind in (*REPLY_KINDS, "undecided")}
            left_out = sum(parsed[index].left_out for index in indices)
            cut_off = sum(_is_cut_off(replies[index]) for index in indices)
            row: dict[str, Any] = {**self._key, "form": form, "wording": wording, "answers": len(indices), **counts}
            yield Row("replies", ReplyCounts(**row, left_out=left_out, cut_off=cut_off))
        by_kind = ((reply.kind, index) for index, reply in enumerate(parsed))
        for index in take_examples(by_kind):
            row = {**self._key, "form": form, "wording": wordings[index], "kind": parsed[index].kind}
            yield Row("examples", WordAssociationReplyExample(**row, reply=shorten_reply(replies[index].text)))

    def _make_missing_rows(self, prompts: Sequence[AssociationPrompt], missing: NDArray[np.bool_]) -> Iterator[Row]:
        """Yield missing responses by pole, by pair of group words and by the group word named first, if any."""
        if not missing.any():
            return
        nothing_read = missing.all(axis=1)
        pairs = sorted({prompt.pair for prompt in prompts})
        factors: dict[str, tuple[Sequence[str], MissingRates]] = {
            "pole": (
                (self._test.positive.label, self._test.negative.label),
                missing_by_pole(missing, self._test.is_negative),
            ),
            "pair of group words": (
                [" or ".join(self._test.pairs[pair]) for pair in pairs],
                missing_by_level(nothing_read, [prompt.pair for prompt in prompts]),
            ),
            "group word named first": (
                (self._test.default.label, self._test.stigmatised.label),
                missing_by_level(nothing_read, [prompt.stigmatised_first for prompt in prompts]),
            ),
        }
        for factor, (levels, rates) in factors.items():
            if len(levels) > 1:
                counts = zip(levels, rates.totals.tolist(), rates.missing.tolist(), rates.rates.tolist(), strict=True)
                for level, total, count, rate in counts:
                    row: dict[str, Any] = {"factor": factor, "level": level, "asked": total, "missing": count}
                    yield Row("missing", MissingResponses(**self._key, **row, rate=rate, p_value=rates.p_value))

    def _make_word_rows(self, association: WordAssociation) -> Iterator[Row]:
        by_block = np.zeros((0, len(association.by_word))) if association.log_odds else association.by_block
        for index, (word, is_negative) in enumerate(zip(self._test.words, self._test.is_negative, strict=True)):
            row = WordResult(
                **self._key,
                word=word,
                pole="negative" if is_negative else "positive",
                value=none_if_nan(association.by_word[index]),
                by_pair=tuple(map(none_if_nan, association.by_pair[:, index].tolist())),
                by_block=tuple(map(none_if_nan, by_block[:, index].tolist())),
            )
            yield Row("words", row)


def _is_cut_off(reply: Reply) -> bool:
    return reply.finish_reason == "length"


def _finite(ends: tuple[float, float] | None) -> tuple[float | None, float | None]:
    """Return an interval, or nothing where an end is unbounded."""
    return ends if ends is not None and all(map(math.isfinite, ends)) else (None, None)


def choose_claim(row: WordAssociationResult, alpha: float, *, is_descriptive: bool) -> tuple[Claim, str | None]:
    """Return the permitted use of a test's p-value, and the reason if it is not evidence.

    Parameters
    ----------
    row : WordAssociationResult
        A test with its outcome.
    alpha : float
        Level of significance.
    is_descriptive : bool
        If True, no response could make the test significant.
    """
    outcome = row.outcome
    if is_descriptive:  # a sanity check that cannot be tested neither passes nor fails
        return "descriptive" if row.about == "people" else "tested", _explain_too_few(row)
    if outcome.p_value is None or (outcome.p_floor or 0.0) > alpha:
        return "tested", _explain_not_testable(row)
    if row.follows_order:
        first = f"{outcome.scale} of the one named first: {format_decimal(row.first)}"
        return "inconclusive", f"the responses follow the order of the group words ({first})"
    doubt = _explain_missing(row, alpha) if outcome.p_value > alpha else None
    return "inconclusive" if doubt and _may_turn(row) else "tested", doubt


def explain_no_interval(row: WordAssociationResult, alpha: float) -> str | None:
    """Return why the difference has no interval, or None if it has one."""
    if row.outcome.ci_low is not None:
        return None
    if row.generalizes_to == "words":
        return "one pair of group words"
    by_pair = row.generalizes_to == "pairs"
    units = format_count(row.pairs, "pair") + " of group words" if by_pair else format_count(row.answers, "response")
    if row.outcome.p_value is None:
        return f"too few responses of {units} were read"
    if (row.outcome.p_floor or 0.0) > alpha:
        return f"{units} are too few"
    return "the log-odds do not vary, so only their sign is bounded"


def list_warnings(row: WordAssociationResult) -> Iterator[str]:
    """Yield warnings about a difference: missing responses, and a preference for the group word named first."""
    kinds = ("partial", "refused", "filtered", "failed", "unparsed")
    counts = [(count, kind) for kind in kinds if (count := getattr(row, kind))]
    if counts:
        yield f"{row.answers:,} replies: {', '.join(f'{count:,} {label_kind(kind)}' for count, kind in counts)}"
        yield from _describe_bounds(row)
    if row.cut_off and counts:
        yield f"{row.cut_off:,} of {row.answers:,} replies were cut off; use a larger max_tokens="
    if is_order_driven(row) and not row.follows_order:
        yield f"{row.outcome.scale} of the group word named first: {format_decimal(row.first)}"


def is_order_driven(row: WordAssociationResult) -> bool:
    """Return whether the group word named first gets much more or much less than the other."""
    middle, most = _LEANS[row.outcome.scale]
    return row.first is not None and abs(row.first - middle) >= most


def _describe_bounds(row: WordAssociationResult) -> Iterator[str]:
    low, high = row.outcome.bound_low, row.outcome.bound_high
    if low is not None and high is not None and low < high:
        bounds = format_interval(low, high)
        if bounds not in (row.doubt or ""):
            yield f"missing responses counted either way: {bounds}"


def _may_turn(row: WordAssociationResult) -> bool:
    """Return whether missing responses could turn the sign of the difference."""
    low, high = row.outcome.bound_low, row.outcome.bound_high
    return bool(row.missing_rate) and low is not None and high is not None and low <= 0.0 <= high


def _explain_too_few(row: WordAssociationResult) -> str:
    if row.generalizes_to == "pairs":
        n_pairs = f"{format_count(row.pairs, 'pair')} of group words"
        return f"{n_pairs} are too few to generalize to other group words (p is never below {_format_floor(row)})"
    return f"too few words for a test (p is never below {_format_floor(row)})"


def _explain_not_testable(row: WordAssociationResult) -> str:
    if row.outcome.scale == "log-odds" and row.missing_rate:
        missing = f"{_format_share(row.missing_rate)} of the log-odds were not reported"
        return f"{missing}, and log-odds have no bounds; use --read replies"
    if row.outcome.p_value is None:
        return "too few responses were read"
    few = "pairs of group words" if row.generalizes_to == "pairs" else "words"
    return f"too few {few} in the prompts (p is never below {_format_floor(row)})"


def _format_share(share: float) -> str:
    return format_percent(float(f"{share:.2g}"))


def _format_floor(row: WordAssociationResult) -> str:
    return format_p(row.outcome.p_floor)


def _explain_missing(row: WordAssociationResult, alpha: float) -> str | None:
    """Return how missing responses alone could have changed the conclusion, or None if they could not."""
    outcome, p_read = row.outcome, row.alternatives["read"].p_value
    if outcome.bound_low is None or outcome.bound_high is None or not row.missing_rate:
        return None
    missing = (
        f"{_format_share(row.missing_rate)} of responses are missing (refused, filtered, failed, unparsed or left out)"
    )
    if _may_turn(row):
        bounds = format_interval(outcome.bound_low, outcome.bound_high)
        return f"{missing}; depending on how they count, the difference is {bounds}"
    if p_read is not None and p_read <= alpha:
        against = format_p(outcome.p_value)
        return f"{missing}; p = {format_p(p_read)} without them, and {against} if they are counted against it"
    return None
