"""Tables and methods sentences of association tests, also that of Guo and Caliskan (2021, Table 1)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from biassay.errors import UsageError
from biassay.reporting.document import Cell, ColumnSpan, RowGroup, Table, TableRow, get_shade
from biassay.reporting.formats import clean_line, format_count, format_decimal, format_percent
from biassay.reporting.methods import MethodsSentence, format_models, get_version, join_names, make_seed_sentence
from biassay.results.comparison import Comparison
from biassay.results.outcomes import Result
from biassay.results.run_data import RunData, model_key, model_labels
from biassay.results.tables import format_tsv
from biassay.studies.associations.diagnostics import list_lost_words
from biassay.studies.associations.findings import (
    ABSENCE,
    FIXED_WORDS_P,
    SENTENCES_P,
    SIDES,
    choose_test,
    describe_equivalence,
    describe_family,
    format_d_interval,
    format_fixed_words_p,
    format_label,
    format_main_p,
    format_published_p,
    get_sign,
    group_by_topic,
    make_legend,
)
from biassay.studies.associations.results import CROSSED, FIXED_WORDS, PAPER_COLUMNS, SENTENCES
from biassay.studies.associations.settings import PAPER_PROTOCOLS

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


OTHER = "†"
_NARROW_P = "p (these)"  # columns of a paper are narrow; the caption says which words
_P = {FIXED_WORDS: FIXED_WORDS_P, SENTENCES: SENTENCES_P}
_WHY = {
    FIXED_WORDS: "p for these words only, because the metric gives one score for all four sets",
    SENTENCES: "sentence-level p, because the words of the texts are unknown",
}
_PAPERS = "sentence-level p, as the protocol requires"


def _list_column_names(results: Sequence[Result]) -> tuple[str, ...]:
    """List the heads of the columns of one model."""
    lead = choose_test(results)
    effect = " or ".join(dict.fromkeys(result.scale for result in results)) or "d"
    if lead != CROSSED:
        return effect if lead == FIXED_WORDS else "sentence-level effect", _P[lead]
    return effect, f"{_format_confidence(results)} CI", "p", FIXED_WORDS_P


def _format_confidence(results: Sequence[Result]) -> str:
    return " or ".join(format_percent(1.0 - alpha) for alpha in sorted({result.alpha for result in results}) or [0.05])


def _make_cells(result: Result | None, lead: str, *, published: bool) -> tuple[Cell, ...]:
    """Make the cells of one result: blank if there is none, a dash where there is no number."""
    n_columns = 4 if lead == CROSSED else 2
    if result is None:
        return (Cell(""),) * n_columns
    if result.effect_size is None:
        return Cell("–" if published else result.status), *(Cell("–"),) * (n_columns - 1)
    sign = get_sign(result)
    effect = Cell(format_decimal(result.effect_size), "" if result.outcome.test == lead else OTHER)
    p = Cell(format_main_p(result).removesuffix(sign), sign)
    if lead != CROSSED:
        return effect, p
    interval = "–" if result.ci_low is None else format_d_interval(result)
    return effect, Cell(interval), p, Cell(format_fixed_words_p(result))


def explain_other_tests(results: Sequence[Result]) -> str:
    """Explain the mark of results with another test than the rest of the table; empty if there are none."""
    lead = choose_test(results)
    others = [r for r in results if r.status == "measured" and r.outcome.test != lead]
    reasons = dict.fromkeys(_PAPERS if r.protocol in PAPER_PROTOCOLS else _WHY[r.outcome.test] for r in others)
    return f"{OTHER} {' or '.join(sorted(reasons))}." if reasons else ""


Key = tuple[str, str, str | None]
_LONG = 48  # characters of a model's name; a longer one is given below the table


def associations_table(run: RunData, *, published: bool = True) -> Table:
    """Make the table of all tests, one line each, by topic, with sanity checks last; models across.

    Parameters
    ----------
    run : RunData
    published : bool
        If True, a table under the papers' protocols shows effect sizes with stars and no p-values, as in the papers. If
        False, list skipped tests, and show claims in a separate column.
    """
    labels = model_labels(run)
    cells = _index_results(run)
    lead = choose_test(run.results)
    columns = ("",) if published and lead == SENTENCES else _list_column_names(run.results)
    if published:
        columns = tuple(_NARROW_P if name == FIXED_WORDS_P else name for name in columns)

    def make_row(test: Result) -> TableRow:
        results = [_make_cells(cells.get((test.test, key)), lead, published=published) for key in labels]
        if columns == ("",):  # the stars of the p-value are shown at the effect
            results = [(Cell(effect.text, p.mark),) for effect, p in results]
        names = clean_line(test.test), clean_line(format_label(test))
        return TableRow((": ".join(names),) if published else names, tuple(itertools.chain(*results)))

    groups = tuple(RowGroup(title, tuple(map(make_row, tests))) for title, tests in group_by_topic(run.results))
    return Table(
        caption=_make_caption(run, lead),
        stub=("Test",) if published else ("Test", "Claim"),
        models=_make_spans(run, labels, columns),
        groups=groups,
        signs=(
            *filter(None, [explain_other_tests(run.results)]),
            *_list_small(run, labels),
            *_list_blanks(run, labels),
        ),
        spare=(_NARROW_P if published else FIXED_WORDS_P,) if lead == CROSSED else (),
        brief=_make_brief(run, lead),
    )


def pooled_table(run: RunData) -> Table:
    """Make the table of the CEAT paper: pooled effect sizes, shaded by size, and their p-values."""
    if run.manifest.inputs.contexts is None:
        raise UsageError("this run is not over contexts: it has no pooled effects; use associations_table")
    labels = model_labels(run)
    indices = _index_results(run)
    rows = tuple(
        TableRow(
            (clean_line(f"{test}: {label}"),),
            tuple(cell for key in labels for cell in _make_pooled_cells(indices.get((test, key)))),
        )
        for test, label in {result.test: format_label(result) for result in run.results}.items()
        if any(r.effect_size is not None for (of, _), r in indices.items() if of == test)
    )
    return Table(
        caption=_make_pooled_caption(run),
        stub=("Test",),
        models=_make_spans(run, labels, ("d", "p")),
        groups=(RowGroup("", rows),) if rows else (),
        signs=tuple(_list_blanks(run, labels)),
    )


def _index_results(run: RunData) -> dict[tuple[str, Key], Result]:
    return {(result.test, model_key(result)): result for result in run.results}


def _make_spans(run: RunData, labels: Mapping[Key, str], columns: tuple[str, ...]) -> tuple[ColumnSpan, ...]:
    """Make the columns of the models, with notes on long names and on tests that were not measured."""
    unmeasured: dict[Key, list[str]] = {}
    for result in run.results:
        if result.effect_size is None:
            unmeasured.setdefault(model_key(result), []).append(result.test)
    spans = []
    for number, (key, label) in enumerate(labels.items(), start=1):
        name = clean_line(label)
        title = name if len(name) <= _LONG else f"Model {number}"
        notes = [] if title == name else [f"{title}: {name}."]
        if key in unmeasured:
            notes.append(clean_line(f"– not measured on {title}: {', '.join(unmeasured[key])}."))
        spans.append(ColumnSpan(title, columns, tuple(notes)))
    return tuple(spans)


def _make_pooled_cells(result: Result | None) -> tuple[Cell, Cell]:
    if result is None:
        return Cell(""), Cell("")
    pooled = result.pooled_effect_size
    return Cell(format_decimal(pooled), shade=get_shade(pooled)), Cell(format_published_p(result))


def _make_caption(run: RunData, lead: str) -> str:
    signs = f"{make_legend(run.results)}." if run.results else ""
    return _join(
        "Effect sizes of association tests.", *_describe_columns(run, lead), signs, _note_unfinished(run), ABSENCE
    )


def _make_brief(run: RunData, lead: str) -> str:
    """Make a short caption: the unit, what is sampled, and the family of the correction."""
    signs = f"{make_legend(run.results)}." if run.results else ""
    if lead != CROSSED:
        return _join("Effect sizes of association tests.", *_describe_columns(run, lead), signs, _note_unfinished(run))
    confidence = _format_confidence(run.results)
    text = f"Effect sizes d of association tests, in standard deviations, with {confidence} intervals."
    unit = "Target words and attribute words are samples; p is two-sided."
    return _join(text, unit, signs, _note_unfinished(run))


def _describe_columns(run: RunData, lead: str) -> Iterable[str]:
    """Describe the columns and their sampling units."""
    protocols = " and ".join(dict.fromkeys(r.protocol for r in run.results))
    sides = " or ".join(dict.fromkeys(SIDES.get(r.alternative, r.alternative) for r in run.results))
    exact = f", {text}" if (text := _describe_accuracy(run)) else ""
    if lead == SENTENCES:
        yield "Effect sizes are in standard deviations; every text is an observation."
        yield f"Protocol {protocols}, {sides}; it assumes that texts of one word are independent, which they are not."
    if lead == CROSSED:
        yield "d: effect size in standard deviations, over words whose texts are averaged."
        yield "The interval and p (two-sided) treat target words and attribute words as samples."
    if lead == FIXED_WORDS:
        yield "Words are observations: the texts of a word are averaged."
    if lead in (CROSSED, FIXED_WORDS):
        yield f"{_NARROW_P}: p for these words only, by permutation of the target words, {sides}{exact}."


def _make_pooled_caption(run: RunData) -> str:
    over = run.manifest.settings
    drawn = "the same for all models" if over.mode == "fixed" else "drawn independently per model"
    what = f"Pooled effects over contexts (CEAT): {over.n_samples:,} samples of contexts, {drawn}."
    d = "d: pooled effect size, rounded to the nearest (the paper rounds down)."
    p = "p: two-sided, by the random-effects model over samples; it does not generalize to other words."
    return _join(what, d, p, _note_unfinished(run), ABSENCE)


def _describe_accuracy(run: RunData) -> str:
    """Describe the accuracy of the p-values by word; empty if there are none."""
    routes = {r.fixed_words_route or "" for r in run.results if r.fixed_words_p_value is not None}
    if not routes:
        return ""
    if "sampling" in routes:
        return "from random splits if there are too many to count"
    return "within a relative error of 0.1%" if any("saddle-point" in route for route in routes) else "exact"


def _note_unfinished(run: RunData) -> str:
    return "" if run.manifest.status == "complete" else "The run is not finished."


def _join(*sentences: str) -> str:
    return clean_line(" ".join(sentence for sentence in sentences if sentence))


def _list_small(run: RunData, labels: Mapping[Key, str]) -> Iterable[str]:
    """List the effects that are shown to be smaller than the margin."""
    for row in run.results:
        if row.p_equivalence is not None and row.p_equivalence <= row.alpha and (text := describe_equivalence(row)):
            yield clean_line(f"{row.test} on {labels[model_key(row)]}: {text}.")


def _list_blanks(run: RunData, labels: Mapping[Key, str]) -> Iterable[str]:
    if len(_index_results(run)) < len(labels) * len({result.test for result in run.results}):
        yield "A blank cell: this test is not among the results of this model."


def format_published_results(run: RunData) -> str:
    """Format the nine columns of the papers, with their sentence-level p. An empty cell was not computed."""
    return format_tsv(PAPER_COLUMNS, run.results)
