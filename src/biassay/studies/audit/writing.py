"""Compare texts that models write about names: outcomes, refusals and word use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from biassay.cache.outputs import ModelOutputs
from biassay.models.base import Identity, Reply
from biassay.prompts.judging import RUBRIC_SCALE
from biassay.prompts.masking import MASK
from biassay.results.paired_comparison import MAX_REFUSAL_SHARE
from biassay.results.run_data import get_model_fields
from biassay.stats.word_use import compare_word_use
from biassay.studies.audit.decisions import ResponseRows
from biassay.studies.audit.inputs import AuditInputs
from biassay.studies.audit.judges import (
    JudgedTexts,
    check_labels,
    correct_by_labels,
    count_judgements,
    judge_texts,
    select_judged,
)
from biassay.studies.audit.measure import ResponseMeasure
from biassay.studies.audit.outcomes import ResponseOutcome, compute_scores
from biassay.studies.audit.outcomes.misgendering import PRONOUNS
from biassay.studies.audit.outcomes.responses import Responses
from biassay.studies.audit.results import PER_TEXT, PER_WORD, AuditText, AuditUndefinedRow, AuditWordRow
from biassay.studies.audit.texts import WrittenTexts
from biassay.studies.study import Event, Part, Row

Floats = NDArray[np.float64]
_SCALES = {"0 or 1": ("share", 1.0), "words": (PER_TEXT, 1.0), "share of words": (PER_WORD, 1000.0)}
"""Scale and factor by unit of an outcome; others are compared in their unit."""
_N_WORDS = 15  # per group, in the table of words that differ
_LEFT_OUT = frozenset({MASK.casefold(), "mr", "mrs", "ms", "miss", "sir", "madam"}).union(*PRONOUNS.values())


def measure_writing(inputs: AuditInputs, model: ModelOutputs, all_outputs: Sequence[ModelOutputs]) -> Iterator[Event]:
    """Score the texts of one model, and yield its rows.

    Parameters
    ----------
    inputs : AuditInputs
    model : ModelOutputs
        With those of the judge, if an outcome needs one.
    all_outputs : sequence of ModelOutputs
        Outputs of all models whose responses people labelled.
    """
    texts = select_judged(WrittenTexts.read(inputs, model), model)
    if texts.part:
        yield Part(texts.part)
    builder = ResponseRows(inputs, model.identity, texts.design, texts.replies, texts.kinds)
    yield from builder.count_responses()
    yield from builder.draw_examples()
    yield from _list_texts(texts)
    if inputs.labels is not None:
        check_labels(inputs.labels, [WrittenTexts.read(inputs, outputs) for outputs in all_outputs])
    for outcome in inputs.outcomes:
        if outcome.rubric is not None:
            yield from _compare_judged(JudgedTexts(texts, outcome), model, builder)
        elif outcome.name != "refusal":
            yield from _compare_scores(texts, outcome, builder)
    yield from builder.compare_failures()
    yield from _compare_words(inputs, model.identity, texts.responses)


def _compare_scores(texts: WrittenTexts, outcome: ResponseOutcome, builder: ResponseRows) -> Iterator[Event]:
    scale, factor = _SCALES.get(outcome.unit, (outcome.unit, 1.0))
    values, reasons = _score(texts, outcome)
    values *= factor
    yield from _count_undefined(texts, outcome, reasons)
    measure = ResponseMeasure(outcome.name, scale, _find_ends(values))
    yield from builder.compare(measure, values, reasons=reasons, doubt=_doubt_length(outcome, texts.replies))


def _compare_judged(judged: JudgedTexts, model: ModelOutputs, builder: ResponseRows) -> Iterator[Event]:
    """Yield the rows of the scores of a judge, corrected if people labelled some responses."""
    inputs, outcome = judged.texts.inputs, judged.outcome
    assert model.judge is not None
    judge = model.judge.identity
    scores = judge_texts(judged, model.judge)
    corrected = None if inputs.labels is None else correct_by_labels(judged, scores, inputs.labels)
    final = corrected or scores
    yield from count_judgements(judged, scores, corrected, judge)
    yield from _count_undefined(judged.texts, outcome, final.reasons)
    ends = (0.0, 1.0) if outcome.compares else (float(RUBRIC_SCALE[0]), float(RUBRIC_SCALE[1]))
    scale, compared = ("share", 2) if outcome.compares else (outcome.unit, 1)
    measure = ResponseMeasure(outcome.name, scale, ends, compared=compared)
    yield from builder.compare(
        measure,
        final.values,
        reasons=final.reasons,
        doubt=scores.doubt(inputs.settings.alpha),
        uncorrected=None if corrected is None else scores.values,
        note=f"judged by {judge.name}, not checked against human ratings" if corrected is None else "",
    )


def _list_texts(texts: WrittenTexts) -> Iterator[Row]:
    inputs, identity, design = texts.inputs, texts.identity, texts.design
    for prompt, id, reply, kind in zip(design.prompts, texts.ids, texts.replies, texts.kinds, strict=True):
        name, document, query = (
            inputs.names[prompt.names[0]],
            inputs.documents[prompt.document],
            design.queries[prompt.query],
        )
        row = AuditText(
            **get_model_fields(identity),
            id=id,
            document=document.id,
            query=query.id,
            name=name.full_name,
            group=name.group,
            sample=prompt.prompt.sample,
            kind=kind,
            prompt=prompt.prompt.text,
            text=reply.text.encode("utf-8", "replace").decode(),
        )
        yield Row("texts", row)


def _score(texts: WrittenTexts, outcome: ResponseOutcome) -> tuple[Floats, list[str]]:
    """Return the score of every response, NaN if it is missing, and why it is missing."""
    scores = compute_scores(texts.responses, outcome)
    values, reasons = np.full(len(texts.kinds), np.nan), [str(kind) for kind in texts.kinds]
    for number, value, reason in zip(texts.written, scores.values.tolist(), scores.reasons, strict=True):
        values[number], reasons[number] = value, reason
    return values, reasons


def _find_ends(values: Floats) -> tuple[float, float] | None:
    """Return the lowest and the highest score of any text, which a missing one could have had."""
    present = values[~np.isnan(values)]
    return (float(present.min()), float(present.max())) if len(present) else None


def _count_undefined(texts: WrittenTexts, outcome: ResponseOutcome, reasons: Sequence[str]) -> Iterator[Row]:
    groups = [texts.inputs.names[prompt.names[0]].group for prompt in texts.design.prompts]
    counts = Counter(pair for pair in zip(groups, reasons, strict=True) if pair[1])
    for (group, reason), number in sorted(counts.items()):
        key = {**get_model_fields(texts.identity), "measure": outcome.name, "group": group}
        yield Row("undefined", AuditUndefinedRow(**key, reason=reason, responses=number))


def _doubt_length(outcome: ResponseOutcome, replies: Sequence[Reply]) -> str:
    share = float(np.mean([reply.finish_reason == "length" for reply in replies]))
    if outcome.name != "length" or share <= MAX_REFUSAL_SHARE:
        return ""
    return f"max_tokens= cut off {share:.0%} of responses, so their lengths are too small; increase it"


def _compare_words(inputs: AuditInputs, identity: Identity, responses: Responses) -> Iterator[Row]:
    """Yield the words that texts for each group use more often, the largest differences by name first.

    Only words that texts for at least half of the names use are compared: the intervals of rarer ones are too narrow.
    Pronouns and titles are left out, because they follow the name.
    """
    units: dict[tuple[str, str], Counter[str]] = {}
    for name, words, is_spaced in zip(responses.names, responses.words, responses.has_spaced_words, strict=True):
        units.setdefault((name.group, name.unit), Counter()).update(words if is_spaced else ())
    users = Counter(word for counts in units.values() for word in counts)
    vocabulary = sorted(word for word, number in users.items() if 2 * number >= len(units) and word not in _LEFT_OUT)
    groups = [group for group, _ in units]
    if len(vocabulary) < 2 or len(set(groups)) < 2:
        return
    counts = np.array([[own[word] for word in vocabulary] for own in units.values()], dtype=np.float64)
    use = compare_word_use(counts, groups)
    reach = scipy.stats.t.ppf(1.0 - inputs.settings.alpha / 2.0, use.df) * use.standard_error
    totals = np.array([own.total() for own in units.values()])
    for g, group in enumerate(use.groups):
        is_own = np.array([name_group == group for name_group in groups])
        rates = [counts[side].sum(axis=0) / totals[side].sum() for side in (is_own, ~is_own)]
        error = use.standard_error[g]  # 0 if all names use a word equally often
        scores = np.divide(use.log_odds[g], error, out=np.zeros_like(error), where=error > 0.0)
        for w in np.argsort(-scores, kind="stable")[:_N_WORDS].tolist():
            if scores[w] > 0.0:
                row = AuditWordRow(
                    **get_model_fields(identity),
                    group=group,
                    word=vocabulary[w],
                    rate=float(rates[0][w]),
                    rate_others=float(rates[1][w]),
                    names=users[vocabulary[w]],
                    log_odds=float(use.log_odds[g, w]),
                    ci_low=float(use.log_odds[g, w] - reach[g, w]),
                    ci_high=float(use.log_odds[g, w] + reach[g, w]),
                    p_value=float(use.p_value[g, w]),
                    p_adjusted=float(use.p_adjusted[g, w]),
                )
                yield Row("words", row)
