"""The part of a page about association tests, over texts or over contexts."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from biassay.pages.charts.distribution import P_NAMES, distribution
from biassay.pages.charts.drawing import Drawing, Figure
from biassay.pages.charts.forest import ForestRow, forest
from biassay.pages.charts.style import Style
from biassay.pages.formats import MANY_MODELS, counted, decimals, shortened
from biassay.pages.overview import overview
from biassay.pages.section import Part, Renderer, Section
from biassay.pages.sentences import statements
from biassay.results.data import is_of
from biassay.studies.associations.findings import findings_in_short
from biassay.studies.associations.lead import effect_of, interval_of
from biassay.studies.associations.marks import BY_WORD, UNREACHABLE, mark_of, p_by_text, p_by_word
from biassay.studies.associations.page_columns import p_columns
from biassay.studies.associations.page_data import data_of, only_these_words, shown_groups, shows_words
from biassay.studies.associations.records import Result
from biassay.studies.associations.samples import samples_of
from biassay.studies.associations.selection import topic_place
from biassay.studies.associations.view import EFFECTS, RunView, is_check, random_share
from biassay.studies.associations.words import headline, meaning, unfinished
from biassay.studies.associations.words_contexts import contexts_found
from biassay.studies.associations.words_lost import assumptions, without_baseline

__all__ = ["distribution_figures", "figure_name", "forest_figures", "part_of"]

_CAPTION = (
    "Right of zero: the first named go with the first. “Male or female names, career or family” at +1.7 reads: male "
    "names go with career, female names with family."
)
_MOST_LINES = 200
_NAME, _CODE = 66, 20  # characters of a test in a figure, and of its code name
_MOST_DISTRIBUTIONS = 150
_MOST_ROWS = 16  # of words, that room is kept for


def part_of(view: RunView, renderer: Renderer) -> Part:
    """Everything about the runs of a view."""
    renderer.environment.globals.update(
        decimals=decimals, effect_of=effect_of, p_by_text=p_by_text, p_by_word=p_by_word, random_share=random_share
    )
    sections = [one(view, renderer) for one in (_CONTEXTS if view.over_contexts else _TEXTS)]
    findings = findings_in_short(view.run)
    models = ", ".join(view.models) if len(view.models) <= MANY_MODELS else counted(len(view.models), "model")
    return Part(
        anchor=renderer.anchor,
        title=f"{'Associations over contexts in' if view.over_contexts else 'Associations in'} {models or 'no model'}",
        headline=headline(view.run),
        summary=statements(findings),
        meaning=meaning(view.run),
        sections=[section for section in sections if section is not None],
        notes=_notes(view),
        figure=overview(sorted(findings, key=lambda one: topic_place(one.topic)), _CAPTION),
        terms=_terms(view),
        data=data_of(view),
    )


def _notes(view: RunView) -> list[str]:
    """What must be known before anything is read: runs that are not finished, or not alike."""
    notes = [note for name, run in view.gathered.parts.items() if (note := unfinished(run, name))]
    if view.gathered.differences:
        notes.append("These runs are not alike: " + "; ".join(view.gathered.differences) + ".")
    return notes


def _terms(view: RunView) -> dict[str, str]:
    """The words and signs of the sentences."""
    crossed = {
        f"{view.confidence} interval": "Encloses, with this confidence, the d that other words of the same kinds would "
        "give, targets and attributes. It leaves out zero where p is small.",
        "p": "Would other words of the same kinds, targets and attributes, show it too? The smaller p, the less likely "
        "it comes from the choice of words alone.",
        BY_WORD: "Would another split of the same target words do as well with these attribute words? It says nothing "
        "about other attribute words.",
        "random word sets": "How often words drawn at random, in place of the attributes, give a d as large.",
    }
    return {
        "d": "How much more the first targets go with the first attributes than the second targets do, in standard "
        "deviations over the target words. 0 is none, 2 about the most there can be.",
        **(crossed if view.lead == "crossed" else {}),
        "* and **": view.signs,
    }


def _all_tests(view: RunView, renderer: Renderer) -> Section | None:
    """Every test beside every model; sanity checks at the end."""
    if len(view.models) > MANY_MODELS:
        return None
    parts = [[t for t in view.tests if not is_check(t)], [t for t in view.tests if is_check(t)]]
    return renderer.section(
        "all_tests",
        "All tests",
        view=view,
        parts=parts,
        effect=EFFECTS[view.lead],
        columns=p_columns(view),
    )


def _matrix(view: RunView, renderer: Renderer) -> Section | None:
    """Which tests are significant on which models; the script fills it in."""
    if len(view.models) <= MANY_MODELS:
        return None
    longest = max(len(test.test) for test in view.tests)
    return renderer.section("matrix", "Significance at a glance", longest=longest, shown=min(len(view.models), 50))


def _by_test(view: RunView, renderer: Renderer) -> Section | None:
    """Every test over all models."""
    if len(view.models) < 4:
        return None
    by_test: dict[str, list[Result]] = {}
    for result in view.run.results:
        by_test.setdefault(result.test, []).append(result)
    rows = [_over_models(test, by_test[test.test]) for test in view.tests]
    return renderer.section("by_test", "Every test over all models", rows=rows, view=view)


def _over_models(test: Result, results: Sequence[Result]) -> dict[str, Any]:
    codes = [mark_of(r) for r in results]
    sizes = [size for r in results if (size := effect_of(r)) is not None and math.isfinite(size)]
    return {
        "test": test,
        "measured": sum(r.status == "measured" for r in results),
        "significant": codes.count(2),
        "uncorrected": codes.count(1),
        "unreachable": codes.count(UNREACHABLE),
        "sizes": f"{min(sizes):.2f}, {statistics.median(sizes):.2f}, {max(sizes):.2f}" if sizes else "–",
    }


def forest_figures(view: RunView) -> list[tuple[str, Drawing]]:
    """One a model that has results."""
    made: list[tuple[str, Drawing]] = []
    axis = EFFECTS[view.lead] if view.lead == "text" else f"{EFFECTS[view.lead]}, {view.confidence} over words"
    for place, label in enumerate(view.models):
        rows = [row for r in view.of_model(label) if (row := _forest_row(view, r)) is not None]
        if rows:
            name = f"forest-{view.name}-{place + 1}"
            made.append((label, partial(_drawn_forest, name, label, rows, axis)))
    return made


def _drawn_forest(name: str, label: str, rows: Sequence[ForestRow], axis: str, style: Style) -> Figure:
    return forest(name, label, rows, style, axis=axis)


def _forest_row(view: RunView, result: Result) -> ForestRow | None:
    effect = effect_of(result)
    if effect is None:
        return None
    low, high = interval_of(result) or (None, None)
    code = mark_of(result)
    return ForestRow(figure_name(result), effect, low, high, code if code <= 2 else 0, view.tip(result))


def figure_name(result: Result) -> str:
    """A test in a figure: in words, and its code name in brackets; either is cut where it is long."""
    code = shortened(result.test, _CODE, middle=True)
    return f"{shortened(result.title, _NAME - len(code))} ({code}{', check' if is_check(result) else ''})"


def _only_these(view: RunView, renderer: Renderer) -> Section | None:
    """What holds for these words and not for the concepts."""
    rows = [r for r in view.results if only_these_words(r)]
    if not rows:
        return None
    return renderer.section(
        "only_these", "For these words, not for the concepts", view=view, rows=rows[:_MOST_LINES], total=len(rows)
    )


def _words(view: RunView, renderer: Renderer) -> Section | None:
    """What single words add; the script shows one test on one model at a time."""
    if not shows_words(view):
        return None
    first = next(r for r in view.results if r.associations)
    rows = min(_MOST_ROWS, max(map(len, first.associations.values())))
    return renderer.section("words", "Which words an effect comes from", rows=rows)


def _numbers(view: RunView, renderer: Renderer) -> Section:
    columns = [column for group in shown_groups(view).values() for column in group]
    return renderer.section("numbers", "All numbers", columns=columns, rows=min(25, len(view.run.results)))


def _lost(view: RunView, renderer: Renderer) -> Section | None:
    lossy = [r for r in view.run.results if any(r.lost.values())]
    if not lossy:
        return None
    return renderer.section(
        "lost", "Words a model does not know", view=view, rows=lossy[:_MOST_LINES], total=len(lossy)
    )


def _refused(view: RunView, renderer: Renderer) -> Section | None:
    refused = [r for r in view.run.results if r.reason]
    if not refused:
        return None
    return renderer.section("refused", "Not measured", view=view, rows=refused[:_MOST_LINES], total=len(refused))


def _distributions(view: RunView, renderer: Renderer) -> Section | None:
    made = list(distribution_figures(view))
    if not made:
        return None
    shown = sorted(made, key=lambda one: -abs(one[1].effect_size or 0.0))[:_MOST_DISTRIBUTIONS]
    kept = [one for one in made if one in shown]
    drawn = renderer.figures([make for _, _, make in kept])
    models: dict[str, list[tuple[Result, Any]]] = {}
    for (label, result, _), svg in zip(kept, drawn, strict=False):
        models.setdefault(label, []).append((result, svg))
    return renderer.section(
        "distributions",
        "How the effect varies over contexts",
        view=view,
        models=models,
        drawn=len(kept),
        p_names=P_NAMES,
        left_out=len(made) - len(kept),
    )


def distribution_figures(view: RunView) -> Iterable[tuple[str, Result, Drawing]]:
    """One a test and model whose samples were kept."""
    for place, record in enumerate(view.run.manifest.models):
        for result in view.run.results:
            samples = samples_of(view.run, place, result.test)
            if samples is not None and result.effect_size is not None and is_of(result, record):
                name = f"distribution-{place + 1}-{result.test}"
                yield (
                    view.label(result),
                    result,
                    partial(_drawn_distribution, name, result.test, samples, result.effect_size),
                )


def _drawn_distribution(name: str, title: str, samples: Any, pooled: float, style: Style) -> Figure:
    return distribution(name, title, samples, pooled, style, legend=style.background is not None)


def _contexts_found(view: RunView, renderer: Renderer) -> Section:
    rows = contexts_found(view.run, view.labels)
    return renderer.section(
        "contexts_found", "Contexts found", rows=rows[: _MOST_LINES * 5], left_out=max(0, len(rows) - _MOST_LINES * 5)
    )


def _made(view: RunView, renderer: Renderer) -> Section:
    assumed = {name: [*assumptions(run), *without_baseline(run)] for name, run in view.gathered.parts.items()}
    return renderer.section("made", "How it was made", view=view, parts=view.gathered.parts, assumed=assumed)


_TEXTS = (_all_tests, _only_these, _matrix, _by_test, _words, _numbers, _lost, _refused, _made)
_CONTEXTS = (
    *(_all_tests, _only_these, _matrix, _by_test, _words, _numbers),
    *(_distributions, _contexts_found, _refused, _made),
)
