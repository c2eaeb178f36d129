"""Words tied to groups in a model card."""

from __future__ import annotations

from biassay.pages.publish.metadata import Indexed, Metric
from biassay.pages.publish.model_card import Card, version_of
from biassay.results.data import RunData
from biassay.studies.discovery.view import GroupView, groups_of
from biassay.studies.discovery.words import MEANING_OF_WORDS, discovery_headline, discovery_summary

__all__ = ["discovery_card"]


def discovery_card(run: RunData, label: str) -> Card:
    """What a model card says of one model."""
    return Card(
        entries=[_entry(run, view) for view in groups_of(run) if view.model == label],
        opening=[f"Searched with biassay {version_of(run)}: {discovery_headline(run)}."],
        findings=discovery_summary(run, model=label),
        limits=[MEANING_OF_WORDS, run.manifest.inputs.note],
    )


def _entry(run: RunData, view: GroupView) -> Indexed:
    row, inputs = view.row, run.manifest.inputs
    metrics = [
        Metric("words_associated", "Words found by IBD", row.num_associated),
        Metric("words_eibd", "Words found by EIBD", row.num_eibd),
        Metric("words_emergent", "Words of these whose excess is significant", row.num_emergent),
    ]
    areas = [task.row.area for task in view.tasks if task.row.task == "ibd"]
    metrics += [Metric("roc_auc", "Area under the curve, words rated by people", area) for area in areas]
    made = {"words": str(row.num_words), "alpha": f"{run.manifest.settings.alpha:g}", "biassay": version_of(run)}
    name, task = f"{inputs.grouping_title}: {row.label}", ("feature-extraction", "Words tied to a social group")
    return Indexed(*task, inputs.grouping, name, row.group, made, tuple(metrics))
