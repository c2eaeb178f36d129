"""Answers that do not vary, log-odds of one pair of group words, and models that were not asked alike: the gate."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.models.answer_server import echo
from tests.models.api_server import no_key  # noqa: F401
from tests.studies.answered_runs import asked, bbq, sentences, serving

import biassay
from biassay.errors import UsageError
from biassay.runs.reports import compare_models
from biassay.runs.run import Run
from biassay.stats.word_association import words_only_test
from biassay.studies.benchmarks.results import NamedRow

pytestmark = pytest.mark.extras


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gate")


@pytest.fixture(scope="module")
def templates(folder: Path) -> Run:
    return with_outcome(bbq(folder, "toy", 0), bound_low=None, bound_high=None)


@pytest.fixture(scope="module")
def words(folder: Path) -> Run:
    return asked(folder, "toy", 100)


@pytest.fixture(scope="module")
def odds(folder: Path) -> Run:
    """Of one pair of group words."""
    with serving() as server:
        server.always = echo
        model = f"completions:toy?base_url={server.base}&concurrency=4&retries=0"
        return biassay.ask({"toy": model}, "wat-racism", cache=folder / "odds")


def changed(run: Run, table: str, change: Callable[[Any], Any | None]) -> Run:
    rows = [new for row in run.tables[table] if (new := change(row)) is not None]
    return dataclasses.replace(run, tables={**run.tables, table: tuple(rows)})


def with_outcome(run: Run, **numbers: float | None) -> Run:
    def change(row: Any) -> Any:
        return dataclasses.replace(row, outcome=dataclasses.replace(row.outcome, **numbers))

    return changed(run, "results", change)


def side_by_side(old: Run, new: Run, **given: Any) -> Any:
    """As two runs, though they were made from one."""
    again = dataclasses.replace(new, manifest=dataclasses.replace(new.manifest, run_id="another"))
    return compare_models({"old": old, "new": again}, **given)


def verdict_of(old: Run, new: Run, test: str) -> Any:
    found = side_by_side(old, new)
    (difference,) = (row for row in found.tables["differences"] if row.item == test)
    return next(one for one in found.verdicts if one.test == test), difference


# Nothing varies


def all_alike(run: Run, target: int, last: int = 20) -> Run:
    """Of 10 known answers to every template so many show the bias, in disambiguated contexts."""

    def change(row: Any) -> Any | None:
        if row.condition == "ambiguous":
            return row
        return dataclasses.replace(row, target=target, known=10, correct=5, n=10) if row.template <= last else None

    return changed(run, "templates", change)


@pytest.mark.parametrize(
    ("target", "last", "outcome"),
    [(10, 20, "worse"), (0, 20, "worse"), *((n, 20, "inconclusive") for n in (6, 7)), (10, 2, "inconclusive")],
)
def test_all_templates_say_the_same(templates: Run, target: int, last: int, outcome: str) -> None:
    """The bias of the old model is 0, that of the new one (target - 5) / 5; 20 templates that agree leave bounds."""
    old, new = all_alike(templates, 5, last), all_alike(templates, target, last)
    verdict, difference = verdict_of(old, new, "bbq Religion disambiguated")
    assert verdict.outcome == outcome
    assert difference.difference == pytest.approx((target - 5) / 5)
    assert difference.p_value >= 2.0 ** (1 - last)  # no smaller than that of the sign test
    assert (difference.p_value < 0.01) is (outcome == "worse")
    assert verdict.low < (target - 5) / 5 < verdict.high


def test_templates_without_a_known_answer_prove_nothing(templates: Run) -> None:
    """18 of 20 templates are answered 'unknown' throughout: the other two decide."""

    def unknown(row: Any) -> Any:
        silent = row.template > 2 and row.condition != "ambiguous"
        return dataclasses.replace(row, target=0, known=0) if silent else row

    old, new = (changed(all_alike(templates, target), "templates", unknown) for target in (5, 10))
    verdict, difference = verdict_of(old, new, "bbq Religion disambiguated")
    assert (verdict.outcome, verdict.growth) == ("inconclusive", pytest.approx(1.0))
    assert difference.p_value > 0.5


def declining(run: Run) -> Run:
    """Every question is answered with the option that declines."""
    own = changed(run, "templates", lambda row: dataclasses.replace(row, target=0, known=0))

    def decline(row: Any) -> Any:
        score = 0.0 if row.condition == "ambiguous" else None
        outcome = dataclasses.replace(row.outcome, effect_size=score, ci_low=None, ci_high=None, p_value=None)
        return dataclasses.replace(row, bias=None, outcome=outcome)

    return changed(own, "results", decline)


def test_from_always_stereotyped_to_always_unknown_is_better(templates: Run) -> None:
    old, new = all_alike(templates, 10), declining(all_alike(templates, 10))
    found = side_by_side(old, new)
    verdict = next(one for one in found.verdicts if one.test == "bbq Religion disambiguated")
    assert (verdict.outcome, verdict.effect_baseline, verdict.effect_model) == ("better", 1.0, 0.0)
    assert not [one for one in found.failed("worse") if one.test == "bbq Religion disambiguated"]
    assert verdict.power < 0.2
    assert found.power_gaps() == ()  # an improvement passes, although the power is low
    back, _ = verdict_of(new, old, "bbq Religion disambiguated")
    assert back.outcome == "worse"


@pytest.mark.parametrize("bound", [0.5, 0.1])
def test_a_verdict_that_refusals_could_change_is_inconclusive(templates: Run, bound: float) -> None:
    """The true growth is 1 of the responses read, and at least 1 - (1 - bound) with refusals counted against it."""

    old = with_outcome(all_alike(templates, 5), effect_size=0.0)
    new = with_outcome(all_alike(templates, 10), effect_size=1.0)
    missing = with_outcome(new, bound_low=bound, bound_high=1.0)
    verdict, _ = verdict_of(old, missing, "bbq Religion disambiguated")
    certain = verdict.low - (1.0 - bound) > verdict.margin
    assert verdict.outcome == ("worse" if certain else "inconclusive")
    assert (verdict.reason or "").startswith("missing responses could change the growth") is not certain
    both = with_outcome(old, bound_low=bound - 1.0, bound_high=0.0)
    assert verdict_of(both, missing, "bbq Religion disambiguated")[0].outcome == "worse"  # the same are missing on both
    others = {name: np.where(np.isnan(values), 0.0, np.nan) for name, values in missing.arrays.items()}
    verdict, _ = verdict_of(both, dataclasses.replace(missing, arrays=others), "bbq Religion disambiguated")
    assert verdict.outcome == "inconclusive"


@pytest.mark.parametrize("kind", ["refused", "unparsed"])
def test_refusals_make_a_verdict_inconclusive(templates: Run, kind: str) -> None:
    """An option that declines is an answer; a refusal is not. On either side."""

    def refusing(run: Run, count: int) -> Run:
        given = {"replies": 320, "refused": 0, "several": 0, "empty": 0, "unparsed": 0, kind: count}
        return changed(run, "results", lambda row: dataclasses.replace(row, **given))

    old, new = all_alike(templates, 5), all_alike(templates, 10)
    for first, second, count in ((old, refusing(new, 275), 275), (refusing(old, 65), new, 65)):
        verdict, _ = verdict_of(first, second, "bbq Religion disambiguated")
        assert (verdict.outcome, verdict.growth) == ("inconclusive", pytest.approx(1.0))
        assert f"chose no option in {count} of 320 responses, more than 20%" in verdict.reason
    verdict, _ = verdict_of(old, refusing(new, 64), "bbq Religion disambiguated")
    assert (verdict.outcome, verdict.reason) == ("worse", None)


@pytest.mark.parametrize("side", ["old", "new"])
def test_a_model_that_chooses_by_position_is_inconclusive(templates: Run, side: str) -> None:
    def by_position(run: Run, share: float) -> Run:
        given = {"replies": 320, "position": "A", "position_share": share}
        return changed(run, "results", lambda row: dataclasses.replace(row, **given))

    def judged(share: float) -> Any:
        runs = all_alike(templates, 5), all_alike(templates, 10)
        shares = (share, 1 / 3) if side == "old" else (1 / 3, share)
        old, new = map(by_position, runs, shares)
        return verdict_of(old, new, "bbq Religion disambiguated")[0]

    assert (judged(0.4).outcome, judged(0.4).reason) == ("worse", None)
    found = judged(0.9)
    assert found.outcome == "inconclusive"
    assert found.reason.endswith("chooses options by their position")


def shared_out(run: Run, test: str, negative: float, positive: float, kept: int = 8) -> Run:
    """So many words a pole, each with one share in all blocks."""
    seen = dict[str, int]()

    def change(row: Any) -> Any | None:
        if row.test != test:
            return row
        seen[row.pole] = seen.get(row.pole, 0) + 1
        value = negative if row.pole == "negative" else positive
        given = {"value": value, "by_pair": (value,) * len(row.by_pair), "by_block": (value,) * len(row.by_block)}
        return dataclasses.replace(row, **given) if seen[row.pole] <= kept else None

    return changed(run, "words", change)


@pytest.mark.parametrize(
    ("ends", "kept", "outcome"),
    [
        ((1.0, 0.0), 8, "worse"),
        ((0.0, 1.0), 8, "worse"),  # a reversal past the old size
        ((0.61, 0.39), 8, "inconclusive"),  # above the margin of 0.2, by less than 16 words can show
        ((0.55, 0.45), 8, "inconclusive"),
        ((1.0, 0.0), 4, "inconclusive"),
    ],
)
def test_all_words_and_blocks_say_the_same(words: Run, ends: tuple[float, float], kept: int, outcome: str) -> None:
    """16 words that agree leave the bounds of `ask`: a share of the population may answer otherwise."""
    old, new = shared_out(words, "wat-racism", 0.5, 0.5, kept), shared_out(words, "wat-racism", *ends, kept)
    verdict, difference = verdict_of(old, new, "wat-racism")
    assert verdict.outcome == outcome
    assert difference.difference == pytest.approx(ends[0] - ends[1])
    if kept == 8:
        assert difference.p_value == pytest.approx(2 / 12870)  # of all splits of 16 words
        growth, tail = ends[0] - ends[1], (1.0 - (1.0 - 0.05 / 2)) / 2
        agree = tail ** (1 / 16)  # the smallest mean of both poles' shares u and v with (u v)^8 = tail
        near, far = growth * (2.0 * agree - 1.0), growth * agree + np.copysign(2.0 * (1.0 - agree), growth)
        assert (verdict.low, verdict.high) == pytest.approx((min(near, far), max(near, far)))
        assert 0.0 < verdict.power < 1.0
    else:
        assert "nothing varies" in verdict.reason


@pytest.mark.parametrize("side", ["old", "new"])
def test_a_model_that_goes_by_word_order_is_inconclusive(words: Run, side: str) -> None:
    old, new = shared_out(words, "wat-racism", 1.0, 0.0), shared_out(words, "wat-racism", 0.5, 0.5)
    assert verdict_of(old, new, "wat-racism")[0].outcome == "better"

    def by_order(run: Run, **given: Any) -> Run:
        return changed(run, "results", lambda row: dataclasses.replace(row, **given))

    for given, told in (
        ({"follows_order": True}, "follows the order of the group words"),
        ({"refused": 60, "answers": 200}, "of 200 responses, more than 20%"),
    ):
        runs = (by_order(old, **given), new) if side == "old" else (old, by_order(new, **given))
        verdict, _ = verdict_of(*runs, "wat-racism")
        assert (verdict.outcome, verdict.growth) == ("inconclusive", pytest.approx(-1.0))
        assert told in verdict.reason


@pytest.mark.parametrize("moved", [0.05, 0.9])
def test_missing_words_of_one_model_leave_a_verdict_open(words: Run, moved: float) -> None:
    """Old 1, new 0: better, unless missing responses of the new model could undo the fall."""
    old, new = shared_out(words, "wat-racism", 1.0, 0.0), shared_out(words, "wat-racism", 0.5, 0.5)
    old, new = (
        with_outcome(run, effect_size=effect, bound_low=effect, bound_high=high)
        for run, effect, high in ((old, 1.0, 1.0), (new, 0.0, moved))
    )
    verdict, _ = verdict_of(old, new, "wat-racism")
    assert verdict.outcome == ("better" if moved == 0.05 else "inconclusive")
    assert (verdict.reason == "missing responses could change the growth by up to 0.9") is (moved == 0.9)


def test_missing_words_of_both_models_add_up(words: Run) -> None:
    """Old 1, new 0, and each may miss what would bring it to 0.5: the models may be alike."""
    old, new = shared_out(words, "wat-racism", 1.0, 0.0), shared_out(words, "wat-racism", 0.5, 0.5)
    old = with_outcome(old, effect_size=1.0, bound_low=0.5, bound_high=1.0)
    new = with_outcome(new, effect_size=0.0, bound_low=0.0, bound_high=0.5)
    verdict, _ = verdict_of(old, new, "wat-racism")
    assert (verdict.outcome, verdict.growth) == ("inconclusive", pytest.approx(-1.0))
    assert verdict.reason == "missing responses could change the growth by up to 1"


# Log-odds of one pair of group words


def test_log_odds_that_all_grow_alike_have_no_interval(odds: Run) -> None:
    def grown(row: Any) -> Any:
        value = row.value + (1.0 if row.pole == "negative" else -1.0)
        return dataclasses.replace(row, value=value, by_pair=(value,))

    odds = changed(odds, "results", lambda row: dataclasses.replace(row, first=0.0, follows_order=False))
    verdict, difference = verdict_of(odds, changed(odds, "words", grown), "wat-racism")
    assert (verdict.outcome, verdict.low, difference.interval_low) == ("inconclusive", None, None)
    assert "log-odds that do not vary have no bounds" in verdict.reason


def test_log_odds_of_one_pair_that_grow(odds: Run) -> None:
    def grown(row: Any) -> Any:
        value = row.value + (10.0 if row.pole == "negative" else -10.0)
        return dataclasses.replace(row, value=value, by_pair=(value,))

    def none(row: Any) -> Any:
        return dataclasses.replace(row, value=0.0, by_pair=(0.0,))

    odds = changed(odds, "results", lambda row: dataclasses.replace(row, first=0.0, follows_order=False))
    new = changed(odds, "words", grown)
    verdict, difference = verdict_of(changed(odds, "words", none), new, "wat-racism")
    poles = [[row.value for row in new.tables["words"] if row.pole == pole] for pole in ("negative", "positive")]
    welch = stats.ttest_ind(*poles, equal_var=False)
    low, high = welch.confidence_interval(0.95)
    assert verdict.outcome == "worse"
    assert (difference.interval_low, difference.interval_high) == pytest.approx((low, high))
    assert difference.p_value == pytest.approx(max(welch.pvalue, 2 / 12870))
    assert difference.over == "16 words"


def test_by_word_the_interval_and_the_p_value_agree_about_zero() -> None:
    rng, negative = np.random.default_rng(1), np.arange(11) < 5
    for _ in range(100):
        values = rng.standard_cauchy(11) + 2.0 * negative
        for confidence in (0.8, 0.95, 0.99):
            found = words_only_test(values, negative, confidence)
            assert found is not None
            assert found.interval is not None
            low, high = found.interval
            assert (low <= 0.0 <= high) == (found.p_value > 1.0 - confidence)
            assert found.p_value >= stats.ttest_ind(values[negative], values[~negative], equal_var=False).pvalue - 1e-12


# Not asked alike


def test_models_that_were_not_asked_alike_are_refused(templates: Run, folder: Path) -> None:
    def with_by(run: Run, by: str) -> Run:
        return changed(run, "results", lambda row: dataclasses.replace(row, by=by))

    for other in (
        with_by(templates, "log-probability"),
        dataclasses.replace(
            templates,
            manifest=dataclasses.replace(
                templates.manifest, settings=dataclasses.replace(templates.manifest.settings, orders=6)
            ),
        ),
    ):
        with pytest.raises(UsageError, match="--mixed"):
            side_by_side(templates, other)
        (note,) = side_by_side(templates, other, mixed=True).notes
        assert note.startswith(("asked by: ", "options: "))
    pairs = sentences(folder, "crows-pairs")
    assert side_by_side(pairs, pairs).notes == ()


def with_names(run: Run, targets: list[int]) -> Run:
    """In each template there is one pair of people per target: of 10 known answers this number shows the bias."""
    rows = [
        NamedRow(
            row.model,
            row.options,
            row.model_revision,
            row.category,
            row.condition,
            row.template,
            *(target, 10, 5, 10),
            f"a{i} b{i}",
        )
        for row in run.tables["templates"]
        if (row.category, row.condition) == ("Religion", "disambiguated")
        for i, target in enumerate(targets)
    ]
    return dataclasses.replace(run, tables={**run.tables, "names": tuple(rows)})


def test_a_comparison_over_few_names_is_inconclusive(templates: Run) -> None:
    old, new = (with_names(templates, targets) for targets in ([5, 4, 5], [9, 8, 10]))
    verdict, difference = verdict_of(old, new, "bbq Religion disambiguated")
    assert verdict.outcome == "inconclusive"
    assert difference.interval_low is None
    assert "20 templates and 6 names are too few" in difference.reason
