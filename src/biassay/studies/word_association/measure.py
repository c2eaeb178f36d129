"""Make prompts, parse replies and compute the rows of a word association test."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.cache.outputs import Capabilities
from biassay.datasets.word_associations import WordAssociationTest
from biassay.models.base import Identity, Reply
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
from biassay.studies.word_association.prompts import AssociationPrompt
from biassay.studies.word_association.replies import (
    LIST_KINDS,
    ParsedReply,
    ReplyKind,
    count_kinds,
    parse_decision,
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
)
from biassay.studies.word_association.settings import WordAssociationSettings

_UNANSWERED: dict[str, ReplyKind] = {"refusal": "refused", "filter": "filtered", "failed": "failed"}
_LEANS: dict[str, tuple[float, float]] = {"share": (0.5, 0.2), "log-odds": (0.0, 0.85)}
"""Value of the group word named first if order does not matter, and the distance from it that is reported."""


def choose_unit(settings: WordAssociationSettings, capabilities: Capabilities) -> Unit:
    """Return the scale to measure on: by default log-odds if the model reports them for whole words."""
    if settings.read == "auto":
        return "log-odds" if capabilities.option_log_p == "continuation" else "share"
    return "log-odds" if settings.read == "log-odds" else "share"


def parse_replies(
    test: WordAssociationTest, prompts: Sequence[AssociationPrompt], replies: Sequence[Reply]
) -> list[ParsedReply]:
    """Parse which group each reply assigns the words of its prompt to.

    Parameters
    ----------
    test : WordAssociationTest
    prompts : sequence of AssociationPrompt
        Prompts for lists or decisions.
    replies : sequence of Reply
        One reply per prompt.
    """
    parsed = []
    for prompt, reply in zip(prompts, replies, strict=True):
        is_decision = prompt.form == "decision"
        item = (
            parse_decision(reply.text, prompt.words, prompt.groups)
            if is_decision
            else parse_reply(reply.text, test.words, prompt.groups)
        )
        if item.kind == "unparsed":  # the endpoint may state why nothing was read
            item = replace(item, kind=_UNANSWERED.get(reply.finish_reason or "", "unparsed"))
        parsed.append(item)
    return parsed


def compute_log_odds(
    test: WordAssociationTest, prompts: Sequence[AssociationPrompt], replies: Sequence[Reply]
) -> tuple[NDArray[np.float64], list[AssociationPrompt]]:
    """Compute a table of log-odds with one column per word, and return it with one prompt per row.

    A row has the replies for one pair of group words, one wording and one order.

    Parameters
    ----------
    test : WordAssociationTest
    prompts : sequence of AssociationPrompt
        Prompts about single words.
    replies : sequence of Reply
        One reply per prompt.
    """
    rows: dict[tuple[int, str, bool], tuple[AssociationPrompt, list[float]]] = {}
    for prompt, reply in zip(prompts, replies, strict=True):
        key = prompt.pair, prompt.wording, prompt.stigmatised_first
        _, values = rows.setdefault(key, (prompt, [math.nan] * len(test.words)))
        values[test.words.index(prompt.words[0])] = combine_log_odds(reply.log_p)
    return np.array([values for _, values in rows.values()]), [prompt for prompt, _ in rows.values()]


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

    def build(self, prompts: Sequence[AssociationPrompt], replies: Sequence[Reply]) -> Iterator[Row]:
        """Yield the rows of all replies: those of shares or log-odds first, then decisions."""
        n = sum(prompt.form != "decision" for prompt in prompts)
        if self._unit == "log-odds":
            yield from self._build_from_log_odds(prompts[:n], replies[:n])
        else:
            yield from self._build_from_replies(prompts[:n], replies[:n])
        if n < len(prompts):
            yield from self._build_from_decisions(prompts[n:], replies[n:])

    def _build_from_replies(self, prompts: Sequence[AssociationPrompt], replies: Sequence[Reply]) -> Iterator[Row]:
        parsed = parse_replies(self._test, prompts, replies)
        values = to_value_table(parsed)
        association = self._associate(values, prompts)
        published = bai_score_test(compute_bai_scores(values, self._test.is_negative))
        kinds = Counter[str](item.kind for item in parsed)
        counts: dict[str, Any] = {
            **{kind: kinds[kind] for kind in LIST_KINDS},
            "cut_off": _count_cut_off(replies),
            "refusal_rate": kinds["refused"] / len(parsed),
        }
        bai = Outcome(
            effect_size=none_if_nan(published.mean),
            p_value=none_if_nan(published.p_value),
            scale="D",
            test="t-test over answers",
        )
        listed = ", ".join(f"{kinds[kind]:,} {kind}" for kind in LIST_KINDS if kinds[kind])
        reason = f"no word was read in both orders ({listed})"
        yield Row("results", self._make_result(association, len(prompts), reason, counts, bai=bai))
        yield from self._count_replies(prompts, parsed, replies)
        yield from self._make_missing_rows(prompts, association.missing)
        yield from self._make_word_rows(association)

    def _build_from_log_odds(self, prompts: Sequence[AssociationPrompt], replies: Sequence[Reply]) -> Iterator[Row]:
        values, design = compute_log_odds(self._test, prompts, replies)
        association = self._associate(values, design)
        reason = "the model does not report log-probabilities of the group words"
        counts: dict[str, Any] = {"complete": int((~np.isnan(values)).sum()), "partial": 0, "refused": 0}
        for kind, stated in (("filtered", "filter"), ("failed", "failed")):
            counts[kind] = sum(reply.finish_reason == stated for reply in replies)
        counts["unparsed"] = len(prompts) - sum(counts.values())
        yield Row("results", self._make_result(association, len(prompts), reason, counts))
        yield from self._make_word_rows(association)

    def _build_from_decisions(self, prompts: Sequence[AssociationPrompt], replies: Sequence[Reply]) -> Iterator[Row]:
        """Yield the rows of relative decisions: which of two people gets which task."""
        parsed = parse_replies(self._test, prompts, replies)
        decisions = relative_decisions(
            np.array([item.follows for item in parsed], dtype=np.float64),
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
        yield from self._count_replies(prompts, parsed, replies)

    def _associate(self, values: NDArray[np.float64], design: Sequence[AssociationPrompt]) -> WordAssociation:
        log_odds = self._unit == "log-odds"
        return word_association(
            values,
            self._test.is_negative,
            pairs=[prompt.pair for prompt in design],
            stigmatised_first=[prompt.stigmatised_first for prompt in design],
            blocks=None if log_odds else [prompt.block for prompt in design],
            log_odds=log_odds,
            confidence=1.0 - self._settings.alpha,
        )

    def _make_result(
        self, association: WordAssociation, answers: int, reason: str, counts: dict[str, Any], **published: Outcome
    ) -> WordAssociationResult:
        test, is_known = self._test, not math.isnan(association.difference)
        labels: dict[str, Any] = {role: concept.label for role, concept in test.concepts.items()}
        row = WordAssociationResult(
            **self._key,
            **labels,
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
            pairs=len(association.by_pair),
            answers=answers,
            missing_rate=float(association.missing.mean()),
            **counts,
        )
        row = self._add_difference(row, association) if is_known else row
        return replace(row, warnings=tuple(list_warnings(row)))

    def _add_difference(self, row: WordAssociationResult, association: WordAssociation) -> WordAssociationResult:
        """Return the row with its outcomes and the claim that they support."""
        (low, high), (bound_low, bound_high) = _finite(association.interval), _finite(association.bounds)
        claim = association.claim
        units = {"pairs": {"pairs": row.pairs}, "answers": {"answers": row.answers}, "words": {}}
        outcome = replace(
            row.outcome,
            effect_size=association.difference,
            ci_low=low,
            ci_high=high,
            p_value=association.p_value,
            p_floor=association.smallest_p_value,
            test="permutation of words" if claim == "words" else f"words crossed with {claim}",
            n={"words": len(self._test.words), **units[claim]},
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
            generalizes_to=claim,
            words_left_out=None if association.crossed is None else association.crossed.words_left_out,
            follows_order=association.follows_order,
            first=none_if_nan(association.first),
            outcome=outcome,
        )
        alpha = self._settings.alpha
        use, doubt = choose_claim(row, alpha, is_descriptive=self._test.is_descriptive(alpha))
        return replace(row, outcome=replace(outcome, reason=explain_no_interval(row, alpha)), claim=use, doubt=doubt)

    def _count_replies(
        self, prompts: Sequence[AssociationPrompt], parsed: Sequence[ParsedReply], replies: Sequence[Reply]
    ) -> Iterator[Row]:
        """Yield the counts of replies by wording, then the first replies of each kind."""
        for wording in dict.fromkeys(prompt.wording for prompt in prompts):
            indices = [index for index, prompt in enumerate(prompts) if prompt.wording == wording]
            counts: dict[str, Any] = {
                "form": prompts[0].form,
                "wording": wording,
                "answers": len(indices),
                **count_kinds(parsed[index] for index in indices),
                "left_out": sum(parsed[index].left_out for index in indices),
                "cut_off": _count_cut_off([replies[index] for index in indices]),
            }
            yield Row("replies", ReplyCounts(**self._key, **counts))
        for index in take_examples((reply.kind, index) for index, reply in enumerate(parsed)):
            row: dict[str, Any] = {
                **self._key,
                "form": prompts[0].form,
                "wording": prompts[index].wording,
                "kind": parsed[index].kind,
            }
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
            columns = rates.totals.tolist(), rates.missing.tolist(), rates.rates.tolist()
            for level, asked, lost, rate in zip(levels, *columns, strict=True) if len(levels) > 1 else ():
                fields: dict[str, Any] = {**self._key, "factor": factor, "level": level, "asked": asked}
                yield Row("missing", MissingResponses(**fields, missing=lost, rate=rate, p_value=rates.p_value))

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


def _count_cut_off(replies: Sequence[Reply]) -> int:
    return sum(reply.finish_reason == "length" for reply in replies)


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
        return "descriptive" if row.about == "people" else "tested", _explain_floor(row)
    if outcome.p_value is None or (outcome.p_floor or 0.0) > alpha:
        if outcome.scale == "log-odds" and row.missing_rate:
            missing = f"{_format_share(row.missing_rate)} of the log-odds were not reported"
            return "tested", f"{missing}, and log-odds have no bounds; use --read replies"
        return "tested", "too few responses were read" if outcome.p_value is None else _explain_floor(row)
    if row.follows_order:
        first = f"{outcome.scale} of the one named first: {format_decimal(row.first)}"
        return "inconclusive", f"the responses follow the order of the group words ({first})"
    doubt = _explain_missing(row, alpha) if outcome.p_value > alpha else None
    return "inconclusive" if doubt and row.may_change_sign else "tested", doubt


def _explain_floor(row: WordAssociationResult) -> str:
    """Explain that the design is too small for a significant p-value."""
    floor = f"(p is never below {format_p(row.outcome.p_floor)})"
    if row.generalizes_to == "pairs":
        n_pairs = f"{format_count(row.pairs, 'pair')} of group words"
        return f"{n_pairs} are too few to generalize to other group words {floor}"
    return f"too few words for a test {floor}"


def _explain_missing(row: WordAssociationResult, alpha: float) -> str | None:
    """Return how missing responses alone could have changed the conclusion, or None if they could not."""
    outcome, p_read = row.outcome, row.alternatives["read"].p_value
    if outcome.bound_low is None or not row.missing_rate:
        return None
    missing = (
        f"{_format_share(row.missing_rate)} of responses are missing (refused, filtered, failed, unparsed or left out)"
    )
    if row.may_change_sign:
        bounds = format_interval(outcome.bound_low, outcome.bound_high)
        return f"{missing}; depending on how they count, the difference is {bounds}"
    if p_read is not None and p_read <= alpha:
        against = format_p(outcome.p_value)
        return f"{missing}; p = {format_p(p_read)} without them, and {against} if they are counted against it"
    return None


def _format_share(share: float) -> str:
    return format_percent(float(f"{share:.2g}"))


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
    low, high = row.outcome.bound_low, row.outcome.bound_high
    if counts := row.describe_missing():
        yield f"{row.answers:,} replies: {counts}"
        if low is not None and high is not None and low < high:
            bounds = format_interval(low, high)
            if bounds not in (row.doubt or ""):
                yield f"missing responses counted either way: {bounds}"
        if row.cut_off:
            yield f"{row.cut_off:,} of {row.answers:,} replies were cut off; use a larger max_tokens="
    middle, most = _LEANS[row.outcome.scale]
    if row.first is not None and abs(row.first - middle) >= most and not row.follows_order:
        yield f"{row.outcome.scale} of the group word named first: {format_decimal(row.first)}"
