"""Methods sentences of association tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from biassay.reporting.formats import format_count, format_percent
from biassay.reporting.methods import MethodsSentence, format_models, get_version, join_names, make_seed_sentence
from biassay.results.comparison import Comparison
from biassay.results.outcomes import Result
from biassay.results.run_data import RunData
from biassay.studies.associations.findings import SIDES, choose_test, describe_family, list_lost_words
from biassay.studies.associations.results import CROSSED, FIXED_WORDS, SENTENCES

CROSSED_WORKS = ("clark1973", "judd2012", "satterthwaite1946", "fieller1954")
_LOST = 4  # models whose out-of-vocabulary words are listed
_PERMUTED = {
    "may2019": (
        "The p-values are from permutations of the target texts: all of them up to 100,000, otherwise "
        "99,999 random ones",
        ("may2019",),
    ),
    "caliskan2017": (
        "The p-values are from a normal distribution fitted to 100,000 random permutations of the target texts",
        ("caliskan2017",),
    ),
}


def methods_sentences(run: RunData, sources: tuple[str, ...]) -> Iterator[MethodsSentence]:
    """Yield sentences on tests and models, effect sizes and p-values, and their correction."""
    rows: tuple[Result, ...] = run.results
    over_contexts = run.manifest.inputs.contexts is not None
    methods = _name_methods(rows, over_contexts=over_contexts)
    yield MethodsSentence(
        f"With biassay {get_version(run)} we measured {count_tests(rows)} "
        f"({join_names([*methods])}) on {format_models(run)}",
        ("biassay", *methods.values(), *sources),
    )
    if over_contexts:
        yield from _describe_contexts(run)
    test = choose_test(rows)
    yield from _describe_numbers(rows, test)
    alphas = join_names([f"{alpha:g}" for alpha in sorted({row.alpha for row in rows})], "or")
    if any(row.p_adjusted is not None for row in rows) and (family := describe_family(rows)):
        yield from _describe_correction(rows, test, alphas, family)
    elif rows:
        yield MethodsSentence(f"The level of significance is {alphas}")
    yield make_skipped_sentence(run, rows)
    yield from map(MethodsSentence, list_lost_words(run)[:_LOST])
    if over_contexts or test == SENTENCES or any(row.random_sets for row in rows):
        yield make_seed_sentence(row.seed for row in rows)


def _describe_correction(rows: Iterable[Result], test: str, alphas: str, family: str) -> Iterator[MethodsSentence]:
    """Describe the correction, its family, and the forms of a question."""
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
            "Each question was counted once, by its word test if that was measured; its sentence forms were tested at "
            "the same level only after the question was rejected",
            ("goeman2010",),
        )


def count_tests(rows: Iterable[Any]) -> str:
    """Count social-bias tests and sanity checks."""
    about = {row.test: row.about for row in rows}
    checks = sum(kind == "method" for kind in about.values())
    people = [format_count(len(about) - checks, "social-bias test")] if len(about) > checks else []
    return join_names([*people, *([format_count(checks, "sanity check")] if checks else [])])


def _name_methods(rows: Iterable[Result], *, over_contexts: bool) -> dict[str, str]:
    if over_contexts:
        return {"CEAT": "guo2021"}
    levels = {row.level for row in rows}
    found = {"WEAT": "caliskan2017"} if "word" in levels or not levels else {}
    return found | ({"SEAT": "may2019"} if "sentence" in levels else {})


def _describe_contexts(run: RunData) -> Iterator[MethodsSentence]:
    made, settings = run.manifest.inputs.contexts, run.manifest.settings
    of = f" of {format_count(made.documents, 'document')}" if made.documents else ""
    drawn = "the same for all models" if settings.mode == "fixed" else "drawn independently per model"
    window = f", cut to {format_count(settings.window, 'word')} around it" if settings.window else ""
    yield MethodsSentence(
        f"Words were embedded in contexts from a corpus{of} (at most {made.per_stimulus:,} per word, "
        f"{made.rows:,} in total, sampled with random seed {made.seed}){window}"
    )
    yield MethodsSentence(
        f"Effects were pooled by a random-effects model over {settings.n_samples:,} samples of one context per word, "
        f"{drawn}",
        ("guo2021",),
    )


def _describe_numbers(rows: Iterable[Result], test: str) -> Iterator[MethodsSentence]:
    """Describe effect sizes and p-values of the primary test."""
    own = [row for row in rows if row.outcome.test == test and row.p_value is not None]
    sides = join_names(list(dict.fromkeys(SIDES.get(row.alternative, row.alternative) for row in own)), "or")
    others = [name for name in dict.fromkeys(row.metric for row in own) if name != "cosine"]
    means = (
        f"differences of mean similarities (metric {join_names(others)})" if others else "differences of mean cosines"
    )
    if test == CROSSED:
        yield MethodsSentence(
            "The effect size d is the difference between the mean associations of the two sets of target words, "
            "divided by the standard deviation over all target words (n - 1 in the denominator); associations are "
            f"{means}, averaged over the texts of a word",
            ("caliskan2017",),
        )
        yield make_crossed_sentence(sorted({row.alpha for row in own}) or [0.05])
        if any(row.fixed_words_p_value is not None for row in own):
            yield MethodsSentence(
                f"A second p-value, which holds for these words only, is from permutations of the target words, {sides}"
            )
        yield from _describe_extras(own)
    elif test == FIXED_WORDS:
        scores = f"The effect is one score of the four word sets ({join_names(others)}); " if others else ""
        yield MethodsSentence(f"{scores}p-values are from permutations of the target words, {sides}")
    else:
        yield MethodsSentence(
            "The effect size d is the difference between the mean associations of the two sets of target texts, "
            "divided by the standard deviation over all target texts (n - 1 in the denominator); associations are "
            f"{means}",
            ("caliskan2017",),
        )
        for protocol in dict.fromkeys(row.protocol for row in own):
            text, works = _PERMUTED.get(protocol, ("The p-values are from permutations of the target texts", ()))
            yield MethodsSentence(f"{text}, {sides}", works)


def _describe_extras(rows: Iterable[Result]) -> Iterator[MethodsSentence]:
    """Describe the random baseline and equivalence tests."""
    sets = sorted({row.random_sets for row in rows if row.random_sets})
    if sets:
        yield MethodsSentence(
            f"As a baseline, effects were compared with those of {sets[-1]:,} random sets of English attribute words"
        )
    margins = sorted({row.margin for row in rows if row.margin is not None})
    if margins:
        sizes = join_names([f"{margin:g}" for margin in margins], "or")
        yield MethodsSentence(f"We also tested whether the mean difference D is smaller than {sizes}")


def comparison_sentences(comparison: Comparison) -> Iterator[MethodsSentence]:
    """Yield sentences on the comparison and its verdicts."""
    rows = comparison.tables.get("associations", ())
    family = next((row.family for row in rows if row.family), 0)
    yield MethodsSentence(
        f"We compared {join_names(comparison.models)} with {comparison.baseline} by the "
        "calibrated difference, the difference D of mean cosines divided by the standard deviation of cosines between "
        f"frequent words, over the words that both models know, with paired {format_percent(comparison.confidence)} "
        "intervals over target words and attribute words"
    )
    if family:
        yield MethodsSentence(f"Simultaneous intervals cover {format_count(family, 'difference')} in social-bias tests")
    for verdict in comparison.verdicts[:1]:
        yield MethodsSentence(
            "A model is called worse if the simultaneous interval of its growth towards the stereotype lies above "
            f"{verdict.margin:g}, better if it lies below -{verdict.margin:g}, and no worse if it ends at "
            f"{verdict.margin:g} or below, at an alpha of {verdict.alpha:g} with Bonferroni's correction"
        )


def make_crossed_sentence(alphas: Iterable[float]) -> MethodsSentence:
    """Describe the interval of d and its p-value."""
    confidence = join_names([format_percent(1.0 - alpha) for alpha in alphas], "or")
    return MethodsSentence(
        f"The {confidence} interval of d and its two-sided p-value treat target words and attribute words as crossed "
        "random factors",
        CROSSED_WORKS,
    )


def make_skipped_sentence(run: RunData, rows: Iterable[Any]) -> MethodsSentence:
    """State when a test was skipped, and how often that happened."""
    statuses = [row.status for row in rows]
    share = format_percent(run.manifest.settings.max_unknown)
    parts = [f"Tests were skipped if more than {share} of a word set was out of vocabulary"]
    for status, why in (("skipped", "for this reason"), ("failed", "because the effect size is undefined")):
        if count := statuses.count(status):
            parts.append(f"{format_count(count, 'result')} {'is' if count == 1 else 'are'} missing {why}")
    return MethodsSentence("; ".join(parts))
