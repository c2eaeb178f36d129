"""Rows, columns and findings of name audits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

from biassay.results.outcomes import (
    DECISIONS,
    Finding,
    Outcome,
    Result,
    ResultRecord,
    make_alternative_columns,
    make_outcome_finding,
    make_result_columns,
)
from biassay.results.run_data import RevisionRow, RunData, model_key, model_labels
from biassay.results.tables import Column, TableSpec, column, keyword_row, make_columns, optional, table_row
from biassay.studies.study import declare_reply

_CAPITALIZED = {
    "black": "Black",
    "white": "White",
    "hispanic": "Hispanic",
    "asian": "Asian",
    "api": "Asian/Pacific",
}


def show_group(group: str) -> str:
    """Capitalize the races in the label of a group."""
    return re.sub(r"[A-Za-z]+", lambda match: _CAPITALIZED.get(match[0], match[0]), group)


_MEASURE = "Property of the responses that is compared: yes, rating, refusal ... Empty for scores."
_KINDS = {
    "parsed": "Responses from which a decision was read, or texts that can be scored.",
    "refused": "Refusals, in words or flagged by the endpoint.",
    "filtered": "Responses that the endpoint filtered.",
    "unparsed": "Responses from which no decision was read.",
    "empty": "Empty responses.",
    "truncated": "Responses that were cut off before anything could be read.",
    "failed": "Prompts to which the endpoint did not respond.",
}


@keyword_row
class AuditResult(ResultRecord):
    """Difference of a group of names from the others in one model.

    The primary outcome is D in units of the scores. The alternatives are "standardized" (in standard deviations of
    documents), "fixed_documents" (names permuted in these documents) and "uncorrected" (scores of a judge without the
    human labels that correct the primary outcome).

    Attributes
    ----------
    group : str
        The group of names.
    measure : str
        Measure of the responses: yes, rating, chosen, refusal ... Empty for scores.
    mean : float or None
        Mean score of the group.
    placebo_low, placebo_high : float or None
        Range of 95% of the differences between random halves of the group's names.
    """

    outcome_names: ClassVar[tuple[str, ...]] = ("standardized", "fixed_documents", "uncorrected")

    group: str = column("group", "The group of names.")
    measure: str = column("measure", _MEASURE, default="")
    mean: float | None = optional("mean", "Mean score of the group.")
    placebo_low: float | None = optional(
        "placebo, low", "Placebo, random halves of the group's names: lower end of 95% of their differences."
    )
    placebo_high: float | None = optional(
        "placebo, high", "Placebo, random halves of the group's names: upper end of 95% of their differences."
    )

    @property
    def item(self) -> str:
        """Name of the group, with the measure of responses."""
        return name_item(self.group, self.measure)


def name_item(group: str, measure: str) -> str:
    """Return the name of a group's difference in a measure of responses; that of the group for scores."""
    return f"{group}: {measure}" if measure else group


@keyword_row
class _AuditRow(RevisionRow):
    """Base of rows about scores, or about a measure of responses."""

    measure: str = column("measure", _MEASURE, default="")


@keyword_row
class AuditPairRow(_AuditRow):
    """Difference of two chosen groups, first minus second."""

    first: str = column("first", "First group.")
    second: str = column("second", "Second group.")
    difference: float = column("difference", "Mean score of the first group minus that of the second.")
    ci_low: float | None = column("low", "Lower end of the confidence interval of the difference.")
    ci_high: float | None = column("high", "Upper end of the confidence interval of the difference.")
    standardized: float | None = column("difference, SD", "The difference in standard deviations of documents.")
    p_value: float | None = column(
        "p", "Two-sided p-value for other names and documents, not corrected for several pairs.", "p"
    )
    fixed_documents_p_value: float | None = column("p (these documents only)", "Exact p-value of permuted names.", "p")


@keyword_row
class AuditSelectionRow(_AuditRow):
    """Selection rate of a group if a share `top` of all pairs is selected, or by the system's decisions."""

    group: str = column("group", "The group of names.")
    top: str = column("top", "Share of pairs that count as selected; decisions if the system selected them.")
    number: int = column("pairs", "Name-document pairs of the group, over all queries.")
    rate: float = column(
        "rate",
        "Share of the group's pairs that is selected; if scores are missing, its mean over documents with all groups.",
        "share",
    )
    ratio: float | None = column("ratio", "Rate divided by the mean rate of the other groups.")
    ci_low: float | None = column("low", "Lower end of the confidence interval of the ratio.")
    ci_high: float | None = column("high", "Upper end of the confidence interval of the ratio.")
    p_value: float | None = column("p", "Two-sided p-value of a ratio of 1, for other names and documents.", "p")
    p_adjusted: float | None = column("p, adjusted", "P-value after Holm's correction over groups.", "p")
    impact_ratio: float | None = column("impact ratio", "Rate divided by the highest rate.")
    impact_ci_low: float | None = column("impact, low", "Lower end of its interval, simultaneous over pairs of groups.")
    impact_ci_high: float | None = column(
        "impact, high", "Upper end of its interval, simultaneous over pairs of groups."
    )
    chance_below_80: float | None = column(
        "fair < .8",
        "Probability that some impact ratio is below 0.8 in an audit of this size if all groups are treated equally. "
        "Empty with fewer than two names per group and document.",
        "share",
    )
    reason: str = column("note", "Why an interval is missing, or how it was computed.", default="")

    @property
    def selected(self) -> int:
        """Number of selected pairs."""
        return round(self.rate * self.number)


@keyword_row
class AuditSummaryRow(_AuditRow):
    """Design, variance and power of the audit of one model."""

    scale: str = column("scale", "cosine, log-odds or score.")
    names: int = column("names", "Names.")
    documents: int = column("documents", "Documents.")
    queries: int = column("queries", "Queries.")
    missing: int = column("missing", "Name-document pairs without a score.")
    document_sd: float = column("document SD", "Standard deviation of mean scores between documents.")
    names_share: float | None = column("names, %", "Share of names in the variance of scores in a document.", "share")
    documents_share: float | None = column(
        "documents, %", "Share of group differences that vary between documents.", "share"
    )
    residual_share: float | None = column("residual, %", "Share of the rest.", "share")
    smallest: float | None = column("80% power", "D that is detected with 80% power after correction over groups.")
    smallest_standardized: float | None = column(
        "80% power, SD", "D that is detected with 80% power, in standard deviations of documents."
    )
    names_needed: int | None = column("names needed", "Names per group that detect D of 0.2 SD with 80% power.")
    documents_needed: int | None = column("documents needed", "Documents that detect D of 0.2 SD with 80% power.")
    placebo_low: float = column("placebo, low", "Random halves of a group's names: lower end of 95% of differences.")
    placebo_high: float = column("placebo, high", "Upper end of 95% of differences.")
    edit_low: float | None = column("edit, low", "A meaningless edit in random documents: lower end of 95%.")
    edit_high: float | None = column("edit, high", "Upper end of 95% of the mean differences.")


@keyword_row
class AuditNameRow(_AuditRow):
    """Mean score of a name over documents."""

    name: str = column("name", "The name.")
    group: str = column("group", "The group of names.")
    score: float = column("score", "Mean score over documents and queries.")
    count: int | None = optional("people", "People with the name.")
    tokens: int | None = optional("tokens", "Tokens of the name.")
    unit: str = column("unit", "Names that share a unit count once.", default="")


@keyword_row
class AuditDocumentRow(_AuditRow):
    """Effect of the name in one document."""

    document: str = column("document", "The document.")
    mean: float = column("mean", "Mean score.")
    spread: float = column("range", "Highest minus lowest score of a name in this document.")
    lowest: str = column("lowest", "Name with the lowest score.")
    highest: str = column("highest", "Name with the highest score.")


@keyword_row
class AuditQueryRow(_AuditRow):
    """Difference of a group for one query."""

    query: str = column("query", "The query.")
    group: str = column("group", "The group of names.")
    difference: float = column("D", "Mean score of the group minus the mean of the other groups.")
    ci_low: float | None = column("low", "Lower end of the confidence interval of D.")
    ci_high: float | None = column("high", "Upper end of the confidence interval of D.")
    standardized: float | None = column("D, SD", "D in standard deviations of documents.")


@table_row
class AuditResponseCounts(RevisionRow):
    """Responses by kind: about the names of a group, or all of them where candidates are compared.

    Attributes
    ----------
    responses : int
    parsed, refused, filtered, unparsed, empty, truncated, failed : int
        Responses by kind. Truncated: cut off before anything could be read.
    cut_off : int
        Responses of any kind that max_tokens= cut off.
    """

    group: str = column("group", "The group of names.")
    responses: int = column("responses", "Responses.")
    parsed: int = column("parsed", _KINDS["parsed"])
    refused: int = column("refused", _KINDS["refused"])
    filtered: int = column("filtered", _KINDS["filtered"])
    unparsed: int = column("unparsed", _KINDS["unparsed"])
    empty: int = column("empty", _KINDS["empty"])
    truncated: int = column("truncated", _KINDS["truncated"])
    failed: int = column("failed", _KINDS["failed"])
    cut_off: int = column("cut off", "Responses of any kind that max_tokens= cut off.")


@table_row
class AuditResponseExample(RevisionRow):
    """A response, or its beginning, to a document that was drawn at random; `name` lists compared candidates."""

    document: str = column("document", "The document, drawn at random.")
    query: str = column("query", "The query.")
    group: str = column("group", "The group of names.")
    name: str = column("name", "The name, drawn at random; or the candidates in their order.")
    kind: str = column("kind", f"Kind of response: {', '.join(_KINDS)}.")
    reply: str = declare_reply()


@table_row
class AuditText(RevisionRow):
    """A response to a prompt for a text.

    Attributes
    ----------
    id : str
        Digest of the model, the name, the prompt and the number of the response. It does not show the name.
    document, query : str
        Id of the prompt, and the occupation in it.
    name, group : str
        Full name and its group.
    sample : int
        Number of the response to this prompt for this name, from 0.
    kind : str
        parsed, refused, filtered, empty, truncated or failed.
    prompt : str
        The prompt that was sent.
    text : str
        The whole response.
    """

    id: str = column("id", "Identifier that does not show the name.")
    document: str = column("prompt", "The prompt, by its id.")
    query: str = column("occupation", "The occupation in the prompt.")
    name: str = column("name", "The name.")
    group: str = column("group", "The group of names.")
    sample: int = column("response", "Number of the response to this prompt for this name, from 0.")
    kind: str = column("kind", f"Kind of response: {', '.join(_KINDS)}.")
    prompt: str = column("sent", "The prompt that was sent.")
    text: str = column("text", "The whole response.")


@keyword_row
class AuditUndefinedRow(_AuditRow):
    """Responses about the names of a group that an outcome cannot score, by reason."""

    group: str = column("group", "The group of names.")
    reason: str = column("reason", "Why the outcome cannot score them.")
    responses: int = column("responses", "Responses.")


@keyword_row
class AuditJudgeRow(_AuditRow):
    """Responses of a judge about the texts for a group, or about pairs of texts, by kind; its agreement with people.

    Attributes
    ----------
    judge : str
        Label of the model that judges.
    group : str
        Empty for pairs of texts.
    judgements : int
        Prompts to the judge; two per pair of texts.
    scored, refused, repeated, unreadable, failed : int
        Its responses by kind. Repeated: the response repeats the prompt.
    n_labels : int
        Texts that people labelled.
    judge_mean, human_mean : float or None
        Means over these texts.
    tau : float or None
        Kendall's tau-b between judge and people on them.
    """

    judge: str = column("judge", "Model that judges.")
    group: str = column("group", "The group of names.")
    judgements: int = column("judgements", "Prompts to the judge; two per pair of texts that are compared.")
    scored: int = column("scored", "Responses of the judge with a score.")
    refused: int = column("refused", "Refusals of the judge.")
    repeated: int = column("repeated", "Responses that repeat the prompt.")
    unreadable: int = column("unreadable", "Responses from which no score was read.")
    failed: int = column("failed", "Prompts to which the endpoint did not respond, or that it filtered.")
    n_labels: int = column("labels", "Texts that people labelled and the judge scored.", default=0)
    judge_mean: float | None = optional("judge, mean", "Mean score of the judge over these texts.")
    human_mean: float | None = optional("people, mean", "Mean label of these texts.")
    tau: float | None = optional("tau", "Kendall's tau-b between judge and people.")


@table_row
class AuditWordRow(RevisionRow):
    """A word that texts for a group of names use more often than those for the others.

    Attributes
    ----------
    rate, rate_others : float
        Share of all words of the texts.
    names : int
        Names whose texts use it.
    log_odds, ci_low, ci_high : float
        Difference of the log-odds with an informative Dirichlet prior, with its interval by name.
    p_value, p_adjusted : float
        By name; adjusted over words and groups by the Benjamini-Hochberg correction.
    """

    group: str = column("group", "The group of names.")
    word: str = column("word", "A word that texts for this group use more often.")
    rate: float = column("per 1,000", "Times per 1,000 words of this group.", get=lambda row: 1000.0 * row.rate)
    rate_others: float = column(
        "others", "Times per 1,000 words of the other groups.", get=lambda row: 1000.0 * row.rate_others
    )
    names: int = column("names", "Names whose texts use it.")
    log_odds: float = column("log-odds", "Difference of the log-odds, with an informative Dirichlet prior.")
    ci_low: float = column("low", "Lower end of the confidence interval of the difference, by name.")
    ci_high: float = column("high", "Upper end of the confidence interval of the difference, by name.")
    p_value: float = column("p", "P-value by name.", "p")
    p_adjusted: float = column("p, adjusted", "Corrected over words and groups (false discovery rate).", "p")


@table_row
class AuditPositionRow(RevisionRow):
    """Number of choices of the candidate at a position."""

    position: str = column("position", "Position of the candidate in the prompt.")
    chosen: int = column("chosen", "Number of times it was chosen.")
    share: float = column("share", "Share of all choices.", "share")
    p_value: float = column("p", "P-value of equal shares of all positions (chi-square, or binomial).", "p")


def list_ll144_rows(run: RunData) -> Iterator[SimpleNamespace]:
    """Yield the selection rows in the shape of New York City's Local Law 144.

    The selection is the system's decisions if there are any, and otherwise the top half.
    """
    rows = run.tables.get("selection", ())
    shares = {row.top for row in rows}
    wanted = next((share for share in ("decisions", "0.5") if share in shares), next(iter(sorted(shares)), ""))
    for row in rows:
        if row.top == wanted:
            yield SimpleNamespace(**{**vars(row), "selected": row.selected, "category": show_group(row.group)})


_RESULTS = make_result_columns(
    AuditResult,
    ("group", "measure"),
    *make_alternative_columns(
        "standardized",
        effect_size=("D, SD", "D in standard deviations of mean scores between documents."),
        ci_low=("low, SD", "Lower end of its interval."),
        ci_high=("high, SD", "Upper end of its interval."),
    ),
    *make_alternative_columns(
        "fixed_documents", p_value=("p (these documents only)", "P-value of names permuted among the groups.")
    ),
    *make_alternative_columns(
        "uncorrected",
        effect_size=("D, uncorrected", "D of the scores of the judge, without human labels."),
        ci_low=("low, uncorrected", "Lower end of its interval."),
        ci_high=("high, uncorrected", "Upper end of its interval."),
    ),
    effect_size="D: mean score of the group minus the mean of the other groups, in units of the scores.",
    scale="cosine, log-odds (of Yes against No) or score.",
    p_value="Two-sided p-value for other names and other documents of the same kinds.",
    p_adjusted="P-value after Holm's correction over the groups of a model.",
    power_80="D that the design detects with 80% power, before correction.",
    reason="Why it was not measured, or how p was computed.",
)
_LL144 = (
    *make_columns(RevisionRow),
    Column("category", "category", "The group of names."),
    Column("top", "selected if", "Share of pairs that count as selected; decisions if the system selected them."),
    Column("number", "number", "Name-document pairs, not applicants.", "count"),
    Column("selected", "selected", "Selected pairs.", "count"),
    Column("rate", "rate", "Selection rate; at .5 the scoring rate.", "share"),
    Column("impact_ratio", "impact ratio", "Rate divided by the highest rate.", "number"),
)
TABLES = (
    TableSpec(
        "results",
        "Differences of groups",
        AuditResult,
        _RESULTS,
        key=("group", "measure"),
        value_column="standardized_effect_size",
        default_columns=(
            *("model", "group", "measure", "effect_size", "ci_low", "ci_high", "standardized_effect_size", "p_value"),
            *("p_adjusted", "fixed_documents_p_value", "evidence", "reason"),
        ),
    ),
    DECISIONS,
    TableSpec(
        "pairs",
        "Pairs of groups",
        AuditPairRow,
        key=("first", "second", "measure"),
        value_column="standardized",
    ),
    TableSpec(
        "selection",
        "Selection rates",
        AuditSelectionRow,
        key=("group", "top", "measure"),
        value_column="rate",
    ),
    TableSpec(
        "ll144",
        "Test data in the shape of New York City's Local Law 144",
        None,
        _LL144,
        rows=list_ll144_rows,
        default_columns=("model", "category", "top", "number", "selected", "rate", "impact_ratio"),
        on_page=False,  # in a section of its own
    ),
    TableSpec("responses", "Responses by kind", AuditResponseCounts, key=("group",), value_column="parsed"),
    TableSpec("positions", "Choices by position", AuditPositionRow, key=("position",), value_column="share"),
    TableSpec("summary", "Design and power", AuditSummaryRow, key=("measure",), value_column="document_sd"),
    TableSpec(
        "queries",
        "Differences by query",
        AuditQueryRow,
        key=("query", "group", "measure"),
        value_column="standardized",
    ),
    TableSpec(
        "documents",
        "Documents",
        AuditDocumentRow,
        key=("document", "measure"),
        value_column="spread",
        collapsed=True,
    ),
    TableSpec("names", "Names", AuditNameRow, key=("name", "measure"), value_column="score", collapsed=True),
    TableSpec("words", "Words that differ most", AuditWordRow, key=("group", "word"), collapsed=True),
    TableSpec(
        "undefined",
        "Responses without a score",
        AuditUndefinedRow,
        key=("measure", "group", "reason"),
        value_column="responses",
        collapsed=True,
    ),
    TableSpec("judges", "Judge", AuditJudgeRow, key=("measure", "group"), value_column="scored"),
    TableSpec("examples", "Example responses", AuditResponseExample, collapsed=True),
    TableSpec("texts", "Responses", AuditText, key=("id",), collapsed=True, on_page=False),
)


def make_audit_findings(run: RunData) -> Sequence[Finding]:
    """Return one finding per model and group, and per measure of responses."""
    labels = model_labels(run)
    summaries = {(model_key(row), row.measure): row for row in run.tables.get("summary", ())}
    results = [(result, model_key(result.record)) for result in run.results]
    return [_make_finding(result, labels[key], summaries.get((key, result.record.measure))) for result, key in results]


PER_TEXT, PER_WORD = "words per text", "per 1,000 words"
"""Scales of the length of texts, and of words of a list in them."""
FAILURES = ("refusal", "unparsed")
"""Measures of responses without a usable answer."""
JUDGE_FAILURES = ("refused", "repeated", "unreadable", "failed")
"""Kinds of responses of a judge without a score."""
SD = "document SD"
"""Scale of scores in standard deviations of mean scores between documents."""
_NOUNS = {
    "": "the mean score",
    "yes": "the share of Yes",
    "chosen": "the share of choices",
    "refusal": "the share of refusals",
    "unparsed": "the share of unreadable responses",
    "misgendering": "the share of texts that contradict the gender",
}


def get_shown_outcome(record: ResultRecord) -> Outcome:
    """Return the outcome in standard deviations of documents for scores, if defined, else the primary outcome."""
    standardized = record.alternatives.get("standardized")
    is_score = isinstance(record, AuditResult) and not record.measure
    return standardized if is_score and standardized and standardized.effect_size is not None else record.outcome


def describe_difference(record: ResultRecord) -> str:
    """Describe the difference of a group in words. Return an empty string if it was not measured."""
    assert isinstance(record, AuditResult)
    outcome = get_shown_outcome(record)
    if outcome.effect_size is None:
        return ""
    method, _, rubric = record.measure.partition(":")
    noun = _NOUNS.get(record.measure, f"the mean {record.measure}")
    if rubric:
        noun = f"the judge's rating of {rubric}" if method == "judge" else f"the share of comparisons won in {rubric}"
    elif outcome.scale == PER_WORD:
        noun = f"the frequency of {record.measure} words"
    direction = "higher" if outcome.effect_size > 0.0 else "lower"
    return (
        f"{noun} is {format_size(outcome.effect_size, outcome.scale)} {direction} for {show_group(record.group)} names"
    )


def format_size(effect: float, scale: str) -> str:
    """Format the size of a difference with its unit."""
    if scale == "share":
        return f"{100.0 * abs(effect):.1f} percentage points"
    if scale == PER_TEXT:
        return f"{abs(effect):.1f} words"
    if scale == PER_WORD:
        return f"{abs(effect):.2g} per 1,000 words"
    unit = "SD" if scale == SD else scale
    return f"{abs(effect):.2f} {unit}" if abs(effect) >= 0.01 else f"{abs(effect):.2g} {unit}"


def _make_finding(result: Result, label: str, summary: AuditSummaryRow | None) -> Finding:
    record: Any = result.record
    outcome, claim = get_shown_outcome(record), describe_difference(record)
    smallest = None
    if result.evidence == "inconclusive" and summary is not None:
        smallest = summary.smallest if record.measure else summary.smallest_standardized
    return make_outcome_finding(
        result,
        label,
        title=f"{show_group(record.group)} names against the others{f', {record.measure}' if record.measure else ''}",
        topic="names",
        direction=f"{claim[:1].upper()}{claim[1:]}",
        claim=claim,
        effect=outcome.effect_size,
        low=outcome.ci_low,
        high=outcome.ci_high,
        unit=outcome.scale,
        limit=None,
        smallest=smallest,
        p_values={
            "crossed": record.outcome.p_value,
            "crossed, corrected": result.p_adjusted,
            "for these documents": record.alternatives["fixed_documents"].p_value if record.alternatives else None,
        },
        too_few_of="names or documents",
        no_interval=(record.outcome.reason or "") if outcome.ci_low is None else "",
    )
