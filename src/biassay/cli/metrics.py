"""Command `biassay metrics`."""

from __future__ import annotations

import click

from biassay.cli.listings import print_fields, print_json, print_rows
from biassay.cli.options import json_option
from biassay.studies.associations.metrics import Measure, Metric, get_metric, get_metric_package, metric_names


@click.command("metrics")
@click.argument("metric", required=False, metavar="[METRIC]")
@json_option
def command(metric: str | None, as_json: bool) -> None:
    """List the metrics of association tests, or show one METRIC with its permitted claims and its source."""
    known = [get_metric(name) for name in ([metric] if metric else metric_names())]
    described = [*map(_describe, known)]
    if as_json:
        print_json(described[0] if metric else described)
        return
    if metric is not None:
        print_fields({field: text for field, text in described[0].items() if text})
        return
    rows = [
        (metric.name, metric.title, _describe_inference(metric), get_metric_package(metric.name)) for metric in known
    ]
    print_rows(("metric", "title", "p-value", "package"), rows)
    click.echo(
        "\nShow the claims that a metric supports: biassay metrics ripa. Run all: biassay run MODEL --metric all"
    )


def _describe_inference(metric: Metric) -> str:
    if isinstance(metric, Measure) and not metric.permutes:
        return "none"
    return "other words" if metric.unit == "d" else "these words only"


def _describe(metric: Metric) -> dict[str, str]:
    return {
        "metric": metric.name,
        "title": metric.title,
        "scale": metric.unit,
        "direction": "none" if isinstance(metric, Measure) and not metric.signed else "signed",
        "p_value": _describe_inference(metric),
        "claim": getattr(metric, "claim", ""),
        "source": getattr(metric, "source", ""),
        "package": get_metric_package(metric.name),
    }
