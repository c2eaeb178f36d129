"""The figure of a benchmark: scores by category, for BBQ in each kind of context, with both intervals."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from biassay.pages.effects import Effect, EffectRow, EffectRows, draw_effects
from biassay.pages.formats import MANY_MODELS, counted, decimals, format_p, interval_text
from biassay.pages.overview import counts_text, drawable, effect_of_finding, scale_of
from biassay.results.data import RunData
from biassay.results.findings import Finding
from biassay.studies.benchmarks.findings import findings_of, from_null
from biassay.studies.benchmarks.records import Result
from biassay.studies.benchmarks.sentences import ALL
from biassay.studies.benchmarks.shown import CAPTIONS, benchmark_of, category_name, rows_of

__all__ = ["Placed", "conditions", "figure_of", "placed", "said_of"]

Placed = Mapping[tuple[str, str], tuple[Result, Finding]]
"""Rows and findings by model and item."""
_HEADS = {"": "By category", "ambiguous": "Ambiguous contexts", "disambiguated": "Disambiguated contexts"}


def placed(run: RunData) -> Placed:
    """Every finding with the row it is made from."""
    rows = [row for row in run.results if row.category != ALL]
    return {(one.model, one.item): (row, one) for row, one in zip(rows, findings_of(run), strict=True)}


def conditions(found: Placed) -> Iterator[tuple[str, list[Finding]]]:
    """Findings under headings: contexts of BBQ apart."""
    for condition in dict.fromkeys(row.condition for row, _ in found.values()):
        yield _HEADS[condition], [one for row, one in found.values() if row.condition == condition]


def figure_of(run: RunData) -> Markup | None:
    """Ambiguous and disambiguated contexts below each other, on one scale."""
    found = placed(run)
    shown = drawable(one for _, one in found.values())
    if not shown:
        return None
    models = list(dict.fromkeys(one.model for _, one in found.values()))
    groups = [EffectRows(head, tuple(_rows(own, found, models)), said=_said(own)) for head, own in conditions(found)]
    given = scale_of(shown, len(models))
    beside = "by item, as usually printed" if benchmark_of(run) != "crows-pairs" else ""
    if given["title"].endswith("intervals."):
        units = {row.unit for row, _ in found.values()}
        given["title"] = f"{given['title'][:-1]} by {' or '.join(sorted(units))}."
    given["reach"] = max([given["reach"], *(abs(end) for row, _ in found.values() for end in _by_item(row) or ())])
    return draw_effects(groups, models, caption=CAPTIONS[benchmark_of(run)] + _over_all(run), beside=beside, **given)


def _rows(findings: Sequence[Finding], found: Placed, models: Sequence[str]) -> Iterator[EffectRow]:
    items: dict[str, list[Finding]] = {}
    for one in findings:
        items.setdefault(one.item, []).append(one)
    told = len(models) <= MANY_MODELS
    for item, same in items.items():
        rows = [found[one.model, item][0] for one in same]
        effects = [
            _effect(one, row, models, told=told) for one, row in zip(same, rows, strict=True) if row.score is not None
        ]
        name = said_of(rows) if told else ""
        lost = [f"{one.model}: not measured: {one.reason}" for one in same if one.effect is None]
        said = tuple(lost) if told else ()
        yield EffectRow(
            category_name(rows[0].category), name or ("not measured" if not effects else ""), tuple(effects), said
        )


def said_of(rows: Sequence[Result]) -> str:
    """What is read beside a score: the accuracy of BBQ, lms and icat of StereoSet; of several models one after the
    other."""
    numbers = {
        "accuracy": [f"{row.accuracy:.0%}" for row in rows if row.accuracy is not None],
        "lms": [f"{row.lms:.0f}" for row in rows if row.lms is not None],
        "icat": [f"{row.icat:.0f}" for row in rows if row.icat is not None],
    }
    told = [f"{name} {', '.join(own)}" for name, own in numbers.items() if own]
    return "; ".join(told) or counted(rows[0].n, rows[0].unit)


def _effect(finding: Finding, row: Result, models: Sequence[str], *, told: bool) -> Effect:
    drawn = effect_of_finding(finding, models.index(finding.model), told=told)
    beside = _by_item(row)
    return dataclasses.replace(drawn, beside=beside, text=_text(drawn.text, row, beside) if told else "")


def _by_item(row: Result) -> tuple[float, float] | None:
    low, high = from_null(row, row.item_low), from_null(row, row.item_high)
    return None if row.unit == "pair" or low is None or high is None else (low, high)


def _text(sentence: str, row: Result, beside: tuple[float, float] | None) -> str:
    known = [sentence, f"{counted(row.n_clusters, row.unit)}, {row.n:,} of {counted(row.items, 'item')} count"]
    if row.accuracy is not None:
        known.append(f"accuracy {row.accuracy:.1%}")
    if row.lms is not None:
        known.append(f"lms {decimals(row.lms)}, icat {decimals(row.icat)}")
    if beside is not None:
        known.append(f"by item, as usually printed: {interval_text(*beside)}, p = {format_p(row.p_value_item)}")
    return "\n".join(known)


def _said(findings: Sequence[Finding]) -> str:
    return counts_text(findings)


def _over_all(run: RunData) -> str:
    """The score over all categories, where there is one."""
    found = [(label, row) for (label, category, _), row in rows_of(run).items() if category == ALL]
    told = [
        f"{label} {decimals(row.score)} ({interval_text(row.score_low, row.score_high)})"
        for label, row in found[:MANY_MODELS]
        if row.score is not None
    ]
    name = {"crows-pairs": "share of pairs", "stereoset": "ss"}.get(benchmark_of(run), "score")
    return f" Over all categories, {name}: {', '.join(told)}." if told else ""
