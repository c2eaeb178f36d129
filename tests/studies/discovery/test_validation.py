"""Thresholds chosen on rated words, and how well these are detected: against loops in the test."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from biassay.studies.discovery.report import make_curve as points_of
from biassay.studies.discovery.results import GroupView, get_group_view, list_group_views

from .planted_words import ALL_RATED, RATED, discovered, planted


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planted(tmp_path_factory.mktemp("validation"))


def make_curve(findings: GroupView, task: str) -> Any:
    """Return the points of a curve with the rates of its row."""
    rows = (row for row in findings.curves if row.task == task)
    return next((SimpleNamespace(**{**vars(row), **vars(points_of(findings, row))}) for row in rows), None)


def detected(findings: GroupView, threshold: float, rule: str | None, compare: str = "any") -> set[str]:
    """The rated words that are detected at a threshold: by IBD, or with a rule by EIBD."""
    enough = any if compare == "any" else all
    words = set()
    for word in findings.validated:
        dropped = [part > threshold for part in word.constituents.values()]
        drops = rule is not None and (any(dropped) if rule == "any" else all(dropped))
        if enough(s > threshold for s in word.scores.values()) and not drops:
            words.add(word.word)
    return words


@pytest.mark.parametrize(
    ("rule", "positive", "compare"),
    [
        ("any", True, "any"),
        ("all", True, "any"),
        ("any", False, "any"),
        ("any", True, "every"),
        ("all", False, "every"),
    ],
)
def test_thresholds_are_those_that_fit_the_rated_words_best(
    rule: Any, positive: bool, compare: Any, place: Path
) -> None:
    groups = ["red-women", "blue-men", "red-men"]
    made = discovered(place, groups, rule=rule, positive_only=positive, compare=compare)
    grid = [step / 100 for step in range(-200, 200, 5) if step > 0 or not positive]
    for findings in list_group_views(made):
        assert {w.word for w in findings.validated} == ALL_RATED
        lists = RATED[findings.row.group]
        for kind, own, curve, chosen, source in (
            (None, lists["biases"], make_curve(findings, "ibd"), findings.row.threshold, findings.row.threshold_source),
            (rule, lists.get("emergent", []), make_curve(findings, "eibd"), *_emergent(findings)),
        ):
            if not own:
                assert (curve, chosen, source) == (None, 0.8, "convention")
                continue
            gains = []
            for t in grid:
                tp = len(detected(findings, t, kind, compare) & set(own))
                fp = len(detected(findings, t, kind, compare)) - tp
                gains.append((tp * (len(ALL_RATED) - len(own)) - fp * len(own), tp, t))
            best = max(gains)[2]
            assert (chosen, source) == (best, "validation")
            check_curve(curve, detected(findings, best, kind, compare), set(own), best)
        by_ibd, by_eibd = (
            {w.word for w in findings.validated if w.detected},
            {w.word for w in findings.validated if w.detected_emergent},
        )
        assert by_ibd == detected(findings, findings.row.threshold, None, compare)
        assert by_eibd == detected(findings, findings.row.threshold_emergent, rule, compare)


def check_curve(curve: Any, words: set[str], own: set[str], at: float) -> None:
    """The shares of a curve are those of the words detected at a threshold, of which ``own`` are true."""
    tp, fp, others = len(words & own), len(words - own), len(ALL_RATED - own)
    assert curve is not None
    assert curve.chosen == at
    place = curve.thresholds.index(at)
    counts = [getattr(curve, name)[place] for name in ("tp", "fp", "fn", "tn")]
    assert counts == [tp, fp, len(own) - tp, others - fp]
    assert curve.recall == pytest.approx(tp / len(own))
    assert curve.false_positive_rate == pytest.approx(fp / others)
    assert curve.accuracy == pytest.approx((tp + others - fp) / len(ALL_RATED))
    assert curve.precision == (pytest.approx(tp / (tp + fp)) if tp + fp else None)
    assert curve.chance == pytest.approx(len(own) / len(ALL_RATED))


@pytest.mark.parametrize("threshold", [0.3, 1.234, 1.99, -0.5])
def test_with_a_threshold_given_the_rates_are_those_at_it(threshold: float, place: Path) -> None:
    made = discovered(place, ["red-women", "red-men"], threshold=threshold)
    assert made.manifest.settings.threshold == threshold
    for findings in list_group_views(made):
        assert (findings.row.threshold, findings.row.threshold_source) == (threshold, "given")
        assert _emergent(findings) == (threshold, "given")
        own = set(RATED[findings.row.group]["biases"])
        curve = make_curve(findings, "ibd")
        check_curve(curve, detected(findings, threshold, None), own, threshold)
        assert curve is not None
        assert curve.thresholds == sorted({*(step / 100 for step in range(-200, 200, 5)), threshold})
    first = get_group_view(made, "red-women")
    own = set(RATED["red-women"]["emergent"])
    check_curve(make_curve(first, "eibd"), detected(first, threshold, "any"), own, threshold)


def _emergent(findings: GroupView) -> tuple[float, str]:
    return findings.row.threshold_emergent, findings.row.threshold_emergent_source
