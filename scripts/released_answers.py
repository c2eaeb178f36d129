"""Compare published scores with biassay's on released responses to word association tests and BBQ."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import biassay
from biassay.datasets.word_associations import WordAssociationTest, select_word_associations
from biassay.stats.word_association import bai_score_test, compute_bai_scores, word_association
from biassay.studies.word_association.replies import count_as_published

REFERENCE = Path(__file__).resolve().parents[1] / "tests" / "reference"
FORMATS = {"race": "format_race", "arc": "format_arc", "qonly": "baseline_qonly"}


class Answered(NamedTuple):
    """Responses to one data set: (responses, words), 1 if a word was given to the stigmatised group."""

    test: WordAssociationTest
    values: NDArray[np.float64]
    counts: dict[str, list[int]]


def released_scores(folder: Path) -> Any:
    """Read the released scores of a folder; empty if there are none."""
    file = folder / "expected.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


@cache
def answered(folder: Path) -> dict[str, Answered]:
    """Read the data sets of a folder, each in NAME.csv with the responses in column 0."""
    found = {}
    for test in select_word_associations("wat-*"):
        name = test.name.removeprefix("wat-")
        if (folder / f"{name}.csv").exists():
            with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
                texts = [count_as_published(row["0"], test) for row in csv.DictReader(file)]
            counts = np.array([[given[word] for word in test.words] for given in texts], dtype=np.float64)
            total = counts.sum(axis=2)
            values = np.divide(counts[:, :, 0], total, out=np.full(total.shape, np.nan), where=total > 0)
            by_word = zip(test.words, counts[:, :, 0].sum(axis=0), total.sum(axis=0), strict=True)
            found[name] = Answered(test, values, {word: [int(to), int(n)] for word, to, n in by_word})
    return found


def word_associations(folder: Path = REFERENCE / "wat") -> str:
    """Make a table of every data set: D, the published test over responses, and biassay's test over words."""
    head = "| test | mean D, released | biassay | p over responses, as published | p (these words only) "
    lines = [f"{head}| p | difference of shares, 95% CI |", "|---|---|---|---|---|---|---|"]
    released = released_scores(folder)
    for name, (test, values, _) in answered(folder).items():
        found = word_association(values, test.is_negative)
        tested = bai_score_test(compute_bai_scores(values, test.is_negative))
        assert found.exact is not None
        assert found.response_test is not None
        printed = f"{released[name]['mean_D']:.3f}" if name in released else ""
        p_values = (tested.p_value, found.exact.value, found.response_test.p_value)
        shown = " | ".join("–" if p is None or np.isnan(p) else f"{p:.1e}" for p in p_values)
        difference = f"{found.difference:.2f}{_interval(found.response_test.interval)}"
        lines.append(f"| {test.title} (`{test.name}`) | {printed} | {tested.mean:.3f} | {shown} | {difference} |")
    return "\n".join(lines)


@cache
def bbq_rows(folder: Path) -> tuple[Any, ...]:
    """Import the responses of a folder and return the rows of the run."""
    files = sorted(file for file in folder.iterdir() if file.name.startswith("preds_"))
    return tuple(biassay.import_logs(files).results)


def bbq_format(row: Any) -> str:
    return str(dict(part.split("=", 1) for part in row.options.split(";"))["task"])


def bbq_cell(row: Any) -> str:
    """Return the key of a row in the released scores."""
    return f"{row.category}|{row.condition.removesuffix('uous').removesuffix('uated')}|{FORMATS[bbq_format(row)]}"


def bbq(folder: Path = REFERENCE / "bbq") -> str:
    """Make a table of scores by category, context and question format."""
    head = (
        "| category | contexts | format | score, released | biassay | 95% CI over templates | 95% CI over items | p |"
    )
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    released = released_scores(folder)
    for row in bbq_rows(folder):
        printed = f"{released[bbq_cell(row)]['score']:.3f}" if bbq_cell(row) in released else ""
        ends = [(one.ci_low, one.ci_high) for one in (row.outcome, row.alternatives["items"])]
        intervals = " | ".join(_interval(pair if None not in pair else None).strip() for pair in ends)
        p = "–" if row.p_value is None else f"{row.p_value:.2g}"
        category = row.category.replace("_", " ")
        cells = (category, row.condition, bbq_format(row), printed, f"{row.effect_size:.3f}", intervals, p)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def compared() -> Iterator[tuple[str, str, int, float]]:
    """Compare numbers of released code with biassay's; yield quantity, code, count and largest difference."""
    released = released_scores(REFERENCE / "wat")
    gaps, wrong, counts = [], 0, 0
    for name, (test, values, by_word) in answered(REFERENCE / "wat").items():
        wanted = np.array([np.nan if one is None else one for one in released[name]["D"]])
        scores = compute_bai_scores(values, test.is_negative)
        assert (np.isnan(scores) == np.isnan(wanted)).all()
        gaps.append(np.abs(scores - wanted)[~np.isnan(wanted)])
        counts += len(by_word)
        wrong += sum(by_word[word] != one for word, one in released[name]["share_to_B"].items())
    code = "llm-implicit-bias"
    yield "Word associations: D of responses", code, sum(map(len, gaps)), float(max(map(np.max, gaps)))
    yield "Word associations: word counts that differ", code, counts, wrong
    released, rows = released_scores(REFERENCE / "bbq"), bbq_rows(REFERENCE / "bbq")
    assert sorted(map(bbq_cell, rows)) == sorted(released)
    wanted_of = [(row, released[bbq_cell(row)]) for row in rows]
    differ = sum(
        (row.n_items, round(row.accuracy * row.n_items), row.undecided, row.n_units)
        != (one["n"], one["correct"], one["unparsed"], one["templates"])
        for row, one in wanted_of
    )
    yield "BBQ: rows whose counts differ", "BBQ, authors' script", len(rows), differ
    numbers = {"accuracy": "accuracy", "bias": "bias", "effect_size": "score"}
    score = [abs(getattr(row, ours) - one[name]) for row, one in wanted_of for ours, name in numbers.items()]
    yield "BBQ: accuracies, biases and scores", "BBQ, authors' script", len(score), max(score)


def _interval(ends: tuple[float, float] | None) -> str:
    return "" if ends is None else f" [{ends[0]:.2f}, {ends[1]:.2f}]".replace("-0.00", "0.00")
