"""Compare decisions, missing responses, outcomes and words between groups of names."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from biassay.cache.outputs import ModelOutputs
from biassay.grouping import group_pairs
from biassay.prompts.judging import RUBRIC_SCALE
from biassay.prompts.masking import MASK
from biassay.reporting.formats import format_interval, format_p, format_percent
from biassay.results.outcomes import Outcome
from biassay.results.paired_comparison import MAX_REFUSAL_SHARE
from biassay.results.run_data import get_model_fields
from biassay.stats.word_use import compare_word_use
from biassay.studies.audit.inputs import NO_QUERY, AuditInputs
from biassay.studies.audit.judges import JudgedTexts, check_labels, select_judged
from biassay.studies.audit.measure import (
    LEAST_NAMES,
    AuditRows,
    ResponseMeasure,
    audit_names,
    drop_missing,
    make_outcome,
    warn_of_few,
)
from biassay.studies.audit.outcomes import ResponseOutcome
from biassay.studies.audit.outcomes.built_in import PRONOUNS
from biassay.studies.audit.responses import (
    LETTERS,
    RESPONSE_KINDS,
    ModelResponses,
    Observations,
    PositionTest,
    average_queries,
    check_positions,
    name_array,
)
from biassay.studies.audit.results import (
    PER_TEXT,
    PER_WORD,
    AuditPositionRow,
    AuditResponseCounts,
    AuditResponseExample,
    AuditResult,
    AuditText,
    AuditUndefinedRow,
    AuditWordRow,
    name_item,
)
from biassay.studies.audit.settings import RATING_SCALE
from biassay.studies.study import Array, Event, Part, Row, StudyWarning, derive_seed, shorten_reply

Floats = NDArray[np.float64]
_N_EXAMPLES = 3  # documents with example responses
_MAX_TEXT = 2_000  # characters of an example of a text
_FAILURES = {"refusal": ("refused", "filtered"), "unparsed": ("unparsed", "empty", "truncated")}
_SCALES = {"0 or 1": ("share", 1.0), "words": (PER_TEXT, 1.0), "share of words": (PER_WORD, 1000.0)}
"""Scale and factor by unit of an outcome; others are compared in their unit."""
_N_WORDS = 15  # per group, in the table of words that differ
_LEFT_OUT = frozenset({MASK.casefold(), "mr", "mrs", "ms", "miss", "sir", "madam"}).union(*PRONOUNS.values())


def measure_responses(inputs: AuditInputs, model: ModelOutputs, all_outputs: Sequence[ModelOutputs]) -> Iterator[Event]:
    """Parse or score the responses of one model, and yield its rows.

    Parameters
    ----------
    inputs : AuditInputs
    model : ModelOutputs
        Outputs of the model, with those of the judge if an outcome needs one.
    all_outputs : sequence of ModelOutputs
        Outputs of all models whose responses people labelled.
    """
    responses = select_judged(ModelResponses.read(inputs, model), model)
    if part := responses.design.describe_part():
        yield Part(part)
    rows = _ResponseRows(responses)
    yield from rows.count_responses()
    yield from rows.draw_examples()
    if not inputs.settings.writes:
        yield from rows.compare_decisions()
        return
    yield from rows.list_texts()
    if inputs.labels is not None:
        check_labels(inputs.labels, [ModelResponses.read(inputs, outputs) for outputs in all_outputs])
    for outcome in inputs.outcomes:
        if outcome.rubric is not None:
            assert model.judge is not None
            yield from rows.compare_judged(JudgedTexts(responses, outcome), model.judge)
        elif outcome.name != "refusal":
            yield from rows.compare_outcome(outcome)
    yield from rows.compare_failures()
    yield from rows.compare_words()


class _ResponseRows:
    """Rows of the responses of one model."""

    def __init__(self, responses: ModelResponses) -> None:
        self._responses, self._design, self._inputs = responses, responses.design, responses.inputs
        self._kinds = responses.kinds
        self._groups = [name.group for name in self._inputs.names]
        self._model = get_model_fields(responses.identity)

    def count_responses(self) -> Iterator[Event]:
        """Yield the numbers of responses by kind, for each group if candidates are judged alone."""
        yield from warn_of_few(self._design.n_documents, "prompts" if self._inputs.settings.writes else "documents")
        is_cut_off = [reply.finish_reason == "length" for reply in self._responses.replies]
        numbers = group_pairs(zip(self._responses.groups, range(len(is_cut_off)), strict=True))
        for group, own in numbers.items():
            counts = Counter(self._kinds[i] for i in own)
            kinds: dict[str, Any] = {kind: counts[kind] for kind in RESPONSE_KINDS}
            cut_off = sum(is_cut_off[i] for i in own)
            row = AuditResponseCounts(**self._model, group=group, responses=len(own), cut_off=cut_off, **kinds)
            yield Row("responses", row)

    def draw_examples(self) -> Iterator[Row]:
        """Yield the responses for a random name of every group, in random documents; or to random prompts."""
        rng = np.random.default_rng(derive_seed(self._inputs.settings.seed, "audit", "examples"))
        prompts = self._design.prompts
        if self._design.n_candidates > 1:
            for number in sorted(rng.choice(len(prompts), min(_N_EXAMPLES, len(prompts)), replace=False).tolist()):
                yield self._make_example(number)
            return
        shown = {
            int(rng.choice([i for i, owner in enumerate(self._groups) if owner == group]))
            for group in dict.fromkeys(self._groups)
        }
        cells = sorted({(prompt.document, prompt.query) for prompt in prompts if prompt.prompt.sample == 0})
        chosen = {cells[i] for i in rng.choice(len(cells), min(_N_EXAMPLES, len(cells)), replace=False)}
        for number, prompt in enumerate(prompts):
            if (prompt.document, prompt.query) in chosen and prompt.names[0] in shown and prompt.prompt.sample == 0:
                yield self._make_example(number)

    def _make_example(self, number: int) -> Row:
        names = [self._inputs.names[i].full_name for i in self._design.prompts[number].names]
        if len(names) > 1:
            names = [f"{letter}: {name}" for letter, name in zip(LETTERS, names, strict=False)]
        text = shorten_reply(self._responses.replies[number].text, _MAX_TEXT if self._inputs.settings.writes else None)
        return Row("examples", AuditResponseExample(**self._describe(number), name=", ".join(names), reply=text))

    def list_texts(self) -> Iterator[Row]:
        """Yield every response with its prompt."""
        for number, (prompt, id, reply) in enumerate(
            zip(self._design.prompts, self._responses.ids, self._responses.replies, strict=True)
        ):
            row = AuditText(
                **self._describe(number),
                id=id,
                name=self._inputs.names[prompt.names[0]].full_name,
                sample=prompt.prompt.sample,
                prompt=prompt.prompt.text,
                text=reply.text.encode("utf-8", "replace").decode(),
            )
            yield Row("texts", row)

    def _describe(self, number: int) -> dict[str, Any]:
        """Return the fields of a row that describe one response."""
        prompt = self._design.prompts[number]
        document, query = self._inputs.documents[prompt.document].id, self._design.queries[prompt.query].id
        group, kind = self._responses.groups[number], self._kinds[number]
        return {**self._model, "document": document, "query": query, "group": group, "kind": kind}

    def compare_decisions(self) -> Iterator[Event]:
        """Yield the rows of decisions, which are Yes or No, ratings, or choices."""
        settings, design, decisions = self._inputs.settings, self._design, self._responses.decisions
        if self._inputs.queries and design.queries == (NO_QUERY,):
            yield StudyWarning("queries are not used, because the question does not contain {query}")
        values, doubt = decisions[design.observations.responses], ""
        if settings.answer == "choice":
            chosen = decisions[~np.isnan(decisions)].astype(np.intp)
            positions = check_positions(chosen.tolist(), design.n_candidates)
            values = np.where(np.isnan(values), np.nan, values == design.observations.positions)
            if positions is not None:
                yield from self._list_positions(positions)
                if positions.follows(settings.alpha):
                    doubt = f"the choices follow the order of the candidates: {positions.describe()}"
        low, high = map(float, RATING_SCALE)
        measure = {
            "rating": ResponseMeasure("rating", "points", (low, high), top=settings.top),
            "yes-no": ResponseMeasure("yes", "share", (0.0, 1.0), selects=True),
            "choice": ResponseMeasure("chosen", "share", (0.0, 1.0), selects=True, compared=design.n_candidates),
        }[str(settings.answer)]
        yield from self._compare(measure, values, doubt=doubt)
        if design.n_candidates == 1:  # a refusal is about all candidates of a prompt
            yield from self.compare_failures()

    def _list_positions(self, positions: PositionTest) -> Iterator[Row]:
        """Yield how often candidates at each position were chosen."""
        total = sum(positions.counts)
        for letter, chosen in zip(LETTERS, positions.counts, strict=False):
            share, p_value = chosen / total, positions.p_value
            row = AuditPositionRow(**self._model, position=letter, chosen=chosen, share=share, p_value=p_value)
            yield Row("positions", row)

    def compare_failures(self) -> Iterator[Event]:
        """Yield the rows of the shares of refusals, and of responses that could not be read."""
        for name, kinds in _FAILURES.items():
            missing = [np.nan if kind == "failed" else float(kind in kinds) for kind in self._kinds]
            yield from self._compare(ResponseMeasure(name), np.array(missing)[self._design.observations.responses])

    def compare_outcome(self, outcome: ResponseOutcome) -> Iterator[Event]:
        """Yield the rows of an outcome of texts."""
        scale, factor = _SCALES.get(outcome.unit, (outcome.unit, 1.0))
        scores = outcome.score_responses(self._responses.texts)
        values, reasons = np.full(len(self._kinds), np.nan), [str(kind) for kind in self._kinds]
        for number, value, reason in zip(self._responses.written, scores.values, scores.reasons, strict=True):
            values[number], reasons[number] = factor * value, reason
        yield from self._count_undefined(outcome, reasons)
        present = values[~np.isnan(values)]
        # a missing text could have had the lowest or the highest score of any text
        ends = (float(present.min()), float(present.max())) if len(present) else None
        cut_off = float(np.mean([reply.finish_reason == "length" for reply in self._responses.replies]))
        doubt = ""
        if outcome.name == "length" and cut_off > MAX_REFUSAL_SHARE:
            doubt = f"max_tokens= cut off {cut_off:.0%} of responses, so their lengths are too small; increase it"
        yield from self._compare(ResponseMeasure(outcome.name, scale, ends), values, reasons=reasons, doubt=doubt)

    def compare_judged(self, judged: JudgedTexts, judge: ModelOutputs) -> Iterator[Event]:
        """Yield the rows of the scores of a judge, corrected if people labelled some responses."""
        outcome, labels = judged.outcome, self._inputs.labels
        scores = judged.read_scores(judge)
        corrected = None if labels is None else judged.apply_labels(scores, labels)
        final = corrected or scores
        yield from judged.count_judgements(final, judge.identity)
        yield from self._count_undefined(outcome, final.reasons)
        low, high = (0, 1) if outcome.compares else RUBRIC_SCALE
        scale, compared = ("share", 2) if outcome.compares else (outcome.unit, 1)
        yield from self._compare(
            ResponseMeasure(outcome.name, scale, (float(low), float(high)), compared=compared),
            final.values,
            reasons=final.reasons,
            doubt=scores.doubt(self._inputs.settings.alpha),
            uncorrected=None if corrected is None else scores.values,
            note=f"judged by {judge.identity.name}, not checked against human ratings" if corrected is None else "",
        )

    def _count_undefined(self, outcome: ResponseOutcome, reasons: Sequence[str]) -> Iterator[Row]:
        counts = Counter(pair for pair in zip(self._responses.groups, reasons, strict=True) if pair[1])
        for (group, reason), number in sorted(counts.items()):
            key = {**self._model, "measure": outcome.name, "group": group}
            yield Row("undefined", AuditUndefinedRow(**key, reason=reason, responses=number))

    def _compare(
        self,
        measure: ResponseMeasure,
        values: Floats,
        *,
        reasons: Sequence[str] | None = None,
        doubt: str = "",
        uncorrected: Floats | None = None,
        note: str = "",
    ) -> Iterator[Event]:
        """Yield the scores of a measure as an array, and its rows.

        Parameters
        ----------
        measure : ResponseMeasure
        values : (observations,) float
            NaN where missing.
        reasons : sequence of str, optional
            Why the value of every response is missing; empty if it is not. By default, the kind of response.
        doubt : str
            Why differences would be inconclusive whatever their p-values.
        uncorrected : (observations,) float, optional
            Scores of a judge, if `values` are corrected by human labels.
        note : str
            Warning about every difference.
        """
        by_query = self._design.observations.average(values)
        yield Array(name_array(measure.name), by_query)
        if reasons is None:
            reasons = ["" if kind == "parsed" else kind for kind in self._kinds]
        missing = UnparsedResponses(self._inputs, self._design.observations, values, measure, reasons, note)
        scores = average_queries(by_query, self._groups)
        lacking = self._find_unmeasured(scores, reasons)
        scores[[group in lacking for group in self._groups]] = np.nan
        present = scores[~np.isnan(scores)]
        is_constant = not len(present) or float(np.ptp(present)) == 0.0
        constant = f"all responses have the same value, {present[0]:g}" if len(present) else "no response could be read"
        for group in dict.fromkeys(self._groups) if is_constant else lacking:
            in_doubt = "" if group in lacking else doubt
            yield Row(
                "results",
                self._make_uncompared_result(group, measure, missing, lacking.get(group) or constant, in_doubt),
            )
        if is_constant:
            return
        rows = AuditRows(
            self._inputs,
            self._responses.identity,
            measure,
            scores[:, :, None],
            [query.id for query in self._design.queries],
            # an average over queries with missing values can leave the limits of a share
            selected=np.clip(scores, 0.0, 1.0)[:, :, None] if measure.selects else None,
            by_query=by_query,
        )
        judged = {} if uncorrected is None else self._audit_uncorrected(uncorrected, measure)
        for row in rows.make_rows():
            if row.table == "results":
                result = missing.complete(row.record, doubt)
                if other := judged.get(result.group):
                    result = dataclasses.replace(result, alternatives={**result.alternatives, "uncorrected": other})
                row = Row("results", result)
            yield row

    def _audit_uncorrected(self, values: Floats, measure: ResponseMeasure) -> dict[str, Outcome]:
        """Return the differences in scores of a judge without correction, by group."""
        scores = average_queries(self._design.observations.average(values), self._groups)
        contrasts = audit_names(self._inputs.settings, *drop_missing(self._inputs.names, scores)).contrasts
        return {group: make_outcome(contrast, measure.scale) for group, contrast in contrasts.items()}

    def _find_unmeasured(self, scores: Floats, reasons: Sequence[str]) -> dict[str, str]:
        """Return why groups cannot be compared, by group: nearly all of their responses are missing."""
        (main, number), *_ = [*Counter(filter(None, reasons)).most_common(1), ("", 0)]
        most = f" (of {len(reasons):,} responses {number:,} {main})" if main else ""
        units: dict[str, set[str]] = {group: set() for group in self._groups}
        for name, is_missing in zip(self._inputs.names, map(np.all, np.isnan(scores)), strict=True):
            units[name.group] |= set() if is_missing else {name.unit}
        lacking = [group for group, found in units.items() if len(found) < LEAST_NAMES]
        why = "too few responses for names of this group have a value"
        if len(lacking) == len(units):
            return dict.fromkeys(units, f"too few responses have a value{most}")
        if len(units) - len(lacking) < 2:
            return dict.fromkeys(units, f"{why}, or for those of all others{most}")
        return dict.fromkeys(lacking, f"{why}{most}")

    def _make_uncompared_result(
        self, group: str, measure: ResponseMeasure, missing: UnparsedResponses, reason: str, doubt: str
    ) -> AuditResult:
        """Make the result of a group whose difference was not computed. If `doubt` is given, its effect size is 0."""
        groups = list(dict.fromkeys(self._groups))
        low, high = missing.get_bounds(group)
        outcome = Outcome(scale=measure.scale, bound_low=low, bound_high=high)
        return AuditResult(
            **self._model,
            group=group,
            measure=measure.name,
            title=group,
            topic="names",
            question=name_item(groups[0], measure.name) if len(groups) == 2 else "",
            status="measured" if doubt else "skipped",
            reason=None if doubt else reason,
            claim="inconclusive" if doubt else "tested",
            doubt=doubt or None,
            outcome=dataclasses.replace(outcome, effect_size=0.0, reason=doubt) if doubt else outcome,
            warnings=missing.warnings,
        )

    def compare_words(self) -> Iterator[Row]:
        """Yield the words that texts for each group use more often, the largest differences by name first.

        Only words that texts for at least half of the names use are compared: the intervals of rarer ones are too
        narrow. Pronouns and titles are left out, because they follow the name.
        """
        texts = self._responses.texts
        units: dict[tuple[str, str], Counter[str]] = {}
        for name, words, is_spaced in zip(texts.names, texts.words, texts.has_spaced_words, strict=True):
            units.setdefault((name.group, name.unit), Counter()).update(words if is_spaced else ())
        users = Counter(word for counts in units.values() for word in counts)
        vocabulary = sorted(w for w, number in users.items() if 2 * number >= len(units) and w not in _LEFT_OUT)
        groups = [group for group, _ in units]
        if len(vocabulary) < 2 or len(set(groups)) < 2:
            return
        counts = np.array([[own[word] for word in vocabulary] for own in units.values()], dtype=np.float64)
        use = compare_word_use(counts, groups)
        reach = scipy.stats.t.ppf(1.0 - self._inputs.settings.alpha / 2.0, use.df) * use.standard_error
        totals = np.array([own.total() for own in units.values()])
        for g, group in enumerate(use.groups):
            is_own = np.array([name_group == group for name_group in groups])
            rates = [counts[side].sum(axis=0) / totals[side].sum() for side in (is_own, ~is_own)]
            error = use.standard_error[g]  # 0 if all names use a word equally often
            scores = np.divide(use.log_odds[g], error, out=np.zeros_like(error), where=error > 0.0)
            for w in np.argsort(-scores, kind="stable")[:_N_WORDS].tolist():
                if scores[w] > 0.0:
                    row = AuditWordRow(
                        **self._model,
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


@dataclass(frozen=True, eq=False)
class UnparsedResponses:
    """Missing responses of a measure, and the bounds that they leave.

    Attributes
    ----------
    inputs : AuditInputs
    observations : Observations
    values : (observations,) float
        NaN where missing.
    measure : ResponseMeasure
    reasons : sequence of str
        Why the value of every response is missing, such as its kind; empty if it is not.
    note : str
        Another warning.
    """

    inputs: AuditInputs
    observations: Observations
    values: Floats
    measure: ResponseMeasure
    reasons: Sequence[str]
    note: str = ""

    @cached_property
    def share(self) -> float:
        """Share of missing values."""
        return float(np.isnan(self.values).mean())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Numbers of missing responses by kind, if any are missing."""
        notes = (self.note,) if self.note else ()
        if not self.share or self.measure.ends is None:
            return notes
        counts = Counter(self.reasons)
        order = dict.fromkeys((*RESPONSE_KINDS, *sorted(counts)))
        listed = ", ".join(f"{counts[reason]:,} {reason}" for reason in order if reason and counts[reason])
        return (*notes, f"of {len(self.reasons):,} responses {listed}")

    def get_bounds(self, group: str) -> tuple[float | None, float | None]:
        """Return the bounds of D with missing responses counted either way; None if the values are unbounded."""
        if self.measure.ends is None or not self.share:
            return None, None
        own = {end: means[group] for end, means in self._means.items()}
        others = {end: np.mean([means[g] for g in means if g != group]) for end, means in self._means.items()}
        low, high = self.measure.ends
        return float(own[low] - others[high]), float(own[high] - others[low])

    @cached_property
    def _means(self) -> dict[float, dict[str, float]]:
        """Means of groups if all missing responses had the lowest or the highest value."""
        assert self.measure.ends is not None
        return {
            end: self._average_groups(np.where(np.isnan(self.values), end, self.values)) for end in self.measure.ends
        }

    def _average_groups(self, values: Floats) -> dict[str, float]:
        by_name = zip(self.inputs.names, self._average(values).mean(axis=1).tolist(), strict=True)
        by_unit = group_pairs(((name.group, name.unit), mean) for name, mean in by_name)
        by_group = group_pairs((group, np.mean(means)) for (group, _), means in by_unit.items())
        return {group: float(np.mean(means)) for group, means in by_group.items()}

    def _average(self, values: Floats) -> Floats:
        """Average values by (name, document), over queries that are asked and without documents that are not."""
        table = self.observations.average(values)[:, np.unique(self.observations.documents)]
        return np.asarray(np.nanmean(table, axis=2))

    @cached_property
    def _p_values(self) -> dict[str, float]:
        """P-value of equal shares of missing responses, by group."""
        table = self._average(np.isnan(self.values).astype(np.float64))
        if float(np.ptp(table)) == 0.0:
            return {}
        contrasts = audit_names(self.inputs.settings, self.inputs.names, table).contrasts
        return {group: contrast.p_value for group, contrast in contrasts.items() if contrast.p_value is not None}

    def complete(self, result: AuditResult, doubt: str = "") -> AuditResult:
        """Return a result with bounds, within the limits of a share, and in doubt if missing responses could change it.

        Parameters
        ----------
        result : AuditResult
        doubt : str
            Another reason to doubt it.
        """
        low, high = self.get_bounds(result.group)
        doubt = doubt or self._explain_doubt(result)
        outcome = dataclasses.replace(result.outcome, bound_low=low, bound_high=high)
        if outcome.scale == "share" and outcome.ci_low is not None and outcome.ci_high is not None:
            ends = max(outcome.ci_low, -1.0), min(outcome.ci_high, 1.0)
            outcome = dataclasses.replace(outcome, ci_low=ends[0], ci_high=ends[1])
        return dataclasses.replace(
            result,
            outcome=outcome,
            claim="inconclusive" if doubt else result.claim,
            doubt=doubt or None,
            warnings=self.warnings,
        )

    def _explain_doubt(self, result: AuditResult) -> str:
        """Return why a difference is in doubt: missing responses are many, or selective and could change it."""
        group, alpha = result.group, self.inputs.settings.alpha
        low, high = self.get_bounds(group)
        if low is None or high is None:
            return ""
        missing = f"{format_percent(float(f'{self.share:.2g}'))} of responses are missing"
        ends = format_interval(low, high)
        if self.measure.scale == "share":
            ends = f"{format_interval(100.0 * low, 100.0 * high)} percentage points"
        either_way = f"counted either way, the difference is {ends}"
        if self.share > MAX_REFUSAL_SHARE:
            return f"{missing}; {either_way}"
        could_be_found = result.outcome.p_value is not None and result.outcome.p_value <= alpha
        p_missing = self._p_values.get(group, 1.0)
        if p_missing <= alpha:
            why = f", not equally often for this group and the others (p = {format_p(p_missing)})"
        elif self.measure.compared > 1 and could_be_found:
            why = ", and a comparison does not show which name caused it"
        else:
            return ""
        if low <= 0.0 <= high:
            return f"{missing}{why}; {either_way}"
        if could_be_found and not self._survives_missing(group, positive=low > 0.0):
            return f"{missing}{why}; {either_way}, which is not significant at the end near 0"
        return ""

    def _survives_missing(self, group: str, *, positive: bool) -> bool:
        """Return whether a difference is significant if all missing responses are counted against it."""
        assert self.measure.ends is not None
        groups = np.array([name.group for name in self.inputs.names])
        against, favour = self.measure.ends if positive else self.measure.ends[::-1]
        filled = np.where(groups[self.observations.names] == group, against, favour)
        table = self._average(np.where(np.isnan(self.values), filled, self.values))
        audit = audit_names(self.inputs.settings, self.inputs.names, table, compared=self.measure.compared)
        contrast, n_groups = audit.contrasts[group], len(audit.contrasts)
        n_tests = max(len(self.inputs.outcomes), 1) * (1 if n_groups == 2 else n_groups)
        is_same = (contrast.effect_size > 0.0) == positive
        return is_same and contrast.p_value is not None and contrast.p_value <= self.inputs.settings.alpha / n_tests
