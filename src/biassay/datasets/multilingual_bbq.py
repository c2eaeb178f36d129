"""Read BBQ in other languages: MBBQ (Neplenbroek et al. 2024) and KoBBQ (Jin et al. 2024)."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from biassay.datasets.bbq import BBQ_CATEGORIES, UNKNOWN_PHRASES, Bbq, BbqItem, collect_bbq, parse_question
from biassay.datasets.benchmark_files import find_data_files
from biassay.datasets.data_rows import DataRow, read_rows, read_unique_rows
from biassay.errors import StimulusError

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
    return collect_bbq(items, files, _get_content, lambda _, digest: digest in _RELEASED)


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


def _get_content(item: BbqItem) -> tuple[object, ...]:
    condition = item.template, item.negative, item.ambiguous
    return (*condition, item.context, item.question, *item.options, item.correct, item.target)
