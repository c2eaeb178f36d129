"""What a run was measured without, and what had to be assumed, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from biassay.pages.formats import counted
from biassay.results.data import RunData
from biassay.results.labels import model_key, model_labels
from biassay.studies.associations.records import Result
from biassay.studies.associations.settings import PAPERS

__all__ = ["assumption", "assumptions", "lost_lines", "without_baseline"]

_TESTS_SHOWN = 3
_WORDS_SHOWN = 8


def lost_lines(run: RunData) -> list[str]:
    """A line for every model that was measured without some words, and every cause."""
    return [
        f"{label} was measured without words {cause}: {_by_test(tests)}"
        for key, label in model_labels(run).items()
        for cause, tests in _by_cause([r for r in run.results if model_key(r) == key]).items()
    ]


def _by_cause(results: Sequence[Result]) -> dict[str, dict[str, list[str]]]:
    """The words lost, by cause and test."""
    found: dict[str, dict[str, list[str]]] = {}
    for r in results:
        for role, words in r.lost.items() if r.status == "measured" else ():
            for word in words:
                found.setdefault(_cause(r, role, word), {}).setdefault(r.test, []).append(word)
    return found


def _cause(result: Result, role: str, word: str) -> str:
    if result.level != "context":
        return "it does not know"
    if result.too_rare is None:  # a run of an earlier version
        return "with too few usable contexts"
    return "with too few contexts in the corpus" if word in result.too_rare[role] else "it placed in too few contexts"


def _by_test(tests: Mapping[str, Sequence[str]]) -> str:
    words = _some(list(dict.fromkeys(word for own in tests.values() for word in own)))
    return f"{words} ({_listed(list(tests))})"


def assumptions(run: RunData) -> list[str]:
    """A line for every test whose file does not say what its texts are about."""
    return [f"{test.name}: {assumption(test.assumed)}" for test in run.manifest.inputs.tests if test.assumed]


def without_baseline(run: RunData) -> list[str]:
    """Name the tests without a random baseline because they do not state that their words are English."""
    if not run.manifest.settings.random_sets:
        return []
    missing = dict.fromkeys(
        (r.test, r.language)
        for r in run.results
        if r.D is not None and r.level != "context" and r.protocol not in PAPERS and r.share_random is None
    )
    found: dict[str, list[str]] = {}
    for test, language in missing:
        if (language or "").lower().split("-")[0] != "en":
            found.setdefault(language or "", []).append(test)
    return [
        f"no random baseline, because its words are English: {_listed(tests)} "
        + (f"(language {language})" if language else '(no language stated; if they are English, add language = "en")')
        for language, tests in found.items()
    ]


def _listed(tests: Sequence[str]) -> str:
    return ", ".join(tests) if len(tests) <= _TESTS_SHOWN else counted(len(tests), "test")


def assumption(assumed: Mapping[str, Sequence[str]]) -> str:
    """What the texts of a test were taken to be about, by role."""
    sets = "; ".join(f"{role}: {_some(words)}" for role, words in assumed.items())
    return f"the file does not say which words its texts are about; what varies between them is taken ({sets})"


def _some(words: Sequence[str]) -> str:
    more = f" and {len(words) - _WORDS_SHOWN} more" if len(words) > _WORDS_SHOWN else ""
    return ", ".join(words[:_WORDS_SHOWN]) + more
