"""Stereotypes as tables in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from biassay.pages.formats import printable
from biassay.studies.stereotypes.records import AlignmentRow
from biassay.studies.stereotypes.view import CrossedView, MeasureView, View
from biassay.studies.stereotypes.words import (
    MEANING_OF_PROFILES,
    interval_text,
    leading_traits,
    measure_name,
    number,
    p_text,
    stereotypes_headline,
    stereotypes_summary,
    templates_text,
)

__all__ = ["print_stereotypes"]

_EMERGENT_SHOWN = 15


def print_stereotypes(found: View, console: Console) -> None:
    """Print how measures agree with people, the profile of every group, paired groups, and what it means."""
    parts: list[RenderableType] = [Text(stereotypes_headline(found), style="bold")]
    for result in found.models:
        aligned = [(record, a) for record in result.measures for a in record.alignments]
        if aligned:
            parts += [_title(f"{result.label}: agreement with people"), _alignments(aligned, found)]
        record = result.closest  # one measure, for a table of all groups is long
        if record is not None:
            over = templates_text(record, found)
            parts.append(_title(f"{result.label}: {measure_name(record.measure)}, {over}"))
            parts.append(_profiles(record, found.inputs.pairs))
        for crossed in result.intersections:
            name = measure_name(crossed.measure)
            parts += [_title(f"{result.label}: {name}, traits that emerge in paired groups"), _emergent(crossed)]
    parts.append(Text(""))
    parts += [Text(printable(sentence)) for sentence in stereotypes_summary(found)]
    notes = () if found.inputs.human is None else found.inputs.human.notes
    parts += [Text(printable(note), style="yellow") for note in notes]
    parts.append(Text(MEANING_OF_PROFILES, style="dim"))
    console.print(Group(*parts))


def _title(text: str) -> Text:
    return Text(f"\n{printable(text)}", style="bold")


def _table(*columns: str, left: Sequence[str] = ()) -> Table:
    table = Table()
    for column in columns:
        table.add_column(column, justify="left" if column in left else "right", overflow="fold")
    return table


def _alignments(rows: Sequence[tuple[MeasureView, AlignmentRow]], view: View) -> Table:
    columns = (
        "measure",
        "annotators",
        "tau",
        "95% (people, groups)",
        "groups shuffled",
        "p",
        "P@3",
        "tau with pilot",
        "templates",
    )
    table = _table(*columns, left=("measure", "annotators", "templates"))
    for record, found in rows:
        who = found.annotators if found.num_annotators is None else f"{found.annotators} ({found.num_annotators})"
        span = interval_text(found.tau_both or found.tau_groups)
        numbers = (number(found.tau), span, number(found.tau_shuffled), p_text(found.p_value_shuffled))
        rest = (number(found.precision), number(found.tau_with_pilot))
        table.add_row(
            measure_name(record.measure),
            Text(printable(who)),
            *numbers,
            *rest,
            Text(printable(templates_text(record, view))),
        )
    return table


def _profiles(record: MeasureView, pairs: Sequence[str]) -> Table:
    """Single groups: the pairs that stand out, and how the group agrees with people."""
    taus = {} if record.overall is None else {g.group: g for g in record.groups_of(record.overall)}
    columns = ("group", "highest pairs", "lowest pairs", *(("tau", "P@3") if taus else ()))
    table = _table(*columns, left=columns[:3])
    for profile in record.profiles:
        if profile.parts:
            continue
        high, low = leading_traits(profile, pairs)
        found = taus.get(profile.group)
        own = (number(found.tau), number(found.precision)) if found is not None else ("", "") if taus else ()
        name = f"{profile.group} (pilot)" if found is not None and found.pilot else profile.group
        table.add_row(Text(printable(name)), Text(printable(high)), Text(printable(low)), *own)
    return table


def _emergent(crossed: CrossedView) -> Table:
    columns = ("group", "trait", "", "beyond both by", "of its groups", "p", "p, additive")
    table = _table(*columns, left=columns[:3])
    for found in crossed.emergent[:_EMERGENT_SHOWN]:
        numbers = (f"{found.excess:.3f}", f"{found.bound:.3f}", p_text(found.p_value), p_text(found.p_value_additive))
        table.add_row(Text(printable(found.group)), Text(printable(found.trait)), found.direction, *numbers)
    return table
