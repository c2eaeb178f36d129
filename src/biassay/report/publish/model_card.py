"""A section for a Hugging Face model card, with its metadata: what was measured of one model, and what not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from biassay.errors import UnknownNameError, UsageError
from biassay.report.publish.citations import citations
from biassay.report.publish.layout import effect_text
from biassay.report.publish.markdown import escape
from biassay.report.publish.metadata import Indexed, Metric, model_index
from biassay.report.publish.tables import ABSENCE, holm_family
from biassay.report.words import (
    OTHER_WAY,
    association,
    counted,
    format_p,
    format_plain_p,
    model_key,
    model_labels,
    size_word,
)
from biassay.report.words_discovery import MEANING_OF_WORDS, discovery_headline, discovery_summary
from biassay.report.words_found import effect_by_word, found_by_word, known_by_word, other_way, without_words
from biassay.report.words_stereotypes import (
    MEANING_OF_PROFILES,
    measure_name,
    stereotypes_headline,
    stereotypes_summary,
)
from biassay.results.discovery import Discovery
from biassay.results.records import Result
from biassay.results.run import Run
from biassay.results.stereotypes import ModelStereotypes, Stereotypes

__all__ = ["model_card"]

_T = TypeVar("_T")
_LARGEST = 5
_OTHER = "Nothing was measured of other words, groups or languages, nor of what the model does in an application."
_POSITIVE = (
    "An effect size says how much the targets differ in their leaning to the attributes, in standard deviations over "
    "all targets; it speaks of these words, and only of them."
)
_TASKS = {"masked": "fill-mask", "causal": "text-generation"}


def model_card(found: Run | Discovery | Stereotypes, model: str | None = None) -> str:
    """A block of metadata and a section of Markdown about one model.

    ``model`` is its label in reports and may be left out where there is only one. A number that is none (not computed,
    NaN, infinite) is left out of the metadata, and the section says so; without any number there is no metadata.
    """
    if isinstance(found, Run):
        return _of_run(found, model)
    if isinstance(found, Discovery):
        return _of_discovery(found, model)
    return _of_stereotypes(found, model)


def _chosen(labelled: dict[str, _T], model: str | None) -> tuple[str, _T]:
    if not labelled:
        raise UsageError("there are no results, so that there is no model to describe")
    if model is None and len(labelled) > 1:
        raise UsageError(f"the run has several models, name one: {', '.join(labelled)}")
    label = next(iter(labelled)) if model is None else model
    if label not in labelled:
        raise UnknownNameError("model", label, labelled, f"(models of the run: {', '.join(labelled)})")
    return label, labelled[label]


def _of_run(run: Run, model: str | None) -> str:
    labels = model_labels(run)
    rows: dict[str, list[Result]] = {}
    for result in run.results:
        rows.setdefault(labels[model_key(result)], []).append(result)
    label, own = _chosen(rows, model)
    entries = [_test_entry(result, run) for result in own]
    measured = [r for r in own if r.effect_size is not None]
    refused = [r.test for r in own if r.effect_size is None]
    not_measured = [f"Tests that could not be measured: {', '.join(refused)}."] if refused else []
    return _card(
        label,
        entries,
        run,
        [_what(run, own), *_standing(measured, run)],
        [
            *_largest(found_by_word(measured, corrected=True)),
            *_largest(other_way(measured, run.manifest.alpha), OTHER_WAY),
        ],
        [*not_measured, *_left_out(entries, {r.test for r in own if r.effect_size is None}), _OTHER],
        [_POSITIVE, ABSENCE],
    )


def _test_entry(result: Result, run: Run) -> Indexed:
    made = {"level": result.level, "source": result.source, "version": result.test_version, "test": result.test_digest}
    made |= {"protocol": result.protocol, "alternative": result.alternative, "biassay": _version(run)}
    return Indexed(
        task="feature-extraction",
        task_name="Social bias by association",
        dataset=result.test,
        dataset_name=result.title or result.test,
        config="",
        args=made,
        metrics=(
            Metric("effect_size", "Effect size", result.effect_size),
            Metric("effect_size_by_word", "Effect size, words as observations", result.effect_size_by_word),
            Metric("p_value_by_word", "p-value, words as observations", result.p_value_by_word),
        ),
    )


def _what(run: Run, own: Sequence[Result]) -> str:
    over = run.manifest.contexts
    if over is not None:
        method = f"associations over contexts from a corpus (CEAT, {over.n_samples:,} samples)"
    elif all(result.level == "word" for result in own):
        method = "associations between words (WEAT)"
    else:
        method = "associations between words and between sentences (WEAT, SEAT)"
    unfinished = "" if run.manifest.status == "complete" else " The run is not finished."
    return f"Measured with biassay {_version(run)}: {method} by {counted(len(own), 'test')}.{unfinished}"


def _standing(measured: Sequence[Result], run: Run) -> list[str]:
    if not measured:
        return ["No test could be measured."]
    unknown = [without_words(measured)] if without_words(measured) else []
    known = known_by_word(measured)
    if not known:
        return unknown
    found, corrected = (len(found_by_word(measured, corrected=holm)) for holm in (False, True))
    return [
        f"With words as observations, {found} of {counted(len(known), 'test')} found the association at p <= "
        f"{run.manifest.alpha:g}; {corrected} of them {'stands' if corrected == 1 else 'stand'} up to Holm's "
        f"correction over the {holm_family(run, 'word')} p-values of the run.",
        *unknown,
    ]


def _largest(results: Sequence[Result], begin: str = "") -> list[str]:
    """The largest effects first."""
    ordered = sorted(results, key=lambda r: -abs(effect_by_word(r)))
    items = [f"{begin}{_leaning(r)} ({r.test}; p by word {_p(r)})" for r in ordered[:_LARGEST]]
    return [*items, f"{begin}and {len(ordered) - _LARGEST} more"] if len(ordered) > _LARGEST else items


def _p(result: Result) -> str:
    """Of the direction that the effect has."""
    if result.p_value_by_word_opposite is not None:
        return format_plain_p(result.p_value_by_word_opposite)
    return format_p(result.p_value_by_word, result.log10_p_value_by_word)


def _leaning(result: Result) -> str:
    size = effect_by_word(result)
    return f"{result.title}: {association(result)}, effect size by word {effect_text(size)}, {size_word(size)}"


def _of_discovery(found: Discovery, model: str | None) -> str:
    label, _ = _chosen({found.manifest.models[0].name: None} if found.results else {}, model)
    entries = []
    for group in found.results:
        metrics = [
            Metric("words_associated", "Words found by IBD", group.num_associated),
            Metric("words_eibd", "Words found by EIBD", group.num_eibd),
            Metric("words_emergent", "Words of these whose excess is significant", group.num_emergent),
        ]
        if group.curve is not None:
            metrics.append(Metric("roc_auc", "Area under the curve, words rated by people", group.curve.area))
        made = {"words": str(group.num_words), "alpha": f"{found.manifest.alpha:g}", "biassay": _version(found)}
        name = f"{found.manifest.grouping_title}: {group.label}"
        task = ("feature-extraction", "Words tied to a social group")
        entries.append(Indexed(*task, found.manifest.grouping, name, group.group, made, tuple(metrics)))
    return _card(
        label,
        entries,
        found,
        [f"Searched with biassay {_version(found)}: {discovery_headline(found)}."],
        discovery_summary(found),
        [*_left_out(entries), _OTHER],
        [MEANING_OF_WORDS, found.note],
    )


def _of_stereotypes(found: Stereotypes, model: str | None) -> str:
    label, own = _chosen({result.label: result for result in found.results}, model)
    entries = list(_measure_entries(own, found))
    return _card(
        label,
        entries,
        found,
        [f"Measured with biassay {_version(found)}: {stereotypes_headline(found)}."],
        stereotypes_summary(Stereotypes(found.manifest, (own,))),
        [
            *([] if entries else ["No agreement with people was measured, so that there is nothing in the metadata."]),
            *_left_out(entries),
            _OTHER,
        ],
        [MEANING_OF_PROFILES, "A measure that finds no stereotype does not show that a model has none."],
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
                args={"groups": str(overall.num_groups), "cells": str(overall.num_cells), "biassay": _version(found)},
                metrics=(
                    Metric("kendall_tau", "Kendall's tau", overall.tau),
                    Metric("precision_at_3", "Precision at 3", overall.precision),
                ),
            )


def _left_out(entries: Iterable[Indexed], known: Iterable[str] = ()) -> list[str]:
    """Numbers that are not in the metadata, but for what is told elsewhere."""
    missing = [
        (metric.value is None, f"{metric.type} of {entry.config or entry.dataset}")
        for entry in entries
        if entry.dataset not in known
        for metric in entry.metrics
        if not metric.finite
    ]
    reasons = {True: "they were not computed", False: "they are no finite numbers"}
    return [
        f"Not in the metadata, for {reason}: {', '.join(names)}."
        for none, reason in reasons.items()
        if (names := [name for is_none, name in missing if is_none is none])
    ]


def _card(
    label: str,
    entries: Sequence[Indexed],
    found: Run | Discovery | Stereotypes,
    opening: Sequence[str],
    findings: Sequence[str],
    gaps: Sequence[str],
    limits: Sequence[str],
) -> str:
    """Paragraphs of text that is escaped here, and nowhere before."""
    parts = ["## Social bias (biassay)", *map(escape, opening)]
    if findings:
        parts.append("\n".join(f"- {escape(item)}" for item in findings))
    parts += [f"**Not measured.** {escape(' '.join(gaps))}", f"**Limits.** {escape(' '.join(limits))}"]
    parts.append("**Sources.**\n\n" + "\n".join(f"- {escape(citation.text)}" for citation in citations(found)))
    return model_index(label, entries) + "\n\n".join(parts) + "\n"


def _version(found: Run | Discovery | Stereotypes) -> str:
    return found.manifest.versions.get("biassay", "unknown")
