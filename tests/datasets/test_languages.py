"""Tests in other languages: lists as published, every correction, names and patterns, and faults of lists."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import scipy

import biassay
from biassay.datasets.catalogue import select_tests
from biassay.datasets.languages import (
    load_corrections,
    load_language_tests,
    load_languages,
    load_published_lists,
)
from biassay.datasets.linter import lint_lists, lint_test
from biassay.datasets.schema import ROLES
from biassay.errors import BiassayError, UnknownNameError

DIGESTS = json.loads((Path(__file__).parents[1] / "reference" / "weathub" / "digests.json").read_text("utf-8"))
INVALID = {"repeated", "opposed", "crossed"}


def test_the_lists_are_those_that_were_published() -> None:
    assert set(load_languages()) == set(DIGESTS)
    for language, expected in DIGESTS.items():
        published = load_published_lists(language)
        lists = {one.name.split("-")[2]: [list(one.words[role]) for role in ROLES] for one in published}
        text = json.dumps(lists, ensure_ascii=False, sort_keys=True)
        assert len(lists) == expected["tests"]
        assert hashlib.sha256(text.encode()).hexdigest() == expected["sha256"], language


@pytest.mark.parametrize("language", load_languages())
def test_every_difference_from_the_published_lists_is_written_down(language: str) -> None:
    corrected = {test.name: test for test in load_language_tests(language)}
    corrections = load_corrections().get(language, ())
    left_out = {one.test for one in corrections if not one.role}
    assert left_out == {lists.name for lists in load_published_lists(language)} - corrected.keys()
    for lists in load_published_lists(language):
        written = {(one.role, one.word): one for one in corrections if one.test == lists.name}
        assert all(one.word in lists.words[one.role] and one.reason for one in written.values() if one.role)
        if lists.name in left_out:
            continue
        for role in ROLES:
            kept = corrected[lists.name].concept(role).words
            for word in lists.words[role]:
                replacement = written[role, word].replacement if (role, word) in written else word
                assert replacement in kept or not replacement
            unexplained = set(kept) - set(lists.words[role])
            assert unexplained <= {one.replacement for one in written.values() if one.role == role}
            for word in {word for word in lists.words[role] if lists.words[role].count(word) > 1}:
                assert (role, word) in written


@pytest.mark.parametrize("language", load_languages())
def test_corrected_tests_have_no_fault_that_makes_them_invalid(language: str) -> None:
    assert not [fault for test in load_language_tests(language) for fault in lint_test(test) if fault.kind in INVALID]


def test_faults_of_published_lists_are_counted() -> None:
    faults = [fault for code in load_languages() for lists in load_published_lists(code) for fault in lint_lists(lists)]
    tests = {
        kind: len({fault.test for fault in faults if fault.kind == kind}) for kind in ("opposed", "crossed", "sizes")
    }
    by_hand = {"opposed": 0, "crossed": 0, "sizes": 0}
    for code in load_languages():
        for lists in load_published_lists(code):
            x, y, a, b = ({word.casefold() for word in lists.words[role]} for role in ROLES)
            by_hand["opposed"] += bool(x & y or a & b)
            by_hand["crossed"] += bool((x | y) & (a | b))
            sizes = [len(lists.words[role]) for role in ROLES]
            by_hand["sizes"] += sizes[0] != sizes[1] or sizes[2] != sizes[3]
    assert tests == by_hand
    assert 0.7 < len({fault.test for fault in faults if fault.kind == "repeated"}) / 396 < 0.8


def test_names_collections_and_patterns() -> None:
    (test,) = select_tests("weathub-de-weat6")
    assert (test.language, test.topic, test.direction, test.source.supplementary) == ("de", "gender", "positive", True)
    assert test.title == "Male names or female names, career or family (German)"
    assert "Donna" not in test.Y.words
    assert test.B.words.count("Hochzeit") == 1
    (published,) = select_tests("weathub-de-weat6-published")
    assert "Donna" in published.Y.words
    assert {test.name for test in select_tests("weathub-de")} == {test.name for test in load_language_tests("de")}
    assert {test.language for test in select_tests("weathub-*-weat6")} == set(load_languages()) - {"en"}
    (sentences,) = select_tests("sent-weathub-fr-weat6")
    assert (sentences.question, sentences.level) == ("weathub-fr-weat6", "sentence")
    assert not any(test.name.startswith("weathub") for test in select_tests())


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("weathub-dee", "did you mean 'weathub-de'"),
        ("weathub-de-weat66", "did you mean 'weathub-de-weat6'"),
        ("weathub-en-weat17", "too few words are left"),
        ("sent-weathub-it", "there are sentence templates for de, fr, es, zh"),
    ],
)
def test_unknown_languages_and_tests_are_explained(pattern: str, message: str) -> None:
    with pytest.raises(BiassayError, match=message):
        select_tests(pattern)


class _Letters:
    """Encodes letters, so that every word is known; counts a token for every letter outside ASCII."""

    name = "letters"

    def encode(self, texts: list[str]) -> np.ndarray:
        seeds = [int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) for text in texts]
        return np.array([np.random.default_rng(seed).normal(size=8) for seed in seeds], dtype=np.float32)

    def count_tokens(self, texts: list[str]) -> list[int]:
        return [sum(not letter.isascii() for letter in text) or 1 for text in texts]


def test_a_language_is_run_and_skipped_if_words_have_too_many_tokens() -> None:
    run = biassay.run(_Letters(), tests=["weat6", "weat7"], language=["de", "hi"], max_tokens=3, random_sets=0)
    status = {result.test: result.status for result in run.results}
    assert status == {
        "weathub-de-weat6": "measured",
        "weathub-de-weat7": "measured",
        "weathub-hi-weat6": "skipped",
        "weathub-hi-weat7": "skipped",
    }
    skipped = run["weathub-hi-weat6"].results[0]
    assert "does not know the language hi" in skipped.reason
    assert "--max-tokens" in skipped.reason
    allowed = biassay.run(_Letters(), tests="weat6", language="hi", max_tokens=20, random_sets=0)
    assert [result.status for result in allowed.results] == ["measured"]


def test_languages_are_checked() -> None:
    with pytest.raises(UnknownNameError, match="unknown language 'dd'"):
        biassay.run(_Letters(), language="dd")
    with pytest.raises(UnknownNameError, match="weathub-de-weat16"):
        biassay.run(_Letters(), tests="weat16", language="de")
    run = biassay.run(_Letters(), tests="weat16", language="all", random_sets=0, max_tokens=100)
    assert {result.language for result in run.results} == {"bn", "en", "hi", "mr", "pa", "te", "ur"}


def test_the_report_has_simultaneous_intervals_over_languages(tmp_path: Path) -> None:
    run = biassay.run(_Letters(), tests=["weat1", "weat6"], language=["de", "fr", "es"], max_tokens=20, random_sets=0)
    page = tmp_path / "page.html"
    run.report(page)
    section = page.read_text("utf-8").partition('id="texts-languages"')[2]
    result = run["weathub-de-weat6"].results[0]
    t = scipy.stats.t.ppf(1.0 - 0.05 / (2 * 6), result.df)
    half = t * result.cosine_standard_error / result.cosine_sd
    ends = (result.calibrated_difference - half, result.calibrated_difference + half)
    assert f"[{ends[0]:z.2f}, {ends[1]:z.2f}]" in section
    assert all(f"weat6, {name}" in section for name in ("German", "French", "Spanish"))
    single = biassay.run(_Letters(), tests="weat6", language="de", random_sets=0)
    single.report(tmp_path / "single.html")
    assert '-languages"' not in (tmp_path / "single.html").read_text("utf-8")
