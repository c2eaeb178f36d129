"""How association tests were measured, in sentences for a paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from biassay.pages.formats import counted, percent
from biassay.pages.publish.methods import Sentence, listed, models_text, seeds
from biassay.pages.publish.model_card import version_of
from biassay.results.comparison import Comparison
from biassay.results.data import RunData
from biassay.studies.associations.lead import Lead, corrected_p_of, lead_of, lead_of_table, p_of
from biassay.studies.associations.marks import SIDES, family_text
from biassay.studies.associations.records import Result
from biassay.studies.associations.words_lost import lost_lines

__all__ = ["CROSSED_WORKS", "comparison_sentences", "crossed_sentence", "lost_sentence", "sentences_of", "tests_text"]

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


def sentences_of(run: RunData, sources: tuple[str, ...]) -> Iterator[Sentence]:
    """What was measured of which models, how effects and p-values were found, and how they were corrected."""
    rows: tuple[Result, ...] = run.results
    over_contexts = run.manifest.inputs.contexts is not None
    methods = _methods(rows, over_contexts=over_contexts)
    yield Sentence(
        f"With biassay {version_of(run)} we measured {tests_text(rows)} ({listed([*methods])}) on {models_text(run)}",
        ("biassay", *methods.values(), *sources),
    )
    if over_contexts:
        yield from _contexts(run)
    lead = lead_of_table(rows)
    yield from _numbers(rows, lead)
    alphas = listed([f"{alpha:g}" for alpha in sorted({row.alpha for row in rows})], "or")
    if any(corrected_p_of(row) is not None for row in rows) and (family := family_text(rows)):
        yield from _correction(rows, lead, alphas, family)
    elif rows:
        yield Sentence(f"The level of significance is {alphas}")
    yield lost_sentence(run, rows)
    yield from map(Sentence, lost_lines(run)[:_LOST])
    if over_contexts or lead == "text" or any(row.random_sets for row in rows):
        yield seeds(row.seed for row in rows)


def _correction(rows: Iterable[Result], lead: Lead, alphas: str, family: str) -> Iterator[Sentence]:
    """How p-values were corrected, over which family, and how forms of a question were treated."""
    rows = list(rows)
    works: tuple[str, ...] = ()
    if any(row.family_name not in (None, "run", "rows") for row in rows):
        by = "Bonferroni's method"
    elif lead == "word":
        by, works = "Holm's method, with Tarone's refinement,", ("holm1979", "tarone1990")
    else:
        by, works = "Holm's method", ("holm1979",)
    yield Sentence(f"At a level of {alphas}, p-values were corrected by {by} over {family}", works)
    if any(row.form_of for row in rows):
        yield Sentence(
            "A question is counted once: the test in words stands for it where it was measured, and its sentence forms "
            "are tested at the level of the question after it is rejected",
            ("goeman2010",),
        )


def tests_text(rows: Iterable[Result]) -> str:
    """How many social-bias tests, and how many sanity checks."""
    about = {row.test: row.about for row in rows}
    checks = sum(one == "method" for one in about.values())
    people = [counted(len(about) - checks, "social-bias test")] if len(about) > checks else []
    return listed([*people, *([counted(checks, "sanity check")] if checks else [])])


def _methods(rows: Iterable[Result], *, over_contexts: bool) -> dict[str, str]:
    if over_contexts:
        return {"CEAT": "guo2021"}
    levels = {row.level for row in rows}
    found = {"WEAT": "caliskan2017"} if "word" in levels or not levels else {}
    return found | ({"SEAT": "may2019"} if "sentence" in levels else {})


def _contexts(run: RunData) -> Iterator[Sentence]:
    made, settings = run.manifest.inputs.contexts, run.manifest.settings
    of = f" of {counted(made.documents, 'document')}" if made.documents else ""
    drawn = "the same for all models" if settings.mode == "fixed" else "drawn anew for each model"
    window = f", cut to {counted(settings.window, 'word')} around it" if settings.window else ""
    yield Sentence(
        f"Every word was read in its contexts from a corpus{of} (at most {made.per_stimulus:,} a word, "
        f"{made.rows:,} in all, found with seed {made.seed}){window}"
    )
    yield Sentence(
        f"Effects by text are pooled by a random-effects model over {settings.n_samples:,} samples of one context a "
        f"word, {drawn}",
        ("guo2021",),
    )


def _numbers(rows: Iterable[Result], lead: Lead) -> Iterator[Sentence]:
    """What effect sizes and p-values are, as they lead in the table."""
    own = [row for row in rows if lead_of(row) == lead and p_of(row) is not None]
    sides = listed(list(dict.fromkeys(SIDES.get(row.alternative, row.alternative) for row in own)), "or")
    others = [name for name in dict.fromkeys(row.metric for row in own) if name != "cosine"]
    means = f"differences of mean similarities (metric {listed(others)})" if others else "differences of mean cosines"
    if lead == "crossed":
        yield Sentence(
            "The effect size d is the difference between the mean associations of the two sets of target words, in "
            f"standard deviations over all target words (n - 1 in the denominator); associations are {means}; the "
            "texts of a word are averaged",
            ("caliskan2017",),
        )
        yield crossed_sentence(sorted({row.alpha for row in own}) or [0.05])
        if any(row.p_value_by_word is not None for row in own):
            yield Sentence(f"The p-value by word, for these attribute words, is of splits of the target words, {sides}")
        yield from _beside(own)
    elif lead == "word":
        scores = f"Effects are scores of four sets of words ({listed(others)}); " if others else ""
        yield Sentence(f"{scores}words are the units, and p-values are of splits of the target words, {sides}")
    else:
        yield Sentence(
            "The effect size d is the difference between the mean associations of the two sets of target texts, in "
            f"standard deviations over all of them (n - 1 in the denominator); associations are {means}, and every "
            "text is a unit",
            ("caliskan2017",),
        )
        for protocol in dict.fromkeys(row.protocol for row in own):
            text, works = _PERMUTED.get(protocol, ("The p-values are of permutations of the target texts", ()))
            yield Sentence(f"{text}, {sides}", works)


def _beside(rows: Iterable[Result]) -> Iterator[Sentence]:
    """What was asked beside the effects."""
    sets = sorted({row.random_sets for row in rows if row.random_sets})
    if sets:
        yield Sentence(
            f"Effects were also compared with those of {sets[-1]:,} sets of random English words as attributes"
        )
    margins = sorted({row.margin for row in rows if row.margin is not None})
    if margins:
        sizes = listed([f"{margin:g}" for margin in margins], "or")
        yield Sentence(f"It was also tested whether the difference D, in cosine units, is smaller than {sizes}")


def comparison_sentences(found: Comparison) -> Iterator[Sentence]:
    """How models were compared, and how it was judged whether they are worse."""
    rows = found.tables.get("associations", ())
    family = next((row.family for row in rows if row.family), 0)
    yield Sentence(
        f"{listed(found.models)} {'was' if len(found.models) == 1 else 'were'} compared with {found.baseline} by the "
        "calibrated difference, the difference D of mean cosines divided by the standard deviation of cosines between "
        "frequent words, over the words that both models know; the interval of its change "
        f"({percent(found.confidence)}) is paired, over the same target words and attribute words"
    )
    if family:
        yield Sentence(f"Simultaneous intervals hold over {counted(family, 'difference')} of tests about people")
    for verdict in found.verdicts[:1]:
        yield Sentence(
            "A model is called worse where the simultaneous interval of the growth towards the stereotype lies above "
            f"{verdict.margin:g}, better where it lies below -{verdict.margin:g}, and no worse where it ends at "
            f"{verdict.margin:g} or below, at an alpha of {verdict.alpha:g}, corrected by Bonferroni's method"
        )


def crossed_sentence(alphas: Iterable[float]) -> Sentence:
    """What intervals and p-values of the crossed test are."""
    confidence = listed([percent(1.0 - alpha) for alpha in alphas], "or")
    return Sentence(
        f"The {confidence} interval of d and its p-value, two-sided, are of a crossed test, which takes both target "
        "words and attribute words as samples of what they stand for",
        CROSSED_WORKS,
    )


def lost_sentence(run: RunData, rows: Iterable[Result]) -> Sentence:
    """When a test was refused, and how often that was so."""
    statuses: list[str] = [row.status for row in rows]
    share = percent(run.manifest.settings.max_lost)
    parts = [f"A test was left out where a model lacks more than {share} of the words of a set"]
    for status, why in (("refused", "for this reason"), ("failed", "because their effect size is not defined")):
        if count := statuses.count(status):
            parts.append(f"{counted(count, 'result')} {'is' if count == 1 else 'are'} missing {why}")
    return Sentence("; ".join(parts))
