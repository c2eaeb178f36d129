"""The papers' tables from a run, in no notation yet: May et al. 2019, Table 4; Guo and Caliskan 2021, Table 1."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from biassay.errors import UsageError
from biassay.pages.formats import decimals, format_p
from biassay.pages.publish.layout import Cell, Group, Row, Span, Table, clean, shade_of
from biassay.results.data import RunData
from biassay.results.labels import model_key, model_labels
from biassay.results.tables import cells, tsv_lines
from biassay.studies.associations.columns import PAPER_COLUMNS
from biassay.studies.associations.lead import cannot_reach
from biassay.studies.associations.marks import By, p_text, sign
from biassay.studies.associations.records import Result
from biassay.studies.associations.words import ABSENCE

__all__ = ["associations_table", "contexts_table", "nine_columns"]

Key = tuple[str, str, str | None]
_CONTEXTS = {
    "word": "word",
    "sent": "sent (bleached sentences)",
    "sent (u)": "sent (u) (unbleached sentences, which say more)",
    "sentences": "sentences",
    "context": "context",
}
_OF_TEMPLATES = {"bleached": "sent", "unbleached": "sent (u)"}
_LONG = 48  # characters of a model's name, beyond which it stands below the table
_SIDES = {"greater": "one-sided", "two-sided": "two-sided"}


def associations_table(run: RunData, by: By = "word") -> Table:
    """Effect sizes with stars: tests down, models across; a test in words stands beside the same in sentences.

    ``by`` says what counts as an observation, for the effect size and for the stars. A run over contexts is refused,
    for its effect is another one.
    """
    if by not in ("word", "text"):
        raise UsageError(f"by must be 'word' or 'text', got {by!r}")
    if run.manifest.inputs.contexts is not None:
        raise UsageError("this run is over contexts; use contexts_table")
    labels = model_labels(run)
    cells = _by_place(run)
    groups: dict[str, dict[str, Result]] = {}
    titles = {result.test: result.title for result in run.results}
    for result in run.results:
        # Unbleached sentences ask more than their words do, and keep a title of their own.
        same = result.test if result.template == "unbleached" else result.variant_of or result.test
        groups.setdefault(titles.get(same, result.title), {}).setdefault(result.test, result)
    return Table(
        caption=_associations_caption(run, by),
        stub=("Test", "Context"),
        models=_spans(run, labels, ("",)),
        groups=tuple(
            Group(
                clean(title),
                tuple(
                    Row((clean(test), _context(any_)), tuple(_effect(cells.get((test, key)), by) for key in labels))
                    for test, any_ in sorted(tests.items(), key=lambda item: list(_CONTEXTS).index(_context(item[1])))
                ),
            )
            for title, tests in groups.items()
        ),
        signs=(*_dagger(run, by), *_too_few(run), *_blanks(run, labels)),
    )


def contexts_table(run: RunData) -> Table:
    """Pooled effect sizes over contexts, shaded by size, with the paper's p-value and the one by word."""
    if run.manifest.inputs.contexts is None:
        raise UsageError("this run is not over contexts; use associations_table")
    labels = model_labels(run)
    cells = _by_place(run)
    rows = tuple(
        Row(
            (clean(f"{test}: {title}"),),
            tuple(cell for key in labels for cell in _over_contexts(cells.get((test, key)))),
        )
        for test, title in {result.test: result.title for result in run.results}.items()
        if any(r.effect_size is not None for (of, _), r in cells.items() if of == test)
    )
    return Table(
        caption=_contexts_caption(run),
        stub=("Test",),
        models=_spans(run, labels, ("d", "p", "p by word")),
        groups=(Group("", rows),) if rows else (),
        signs=(*_too_few(run), *_blanks(run, labels)),
    )


def _family(run: RunData, by: By) -> int:
    """Over how many p-values Holm's correction was made."""
    values = (result.p_value_by_word if by == "word" else result.p_value for result in run.results)
    return sum(value is not None and not math.isnan(value) for value in values)


def _by_place(run: RunData) -> dict[tuple[str, Key], Result]:
    return {(result.test, model_key(result)): result for result in run.results}


def _spans(run: RunData, labels: Mapping[Key, str], columns: tuple[str, ...]) -> tuple[Span, ...]:
    """The models, each with its name in full where it is too long for a column, and with what was not measured."""
    unmeasured: dict[Key, list[str]] = {}
    for result in run.results:
        if result.effect_size is None:
            unmeasured.setdefault(model_key(result), []).append(result.test)
    spans = []
    for place, (key, label) in enumerate(labels.items(), start=1):
        name = clean(label)
        title = name if len(name) <= _LONG else f"Model {place}"
        notes = [] if title == name else [f"{title}: {name}."]
        if key in unmeasured:
            notes.append(clean(f"– not measured on {title}: {', '.join(unmeasured[key])}."))
        spans.append(Span(title, columns, tuple(notes)))
    return tuple(spans)


def _context(result: Result) -> str:
    """The paper's three kinds; of other sentences no more is known than that they are some."""
    if result.level != "sentence":
        return result.level
    return _OF_TEMPLATES.get(result.template or "", "sentences")


def _effect(result: Result | None, by: By) -> Cell:
    if result is None:
        return Cell("")
    if result.effect_size is None:
        return Cell("–")
    if by == "text":
        return Cell(decimals(result.effect_size), sign(result, by) + ("‡" if cannot_reach(result) else ""))
    if result.effect_size_by_word is None:
        return Cell(decimals(result.effect_size), "†")
    return Cell(decimals(result.effect_size_by_word), sign(result, by))


def _over_contexts(result: Result | None) -> tuple[Cell, Cell, Cell]:
    if result is None:
        return Cell(""), Cell(""), Cell("")
    return (
        Cell(decimals(result.effect_size), shade=shade_of(result.effect_size)),
        Cell(p_text(result)),
        Cell(format_p(result.p_value_by_word, result.log10_p_value_by_word), sign(result, "word")),
    )


def _associations_caption(run: RunData, by: By) -> str:
    made = run.manifest.settings
    sides = _SIDES.get(made.alternative, made.alternative)
    if by == "word":
        what = "Effect sizes of association tests, with words as observations: the texts of a word are averaged."
        how = f"These p-values are {exact} and {sides}." if (exact := _exactness(run)) else ""
    else:
        what = "Effect sizes of association tests, with every text as an observation."
        how = f"Protocol {made.protocol}, {sides}; it takes texts of one word to be independent, which they are not."
    shown = set(map(_context, run.results))
    contexts = f"Context: {', '.join(said for name, said in _CONTEXTS.items() if name in shown)}." if shown else ""
    return _sentences(what, contexts, _stars_legend(run, by), how, _unfinished(run), ABSENCE)


def _contexts_caption(run: RunData) -> str:
    over = run.manifest.settings
    drawn = "the same draws for all models" if over.mode == "fixed" else "each model with draws of its own"
    what = f"Effects over contexts (CEAT), pooled over {over.n_samples:,} samples of contexts, {drawn}."
    d = "d: pooled effect size, rounded to the nearest (the paper rounds down)."
    p = (
        "p: of the random-effects model over samples, two-sided. p by word: of a random split of the same target words"
        f"{f', {exact}' if (exact := _exactness(run)) else ''}."
    )
    return _sentences(what, d, p, _stars_legend(run, "word"), _unfinished(run), ABSENCE)


def _exactness(run: RunData) -> str:
    """How exact the p-values by word are, as their records say; nothing where there are none."""
    errors = [r.p_error_by_word or 0.0 for r in run.results if r.p_value_by_word is not None]
    if not errors:
        return ""
    return f"within a relative error of {format_p(max(errors))}" if any(errors) else "exact"


def _stars_legend(run: RunData, by: By) -> str:
    if not _family(run, by):
        return ""
    return (
        f"* p by {by} at most {run.manifest.settings.level:g}; ** also after Holm's correction over all "
        f"{_family(run, by)} p-values by {by} of the run."
    )


def _unfinished(run: RunData) -> str:
    return "" if run.manifest.status == "complete" else "The run is not finished."


def _sentences(*sentences: str) -> str:
    return clean(" ".join(sentence for sentence in sentences if sentence))


def _dagger(run: RunData, by: By) -> Iterable[str]:
    if by == "word" and any(r.effect_size is not None and r.effect_size_by_word is None for r in run.results):
        yield "† no numbers by word: the effect by text is shown, without stars."


def _too_few(run: RunData) -> Iterable[str]:
    if any(map(cannot_reach, run.results)):
        yield f"‡ too few words: no split of them could bring p by word down to {run.manifest.settings.level:g}."


def _blanks(run: RunData, labels: Mapping[Key, str]) -> Iterable[str]:
    if len(_by_place(run)) < len(labels) * len({result.test for result in run.results}):
        yield "A blank cell: this test is not among the results of this model."


def nine_columns(run: RunData) -> str:
    """results.tsv with the papers' nine columns. An empty cell was not computed."""
    return tsv_lines([[column.name for column in PAPER_COLUMNS], *cells(PAPER_COLUMNS, run.results)])
