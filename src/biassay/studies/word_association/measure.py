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
from biassay.results.outcomes import Outcome
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
from biassay.studies.word_association.claims import choose_claim, explain_no_interval, list_warnings
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
)
from biassay.studies.word_association.settings import WordAssociationSettings

__all__ = [
    "PromptSet",
    "WordAssociationRowBuilder",
    "choose_unit",
    "compute_log_odds",
    "group_wordings",
    "parse_decisions",
    "parse_replies",
]


_FORMS: tuple[PromptForm, ...] = ("list", "word", "decision")
_UNANSWERED: dict[str, ReplyKind] = {"refusal": "refused", "filter": "filtered", "failed": "failed"}
_ASKED: dict[Unit, str] = {"share": "replies in words", "log-odds": "log-odds"}


def group_wordings(names: Sequence[str]) -> dict[PromptForm, tuple[Wording, ...]]:
    """Wordings by form of prompt: those that are named, or all where none of the form is."""
    known = {form: select_wordings(form=form) for form in _FORMS}
    every = [wording.name for found in known.values() for wording in found]
    for name in names:
        if name not in every:
            raise UnknownNameError("wording", name, every, f"(wordings: {', '.join(every)})")
    return {form: tuple(one for one in found if one.name in names) or found for form, found in known.items()}


def choose_unit(settings: WordAssociationSettings, capabilities: Capabilities) -> Unit:
    """Log-odds where they are wanted or, by default, where the model tells them of whole words."""
    if settings.read == "auto":
        return "log-odds" if capabilities.option_log_p == "continuation" else "share"
    return "log-odds" if settings.read == "log-odds" else "share"


@dataclass(frozen=True)
class PromptSet:
    """All prompts of one test."""

    lists: tuple[AssociationPrompt, ...] = ()
    words: tuple[OptionPrompt, ...] = ()
    decisions: tuple[DecisionPrompt, ...] = ()

    @classmethod
    def of(cls, test: WordAssociationTest, settings: WordAssociationSettings, unit: Unit) -> PromptSet:
        """Make the prompts of a test for the settings and the scale that is measured."""
        wordings = group_wordings(settings.wordings)
        form: PromptForm = "list" if unit == "share" else "word"
        if settings.wordings and not any(one.name in settings.wordings for one in wordings[form]):
            raise UsageError(
                f"none of the wordings {', '.join(settings.wordings)} is for {_ASKED[unit]}; those are: "
                f"{', '.join(one.name for one in wordings[form])}"
            )
        n, seed = settings.n_answers, settings.seed
        return cls(
            make_association_prompts(test, n, wordings=wordings["list"], seed=seed) if unit == "share" else (),
            make_option_prompts(test, wordings=wordings["word"]) if unit == "log-odds" else (),
            make_decision_prompts(test, n, wordings=wordings["decision"], seed=seed) if settings.decisions else (),
        )

    @property
    def list_prompts(self) -> list[Prompt]:
        """Prompts that list attribute words."""
        return [Prompt(one.text, sample=one.repeat) for one in self.lists]

    @property
    def word_prompts(self) -> list[Prompt]:
        """Prompts for log-odds. Each group word is an option with and without a leading space."""
        return [Prompt(one.text, options=(*one.options, *(f" {word}" for word in one.options))) for one in self.words]

    @property
    def decision_prompts(self) -> list[Prompt]:
        """Prompts that ask for a relative decision."""
        return [Prompt(one.text, sample=one.repeat) for one in self.decisions]

    @property
    def prompts(self) -> list[Prompt]:
        """All prompts of the test."""
        return [*self.list_prompts, *self.word_prompts, *self.decision_prompts]


def parse_replies(
    test: WordAssociationTest, asked: Sequence[AssociationPrompt], said: Sequence[Reply]
) -> list[ParsedReply]:
    """Parse which group each reply gives every attribute word to.

    Parameters
    ----------
    test : WordAssociationTest
    asked : sequence of AssociationPrompt
    said : sequence of Reply
        One reply per prompt.
    """
    found = []
    for prompt, reply in zip(asked, said, strict=True):
        reading = parse_reply(reply.text, test.words, prompt.groups)
        found.append(ParsedReply(_refine_kind(reading.kind, reply), reading.to_stigmatised, reading.left_out))
    return found


def parse_decisions(asked: Sequence[DecisionPrompt], said: Sequence[Reply]) -> list[ParsedDecision]:
    """Parse replies to decision prompts."""
    found = []
    for prompt, reply in zip(asked, said, strict=True):
        one = parse_decision(reply.text, prompt.topics, prompt.groups)
        kind = one.kind if one.kind == "undecided" else _refine_kind(one.kind, reply)
        found.append(ParsedDecision(kind, one.follows, one.left_out))
    return found


def _refine_kind(kind: ReplyKind, reply: Reply) -> ReplyKind:
    """Return the kind of a reply; if nothing was read, the endpoint may state why."""
    return _UNANSWERED.get(reply.finish_reason or "", kind) if kind == "unparsed" else kind


def compute_log_odds(
    test: WordAssociationTest, asked: Sequence[OptionPrompt], said: Sequence[Reply]
) -> tuple[NDArray[np.float64], list[tuple[int, str, bool]]]:
    """Return a table of log-odds, and the pair, wording and order of each of its rows.

    Parameters
    ----------
    test : WordAssociationTest
    asked : sequence of OptionPrompt
    said : sequence of Reply
        One reply per prompt.
    """
    rows = list(dict.fromkeys((one.pair, one.wording, one.stigmatised_first) for one in asked))
    places = {row: i for i, row in enumerate(rows)}
    columns = {word: i for i, word in enumerate(test.words)}
    table = np.full((len(rows), len(columns)), np.nan)
    for one, reply in zip(asked, said, strict=True):
        table[places[one.pair, one.wording, one.stigmatised_first], columns[one.word]] = _combine_log_odds(reply.log_p)
    return table, rows


def _combine_log_odds(log_p: Sequence[float]) -> float:
    """Of the second option against the first, by the ways of writing both that the model tells; NaN: by none."""
    told = [pair for pair in zip(log_p[::2], log_p[1::2], strict=True) if not any(map(math.isnan, pair))]
    if not told:
        return math.nan
    default, stigmatised = (float(np.logaddexp.reduce(of)) for of in zip(*told, strict=True))
    odds = stigmatised - default
    return odds if math.isfinite(odds) else math.nan


class WordAssociationRowBuilder:
    """One test on one model."""

    def __init__(
        self, test: WordAssociationTest, identity: Identity, settings: WordAssociationSettings, unit: Unit
    ) -> None:
        self._test, self._settings, self._unit = test, settings, unit
        self._who: dict[str, Any] = {
            "model": identity.name,
            "options": identity.options,
            "model_revision": identity.revision,
            "test": test.name,
        }

    def rows_from_replies(self, asked: PromptSet, said: Sequence[Reply]) -> Iterator[Row]:
        """From words: shares."""
        readings = parse_replies(self._test, asked.lists, said)
        values = to_value_table(readings)
        found = word_association(
            values,
            self._test.is_negative,
            pairs=[one.pair for one in asked.lists],
            stigmatised_first=[one.stigmatised_first for one in asked.lists],
            blocks=[one.block for one in asked.lists],
            confidence=1.0 - self._settings.alpha,
        )
        published = bai_score_test(compute_bai_scores(values, self._test.is_negative))
        kinds = count_kinds(readings)
        given: dict[str, Any] = {
            **{str(kind): count for kind, count in kinds.items()},
            "cut_off": sum(map(_is_cut_off, said)),
            "refusal_rate": kinds["refused"] / len(readings),
        }
        bai = Outcome(
            effect_size=_none_if_nan(published.mean),
            p_value=_none_if_nan(published.p_value),
            scale="D",
            test="t-test over answers",
        )
        told = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items() if count)
        reason = f"no word was read in both orders ({told})"
        yield Row("results", self._result(found, len(asked.lists), reason, given, bai=bai))
        yield from self._counts("list", [one.wording for one in asked.lists], readings, said)
        yield from self._missing(asked.lists, found.missing)
        yield from self._words(found)

    def rows_from_log_odds(self, asked: PromptSet, said: Sequence[Reply]) -> Iterator[Row]:
        """From the likelihoods of the two group words: log-odds."""
        values, rows = compute_log_odds(self._test, asked.words, said)
        found = word_association(
            values,
            self._test.is_negative,
            pairs=[pair for pair, _, _ in rows],
            stigmatised_first=[first for _, _, first in rows],
            log_odds=True,
            confidence=1.0 - self._settings.alpha,
        )
        reason = "the model does not tell how likely the group words are"
        told = int((~np.isnan(values)).sum())
        filtered, failed = (sum(reply.finish_reason == ended for reply in said) for ended in ("filter", "failed"))
        kinds: dict[str, Any] = {
            "complete": told,
            "partial": 0,
            "refused": 0,
            "filtered": filtered,
            "failed": failed,
            "unparsed": len(asked.words) - told - filtered - failed,
        }
        yield Row("results", self._result(found, len(asked.words), reason, kinds))
        yield from self._words(found)

    def rows_from_decisions(self, asked: Sequence[DecisionPrompt], said: Sequence[Reply]) -> Iterator[Row]:
        """Who gets which task."""
        found = parse_decisions(asked, said)
        follows = [math.nan if one.follows is None else float(one.follows) for one in found]
        tested = relative_decisions(
            follows,
            [one.task for one in asked],
            orders=[one.stigmatised_first for one in asked],
            confidence=1.0 - self._settings.alpha,
        )
        low, high = tested.interval or (None, None)
        yield Row(
            "relative_decisions",
            RelativeDecisionsRow(
                **self._who,
                answers=len(asked),
                decided=int(tested.counts.sum()),
                tasks=len(tested.by_task),
                share=_none_if_nan(tested.share),
                low=low,
                high=high,
                bound_low=_none_if_nan(tested.bounds[0]),
                bound_high=_none_if_nan(tested.bounds[1]),
                p_by_task=tested.p_by_task,
                p_by_decision=tested.p_by_decision,
            ),
        )
        yield from self._counts("decision", [one.wording for one in asked], found, said)

    def _result(
        self, found: WordAssociation, answers: int, lacking: str, counts: dict[str, Any], **published: Outcome
    ) -> WordAssociationResult:
        test, is_known = self._test, not math.isnan(found.difference)
        row = WordAssociationResult(
            **self._who,
            title=test.title,
            topic=test.topic,
            about=test.about,
            question=test.variant_of,
            direction=1,
            status="measured" if is_known else "failed",
            reason=None if is_known else lacking,
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
            pairs=len(found.by_pair),
            answers=answers,
            missing_rate=float(found.missing.mean()),
            **counts,
        )
        return self._add_difference(row, found) if is_known else replace(row, warnings=tuple(list_warnings(row)))

    def _add_difference(self, row: WordAssociationResult, found: WordAssociation) -> WordAssociationResult:
        """Return the row with its outcomes, and with the claim and the warnings that follow from them."""
        (low, high), (bound_low, bound_high) = _finite(found.interval), _finite(found.bounds)
        n = {"words": len(self._test.words)}
        if found.claim != "words":
            n[found.claim] = row.pairs if found.claim == "pairs" else row.answers
        outcome = replace(
            row.outcome,
            effect_size=found.difference,
            ci_low=low,
            ci_high=high,
            p_value=found.p_value,
            p_floor=found.smallest_p_value,
            test="permutation of words" if found.claim == "words" else f"words crossed with {found.claim}",
            n=n,
            bound_low=bound_low,
            bound_high=bound_high,
        )
        p_values = {
            "read": found.p_value_without_missing,
            "fixed_groups": found.fixed_groups_p_value,
            "fixed_words": None if found.exact is None else found.exact.value,
        }
        alternatives = {
            name: Outcome(effect_size=found.difference, scale=self._unit, p_value=p_value)
            for name, p_value in p_values.items()
        }
        row = replace(
            row,
            alternatives={**alternatives, **row.alternatives},
            generalizes_to=found.claim,
            words_left_out=None if found.crossed is None else found.crossed.words_left_out,
            follows_order=found.follows_order,
            first=_none_if_nan(found.first),
            outcome=outcome,
        )
        alpha = self._settings.alpha
        claim, doubt = choose_claim(row, alpha, is_descriptive=self._test.is_descriptive(alpha))
        outcome = replace(outcome, reason=explain_no_interval(row, alpha))
        row = replace(row, outcome=outcome, claim=claim, doubt=doubt)
        return replace(row, warnings=tuple(list_warnings(row)))

    def _counts(
        self, form: str, wordings: Sequence[str], found: Sequence[ParsedReply | ParsedDecision], said: Sequence[Reply]
    ) -> Iterator[Row]:
        for wording in dict.fromkeys(wordings):
            own = [one for one, of in zip(found, wordings, strict=True) if of == wording]
            cut_off = sum(_is_cut_off(one) for one, of in zip(said, wordings, strict=True) if of == wording)
            kinds = Counter[str](one.kind for one in own)
            counts: dict[str, Any] = {kind: kinds[kind] for kind in (*REPLY_KINDS, "undecided")}
            left_out = sum(one.left_out for one in own)
            about: dict[str, Any] = {**self._who, "form": form, "wording": wording, "answers": len(own), **counts}
            yield Row("replies", ReplyCounts(**about, left_out=left_out, cut_off=cut_off))
        replies = zip(found, wordings, said, strict=True)
        for kind, wording, reply in take_examples((one.kind, (one.kind, of, reply)) for one, of, reply in replies):
            about = {**self._who, "form": form, "wording": wording, "kind": kind}
            yield Row("examples", WordAssociationReplyExample(**about, reply=shorten_reply(reply.text)))

    def _missing(self, asked: Sequence[AssociationPrompt], missing: NDArray[np.bool_]) -> Iterator[Row]:
        """Missing responses by pole, by pair of group words and by the group word named first, if there are any."""
        if not missing.any():
            return
        nothing_read = missing.all(axis=1)
        pairs = sorted({one.pair for one in asked})
        factors: dict[str, tuple[Sequence[str], MissingRates]] = {
            "pole": (
                (self._test.positive.label, self._test.negative.label),
                missing_by_pole(missing, self._test.is_negative),
            ),
            "pair of group words": (
                [" or ".join(self._test.pairs[pair]) for pair in pairs],
                missing_by_level(nothing_read, [one.pair for one in asked]),
            ),
            "group word named first": (
                (self._test.default.label, self._test.stigmatised.label),
                missing_by_level(nothing_read, [one.stigmatised_first for one in asked]),
            ),
        }
        for factor, (levels, rates) in factors.items():
            if len(levels) > 1:
                rows = zip(levels, rates.totals.tolist(), rates.missing.tolist(), rates.rates.tolist(), strict=True)
                for level, total, count, rate in rows:
                    given: dict[str, Any] = {"factor": factor, "level": level, "asked": total, "missing": count}
                    yield Row("missing", MissingResponses(**self._who, **given, rate=rate, p_value=rates.p_value))

    def _words(self, found: WordAssociation) -> Iterator[Row]:
        blocks = np.zeros((0, len(found.by_word))) if found.log_odds else found.by_block
        for at, (word, negative) in enumerate(zip(self._test.words, self._test.is_negative, strict=True)):
            pole: Any = "negative" if negative else "positive"
            by_pair, by_block = (tuple(map(_none_if_nan, table[:, at].tolist())) for table in (found.by_pair, blocks))
            given: dict[str, Any] = {"value": _none_if_nan(found.by_word[at]), "by_pair": by_pair, "by_block": by_block}
            yield Row("words", WordResult(**self._who, word=word, pole=pole, **given))


def _is_cut_off(reply: Reply) -> bool:
    return reply.finish_reason == "length"


def _finite(ends: tuple[float, float] | None) -> tuple[float | None, float | None]:
    """Return an interval, or nothing where an end is unbounded."""
    return ends if ends is not None and all(map(math.isfinite, ends)) else (None, None)


def _none_if_nan(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
