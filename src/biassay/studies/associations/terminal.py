"""A run of association tests in the terminal: a line a test, by topic, and the summary last."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rich.console import Console, Group, RenderableType
from rich.text import Text

from biassay.pages.formats import counted, decimals
from biassay.pages.lines import Block, Line
from biassay.pages.plain_tables import WIDTH, print_run
from biassay.pages.section import Statement
from biassay.pages.sentences import statements
from biassay.results.data import RunData
from biassay.results.labels import ModelKey, model_key, model_labels
from biassay.studies.associations.findings import findings_in_short
from biassay.studies.associations.forms import Cell, Form, FormName, forms_of
from biassay.studies.associations.lead import effect_of, lead_of_table
from biassay.studies.associations.marks import legend, mark_of, sides
from biassay.studies.associations.numbers import other_lead
from biassay.studies.associations.records import Result, explain_searched
from biassay.studies.associations.selection import by_topic, leading, left_out
from biassay.studies.associations.words import ABSENCE, headline, meaning, unfinished
from biassay.studies.associations.words_lost import assumptions, lost_lines, without_baseline

__all__ = ["print_associations"]

_ROOM, _LEAST = 46, 24  # columns of a title, for which numbers are left out
_NOTES = 3
_POINTS = 3  # models whose findings are told one by one
_ALONE: tuple[FormName, ...] = ("full", "numbers", "interval")
_SEVERAL: tuple[FormName, ...] = ("interval", "bar", "effect")


def print_associations(run: RunData, console: Console, *, everything: bool = False) -> None:
    """Print what leads, or everything: tests by topic, what their signs mean, and last the findings in words."""
    view = _View(run, everything=everything, plain=console.options.ascii_only)
    width, rows = min(WIDTH, console.width), run.results
    shown: list[RenderableType] = [Text(unfinished(run), style="yellow")] if unfinished(run) else []
    shown += [Group(*block.render(width, whole=everything)) for block in view.blocks(width)]
    shown += [Text(line, style="dim") for line in [left_out(rows, view.tests)] if line]
    by_word = everything or lead_of_table(rows) != "crossed"
    signs = [legend(rows, "; "), other_lead(rows), sides(rows) if by_word else ""]
    means = ["; ".join(filter(None, signs)), meaning(run) if everything else ABSENCE]
    notes = _notes(run) if everything else _some(_notes(run))
    print_run(console, headline(run), shown, _summary(run), notes, means)


def _summary(run: RunData) -> list[Statement]:
    """Of more than a few models each in a sentence or two."""
    found = statements(findings_in_short(run))
    return found if len(found) <= _POINTS else [Statement(one.text, (), one.about) for one in found]


def _notes(run: RunData) -> list[str]:
    """Why something was not measured, each reason once; what had to be assumed, and what is missing."""
    labels = model_labels(run)
    reasons: dict[tuple[str, str], list[str]] = {}
    for r in run.results:
        if r.reason:
            reasons.setdefault((labels[model_key(r)], f"{r.status}: {r.reason}"), []).append(r.test)
        if r.searched:
            reasons.setdefault((labels[model_key(r)], explain_searched(r.searched_correlation)), []).append(r.test)
    told = [f"{label}, {', '.join(tests)}: {reason}" for (label, reason), tests in reasons.items()]
    return [*told, *assumptions(run), *lost_lines(run), *without_baseline(run)]


def _some(notes: Sequence[str]) -> list[str]:
    more = len(notes) - _NOTES
    return [*notes[:_NOTES], *([f"{counted(more, 'more note')}: --all"] if more > 0 else ())]


@dataclass(frozen=True)
class _View:
    """The results of a run as lines; ``plain``: in ASCII."""

    run: RunData
    everything: bool
    plain: bool

    @cached_property
    def labels(self) -> Mapping[ModelKey, str]:
        return model_labels(self.run)

    @cached_property
    def cells(self) -> Mapping[tuple[str, ModelKey], Result]:
        return {(r.test, model_key(r)): r for r in self.run.results}

    @cached_property
    def tests(self) -> Sequence[str]:
        return list(dict.fromkeys(r.test for r in self.run.results)) if self.everything else leading(self.run.results)

    def blocks(self, width: int) -> Iterator[Block]:
        """Of one model all numbers; of several those for which there is room beside each other, or what they share."""
        forms, keys = forms_of(self.run.results, plain=self.plain), list(self.labels)
        if self.everything:
            yield from (self._beside([key], forms["all"]) for key in keys)
            return
        made = [self._beside(keys, forms[name]) for name in (_SEVERAL if len(keys) > 1 else _ALONE)]
        fitting = [one for one in made if one.room(width) >= _ROOM] or made[-1:]
        yield fitting[0] if len(keys) == 1 or fitting[0].room(width) >= _LEAST else self._over_models()

    def _beside(self, keys: Sequence[ModelKey], form: Form) -> Block:
        """Every model's cells side by side."""

        def cells(test: str) -> tuple[Cell, ...]:
            return tuple(cell for key in keys for cell in form.cells(self.cells.get((test, key))))

        each = len(form.heads)
        left = frozenset(place * each + one for place in range(len(keys)) for one in form.left)
        return Block(form.heads * len(keys), self._lines(cells), tuple(self.labels[key] for key in keys), left)

    def _over_models(self) -> Block:
        """On how many models a test is significant, and its effects there."""
        by_test: dict[str, list[Result]] = {}
        for r in self.run.results:
            by_test.setdefault(r.test, []).append(r)
        unit = " or ".join(dict.fromkeys(r.unit for r in self.run.results))
        heads = "significant on", "before correction only", f"median {unit}", "from", "to"
        return Block(heads, self._lines(lambda test: _over(by_test[test])))

    def _lines(self, cells: Callable[[str], tuple[Cell, ...]]) -> tuple[Line, ...]:
        lines: list[Line] = []
        for head, tests in by_topic([r for r in self.run.results if r.test in self.tests]):
            lines.append(Line(head))
            above: Result | None = None
            for test in tests:
                own = cells(test.test)
                if above is not None and test.variant_of == above.test and test.title.startswith(f"{above.title}, "):
                    lines.append(Line(test.title.removeprefix(f"{above.title}, "), test.test, own, indent=4))
                    continue
                lines.append(Line(test.title, test.test, own))
                above = test
        return tuple(lines)


def _over(results: Sequence[Result]) -> tuple[Cell, ...]:
    marks = [mark_of(r) for r in results]
    sizes = [size for r in results if (size := effect_of(r)) is not None and math.isfinite(size)]
    significant, leads = marks.count(2), marks.count(1)
    measured = sum(r.status == "measured" for r in results)
    style = "bold cyan" if significant else "cyan" if leads else "dim"
    ends = (statistics.median(sizes), min(sizes), max(sizes)) if sizes else (None, None, None)
    return tuple((text, style) for text in (f"{significant} of {measured}", f"{leads}", *map(decimals, ends)))
