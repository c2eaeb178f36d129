"""Rows of word association tests, made from what was answered."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.models.answering import Reply
from biassay.models.base import Identity
from biassay.stats.association_score import association_scores, score_test
from biassay.stats.decisions import relative_decisions
from biassay.stats.missing_responses import MissingRates, missing_by_level, missing_by_pole
from biassay.stats.word_association import WordAssociation, word_association
from biassay.stimuli.word_associations import WordAssociationTest
from biassay.studies.examples import first_of_each, trimmed
from biassay.studies.study import Row
from biassay.studies.word_association.asking import Questions, decided, log_odds_of, readings_of
from biassay.studies.word_association.records import (
    Counts,
    DecisionsResult,
    Example,
    Missing,
    Result,
    Unit,
    WordResult,
)
from biassay.studies.word_association.settings import Settings
from biassay.texts.association_prompts import AssociationPrompt
from biassay.texts.association_replies import REPLY_KINDS, Reading, count_kinds, values_of
from biassay.texts.decision_prompts import Decision, DecisionPrompt

__all__ = ["Making"]


class Making:
    """One test on one model."""

    def __init__(self, test: WordAssociationTest, identity: Identity, settings: Settings, unit: Unit) -> None:
        self._test, self._settings, self._unit = test, settings, unit
        self._who: dict[str, Any] = {
            "model": identity.name,
            "options": identity.options,
            "model_revision": identity.revision,
            "test": test.name,
        }

    def by_replies(self, asked: Questions, said: Sequence[Reply]) -> Iterator[Row]:
        """From words: shares."""
        readings = readings_of(self._test, asked.lists, said)
        values = values_of(readings)
        found = word_association(
            values,
            self._test.is_negative,
            pairs=[one.pair for one in asked.lists],
            stigmatised_first=[one.stigmatised_first for one in asked.lists],
            blocks=[one.block for one in asked.lists],
            confidence=1.0 - self._settings.alpha,
        )
        published = score_test(association_scores(values, self._test.is_negative))
        kinds = count_kinds(readings)
        given: dict[str, Any] = {
            **{str(kind): count for kind, count in kinds.items()},
            "cut_off": sum(map(_is_cut_off, said)),
            "refusal_rate": kinds["refused"] / len(readings),
            "d": _number(published.mean),
            "d_p_value": _number(published.p_value),
        }
        told = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items() if count)
        yield Row("results", self._result(found, len(asked.lists), f"no word was read in both orders ({told})", given))
        yield from self._counts("list", [one.wording for one in asked.lists], readings, said)
        yield from self._missing(asked.lists, found.missing)
        yield from self._words(found)

    def by_log_odds(self, asked: Questions, said: Sequence[Reply]) -> Iterator[Row]:
        """From the likelihoods of the two group words: log-odds."""
        values, rows = log_odds_of(self._test, asked.words, said)
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
        filtered, failed = (sum(reply.ended == ended for reply in said) for ended in ("filter", "failed"))
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

    def by_decisions(self, asked: Sequence[DecisionPrompt], said: Sequence[Reply]) -> Iterator[Row]:
        """Who gets which task."""
        found = decided(asked, said)
        follows = [math.nan if one.follows is None else float(one.follows) for one in found]
        tested = relative_decisions(
            follows,
            [one.task for one in asked],
            orders=[one.stigmatised_first for one in asked],
            confidence=1.0 - self._settings.alpha,
        )
        low, high = tested.interval or (None, None)
        yield Row(
            "decisions",
            DecisionsResult(
                **self._who,
                answers=len(asked),
                decided=int(tested.counts.sum()),
                tasks=len(tested.by_task),
                share=_number(tested.share),
                low=low,
                high=high,
                bound_low=_number(tested.bounds[0]),
                bound_high=_number(tested.bounds[1]),
                p_by_task=tested.p_by_task,
                p_by_decision=tested.p_by_decision,
            ),
        )
        yield from self._counts("decision", [one.wording for one in asked], found, said)

    def _result(self, found: WordAssociation, answers: int, lacking: str, given: dict[str, Any]) -> Result:
        test = self._test
        known = not math.isnan(found.difference)
        low, high = _finite(found.interval)
        bound_low, bound_high = _finite(found.bounds)
        numbers: dict[str, Any] = {
            "difference": found.difference,
            "low": low,
            "high": high,
            "bound_low": bound_low,
            "bound_high": bound_high,
            "claim": found.claim,
            "p_value": found.p_value,
            "p_value_read": found.read_p_value,
            "p_floor": found.floor,
            "words_left_out": None if found.crossed is None else found.crossed.words_left_out,
            "p_these_groups": found.these_groups_p_value,
            "follows_order": found.follows_order,
            "p_by_word": None if found.exact is None else found.exact.value,
            "first": _number(found.first),
        }
        return Result(
            **self._who,
            title=test.title,
            status="measured" if known else "unanswered",
            reason=None if known else lacking,
            about=test.about,
            topic=test.topic,
            default=test.default.label,
            stigmatised=test.stigmatised.label,
            positive=test.positive.label,
            negative=test.negative.label,
            unit=self._unit,
            pairs=len(found.by_pair),
            answers=answers,
            missing_rate=float(found.missing.mean()),
            descriptive=test.is_descriptive(self._settings.alpha),
            alpha=self._settings.alpha,
            variant_of=test.variant_of or None,
            **given,
            **(numbers if known else {}),
        )

    def _counts(
        self, form: str, wordings: Sequence[str], found: Sequence[Reading | Decision], said: Sequence[Reply]
    ) -> Iterator[Row]:
        for wording in dict.fromkeys(wordings):
            own = [one for one, of in zip(found, wordings, strict=True) if of == wording]
            cut_off = sum(_is_cut_off(one) for one, of in zip(said, wordings, strict=True) if of == wording)
            kinds = Counter[str](one.kind for one in own)
            counts: dict[str, Any] = {kind: kinds[kind] for kind in (*REPLY_KINDS, "undecided")}
            left_out = sum(one.left_out for one in own)
            about: dict[str, Any] = {**self._who, "form": form, "wording": wording, "answers": len(own), **counts}
            yield Row("replies", Counts(**about, left_out=left_out, cut_off=cut_off))
        replies = zip(found, wordings, said, strict=True)
        for kind, wording, reply in first_of_each((one.kind, (one.kind, of, reply)) for one, of, reply in replies):
            about = {**self._who, "form": form, "wording": wording, "kind": kind}
            yield Row("examples", Example(**about, reply=trimmed(reply.text)))

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
                    yield Row("missing", Missing(**self._who, **given, rate=rate, p_value=rates.p_value))

    def _words(self, found: WordAssociation) -> Iterator[Row]:
        blocks = np.zeros((0, len(found.by_word))) if found.log_odds else found.by_block
        for at, (word, negative) in enumerate(zip(self._test.words, self._test.is_negative, strict=True)):
            pole: Any = "negative" if negative else "positive"
            by_pair, by_block = (tuple(map(_number, table[:, at].tolist())) for table in (found.by_pair, blocks))
            given: dict[str, Any] = {"value": _number(found.by_word[at]), "by_pair": by_pair, "by_block": by_block}
            yield Row("words", WordResult(**self._who, word=word, pole=pole, **given))


def _is_cut_off(reply: Reply) -> bool:
    return reply.ended == "length"


def _finite(ends: tuple[float, float] | None) -> tuple[float | None, float | None]:
    """Return an interval, or nothing where an end is unbounded."""
    return ends if ends is not None and all(map(math.isfinite, ends)) else (None, None)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
