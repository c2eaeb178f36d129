"""Command `biassay relate`."""

from __future__ import annotations

import click

from biassay.cli.listings import print_json, print_rows
from biassay.cli.options import json_option, multi_option
from biassay.reporting.formats import format_decimal, format_interval, format_p
from biassay.results.run_data import model_labels
from biassay.runs.relate import relate
from biassay.runs.run import load


@click.command("relate")
@click.argument("runs", nargs=-1, required=True, metavar="RUN ...")
@multi_option("--with", "others", required=True, metavar="RUN[,...]", help="Relate to the measures of these runs.")
@multi_option("--items", metavar="NAME[,...]", help="Relate these tests, groups or categories of RUN.  [default: all]")
@multi_option("--with-items", "other_items", metavar="NAME[,...]", help="Relate to these items only.  [default: all]")
@json_option
def command(
    runs: tuple[str, ...],
    others: tuple[str, ...],
    items: tuple[str, ...],
    other_items: tuple[str, ...],
    as_json: bool,
) -> None:
    """Test whether one measure predicts another over models, corrected for the measurement error of both.

    RUN are folders of runs of the same models, at least five. Measurement error draws an ordinary correlation towards
    0; biassay estimates the correlation of the true values. Both measures must use different words or names, because
    shared errors look like a relation.
    """
    loaded, loaded_others = [load(run) for run in runs], [load(run) for run in others]
    found = relate(loaded, loaded_others, items, other_items)
    if as_json:
        print_json([relation.to_dict() for relation in found])
        return
    rows = [
        (
            relation.item,
            relation.other_item,
            str(relation.found.n),
            f"{format_decimal(relation.found.correlation)} "
            f"{format_interval(relation.found.ci_low, relation.found.ci_high)}",
            format_p(relation.p_adjusted),
            format_decimal(relation.found.observed_correlation),
            f"{format_decimal(relation.found.reliability_x)}, {format_decimal(relation.found.reliability_y)}",
        )
        for relation in found
    ]
    labels = {label for run in (*loaded, *loaded_others) for label in model_labels(run).values()}
    left_out = sorted(labels.difference(*(relation.models for relation in found)))
    if left_out:
        click.echo(f"left out, because one group of runs has no number for them: {', '.join(left_out)}", err=True)
    significant = sum(relation.p_adjusted <= 0.05 for relation in found)
    click.echo(f"{significant} of {len(found)} correlations over models are significant after correction.\n")
    print_rows(("item", "with", "models", "correlation, 95% CI", "p", "uncorrected", "reliability"), rows)
    click.echo("\np: after Holm's correction. Reliability: share of the variance between models that is not error.")
