"""Models compared by effects that are paired: verdicts and differences on a page, in the terminal and in a paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup
from rich.console import Console, RenderableType
from rich.text import Text

from biassay.pages.comparing import lay_out_comparison, print_differences
from biassay.pages.effects import Effect, EffectRow, EffectRows, draw_effects
from biassay.pages.formats import MANY_MODELS, counted, decimals, format_p, interval_text, unit_name
from biassay.pages.gate import by_urgency, gate_meaning, gate_statements, verdict_columns
from biassay.pages.lines import Block, Line
from biassay.pages.overview import CHECKS
from biassay.pages.plain_tables import WIDTH, section_of, side_by_side
from biassay.pages.publish.layout import Table
from biassay.pages.publish.methods import Sentence
from biassay.pages.section import Part, Renderer, Statement
from biassay.results.comparison import CONFIDENCE, Comparison
from biassay.results.differences import EffectDifference
from biassay.results.tables import Column
from biassay.results.verdicts import OUTCOMES, Outcome, outcome_name

__all__ = ["DIFFERENCES", "differences_part", "methods_of_differences", "paper_differences", "print_paired"]

DIFFERENCES = "differences"
_SURE = ("interval holds 0", "leaves out 0", "also after correction")
_STYLES: dict[Outcome, str] = {"worse": "bold red", "missing": "bold red", "better": "green", "no_worse": "green"}
_STARS = ("", "*", "**")
_NAMED = 8
_MEANING = (
    "A difference is the effect on the new model less that on the first, over what both were asked. A difference that "
    "is not shown does not show that two models are equal."
)


def _rows(found: Comparison) -> Sequence[EffectDifference]:
    return found.tables[DIFFERENCES]


def _sure(row: EffectDifference) -> int:
    if row.p_value is None or row.p_value > 1.0 - CONFIDENCE:
        return 0
    return 2 if row.p_value_holm is not None and row.p_value_holm <= 1.0 - CONFIDENCE else 1


def _columns(found: Comparison) -> list[Column]:
    unit = unit_name(_rows(found)[0].unit)
    several = len(found.models) > 1
    return [
        Column("title", "about", "What is asked."),
        *[Column("model", "model", "The model that is compared.")] * several,
        Column("effect_baseline", "first", f"The {unit} on {found.baseline}.", "number"),
        Column("effect_model", "new", f"The {unit} on the model.", "number"),
        Column("difference", "difference", "The second less the first.", "number"),
        Column("interval_low", "95%", "Paired.", "interval", lambda row: (row.interval_low, row.interval_high)),
        Column("p_value", "p", "That there is no difference; two-sided.", "p"),
        Column("p_value_holm", "p, Holm", "After Holm's correction over the items about people of a model.", "p"),
        Column("over", "over", "Of what other ones of the same kind the interval holds."),
        Column("reason", "note", "Why a number is missing."),
    ]


def difference_statements(found: Comparison) -> list[Statement]:
    """What differs, in plain words."""
    return [_about(found, model) for model in found.models]


def _about(found: Comparison, model: str) -> Statement:
    rows = [row for row in _rows(found) if row.model == model]
    tested = [row for row in rows if row.p_value is not None]
    apart = sorted((row for row in tested if _sure(row)), key=lambda row: -abs(row.difference or 0.0))
    text = f"{model}: of {counted(len(tested), 'difference')} from {found.baseline}, {len(apart)} with p at most 0.05, "
    text += f"{sum(_sure(row) == 2 for row in apart)} after correction."
    lost = len(rows) - len(tested)
    text += f" {lost} without a p-value." if lost else ""
    points = [f"{row.title}: {_numbers_text(row)}" for row in apart[:_NAMED]]
    more = [f"and {len(apart) - _NAMED} more"] if len(apart) > _NAMED else []
    return Statement(text, (*points, *more), model)


def _numbers_text(row: EffectDifference) -> str:
    effects = f"{decimals(row.effect_baseline)} on {row.baseline}, {decimals(row.effect_model)} on {row.model}"
    interval = interval_text(row.interval_low, row.interval_high)
    return f"{effects}; difference {decimals(row.difference)} (95% {interval}), p = {format_p(row.p_value)}"


def differences_part(found: Comparison, renderer: Renderer) -> Part:
    """Verdicts, and signed differences with a figure."""
    signed = section_of(DIFFERENCES, "Signed differences", _columns(found), _rows(found), renderer)
    figure = _figure(found)
    if not found.verdicts:
        return lay_out_comparison(found, difference_statements(found), [signed], _MEANING, figure)
    verdicts = section_of("verdicts", "Verdicts", verdict_columns(found.verdicts), by_urgency(found.verdicts), renderer)
    said = [*gate_statements(found.verdicts), *difference_statements(found)]
    return lay_out_comparison(found, said, [verdicts, signed], f"{gate_meaning(found.verdicts)} {_MEANING}", figure)


def _figure(found: Comparison) -> Markup | None:
    """Differences of all models from the first, people first."""
    models, rows = found.models, [row for row in _rows(found) if row.difference is not None]
    if not rows or len(models) > MANY_MODELS:
        return None
    groups = []
    for title, about in (("About people", "people"), (CHECKS, "method")):
        own = [row for row in rows if row.about == about]
        items: dict[str, list[EffectDifference]] = {}
        for row in own:
            items.setdefault(row.item, []).append(row)
        drawn = tuple(
            EffectRow(same[0].title, "", tuple(_effect(row, models) for row in same)) for same in items.values()
        )
        if drawn:
            groups.append(EffectRows(title, drawn, about == "method", counted(len(own), "difference")))
    unit = unit_name(rows[0].unit)
    reach = max(
        abs(end) for row in rows for end in (row.difference, row.interval_low, row.interval_high) if end is not None
    )
    return draw_effects(
        groups,
        models,
        title=f"Differences of the {unit} from {found.baseline}, with 95% intervals.",
        caption="Right of zero: larger on the new model.",
        sure=_SURE,
        reach=reach or 1.0,
    )


def _effect(row: EffectDifference, models: Sequence[str]) -> Effect:
    sure = _sure(row)
    number = f"{decimals(row.difference)} {_STARS[sure]}".rstrip()
    text = f"{row.model}: {_numbers_text(row)}" + (f"; {row.reason}" if row.reason else "")
    place = models.index(row.model)
    return Effect(place, row.difference or 0.0, row.interval_low, row.interval_high, sure, text, number)


def print_paired(found: Comparison, console: Console) -> None:
    """A line an item, by verdict; then what differs."""
    width = min(WIDTH, console.width)
    before: list[RenderableType] = []
    for model in found.models:
        rows = {row.item: row for row in _rows(found) if row.model == model}
        lines = tuple(_lines(found, model, rows))
        before += Block(("old", "new", "difference", "95%", "p"), lines, spans=(model,)).render(width)
    before += [Text(f"{unit_name(_rows(found)[0].unit)}; * p at most 0.05; ** also after correction", style="dim")]
    print_differences(found, console, difference_statements(found), before)


def _lines(found: Comparison, model: str, rows: dict[str, EffectDifference]) -> Iterator[Line]:
    judged = [verdict for verdict in found.verdicts if verdict.model == model]
    for outcome in OUTCOMES:
        own = [verdict for verdict in by_urgency(judged) if verdict.outcome == outcome]
        if own:
            yield Line(f"{outcome_name(outcome).capitalize()} ({len(own)} of {len(judged)})")
        for verdict in own:
            if verdict.test in rows:
                yield _line(rows[verdict.test], _STYLES.get(outcome, ""))
    others = [row for row in rows.values() if row.item not in {verdict.test for verdict in judged}]
    if others:
        yield Line(CHECKS if judged else "Differences")
        yield from (_line(row, "") for row in others)


def _line(row: EffectDifference, style: str) -> Line:
    interval = "no interval" if row.interval_low is None else interval_text(row.interval_low, row.interval_high)
    p = "" if row.p_value is None else format_p(row.p_value) + _STARS[_sure(row)]
    texts = decimals(row.effect_baseline), decimals(row.effect_model), decimals(row.difference), interval, p
    return Line(row.title, "", tuple((text, style) for text in texts))


def paper_differences(found: Comparison) -> Table:
    """Items down, models across: the difference from the first model, with its interval."""
    cells = {
        (row.title, row.model): "–"
        if row.difference is None
        else f"{decimals(row.difference)} [{interval_text(row.interval_low, row.interval_high)}]{_STARS[_sure(row)]}"
        for row in _rows(found)
    }
    unit = unit_name(_rows(found)[0].unit)
    caption = f"Differences of the {unit} from {found.baseline}, with 95% intervals; * p at most 0.05, ** also after "
    return side_by_side(f"{caption}Holm's correction. {_MEANING}", "Item", cells)


def methods_of_differences(found: Comparison, how: str, works: tuple[str, ...]) -> Iterator[Sentence]:
    """How models were compared; ``how`` says what is paired."""
    models = f"{', '.join(found.models)} {'was' if len(found.models) == 1 else 'were'}"
    sure = "with 95% intervals and two-sided p-values of the differences"
    yield Sentence(f"{models} compared with {found.baseline} {how}, {sure}", works)
    yield Sentence("p-values of differences were corrected by Holm's method over the items of a model", ("holm1979",))
