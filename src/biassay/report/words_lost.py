"""What a run was measured without, and what had to be assumed, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from biassay.results.labels import model_key, model_labels
from biassay.results.run import Run

__all__ = ["assumption", "assumptions", "lost_lines"]

_TESTS_SHOWN = 6
_WORDS_SHOWN = 8


def lost_lines(run: Run) -> list[str]:
    """A line for every model that was measured without some words."""
    lines = []
    for key, label in model_labels(run).items():
        own = [r for r in run.results if model_key(r) == key and r.status == "measured"]
        lost = {r.test: [word for words in r.lost.values() for word in words] for r in own}
        named = [f"{test}: {', '.join(words)}" for test, words in lost.items() if words]
        if named:
            rest = len(named) - _TESTS_SHOWN
            more = f"; and {rest} more test{'' if rest == 1 else 's'}" if rest > 0 else ""
            shown = f"{'; '.join(named[:_TESTS_SHOWN])}{more}"
            lines.append(f"{label} was measured without words it does not know: {shown}")
    return lines


def assumptions(run: Run) -> list[str]:
    """A line for every test whose file does not say what its texts are about."""
    return [f"{test.name}: {assumption(test.assumed)}" for test in run.manifest.tests if test.assumed]


def assumption(assumed: Mapping[str, Sequence[str]]) -> str:
    """What the texts of a test were taken to be about, by role."""
    sets = "; ".join(f"{role}: {_some(words)}" for role, words in assumed.items())
    return f"the file does not say which words its texts are about; what varies between them is taken ({sets})"


def _some(words: Sequence[str]) -> str:
    more = f" and {len(words) - _WORDS_SHOWN} more" if len(words) > _WORDS_SHOWN else ""
    return ", ".join(words[:_WORDS_SHOWN]) + more
