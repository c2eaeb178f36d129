"""Findings in the terminal: a line an item, its numbers beside it, as many as there is room for."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from biassay.pages.formats import PASSED, decimals, format_p, interval_text, percent, unit_name
from biassay.pages.lines import Block, Line, bar
from biassay.pages.overview import sureness
from biassay.results.findings import Finding, count

__all__ = ["FindingLines", "legend_of"]

_ROOM, _LEAST = 40, 24  # columns of a title, for which numbers are left out
_SIGNS = ("", "*", "**")
_TOO_FEW = "‡"
_STYLES = ("dim", "cyan", "bold cyan")
_Cell = tuple[str, str]


def _sign(finding: Finding) -> str:
    if finding.about == "method" and finding.opposite and finding.standing == "uncorrected":
        return ""
    return _TOO_FEW if finding.standing == "not_testable" else _SIGNS[sureness(finding)]


def legend_of(findings: Sequence[Finding], over: str) -> str:
    """What is told of, and what the signs mean; ``over`` is what is corrected for the number of."""
    alphas = sorted({1.0 - one.confidence for one in findings}) or [0.05]
    units = " or ".join(dict.fromkeys(unit_name(one.unit) for one in findings if one.effect is not None))
    said = [units] if units else []
    levels = " or ".join(f"{alpha:.4g}" for alpha in alphas)
    said.append(f"** significant: p at most {levels} after correction (Holm over {over})")
    passed = any(one.about == "method" and _sign(one) == "*" for one in findings)
    said.append(f"* p at most {levels} before correction only: a lead, not a finding{f'; {PASSED}' if passed else ''}")
    few = dict.fromkeys(one.few for one in findings if one.standing == "not_testable")
    return "; ".join([*said, *([f"{_TOO_FEW} too few {' or '.join(few)} to test"] if few else [])])


@dataclass(frozen=True)
class FindingLines:
    """Findings under headings.

    ``title`` is what the line of a finding begins with, and ``code`` stands behind it; ``more`` are further columns.
    """

    groups: Sequence[tuple[str, Sequence[Finding]]]
    models: Sequence[str]
    title: Callable[[Finding], str]
    code: Callable[[Finding], str] = lambda _: ""
    more: Mapping[str, Callable[[Finding], str]] = field(default_factory=dict)

    def block(self, width: int, *, plain: bool = False) -> Block:
        """Of one model all numbers; of several those for which there is room beside each other, or what they share."""
        forms = ("full", "numbers", "interval") if len(self.models) == 1 else ("interval", "effect")
        made = [self._beside(form, plain=plain) for form in forms]
        fitting = [one for one in made if one.room(width) >= _ROOM] or made[-1:]
        alone = len(self.models) == 1 or fitting[0].room(width) >= _LEAST
        return fitting[0] if alone else self._over_models()

    @property
    def _findings(self) -> list[Finding]:
        return [one for _, own in self.groups for one in own]

    @property
    def _unit(self) -> str:
        return " or ".join(dict.fromkeys(unit_name(one.unit) for one in self._findings))

    def _beside(self, form: str, *, plain: bool) -> Block:
        sizes = [abs(one.effect) for one in self._findings if one.effect is not None]
        most = max(sizes, default=0.0) or 1.0
        signs = max((len(_sign(one)) for one in self._findings), default=0)
        spans = " and ".join(dict.fromkeys(percent(one.confidence) for one in self._findings))
        head = self._unit.split(" of ")[0] if len(self.models) == 1 else ""
        columns: dict[str, tuple[str, Callable[[Finding], str]]] = {
            "bar": ("", lambda one: bar(one.effect or 0.0, most, plain=plain)),
            "effect": (head, lambda one: decimals(one.effect)),
            "signed": (head + " " * signs, lambda one: decimals(one.effect) + _sign(one).ljust(signs)),
            "interval": (spans, lambda one: _interval(one)),
            "p": (f"p{' ' * signs}", lambda one: _p(one) + _sign(one).ljust(signs)),
        }
        own = {
            "full": ["bar", "effect", "interval", "p"],
            "numbers": ["effect", "interval", "p"],
            "interval": ["signed", "interval"],
            "effect": ["signed"],
        }[form]
        shown = [columns[name] for name in own]
        shown += [(head, get) for head, get in self.more.items() if form in ("full", "numbers")]
        each = len(shown)
        left = frozenset(place * each for place in range(len(self.models)) if own[0] == "bar")
        return Block(
            tuple(head for head, _ in shown) * len(self.models),
            tuple(self._lines(lambda found: self._cells(found, [get for _, get in shown], own))),
            tuple(self.models),
            left,
        )

    def _cells(
        self, found: Mapping[str, Finding], gets: Sequence[Callable[[Finding], str]], own: Sequence[str]
    ) -> tuple[_Cell, ...]:
        cells: list[_Cell] = []
        for model in self.models:
            one = found.get(model)
            if one is None:
                cells += [("", "")] * len(gets)
            elif one.effect is None:
                place = own.index("interval") if "interval" in own else 0
                cells += [("skipped" if at == place else "", "dim") for at in range(len(gets))]
            else:
                cells += [(get(one), _STYLES[sureness(one)]) for get in gets]
        return tuple(cells)

    def _over_models(self) -> Block:
        """On how many models an item is significant, and its effects there."""
        heads = "significant on", "before correction only", f"median {self._unit}", "from", "to"
        return Block(heads, tuple(self._lines(lambda found: _over(list(found.values())))))

    def _lines(self, cells: Callable[[Mapping[str, Finding]], tuple[_Cell, ...]]) -> Iterator[Line]:
        for heading, own in self.groups:
            yield Line(heading)
            items: dict[str, dict[str, Finding]] = {}
            for one in own:
                items.setdefault(one.item, {})[one.model] = one
            for same in items.values():
                first = next(iter(same.values()))
                yield Line(self.title(first), self.code(first), cells(same))


def _interval(finding: Finding) -> str:
    return "no interval" if finding.low is None else interval_text(finding.low, finding.high, finding.limit)


def _p(finding: Finding) -> str:
    return format_p(next(iter(finding.p_values.values()), None))


def _over(findings: Sequence[Finding]) -> tuple[_Cell, ...]:
    sizes = [one.effect for one in findings if one.effect is not None]
    significant, leads = count(findings, "significant"), count(findings, "uncorrected")
    style = _STYLES[2 if significant else 1 if leads else 0]
    ends = (statistics.median(sizes), min(sizes), max(sizes)) if sizes else (None, None, None)
    return tuple((text, style) for text in (f"{significant} of {len(sizes)}", f"{leads}", *map(decimals, ends)))
