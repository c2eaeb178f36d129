"""Words tied to groups in a model card."""

from __future__ import annotations

from biassay.report.publish.metadata import Indexed, Metric
from biassay.report.publish.model_card import Card, version_of
from biassay.results.discovery import Discovery
from biassay.studies.discovery.words import MEANING_OF_WORDS, discovery_headline, discovery_summary

__all__ = ["discovery_card"]


def discovery_card(found: Discovery) -> Card:
    """What a model card says of the one model of a discovery."""
    entries = []
    for group in found.results:
        metrics = [
            Metric("words_associated", "Words found by IBD", group.num_associated),
            Metric("words_eibd", "Words found by EIBD", group.num_eibd),
            Metric("words_emergent", "Words of these whose excess is significant", group.num_emergent),
        ]
        if group.curve is not None:
            metrics.append(Metric("roc_auc", "Area under the curve, words rated by people", group.curve.area))
        made = {"words": str(group.num_words), "alpha": f"{found.manifest.alpha:g}", "biassay": version_of(found)}
        name = f"{found.manifest.grouping_title}: {group.label}"
        task = ("feature-extraction", "Words tied to a social group")
        entries.append(Indexed(*task, found.manifest.grouping, name, group.group, made, tuple(metrics)))
    return Card(
        entries=entries,
        opening=[f"Searched with biassay {version_of(found)}: {discovery_headline(found)}."],
        findings=discovery_summary(found),
        limits=[MEANING_OF_WORDS, found.note],
    )
