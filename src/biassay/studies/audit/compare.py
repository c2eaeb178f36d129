"""Compare name audits of models over the names and documents that both were given."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.reporting.formats import format_examples
from biassay.results.comparison import MARGIN, EffectDifference
from biassay.results.paired_comparison import CombinedEffect, PairedItem
from biassay.results.run_data import RunData, RunSlice, label_models, split_by_model
from biassay.stats.name_audit import FOUR_FIFTHS, NameAudit, Selection, combine_selections, name_audit
from biassay.studies.audit.inputs import AuditInputsRecord
from biassay.studies.audit.responses import average_queries, name_array
from biassay.studies.audit.results import SD, name_item, show_group

_RATIO_LIMIT = -math.log(FOUR_FIFTHS) / MARGIN
"""Log ratio per unit of the margin: a margin of .2 is a ratio of four fifths."""

_SHARE_LIMIT = 0.5
"""Share per unit of the margin: a margin of .2 is 10 percentage points."""

_MOST_DOCUMENTS = 3
"""Documents named in a message."""

Floats = NDArray[np.float64]


def describe_compared(runs: Mapping[str, RunData]) -> dict[str, dict[str, object]]:
    """Describe the documents and settings that compared runs must share."""
    digests = [{document.id: document.digest for document in run.manifest.inputs.documents} for run in runs.values()]
    shared = set[str].intersection(*map(set, digests))
    differing = sorted(document for document in shared if len({own[document] for own in digests}) > 1)
    return {name: _describe_run(run, differing) for name, run in runs.items()}


def _describe_run(run: RunData, differing: Sequence[str]) -> dict[str, object]:
    """Describe a run; `differing` are the documents that have other texts in another run."""
    inputs, settings = run.manifest.inputs, run.manifest.settings
    digests = {document.id: document.digest for document in inputs.documents}
    texts = [f"{document} {digests[document] or '(text not logged)'}" for document in differing]
    queries = [f"{query.id} {query.digest}".rstrip() for query in inputs.queries if query.id or query.digest]
    return {
        "documents": format_examples(texts, _MOST_DOCUMENTS),
        "queries": ", ".join(queries) or "none",
        "pronouns": settings.pronouns,
        "question": settings.question or "",
        "top shares": ", ".join(map(str, settings.top)),
        "kind of answer": settings.answer or "",
        "candidates per prompt": settings.count_candidates(inputs.n_groups),
        "responses per prompt": settings.responses_per_prompt,
        "name of the user or of the subject": settings.role,
        "judge": (settings.judge or "none").partition("?")[0],
        "correction by labels": settings.human is not None,
    }


def pair_audit_groups(runs: Mapping[str, RunData], baseline: str) -> list[PairedItem]:
    """Pair every group of the first model with the same group of another: its difference, and its selection ratio."""
    models = label_models(
        {name: {model.label: (model, run) for model in split_by_model(run)} for name, run in runs.items()}
    )
    pairs = []
    for label, (model, run) in models.items():
        if label != baseline:
            first, first_run = models[baseline]
            old, new = ({row.measure for row in one["results"]} for one in (first, model))
            for measure in sorted(old & new):
                scales = {row.outcome.scale for row in first["results"] if row.measure == measure}
                paired = PairedAudits(
                    *_align(first, first_run.manifest.inputs, model, run.manifest.inputs, measure),
                    () if measure else first_run.manifest.settings.top,
                    is_share=scales == {"share"},
                    compared=_count_compared(first_run, measure),
                )
                pairs += _pair_groups(paired, first, model, baseline, label, measure)
    return pairs


def _count_compared(run: RunData, measure: str) -> int:
    """Return the number of candidates, or texts, of which one was chosen at a time."""
    if measure.startswith("compare:"):
        return 2
    return int(run.manifest.settings.count_candidates(run.manifest.inputs.n_groups)) if measure == "chosen" else 1


def _pair_groups(
    paired: PairedAudits, first: RunSlice, model: RunSlice, baseline: str, label: str, measure: str
) -> list[PairedItem]:
    old, new = ({row.group: row for row in one["results"] if row.measure == measure} for one in (first, model))
    pairs = []
    groups = list(old)[:1] if len(old) == 2 else list(old)  # two groups have one difference

    def plain(
        item: str, title: str, unit: str, before: float | None, after: float | None, reason: str | None
    ) -> EffectDifference:
        return EffectDifference(item, title, baseline, label, unit, before, after, reason, topic="names")

    unit, limit = ("share", _SHARE_LIMIT) if paired.is_share else (SD, 1.0)
    for group in groups:
        item, title = name_item(group, measure), name_item(show_group(group), measure)
        measured = old[group].status == "measured", group in new and new[group].status == "measured"
        if measure and group in paired.groups:
            measured = True, True  # identical responses allow no test, but can differ from those of the other model
        if not all(measured) or group not in paired.groups:
            reason = "not measured on both models" if not all(measured) else "fewer than two shared names"
            if not measure or any(measured):
                difference = plain(item, title, unit, None, None, reason)
                pairs.append(PairedItem(difference, limit, measured, is_directed=False))
            continue
        difference = plain(item, title, unit, *paired.get_differences(group), None)
        doubt = next((row.doubt for row in (old[group], new[group]) if row.doubt), "")
        combine = partial(paired.combine_differences, group)
        pairs.append(PairedItem(difference, limit, measured, combine, doubt=doubt, is_directed=False))
        if paired.top is not None:
            ratios = paired.get_log_ratios(group)
            title = f"{show_group(group)}: selection ratio (log, top {paired.top:.0%})"
            missing = "nothing is selected in a group" if None in ratios else None
            difference = plain(f"{group}: selection", title, "log ratio", *ratios, missing)
            combine_ratios = None if missing else partial(paired.combine_log_ratios, group)
            pairs.append(PairedItem(difference, _RATIO_LIMIT, measured, combine_ratios, is_directed=False))
    return pairs


def _align(
    first: RunSlice, first_inputs: AuditInputsRecord, model: RunSlice, inputs: AuditInputsRecord, measure: str
) -> tuple[Floats, Floats, list[str], list[str]]:
    """Return both models' scores (names, documents, queries) of shared names and documents, with groups and units."""
    records = (first_inputs, inputs)
    name_indices = [{(name.group, name.full_name): i for i, name in enumerate(record.names)} for record in records]
    document_indices = [{document.id: i for i, document in enumerate(record.documents)} for record in records]
    names = [name for name in name_indices[0] if name in name_indices[1]]
    documents = [document for document in document_indices[0] if document in document_indices[1]]
    groups = [group for group, _ in names]
    old, new = (
        one.arrays[name_array(measure)][np.ix_([own[name] for name in names], [place[id] for id in documents])]
        for one, own, place in zip((first, model), name_indices, document_indices, strict=True)
    )
    if measure:  # responses to some queries may be missing
        old, new = (average_queries(one, groups)[:, :, None] for one in (old, new))
    known = np.asarray(~np.isnan(old).any(axis=2) & ~np.isnan(new).any(axis=2))
    rows = np.flatnonzero(known.any(axis=1))
    rows = np.array([i for i in rows if sum(groups[j] == groups[i] for j in rows) > 1], dtype=np.intp)
    columns = np.flatnonzero(known[rows].any(axis=0))
    cells = np.ix_(rows, columns)
    old, new = (np.where(known[cells][:, :, None], one[cells], np.nan) for one in (old, new))
    units = [f"{name.group} {name.unit}" for name in first_inputs.names]
    return old, new, [groups[i] for i in rows], [units[name_indices[0][names[i]]] for i in rows]


@dataclass(frozen=True, eq=False)
class PairedAudits:
    """Scores (names, documents, queries) of two models for the same names in the same documents."""

    old: Floats
    new: Floats
    name_groups: Sequence[str]
    units: Sequence[str]
    top_shares: Sequence[float]
    is_share: bool = False
    compared: int = 1

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """Groups that are compared."""
        groups = tuple(dict.fromkeys(self.name_groups))
        return groups if len(groups) > 1 and self.old.size else ()

    @property
    def top(self) -> float | None:
        """Share of selected pairs whose ratios are compared: the middle one."""
        return self.top_shares[len(self.top_shares) // 2] if self.top_shares else None

    def get_differences(self, group: str) -> tuple[float | None, float | None]:
        """Return D of a group in both models, in standard deviations of documents."""
        before, after = (self._audit(table)[group].effect_size for table in self._standardized)
        return before, after

    def combine_differences(self, group: str, weight: float, confidence: float) -> CombinedEffect:
        """Estimate D of the new model plus `weight` times that of the old one, both standardized.

        Parameters
        ----------
        group : str
        weight : float
            Weight of the old model: -1 for the change, 1 for the sum.
        confidence : float
            Confidence of the interval.
        """
        old, new = self._standardized
        contrast = self._audit(new + weight * old, 1.0 - confidence)[group]
        low, high, p_value = contrast.ci_low, contrast.ci_high, contrast.p_value
        if low is None and p_value is not None and p_value <= 1.0 - confidence:
            low = high = contrast.effect_size  # all names and documents agree, and are enough
        return CombinedEffect(
            contrast.effect_size,
            low,
            high,
            p_value,
            same=np.array_equal(old, new, equal_nan=True),
            over=f"{contrast.n_names + contrast.n_others:,} names and {contrast.n_documents:,} documents",
            missing_reason=contrast.reason,
        )

    def get_log_ratios(self, group: str) -> tuple[float | None, float | None]:
        """Return the log selection ratio of a group in both models."""
        ratios = (selection[group].ratio for selection in self._selections)
        before, after = (math.log(ratio) if ratio else None for ratio in ratios)
        return before, after

    def combine_log_ratios(self, group: str, weight: float, confidence: float) -> CombinedEffect:
        """Estimate the log selection ratio of the new model plus `weight` times that of the old one.

        Parameters
        ----------
        group : str
        weight : float
            Weight of the old model: -1 for the change, 1 for the sum.
        confidence : float
            Confidence of the interval.
        """
        found = combine_selections(*self._selections, group, weight, alpha=1.0 - confidence)
        value = math.nan if found.value is None else found.value
        over = f"{found.n_names:,} names and {found.n_documents:,} documents"
        missing_reason = found.reason if found.low is None else ""
        return CombinedEffect(value, found.low, found.high, found.p_value, found.same, over, missing_reason)

    @cached_property
    def _standardized(self) -> tuple[Floats, Floats]:
        if self.is_share:
            return self.old.mean(axis=2), self.new.mean(axis=2)
        old, new = (one.mean(axis=2) / (self._audit(one).document_spread or 1.0) for one in (self.old, self.new))
        return old, new

    @cached_property
    def _selections(self) -> tuple[Selection, Selection]:
        """Selection rates of groups in both models."""
        old, new = (
            self._audit(scores, top=[self.top] if self.top else []).selection(self.top)
            for scores in (self.old, self.new)
        )
        return old, new

    def _audit(self, scores: Floats, alpha: float = 0.05, top: Sequence[Any] = ()) -> NameAudit:
        options: dict[str, Any] = {"top": top, "units": self.units, "alpha": alpha, "compared": self.compared}
        return name_audit(scores, self.name_groups, rng=0, **options)
