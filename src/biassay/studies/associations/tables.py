"""Tables for a paper, in no notation yet. Under the papers' protocols that of May et al. 2019, Table 4; over contexts
that of Guo and Caliskan 2021, Table 1, beside our own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from biassay.errors import UsageError
from biassay.pages.formats import clean, decimals, format_p
from biassay.pages.publish.layout import Cell, Group, Row, Span, Table, shade_of
from biassay.results.data import RunData
from biassay.results.labels import model_key, model_labels
from biassay.results.tables import tsv_of
from biassay.studies.associations.columns import PAPER_COLUMNS
from biassay.studies.associations.equivalence import equivalence_of
from biassay.studies.associations.lead import Lead, lead_of_table
from biassay.studies.associations.marks import BY_WORD, SIDES, legend, p_by_text, sign
from biassay.studies.associations.numbers import column_names, numbers_of, other_lead
from biassay.studies.associations.records import Result
from biassay.studies.associations.words import ABSENCE

__all__ = ["associations_table", "nine_columns", "pooled_table"]

Key = tuple[str, str, str | None]
_CONTEXTS = {
    "word": "word",
    "sent": "sent (bleached sentences)",
    "sent (u)": "sent (u) (unbleached sentences, which say more)",
    "sentences": "sentences",
    "context": "context (texts are those of a corpus)",
}
_OF_TEMPLATES = {"bleached": "sent", "unbleached": "sent (u)"}
_SHORT = {BY_WORD: "p (these)"}  # columns of a paper are narrow; the caption says which words
_LONG = 48  # characters of a model's name, beyond which it stands below the table


def associations_table(run: RunData) -> Table:
    """Effect sizes with their intervals and p-values; tests down, models across.

    A test in words stands beside the same in sentences. Under the papers' protocols there are effect sizes by text with
    stars, and nothing else, as in the paper.
    """
    labels = model_labels(run)
    places = _by_place(run)
    lead = lead_of_table(run.results)
    names = ("",) if lead == "text" else tuple(_SHORT.get(name, name) for name in column_names(run.results))
    groups: dict[str, dict[str, Result]] = {}
    titles = {result.test: result.title for result in run.results}
    for result in run.results:
        # Unbleached sentences ask more than their words do, and keep a title of their own.
        same = result.test if result.template == "unbleached" else result.variant_of or result.test
        title = titles.get(same, result.title)
        is_check = result.about == "method" and lead != "text"
        groups.setdefault(f"Check of the method: {title}" if is_check else title, {}).setdefault(result.test, result)
    return Table(
        caption=_caption(run, lead),
        stub=("Test", "Context"),
        models=_spans(run, labels, names),
        groups=tuple(
            Group(
                clean(title),
                tuple(
                    Row(
                        (clean(test), _context(any_)),
                        tuple(cell for key in labels for cell in _cells(places.get((test, key)), lead)),
                    )
                    for test, any_ in sorted(tests.items(), key=lambda item: list(_CONTEXTS).index(_context(item[1])))
                ),
            )
            for title, tests in sorted(groups.items(), key=lambda group: _is_check(group[1], lead))
        ),
        signs=(*_other(run), *_small(run, labels), *_blanks(run, labels)),
        spare=("Context", _SHORT[BY_WORD]) if lead == "crossed" else ("Context",),
        brief=_brief(run, lead),
    )


def _is_check(tests: Mapping[str, Result], lead: Lead) -> bool:
    """Checks of the method stand last, but in the papers' own table."""
    return lead != "text" and all(result.about == "method" for result in tests.values())


def pooled_table(run: RunData) -> Table:
    """The paper's numbers over contexts: pooled effect sizes, shaded by size, and their p-values."""
    if run.manifest.inputs.contexts is None:
        raise UsageError("this run is not over contexts: it has no pooled effects; use associations_table")
    labels = model_labels(run)
    places = _by_place(run)
    rows = tuple(
        Row((clean(f"{test}: {title}"),), tuple(cell for key in labels for cell in _pooled(places.get((test, key)))))
        for test, title in {result.test: result.title for result in run.results}.items()
        if any(r.effect_size is not None for (of, _), r in places.items() if of == test)
    )
    return Table(
        caption=_pooled_caption(run),
        stub=("Test",),
        models=_spans(run, labels, ("d", "p")),
        groups=(Group("", rows),) if rows else (),
        signs=tuple(_blanks(run, labels)),
    )


def _by_place(run: RunData) -> dict[tuple[str, Key], Result]:
    return {(result.test, model_key(result)): result for result in run.results}


def _spans(run: RunData, labels: Mapping[Key, str], columns: tuple[str, ...]) -> tuple[Span, ...]:
    """The models, each with its name in full where it is too long for a column, and with what was not measured."""
    unmeasured: dict[Key, list[str]] = {}
    for result in run.results:
        if result.effect_size is None:
            unmeasured.setdefault(model_key(result), []).append(result.test)
    spans = []
    for place, (key, label) in enumerate(labels.items(), start=1):
        name = clean(label)
        title = name if len(name) <= _LONG else f"Model {place}"
        notes = [] if title == name else [f"{title}: {name}."]
        if key in unmeasured:
            notes.append(clean(f"– not measured on {title}: {', '.join(unmeasured[key])}."))
        spans.append(Span(title, columns, tuple(notes)))
    return tuple(spans)


def _context(result: Result) -> str:
    """The paper's three kinds; of other sentences no more is known than that they are some."""
    if result.level != "sentence":
        return result.level
    return _OF_TEMPLATES.get(result.template or "", "sentences")


def _cells(result: Result | None, lead: Lead) -> tuple[Cell, ...]:
    """Of one result; by text there is no more than the effect size, with the stars of its p-value."""
    numbers = [Cell(*number) for number in numbers_of(result, lead)]
    if lead != "text":
        return tuple(numbers)
    return (Cell(numbers[0].text, "" if result is None else sign(result)),)


def _pooled(result: Result | None) -> tuple[Cell, Cell]:
    if result is None:
        return Cell(""), Cell("")
    return Cell(decimals(result.effect_size), shade=shade_of(result.effect_size)), Cell(p_by_text(result))


def _caption(run: RunData, lead: Lead) -> str:
    shown = set(map(_context, run.results))
    contexts = f"Context: {', '.join(said for name, said in _CONTEXTS.items() if name in shown)}."
    signs = f"{legend(run.results, '; ')}." if run.results else ""
    return _sentences(
        "Effect sizes of association tests.", *_how(run, lead), contexts, signs, _unfinished(run), ABSENCE
    )


def _brief(run: RunData, lead: Lead) -> str:
    """The caption for little room: what the unit is, and over which family is corrected."""
    signs = f"{legend(run.results, '; ')}." if run.results else ""
    if lead != "crossed":
        return _sentences("Effect sizes of association tests.", *_how(run, lead), signs, _unfinished(run))
    _, confidence, *_ = column_names(run.results)
    what = f"Effect sizes d of association tests, in standard deviations, with {confidence} intervals."
    unit = "Units are words, targets and attributes, whose texts are averaged; p is of the crossed test, two-sided."
    return _sentences(what, unit, signs, _unfinished(run))


def _how(run: RunData, lead: Lead) -> Iterable[str]:
    """Which numbers there are, and what they take for an observation."""
    protocols = " and ".join(dict.fromkeys(r.protocol for r in run.results))
    sides = " or ".join(dict.fromkeys(SIDES.get(r.alternative, r.alternative) for r in run.results))
    exact = f", {found}" if (found := _exactness(run)) else ""
    if lead == "text":
        yield "Effect sizes are in standard deviations; every text is an observation."
        yield f"Protocol {protocols}, {sides}; it takes texts of one word to be independent, which they are not."
    if lead == "crossed":
        _, confidence, *_ = column_names(run.results)
        yield f"d: effect size in standard deviations, over words whose texts are averaged; {confidence}: its interval."
        yield "Interval and p (crossed test, two-sided) take target words and attribute words as samples."
        yield f"{_SHORT[BY_WORD]}: for these words only, by permuting the target words, {sides}{exact}."
    if lead == "word":
        yield "Words are observations: the texts of a word are averaged."
        yield f"{_SHORT[BY_WORD]}: for these words only, by permuting the target words, {sides}{exact}."


def _pooled_caption(run: RunData) -> str:
    over = run.manifest.settings
    drawn = "the same draws for all models" if over.mode == "fixed" else "each model with draws of its own"
    what = f"Pooled effects over contexts (CEAT) of {over.n_samples:,} samples of contexts, {drawn}."
    d = "d: pooled effect size, rounded to the nearest (the paper rounds down)."
    p = "p: of the random-effects model over samples, two-sided; it says nothing about other words."
    return _sentences(what, d, p, _unfinished(run), ABSENCE)


def _exactness(run: RunData) -> str:
    """How exact the p-values by word are, as their records say; nothing where there are none."""
    errors = [r.p_error_by_word or 0.0 for r in run.results if r.p_value_by_word is not None]
    if not errors:
        return ""
    return f"within a relative error of {format_p(max(errors))}" if any(errors) else "exact"


def _unfinished(run: RunData) -> str:
    return "" if run.manifest.status == "complete" else "The run is not finished."


def _sentences(*sentences: str) -> str:
    return clean(" ".join(sentence for sentence in sentences if sentence))


def _other(run: RunData) -> Iterable[str]:
    if said := other_lead(run.results):
        yield f"{said}."


def _small(run: RunData, labels: Mapping[Key, str]) -> Iterable[str]:
    """What is shown to be smaller than a margin, where that was asked."""
    for row in run.results:
        if row.p_equivalence is not None and row.p_equivalence <= row.alpha and (said := equivalence_of(row)):
            yield clean(f"{row.test} on {labels[model_key(row)]}: {said}.")


def _blanks(run: RunData, labels: Mapping[Key, str]) -> Iterable[str]:
    if len(_by_place(run)) < len(labels) * len({result.test for result in run.results}):
        yield "A blank cell: this test is not among the results of this model."


def nine_columns(run: RunData) -> str:
    """The papers' nine columns, with their p by text. An empty cell was not computed."""
    return tsv_of(PAPER_COLUMNS, run.results)
