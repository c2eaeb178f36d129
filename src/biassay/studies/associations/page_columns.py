"""The columns of results on the page: what leads first, then what stands behind it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from biassay.pages.formats import decimals, format_p, interval_text, shown
from biassay.studies.associations.columns import COLUMNS
from biassay.studies.associations.lead import corrected_p_of, d_interval, effect_of
from biassay.studies.associations.marks import BY_WORD, lead_p, p_by_text, p_by_word
from biassay.studies.associations.records import Result
from biassay.studies.associations.view import EFFECTS, LEADING, RunView
from biassay.studies.associations.words_contexts import context_range

__all__ = ["PageColumn", "column_groups", "p_columns"]

_COLUMNS = {column.name: column for column in COLUMNS}
_EFFECT = {
    "text": "Effect size, with every text as an observation.",
    "crossed": "Effect size over words: texts or contexts of a word are averaged.",
}
_P = {
    "crossed": "Would other words of the same kinds, targets and attributes, show it too? Two-sided.",
    "word": "Would a random split of the same target words do as well?",
    "text": "Under the protocol of the run, with every text as an observation.",
}
_FOR_THESE = "Would a random split of the same target words do as well? It speaks of these attribute words only."
_NEW_CONTEXTS = (
    "Where 95% of effects of these words lie in new contexts, from new documents. A dash: some word has contexts from "
    "one document only."
)
_PAPERS_P = "Of the pooled effect. It shrinks with the number of samples, which is free to choose."


@dataclass(frozen=True)
class PageColumn:
    """What stands above a column, what it means, and what stands in it."""

    label: str
    help: str
    cell: Callable[[Result], str]


def p_columns(view: RunView) -> list[PageColumn]:
    """The p-value that leads, with its sign, and the one for these attribute words, where it is another."""
    lead = view.lead
    first = PageColumn(LEADING[lead], _P[lead or "crossed"], lead_p)
    second = PageColumn(BY_WORD, _FOR_THESE, p_by_word)
    return [first] if lead == "word" or not _any(second, view.results) else [first, second]


def column_groups(view: RunView) -> dict[str, list[PageColumn]]:
    """All columns, those that are shown together under one name; a column that nothing stands in is left out."""
    measured = [r for r in view.run.results if r.status == "measured"]
    groups = {"main": _leading(view), "size and variance": _crossed(view), "other p-values": _others(view)}
    if view.over_contexts:
        groups["over contexts"] = _over_contexts()
    filled = {name: [one for one in group if _any(one, measured)] for name, group in groups.items()}
    return {name: group for name, group in filled.items() if group} or {"main": groups["main"][:1]}


def _any(column: PageColumn, results: Iterable[Result]) -> bool:
    return any(column.cell(r) not in ("–", "") for r in results)


def _leading(view: RunView) -> list[PageColumn]:
    lead = view.lead
    effect, interval = _EFFECT["text" if lead == "text" else "crossed"], f"{view.confidence} interval"
    first, *rest = p_columns(view)
    return [
        PageColumn(EFFECTS[lead], effect, lambda r: decimals(effect_of(r))),
        PageColumn(interval, "Of d with other words of the same kinds, targets and attributes.", view.interval),
        first,
        PageColumn(f"{first.label}, corrected", "After correction over its family.", _corrected),
        *rest,
        _own("share_random", _random),
    ]


def _corrected(row: Result) -> str:
    return format_p(corrected_p_of(row))


def _crossed(view: RunView) -> list[PageColumn]:
    """D and what its variance is made of; under the papers' protocols also what would lead otherwise."""
    confidence = view.confidence
    led = [
        _own("effect_size_by_word"),
        PageColumn(f"d, {confidence}", "Interval of d, by the crossed test.", d_interval),
        PageColumn(
            "p, crossed", "Crossed test: target and attribute words as samples.", lambda r: format_p(r.p_value_crossed)
        ),
    ]
    return [
        *([] if view.lead == "crossed" else led),
        PageColumn("D", _COLUMNS["D"].help, lambda r: _cosine(r.D)),
        PageColumn(f"D, {confidence}", "Interval of D, by the crossed test.", _D_interval),
        _own("df_crossed"),
        _own("share_targets", label="target words"),
        _own("share_attributes", label="attribute words"),
        _own("share_residual"),
        *([] if view.lead == "text" else [_own("smallest_effect")]),
        _own("margin", lambda r: "–" if r.margin is None else f"{r.margin:g}"),
        _own("p_equivalence"),
    ]


def _others(view: RunView) -> list[PageColumn]:
    by_word = [
        _own("p_value_by_word_holm"),
        _own("p_value_by_word_opposite"),
        _own("p_floor_by_word"),
    ]
    if view.over_contexts:
        return by_word
    by_text = [
        _own("effect_size", label="effect by text"),
        _own("p_value", p_by_text),
        _own("p_value_holm"),
    ]
    return [*by_word, *([] if view.lead == "text" else by_text), _own("shared_templates", label="shared templates")]


def _over_contexts() -> list[PageColumn]:
    return [
        PageColumn("pooled effect (CES)", "Mean effect over samples of contexts.", lambda r: decimals(r.effect_size)),
        PageColumn("new contexts", _NEW_CONTEXTS, _new_contexts),
        PageColumn("p, paper's", _PAPERS_P, p_by_text),
        PageColumn("p, paper's, Holm", "The same after correction.", _papers_holm),
        _own("share_significant", label="samples significant"),
        PageColumn("contexts a word", "Fewest, median, most.", context_range),
    ]


def _own(name: str, cell: Callable[[Result], str] | None = None, label: str | None = None) -> PageColumn:
    """A column of results.tsv."""
    column = _COLUMNS[name]
    return PageColumn(label or column.label, column.help, cell or (lambda row: shown(column.format, column.value(row))))


def _cosine(value: float | None) -> str:
    return "–" if value is None else f"{value:z.3f}"


def _D_interval(row: Result) -> str:
    return "–" if row.D_low is None else f"{_cosine(row.D_low)} to {_cosine(row.D_high)}"


def _random(row: Result) -> str:
    if row.share_random == 0.0 and row.random_sets:
        return f"<{100.0 / row.random_sets:.2g}%"
    return shown("share", row.share_random)


def _papers_holm(row: Result) -> str:
    return p_by_text(dataclasses.replace(row, p_value=row.p_value_holm, log10_p_value=None))


def _new_contexts(row: Result) -> str:
    found = row.contextual
    return "–" if found is None else interval_text(found.new_contexts_low, found.new_contexts_high)
