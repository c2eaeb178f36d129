"""What comparisons of all studies share on a page and in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from rich.console import Console, Group, RenderableType
from rich.text import Text

from biassay.files import printable
from biassay.pages.plain_tables import said
from biassay.pages.section import Part, Section, Statement
from biassay.results.comparison import Comparison

__all__ = ["MEANING_OF_COMPARISONS", "lay_out_comparison", "print_differences"]

MEANING_OF_COMPARISONS = (
    "What is compared is what the runs found of the same groups. Agreement with people is no virtue: people's ratings "
    "are stereotypes too. A difference that is not shown does not show that two models are equal."
)


def _headline(comparison: Comparison) -> str:
    return f"{', '.join(comparison.models)} compared with {comparison.baseline}"


def _tone(comparison: Comparison) -> str:
    """Of the verdict."""
    outcomes = {one.outcome for one in comparison.verdicts if one.decides or one.outcome == "missing"} - {
        "not_measured"
    }
    if outcomes & {"worse", "missing"}:
        return "bad"
    return "" if not comparison.verdicts else "good" if outcomes <= {"no_worse", "better"} else "unsure"


def lay_out_comparison(
    comparison: Comparison,
    statements: Sequence[Statement],
    sections: Sequence[Section],
    meaning: str = MEANING_OF_COMPARISONS,
    figure: Markup | None = None,
) -> Part:
    """The part of a page."""
    return Part(
        anchor="comparison",
        title=_headline(comparison),
        headline=comparison.verdict,
        tone=_tone(comparison),
        summary=statements,
        meaning=meaning,
        sections=sections,
        figure=figure,
        notes=[*(f"What is compared is not alike: {note}." for note in comparison.notes), *comparison.remarks],
    )


def print_differences(
    comparison: Comparison,
    console: Console,
    statements: Sequence[Statement],
    before: Sequence[RenderableType] = (),
    after: Sequence[RenderableType] = (),
) -> None:
    """What is compared, then the statements; what a study has to show beside them stands before and after."""
    parts: list[RenderableType] = [Text(printable(_headline(comparison)), style="bold")]
    told = [*(f"not alike: {note}" for note in comparison.notes), *comparison.remarks]
    parts += [Text(printable(line), style="yellow") for line in told]
    console.print(Group(*parts, *before, *said(statements), *after))
