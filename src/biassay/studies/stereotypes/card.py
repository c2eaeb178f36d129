"""Stereotypes in a model card."""

from __future__ import annotations

from collections.abc import Iterable

from biassay.pages.publish.metadata import Indexed, Metric
from biassay.pages.publish.model_card import Card, version_of
from biassay.results.data import RunData
from biassay.studies.stereotypes.view import ModelView, View
from biassay.studies.stereotypes.words import (
    MEANING_OF_PROFILES,
    measure_name,
    stereotypes_headline,
    stereotypes_summary,
)

__all__ = ["stereotypes_card"]

_TASKS = {"masked": "fill-mask", "causal": "text-generation"}


def stereotypes_card(run: RunData, label: str) -> Card:
    """What a model card says of one model of a run."""
    view = View(run)
    own = {model.label: model for model in view.models}[label]
    entries = list(_measure_entries(own, run))
    unknown = "No agreement with people was measured, so that there is nothing in the metadata."
    return Card(
        entries=entries,
        opening=[f"Measured with biassay {version_of(run)}: {stereotypes_headline(view)}."],
        findings=stereotypes_summary(view, (own,)),
        limits=[MEANING_OF_PROFILES, "A measure that finds no stereotype does not show that a model has none."],
        gaps=[] if entries else [unknown],
    )


def _measure_entries(own: ModelView, run: RunData) -> Iterable[Indexed]:
    """Of every measure its agreement with all people; that with some of them stays in the run."""
    for record in own.measures:
        overall = record.overall
        if overall is not None:
            yield Indexed(
                task=_TASKS.get(own.row.kind, "feature-extraction"),
                task_name="Stereotypes of social groups",
                dataset=run.manifest.inputs.abc,
                dataset_name=f"Agreement with people's ratings: {measure_name(record.measure)}",
                config=record.measure,
                args={"groups": str(overall.num_groups), "cells": str(overall.num_cells), "biassay": version_of(run)},
                metrics=(
                    Metric("kendall_tau", "Kendall's tau", overall.tau),
                    Metric("precision_at_3", "Precision at 3", overall.precision),
                ),
            )
