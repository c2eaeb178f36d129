"""Association tests in a model card."""

from __future__ import annotations

from collections.abc import Sequence

from biassay.pages.formats import counted, format_p, format_plain_p, size_word
from biassay.pages.publish.layout import effect_text
from biassay.pages.publish.metadata import Indexed, Metric
from biassay.pages.publish.model_card import Card, version_of
from biassay.results.data import RunData
from biassay.results.labels import model_key, model_labels
from biassay.studies.associations.records import Result
from biassay.studies.associations.tables import ABSENCE, holm_family
from biassay.studies.associations.words import OTHER_WAY, association
from biassay.studies.associations.words_found import (
    effect_by_word,
    found_by_word,
    known_by_word,
    other_way,
    without_words,
)

__all__ = ["association_card"]

_LARGEST = 5
_POSITIVE = (
    "An effect size says how much the targets differ in their associations to the attributes, in standard deviations over "
    "all targets; it speaks of these words, and only of them."
)


def association_card(run: RunData, label: str) -> Card:
    """What a model card says of one model of a run."""
    labels = model_labels(run)
    own = [result for result in run.results if labels[model_key(result)] == label]
    measured = [r for r in own if r.effect_size is not None]
    refused = [r.test for r in own if r.effect_size is None]
    return Card(
        entries=[_test_entry(result, run) for result in own],
        opening=[_what(run, own), *_standing(measured, run)],
        findings=[
            *_largest(found_by_word(measured, corrected=True)),
            *_largest(other_way(measured, run.manifest.settings.alpha), OTHER_WAY),
        ],
        limits=[_POSITIVE, ABSENCE],
        gaps=[f"Tests that could not be measured: {', '.join(refused)}."] if refused else [],
        known_gaps=refused,
    )


def _test_entry(result: Result, run: RunData) -> Indexed:
    made = {"level": result.level, "source": result.source, "version": result.test_version, "test": result.test_digest}
    made |= {"protocol": result.protocol, "alternative": result.alternative, "biassay": version_of(run)}
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


def _what(run: RunData, own: Sequence[Result]) -> str:
    over = run.manifest.inputs.contexts
    if over is not None:
        method = f"associations over contexts from a corpus (CEAT, {run.manifest.settings.n_samples:,} samples)"
    elif all(result.level == "word" for result in own):
        method = "associations between words (WEAT)"
    else:
        method = "associations between words and between sentences (WEAT, SEAT)"
    unfinished = "" if run.manifest.status == "complete" else " The run is not finished."
    return f"Measured with biassay {version_of(run)}: {method} by {counted(len(own), 'test')}.{unfinished}"


def _standing(measured: Sequence[Result], run: RunData) -> list[str]:
    if not measured:
        return ["No test could be measured."]
    unknown = [without_words(measured)] if without_words(measured) else []
    known = known_by_word(measured)
    if not known:
        return unknown
    found, corrected = (len(found_by_word(measured, corrected=holm)) for holm in (False, True))
    return [
        f"With words as observations, {found} of {counted(len(known), 'test')} found the association at p <= "
        f"{run.manifest.settings.alpha:g}; {corrected} of them {'stands' if corrected == 1 else 'stand'} up to Holm's "
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
