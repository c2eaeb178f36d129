"""Write a model-card section with its YAML index."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from biassay.errors import UnknownNameError, UsageError
from biassay.io import make_printable
from biassay.reporting.citations import collect_citations
from biassay.reporting.markdown import escape
from biassay.reporting.sentences import make_points, summarize_findings
from biassay.results.findings import Finding
from biassay.results.run_data import RunData

if TYPE_CHECKING:
    from biassay.reporting.presenter import Presenter


__all__ = [
    "CardMetric",
    "IndexEntry",
    "ModelCard",
    "format_eval_results",
    "format_model_index",
    "format_scalar",
    "get_version",
    "make_card",
    "render_model_card",
]


_TOP = """# For the folder .eval_results of the model's repository, see https://huggingface.co/docs/hub/eval-results
# The hub shows results of data sets that are registered as benchmarks: where you have one, give its name as id.
"""


@dataclass(frozen=True)
class CardMetric:
    """A number of the index. None, NaN and the infinities stand for no number there."""

    type: str
    name: str
    value: float | int | None

    @property
    def finite(self) -> bool:
        return self.value is not None and math.isfinite(self.value)


@dataclass(frozen=True)
class IndexEntry:
    """One entry of the index: the task, what stands for the data set, and the metrics.

    ``config`` tells entries of one data set apart, ``args`` say how it was made.
    """

    task: str
    task_name: str
    dataset: str
    dataset_name: str
    config: str
    args: Mapping[str, str]
    metrics: tuple[CardMetric, ...]


def format_scalar(value: str | float | int) -> str:
    """A YAML scalar that every reader takes for what it is; a number of six digits at most."""
    if isinstance(value, str):
        # A string of JSON is one of YAML; what YAML forbids in it is not printable.
        return json.dumps(make_printable(value), ensure_ascii=False)
    if isinstance(value, int):
        return str(value)
    digits, e, exponent = f"{value:.6g}".partition("e")
    # 1e-05 is a string to YAML 1.1, 1.0e-05 is a number.
    return f"{digits}{'' if '.' in digits else '.0'}{e}{exponent}"


def format_model_index(name: str, entries: Iterable[IndexEntry]) -> str:
    """The block with its two fences, or nothing where no entry has a finite number."""
    lines = [line for entry in entries for line in _entry(entry)]
    if not lines:
        return ""
    return "\n".join(["---", "model-index:", f"- name: {format_scalar(name)}", "  results:", *lines, "---"]) + "\n"


def _entry(entry: IndexEntry) -> Iterator[str]:
    metrics = [metric for metric in entry.metrics if metric.finite]
    if not metrics:
        return
    yield "  - task:"
    yield f"      type: {format_scalar(entry.task)}"
    yield f"      name: {format_scalar(entry.task_name)}"
    yield "    dataset:"
    yield f"      type: {format_scalar(entry.dataset)}"
    yield f"      name: {format_scalar(entry.dataset_name)}"
    if entry.config:
        yield f"      config: {format_scalar(entry.config)}"
    if entry.args:
        yield "      args:"
        yield from (f"        {format_scalar(key)}: {format_scalar(value)}" for key, value in entry.args.items())
    yield "    metrics:"
    for metric in metrics:
        assert metric.value is not None
        yield f"    - type: {format_scalar(metric.type)}"
        yield f"      name: {format_scalar(metric.name)}"
        yield f"      value: {format_scalar(metric.value)}"


def format_eval_results(entries: Iterable[IndexEntry], dataset: str, date: str) -> str:
    """A list of results for a file of their own, or nothing where no entry has a finite number.

    An entry has one value, its first metric; the other metrics and how it was made are its notes.
    """
    lines = [line for entry in entries for line in _result(entry, dataset, date)]
    return _TOP + "\n".join(lines) + "\n" if lines else ""


def _result(entry: IndexEntry, dataset: str, date: str) -> Iterator[str]:
    first, *others = entry.metrics
    if not first.finite:
        return
    assert first.value is not None
    beside = [f"{one.name}: {one.value:.6g}" for one in others if one.finite and one.value is not None]
    about = [f"{entry.dataset_name}: {first.name}", *beside, *(f"{name} {value}" for name, value in entry.args.items())]
    yield "- dataset:"
    yield f"    id: {format_scalar(dataset)}"
    yield f"    task_id: {format_scalar(f'{entry.dataset}.{entry.config}' if entry.config else entry.dataset)}"
    yield f"  value: {format_scalar(first.value)}"
    yield f"  date: {format_scalar(date)}"
    yield f"  notes: {format_scalar('; '.join(about))}"


_OTHER = "Nothing was measured of other groups or languages, nor of what the model does in an application."


@dataclass(frozen=True)
class ModelCard:
    """What a study says of one model, in plain text: it is escaped when it is laid out.

    ``entries`` are its metadata, ``gaps`` what was not measured. Nothing is said of numbers missing from the entries
    whose data sets are in ``known_gaps``.
    """

    entries: Sequence[IndexEntry]
    opening: Sequence[str]
    findings: Sequence[str]
    limits: Sequence[str]
    gaps: Sequence[str] = ()
    known_gaps: Collection[str] = ()


def render_model_card(presenter: Presenter, run: RunData, model: str | None = None) -> str:
    """A block of metadata and a section of Markdown about one model.

    ``model`` is its label in reports and may be left out where there is only one. A number that is none (not computed,
    NaN, infinite) is left out of the metadata, and the section says so; without any number there is no metadata.
    """
    label = _choose_label(presenter.labels(run), model)
    card = presenter.card(run, label)
    parts = ["## Social bias (biassay)", *map(escape, card.opening)]
    if card.findings:
        parts.append("\n".join(f"- {escape(item)}" for item in card.findings))
    gaps = [*card.gaps, *_list_left_out(card.entries, card.known_gaps), _OTHER]
    parts += [f"**Not measured.** {escape(' '.join(gaps))}", f"**Limits.** {escape(' '.join(card.limits))}"]
    cited = collect_citations([(presenter, run)])
    parts.append("**Sources.**\n\n" + "\n".join(f"- {escape(citation.text)}" for citation in cited))
    return format_model_index(label, card.entries) + "\n\n".join(parts) + "\n"


def make_card(
    run: RunData,
    findings: Sequence[Finding],
    asked: str,
    entries: Sequence[IndexEntry],
    limits: Sequence[str],
    notes: Sequence[str] = (),
) -> ModelCard:
    """A card made from the findings of one model; ``notes`` are about what was asked of it and could not be."""
    unmeasured = [one.item for one in findings if one.evidence == "skipped"]
    unfinished = "" if run.manifest.status == "complete" else " The run is not finished."
    return ModelCard(
        entries=entries,
        opening=[f"Measured with biassay {get_version(run)}: {asked}.{unfinished}", summarize_findings(findings)],
        findings=[f"{text}{name}" for text, name in make_points(findings)],
        limits=limits,
        gaps=notes,
        known_gaps=unmeasured,
    )


def _choose_label(labels: Sequence[str], model: str | None) -> str:
    if not labels:
        raise UsageError("there are no results, so that there is no model to describe")
    if model is None and len(labels) > 1:
        raise UsageError(f"the run has several models, name one: {', '.join(labels)}")
    label = labels[0] if model is None else model
    if label not in labels:
        raise UnknownNameError("model", label, labels, f"(models of the run: {', '.join(labels)})")
    return label


def _list_left_out(entries: Iterable[IndexEntry], known: Collection[str]) -> list[str]:
    """Numbers that are not in the metadata, but for what is said elsewhere."""
    missing = [
        (metric.value is None, f"{metric.type} of {entry.config or entry.dataset}")
        for entry in entries
        if entry.dataset not in known
        for metric in entry.metrics
        if not metric.finite
    ]
    reasons = {True: "they were not computed", False: "they are no finite numbers"}
    return [
        f"Not in the metadata, for {reason}: {', '.join(names)}."
        for none, reason in reasons.items()
        if (names := [name for is_none, name in missing if is_none is none])
    ]


def get_version(run: RunData) -> str:
    """The version of biassay that measured."""
    return run.manifest.versions.get("biassay", "unknown")
