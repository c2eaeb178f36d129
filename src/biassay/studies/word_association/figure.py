"""Word association tests drawn: tests at a glance, every word of a test, and what was answered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from biassay.pages.formats import MANY_MODELS, concept, decimals, interval_text
from biassay.pages.panels import Bar, Panel, Panels, draw_panels
from biassay.results.data import RunData
from biassay.results.labels import ModelKey, model_key, model_labels
from biassay.studies.word_association.records import Result, WordResult
from biassay.studies.word_association.shown import KINDS, counts_of

__all__ = ["replies_figure", "words_figure"]

_MIDDLES = {"share": 0.5, "log-odds": 0.0}
_NUMBERS = {"share": "share of answers", "log-odds": "log-odds"}
_CAPTION = (
    "To the right: given to the stigmatised group; to the left: to the default one. A model without stereotype treats "
    "both kinds of words alike."
)


def words_figure(run: RunData) -> Markup | None:
    """The words of every test by what is given to the stigmatised group, negative and positive ones apart."""
    labels = dict(list(model_labels(run).items())[:MANY_MODELS])
    words: dict[tuple[ModelKey, str], list[WordResult]] = {}
    for one in run.tables.get("words", ()):
        words.setdefault((model_key(one), one.test), []).append(one)
    drawn = []
    for unit, number in _NUMBERS.items():
        rows = [row for row in run.results if row.unit == unit and row.difference is not None]
        groups = list(_tests(rows, words, list(labels)))
        if groups:
            title = f"Words by {number} given to the stigmatised group."
            drawn.append(
                draw_panels(groups, list(labels.values()), title=title, caption=_CAPTION, middle=_MIDDLES[unit])
            )
    return Markup("\n").join(drawn) if drawn else None


def _tests(
    rows: Sequence[Result], words: dict[tuple[ModelKey, str], list[WordResult]], models: list[ModelKey]
) -> Iterator[Panels]:
    for test in dict.fromkeys(row.test for row in rows):
        own = [row for row in rows if row.test == test and model_key(row) in models]
        panels = tuple(
            _panel(row, pole, words.get((model_key(row), test), ()), models.index(model_key(row)))
            for row in own
            for pole in ("negative", "positive")
        )
        told = "; ".join(f"{decimals(row.difference)} ({interval_text(row.low, row.high)})" for row in own)
        if panels:
            yield Panels(own[0].title, panels, f"{test}; difference {told}".replace("(–)", "(no interval)"))


def _panel(row: Result, pole: str, words: Sequence[WordResult], model: int) -> Panel:
    own = [one for one in words if one.pole == pole]
    known = sorted((one for one in own if one.value is not None), key=lambda one: -(one.value or 0.0))
    missing = [one.word for one in own if one.value is None]
    mean = sum(one.value or 0.0 for one in known) / len(known) if known else None
    said = f"{concept(row.default)} ← → {concept(row.stigmatised)}; mean {decimals(mean)}"
    said += f"; not read: {', '.join(missing)}" if missing else ""
    name = concept(row.negative if pole == "negative" else row.positive)
    return Panel(name[0].upper() + name[1:], model, tuple(_bar(row, one) for one in known), said)


def _bar(row: Result, word: WordResult) -> Bar:
    value = word.value or 0.0
    text = f"{word.word} ({word.pole}): {decimals(value)} to {concept(row.stigmatised)}"
    against = f", {decimals(1.0 - value)} to " if row.unit == "share" else ", log-odds against "
    return Bar(word.word, value, decimals(value), f"{text}{against}{concept(row.default)}")


def replies_figure(run: RunData) -> Markup | None:
    """Replies by kind, a panel a model; None where no reply was to be read."""
    models, panels = list(model_labels(run).items())[:MANY_MODELS], []
    for place, (key, label) in enumerate(models):
        for form, counts in counts_of(run, key).items():
            total = sum(counts.values())
            bars = tuple(
                Bar(kind, number / total, f"{number:,}", f"{label}: {number:,} of {total:,} {KINDS[kind]}")
                for kind, number in counts.items()
            )
            title = "Decisions" if form == "decision" else "Replies"
            panels.append(Panel(title, place, bars, f"{total:,} in all"))
    if not panels:
        return None
    return draw_panels(
        [Panels("", tuple(panels))],
        [label for _, label in models],
        title="What was answered.",
        caption="By rule, and nothing is guessed. Only what is read counts.",
    )
