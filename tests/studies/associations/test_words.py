"""The words a person reads: p-values, effects, the summary, headlines and labels."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import pytest
from tests.pages.pages import Page
from tests.results.made_runs import with_rows

import biassay
from biassay.pages.formats import format_p, size_word
from biassay.results.labels import model_labels
from biassay.runs.run import Run
from biassay.runs.showing import render_report
from biassay.studies.associations.intervals import interval_of
from biassay.studies.associations.records import Result
from biassay.studies.associations.words import association, p_by_text, p_by_word, summary
from biassay.studies.associations.words_found import found_by_text, found_by_word, known_by_word, other_way


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (math.nan, "NaN"),
        (1.0, "1.000"),
        (0.0123, "0.012"),
        (0.001, "0.001"),
        (0.00099, "9.9e-4"),
        (9.97e-5, "1.0e-4"),
        (1.4536675772573553e-09, "1.5e-9"),
        (0.0, "0"),
    ],
)
def test_p_values_are_written_to_two_digits(value: float | None, shown: str) -> None:
    log10 = None if value is None else -math.inf if value == 0 else math.log10(value)
    assert format_p(value, log10) == shown


def test_a_p_value_too_small_for_a_float_is_written_from_its_logarithm() -> None:
    assert format_p(0.0, -400.0 + math.log10(3.2)) == "3.2e-400"


@pytest.mark.parametrize(("size", "word"), [(0.1, "negligible"), (-0.2, "small"), (0.5, "medium"), (-0.8, "large")])
def test_effect_sizes_have_their_customary_names(size: float, word: str) -> None:
    assert size_word(size) == word


@pytest.mark.parametrize(("significant", "holm", "stars"), [(True, True, "**"), (True, False, "*"), (False, False, "")])
def test_each_p_value_has_its_own_stars(significant: bool, holm: bool, stars: str, measured: Run) -> None:
    one = dataclasses.replace(
        measured.results[0], p_value=0.5, log10_p_value=-0.301, significant=True, significant_holm=True
    )
    given = {"p_value_by_word": 0.25, "log10_p_value_by_word": -0.602, "p_floor_by_word": 1e-4}
    one = dataclasses.replace(one, **given, significant_by_word=significant, significant_by_word_holm=holm)
    assert p_by_word(one) == f"0.250{stars}"
    assert p_by_text(one) == "0.500**"


def test_too_few_words_to_be_significant_are_marked(measured: Run) -> None:
    few = dataclasses.replace(
        measured.results[0], p_value_by_word=1 / 70, log10_p_value_by_word=-1.845, p_floor_by_word=1 / 70
    )
    few = dataclasses.replace(few, significant_by_word=False, significant_by_word_holm=False)
    assert p_by_word(few) == "0.014‡"
    assert p_by_word(dataclasses.replace(few, alpha=0.05, significant_by_word=True)) == "0.014*"
    page = Page(render_report(with_rows(measured, (dataclasses.replace(few, significant=True),))))
    assert any("0.014‡" in item for item in page.items)


def named(*results: Result, run: Run) -> tuple[str, ...]:
    """The associations that a summary of these results names."""
    (found,) = summary(with_rows(run, results))
    return found.points


def test_intervals_in_the_summary_are_those_over_words(measured: Run) -> None:
    standing = [r for r in measured.results if r.significant_by_word_holm]
    points = named(*measured.results, run=measured)
    assert len(standing) > 2
    for r in standing:
        found = interval_of(r)
        assert found is not None
        told = f"{r.effect_size_by_word:.2f} ({r.test}, 95% {found.low:.2f} to {found.high:.2f})"
        assert sum(told in point for point in points) == 1
    wordless = dataclasses.replace(standing[0], associations={})
    assert interval_of(wordless) is None
    (point,) = named(wordless, run=measured)
    assert point.endswith(f"{wordless.effect_size_by_word:.2f} ({wordless.test})")


def test_effects_in_the_summary_are_in_order_and_no_more_than_eight(measured: Run) -> None:
    one = next(r for r in measured.results if r.significant_by_word_holm)
    sizes = [0.3, 1.1, 1.9, 0.7, 0.1, 1.3, 0.5, 1.7, 0.9, 1.5]
    rows = [
        dataclasses.replace(one, test=f"t{i}", targ1=f"T{i}", effect_size=9.99, effect_size_by_word=size)
        for i, size in enumerate(sizes)
    ]
    *points, _ = named(*rows, run=measured)
    for point, size in zip(points, sorted(sizes, key=abs, reverse=True), strict=False):
        assert f"{size:.2f} (t{sizes.index(size)}" in point
    assert len(points) == 8


@pytest.mark.parametrize(("by_word", "sides"), [(0.9, ("P", "Q")), (-0.9, ("Q", "P"))])
@pytest.mark.parametrize("by_text", [0.1, -0.1])
def test_the_side_that_is_named_is_that_of_the_effect_by_word(
    by_text: float, by_word: float, sides: tuple[str, str], measured: Run
) -> None:
    """It is the effect that stands beside it; that by text may have another sign."""
    one = dataclasses.replace(measured.results[0], attr1="P", attr2="Q", effect_size=by_text)
    said = association(dataclasses.replace(one, effect_size_by_word=by_word))
    assert tuple(word for word in re.findall(r"\w+", said) if word in "PQ") == sides


@pytest.mark.parametrize("opposite", [0.0005, 0.0099, 0.0101, 0.5, None, math.nan])
def test_the_other_way_is_named_where_the_opposite_is_significant(opposite: float | None, measured: Run) -> None:
    """An older run has a p-value near 1 and none of the opposite direction: 1 - p would leave out the split itself."""
    nothing = {"significant_by_word": False, "significant_by_word_holm": False, "p_value_by_word": 0.9921}
    sizes = {"effect_size": -1.2, "effect_size_by_word": -1.2}
    one = dataclasses.replace(measured.results[0], **nothing, **sizes, p_value_by_word_opposite=opposite)
    expected = [one] if opposite is not None and opposite <= measured.manifest.settings.alpha == 0.01 else []
    assert other_way([one], 0.01) == expected
    assert len(named(one, run=measured)) == len(expected)


def test_a_test_turned_round_is_told_by_its_direction(tmp_path: Path) -> None:
    """Insects as the first targets: the other way, whether one-sided or two-sided, and nothing that was found."""
    words = {
        "X": ["ant", "spider", "fly", "mosquito", "cockroach", "wasp", "moth", "beetle"],
        "Y": ["rose", "lily", "tulip", "daisy", "orchid", "violet", "daffodil", "iris"],
        "A": ["love", "peace", "happy", "joy", "friend", "wonderful"],
        "B": ["hatred", "war", "agony", "terrible", "evil", "nasty"],
    }
    concepts = "".join(f'[concepts.{role}]\nlabel = "L{role}"\nwords = {given!r}\n' for role, given in words.items())
    roles = "".join(f'{role} = "{role}"\n' for role in words)
    source = '[source]\nname = "own"\ncitation = "own"\nlicence = "own"\nversion = "1"\n'
    path = tmp_path / "own.toml"
    path.write_text(f'{source}{concepts}[tests.turned]\ntitle = "turned"\n{roles}')
    for alternative in ("greater", "two-sided"):
        run = biassay.run("glove", tests=str(path), alternative=alternative, cache=tmp_path / "vectors")
        (r,), (found,) = run.results, summary(run)
        assert bool(r.significant_by_word) is (alternative == "two-sided")
        assert found_by_word(run.results) == found_by_text(run.results) == []
        assert other_way(run.results, run.manifest.settings.alpha) == [r]
        assert len(found.points) == 1


def test_only_effects_of_the_sign_that_is_looked_for_are_counted(measured: Run) -> None:
    """Over contexts p-values are always two-sided."""
    one = next(r for r in measured.results if r.significant_by_word_holm and r.significant_holm)
    rows = [dataclasses.replace(one, effect_size=size, effect_size_by_word=size) for size in (1.2, 0.4, -0.26)]
    for corrected in (False, True):
        assert found_by_word(rows, corrected=corrected) == found_by_text(rows, corrected=corrected) == rows[:2]
    assert other_way(rows, one.alpha) == rows[2:]


def test_of_very_many_models_one_statement_is_made(measured: Run) -> None:
    one = next(r for r in measured.results if r.significant_by_word_holm)
    rows = tuple(dataclasses.replace(one, model=f"m{i}", effect_size=0.1 * i) for i in range(13))
    (found,) = summary(with_rows(measured, rows))
    (point,) = found.points
    assert "0.60" in point  # the median
    assert len(summary(with_rows(measured, rows[:12]))) == 12


def test_a_test_without_words_is_not_counted_by_word(measured: Run) -> None:
    none = {f.name: None for f in dataclasses.fields(Result) if "by_word" in f.name}
    first, second = [r for r in measured.results if r.significant_by_word_holm and r.significant_holm][:2]
    wordless = dataclasses.replace(second, **none, associations={})
    assert known_by_word([first, wordless]) == found_by_word([first, wordless]) == [first]
    (told,) = summary(with_rows(measured, (wordless,)))
    assert wordless.test in told.text


def test_checks_of_the_method_are_counted_apart(measured: Run) -> None:
    one = measured.results[0]
    made = [("method", True, True), ("method", True, False), ("method", False, False)]
    made += [("people", True, True), (None, True, True)]
    rows = tuple(
        dataclasses.replace(one, test=f"t{i}", about=about, significant_by_word=a, significant_by_word_holm=b)
        for i, (about, a, b) in enumerate(made)
    )
    (told,) = summary(with_rows(measured, rows))
    (apart,) = [sentence for sentence in told.text.split(". ") if "checks of the method" in sentence]
    assert re.findall(r"\d", apart) == ["2", "1"]
    (told,) = summary(with_rows(measured, rows[3:]))
    assert "checks of the method" not in told.text


def test_a_label_names_the_options(measured: Run) -> None:
    folded = dataclasses.replace(measured.results[0], options="case=fold")
    assert list(model_labels(with_rows(measured, (folded,))).values()) == ["glove (case=fold)"]
    plain = dataclasses.replace(measured.results[0], options="")
    other = dataclasses.replace(plain, model_revision="another")
    assert list(model_labels(with_rows(measured, (plain, other))).values()) == ["glove", "glove #2"]
    second = dataclasses.replace(plain, model="glove #2")  # the name that a run has given
    together = model_labels(with_rows(measured, (plain, other, second)))
    assert list(together.values()) == ["glove", "glove #3", "glove #2"]
