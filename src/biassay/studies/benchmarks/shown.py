"""Words and counts that pages, terminal and papers share about benchmarks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from biassay.pages.formats import counted
from biassay.pages.section import Statement
from biassay.results.data import RunData
from biassay.results.labels import ModelKey, model_key, model_labels
from biassay.studies.benchmarks.drawing import balance_text
from biassay.studies.benchmarks.records import Result
from biassay.studies.benchmarks.sentences import ALL

__all__ = [
    "CAPTIONS",
    "MEANING",
    "NAMES",
    "TERMS",
    "answered",
    "benchmark_of",
    "categories_of",
    "category_name",
    "headline",
    "items_text",
    "lost_text",
    "notes_of",
    "part_text",
    "rows_of",
    "units_of",
]

NAMES: Mapping[str, str] = {"bbq": "BBQ", "crows-pairs": "CrowS-Pairs", "stereoset": "StereoSet"}
_KINDS = {
    "refused": "refused",
    "filtered": "filtered by the endpoint",
    "failed": "failed after retries",
    "several": "with several options",
    "empty": "empty",
    "unparsed": "unparsed",
}
MEANING = (
    "A score says how a model answers these questions, or which of these sentences it finds more likely, and nothing "
    "else. The p-value and the interval, with other {units} of the same kind, alone decide whether a bias holds."
)
CAPTIONS: Mapping[str, str] = {
    "bbq": "Right of zero: answers follow the stereotype. In ambiguous contexts the right answer is that it cannot be "
    "known; in disambiguated ones the context tells it.",
    "crows-pairs": "Right of zero: the stereotyping sentence is more likely in more than half of the pairs.",
    "stereoset": "Right of zero: the stereotype is preferred to its opposite, mean over target terms.",
}
_COMMON_TERMS = {
    "by item": "The interval with items taken for independent, as is usually printed. Items of one {unit} are answered "
    "alike, so it is mostly too short, and sometimes too long.",
    "p": "With other {units}, two-sided; ** also after Holm's correction over the categories of a model.",
}
TERMS: Mapping[str, Mapping[str, str]] = {
    "bbq": {
        "bias score": "2 target / known - 1, of answers that are not 'unknown': 1 if all of them follow the "
        "stereotype, -1 if all go against it; in ambiguous contexts times (1 - accuracy).",
        "accuracy": "Share of right answers: in ambiguous contexts of 'unknown' ones.",
        **_COMMON_TERMS,
    },
    "crows-pairs": {
        "share": "Share of pairs in which the more stereotyping sentence has the higher log-likelihood. These "
        "log-likelihoods are rounded to three decimals; equal ones are ties, which count among all pairs, as in the "
        "authors' code. Without bias it is half of the pairs that are not ties.",
        **_COMMON_TERMS,
    },
    "stereoset": {
        "ss": "How often the stereotype is preferred to its opposite, in percent: 50 without bias.",
        "lms": "How often a meaningful sentence is preferred to a meaningless one, in percent.",
        "icat": "lms min(ss, 100 - ss) / 50: 100 for a model that knows the language and has no bias.",
        **_COMMON_TERMS,
    },
}


def benchmark_of(run: RunData) -> str:
    return str(run.manifest.settings.benchmark)


def rows_of(run: RunData) -> dict[tuple[str, str, str], Result]:
    """By model, category and context; those over all categories too."""
    labels = model_labels(run)
    return {(labels[model_key(row)], row.category, row.condition): row for row in run.results}


def category_name(category: str) -> str:
    """As it is read: Gender identity."""
    return category.replace("_x_", " x ").replace("_", " ")


def headline(run: RunData) -> str:
    """What was asked, of how many models."""
    inputs = run.manifest.inputs
    name, of = NAMES[benchmark_of(run)], len(categories_of(run))
    models = counted(len(run.manifest.models), "model")
    categories = f"{of} categor{'y' if of == 1 else 'ies'}"
    flagged = f"; {inputs.flagged:,} flagged left out" if inputs.flagged else ""
    flagged += f"; {part_text(run)}" if inputs.available else ""
    version = f" {inputs.version}" if inputs.version else ""
    return f"{name}{version}: {models}, {items_text(run)} in {categories}{flagged}"


def part_text(run: RunData) -> str:
    """Say what part of the data was drawn; empty: all of it was used."""
    inputs, settings = run.manifest.inputs, run.manifest.settings
    if not inputs.available:
        return ""
    drawn, of = sum(inputs.items[name] for name in inputs.available), sum(inputs.available.values())
    return (
        f"a part: {drawn:,} of {of:,}, at most {settings.limit:,} per category, drawn with seed {settings.seed}, "
        f"balanced over {balance_text(benchmark_of(run))}"
    )


def items_text(run: RunData) -> str:
    """How many questions, pairs or items the data has; of several logs the longest."""
    what = {"bbq": "question", "crows-pairs": "pair", "stereoset": "item"}[benchmark_of(run)]
    counts: dict[ModelKey, int] = {}
    for row in run.results:
        if row.category != ALL:
            counts[model_key(row)] = counts.get(model_key(row), 0) + row.items
    return counted(max(counts.values(), default=0), what)


def categories_of(run: RunData) -> list[str]:
    return list(dict.fromkeys(category_name(row.category) for row in run.results if row.category != ALL))


def notes_of(run: RunData) -> list[str]:
    """What of the data was not used."""
    inputs = run.manifest.inputs
    told = {
        "questions have no target and are not scored": inputs.without_target,
        "samples of the logs cannot be used": inputs.unmapped,
    }
    notes = [f"{number:,} {said}." for said, number in told.items() if number]
    if benchmark_of(run) == "crows-pairs":
        notes.append(_pairs_note(run))
    if any(row.unrelated is not None for row in run.results):
        notes.append(
            "Neither lms nor icat is told: one sentence of three was chosen, by chance a meaningful one in 2 of 3 "
            "cases; lms compares two, by chance 1 of 2."
        )
    return notes


def _pairs_note(run: RunData) -> str:
    """Define the score of CrowS-Pairs."""
    what = "all tokens" if run.manifest.settings.score == "sentence" else "the tokens that both sentences share"
    by = "writer" if any(row.unit == "writer" for row in run.results) else "pair (the data names no writers)"
    ties = sum(row.undecided for row in run.results if row.category != ALL)
    return (
        f"Score: share of all pairs in which the more stereotyping sentence has the higher log-likelihood of {what}, "
        f"rounded to three decimals. Ties ({ties:,}) count among all pairs and never as stereotyping, as in the "
        f"authors' code; without bias the score is half of the other pairs. Intervals are by {by}."
    )


def units_of(run: RunData) -> tuple[str, str]:
    """The sampling unit: one, and several."""
    if benchmark_of(run) == "crows-pairs":
        return ("writer", "writers") if any(row.unit == "writer" for row in run.results) else ("pair", "pairs")
    return {"bbq": ("template", "templates")}.get(benchmark_of(run), ("target term", "target terms"))


def lost_text(rows: Sequence[Result]) -> str:
    """Answers that choose no option, by kind; empty: there are none."""
    counts = {said: sum(getattr(row, kind) or 0 for row in rows) for kind, said in _KINDS.items()}
    return ", ".join(f"{number:,} {said}" for said, number in counts.items() if number)


def answered(run: RunData) -> Iterator[Statement]:
    """Of every model what was answered, by kind."""
    logged = any(record.family == "log" for record in run.manifest.models)
    for key, label in model_labels(run).items():
        own = [row for row in run.results if model_key(row) == key and row.category != ALL]
        yield Statement(f"{label}: {_answers(own, 'an answer' if logged else 'a likelihood')}", (), label)


def _answers(rows: Sequence[Result], what: str) -> str:
    items, undecided = sum(row.items for row in rows), sum(row.undecided for row in rows)
    unrelated = sum(row.unrelated or 0 for row in rows)
    if rows and rows[0].replies is not None:
        replies, lost = sum(row.replies or 0 for row in rows), lost_text(rows)
        said = f"of {counted(replies, 'answer')} {lost or 'all choose an option'}"
        other = f", {unrelated:,} with the unrelated sentence" if unrelated else ""
        return f"{said}; {counted(undecided, 'question')} of {items:,} undecided{other}."
    left_out = sum(row.left_out for row in rows)
    gone = [f"{left_out:,} without {what} do not count"] * bool(left_out)
    gone += [f"{undecided:,} are ties"] * bool(undecided)
    return f"of {counted(items, 'item')} {' and '.join(gone) if gone else 'all count'}."
