"""Results of a model in YAML, as the Hugging Face hub reads them: the index of a model card, and files of their own."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from biassay.files import printable

__all__ = ["Indexed", "Metric", "eval_results", "model_index", "scalar"]

_TOP = """# For the folder .eval_results of the model's repository, see https://huggingface.co/docs/hub/eval-results
# The hub shows results of data sets that are registered as benchmarks: where you have one, give its name as id.
"""


@dataclass(frozen=True)
class Metric:
    """A number of the index. None, NaN and the infinities stand for no number there."""

    type: str
    name: str
    value: float | int | None

    @property
    def finite(self) -> bool:
        return self.value is not None and math.isfinite(self.value)


@dataclass(frozen=True)
class Indexed:
    """One entry of the index: the task, what stands for the data set, and the metrics.

    ``config`` tells entries of one data set apart, ``args`` say how it was made.
    """

    task: str
    task_name: str
    dataset: str
    dataset_name: str
    config: str
    args: Mapping[str, str]
    metrics: tuple[Metric, ...]


def scalar(value: str | float | int) -> str:
    """A YAML scalar that every reader takes for what it is; a number of six digits at most."""
    if isinstance(value, str):
        # A string of JSON is one of YAML; what YAML forbids in it is not printable.
        return json.dumps(printable(value), ensure_ascii=False)
    if isinstance(value, int):
        return str(value)
    digits, e, exponent = f"{value:.6g}".partition("e")
    # 1e-05 is a string to YAML 1.1, 1.0e-05 is a number.
    return f"{digits}{'' if '.' in digits else '.0'}{e}{exponent}"


def model_index(name: str, entries: Iterable[Indexed]) -> str:
    """The block with its two fences, or nothing where no entry has a finite number."""
    lines = [line for entry in entries for line in _entry(entry)]
    if not lines:
        return ""
    return "\n".join(["---", "model-index:", f"- name: {scalar(name)}", "  results:", *lines, "---"]) + "\n"


def _entry(entry: Indexed) -> Iterator[str]:
    metrics = [metric for metric in entry.metrics if metric.finite]
    if not metrics:
        return
    yield "  - task:"
    yield f"      type: {scalar(entry.task)}"
    yield f"      name: {scalar(entry.task_name)}"
    yield "    dataset:"
    yield f"      type: {scalar(entry.dataset)}"
    yield f"      name: {scalar(entry.dataset_name)}"
    if entry.config:
        yield f"      config: {scalar(entry.config)}"
    if entry.args:
        yield "      args:"
        yield from (f"        {scalar(key)}: {scalar(value)}" for key, value in entry.args.items())
    yield "    metrics:"
    for metric in metrics:
        assert metric.value is not None
        yield f"    - type: {scalar(metric.type)}"
        yield f"      name: {scalar(metric.name)}"
        yield f"      value: {scalar(metric.value)}"


def eval_results(entries: Iterable[Indexed], dataset: str, date: str) -> str:
    """A list of results for a file of their own, or nothing where no entry has a finite number.

    An entry has one value, its first metric; the other metrics and how it was made are its notes.
    """
    lines = [line for entry in entries for line in _result(entry, dataset, date)]
    return _TOP + "\n".join(lines) + "\n" if lines else ""


def _result(entry: Indexed, dataset: str, date: str) -> Iterator[str]:
    first, *others = entry.metrics
    if not first.finite:
        return
    assert first.value is not None
    beside = [f"{one.name}: {one.value:.6g}" for one in others if one.finite and one.value is not None]
    about = [f"{entry.dataset_name}: {first.name}", *beside, *(f"{name} {value}" for name, value in entry.args.items())]
    yield "- dataset:"
    yield f"    id: {scalar(dataset)}"
    yield f"    task_id: {scalar(f'{entry.dataset}.{entry.config}' if entry.config else entry.dataset)}"
    yield f"  value: {scalar(first.value)}"
    yield f"  date: {scalar(date)}"
    yield f"  notes: {scalar('; '.join(about))}"
