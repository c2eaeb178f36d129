"""The tables of benchmarks."""

from __future__ import annotations

from biassay.results.tables import MODEL, REVISION, Column, TableSpec
from biassay.studies.benchmarks.records import Example, NamedRow, PairRow, Result, TemplateRow, TermRow
from biassay.studies.examples import REPLY

__all__ = ["TABLES"]

_MODEL = (*MODEL, REVISION)
_RESULTS = (
    *_MODEL,
    Column("benchmark", "benchmark", "bbq, crows-pairs or stereoset."),
    Column("category", "category", "Category or bias type; all: over all of them."),
    Column("condition", "context", "Of BBQ: whether the context leaves the answer open."),
    Column("topic", "topic", "Gender, race, age, ..."),
    Column("by", "by", "Asked for an answer, the log-probability of options, or the likelihood of sentences."),
    Column("status", "status", "Measured, or failed: nothing counts."),
    Column("reason", "reason", "Why it was not measured."),
    Column("unit", "unit", "Sampling unit: template, writer (pair, where writers are not named) or target term."),
    Column("items", "items", "Items of the data.", "count"),
    Column("n", "n", "Items that count.", "count"),
    Column(
        "undecided",
        "undecided",
        "Items in which nothing is preferred. Answers: no option was chosen, or two equally often. Likelihoods: both "
        "sentences that are compared are equally likely. In CrowS-Pairs they are part of n, elsewhere not.",
        "count",
    ),
    Column(
        "unrelated", "unrelated", "Logs of StereoSet: the unrelated sentence was chosen; not in the score.", "count"
    ),
    Column("replies", "replies", "Answers over all orders of options, or epochs of a log.", "count"),
    Column("refused", "refused", "Answers that refuse.", "count"),
    Column("filtered", "filtered", "Prompts or answers that the endpoint filtered.", "count"),
    Column("failed", "failed", "Prompts on which the endpoint failed at every attempt.", "count"),
    Column("several", "several", "Answers that choose several options.", "count"),
    Column("empty", "empty", "Answers without a text.", "count"),
    Column("unparsed", "unparsed", "Other answers that choose no option.", "count"),
    Column(
        "unanswered",
        "unanswered",
        "Share of answers that choose no option. An option that says 'unknown' is an answer.",
        "share",
    ),
    Column("position", "position", "Position of the options that was chosen most often: A, B or C."),
    Column("position_share", "at this position", "Share of answers that chose it; 1/3 by content alone.", "share"),
    Column("left_out", "left out", "Items of which the model tells no likelihood.", "count"),
    Column("agreement", "agreement", "Share of orders that choose what is chosen over all of them.", "share"),
    Column("accuracy", "accuracy", "Share of right answers.", "share"),
    Column("bias", "bias", "2 target / known - 1, of answers that are not 'unknown'.", "number"),
    Column(
        "score",
        "score",
        "BBQ: the bias, in ambiguous contexts times (1 - accuracy). CrowS-Pairs: share of all pairs, ties included. "
        "StereoSet: ss.",
        "number",
    ),
    Column("null", "without bias", "The score of a model without bias.", "number"),
    Column("score_low", "low", "Score with other templates, writers or terms: lower end.", "number"),
    Column("score_high", "high", "Upper end; the confidence is 1 - alpha.", "number"),
    Column("p_value", "p", "With other templates, writers or terms; two-sided.", "p"),
    Column("p_value_holm", "p, Holm", "After Holm's correction over the categories of a model.", "p"),
    Column("n_clusters", "units", "Templates, writers (pairs) or terms that count.", "count"),
    Column("n_names", "names", "Names of people that are crossed with the templates.", "count"),
    Column("df", "df", "Degrees of freedom of the interval; with too few there is none.", "number"),
    Column(
        "largest_share",
        "largest share",
        "Share of the most influential template, writer or term in the variance of the score.",
        "share",
    ),
    Column("item_low", "low, by item", "With items taken for independent, as is usually printed.", "number"),
    Column("item_high", "high, by item", "Upper end.", "number"),
    Column("p_value_item", "p, by item", "The p-value that goes with it.", "p"),
    Column(
        "lms",
        "lms",
        "StereoSet: how often a meaningful sentence is preferred, in percent; none of logs.",
        "number",
    ),
    Column("lms_low", "lms, low", "Lower end.", "number"),
    Column("lms_high", "lms, high", "Upper end.", "number"),
    Column("icat", "icat", "lms min(ss, 100 - ss) / 50.", "number"),
    Column("icat_low", "icat, low", "Lower end.", "number"),
    Column("icat_high", "icat, high", "Upper end.", "number"),
    Column("alpha", "alpha", "Level of significance.", "number"),
)
_SHOWN = ("model", "category", "condition", "n", "undecided", "accuracy", "score", "score_low", "score_high")
_TERMS = (
    *_MODEL,
    Column("category", "category", "Bias type."),
    Column("term", "term", "The target term."),
    Column("n", "n", "Items.", "count"),
    Column("lms", "lms", "How often a meaningful sentence is preferred, in percent.", "number"),
    Column("ss", "ss", "How often the stereotype is preferred, in percent.", "number"),
)
_CELL = (
    *_MODEL,
    Column("category", "category", "Category."),
    Column("condition", "context", "Whether the context leaves the answer open."),
    Column("template", "template", "Number of the template.", "count"),
)
_COUNTS = (
    Column("target", "target", "Answers that show the bias.", "count"),
    Column("known", "known", "Answers that are not 'unknown'.", "count"),
    Column("correct", "correct", "Right answers.", "count"),
    Column("n", "n", "Answers that count.", "count"),
)
_TEMPLATES = (*_CELL, *_COUNTS)
_NAMED = (*_CELL, Column("names", "names", "First and last names of the two people."), *_COUNTS)
_PAIRS = (
    *_MODEL,
    Column("category", "category", "Bias type."),
    Column("pair", "pair", "Number of the pair."),
    Column(
        "apart",
        "apart",
        "Log-likelihood of the stereotyping sentence minus that of the other, each rounded to three decimals.",
        "number",
    ),
    Column("writer", "writer", "Writer of the pair, as named in the data."),
)
_EXAMPLES = (
    *_MODEL,
    Column("category", "category", "Category."),
    Column("question", "question", "Number of the question in the data (example_id)."),
    Column("order", "order", "The options as they were shown, by their names in the data."),
    Column("kind", "kind", "How the reply was read: chosen, several, refused, filtered, failed, empty or unparsed."),
    REPLY,
)
TABLES = (
    TableSpec(
        "results",
        "Results",
        Result,
        _RESULTS,
        key=("benchmark", "category", "condition"),
        number="score",
        shown=(*_SHOWN, "p_value", "p_value_holm", "item_low", "item_high", "n_clusters"),
    ),
    TableSpec("terms", "Target terms", TermRow, _TERMS, key=("category", "term"), number="ss", detail=True),
    TableSpec(
        "templates", "Templates", TemplateRow, _TEMPLATES, key=("category", "condition", "template"), detail=True
    ),
    TableSpec("names", "Names", NamedRow, _NAMED, key=("category", "condition", "template", "names"), detail=True),
    TableSpec("pairs", "Pairs", PairRow, _PAIRS, key=("category", "pair"), detail=True),
    TableSpec("examples", "Examples of replies", Example, _EXAMPLES, detail=True),
)
