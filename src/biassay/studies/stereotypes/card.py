"""Stereotypes in a model card."""

from __future__ import annotations

from collections.abc import Iterable

from biassay.report.publish.metadata import Indexed, Metric
from biassay.report.publish.model_card import Card, version_of
from biassay.results.stereotypes import ModelStereotypes, Stereotypes
from biassay.studies.stereotypes.words import (
    MEANING_OF_PROFILES,
    measure_name,
    stereotypes_headline,
    stereotypes_summary,
)

__all__ = ["stereotypes_card"]

_TASKS = {"masked": "fill-mask", "causal": "text-generation"}


def stereotypes_card(found: Stereotypes, label: str) -> Card:
    """What a model card says of one model of a run."""
    own = {result.label: result for result in found.results}[label]
    entries = list(_measure_entries(own, found))
    unknown = "No agreement with people was measured, so that there is nothing in the metadata."
    return Card(
        entries=entries,
        opening=[f"Measured with biassay {version_of(found)}: {stereotypes_headline(found)}."],
        findings=stereotypes_summary(Stereotypes(found.manifest, (own,))),
        limits=[MEANING_OF_PROFILES, "A measure that finds no stereotype does not show that a model has none."],
        gaps=[] if entries else [unknown],
    )


def _measure_entries(own: ModelStereotypes, found: Stereotypes) -> Iterable[Indexed]:
    """Of every measure its agreement with all people; that with some of them stays in the run."""
    for record in own.measures:
        for overall in record.alignments[:1]:
            yield Indexed(
                task=_TASKS.get(own.kind, "feature-extraction"),
                task_name="Stereotypes of social groups",
                dataset=found.manifest.abc,
                dataset_name=f"Agreement with people's ratings: {measure_name(record.measure)}",
                config=record.measure,
                args={"groups": str(overall.num_groups), "cells": str(overall.num_cells), "biassay": version_of(found)},
                metrics=(
                    Metric("kendall_tau", "Kendall's tau", overall.tau),
                    Metric("precision_at_3", "Precision at 3", overall.precision),
                ),
            )
