"""Paper tables of association tests.

that of Guo and Caliskan 2021, Table 1, beside our own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from biassay.errors import UsageError
from biassay.reporting.document import Cell, ColumnSpan, PaperTable, RowGroup, TableRow, get_shade
from biassay.reporting.formats import clean_line, format_decimal, format_percent
from biassay.results.outcomes import Result
from biassay.results.run_data import RunData
from biassay.results.tables import format_tsv
from biassay.results.views import model_key, model_labels
from biassay.studies.associations.findings import ABSENCE, describe_equivalence
from biassay.studies.associations.results import CROSSED, FIXED_WORDS, PAPER_COLUMNS, SENTENCES
from biassay.studies.associations.settings import PAPER_PROTOCOLS
from biassay.studies.associations.signs import (
    FIXED_WORDS_P,
    SENTENCES_P,
    SIDES,
    choose_test,
    format_d_interval,
    format_fixed_words_p,
    format_main_p,
    format_published_p,
    get_sign,
    make_legend,
)

__all__ = [
    "OTHER",
    "Number",
    "associations_table",
    "column_names",
    "nine_columns",
    "numbers_of",
    "other_lead",
    "pooled_table",
]


Number = tuple[str, str]
"""A number as it is read, and its marks."""
OTHER = "†"
_P = {FIXED_WORDS: FIXED_WORDS_P, SENTENCES: SENTENCES_P}
_WHY = {
    FIXED_WORDS: "for these words only, because there is no crossed test of it",
    SENTENCES: "sentence-level, because the words of its texts are unknown",
}
_PAPERS = "sentence-level, as its protocol requires"


def column_names(results: Sequence[Result]) -> tuple[str, ...]:
    """What stands over the numbers of one model."""
    lead = choose_test(results)
    effect = " or ".join(dict.fromkeys(result.scale for result in results)) or "d"
    if lead != CROSSED:
        return effect, _P[lead]
    alphas = sorted({result.alpha for result in results}) or [0.05]
    return effect, " or ".join(format_percent(1.0 - alpha) for alpha in alphas), "p", FIXED_WORDS_P


def numbers_of(result: Result | None, lead: str) -> tuple[Number, ...]:
    """A number for each column of a table with this lead; blank where there is no result, a dash where no number is."""
    if result is None or result.effect_size is None:
        blank = "" if result is None else "–"
        return ((blank, ""),) * (4 if lead == CROSSED else 2)
    mark = get_sign(result)
    effect = format_decimal(result.effect_size), "" if result.outcome.test == lead else OTHER
    p = format_main_p(result).removesuffix(mark), mark
    if lead != CROSSED:
        return effect, p
    interval = "–" if result.ci_low is None else format_d_interval(result)
    return effect, (interval, ""), p, (format_fixed_words_p(result), "")


def other_lead(results: Sequence[Result]) -> str:
    """What is said of results whose effect size and p-value are not those that lead in the table, and why."""
    lead = choose_test(results)
    others = [r for r in results if r.status == "measured" and r.outcome.test != lead]
    why = dict.fromkeys(_PAPERS if r.protocol in PAPER_PROTOCOLS else _WHY[r.outcome.test] for r in others)
    return f"{OTHER} {' or '.join(sorted(why))}" if why else ""


Key = tuple[str, str, str | None]
_CONTEXTS = {
    "word": "word",
    "sent": "sent (bleached sentences)",
    "sent (u)": "sent (u) (unbleached sentences, which say more)",
    "sentences": "sentences",
    "context": "context (texts are those of a corpus)",
}
_OF_TEMPLATES = {"bleached": "sent", "unbleached": "sent (u)"}
_SHORT = {FIXED_WORDS_P: "p (these)"}  # columns of a paper are narrow; the caption says which words
_LONG = 48  # characters of a model's name, beyond which it stands below the table


def associations_table(run: RunData) -> PaperTable:
    """Effect sizes with their intervals and p-values; tests down, models across.

    A test in words stands beside the same in sentences. Under the papers' protocols there are effect sizes by text with
    stars, and nothing else, as in the paper.
    """
    labels = model_labels(run)
    places = _by_place(run)
    lead = choose_test(run.results)
    names = ("",) if lead == SENTENCES else tuple(_SHORT.get(name, name) for name in column_names(run.results))
    groups: dict[str, dict[str, Result]] = {}
    titles = {result.test: result.title for result in run.results}
    for result in run.results:
        # Unbleached sentences ask more than their words do, and keep a title of their own.
        same = result.test if result.template == "unbleached" else result.asked_question
        title = titles.get(same, result.title)
        is_check = result.about == "method" and lead != SENTENCES
        groups.setdefault(f"Check of the method: {title}" if is_check else title, {}).setdefault(result.test, result)
    return PaperTable(
        caption=_caption(run, lead),
        stub=("Test", "Context"),
        models=_spans(run, labels, names),
        groups=tuple(
            RowGroup(
                clean_line(title),
                tuple(
                    TableRow(
                        (clean_line(test), _context(any_)),
                        tuple(cell for key in labels for cell in _cells(places.get((test, key)), lead)),
                    )
                    for test, any_ in sorted(tests.items(), key=lambda item: list(_CONTEXTS).index(_context(item[1])))
                ),
            )
            for title, tests in sorted(groups.items(), key=lambda group: _is_check(group[1], lead))
        ),
        signs=(*_other(run), *_small(run, labels), *_blanks(run, labels)),
        spare=("Context", _SHORT[FIXED_WORDS_P]) if lead == CROSSED else ("Context",),
        brief=_brief(run, lead),
    )


def _is_check(tests: Mapping[str, Result], lead: str) -> bool:
    """Checks of the method stand last, but in the papers' own table."""
    return lead != SENTENCES and all(result.about == "method" for result in tests.values())


def pooled_table(run: RunData) -> PaperTable:
    """The paper's numbers over contexts: pooled effect sizes, shaded by size, and their p-values."""
    if run.manifest.inputs.contexts is None:
        raise UsageError("this run is not over contexts: it has no pooled effects; use associations_table")
    labels = model_labels(run)
    places = _by_place(run)
    rows = tuple(
        TableRow(
            (clean_line(f"{test}: {title}"),),
            tuple(cell for key in labels for cell in _pooled(places.get((test, key)))),
        )
        for test, title in {result.test: result.title for result in run.results}.items()
        if any(r.effect_size is not None for (of, _), r in places.items() if of == test)
    )
    return PaperTable(
        caption=_pooled_caption(run),
        stub=("Test",),
        models=_spans(run, labels, ("d", "p")),
        groups=(RowGroup("", rows),) if rows else (),
        signs=tuple(_blanks(run, labels)),
    )


def _by_place(run: RunData) -> dict[tuple[str, Key], Result]:
    return {(result.test, model_key(result)): result for result in run.results}


def _spans(run: RunData, labels: Mapping[Key, str], columns: tuple[str, ...]) -> tuple[ColumnSpan, ...]:
    """The models, each with its name in full where it is too long for a column, and with what was not measured."""
    unmeasured: dict[Key, list[str]] = {}
    for result in run.results:
        if result.effect_size is None:
            unmeasured.setdefault(model_key(result), []).append(result.test)
    spans = []
    for place, (key, label) in enumerate(labels.items(), start=1):
        name = clean_line(label)
        title = name if len(name) <= _LONG else f"Model {place}"
        notes = [] if title == name else [f"{title}: {name}."]
        if key in unmeasured:
            notes.append(clean_line(f"– not measured on {title}: {', '.join(unmeasured[key])}."))
        spans.append(ColumnSpan(title, columns, tuple(notes)))
    return tuple(spans)


def _context(result: Result) -> str:
    """The paper's three kinds; of other sentences no more is known than that they are some."""
    if result.level != "sentence":
        return str(result.level)
    return _OF_TEMPLATES.get(result.template or "", "sentences")


def _cells(result: Result | None, lead: str) -> tuple[Cell, ...]:
    """Of one result; by text there is no more than the effect size, with the stars of its p-value."""
    numbers = [Cell(*number) for number in numbers_of(result, lead)]
    if lead != SENTENCES:
        return tuple(numbers)
    return (Cell(numbers[0].text, "" if result is None else get_sign(result)),)


def _pooled(result: Result | None) -> tuple[Cell, Cell]:
    if result is None:
        return Cell(""), Cell("")
    pooled = result.pooled_effect_size
    return Cell(format_decimal(pooled), shade=get_shade(pooled)), Cell(format_published_p(result))


def _caption(run: RunData, lead: str) -> str:
    shown = set(map(_context, run.results))
    contexts = f"Context: {', '.join(said for name, said in _CONTEXTS.items() if name in shown)}."
    signs = f"{make_legend(run.results, '; ')}." if run.results else ""
    return _sentences(
        "Effect sizes of association tests.", *_how(run, lead), contexts, signs, _unfinished(run), ABSENCE
    )


def _brief(run: RunData, lead: str) -> str:
    """The caption for little room: what the unit is, and over which family is corrected."""
    signs = f"{make_legend(run.results, '; ')}." if run.results else ""
    if lead != CROSSED:
        return _sentences("Effect sizes of association tests.", *_how(run, lead), signs, _unfinished(run))
    _, confidence, *_ = column_names(run.results)
    what = f"Effect sizes d of association tests, in standard deviations, with {confidence} intervals."
    unit = "Units are words, targets and attributes, whose texts are averaged; p is of the crossed test, two-sided."
    return _sentences(what, unit, signs, _unfinished(run))


def _how(run: RunData, lead: str) -> Iterable[str]:
    """Which numbers there are, and what they take for an observation."""
    protocols = " and ".join(dict.fromkeys(r.protocol for r in run.results))
    sides = " or ".join(dict.fromkeys(SIDES.get(r.alternative, r.alternative) for r in run.results))
    exact = f", {found}" if (found := _exactness(run)) else ""
    if lead == SENTENCES:
        yield "Effect sizes are in standard deviations; every text is an observation."
        yield f"Protocol {protocols}, {sides}; it takes texts of one word to be independent, which they are not."
    if lead == CROSSED:
        _, confidence, *_ = column_names(run.results)
        yield f"d: effect size in standard deviations, over words whose texts are averaged; {confidence}: its interval."
        yield "Interval and p (crossed test, two-sided) take target words and attribute words as samples."
        yield f"{_SHORT[FIXED_WORDS_P]}: for these words only, by permuting the target words, {sides}{exact}."
    if lead == FIXED_WORDS:
        yield "Words are observations: the texts of a word are averaged."
        yield f"{_SHORT[FIXED_WORDS_P]}: for these words only, by permuting the target words, {sides}{exact}."


def _pooled_caption(run: RunData) -> str:
    over = run.manifest.settings
    drawn = "the same draws for all models" if over.mode == "fixed" else "each model with draws of its own"
    what = f"Pooled effects over contexts (CEAT) of {over.n_samples:,} samples of contexts, {drawn}."
    d = "d: pooled effect size, rounded to the nearest (the paper rounds down)."
    p = "p: of the random-effects model over samples, two-sided; it says nothing about other words."
    return _sentences(what, d, p, _unfinished(run), ABSENCE)


def _exactness(run: RunData) -> str:
    """Describe the accuracy of the p-values by word; empty if there are none."""
    routes = {r.fixed_words_route or "" for r in run.results if r.fixed_words_p_value is not None}
    if not routes:
        return ""
    if "sampling" in routes:
        return "from random splits where there are too many to count"
    return "within a relative error of 0.1%" if any("saddle-point" in route for route in routes) else "exact"


def _unfinished(run: RunData) -> str:
    return "" if run.manifest.status == "complete" else "The run is not finished."


def _sentences(*sentences: str) -> str:
    return clean_line(" ".join(sentence for sentence in sentences if sentence))


def _other(run: RunData) -> Iterable[str]:
    if said := other_lead(run.results):
        yield f"{said}."


def _small(run: RunData, labels: Mapping[Key, str]) -> Iterable[str]:
    """What is shown to be smaller than a margin, where that was asked."""
    for row in run.results:
        if row.p_equivalence is not None and row.p_equivalence <= row.alpha and (said := describe_equivalence(row)):
            yield clean_line(f"{row.test} on {labels[model_key(row)]}: {said}.")


def _blanks(run: RunData, labels: Mapping[Key, str]) -> Iterable[str]:
    if len(_by_place(run)) < len(labels) * len({result.test for result in run.results}):
        yield "A blank cell: this test is not among the results of this model."


def nine_columns(run: RunData) -> str:
    """The papers' nine columns, with their p by text. An empty cell was not computed."""
    return format_tsv(PAPER_COLUMNS, run.results)
