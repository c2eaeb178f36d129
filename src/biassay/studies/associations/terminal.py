"""Association tests in a terminal."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from rich.console import Console, Group, RenderableType
from rich.text import Text

from biassay.reporting.document import Statement
from biassay.reporting.formats import format_count, format_decimal
from biassay.reporting.sentences import make_statements
from biassay.reporting.terminal import WIDTH, TerminalLine, TerminalTable, draw_bar, print_run
from biassay.results.outcomes import Result
from biassay.results.run_data import RunData
from biassay.results.views import ModelKey, model_key, model_labels
from biassay.studies.associations.diagnostics import list_assumptions, list_lost_words, list_without_baseline
from biassay.studies.associations.findings import (
    ABSENCE,
    by_topic,
    headline,
    leading,
    left_out,
    make_short_findings,
    meaning,
    unfinished,
)
from biassay.studies.associations.results import CROSSED, FIXED_WORDS
from biassay.studies.associations.signs import (
    FIXED_WORDS_P,
    choose_test,
    describe_sides,
    get_mark,
    get_sign,
    make_legend,
)
from biassay.studies.associations.tables import column_names, numbers_of, other_lead

__all__ = ["Cell", "Form", "FormName", "forms_of", "print_associations"]


Cell = tuple[str, str]
"""A text and its style."""
FormName = Literal["all", "full", "numbers", "interval", "bar", "effect"]
_STYLES = ("dim", "cyan", "bold cyan", "dim", "dim")  # by mark
_LARGEST_D = 2.0


@dataclass(frozen=True)
class Form:
    """What stands above the cells of a result, how they are made, and which stand to the left."""

    heads: tuple[str, ...]
    cells: Callable[[Result | None], tuple[Cell, ...]]
    left: frozenset[int]


def forms_of(results: Sequence[Result], *, plain: bool) -> Mapping[FormName, Form]:
    """The forms for a table of these results; ``plain``: in ASCII."""
    lead, names = choose_test(results), column_names(results)
    effect, *between, p = [name for name in names if name != FIXED_WORDS_P or lead == FIXED_WORDS]
    units = {r.scale for r in results}
    sizes = [abs(size) for r in results if (size := r.effect_size) is not None and math.isfinite(size)]
    most = _LARGEST_D if units == {"d"} else max(sizes, default=1.0)
    signs = max((len(get_sign(r)) for r in results), default=0)

    def signed(result: Result) -> str:
        return get_sign(result).ljust(signs)

    def drawn(result: Result) -> str:
        size = result.effect_size
        return "" if size is None or not math.isfinite(size) else draw_bar(size, most, plain=plain)

    columns: dict[str, Callable[[Result], str]] = {
        "bar": drawn,
        "effect": lambda r: "".join(numbers_of(r, lead)[0]),
        "between": lambda r: numbers_of(r, lead)[1][0],
        "p": lambda r: numbers_of(r, lead)[2 if between else 1][0] + signed(r),
        "signed": lambda r: "".join(numbers_of(r, lead)[0]) + signed(r),
        "by_word": lambda r: numbers_of(r, lead)[-1][0],
    }
    blank = " " * signs
    heads = {"bar": "", "effect": effect, "between": "".join(between), "by_word": FIXED_WORDS_P}
    heads |= {"p": f"{p}{blank}", "signed": f"{effect}{blank}"}
    kept = ["between"] if between else []
    last = ["by_word"] if FIXED_WORDS_P in names and between else []
    chosen: dict[FormName, list[str]] = {
        "all": ["effect", *kept, "p", *last],
        "full": ["bar", "effect", *kept, "p"],
        "numbers": ["effect", *kept, "p"],
        "interval": ["signed", *kept],
        "bar": ["bar", "signed"],
        "effect": ["signed"],
    }
    return {
        name: Form(
            tuple(heads[one] for one in own),
            _Cells(tuple(own), columns),
            frozenset(place for place, one in enumerate(own) if one == "bar"),
        )
        for name, own in chosen.items()
    }


@dataclass(frozen=True)
class _Cells:
    """The cells of a result; where nothing was measured, what became of it stands in place of the effect."""

    own: tuple[str, ...]
    columns: Mapping[str, Callable[[Result], str]]

    def __call__(self, result: Result | None) -> tuple[Cell, ...]:
        if result is None:
            return (("", ""),) * len(self.own)
        style = _STYLES[get_mark(result)]
        if result.effect_size is None:
            place = next(place for place, one in enumerate(self.own) if one != "bar") + ("between" in self.own)
            return tuple((result.status if place == at else "", style) for at in range(len(self.own)))
        return tuple((self.columns[one](result), style) for one in self.own)


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
    by_word = everything or choose_test(rows) != CROSSED
    signs = [make_legend(rows, "; "), other_lead(rows), describe_sides(rows) if by_word else ""]
    means = ["; ".join(filter(None, signs)), meaning(run) if everything else ABSENCE]
    notes = _notes(run) if everything else _some(_notes(run))
    print_run(console, headline(run), shown, _summary(run), notes, means)


def _summary(run: RunData) -> list[Statement]:
    """Of more than a few models each in a sentence or two."""
    found = make_statements(make_short_findings(run))
    return found if len(found) <= _POINTS else [Statement(one.text, (), one.about) for one in found]


def _notes(run: RunData) -> list[str]:
    """Why something was not measured, each reason once; what had to be assumed, and what is missing."""
    labels = model_labels(run)
    reasons: dict[tuple[str, str], list[str]] = {}
    for r in run.results:
        if r.reason:
            reasons.setdefault((labels[model_key(r)], f"{r.status}: {r.reason}"), []).append(r.test)
        if r.searched:
            reasons.setdefault((labels[model_key(r)], r.doubt), []).append(r.test)
    told = [f"{label}, {', '.join(tests)}: {reason}" for (label, reason), tests in reasons.items()]
    return [*told, *list_assumptions(run), *list_lost_words(run), *list_without_baseline(run)]


def _some(notes: Sequence[str]) -> list[str]:
    more = len(notes) - _NOTES
    return [*notes[:_NOTES], *([f"{format_count(more, 'more note')}: --all"] if more > 0 else ())]


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

    def blocks(self, width: int) -> Iterator[TerminalTable]:
        """Of one model all numbers; of several those for which there is room beside each other, or what they share."""
        forms, keys = forms_of(self.run.results, plain=self.plain), list(self.labels)
        if self.everything:
            yield from (self._beside([key], forms["all"]) for key in keys)
            return
        made = [self._beside(keys, forms[name]) for name in (_SEVERAL if len(keys) > 1 else _ALONE)]
        fitting = [one for one in made if one.room(width) >= _ROOM] or made[-1:]
        yield fitting[0] if len(keys) == 1 or fitting[0].room(width) >= _LEAST else self._over_models()

    def _beside(self, keys: Sequence[ModelKey], form: Form) -> TerminalTable:
        """Every model's cells side by side."""

        def cells(test: str) -> tuple[Cell, ...]:
            return tuple(cell for key in keys for cell in form.cells(self.cells.get((test, key))))

        each = len(form.heads)
        left = frozenset(place * each + one for place in range(len(keys)) for one in form.left)
        return TerminalTable(form.heads * len(keys), self._lines(cells), tuple(self.labels[key] for key in keys), left)

    def _over_models(self) -> TerminalTable:
        """On how many models a test is significant, and its effects there."""
        by_test: dict[str, list[Result]] = {}
        for r in self.run.results:
            by_test.setdefault(r.test, []).append(r)
        unit = " or ".join(dict.fromkeys(r.scale for r in self.run.results))
        heads = "significant on", "before correction only", f"median {unit}", "from", "to"
        return TerminalTable(heads, self._lines(lambda test: _over(by_test[test])))

    def _lines(self, cells: Callable[[str], tuple[Cell, ...]]) -> tuple[TerminalLine, ...]:
        lines: list[TerminalLine] = []
        for head, tests in by_topic([r for r in self.run.results if r.test in self.tests]):
            lines.append(TerminalLine(head))
            above: Result | None = None
            for test in tests:
                own = cells(test.test)
                if above is not None and test.question == above.test and test.title.startswith(f"{above.title}, "):
                    lines.append(TerminalLine(test.title.removeprefix(f"{above.title}, "), test.test, own, indent=4))
                    continue
                lines.append(TerminalLine(test.title, test.test, own))
                above = test
        return tuple(lines)


def _over(results: Sequence[Result]) -> tuple[Cell, ...]:
    marks = [get_mark(r) for r in results]
    sizes = [size for r in results if (size := r.effect_size) is not None and math.isfinite(size)]
    significant, leads = marks.count(2), marks.count(1)
    measured = sum(r.status == "measured" for r in results)
    style = "bold cyan" if significant else "cyan" if leads else "dim"
    ends = (statistics.median(sizes), min(sizes), max(sizes)) if sizes else (None, None, None)
    return tuple((text, style) for text in (f"{significant} of {measured}", f"{leads}", *map(format_decimal, ends)))
