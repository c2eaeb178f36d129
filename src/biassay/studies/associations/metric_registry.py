"""The metrics: one line each, and those that other packages add by the entry point ``biassay.metrics``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from biassay.errors import UnknownNameError, UsageError
from biassay.plugins import load_plugins, package_of, refuse_clash
from biassay.studies.associations.metrics import Metric

__all__ = ["metric_named", "metric_names", "metric_package"]

_GROUP = "biassay.metrics"
_METRICS: Mapping[str, str] = {
    "cosine": "biassay.studies.associations.cosine:METRIC",
}


def _added() -> Mapping[str, Metric]:
    return load_plugins(_GROUP, _METRICS, Metric)


def metric_names() -> tuple[str, ...]:
    return (*_METRICS, *_added())


def metric_named(name: str) -> Metric:
    """A metric by its name, imported when it is first needed."""
    if not isinstance(name, str):
        raise UsageError(
            f"a metric is given by its name, one of {', '.join(metric_names())}; got {type(name).__name__}"
        )
    if name not in _METRICS:
        refuse_clash(_GROUP, name)
    if name in _METRICS:
        module, _, attribute = _METRICS[name].partition(":")
        metric: Metric = getattr(import_module(module), attribute)
        return metric
    added = _added()
    if name not in added:
        known = (*_METRICS, *added)
        raise UnknownNameError("metric", name, known, f"(one of {', '.join(known)})")
    return added[name]


def metric_package(name: str) -> str:
    """The distribution that holds a metric."""
    return "biassay" if name in _METRICS else package_of(_GROUP, name)
