"""Fill documents, read scores, and compute the rows of a name audit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, cycle, islice
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.datasets.names import AuditName
from biassay.errors import MeasurementError, UsageError
from biassay.grouping import group_pairs
from biassay.models.base import Identity, TextEmbeddings, join_text_pair
from biassay.prompts.documents import DocumentTemplate, Query, fill_document
from biassay.prompts.requests import Prompt
from biassay.results.outcomes import Outcome
from biassay.results.run_data import copy_fields, get_model_fields
from biassay.stats.association import unit_rows
from biassay.stats.name_audit import LEAST_DOCUMENTS, AuditDesign, GroupContrast, NameAudit, Selection, name_audit
from biassay.studies.audit.inputs import NO_QUERY, AuditInputs, count_names, parse_pairs
from biassay.studies.audit.results import (
    SD,
    AuditDocumentRow,
    AuditNameRow,
    AuditPairRow,
    AuditQueryRow,
    AuditResult,
    AuditSelectionRow,
    AuditSummaryRow,
    name_item,
)
from biassay.studies.audit.settings import DEFAULT_QUESTION, AuditSettings
from biassay.studies.study import Array, Event, Progress, Row, StudyWarning, UnknownWords, derive_seed
from biassay.studies.word_association.measure import combine_log_odds

Floats = NDArray[np.float64]
AuditScale = Literal["cosine", "log-odds", "score"]
_OPTIONS = ("No", "Yes", " No", " Yes")
_ORDERS = ("Answer Yes or No:", "Answer No or Yes:")
_N_FLIPS = 500
_MAX_SHOWN = 80  # characters of a text in an error
_BLOCK = 65_536  # texts in memory at a time
_CHUNK = 16_384  # texts whose vectors are in memory at a time
_TIED = 1.2  # times the top share that is selected, from which on the report says so
_MAX_UNKNOWN = 0.5  # share of a query's characters in unknown words, from which on there is a warning
_SELECTED = (
    *("rate", "ratio", "ci_low", "ci_high", "p_value", "p_adjusted"),
    *("impact_ratio", "impact_ci_low", "impact_ci_high"),
)
ENOUGH_DOCUMENTS = 8
"""If differences only change in sign between documents, 3% to 13% of fair audits with fewer are significant."""
LEAST_NAMES = 2
"""Fewest names with which a group is compared."""
EFFECT = 0.2
"""Difference, in standard deviations of documents, that determines the names and documents needed."""


@dataclass(frozen=True)
class AuditRequests:
    """All requests of an audit to a model with these capabilities."""

    inputs: AuditInputs
    capabilities: Capabilities

    @cached_property
    def scale(self) -> AuditScale:
        """Meaning of a score."""
        if self.inputs.logged is not None or self.capabilities.scorer:
            return "score"
        return "cosine" if self.capabilities.representations else "log-odds"

    @cached_property
    def queries(self) -> tuple[Query, ...]:
        """Queries that are used: an empty one if scores do not depend on queries."""
        if self.scale == "log-odds":
            return self._require_queries() if "{query}" in self._question else (NO_QUERY,)
        return (NO_QUERY,) if self.capabilities.scorer == "texts" else self._require_queries()

    def _require_queries(self) -> tuple[Query, ...]:
        if self.inputs.queries:
            return self.inputs.queries
        hint = "; for a language model, ask with --question" if self.scale == "cosine" else ""
        raise UsageError(f"no query given; name a text or file to compare documents with by --query{hint}")

    @property
    def _question(self) -> str:
        return self.inputs.settings.question or DEFAULT_QUESTION

    @cached_property
    def edited(self) -> tuple[DocumentTemplate, ...]:
        """Documents with a placeholder for a meaningless edit."""
        return tuple(document for document in self.inputs.documents if "noise" in document.places)

    @cached_property
    def edited_names(self) -> list[int]:
        """Names that are put into edited documents: the first one of every group."""
        return [own[0] for own in group_pairs((name.group, i) for i, name in enumerate(self.inputs.names)).values()]

    def fill(self, document: DocumentTemplate, names: Sequence[int] | None = None, noise: int = 0) -> list[str]:
        """Put names into a document.

        Parameters
        ----------
        document : DocumentTemplate
        names : sequence of int, optional
            Indices of names; by default all.
        noise : int
            Number of the meaningless edit.
        """
        chosen = self.inputs.names if names is None else [self.inputs.names[i] for i in names]
        pronouns: Any = self.inputs.settings.pronouns
        return [fill_document(document, name, pronouns, noise) for name in chosen]

    def list_documents(self) -> Iterator[str]:
        """Yield all filled documents."""
        for document in self.inputs.documents:
            yield from self.fill(document)
        for document in self.edited:
            yield from self.fill(document, self.edited_names, noise=1)

    def make_texts(self, documents: Sequence[str], query: Query) -> list[str]:
        """Return the texts that a scorer is given."""
        return list(documents) if query is NO_QUERY else [join_text_pair(query.text, text) for text in documents]

    def make_prompts(self, documents: Sequence[str], query: Query) -> list[Prompt]:
        """Return the prompts for one query, all documents in one order of the options and then in the other."""
        return [
            Prompt(
                f"{self._question.replace('{query}', query.text).replace('{document}', document)}\n\n{order}",
                options=_OPTIONS,
            )
            for order in _ORDERS
            for document in documents
        ]

    def iter_text_blocks(self) -> Iterator[Sequence[str]]:
        """Yield all texts to encode or score, in blocks that fit in memory."""
        documents, queries = self.list_documents(), self.queries
        texts: Iterator[str]
        if self.scale == "cosine":
            texts = chain((query.text for query in queries), documents)
        else:
            texts = (text for document in documents for query in queries for text in self.make_texts([document], query))
        return iter(lambda: tuple(islice(texts, _BLOCK)), ())

    def list_prompts(self) -> list[Prompt]:
        """Return all prompts of a language model."""
        documents = list(self.list_documents())
        return [prompt for query in self.queries for prompt in self.make_prompts(documents, query)]


class ScoreReader:
    """Read the scores of filled documents from the outputs of a model."""

    def __init__(self, requests: AuditRequests, model: ModelOutputs) -> None:
        self._requests, self._model = requests, model
        self.truncated, self.unknown = 0, set[str]()

    def warn(self) -> Iterator[Event]:
        """Yield warnings that affect the interpretation of the scores."""
        if self.truncated:
            yield StudyWarning(
                f"{self.truncated:,} documents exceed the maximum length of the model; it does not read names and "
                "words beyond that"
            )
        if self._requests.scale == "cosine":
            for query, spans in zip(self._requests.queries, self._embedded_queries.unknown, strict=True):
                share = sum(end - start for start, end in spans) / max(len(query.text), 1)
                if share >= _MAX_UNKNOWN:
                    yield StudyWarning(
                        f"query {query.id!r}: most of its words are out of vocabulary; write it in the model's language"
                    )
        if self.unknown:
            yield UnknownWords(tuple(sorted(self.unknown)))

    def read(self, documents: Sequence[DocumentTemplate], names: Sequence[int] | None = None, noise: int = 0) -> Floats:
        """Return the scores (names, documents, queries) of some documents.

        Parameters
        ----------
        documents : sequence of DocumentTemplate
        names : sequence of int, optional
            Indices of names; by default all.
        noise : int
            Number of the meaningless edit.
        """
        by_document = [self._requests.fill(document, names, noise) for document in documents]
        scores = self._read_texts([text for texts in by_document for text in texts], names)
        return scores.reshape(len(documents), -1, len(self._requests.queries)).swapaxes(0, 1)

    def _read_texts(self, texts: Sequence[str], names: Sequence[int] | None) -> Floats:
        """Return the scores (texts, queries) of filled documents, all names of one after the other."""
        if self._requests.scale == "cosine":
            embedded = self._model.read_texts(texts)
            self.truncated += sum(index is not None for index in embedded.truncated_at)
            chosen = range(len(self._requests.inputs.names)) if names is None else names
            for i, text, spans in zip(cycle(chosen), texts, embedded.unknown, strict=False):
                name = self._requests.inputs.names[i].name
                self.unknown.update(name for start, end in spans if name.casefold() == text[start:end].casefold())
            _check_known(texts, embedded.vectors, "the document")
            return unit_rows(embedded.vectors, "documents") @ self._query_vectors.T
        columns = []
        for query in self._requests.queries:
            if self._requests.scale == "score":
                vectors = self._model.read_texts(self._requests.make_texts(texts, query)).vectors
                columns.append(vectors.astype(np.float64).sum(axis=1))
            else:
                replies = self._model.replies(self._requests.make_prompts(texts, query))
                odds = np.array([combine_log_odds(reply.log_p) for reply in replies])
                columns.append(odds.reshape(len(_ORDERS), -1).mean(axis=0))
        return np.stack(columns, axis=1)

    @cached_property
    def _embedded_queries(self) -> TextEmbeddings:
        return self._model.read_texts([query.text for query in self._requests.queries])

    @cached_property
    def _query_vectors(self) -> Floats:
        vectors = self._embedded_queries.vectors
        _check_known([query.text for query in self._requests.queries], vectors, "the query")
        return unit_rows(vectors, "queries")


def _check_known(texts: Sequence[str], vectors: NDArray[np.float32], what: str) -> None:
    """Raise MeasurementError if the model knows no word of a text, which then has no direction."""
    for text, vector in zip(texts, vectors, strict=True):
        if not vector.any():
            raise MeasurementError(
                f"all words of {what} {text[:_MAX_SHOWN]!r} are out of vocabulary; write it in the model's language"
            )


def measure_audit(inputs: AuditInputs, model: ModelOutputs) -> Iterator[Event]:
    """Score every name in every document, and yield the rows of one model."""
    requests = AuditRequests(inputs, model.capabilities)
    selected, edits = None, None
    if inputs.logged is not None:
        scores, selected = inputs.logged.scores, inputs.logged.selected
    else:
        if inputs.queries and requests.queries == (NO_QUERY,):
            how = (
                "write {query} in --question" if requests.scale == "log-odds" else "score(queries, documents) gets them"
            )
            yield StudyWarning(f"queries are not used, because scores are of documents alone; {how}")
        reader, tables, size = ScoreReader(requests, model), [], max(_CHUNK // len(inputs.names), 1)
        for start in range(0, len(inputs.documents), size):
            tables.append(reader.read(inputs.documents[start : start + size]))
            yield Progress("documents", min(start + size, len(inputs.documents)), len(inputs.documents))
        scores = np.concatenate(tables, axis=1)
        names = requests.edited_names
        where = [index for index, document in enumerate(inputs.documents) if document in requests.edited]
        if where:
            edits = np.nanmean(reader.read(requests.edited, names, noise=1) - scores[names][:, where], axis=(0, 2))
        yield from reader.warn()
    yield from warn_of_few(scores.shape[1], "documents")
    yield Array("scores", scores)
    if selected is not None:
        yield Array("selected", selected)
    query_ids = [query.id for query in requests.queries] if inputs.logged is None else inputs.logged.queries
    measure = ResponseMeasure("", requests.scale, top=inputs.settings.top)
    rows = AuditRows(inputs, model.identity, measure, scores, query_ids, selected=selected, edits=edits)
    yield from rows.make_rows()


def warn_of_few(n_documents: int, what: str) -> Iterator[Event]:
    """Yield a warning if there are too few documents, or prompts, to rely on p-values."""
    if LEAST_DOCUMENTS <= n_documents < ENOUGH_DOCUMENTS:
        yield StudyWarning(
            f"{n_documents} {what}: p-values assume that the difference of a group is normally distributed over "
            f"{what}; give at least {ENOUGH_DOCUMENTS}"
        )


@dataclass(frozen=True)
class ResponseMeasure:
    """Measure that is compared: a property of the responses, or the scores of a model.

    Attributes
    ----------
    name : str
        Empty for scores.
    scale : str
        Unit of the values.
    ends : (float, float) or None
        Smallest and largest possible value, for bounds with missing responses counted either way.
    selects : bool
        If True, values are decisions, and selection rates follow from them.
    top : sequence of float
        Shares of pairs that count as selected, by their values.
    compared : int
        Number of candidates, or texts, of which one was chosen at a time.
    """

    name: str
    scale: str = "share"
    ends: tuple[float, float] | None = None
    selects: bool = False
    top: Sequence[float] = ()
    compared: int = 1


class AuditRows:
    """Rows of one model: of its scores, or of one measure of its responses.

    Parameters
    ----------
    inputs : AuditInputs
    identity : Identity
    measure : ResponseMeasure
    scores : (names, documents, queries) float
        NaN where missing.
    queries : sequence of str
    selected : (names, documents, queries) float, optional
        Decisions from 0 to 1.
    edits : (documents,) float, optional
        Differences that a meaningless edit makes.
    by_query : (names, documents, queries) float, optional
        Scores for rows by query, if `scores` are averaged over queries.
    """

    def __init__(
        self,
        inputs: AuditInputs,
        identity: Identity,
        measure: ResponseMeasure,
        scores: Floats,
        queries: Sequence[str],
        *,
        selected: Floats | None = None,
        edits: Floats | None = None,
        by_query: Floats | None = None,
    ) -> None:
        self._settings, self._scale, self._edits, self._queries = inputs.settings, measure.scale, edits, queries
        self._n_measures, self._compared = max(len(inputs.outcomes), 1), measure.compared
        self._measure, self._top = measure.name, tuple(measure.top)
        missing = np.asarray(np.isnan(scores).any(axis=2))
        rows, columns = np.flatnonzero(~missing.all(axis=1)), np.flatnonzero(~missing.all(axis=0))
        if not len(rows):
            raise MeasurementError(
                f"{identity.name}: no document has a score; the model gives no probability of Yes and No"
            )
        self._scores = scores[np.ix_(rows, columns)]
        self._by_query = self._scores if by_query is None else by_query[np.ix_(rows, columns)]
        self._selected = None if selected is None else selected[np.ix_(rows, columns)]
        self._names = [inputs.names[i] for i in rows]
        self._documents = [inputs.record.documents[i].id for i in columns]
        self._missing = int(missing.sum())
        self._groups = [name.group for name in self._names]
        self._who = {**get_model_fields(identity), "measure": measure.name}

    def make_rows(self) -> Iterator[Row]:
        """Yield all rows."""
        if np.nanmax(self._scores) == np.nanmin(self._scores):
            value = f"{np.nanmax(self._scores):g}"
            reason = f"all scores are {value}; a constant cannot be audited; check the model's inputs"
            for group in dict.fromkeys(self._groups):
                yield Row("results", AuditResult(**self._who, group=group, title=group, status="failed", reason=reason))
            return
        audit = self._audit(self._scores, self._top, self._selected)
        shares: list[float | None] = [*([None] if self._selected is not None else []), *self._top]
        selections = {share: audit.selection(share) for share in shares}
        for contrast in audit.contrasts.values():
            yield Row("results", self._result(contrast, audit))
        for first, second in parse_pairs(self._settings.pairs, audit.groups):
            yield Row("pairs", self._pair(audit.pair(first, second), audit))
        for selection in selections.values():
            yield from self._selection(selection)
        yield Row("summary", self._summary(audit))
        yield from self._name_rows()
        yield from self._document_rows()
        if len(self._queries) > 1:
            yield from self._query_rows()

    def _audit(self, scores: Floats, top: Sequence[float] = (), selected: Floats | None = None) -> NameAudit:
        return audit_names(self._settings, self._names, scores, top, selected, self._compared)

    def _audit_query(self, scores: Floats) -> NameAudit | None:
        """Audit the scores of one query; None if some group has fewer than two names with scores."""
        names, scores = drop_missing(self._names, scores)
        sizes = count_names(names)
        if len(sizes) < len(set(self._groups)) or min(sizes.values()) < LEAST_NAMES:
            return None
        return audit_names(self._settings, names, scores, compared=self._compared)

    def _result(self, contrast: GroupContrast, audit: NameAudit) -> AuditResult:
        n = {"names": contrast.n_names, "other names": contrast.n_others, "documents": contrast.n_documents}
        is_own = audit.unit_groups == audit.groups.index(contrast.group)
        low, high = audit.placebo.by_group[contrast.group]
        return AuditResult(
            **self._who,
            group=contrast.group,
            title=contrast.group,
            topic="names",
            question=name_item(audit.groups[0], self._measure) if len(audit.groups) == 2 else "",
            mean=float(np.mean(audit.name_means[is_own])),
            placebo_low=low,
            placebo_high=high,
            outcome=make_outcome(
                contrast,
                self._scale,
                **copy_fields(contrast, "standard_error", "df", "power_80"),
                n=n,
                reason=contrast.reason or None,
            ),
            alternatives={
                "standardized": self._standardize(contrast, audit.document_spread),
                "fixed_documents": Outcome(
                    effect_size=contrast.effect_size,
                    scale=self._scale,
                    p_value=contrast.fixed_documents_p_value,
                    test="permutation of names",
                ),
            },
        )

    def _standardize(self, contrast: GroupContrast, spread: float) -> Outcome:
        if self._scale == "share":  # percentage points need no other unit
            return Outcome(confidence=1.0 - contrast.alpha, scale=SD)

        def divide(value: float | None) -> float | None:
            return None if value is None or not spread > 0.0 else value / spread

        return Outcome(
            effect_size=contrast.standardized,
            ci_low=divide(contrast.ci_low),
            ci_high=divide(contrast.ci_high),
            confidence=1.0 - contrast.alpha,
            scale=SD,
            power_80=divide(contrast.power_80),
        )

    def _pair(self, contrast: GroupContrast, audit: NameAudit) -> AuditPairRow:
        standardized = self._standardize(contrast, audit.document_spread)
        return AuditPairRow(
            **self._who,
            first=contrast.group,
            second=contrast.others[0],
            difference=contrast.effect_size,
            standardized=standardized.effect_size,
            **copy_fields(contrast, "ci_low", "ci_high", "p_value", "fixed_documents_p_value"),
        )

    def _selection(self, selection: Selection) -> Iterator[Row]:
        present = np.asarray(~np.isnan(self._scores).any(axis=2))
        overall, ties = float(np.mean([group.rate for group in selection.groups.values()])), ""
        if selection.top is not None and overall > _TIED * selection.top:
            ties = f"{overall:.0%} of pairs are selected, because scores tie at the threshold"
        for group, one in selection.groups.items():
            number = int(present[[name == group for name in self._groups]].sum()) * self._scores.shape[2]
            reasons = ties, one.reason, one.impact_reason
            row = AuditSelectionRow(
                **self._who,
                group=group,
                top="decisions" if selection.top is None else f"{selection.top:g}",
                number=number,
                **copy_fields(one, *_SELECTED),
                chance_below_80=selection.chance_below_80,
                reason="; ".join(dict.fromkeys(filter(None, reasons))),
            )
            yield Row("selection", row)

    def _summary(self, audit: NameAudit) -> AuditSummaryRow:
        components, design = audit.components, audit.design
        spread = 0.0 if self._scale == "share" else audit.document_spread
        shares = None if components is None else components.shares
        smallest = None
        if design is not None:
            sizes = design.n_names, design.n_documents, design.n_groups
            smallest = make_design(design.components, *sizes, audit.alpha / self._n_measures).smallest_effect()
        edits = self._make_edit_band()
        return AuditSummaryRow(
            **self._who,
            scale=self._scale,
            names=len(self._names),
            documents=len(self._documents),
            queries=len(self._queries),
            missing=self._missing,
            document_sd=audit.document_spread,
            names_share=shares[0] if shares else None,
            documents_share=shares[1] if shares else None,
            residual_share=shares[2] if shares else None,
            smallest=smallest,
            smallest_standardized=None if smallest is None or not spread > 0.0 else smallest / spread,
            names_needed=None if design is None or not spread > 0.0 else design.names_needed(EFFECT * spread),
            documents_needed=None if design is None or not spread > 0.0 else design.documents_needed(EFFECT * spread),
            placebo_low=audit.placebo.low,
            placebo_high=audit.placebo.high,
            edit_low=edits[0],
            edit_high=edits[1],
        )

    def _make_edit_band(self) -> tuple[float | None, float | None]:
        """Return the range of 95% of mean differences if a meaningless edit were made in random documents."""
        if self._edits is None or np.isnan(self._edits).all():
            return None, None
        edits = self._edits[~np.isnan(self._edits)]
        rng = np.random.default_rng(derive_seed(self._settings.seed, "audit", "edits"))
        means = (rng.choice((-1.0, 1.0), (_N_FLIPS, len(edits))) * edits).mean(axis=1)
        low, high = np.quantile(means, (0.025, 0.975)).tolist()
        return low, high

    def _name_rows(self) -> Iterator[Row]:
        by_document = np.nanmean(self._scores.mean(axis=2), axis=0)
        deviations = np.nanmean(self._scores.mean(axis=2) - by_document, axis=1) + by_document.mean()
        for name, score in zip(self._names, deviations.tolist(), strict=True):
            given: dict[str, Any] = {"count": name.count, "tokens": name.tokens, "unit": name.unit}
            yield Row("names", AuditNameRow(**self._who, name=name.full_name, group=name.group, score=score, **given))

    def _document_rows(self) -> Iterator[Row]:
        for document, scores in zip(self._documents, self._scores.mean(axis=2).T, strict=True):
            low, high = int(np.nanargmin(scores)), int(np.nanargmax(scores))
            row = AuditDocumentRow(
                **self._who,
                document=document,
                mean=float(np.nanmean(scores)),
                spread=float(scores[high] - scores[low]),
                lowest=f"{self._names[low].full_name} ({self._groups[low]})",
                highest=f"{self._names[high].full_name} ({self._groups[high]})",
            )
            yield Row("documents", row)

    def _query_rows(self) -> Iterator[Row]:
        for number, query in enumerate(self._queries):
            audit = self._audit_query(self._by_query[:, :, number])
            if audit is None:
                continue
            for contrast in audit.contrasts.values():
                standardized = self._standardize(contrast, audit.document_spread)
                row = AuditQueryRow(
                    **self._who,
                    query=query,
                    difference=contrast.effect_size,
                    standardized=standardized.effect_size,
                    **copy_fields(contrast, "group", "ci_low", "ci_high"),
                )
                yield Row("queries", row)


def make_outcome(contrast: GroupContrast, scale: str, **fields: Any) -> Outcome:
    """Return the difference of a group as an outcome. `fields` sets further fields of the outcome."""
    estimate = copy_fields(contrast, "effect_size", "ci_low", "ci_high", "p_value")
    test = "names crossed with documents"
    return Outcome(**estimate, confidence=1.0 - contrast.alpha, scale=scale, test=test, **fields)


def drop_missing(names: Sequence[AuditName], scores: Floats) -> tuple[list[AuditName], Floats]:
    """Drop names and documents without any score."""
    present = ~np.isnan(scores)
    rows, columns = np.flatnonzero(present.any(axis=1)), np.flatnonzero(present.any(axis=0))
    return [names[i] for i in rows.tolist()], scores[np.ix_(rows, columns)]


def audit_names(
    settings: AuditSettings,
    names: Sequence[AuditName],
    scores: Floats,
    top: Sequence[float] = (),
    selected: Floats | None = None,
    compared: int = 1,
) -> NameAudit:
    """Compare scores between the groups of some names, with the level and the seed of the settings.

    Parameters
    ----------
    settings : AuditSettings
    names : sequence of AuditName
    scores : (names, documents) or (names, documents, queries) float
    top : sequence of float
    selected : array with the shape of scores, optional
    compared : int
        Number of candidates of which one was chosen at a time.
    """
    return name_audit(
        scores,
        [name.group for name in names],
        top=tuple(dict.fromkeys(top)),
        units=[f"{name.group} {name.unit}" for name in names],
        selected=selected,
        compared=compared,
        alpha=settings.alpha,
        rng=np.random.default_rng(derive_seed(settings.seed, "audit", "statistics")),
    )


def make_design(components: Any, n_names: int, n_documents: int, n_groups: int, alpha: float) -> AuditDesign:
    """Return a design whose power allows for the correction over groups; two groups have one difference.

    Parameters
    ----------
    components : AuditComponents
        Variance components of scores.
    n_names : int
        Names per group.
    n_documents, n_groups : int
    alpha : float
        Significance level before correction.
    """
    return AuditDesign(components, n_names, n_documents, n_groups, alpha / (n_groups if n_groups > 2 else 1))
