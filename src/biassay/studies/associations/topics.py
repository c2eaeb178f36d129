"""Summary of the tests of each topic: the model's topic effect, from tests that share words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from biassay.reporting.document import Cell, ColumnSpan, RowGroup, Table, TableRow, Text
from biassay.reporting.formats import format_decimal, format_interval, format_p
from biassay.results.run_data import RevisionRow, belongs_to, model_key
from biassay.results.tables import TableSpec, column, table_row
from biassay.stats.topic_effect import FEWEST_TESTS, correlate_errors, summarize_topic
from biassay.studies.associations.results import CROSSED, AssociationRecord

if TYPE_CHECKING:
    from biassay.studies.associations.report import RunView


@table_row
class TopicRecord(RevisionRow):
    """Effect of one topic on one model: the mean calibrated difference over tests, in the expected direction."""

    topic: str = column("topic", "Topic of the tests.")
    tests: tuple[str, ...] = column("tests", "Tests in the summary: one per question, with an expected direction.")
    topic_effect: float = column(
        "topic effect", "Mean calibrated difference of tests of this kind, positive in the expected direction."
    )
    topic_ci_low: float = column("low", "Lower end of its 95% interval.")
    topic_ci_high: float = column("high", "Upper end.")
    topic_p_value: float = column("p", "P-value of a topic effect of 0, two-sided; not corrected over topics.", "p")
    between_sd: float = column("SD between tests", "Standard deviation of true effects between tests.")
    shrunken: dict[str, float] = column("shrunken", "Effect of each test, drawn towards the mean by its uncertainty.")


TOPICS = TableSpec("topics", "Topics", TopicRecord, key=("topic",), collapsed=True)


def summarize_topics(records: Iterable[AssociationRecord]) -> tuple[TopicRecord, ...]:
    """Summarize the social-bias tests of every model and topic.

    A question counts once, in words if it was measured in words. Tests without an expected direction, or whose words
    were found by searching the model, are left out.
    """
    by_topic: dict[tuple[object, ...], dict[str, AssociationRecord]] = {}
    for record in sorted(records, key=lambda record: record.level != "word"):
        key = (record.model, record.options, record.model_revision, record.topic)
        if record.about == "people" and _is_usable(record):
            by_topic.setdefault(key, {}).setdefault(record.question or record.test, record)
    chosen = (tuple(questions.values()) for questions in by_topic.values() if len(questions) >= FEWEST_TESTS)
    return tuple(map(_summarize, chosen))


def _is_usable(record: AssociationRecord) -> bool:
    return (
        record.direction is not None
        and not record.searched
        and record.outcome.test == CROSSED
        and bool(record.calibrated_difference is not None and record.cosine_standard_error and record.outcome.df)
    )


def _summarize(records: Sequence[AssociationRecord]) -> TopicRecord:
    effects = [float(r.direction or 0) * float(r.calibrated_difference or 0.0) for r in records]
    errors = [float(r.cosine_standard_error or 0.0) / float(r.cosine_sd or 1.0) for r in records]
    influences = [dict(_list_influences(record)) for record in records]
    found = summarize_topic(
        effects, errors, correlate_errors(influences), [float(r.outcome.df or 1.0) for r in records]
    )
    first, names = records[0], [record.test for record in records]
    return TopicRecord(
        model=first.model,
        options=first.options,
        topic=first.topic,
        tests=tuple(names),
        topic_effect=found.mean,
        topic_ci_low=found.ci_low,
        topic_ci_high=found.ci_high,
        topic_p_value=found.p_value,
        between_sd=found.between_sd,
        shrunken=dict(zip(names, found.shrunken, strict=True)),
        model_revision=first.model_revision,
    )


def _list_influences(record: AssociationRecord) -> Iterator[tuple[str, float]]:
    """Yield how much each word, or cluster, moves the effect in the expected direction."""
    for role, sign in zip("XYAB", (1.0, -1.0, 1.0, -1.0), strict=True):
        means = _average_clusters(record.associations[role], record.clusters.get(role, {}))
        center, n = fmean(means.values()), len(means)
        if n > 1:
            factor = float(record.direction or 0) * sign / (n * (n - 1)) ** 0.5
            yield from ((word, factor * (value - center)) for word, value in means.items())


def _average_clusters(values: Mapping[str, float], clusters: Mapping[str, str]) -> dict[str, float]:
    grouped: dict[str, list[float]] = {}
    for word, value in values.items():
        grouped.setdefault(clusters.get(word, word), []).append(value)
    return {word: fmean(of_word) for word, of_word in grouped.items()}


_INTRODUCTION = (
    "Mean of the calibrated differences of a topic's questions, in the direction of the stereotype, for other tests of "
    "the same kind. The tests share words, and the interval accounts for it. Only tests with an expected direction "
    "count."
)


def make_topic_blocks(view: RunView) -> Iterator[Text | Table]:
    """Yield the table of topic effects, models across; nothing if no topic has enough tests."""
    rows: Sequence[TopicRecord] = view.run.tables.get("topics", ())
    if not rows:
        return
    yield Text(_INTRODUCTION)
    models = [model for model in view.run.manifest.models if any(belongs_to(row, model) for row in rows)]
    spans = [next(view.labels[model_key(row)] for row in rows if belongs_to(row, model)) for model in models]
    table_rows = []
    for topic in dict.fromkeys(row.topic for row in rows):
        cells = []
        for model in models:
            found = next((row for row in rows if row.topic == topic and belongs_to(row, model)), None)
            cells += _make_cells(found)
        table_rows.append(TableRow((topic,), tuple(cells)))
    columns = ("questions", "effect", "95% CI", "p", "SD between tests")
    yield Table(
        "Topic effects",
        ("topic",),
        tuple(ColumnSpan(label, columns) for label in spans),
        (RowGroup("", tuple(table_rows)),),
    )


def _make_cells(row: TopicRecord | None) -> list[Cell]:
    if row is None:
        return [Cell("–")] * 5
    texts = (
        str(len(row.tests)),
        format_decimal(row.topic_effect),
        format_interval(row.topic_ci_low, row.topic_ci_high),
        format_p(row.topic_p_value),
        format_decimal(row.between_sd),
    )
    return [Cell(text) for text in texts]
