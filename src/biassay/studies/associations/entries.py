"""Association tests in the index of a model card."""

from __future__ import annotations

from collections.abc import Sequence

from biassay.pages.formats import counted
from biassay.pages.publish.metadata import Indexed, Metric
from biassay.pages.publish.model_card import version_of
from biassay.results.data import RunData
from biassay.studies.associations.records import Result

__all__ = ["asked", "entry"]


def entry(result: Result, run: RunData) -> Indexed:
    """The numbers of one test on one model."""
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


def asked(run: RunData, results: Sequence[Result]) -> str:
    """What was measured of one model."""
    if run.manifest.inputs.contexts is not None:
        method = f"associations over contexts from a corpus (CEAT, {run.manifest.settings.n_samples:,} samples)"
    elif all(result.level == "word" for result in results):
        method = "associations between words (WEAT)"
    else:
        method = "associations between words and between sentences (WEAT, SEAT)"
    return f"{method} by {counted(len(results), 'test')}, alpha {run.manifest.settings.level:g}"
