"""Names, documents and queries of a name audit, or logged scores instead of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from biassay.datasets.human_ratings import HumanRatings, read_human_ratings
from biassay.datasets.logged_scores import LoggedScores, read_logged_scores
from biassay.datasets.names import (
    AuditName,
    GroupBalance,
    NameList,
    NameSelection,
    load_names,
    load_surnames,
    select_names,
)
from biassay.errors import UnknownNameError, UsageError
from biassay.grouping import group_pairs
from biassay.io import content_digest
from biassay.models.base import Model
from biassay.prompts.documents import (
    DocumentTemplate,
    Query,
    check_names_in_documents,
    read_documents,
    read_queries,
)
from biassay.prompts.prompt_sets import load_prompt_set
from biassay.studies.audit.outcomes import ResponseOutcome, get_outcome, judged_outcome_names
from biassay.studies.audit.results import show_group
from biassay.studies.audit.settings import AuditSettings

NO_QUERY = Query("", "")
"""Query of scores and responses that do not depend on queries."""
_DEFAULT_OUTCOMES = ("length", "agentic", "communal", "hedging", "readability")
_FEWEST_NAMES = 5  # per group, to which a draw may shrink


@dataclass(frozen=True)
class AuditTextRecord:
    """A document or a query, with the digest of its text."""

    id: str
    digest: str


@dataclass(frozen=True)
class AuditInputsRecord:
    """Inputs of an audit: names with their balance, documents and queries, or the digest of logged scores."""

    names_source: str = ""
    names: tuple[AuditName, ...] = ()
    documents: tuple[AuditTextRecord, ...] = ()
    queries: tuple[AuditTextRecord, ...] = ()
    matched: tuple[str, ...] = ()
    balance: tuple[GroupBalance, ...] = ()
    unknown_names: tuple[str, ...] = ()
    scores_digest: str = ""
    prompt_set: str = ""
    labels_digest: str = ""
    outcomes: tuple[AuditTextRecord, ...] = ()

    @property
    def n_groups(self) -> int:
        """Number of groups of names."""
        return len({name.group for name in self.names})


@dataclass(frozen=True, eq=False)
class AuditInputs:
    """Settings, names, documents and queries of an audit; or logged scores.

    If models write texts, documents are prompts, queries are the occupations in them, and outcomes score the texts.
    """

    settings: AuditSettings
    record: AuditInputsRecord
    names: tuple[AuditName, ...] = ()
    documents: tuple[DocumentTemplate, ...] = ()
    queries: tuple[Query, ...] = ()
    listed: NameList | None = None
    logged: LoggedScores | None = None
    outcomes: tuple[ResponseOutcome, ...] = ()
    labels: HumanRatings | None = None


def load_audit_inputs(settings: AuditSettings) -> AuditInputs:
    """Read documents, queries and the list of names, or logged scores."""
    _check_response_settings(settings)
    if settings.scores is not None:
        return _load_logged(settings)
    if settings.prompts is not None:
        return _load_prompts(settings, settings.prompts)
    if settings.documents is None:
        raise UsageError(
            "no documents given; name a folder or file with --documents, prompts with --prompts, or logged scores with "
            "--scores"
        )
    if settings.question is not None and "{document}" not in settings.question:
        raise UsageError(f"no placeholder for the document; write {{document}} in the question {settings.question!r}")
    documents = read_documents(settings.documents, named=settings.role == "subject")
    queries = read_queries(settings.query, settings.documents)
    inputs = AuditInputs(settings, AuditInputsRecord(), (), documents, queries, load_names(settings.names))
    return draw_names(inputs, ())


def _check_response_settings(settings: AuditSettings) -> None:
    """Raise UsageError for settings of responses that have no effect."""
    if settings.candidates is not None and settings.answer != "choice":
        raise UsageError("--candidates compares candidates in one prompt; add --answer choice")
    if settings.n_responses is not None and not settings.collects_responses:
        raise UsageError("--n-responses needs responses; add --answer yes-no, rating or choice, or --prompts")
    if settings.outcome and not settings.writes:
        raise UsageError("--outcome scores texts that a model writes; add --prompts")
    for option, name in {"--judge": settings.judge, "--human": settings.human}.items():
        if name is not None and not settings.writes:
            raise UsageError(f"{option} is about texts that a model writes; add --prompts")
    if settings.role == "user":
        _check_user(settings)
    if settings.writes:
        why = "--prompts collects texts, not decisions about documents"
        _refuse(settings, why, "documents", "question", "query", "answer")


def _refuse(settings: AuditSettings, why: str, *names: str) -> None:
    """Raise UsageError if one of some settings is given."""
    defaults = AuditSettings()
    for name in names:
        if getattr(settings, name) != getattr(defaults, name):
            raise UsageError(f"{why}; leave out --{name.replace('_', '-')}")


def _check_user(settings: AuditSettings) -> None:
    if not settings.collects_responses:
        raise UsageError("--as user needs responses; add --prompts, or --answer yes-no or rating")
    if settings.answer == "choice":
        raise UsageError("--as user has one name per prompt, and --answer choice compares several; use another answer")
    if not settings.writes and settings.question is None:
        raise UsageError(
            '--as user needs a question that the user asks, such as --question "Should I accept this offer? {document}"'
        )


def _load_prompts(settings: AuditSettings, source: str) -> AuditInputs:
    role: Any = settings.role
    loaded = load_prompt_set(source, role)
    names = settings.outcome or loaded.outcomes or _DEFAULT_OUTCOMES
    outcomes = tuple(get_outcome(name) for name in dict.fromkeys((*names, "refusal")))
    for outcome in outcomes:
        outcome.check_installed()
    rubrics = _check_judge(settings, outcomes)
    labels = None if settings.human is None else _read_labels(settings.human, rubrics)
    record = AuditInputsRecord(
        prompt_set=loaded.title,
        outcomes=tuple(
            AuditTextRecord(
                outcome.name, _make_digest(" ".join(outcome.words) if outcome.rubric is None else repr(outcome.rubric))
            )
            for outcome in outcomes
        ),
        labels_digest="" if settings.human is None else content_digest(Path(settings.human)),
    )
    queries = tuple(Query(occupation, occupation) for occupation in loaded.occupations)
    inputs = AuditInputs(
        settings, record, (), loaded.prompts, queries, load_names(settings.names), outcomes=outcomes, labels=labels
    )
    return draw_names(inputs, ())


def _read_labels(path: str, ends: Sequence[tuple[str, str]]) -> HumanRatings:
    """Read ratings of responses by people; `ends` are those of the scales of the judge."""
    labels = read_human_ratings(path)
    if not set(ends) & set(labels.pairs):
        wanted, rated = (", ".join(" - ".join(pair) for pair in pairs) for pairs in (ends, labels.pairs))
        raise UsageError(f"{path}: people rated {rated}, and the judge {wanted}; label the same scale")
    return labels


def _check_judge(settings: AuditSettings, outcomes: Sequence[ResponseOutcome]) -> list[tuple[str, str]]:
    """Return the ends of the scales that people can rate; raise UsageError if a judge is missing or has no use."""
    judged = [outcome for outcome in outcomes if outcome.rubric is not None]
    if judged and settings.judge is None:
        raise UsageError(f"--outcome {judged[0].name} needs a model that judges texts; name it with --judge MODEL")
    if settings.judge is not None and not judged:
        known = ", ".join(judged_outcome_names())
        raise UsageError(f"--judge scores no outcome; add one of them with --outcome: {known}")
    ends = [
        (outcome.rubric.low, outcome.rubric.high)
        for outcome in judged
        if outcome.rubric is not None and not outcome.compares
    ]
    if settings.human is not None and not ends:
        raise UsageError("--human corrects the ratings of a judge; add --outcome judge:RUBRIC and --judge MODEL")
    return ends


def hold_out_names(inputs: AuditInputs, words: Collection[str]) -> AuditInputs:
    """Return the inputs without the names that an erased model was fitted on; the names are drawn again later."""
    if inputs.listed is None:
        return inputs
    fitted = {word.casefold() for word in words}
    kept = tuple(entry for entry in inputs.listed.names if entry.name.casefold() not in fitted)
    return replace(inputs, listed=replace(inputs.listed, names=kept))


def draw_names(inputs: AuditInputs, models: Sequence[Model]) -> AuditInputs:
    """Draw the names, once for all models, so that they stay comparable.

    Names that are out of vocabulary for a model are left out before the draw. If all models have a tokenizer, tokens
    are counted over all models together.

    Parameters
    ----------
    inputs : AuditInputs
    models : sequence of Model
        Opened models.
    """
    settings, listed = inputs.settings, inputs.listed
    if listed is None:
        return inputs
    all_names = [entry.name for entry in listed.names]
    unknown = _find_unknown(all_names, models)
    selection = _select(
        listed,
        settings,
        match=tuple(kind for kind in settings.match if models or kind != "tokens") or None,
        count_tokens=_make_token_counter(all_names, models),
        known=(lambda name: name not in unknown) if unknown else None,
    )
    check_names_in_documents(inputs.documents, selection.names)
    parse_pairs(settings.pairs, selection.groups)
    record = replace(
        inputs.record,
        names_source=listed.citation or listed.name,
        names=selection.names,
        documents=_make_text_records(inputs.documents),
        queries=_make_text_records(inputs.queries),
        matched=selection.matched,
        balance=selection.balance,
        unknown_names=selection.unknown,
    )
    return replace(inputs, names=selection.names, record=record)


def _make_token_counter(names: Sequence[str], models: Sequence[Any]) -> Callable[[str], int] | None:
    counters = [getattr(model, "count_tokens", None) for model in models]
    if not counters or None in counters:
        return None
    totals = np.sum([np.asarray(count(names)) for count in counters if count is not None], axis=0)
    return dict(zip(names, totals.tolist(), strict=True)).__getitem__


def _find_unknown(names: Sequence[str], models: Sequence[Any]) -> set[str]:
    """Return the names out of the vocabulary of a model of word vectors. Other models know pieces of all words."""
    unknown = set[str]()
    for model in models:
        if hasattr(model, "rank_words"):
            model.prepare(names)
            unknown.update(name for name, spans in zip(names, model.encode(names).unknown, strict=True) if spans)
    return unknown


def _select(listed: NameList, settings: AuditSettings, **options: Any) -> NameSelection:
    """Draw names; if too few are in the vocabulary and the user gave no number, draw fewer."""
    options |= {"seed": settings.seed, "surnames": load_surnames() if settings.surnames else ()}
    can_shrink = settings.n_names is None and listed.default_n is not None and options["known"] is not None
    for n in range((listed.default_n or 0) - 1, _FEWEST_NAMES - 1, -1) if can_shrink else ():
        try:
            return select_names(listed, settings.by, n + 1, **options)
        except UsageError:
            continue
    return select_names(listed, settings.by, settings.n_names, **options)


def _make_text_records(texts: Sequence[DocumentTemplate | Query]) -> tuple[AuditTextRecord, ...]:
    return tuple(AuditTextRecord(text.id, _make_digest(text.text)) for text in texts)


def _make_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _load_logged(settings: AuditSettings) -> AuditInputs:
    why = "--scores audits existing scores"
    _refuse(settings, why, "documents", "query", "question", "answer", "prompts")
    _refuse(settings, why, "names", "by", "n_names", "match", "surnames", "pronouns")
    assert settings.scores is not None
    logged = read_logged_scores(settings.scores)
    parse_pairs(settings.pairs, tuple(dict.fromkeys(logged.groups)))
    names = tuple(
        AuditName(name, group, None, unit)
        for name, group, unit in zip(logged.names, logged.groups, logged.units, strict=True)
    )
    record = AuditInputsRecord(
        names_source="logged scores",
        names=names,
        documents=tuple(AuditTextRecord(document, "") for document in logged.documents),
        queries=tuple(AuditTextRecord(query, "") for query in logged.queries),
        scores_digest=content_digest(Path(settings.scores)),
    )
    return AuditInputs(settings, record, names, logged=logged)


def parse_pairs(pairs: Sequence[str], groups: Sequence[str]) -> list[tuple[str, str]]:
    """Return the groups of every pair, as in the list or in the report, ignoring case; raise UsageError for others."""
    known = {label.casefold(): group for group in groups for label in (group, show_group(group))}
    parsed = list[tuple[str, str]]()
    for pair in pairs:
        first, colon, second = pair.partition(":")
        if not colon or first.casefold() == second.casefold():
            raise UsageError(f'a pair is written "GROUP:GROUP", with two different groups; got {pair!r}')
        for group in (first, second):
            if group.casefold() not in known:
                raise UnknownNameError("group", group, groups, f"(groups: {', '.join(groups)})")
        parsed.append((known[first.casefold()], known[second.casefold()]))
    return parsed


def count_names(names: Sequence[AuditName]) -> dict[str, int]:
    """Count the units of every group."""
    units = group_pairs((name.group, name.unit) for name in names)
    return {group: len(set(own)) for group, own in units.items()}
