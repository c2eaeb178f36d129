"""The words a person reads: p-values, effects, the summary, headlines and labels."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest
from tests.report.pages import Page
from tests.studies.showing import card_of as model_card

import biassay
from biassay.report.formats import format_p, size_word
from biassay.results.intervals import interval_of
from biassay.results.labels import model_labels
from biassay.results.records import Manifest, Result
from biassay.results.run import Run
from biassay.studies.associations.words import headline, p_by_text, p_by_word, summary
from biassay.studies.associations.words_contexts import by_samples
from biassay.studies.presenters import render_report


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
    page = Page(render_report(Run(measured.manifest, (dataclasses.replace(few, significant=True),))))
    (told,) = [item for item in page.items if item.startswith(f"{few.test} on glove: p by text")]
    assert told.endswith("by word 0.014‡")
    assert "(‡: there are too few words to tell)" in page.text


def test_the_summary_counts_what_was_found(measured: Run, page: Page) -> None:
    (found,) = summary(measured)
    rows = [r for r in measured.results if r.status == "measured"]
    by_word, corrected, by_text, by_text_corrected = (
        sum(bool(getattr(r, f"significant{f}")) for r in rows) for f in ("_by_word", "_by_word_holm", "", "_holm")
    )
    counts = f"{by_word} of {len(rows)} tests found the association they look for at p <= 0.01, {corrected} of them"
    assert found.text.startswith(f"glove: with words as observations, {counts} also after correction")
    assert found.about == "glove"
    assert (
        f"{by_text} of {len(rows)} tests found their association, {by_text_corrected} after correction." in found.text
    )
    refused = ", ".join(r.test for r in measured.results if r not in rows)
    assert found.text.endswith(f" Not measured: {refused}.")
    largest = max((r for r in rows if r.significant_by_word_holm), key=lambda r: abs(r.effect_size_by_word or 0))
    assert f", {largest.effect_size_by_word:.2f} ({largest.test}, 95% " in found.points[0]
    for line in found.points:
        assert line in page.items
    assert found.text in page.text
    assert f"<li><strong>{found.about}</strong>: with words as observations" in page.source


def named(*results: Result, run: Run) -> tuple[str, ...]:
    """The associations that a summary of these results names."""
    (found,) = summary(Run(run.manifest, results))
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
    wordless = dataclasses.replace(standing[0], leaning={})
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
    *points, more = named(*rows, run=measured)
    assert more == "and 2 more"
    for point, size in zip(points, sorted(sizes, key=abs, reverse=True), strict=False):
        assert f": {size_word(size)}, {size:.2f} (t{sizes.index(size)}" in point
    assert len(points) == 8
    before = [dataclasses.replace(r, significant_by_word_holm=False) for r in rows[:2]]
    assert [p.partition(": ")[0] for p in named(*before, run=measured)] == ["before correction only"] * 2


def test_the_side_that_is_named_is_that_of_the_effect_by_word(measured: Run) -> None:
    """It is the effect that stands beside it; that by text may have another sign."""
    one = dataclasses.replace(next(r for r in measured.results if r.significant_by_word_holm), attr1="P", attr2="Q")
    for by_word, sides in ((0.9, ("P", "Q")), (-0.9, ("Q", "P"))):
        for by_text in (0.1, -0.1):
            (point,) = named(dataclasses.replace(one, effect_size=by_text, effect_size_by_word=by_word), run=measured)
            assert f" lean to {sides[0]}, " in point
            assert f" to {sides[1]}: large, {by_word:.2f} " in point


def test_words_are_shown_where_the_attributes_are_named_after_the_targets(measured: Run) -> None:
    """In the order in which the sentence names them."""
    one = next(r for r in measured.results if r.significant_by_word_holm)
    a, b = (", ".join(list(one.leaning[role])[:3]) for role in "AB")
    own = dataclasses.replace(one, targ1="Cats", targ2="Dogs", attr1="Traits of Cats", attr2="Traits of Dogs")
    for size, shown in ((1.2, f"{a}; {b}"), (-1.2, f"{b}; {a}")):
        (point,) = named(dataclasses.replace(own, effect_size=size, effect_size_by_word=size), run=measured)
        assert f" (such as {shown}): large, {size:.2f} " in point
    assert "such as" not in "".join(named(one, run=measured))


@pytest.mark.parametrize("opposite", [0.0005, 0.0099, 0.0101, 0.5, None, math.nan])
def test_the_other_way_is_named_where_the_opposite_is_significant(opposite: float | None, measured: Run) -> None:
    """An older run has a p-value near 1 and none of the opposite direction: 1 - p would leave out the split itself."""
    nothing = {"significant_by_word": False, "significant_by_word_holm": False, "p_value_by_word": 0.9921}
    sizes = {"effect_size": -1.2, "effect_size_by_word": -1.2}
    one = dataclasses.replace(measured.results[0], **nothing, **sizes, p_value_by_word_opposite=opposite)
    points = named(one, run=measured)
    assert len(points) == (opposite is not None and opposite <= measured.manifest.alpha == 0.01)
    for point in points:
        assert point.startswith("the other way, which these tests do not look for: ")
        assert f"Male Names lean to Family, Female Names to Career: large, -1.20 ({one.test}" in point


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
        (point,) = found.points
        said = f"LX lean to LB, LY to LA: large, {r.effect_size_by_word:.2f} (turned, 95% "
        assert point.startswith(f"the other way, which these tests do not look for: {said}")
        assert "0 of 1 test found" in found.text
        assert "0 of 1 test found their association, 0 after" in found.text
        assert "0 of 1 test found" in model_card(run)
        assert f"the other way, which these tests do not look for: {r.title}: LX lean to LB" in model_card(run)


def test_only_effects_of_the_sign_that_is_looked_for_are_counted(measured: Run) -> None:
    """Over very many models too, and over contexts, where p-values are always two-sided."""
    one = next(r for r in measured.results if r.significant_by_word_holm and r.significant_holm)
    sizes = [1.2, 0.4, -0.26] * 5
    rows = tuple(
        dataclasses.replace(one, model=f"m{i}", effect_size=size, effect_size_by_word=size)
        for i, size in enumerate(sizes)
    )
    (told,) = summary(Run(measured.manifest, rows))
    assert "10 of 15 results found" in told.text
    assert "5 found the opposite" in told.text
    assert len(told.points) == 1
    assert "in 10 of 15 models, median effect 0.80" in told.points[0]
    assert " 2 of 3." in by_samples(rows[:3])


def test_a_test_without_words_is_not_counted_by_word(measured: Run) -> None:
    none = {f.name: None for f in dataclasses.fields(Result) if "by_word" in f.name}
    first, second = [r for r in measured.results if r.significant_by_word_holm and r.significant_holm][:2]
    wordless = dataclasses.replace(second, **none, leaning={})
    for rows, counts in (((first, wordless), "1 of 1 test found"), ((wordless,), None)):
        run = Run(measured.manifest, rows)
        (told,) = summary(run)
        card = model_card(run).replace("\\_", "_")
        for text in (told.text, card):
            assert f"p by word was not computed for {wordless.test}:" in text
            assert counts is None or counts in text
            assert (" found the association" in text) is (counts is not None)
        assert f"they were not computed: effect_size_by_word of {wordless.test}, p_value_by_word of" in card
        assert "finite" not in card


def test_checks_of_the_method_are_counted_apart(measured: Run) -> None:
    one = measured.results[0]
    made = [("method", True, True), ("method", True, False), ("method", False, False)]
    made += [("people", True, True), (None, True, True)]
    rows = tuple(
        dataclasses.replace(one, test=f"t{i}", about=about, significant_by_word=a, significant_by_word_holm=b)
        for i, (about, a, b) in enumerate(made)
    )
    (told,) = summary(Run(measured.manifest, rows))
    assert "4 of 5 tests" in told.text
    assert "2 and 1 of these are checks" in told.text
    (told,) = summary(Run(measured.manifest, rows[3:]))
    assert "checks" not in told.text


def test_the_headline_counts_tests_and_models(measured: Run) -> None:
    made: Manifest = dataclasses.replace(measured.manifest, alpha=0.05)
    assert headline(Run(made, measured.results)) == "6 tests on 1 model, protocol exact, alpha 0.05"


def test_the_headline_names_all_protocols_of_the_results(measured: Run) -> None:
    made = dataclasses.replace(measured.manifest, protocol="may2019")
    assert headline(Run(made)) == "0 tests on 0 models, protocol may2019, alpha 0.01"
    first = dataclasses.replace(measured.results[0], protocol="may2019")
    told = headline(Run(made, (first, *measured.results[1:])))
    assert told == "6 tests on 1 model, protocol may2019 and exact, alpha 0.01"


def test_a_label_names_the_options(measured: Run) -> None:
    folded = dataclasses.replace(measured.results[0], options="case=fold")
    assert list(model_labels(Run(measured.manifest, (folded,))).values()) == ["glove (case=fold)"]
    plain = dataclasses.replace(measured.results[0], options="")
    other = dataclasses.replace(plain, model_revision="another")
    assert list(model_labels(Run(measured.manifest, (plain, other))).values()) == ["glove", "glove #2"]
    second = dataclasses.replace(plain, model="glove #2")  # the name that a run has given
    together = model_labels(Run(measured.manifest, (plain, other, second)))
    assert list(together.values()) == ["glove", "glove #3", "glove #2"]
