"""Compare what models decide between groups of names: shares of Yes, ratings, choices, and missing responses."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.cache.outputs import ModelOutputs
from biassay.errors import BudgetError
from biassay.models.base import Identity, Reply
from biassay.reporting.formats import format_interval, format_p, format_percent
from biassay.results.outcomes import Outcome
from biassay.results.paired_comparison import MAX_REFUSAL_SHARE
from biassay.results.run_data import copy_fields, get_model_fields
from biassay.stats.name_audit import LEAST_DOCUMENTS
from biassay.studies.audit.candidates import LETTERS, PositionTest, check_positions
from biassay.studies.audit.inputs import AuditInputs
from biassay.studies.audit.measure import (
    LEAST_NAMES,
    AuditRows,
    ResponseMeasure,
    audit_names,
    drop_missing,
    warn_of_few,
)
from biassay.studies.audit.responses import (
    NO_QUERY,
    RESPONSE_KINDS,
    Observations,
    ResponseDesign,
    ResponseKind,
    average_queries,
    name_array,
)
from biassay.studies.audit.results import (
    AuditPositionRow,
    AuditResponseCounts,
    AuditResponseExample,
    AuditResult,
    name_item,
)
from biassay.studies.audit.settings import RATING_SCALE
from biassay.studies.study import Array, Event, Part, Row, StudyWarning, derive_seed, shorten_reply

Floats = NDArray[np.float64]
_N_EXAMPLES = 3  # documents with example responses
_MAX_TEXT = 2_000  # characters of an example of a text
_REFUSED = ("refused", "filtered")
_UNREADABLE = ("unparsed", "empty", "truncated")


def get_decision_measure(inputs: AuditInputs) -> ResponseMeasure:
    """Return the measure of the kind of answer that responses are parsed for."""
    if inputs.settings.answer == "rating":
        low, high = map(float, RATING_SCALE)
        return ResponseMeasure("rating", "points", (low, high), top=inputs.settings.top)
    if inputs.settings.answer == "yes-no":
        return ResponseMeasure("yes", "share", (0.0, 1.0), selects=True)
    compared = inputs.settings.count_candidates(len({name.group for name in inputs.names}))
    return ResponseMeasure("chosen", "share", (0.0, 1.0), selects=True, compared=compared)


def measure_decisions(inputs: AuditInputs, model: ModelOutputs) -> Iterator[Event]:
    """Parse the decisions of one model, and yield its rows.

    Parameters
    ----------
    inputs : AuditInputs
    model : ModelOutputs
    """
    whole = ResponseDesign(inputs)
    answered = model.find_answered([prompt.prompt for prompt in whole.prompts])
    design = select_answered(whole, answered, model.identity)
    if design is not whole:
        yield Part(design.describe_part(whole))
    if inputs.queries and design.queries == (NO_QUERY,):
        yield StudyWarning("queries are not used, because the question does not contain {query}")
    replies = model.replies([prompt.prompt for prompt in design.prompts])
    parsed, cells = design.parse(replies), design.observations
    builder = ResponseRows(inputs, model.identity, design, replies, parsed.kinds)
    yield from builder.count_responses()
    yield from builder.draw_examples()
    positions, values = None, parsed.values[cells.responses]
    if design.n_candidates > 1:
        chosen = parsed.values[~np.isnan(parsed.values)].astype(np.intp)
        positions = check_positions(chosen.tolist(), design.n_candidates)
        values = np.where(np.isnan(values), np.nan, values == cells.positions)
    yield from builder.list_positions(positions)
    yield from builder.compare(get_decision_measure(inputs), values, positions)
    if design.n_candidates == 1:  # a refusal is about all candidates of a prompt
        yield from builder.compare_failures()


def select_answered(design: ResponseDesign, answered: Sequence[bool], identity: Identity) -> ResponseDesign:
    """Return a design, or a balanced part of it if the budget did not allow all prompts.

    Parameters
    ----------
    design : ResponseDesign
    answered : sequence of bool
        Whether there is a response to each prompt, with its judgements.
    identity : Identity
        Identity of the model.

    Raises
    ------
    BudgetError
        If the part has too few documents to test a difference.
    """
    if all(answered):
        return design
    part = design.select_balanced(answered)
    least = min(LEAST_DOCUMENTS, design.n_documents)
    if part.n_documents < least:
        raise BudgetError(
            f"{identity.name}: the budget allowed {sum(answered):,} of {len(answered):,} responses, too few to "
            f"compare all names in {least} documents or prompts; responses are cached: give a larger --budget and "
            "resume the run"
        )
    return part


class ResponseRows:
    """Rows of the responses of one model.

    Parameters
    ----------
    inputs : AuditInputs
    identity : Identity
    design : ResponseDesign
    replies : sequence of Reply
        One per prompt of the design.
    kinds : sequence of ResponseKind
        Kind of every response.
    """

    def __init__(
        self,
        inputs: AuditInputs,
        identity: Identity,
        design: ResponseDesign,
        replies: Sequence[Reply],
        kinds: Sequence[ResponseKind],
    ) -> None:
        self._inputs, self._identity, self._design = inputs, identity, design
        self._replies, self._kinds = replies, kinds
        self._groups = [name.group for name in inputs.names]
        self._model = get_model_fields(identity)

    def count_responses(self) -> Iterator[Event]:
        """Yield the numbers of responses by kind, for each group if candidates are judged alone."""
        yield from warn_of_few(self._design.n_documents, "prompts" if self._inputs.settings.writes else "documents")
        alone = self._design.n_candidates == 1
        owners = [self._groups[prompt.names[0]] if alone else "" for prompt in self._design.prompts]
        for group in dict.fromkeys(owners):
            own = [i for i, owner in enumerate(owners) if owner == group]
            counts = Counter(self._kinds[i] for i in own)
            cut_off = sum(self._replies[i].finish_reason == "length" for i in own)
            numbers: dict[str, Any] = {kind: counts[kind] for kind in RESPONSE_KINDS}
            row = AuditResponseCounts(**self._model, group=group, responses=len(own), cut_off=cut_off, **numbers)
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
        prompt, names = self._design.prompts[number], self._inputs.names
        alone = len(prompt.names) == 1
        listed = [f"{letter}: {names[i].full_name}" for letter, i in zip(LETTERS, prompt.names, strict=False)]
        row = AuditResponseExample(
            **self._model,
            document=self._inputs.documents[prompt.document].id,
            query=self._design.queries[prompt.query].id,
            group=self._groups[prompt.names[0]] if alone else "",
            name=names[prompt.names[0]].full_name if alone else ", ".join(listed),
            kind=self._kinds[number],
            reply=shorten_reply(self._replies[number].text, _MAX_TEXT if self._inputs.settings.writes else None),
        )
        return Row("examples", row)

    def list_positions(self, positions: PositionTest | None) -> Iterator[Row]:
        """Yield how often candidates at each position were chosen."""
        for position, chosen in enumerate(positions.counts if positions is not None else ()):
            assert positions is not None
            share, p_value = chosen / sum(positions.counts), positions.p_value
            row = AuditPositionRow(
                **self._model, position=LETTERS[position], chosen=chosen, share=share, p_value=p_value
            )
            yield Row("positions", row)

    def compare_failures(self) -> Iterator[Event]:
        """Yield the rows of the shares of refusals, and of responses that could not be read."""
        cells = self._design.observations
        for name, kinds in (("refusal", _REFUSED), ("unparsed", _UNREADABLE)):
            missing = [np.nan if kind == "failed" else float(kind in kinds) for kind in self._kinds]
            yield from self.compare(ResponseMeasure(name), np.array(missing)[cells.responses])

    def compare(
        self,
        measure: ResponseMeasure,
        values: Floats,
        positions: PositionTest | None = None,
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
        positions : PositionTest, optional
            Whether choices follow the position of the candidates.
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
        doubt = doubt or self._doubt_positions(positions)
        for group in dict.fromkeys(self._groups) if _is_constant(scores) else lacking:
            result = self._make_bare(group, measure, missing, lacking.get(group) or _explain_constant(scores))
            if doubt and group not in lacking:
                result = dataclasses.replace(
                    result,
                    status="measured",
                    reason=None,
                    claim="inconclusive",
                    doubt=doubt,
                    outcome=dataclasses.replace(result.outcome, effect_size=0.0, reason=doubt),
                )
            yield Row("results", result)
        if _is_constant(scores):
            return
        rows = AuditRows(
            self._inputs,
            self._identity,
            measure,
            scores[:, :, None],
            [query.id for query in self._design.queries],
            selected=scores[:, :, None] if measure.selects else None,
            by_query=by_query,
            n_measures=max(len(self._inputs.outcomes), 1),
        )
        judged = {} if uncorrected is None else self._audit_uncorrected(uncorrected, measure)
        for row in rows.make_rows():
            if row.table != "results":
                yield row
                continue
            result = missing.complete(row.record, doubt)
            if other := judged.get(result.group):
                result = dataclasses.replace(result, alternatives={**result.alternatives, "uncorrected": other})
            yield Row("results", result)

    def _audit_uncorrected(self, values: Floats, measure: ResponseMeasure) -> dict[str, Outcome]:
        """Return the differences in scores of a judge without correction, by group."""
        scores = average_queries(self._design.observations.average(values), self._groups)
        contrasts = audit_names(self._inputs.settings, *drop_missing(self._inputs.names, scores)).contrasts
        return {
            group: Outcome(
                **copy_fields(contrast, "effect_size", "ci_low", "ci_high", "p_value"),
                confidence=1.0 - contrast.alpha,
                scale=measure.scale,
                test="names crossed with documents",
            )
            for group, contrast in contrasts.items()
        }

    def _find_unmeasured(self, scores: Floats, reasons: Sequence[str]) -> dict[str, str]:
        """Return why groups cannot be compared, by group: nearly all of their responses are missing."""
        (main, number), *_ = [*Counter(filter(None, reasons)).most_common(1), ("", 0)]
        most = f" (of {len(reasons):,} responses {number:,} {main})" if main else ""
        known = [not row.all() for row in np.isnan(scores)]
        units: dict[str, set[str]] = {group: set() for group in self._groups}
        for name, is_known in zip(self._inputs.names, known, strict=True):
            units[name.group] |= {name.unit} if is_known else set()
        lacking = [group for group, found in units.items() if len(found) < LEAST_NAMES]
        why = "too few responses for names of this group have a value"
        if len(lacking) == len(units):
            return dict.fromkeys(units, f"too few responses have a value{most}")
        if len(units) - len(lacking) < 2:
            return dict.fromkeys(units, f"{why}, or for those of all others{most}")
        return dict.fromkeys(lacking, f"{why}{most}")

    def _make_bare(self, group: str, measure: ResponseMeasure, missing: UnparsedResponses, reason: str) -> AuditResult:
        """Make the result of a group whose difference was not computed."""
        groups = list(dict.fromkeys(self._groups))
        low, high = missing.get_bounds(group)
        return AuditResult(
            **self._model,
            group=group,
            measure=measure.name,
            title=group,
            topic="names",
            question=name_item(groups[0], measure.name) if len(groups) == 2 else "",
            status="skipped",
            reason=reason,
            outcome=Outcome(scale=measure.scale, bound_low=low, bound_high=high),
            warnings=missing.warnings,
        )

    def _doubt_positions(self, positions: PositionTest | None) -> str:
        if positions is None or not positions.follows(self._inputs.settings.alpha):
            return ""
        return f"the choices follow the order of the candidates: {positions.describe()}"


def _is_constant(scores: Floats) -> bool:
    present = scores[~np.isnan(scores)]
    return not len(present) or float(np.ptp(present)) == 0.0


def _explain_constant(scores: Floats) -> str:
    present = scores[~np.isnan(scores)]
    return f"all responses have the same value, {present[0]:g}" if len(present) else "no response could be read"


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
        by_name = self._average(values).mean(axis=1)
        units: dict[tuple[str, str], list[float]] = {}
        for name, mean in zip(self.inputs.names, by_name.tolist(), strict=True):
            units.setdefault((name.group, name.unit), []).append(mean)
        return {
            group: float(np.mean([np.mean(means) for (owner, _), means in units.items() if owner == group]))
            for group in dict.fromkeys(name.group for name in self.inputs.names)
        }

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
