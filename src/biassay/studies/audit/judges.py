"""Score texts with a second model as a judge, and correct its scores by human labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.cache.outputs import ModelOutputs
from biassay.datasets.human_ratings import HumanRatings
from biassay.datasets.rubrics import Rubric, load_rubric, rubric_names
from biassay.errors import UsageError
from biassay.grouping import group_pairs
from biassay.io import replace_controls
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
from biassay.results.run_data import RunData, copy_fields, get_model_fields
from biassay.stats.judged_audit import JudgeAgreement, correct_scores, measure_agreement
from biassay.studies.audit.outcomes import ResponseOutcome, get_outcome
from biassay.studies.audit.outcomes.responses import Responses
from biassay.studies.audit.responses import ModelResponses, PositionTest, check_positions, draw_candidates
from biassay.studies.audit.results import AuditJudgeRow, AuditText
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
    responses : ModelResponses
    outcome : ResponseOutcome
        With a rubric.
    """

    responses: ModelResponses
    outcome: ResponseOutcome

    @property
    def rubric(self) -> Rubric:
        """Rubric of the outcome."""
        assert self.outcome.rubric is not None
        return self.outcome.rubric

    @cached_property
    def requests(self) -> tuple[JudgeRequest, ...]:
        """All prompts to the judge."""
        masked = dict(zip(self.responses.written, self.responses.texts.masked, strict=True))
        if not self.outcome.compares:
            return tuple(JudgeRequest(Prompt(write_rating_prompt(self.rubric, masked[i])), (i,)) for i in masked)
        return tuple(
            JudgeRequest(Prompt(write_pair_prompt(self.rubric, masked[first], masked[second])), (first, second))
            for pair in self._draw_pairs()
            for first, second in (pair, pair[::-1])
        )

    def _draw_pairs(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of responses to the same prompt, about names of different groups where possible."""
        prompts, groups = self.responses.design.prompts, self.responses.groups
        blocks = group_pairs(((prompts[i].document, prompts[i].prompt.sample), i) for i in self.responses.written)
        for (document, sample), numbers in blocks.items():
            if len(numbers) < 2:
                continue
            seed = derive_seed(self.responses.inputs.settings.seed, "judged pairs", str(document), str(sample))
            for first, second in draw_candidates([groups[i] for i in numbers], 2, np.random.default_rng(seed)):
                yield numbers[first], numbers[second]

    def read_scores(self, judge: ModelOutputs) -> JudgeScores:
        """Read the scores of the texts from the outputs of the judge."""
        prompts, compares = [request.prompt for request in self.requests], self.outcome.compares
        replies = judge.replies(prompts) if prompts else ()
        judged = [self._parse(prompt.text, reply) for prompt, reply in zip(prompts, replies, strict=True)]
        values = np.full(len(self.responses.kinds), np.nan)
        reasons = [str(kind) for kind in self.responses.kinds]
        scores: dict[int, list[float]] = {}
        failures: dict[int, str] = {}
        for request, judgement in zip(self.requests, judged, strict=True):
            for index, number in enumerate(request.numbers):
                if judgement.value is None:
                    failures.setdefault(number, _REASONS[judgement.kind])
                else:
                    won = float(judgement.value == index)
                    scores.setdefault(number, []).append(won if compares else judgement.value)
        for number in self.responses.written:
            reasons[number] = failures.get(number, "" if number in scores else "no text to compare with")
            if not reasons[number]:
                values[number] = np.mean(scores[number])
        chosen = [int(judgement.value) for judgement in judged if compares and judgement.value is not None]
        return JudgeScores(values, reasons, tuple(judged), check_positions(chosen, 2))

    def _parse(self, prompt: str, reply: Reply) -> Judgement:
        if reply.finish_reason == "refusal":
            return Judgement("refused")
        if reply.finish_reason in ("failed", "filter"):
            return Judgement("failed")
        return (parse_judged_pair if self.outcome.compares else parse_judged_rating)(prompt, reply.text)

    def apply_labels(self, scores: JudgeScores, labels: HumanRatings) -> JudgeScores | None:
        """Correct the ratings of the judge by human labels. Return None if people labelled no response for this rubric.

        Names are left out if no response with a score is labelled, for example because the judge refused it.

        Parameters
        ----------
        scores : JudgeScores
        labels : HumanRatings

        Raises
        ------
        UsageError
            If more than 20% of names would be left out.
        """
        pair, (low, high), names = (self.rubric.low, self.rubric.high), RUBRIC_SCALE, self.responses.inputs.names
        if self.outcome.compares or pair not in labels.pairs:
            return None
        rated = dict(zip(labels.groups, labels.means[:, labels.pairs.index(pair)].tolist(), strict=True))
        known = low + (high - low) / 100.0 * np.array([rated.get(id, np.nan) for id in self.responses.ids])
        if np.isnan(known).all():
            return None
        prompts = self.responses.design.prompts
        shape = len(names), len(self.responses.inputs.documents), max(prompt.prompt.sample for prompt in prompts) + 1
        indices = tuple(np.array([(prompt.names[0], prompt.document, prompt.prompt.sample) for prompt in prompts]).T)
        judge, human = np.full(shape, np.nan), np.full(shape, np.nan)
        judge[indices], human[indices] = scores.values, known
        is_labelled = ~np.isnan(judge + human).all(axis=(1, 2))
        if is_labelled.mean() < 1.0 - MAX_REFUSAL_SHARE:
            first = names[int(np.argmin(is_labelled))].full_name
            raise UsageError(
                f"{labels.path}: {np.sum(~is_labelled):,} of {len(names):,} names have no labelled response with a "
                f"score of the judge, such as {first}; label at least one response of every name"
            )
        groups = [name.group for name, is_kept in zip(names, is_labelled, strict=True) if is_kept]
        corrected = np.full(shape, np.nan)
        corrected[is_labelled] = correct_scores(judge[is_labelled], human[is_labelled], groups)
        reasons = [
            reason if reason or is_labelled[prompt.names[0]] else "name without labels"
            for reason, prompt in zip(scores.reasons, prompts, strict=True)
        ]
        agreement = measure_agreement(judge[is_labelled], human[is_labelled], groups)
        return replace(scores, values=corrected[indices], reasons=reasons, agreement=agreement)

    def count_judgements(self, scores: JudgeScores, judge: Identity) -> Iterator[Row]:
        """Yield the numbers of a judge's responses by kind, with its agreement with people.

        Ratings are counted by group, and comparisons together, because they are about two groups.

        Parameters
        ----------
        scores : JudgeScores
        judge : Identity
            Identity of the judge.
        """
        compares, groups = self.outcome.compares, self.responses.groups
        owners = ["" if compares else groups[request.numbers[0]] for request in self.requests]
        for group in ("",) if compares else dict.fromkeys(name.group for name in self.responses.inputs.names):
            kinds = Counter(one.kind for owner, one in zip(owners, scores.judgements, strict=True) if owner == group)
            counts: dict[str, Any] = {kind: kinds[kind] for kind in ("scored", *_REASONS)}
            if group in scores.agreement:
                counts |= copy_fields(scores.agreement[group], "n_labels", "judge_mean", "human_mean", "tau")
            row = AuditJudgeRow(
                **get_model_fields(self.responses.identity),
                measure=self.outcome.name,
                judge=judge.name,
                group=group,
                judgements=kinds.total(),
                **counts,
            )
            yield Row("judges", row)


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
    agreement : dict of str to JudgeAgreement
        By group, if the scores are corrected by human labels.
    """

    values: Floats
    reasons: Sequence[str]
    judgements: tuple[Judgement, ...]
    positions: PositionTest | None
    agreement: dict[str, JudgeAgreement] = field(default_factory=dict)

    def doubt(self, alpha: float) -> str:
        """Return why differences are in doubt: the judge follows the order of the texts."""
        if self.positions is None or not self.positions.follows(alpha):
            return ""
        share = max(self.positions.counts) / sum(self.positions.counts)
        return f"the judge follows the order of the texts: one position is chosen in {share:.0%} of comparisons"


def list_judge_prompts(texts: ModelResponses) -> tuple[Prompt, ...]:
    """Return all prompts to the judge about the texts of one model, in the order of the texts."""
    return tuple(dict.fromkeys(request.prompt for request in _list_requests(texts)))


def _list_requests(texts: ModelResponses) -> list[JudgeRequest]:
    outcomes = [outcome for outcome in texts.inputs.outcomes if outcome.rubric is not None]
    requests = [request for outcome in outcomes for request in JudgedTexts(texts, outcome).requests]
    prompts = texts.design.prompts
    return sorted(requests, key=lambda one: (prompts[one.numbers[0]].prompt.sample, prompts[one.numbers[0]].document))


def select_judged(texts: ModelResponses, model: ModelOutputs) -> ModelResponses:
    """Return the texts, or a balanced part of them if the budget did not allow all judgements."""
    if model.judge is None:
        return texts
    requests = _list_requests(texts)
    answered = model.judge.find_answered([request.prompt for request in requests])
    open_ones = {
        i for request, is_answered in zip(requests, answered, strict=True) if not is_answered for i in request.numbers
    }
    return texts.select_judged([i not in open_ones for i in range(len(texts.kinds))], model)


def check_labels(labels: HumanRatings, all_texts: Sequence[ModelResponses]) -> None:
    """Raise UsageError if some labels are of responses that no model of the run gave."""
    known = {id for texts in all_texts for id in texts.ids}
    unknown = [id for id in labels.groups if id not in known]
    if unknown:
        listed = ", ".join(unknown[:3])
        raise UsageError(
            f"{labels.path}: {len(unknown):,} of {len(labels.groups):,} labelled responses are not in this run, such "
            f"as {listed}; use the prompts, names and models of the run whose responses were labelled"
        )


def list_rubrics(run: RunData) -> Sequence[Rubric]:
    """Return the rubrics by which a judge rated the texts of a run; all bundled ones if there was no judge."""
    outcomes = [get_outcome(name) for name in run.manifest.settings.outcome if name.startswith("judge:")]
    rated = [outcome.rubric for outcome in outcomes if outcome.rubric is not None]
    return rated or [load_rubric(name) for name in rubric_names()]


def draw_responses(run: RunData, n: int) -> dict[str, str]:
    """Draw texts at random, equally many for every name and model where possible, and mask the names.

    Parameters
    ----------
    run : RunData
        Audit of texts.
    n : int
        Number of texts, rounded to the next multiple of the number of names. A name with fewer texts has all of them.

    Returns
    -------
    dict of str to str
        Texts by identifier, in random order.
    """
    if run.manifest.study != "audit" or not run.manifest.settings.writes:
        raise UsageError("people can rate texts of an audit with --prompts only; the run is of another kind")
    names = {(name.group, name.full_name): name for name in run.manifest.inputs.names}
    by_name: dict[tuple[str, str, str, str], list[AuditText]] = {}
    for row in run.tables.get("texts", ()):
        own = by_name.setdefault((row.model, row.options, row.group, row.name), [])
        if row.kind == "parsed":
            own.append(row)
    if not any(by_name.values()):
        raise UsageError("the run has no text that people could rate; all responses are refusals or missing")
    per_name = max(round(n / len(by_name)), 1)
    rng = np.random.default_rng(derive_seed(run.manifest.settings.seed, "audit", "labels"))
    drawn = [
        rows[i]
        for rows in by_name.values()
        for i in rng.choice(len(rows), min(per_name, len(rows)), replace=False).tolist()
    ]
    masked = Responses([row.text for row in drawn], [names[row.group, row.name] for row in drawn]).masked
    shown = ["\n".join(map(replace_controls, text.expandtabs().splitlines())) for text in masked]
    return {drawn[i].id: shown[i] for i in rng.permutation(len(drawn)).tolist()}
