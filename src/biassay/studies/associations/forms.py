"""Which numbers of a result stand in a line of the terminal, from all to the effect alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from biassay.pages.lines import bar
from biassay.studies.associations.lead import effect_of, lead_of_table
from biassay.studies.associations.marks import BY_WORD, mark_of, sign
from biassay.studies.associations.numbers import column_names, numbers_of
from biassay.studies.associations.records import Result

__all__ = ["Cell", "Form", "FormName", "forms_of"]

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
    lead, names = lead_of_table(results), column_names(results)
    effect, *between, p = [name for name in names if name != BY_WORD]
    units = {r.unit for r in results}
    sizes = [abs(size) for r in results if (size := effect_of(r)) is not None and math.isfinite(size)]
    most = _LARGEST_D if units == {"d"} else max(sizes, default=1.0)
    signs = max((len(sign(r)) for r in results), default=0)

    def signed(result: Result) -> str:
        return sign(result).ljust(signs)

    def drawn(result: Result) -> str:
        size = effect_of(result)
        return "" if size is None or not math.isfinite(size) else bar(size, most, plain=plain)

    columns: dict[str, Callable[[Result], str]] = {
        "bar": drawn,
        "effect": lambda r: "".join(numbers_of(r, lead)[0]),
        "between": lambda r: numbers_of(r, lead)[1][0],
        "p": lambda r: numbers_of(r, lead)[2 if between else 1][0] + signed(r),
        "signed": lambda r: "".join(numbers_of(r, lead)[0]) + signed(r),
        "by_word": lambda r: numbers_of(r, lead)[-1][0],
    }
    blank = " " * signs
    heads = {"bar": "", "effect": effect, "between": "".join(between), "by_word": BY_WORD}
    heads |= {"p": f"{p}{blank}", "signed": f"{effect}{blank}"}
    kept = ["between"] if between else []
    last = ["by_word"] if BY_WORD in names and between else []
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
        style = _STYLES[mark_of(result)]
        if result.effect_size is None:
            place = next(place for place, one in enumerate(self.own) if one != "bar") + ("between" in self.own)
            return tuple((result.status if place == at else "", style) for at in range(len(self.own)))
        return tuple((self.columns[one](result), style) for one in self.own)
