"""Which tests the terminal shows, in which order, and what is said of the others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from biassay.pages.formats import counted, topic_name
from biassay.pages.overview import CHECKS
from biassay.results.findings import Standing
from biassay.stimuli.description import topics
from biassay.studies.associations.lead import effect_of, is_opposite, p_of, standing_of
from biassay.studies.associations.records import Result

__all__ = ["by_topic", "leading", "left_out", "topic_place"]

_FEW = 12  # tests of which all are shown
_MOST = 24
_NEAREST = 5  # tests that are shown where nothing is significant
_ORDER: tuple[Standing, ...] = ("significant", "uncorrected")


def topic_place(topic: str | None) -> int:
    """Where a topic stands among the others."""
    known = list(topics())
    return known.index(topic) if topic in known else len(known)


def by_topic(results: Sequence[Result]) -> Iterator[tuple[str, list[Result]]]:
    """One result of every test under the heading of its topic: people first, sanity checks last."""
    tests = {r.test: r for r in reversed(results)}
    first = [tests[name] for name in dict.fromkeys(r.test for r in results)]
    people = sorted((r for r in first if r.about != "method"), key=lambda r: topic_place(r.topic))
    groups: dict[str, list[Result]] = {}
    for r in people:
        groups.setdefault(topic_name(r.topic), []).append(r)
    yield from groups.items()
    checks = [r for r in first if r.about == "method"]
    if checks:
        yield CHECKS, checks


def leading(results: Sequence[Result]) -> list[str]:
    """The tests that are shown first: of a few all, of many the significant ones and failed checks."""
    by_test: dict[str, list[Result]] = {}
    for r in results:
        by_test.setdefault(r.test, []).append(r)
    if len(by_test) <= _FEW:
        return list(by_test)
    people = {test: own for test, own in by_test.items() if own[0].about != "method"}
    hold = sorted((test for test, own in people.items() if _rank(own) < len(_ORDER)), key=lambda t: _surest(people[t]))
    if not hold:
        hold = sorted(people, key=lambda test: _smallest_p(people[test]))[:_NEAREST]
    fail = [t for t, own in by_test.items() if t not in people and not all(map(_passes, own))]
    shown = {*hold[:_MOST], *fail}
    return [test for test in by_test if test in shown]


def _passes(result: Result) -> bool:
    return standing_of(result) in _ORDER and not is_opposite(result)


def _rank(results: Iterable[Result]) -> int:
    standings = {standing_of(r) for r in results}
    return next((place for place, one in enumerate(_ORDER) if one in standings), len(_ORDER))


def _surest(results: Sequence[Result]) -> tuple[float, ...]:
    """On how many models it is significant, on how many before correction only, and how large it is."""
    standings = [standing_of(r) for r in results]
    return (*(-standings.count(one) for one in _ORDER), -max(abs(effect_of(r) or 0.0) for r in results))


def _smallest_p(results: Iterable[Result]) -> float:
    known = [p for r in results if (p := p_of(r)) is not None and not math.isnan(p)]
    return min(known, default=2.0)


def left_out(results: Sequence[Result], shown: Sequence[str]) -> str:
    """How many tests of which kind are not shown."""
    others: Mapping[str, list[Result]] = {r.test: [] for r in results if r.test not in shown}
    for r in results:
        if r.test in others:
            others[r.test].append(r)
    if not others:
        return ""
    checks = [own for own in others.values() if own[0].about == "method"]
    people = [own for own in others.values() if own[0].about != "method"]
    unmeasured = [own for own in people if all(r.status != "measured" for r in own)]
    hold = [own for own in people if _rank(own) < len(_ORDER)]
    silent = len(people) - len(unmeasured) - len(hold)
    said = [
        f"{len(hold):,} significant or leads" if hold else "",
        f"{silent:,} inconclusive" if silent else "",
        f"{len(unmeasured):,} skipped" if unmeasured else "",
        f"{counted(len(checks), 'sanity check')} passed" if checks else "",
    ]
    return f"{counted(len(others), 'more test')}: --all ({', '.join(filter(None, said))})"
