"""How models agree with people, in the layout of Cao et al. 2022, Table 6."""

from __future__ import annotations

from biassay.pages.formats import decimals
from biassay.pages.publish.layout import Cell, Group, Row, Span, Table, clean
from biassay.studies.stereotypes.records import AlignmentRow
from biassay.studies.stereotypes.view import View
from biassay.studies.stereotypes.words import measure_name

__all__ = ["agreement_table"]


def agreement_table(found: View) -> Table | None:
    """Measures across, models down, two rows each: Kendall's tau and precision at 3; None without human judgements."""
    measures = list(dict.fromkeys(m.measure for r in found.models for m in r.measures if m.alignments))
    if not measures:
        return None
    groups = []
    for result in found.models:
        aligned = {m.measure: m.overall for m in result.measures if m.overall is not None}
        rows = [
            Row(("Kendall's tau",), tuple(_tau(aligned.get(measure)) for measure in measures)),
            Row(("precision at 3",), tuple(_precision(aligned.get(measure)) for measure in measures)),
            Row(("tau, groups shuffled",), tuple(_shuffled(aligned.get(measure)) for measure in measures)),
        ]
        groups.append(Group(clean(result.label), tuple(rows)))
    caption = (
        "Agreement of language models with human judgements over all pairs of traits and the groups on which templates "
        "were not chosen, with 95% intervals over people and groups. Groups shuffled: the tau if ratings are given at "
        "random to the groups, which is what all groups have in common. Agreement is no virtue: people's ratings are "
        "stereotypes too."
    )
    return Table(clean(caption), ("",), tuple(Span(measure_name(m)) for m in measures), tuple(groups))


def _tau(a: AlignmentRow | None) -> Cell:
    return _with_interval(None if a is None else a.tau, None if a is None else a.tau_both)


def _precision(a: AlignmentRow | None) -> Cell:
    return _with_interval(None if a is None else a.precision, None if a is None else a.precision_both)


def _shuffled(a: AlignmentRow | None) -> Cell:
    return Cell(decimals(None if a is None else a.tau_shuffled))


def _with_interval(value: float | None, interval: tuple[float, float] | None) -> Cell:
    within = "" if interval is None else f" ({decimals(interval[0])} to {decimals(interval[1])})"
    return Cell((decimals(value) + within).replace("-", "−"))  # inside a text a hyphen would stay one
