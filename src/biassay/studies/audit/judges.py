"""Scores of texts by a judge, a second model, and their correction by human labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.cache.outputs import ModelOutputs
from biassay.datasets.human_ratings import HumanRatings
from biassay.datasets.rubrics import Rubric
from biassay.errors import UsageError
from biassay.models.base import Identity, Reply
from biassay.prompts.judging import (
    RUBRIC_SCALE,
    Judgement,
    JudgementKind,
    parse_judged_pair,
    parse_judged_rating,
    write_pair_prompt,
    write_rating_prompt,
)
from biassay.prompts.requests import Prompt
from biassay.results.paired_comparison import MAX_REFUSAL_SHARE
from biassay.results.run_data import copy_fields, get_model_fields
from biassay.stats.judged_audit import JudgeAgreement, correct_scores, measure_agreement
from biassay.studies.audit.candidates import PositionTest, check_positions, draw_candidates
from biassay.studies.audit.outcomes import ResponseOutcome
from biassay.studies.audit.results import AuditJudgeRow
from biassay.studies.audit.texts import WrittenTexts
from biassay.studies.study import Row, derive_seed

Floats = NDArray[np.float64]
_REASONS: dict[JudgementKind, str] = {
    "refused": "judge refused",
    "repeated": "judge repeated the prompt",
    "unreadable": "judge unreadable",
    "failed": "judge did not respond",
}


@dataclass(frozen=True)
class JudgeRequest:
    """A prompt to the judge, and the numbers of the responses in it: one that is rated, or two that are compared."""

    prompt: Prompt
    numbers: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class JudgedTexts:
    """Texts of one model, and the requests to a judge for one outcome.

    Attributes
    ----------
    texts : WrittenTexts
    outcome : ResponseOutcome
        With a rubric.
    """

    texts: WrittenTexts
    outcome: ResponseOutcome

    @property
    def rubric(self) -> Rubric:
        """Rubric of the outcome."""
        assert self.outcome.rubric is not None
        return self.outcome.rubric

    @cached_property
    def requests(self) -> tuple[JudgeRequest, ...]:
        """All prompts to the judge."""
        masked = dict(zip(self.texts.written, self.texts.responses.masked, strict=True))
        if not self.outcome.compares:
            return tuple(JudgeRequest(Prompt(write_rating_prompt(self.rubric, masked[i])), (i,)) for i in masked)
        return tuple(
            JudgeRequest(Prompt(write_pair_prompt(self.rubric, masked[first], masked[second])), (first, second))
            for pair in self._draw_pairs()
            for first, second in (pair, pair[::-1])
        )

    def _draw_pairs(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of responses to the same prompt, about names of different groups where possible."""
        names, prompts = self.texts.inputs.names, self.texts.design.prompts
        blocks: dict[tuple[int, int], list[int]] = {}
        for number in self.texts.written:
            blocks.setdefault((prompts[number].document, prompts[number].prompt.sample), []).append(number)
        for (document, sample), numbers in blocks.items():
            groups = [names[prompts[number].names[0]].group for number in numbers]
            if len(numbers) < 2:
                continue
            seed = derive_seed(self.texts.inputs.settings.seed, "judged pairs", str(document), str(sample))
            for first, second in draw_candidates(groups, 2, np.random.default_rng(seed)):
                yield numbers[first], numbers[second]

    def parse(self, replies: Sequence[Reply]) -> JudgeScores:
        """Parse the responses of the judge, one per request, to a score per text."""
        judged = [
            self._parse(request.prompt.text, reply) for request, reply in zip(self.requests, replies, strict=True)
        ]
        values = np.full(len(self.texts.kinds), np.nan)
        reasons = [str(kind) for kind in self.texts.kinds]
        scores: dict[int, list[float]] = {}
        failures: dict[int, str] = {}
        for request, judgement in zip(self.requests, judged, strict=True):
            for index, number in enumerate(request.numbers):
                if judgement.value is None:
                    failures.setdefault(number, _REASONS[judgement.kind])
                else:
                    won = float(judgement.value == index)
                    scores.setdefault(number, []).append(won if self.outcome.compares else judgement.value)
        for number in self.texts.written:
            reasons[number] = failures.get(number, "" if number in scores else "no text to compare with")
            if not reasons[number]:
                values[number] = np.mean(scores[number])
        chosen = (
            [int(judgement.value) for judgement in judged if judgement.value is not None]
            if self.outcome.compares
            else []
        )
        return JudgeScores(values, reasons, tuple(judged), check_positions(chosen, 2))

    def _parse(self, prompt: str, reply: Reply) -> Judgement:
        if reply.finish_reason == "refusal":
            return Judgement("refused")
        if reply.finish_reason in ("failed", "filter"):
            return Judgement("failed")
        return (parse_judged_pair if self.outcome.compares else parse_judged_rating)(prompt, reply.text)


@dataclass(frozen=True, eq=False)
class JudgeScores:
    """Scores of texts by a judge.

    Attributes
    ----------
    values : (responses,) float
        Ratings, or shares of comparisons in which the text was chosen; NaN where missing.
    reasons : sequence of str
        Why a score is missing; empty if it is not.
    judgements : tuple of Judgement
        One per request.
    positions : PositionTest or None
        Whether choices follow the order of two texts.
    """

    values: Floats
    reasons: Sequence[str]
    judgements: tuple[Judgement, ...]
    positions: PositionTest | None

    def doubt(self, alpha: float) -> str:
        """Return why differences are in doubt: the judge follows the order of the texts."""
        if self.positions is None or not self.positions.follows(alpha):
            return ""
        share = max(self.positions.counts) / sum(self.positions.counts)
        return f"the judge follows the order of the texts: one position is chosen in {share:.0%} of comparisons"


@dataclass(frozen=True, eq=False)
class CorrectedScores:
    """Scores of a judge corrected by human labels, why some are missing, and how both agree by group."""

    values: Floats
    reasons: Sequence[str]
    agreement: dict[str, JudgeAgreement]


def list_judge_prompts(texts: WrittenTexts) -> tuple[Prompt, ...]:
    """Return all prompts to the judge about the texts of one model, in the order of the texts."""
    return tuple(dict.fromkeys(request.prompt for request in _list_requests(texts)))


def _list_requests(texts: WrittenTexts) -> list[JudgeRequest]:
    outcomes = [outcome for outcome in texts.inputs.outcomes if outcome.rubric is not None]
    requests = [request for outcome in outcomes for request in JudgedTexts(texts, outcome).requests]
    prompts = texts.design.prompts
    return sorted(requests, key=lambda one: (prompts[one.numbers[0]].prompt.sample, prompts[one.numbers[0]].document))


def select_judged(texts: WrittenTexts, model: ModelOutputs) -> WrittenTexts:
    """Return the texts, or a balanced part of them if the budget did not allow all judgements."""
    if model.judge is None:
        return texts
    requests = _list_requests(texts)
    answered = model.judge.find_answered([request.prompt for request in requests])
    open_ones = {
        i for request, is_answered in zip(requests, answered, strict=True) if not is_answered for i in request.numbers
    }
    return texts.select_judged([i not in open_ones for i in range(len(texts.kinds))], model)


def judge_texts(judged: JudgedTexts, judge: ModelOutputs) -> JudgeScores:
    """Score texts by the responses of the judge."""
    prompts = [request.prompt for request in judged.requests]
    return judged.parse(judge.replies(prompts) if prompts else ())


def check_labels(labels: HumanRatings, all_texts: Sequence[WrittenTexts]) -> None:
    """Raise UsageError if some labels are of responses that no model of the run gave."""
    known = {id for texts in all_texts for id in texts.ids}
    unknown = [id for id in labels.groups if id not in known]
    if unknown:
        listed = ", ".join(unknown[:3])
        raise UsageError(
            f"{labels.path}: {len(unknown):,} of {len(labels.groups):,} labelled responses are not in this run, such "
            f"as {listed}; use the prompts, names and models of the run whose responses were labelled"
        )


def correct_by_labels(judged: JudgedTexts, scores: JudgeScores, labels: HumanRatings) -> CorrectedScores | None:
    """Correct the ratings of a judge; None if no response of the model was labelled for this rubric.

    Names are left out if no response with a score is labelled, for example because the judge refused it.

    Parameters
    ----------
    judged : JudgedTexts
    scores : JudgeScores
    labels : HumanRatings

    Raises
    ------
    UsageError
        If more than 20% of names would be left out.
    """
    texts, pair = judged.texts, (judged.rubric.low, judged.rubric.high)
    low, high = RUBRIC_SCALE
    if judged.outcome.compares or pair not in labels.pairs:
        return None
    rated = dict(zip(labels.groups, labels.means[:, labels.pairs.index(pair)].tolist(), strict=True))
    known = low + (high - low) / 100.0 * np.array([rated.get(id, np.nan) for id in texts.ids])
    if np.isnan(known).all():
        return None
    prompts = texts.design.prompts
    shape = len(texts.inputs.names), len(texts.inputs.documents), max(prompt.prompt.sample for prompt in prompts) + 1
    indices = tuple(np.array([(prompt.names[0], prompt.document, prompt.prompt.sample) for prompt in prompts]).T)
    judge, human = np.full(shape, np.nan), np.full(shape, np.nan)
    judge[indices], human[indices] = scores.values, known
    is_labelled = ~np.isnan(judge + human).all(axis=(1, 2))
    names = texts.inputs.names
    if is_labelled.mean() < 1.0 - MAX_REFUSAL_SHARE:
        first = names[int(np.argmin(is_labelled))].full_name
        raise UsageError(
            f"{labels.path}: {np.sum(~is_labelled):,} of {len(names):,} names have no labelled response with a score "
            f"of the judge, such as {first}; label at least one response of every name"
        )
    groups = [name.group for name, is_kept in zip(names, is_labelled, strict=True) if is_kept]
    corrected = np.full(shape, np.nan)
    corrected[is_labelled] = correct_scores(judge[is_labelled], human[is_labelled], groups)
    reasons = [
        reason if reason or is_labelled[prompt.names[0]] else "name without labels"
        for reason, prompt in zip(scores.reasons, prompts, strict=True)
    ]
    agreement = measure_agreement(judge[is_labelled], human[is_labelled], groups)
    return CorrectedScores(corrected[indices], reasons, agreement)


def count_judgements(
    judged: JudgedTexts, scores: JudgeScores, corrected: CorrectedScores | None, judge: Identity
) -> Iterator[Row]:
    """Yield the numbers of a judge's responses by kind, with its agreement with people.

    Ratings are counted by group, and comparisons together, because they are about two groups.

    Parameters
    ----------
    judged : JudgedTexts
    scores : JudgeScores
    corrected : CorrectedScores or None
    judge : Identity
        Identity of the judge.
    """
    texts = judged.texts
    groups = [name.group for name in texts.inputs.names]
    owners = [
        "" if judged.outcome.compares else groups[texts.design.prompts[request.numbers[0]].names[0]]
        for request in judged.requests
    ]
    for group in ("",) if judged.outcome.compares else dict.fromkeys(groups):
        kinds = Counter(
            judgement.kind for owner, judgement in zip(owners, scores.judgements, strict=True) if owner == group
        )
        counts: dict[str, Any] = {kind: kinds[kind] for kind in _REASONS}
        agreement: dict[str, Any] = {}
        if corrected is not None and group in corrected.agreement:
            agreement = copy_fields(corrected.agreement[group], "n_labels", "judge_mean", "human_mean", "tau")
        row = AuditJudgeRow(
            **get_model_fields(texts.identity),
            measure=judged.outcome.name,
            judge=judge.name,
            group=group,
            judgements=kinds.total(),
            scored=kinds["scored"],
            **counts,
            **agreement,
        )
        yield Row("judges", row)
