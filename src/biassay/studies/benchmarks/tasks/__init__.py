"""Registry of built-in benchmarks and of those added through the entry point ``biassay.benchmarks``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from biassay.errors import UnknownNameError
from biassay.packages import check_unique_name, find_package, import_object, load_plugins

if TYPE_CHECKING:
    from biassay.studies.benchmarks.tasks.base import BenchmarkTask

_GROUP = "biassay.benchmarks"
_TASKS: Mapping[str, str] = {
    "bbq": "biassay.studies.benchmarks.tasks.bbq:TASK",
    "mbbq": "biassay.studies.benchmarks.tasks.bbq:MBBQ",
    "kobbq": "biassay.studies.benchmarks.tasks.bbq:KOBBQ",
    "crows-pairs": "biassay.studies.benchmarks.likelihood_pairs:CROWS_PAIRS",
    "stereoset": "biassay.studies.benchmarks.likelihood_pairs:STEREOSET",
    "winogender": "biassay.studies.benchmarks.tasks.winogender:TASK",
    "winobias": "biassay.studies.benchmarks.tasks.winobias:TASK",
    "discrim-eval": "biassay.studies.benchmarks.tasks.discrim_eval:TASK",
}


def list_benchmarks() -> tuple[str, ...]:
    """Return the names of all benchmarks, built-in ones first."""
    return (*_TASKS, *_load_plugin_tasks())


def _load_plugin_tasks() -> Mapping[str, BenchmarkTask]:
    from biassay.studies.benchmarks.tasks.base import BenchmarkTask

    return load_plugins(_GROUP, _TASKS, BenchmarkTask)


def get_task(name: str) -> BenchmarkTask:
    """Return a benchmark by name, importing it on first use."""
    if name in _TASKS:
        task: BenchmarkTask = import_object(_TASKS[name])
        return task
    check_unique_name(_GROUP, name)
    added = _load_plugin_tasks()
    if name not in added:
        known = (*_TASKS, *added)
        raise UnknownNameError("benchmark", name, known, f"(one of {', '.join(known)})")
    return added[name]


def get_task_package(name: str) -> str:
    """Return the distribution that provides a benchmark."""
    return "biassay" if name in _TASKS else find_package(_GROUP, name)
