"""Methods sentences about association tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from biassay.reporting.formats import format_count, format_percent
from biassay.reporting.methods import MethodsSentence, format_models, join_names, make_seed_sentence
from biassay.reporting.model_card import get_version
from biassay.results.comparison import Comparison
from biassay.results.outcomes import Result
from biassay.results.run_data import RunData
from biassay.studies.associations.diagnostics import list_lost_words
from biassay.studies.associations.results import CROSSED, FIXED_WORDS, SENTENCES
from biassay.studies.associations.signs import SIDES, choose_test, describe_family

__all__ = [
    "CROSSED_WORKS",
    "comparison_sentences",
    "crossed_sentence",
    "lost_sentence",
    "methods_sentences",
    "tests_text",
]

CROSSED_WORKS = ("clark1973", "judd2012", "satterthwaite1946", "fieller1954")
_LOST = 4  # models of which it is said which words they do not know
_PERMUTED = {
    "may2019": (
        "The p-values are of permutations of the target texts, all of up to 100,000 and else 99,999 drawn at random",
        ("may2019",),
    ),
    "caliskan2017": (
        "The p-values are of a normal distribution fitted to 100,000 random permutations of the target texts",
        ("caliskan2017",),
    ),
}


def methods_sentences(run: RunData, sources: tuple[str, ...]) -> Iterator[MethodsSentence]:
    """What was measured of which models, how effects and p-values were found, and how they were corrected."""
    rows: tuple[Result, ...] = run.results
    over_contexts = run.manifest.inputs.contexts is not None
    methods = _methods(rows, over_contexts=over_contexts)
    yield MethodsSentence(
        f"With biassay {get_version(run)} we measured {tests_text(rows)} "
        f"({join_names([*methods])}) on {format_models(run)}",
        ("biassay", *methods.values(), *sources),
    )
    if over_contexts:
        yield from _contexts(run)
    test = choose_test(rows)
    yield from _numbers(rows, test)
    alphas = join_names([f"{alpha:g}" for alpha in sorted({row.alpha for row in rows})], "or")
    if any(row.p_adjusted is not None for row in rows) and (family := describe_family(rows)):
        yield from _correction(rows, test, alphas, family)
    elif rows:
        yield MethodsSentence(f"The level of significance is {alphas}")
    yield lost_sentence(run, rows)
    yield from map(MethodsSentence, list_lost_words(run)[:_LOST])
    if over_contexts or test == SENTENCES or any(row.random_sets for row in rows):
        yield make_seed_sentence(row.seed for row in rows)


def _correction(rows: Iterable[Result], test: str, alphas: str, family: str) -> Iterator[MethodsSentence]:
    """How p-values were corrected, over which family, and how forms of a question were treated."""
    rows = list(rows)
    works: tuple[str, ...] = ()
    if any(row.family not in (None, "run", "rows") for row in rows):
        by = "Bonferroni's method"
    elif test == FIXED_WORDS:
        by, works = "Holm's method, with Tarone's refinement,", ("holm1979", "tarone1990")
    else:
        by, works = "Holm's method", ("holm1979",)
    yield MethodsSentence(f"At a level of {alphas}, p-values were corrected by {by} over {family}", works)
    if any(row.form_of for row in rows):
        yield MethodsSentence(
            "A question is counted once: the test in words stands for it where it was measured, and its sentence forms "
            "are tested at the level of the question after it is rejected",
            ("goeman2010",),
        )


def tests_text(rows: Iterable[Any]) -> str:
    """How many social-bias tests, and how many sanity checks."""
    about = {row.test: row.about for row in rows}
    checks = sum(one == "method" for one in about.values())
    people = [format_count(len(about) - checks, "social-bias test")] if len(about) > checks else []
    return join_names([*people, *([format_count(checks, "sanity check")] if checks else [])])


def _methods(rows: Iterable[Result], *, over_contexts: bool) -> dict[str, str]:
    if over_contexts:
        return {"CEAT": "guo2021"}
    levels = {row.level for row in rows}
    found = {"WEAT": "caliskan2017"} if "word" in levels or not levels else {}
    return found | ({"SEAT": "may2019"} if "sentence" in levels else {})


def _contexts(run: RunData) -> Iterator[MethodsSentence]:
    made, settings = run.manifest.inputs.contexts, run.manifest.settings
    of = f" of {format_count(made.documents, 'document')}" if made.documents else ""
    drawn = "the same for all models" if settings.mode == "fixed" else "drawn anew for each model"
    window = f", cut to {format_count(settings.window, 'word')} around it" if settings.window else ""
    yield MethodsSentence(
        f"Every word was read in its contexts from a corpus{of} (at most {made.per_stimulus:,} a word, "
        f"{made.rows:,} in all, found with seed {made.seed}){window}"
    )
    yield MethodsSentence(
        f"Effects of single contexts are pooled by a random-effects model over {settings.n_samples:,} samples of one "
        f"context per word, {drawn}",
        ("guo2021",),
    )


def _numbers(rows: Iterable[Result], test: str) -> Iterator[MethodsSentence]:
    """What effect sizes and p-values are, as they lead in the table."""
    own = [row for row in rows if row.outcome.test == test and row.p_value is not None]
    sides = join_names(list(dict.fromkeys(SIDES.get(row.alternative, row.alternative) for row in own)), "or")
    others = [name for name in dict.fromkeys(row.metric for row in own) if name != "cosine"]
    means = (
        f"differences of mean similarities (metric {join_names(others)})" if others else "differences of mean cosines"
    )
    if test == CROSSED:
        yield MethodsSentence(
            "The effect size d is the difference between the mean associations of the two sets of target words, in "
            f"standard deviations over all target words (n - 1 in the denominator); associations are {means}; the "
            "texts of a word are averaged",
            ("caliskan2017",),
        )
        yield crossed_sentence(sorted({row.alpha for row in own}) or [0.05])
        if any(row.fixed_words_p_value is not None for row in own):
            yield MethodsSentence(f"The p-value for these words only is of splits of the target words, {sides}")
        yield from _beside(own)
    elif test == FIXED_WORDS:
        scores = f"Effects are scores of four sets of words ({join_names(others)}); " if others else ""
        yield MethodsSentence(f"{scores}words are the units, and p-values are of splits of the target words, {sides}")
    else:
        yield MethodsSentence(
            "The effect size d is the difference between the mean associations of the two sets of target texts, in "
            f"standard deviations over all of them (n - 1 in the denominator); associations are {means}, and every "
            "text is a unit",
            ("caliskan2017",),
        )
        for protocol in dict.fromkeys(row.protocol for row in own):
            text, works = _PERMUTED.get(protocol, ("The p-values are of permutations of the target texts", ()))
            yield MethodsSentence(f"{text}, {sides}", works)


def _beside(rows: Iterable[Result]) -> Iterator[MethodsSentence]:
    """What was asked beside the effects."""
    sets = sorted({row.random_sets for row in rows if row.random_sets})
    if sets:
        yield MethodsSentence(
            f"Effects were also compared with those of {sets[-1]:,} sets of random English words as attributes"
        )
    margins = sorted({row.margin for row in rows if row.margin is not None})
    if margins:
        sizes = join_names([f"{margin:g}" for margin in margins], "or")
        yield MethodsSentence(f"It was also tested whether the difference D, in cosine units, is smaller than {sizes}")


def comparison_sentences(found: Comparison) -> Iterator[MethodsSentence]:
    """How models were compared, and how it was judged whether they are worse."""
    rows = found.tables.get("associations", ())
    family = next((row.family for row in rows if row.family), 0)
    yield MethodsSentence(
        f"{join_names(found.models)} {'was' if len(found.models) == 1 else 'were'} compared with "
        f"{found.baseline} by the "
        "calibrated difference, the difference D of mean cosines divided by the standard deviation of cosines between "
        "frequent words, over the words that both models know; the interval of its change "
        f"({format_percent(found.confidence)}) is paired, over the same target words and attribute words"
    )
    if family:
        yield MethodsSentence(
            f"Simultaneous intervals hold over {format_count(family, 'difference')} of tests about people"
        )
    for verdict in found.verdicts[:1]:
        yield MethodsSentence(
            "A model is called worse where the simultaneous interval of the growth towards the stereotype lies above "
            f"{verdict.margin:g}, better where it lies below -{verdict.margin:g}, and no worse where it ends at "
            f"{verdict.margin:g} or below, at an alpha of {verdict.alpha:g}, corrected by Bonferroni's method"
        )


def crossed_sentence(alphas: Iterable[float]) -> MethodsSentence:
    """What intervals and p-values of the crossed test are."""
    confidence = join_names([format_percent(1.0 - alpha) for alpha in alphas], "or")
    return MethodsSentence(
        f"The {confidence} interval of d and its p-value, two-sided, are of a crossed test, which takes both target "
        "words and attribute words as samples of what they stand for",
        CROSSED_WORKS,
    )


def lost_sentence(run: RunData, rows: Iterable[Any]) -> MethodsSentence:
    """When a test was refused, and how often that was so."""
    statuses: list[str] = ["refused" if row.status == "skipped" else row.status for row in rows]
    share = format_percent(run.manifest.settings.max_unknown)
    parts = [f"A test was left out where a model lacks more than {share} of the words of a set"]
    for status, why in (
        ("skipped", "for this reason"),
        ("refused", "for this reason"),
        ("failed", "because their effect size is not defined"),
    ):
        if count := statuses.count(status):
            parts.append(f"{format_count(count, 'result')} {'is' if count == 1 else 'are'} missing {why}")
    return MethodsSentence("; ".join(parts))
