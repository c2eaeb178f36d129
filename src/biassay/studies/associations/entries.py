"""Association tests in the index of a model card."""

from __future__ import annotations

from collections.abc import Sequence

from biassay.pages.formats import counted
from biassay.pages.publish.metadata import Indexed, Metric
from biassay.pages.publish.model_card import version_of
from biassay.results.data import RunData
from biassay.studies.associations.lead import Lead, lead_of
from biassay.studies.associations.records import Result

__all__ = ["asked", "entry"]

_BY_WORD = ("p_value_by_word", "p (these words only)")
_METRICS: dict[Lead, tuple[tuple[str, str], ...]] = {
    "crossed": (
        ("effect_size_by_word", "Effect size d"),
        ("d_low", "Effect size d, lower end of its interval"),
        ("d_high", "Effect size d, upper end of its interval"),
        ("p_value_crossed", "p-value, words of the same kinds (crossed, two-sided)"),
        _BY_WORD,
    ),
    "word": (("effect_size_by_word", "Effect size, words as observations"), _BY_WORD),
    "text": (("effect_size", "Effect size, texts as observations"), ("p_value", "p-value, texts as observations")),
}


def entry(result: Result, run: RunData) -> Indexed:
    """The numbers of one test on one model."""
    made = {"level": result.level, "source": result.source, "version": result.test_version, "test": result.test_digest}
    made |= {"protocol": result.protocol, "alternative": result.alternative, "alpha": f"{result.alpha:g}"}
    made |= {"biassay": version_of(run)}
    return Indexed(
        task="feature-extraction",
        task_name="Social bias by association",
        dataset=result.test,
        dataset_name=result.title or result.test,
        config="",
        args=made,
        metrics=tuple(Metric(name, said, getattr(result, name)) for name, said in _named(result)),
    )


def _named(result: Result) -> tuple[tuple[str, str], ...]:
    names = _METRICS[lead_of(result)]
    if result.margin is None or result.p_equivalence is None or lead_of(result) != "crossed":
        return names
    return *names, ("p_equivalence", f"p-value, D smaller than {result.margin:g} (cosine units)")


def asked(run: RunData, results: Sequence[Result]) -> str:
    """What was measured of one model."""
    if run.manifest.inputs.contexts is not None:
        method = f"associations over contexts from a corpus (CEAT, {run.manifest.settings.n_samples:,} samples)"
    elif all(result.level == "word" for result in results):
        method = "associations between words (WEAT)"
    else:
        method = "associations between words and between sentences (WEAT, SEAT)"
    return f"{method} by {counted(len(results), 'test')}, alpha {run.manifest.settings.level:g}"
