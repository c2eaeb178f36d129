"""How robustness was measured, in sentences for a paper."""

from __future__ import annotations

from collections.abc import Iterator

from biassay.pages.formats import counted
from biassay.pages.publish.methods import Sentence, listed, models_text, seeds
from biassay.pages.publish.model_card import version_of
from biassay.results.data import RunData
from biassay.studies.associations.methods_text import crossed_sentence, lost_sentence, tests_text

__all__ = ["sentences_of"]


def sentences_of(run: RunData, sources: tuple[str, ...]) -> Iterator[Sentence]:
    """Which tests on which models, in which ways each was measured, and how p-values were corrected."""
    rows, settings = run.results, run.manifest.settings
    yield Sentence(
        f"With biassay {version_of(run)} we measured {tests_text(rows)} (WEAT) on {models_text(run)}",
        ("biassay", "caliskan2017", *sources),
    )
    yield crossed_sentence(sorted({row.alpha for row in rows}) or [settings.alpha])
    sizes = sorted({row.family for row in rows if row.family})
    each = " of each model" if len(run.manifest.models) > 1 else ""
    if sizes:
        over = " to ".join(f"{size:,}" for size in dict.fromkeys((sizes[0], sizes[-1])))
        yield Sentence(
            f"At a level of {settings.alpha:g}, p-values were corrected by Holm's method over {over} "
            f"social-bias question{'' if sizes[-1] == 1 else 's'}{each}",
            ("holm1979",),
        )
    counts = sorted({row.choices for row in rows if row.choices})
    spread = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1]))) if counts else "no"
    similarities = listed(list(dict.fromkeys(("cosine", *settings.similarities))))
    yield Sentence(
        f"Each test was repeated in {spread} ways that use all its words: layers and poolings of the model, templates, "
        f"and similarities of vectors ({similarities}); the joint p-value is of the median effect over them, target "
        "words relabelled in all at once",
        ("simonsohn2020",),
    )
    yield Sentence(
        "It was repeated without each of its words in turn"
        + (f" and on {counted(settings.n_subsets, 'random half')}" if settings.n_subsets == 1 else "")
        + (f" and on {settings.n_subsets:,} random halves of them" if settings.n_subsets > 1 else "")
    )
    yield lost_sentence(run, rows)
    yield seeds([settings.seed])
