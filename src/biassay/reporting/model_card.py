"""Write a model-card section with its YAML index."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from biassay.errors import UnknownNameError, UsageError
from biassay.io import make_printable
from biassay.reporting.findings import make_points, summarize_findings
from biassay.reporting.markdown import escape
from biassay.reporting.methods import collect_citations, get_version
from biassay.results.outcomes import Finding
from biassay.results.run_data import RunData

if TYPE_CHECKING:
    from biassay.reporting.presenter import Presenter


_TOP = """# For the folder .eval_results of the model's repository, see https://huggingface.co/docs/hub/eval-results
# The hub shows results of data sets that are registered as benchmarks: where you have one, give its name as id.
"""


@dataclass(frozen=True)
class CardMetric:
    """A number of the index; None, NaN and infinities mean no number."""

    type: str
    name: str
    value: float | int | None

    @property
    def finite(self) -> bool:
        """Whether the value is a finite number."""
        return self.value is not None and math.isfinite(self.value)


@dataclass(frozen=True)
class IndexEntry:
    """One entry of the index: task, data set and metrics.

    ``config`` distinguishes entries of one data set, ``args`` are the settings.
    """

    task: str
    task_name: str
    dataset: str
    dataset_name: str
    config: str
    args: Mapping[str, str]
    metrics: tuple[CardMetric, ...]


def format_scalar(value: str | float | int) -> str:
    """Format a YAML scalar that every reader parses alike; numbers have at most six digits."""
    if isinstance(value, str):
        # A JSON string is a YAML string; characters that YAML forbids are not printable.
        return json.dumps(make_printable(value), ensure_ascii=False)
    if isinstance(value, int):
        return str(value)
    digits, e, exponent = f"{value:.6g}".partition("e")
    # 1e-05 is a string to YAML 1.1, 1.0e-05 is a number.
    return f"{digits}{'' if '.' in digits else '.0'}{e}{exponent}"


def _iter_yaml(value: Any, indent: str) -> Iterator[str]:
    """Yield the lines of nested dicts and lists of dicts, in block style."""
    if isinstance(value, list):
        for item in value:
            first, *rest = _iter_yaml(item, f"{indent}  ")
            yield from (f"{indent}- {first.lstrip()}", *rest)
        return
    for key, item in value.items():
        if isinstance(item, dict | list):
            yield f"{indent}{key}:"
            yield from _iter_yaml(item, indent + ("  " if isinstance(item, dict) else ""))
        else:
            yield f"{indent}{key}: {format_scalar(item)}"


def format_model_index(name: str, entries: Iterable[IndexEntry]) -> str:
    """Format the block with its two fences; empty if no entry has a finite number."""
    results = []
    for entry in entries:
        args = {format_scalar(key): value for key, value in entry.args.items()}
        dataset = {"type": entry.dataset, "name": entry.dataset_name, "config": entry.config, "args": args}
        metrics = [{"type": one.type, "name": one.name, "value": one.value} for one in entry.metrics if one.finite]
        if metrics:
            about = {key: value for key, value in dataset.items() if value}
            results.append(
                {"task": {"type": entry.task, "name": entry.task_name}, "dataset": about, "metrics": metrics}
            )
    index = {"model-index": [{"name": name, "results": results}]}
    return "\n".join(["---", *_iter_yaml(index, ""), "---"]) + "\n" if results else ""


def format_eval_results(entries: Iterable[IndexEntry], dataset: str, date: str) -> str:
    """Format results as a YAML file for the Hugging Face Hub; empty if no entry has a finite number.

    The first metric of an entry is its value; the other metrics and the settings become notes.

    Parameters
    ----------
    entries : iterable of IndexEntry
        Results of one model.
    dataset : str
        Identifier of the evaluation, such as "biassay/associations".
    date : str
        ISO 8601 date of the run.

    Returns
    -------
    str
    """
    results = []
    for entry in entries:
        first, *others = entry.metrics
        beside = [f"{one.name}: {one.value:.6g}" for one in others if one.finite and one.value is not None]
        about = [
            f"{entry.dataset_name}: {first.name}",
            *beside,
            *(f"{key} {value}" for key, value in entry.args.items()),
        ]
        task = f"{entry.dataset}.{entry.config}" if entry.config else entry.dataset
        if first.finite:
            named = {"dataset": {"id": dataset, "task_id": task}, "value": first.value}
            results.append({**named, "date": date, "notes": "; ".join(about)})
    return _TOP + "\n".join(_iter_yaml(results, "")) + "\n" if results else ""


_OTHER = "This run did not measure other groups or languages, or what the model does in an application."


@dataclass(frozen=True)
class ModelCard:
    """Plain text about one model, which the renderer escapes.

    ``entries`` are the metadata, ``gaps`` list unmeasured tests. Missing numbers of data sets in ``known_gaps`` are not
    listed.
    """

    entries: Sequence[IndexEntry]
    opening: Sequence[str]
    findings: Sequence[str]
    limits: Sequence[str]
    gaps: Sequence[str] = ()
    known_gaps: Collection[str] = ()


def render_model_card(presenter: Presenter, run: RunData, model: str | None = None) -> str:
    """Render a metadata block and a Markdown section about one model.

    Numbers that were not computed or are not finite are left out of the metadata, and the section lists them. Without
    any finite number, there is no metadata block.

    Parameters
    ----------
    presenter : Presenter
        Presenter of the run's study.
    run : RunData
        Run with the results.
    model : str, optional
        Label of the model in reports. Required if the run has several models.

    Returns
    -------
    str
        YAML and Markdown.
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
    """Make a model card from the findings of one model.

    Parameters
    ----------
    run : RunData
        Run with the results.
    findings : sequence of Finding
        Findings of the model.
    asked : str The measurement, as a noun phrase after "Measured with biassay:".
    entries : sequence of IndexEntry
        Results for the metadata block.
    limits : sequence of str
        Sentences on what the results do not mean.
    notes : sequence of str
        Sentences about tests that could not be run.

    Returns
    -------
    ModelCard
    """
    unmeasured = [finding.item for finding in findings if finding.evidence == "skipped"]
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
        raise UsageError("the run has no results; a model card needs those of one model")
    if model is None and len(labels) > 1:
        raise UsageError(f"the run has several models, name one: {', '.join(labels)}")
    label = labels[0] if model is None else model
    if label not in labels:
        raise UnknownNameError("model", label, labels, f"(models of the run: {', '.join(labels)})")
    return label


def _list_left_out(entries: Iterable[IndexEntry], known: Collection[str]) -> list[str]:
    """List numbers missing from the metadata, except those explained elsewhere."""
    missing = [
        (metric.value is None, f"{metric.type} of {entry.config or entry.dataset}")
        for entry in entries
        if entry.dataset not in known
        for metric in entry.metrics
        if not metric.finite
    ]
    reasons = {True: "they were not computed", False: "they are not finite numbers"}
    return [
        f"Not in the metadata, for {reason}: {', '.join(names)}."
        for none, reason in reasons.items()
        if (names := [name for is_none, name in missing if is_none is none])
    ]
