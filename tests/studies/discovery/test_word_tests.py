"""What becomes of a discovery: lost names and words, folders, and tests made of the words found."""

from __future__ import annotations

import csv
import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import biassay
from biassay.datasets.catalogue import load_tests, select_grouping
from biassay.datasets.stimulus_files import to_sent_bias, to_toml
from biassay.errors import MeasurementError, StimulusError, UnknownNameError, UsageError
from biassay.prompts.sentences import get_given_texts
from biassay.studies.discovery.results import DUAL_USE, get_group_view
from biassay.studies.discovery.word_tests import CIRCULAR, add_fingerprint, choose_opposing_group, make_tests

from . import planted_words as made_up
from .planted_words import GROUPS, NAMES, TABLE, WORDS, discovered, planted, write_groups, write_vectors

BOTH = ["red-women", "blue-men"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planted(tmp_path_factory.mktemp("found"))


@pytest.fixture(scope="module")
def found(place: Path) -> biassay.Run:
    return discovered(place, BOTH, threshold=1.3)


@pytest.mark.parametrize("compare", ["any", "every"])
def test_a_word_at_right_angles_to_all_names_has_no_score_and_no_p_value(compare: Any, tmp_path: Path) -> None:
    made = discovered(made_up.with_a_word_aside(tmp_path), compare=compare)
    word = made.results[-1]
    assert (word.word, word.effect_size) == ("aside", None)
    assert {*word.scores.values(), *word.constituents.values()} == {None}
    assert word.p_value is word.p_adjusted is word.excess_p_value is word.excess_p_adjusted is None
    assert [word.associated, word.eibd, word.emergent] == [False] * 3
    assert biassay.load(made.save(tmp_path / "out")) == made
    p = [w.p_value for w in made.results[:-1]]
    largest = max(value for value in p if value is not None)
    # Corrected over the words that have a p-value: of the largest the rank is their number.
    assert made.results[p.index(largest)].p_adjusted == pytest.approx(largest)


def words_of(found: biassay.Run, group: str, against: str, kind: str) -> list[str]:
    """Words found of a group that are above its threshold against another one, best first."""
    findings = get_group_view(found, group)
    shown = [(-word.scores[against], word.word) for word in findings.words if getattr(word, kind)]
    limit = findings.row.threshold if kind == "associated" else findings.row.threshold_emergent
    return [word for score, word in sorted(shown) if -score > limit]


@pytest.mark.parametrize("size", [4, 50])
@pytest.mark.parametrize("against", ["blue-men", "red-men"])
def test_the_test_written_loads_and_its_sides_share_no_word(
    size: int, against: str, place: Path, tmp_path: Path
) -> None:
    found = discovered(place, ["red-women", against], threshold=1.3 if against == "blue-men" else 1.2, alpha=0.3)
    path = tmp_path / "test.toml"
    path.write_text(to_toml(*make_tests(found, "red-women", against, size)))
    tests = load_tests(path)
    # The four words that are closest to red women rather than to blue men are all emergent: no second test of these.
    kinds = ("associated",) if (size, against) == (4, "blue-men") else ("associated", "emergent")
    assert [test.name for test in tests] == [f"red-women-{kind}" for kind in kinds]
    theirs = words_of(found, against, "red-women", "associated")
    for test, kind in zip(tests, kinds, strict=True):
        assert test.A.words == tuple(words_of(found, "red-women", against, kind)[:size])
        assert test.B.words == tuple(theirs[:size])
        assert (test.X.words, test.Y.words) == (tuple(NAMES["red-women"]), tuple(NAMES[against]))
        assert DUAL_USE in str(test.source.note)
        assert CIRCULAR in str(test.source.note)
        assert str(found.manifest.models[0].revision) in test.source.citation
    # What is as close to both, and was found because of a third group, is in no test of the two.
    both = ("both",) if against == "blue-men" else ("red",)
    assert [w for w in get_group_view(found, "red-women").words if w.associated and w.word.startswith(both)]
    assert not [word for test in tests for word in (*test.A.words, *test.B.words) if word.startswith(both)]
    run = biassay.run(f"vectors:{place / 'v.txt'}", tests=str(path))
    assert [r.status for r in run.results] == ["measured"] * len(tests)
    assert all(r.effect_size > 1.5 for r in run.results)  # the words were chosen for it


def test_the_other_group_of_a_test(place: Path, tmp_path: Path) -> None:
    own = select_grouping(str(place / "own.toml"))
    with pytest.raises(UsageError, match="--against"):
        choose_opposing_group(own, "red-women", None)
    with pytest.raises(UsageError, match="both are 'red-men'"):
        choose_opposing_group(own, "red-men", "red-men")
    with pytest.raises(UnknownNameError, match="'blue-man'; did you mean 'blue-men'"):
        choose_opposing_group(own, "red-women", "blue-man")
    path = write_groups(tmp_path / "with.toml", more='[grouping]\nagainst = "red-men"\n')
    assert choose_opposing_group(select_grouping(str(path)), "red-women", None) == "red-men"
    assert choose_opposing_group(select_grouping(str(path)), "red-women", "blue-men") == "blue-men"


def test_results_tsv_has_a_column_for_every_group_and_pair_of_categories(place: Path, tmp_path: Path) -> None:
    made = discovered(place, ["red-women", "blue-women"], out=tmp_path / "out")
    with (tmp_path / "out" / "results.tsv").open(newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t")
    assert header == [
        *("model", "options", "group", "word", "effect_size", "p_value", "p_adjusted"),
        *("excess_p_value", "excess_p_adjusted"),
        *("associated", "eibd", "emergent", *(f"against {group}" for group in GROUPS)),
        *("colour: red / blue", "gender: women / men", "colour: blue / red"),
    ]
    assert len(rows) == len(made.results) == 2 * len(WORDS)
    for row, word in zip(rows, made.results, strict=True):
        cells = dict(zip(header, row, strict=True))
        assert (cells["model"], cells["options"]) == ("vectors:v.txt", "case=keep")
        assert (cells["group"], cells["word"]) == (word.group, word.word)
        assert float(cells["effect_size"]) == word.effect_size
        assert float(cells["excess_p_adjusted"]) == word.excess_p_adjusted
        assert cells["associated"] == str(word.associated).lower()
        red = word.group == "red-women"
        assert cells[f"against {word.group}"] == cells["colour: blue / red" if red else "colour: red / blue"] == ""
        assert {name: float(cells[f"against {name}"]) for name in word.scores} == word.scores
        assert {name: float(cells[name]) for name in word.constituents} == word.constituents


@pytest.mark.parametrize("odd", ["\u00a0word", "\u3000word", "word\x7f", "\u200bword"])
def test_odd_words_of_a_vocabulary_do_not_spoil_the_test_written(odd: str, tmp_path: Path) -> None:
    write_vectors(tmp_path / "v.txt", TABLE | {odd: TABLE["blossom0"] + TABLE["blossom1"]})
    write_groups(tmp_path / "own.toml")
    made = discovered(tmp_path, BOTH, threshold=1.3)
    assert odd in [w.word for w in get_group_view(made, "red-women").words if w.associated]
    path = tmp_path / "test.toml"
    path.write_text(to_toml(*make_tests(made, BOTH[0], BOTH[1], 50)))
    assert not [test for test in load_tests(path) if odd in test.A.words]
    assert len(load_tests(path)) == 2


def test_written_tests_hold_the_searched_model_and_claim_nothing_on_it(place: Path, tmp_path: Path) -> None:
    found = discovered(place, ["red-women", "blue-men"], threshold=1.3, alpha=0.3)
    path = tmp_path / "test.toml"
    path.write_text(to_toml(*make_tests(found, "red-women", "blue-men", 50)))
    run = biassay.run(f"vectors:{place / 'v.txt'}", tests=str(path))
    assert {row.searched for row in run.results} == {True}
    assert {row.p_value for row in run.results} == {None}


@pytest.mark.parametrize("form", ["toml", "json"])
def test_a_noisy_copy_of_the_searched_model_is_described_and_an_unrelated_one_tested(
    form: str, place: Path, tmp_path: Path
) -> None:
    found = discovered(place, BOTH, threshold=1.3, alpha=0.3)
    tests = add_fingerprint(make_tests(found, BOTH[0], BOTH[1], 50), biassay.open_encoder(f"vectors:{place / 'v.txt'}"))
    path = tmp_path / f"found.{form}"
    path.write_text(to_toml(*tests) if form == "toml" else to_sent_bias(tests[0], get_given_texts(tests[0])))
    rng = np.random.default_rng(7)
    noise = {word: rng.normal(size=len(vector)) for word, vector in TABLE.items()}
    models = {
        "noisy": {w: v + 0.1 * np.linalg.norm(v) * noise[w] / np.linalg.norm(noise[w]) for w, v in TABLE.items()},
        "unrelated": noise,
    }
    for name, table in models.items():
        write_vectors(tmp_path / name, table)
    run = biassay.run([f"{name}=vectors:{tmp_path / name}" for name in models], tests=str(path))
    rows = {row.model: row for row in run.results}
    noisy, unrelated = (rows[name] for name in models)
    assert noisy.searched
    assert noisy.searched_correlation > 0.95
    assert noisy.p_value is noisy.ci_low is None
    notes = [finding.notes for finding in run.findings() if finding.model == "noisy"]
    assert any("a copy or descendant of" in note for note in notes[0])
    assert (unrelated.searched, unrelated.searched_correlation) == (False, None)
    assert unrelated.p_value is not None
    (row, *_) = biassay.robustness(f"vectors:{tmp_path / 'noisy'}", tests=str(path)).results
    assert row.status == "skipped"
    assert "a copy or descendant of" in row.reason


def test_a_fingerprint_is_bounded_and_checked(place: Path, tmp_path: Path) -> None:
    found = discovered(place, BOTH, threshold=1.3, alpha=0.3)
    (test, *_) = add_fingerprint(
        make_tests(found, BOTH[0], BOTH[1], 50), biassay.open_encoder(f"vectors:{place / 'v.txt'}")
    )
    (fingerprint,) = test.source.fingerprints
    assert max(len(fingerprint.targets), len(fingerprint.attributes)) <= 24
    content = to_toml(test)
    path = tmp_path / "found.toml"
    for cosines, told in (("[[2.0]]", "one row per target"), ("5", "one row per target")):
        path.write_text(re.sub(r"(?m)^cosines = .*$", f"cosines = {cosines}", content))
        with pytest.raises(StimulusError, match=rf"source\.fingerprints\[0\]\.cosines: .*{told}"):
            load_tests(path)


def test_written_tests_state_the_clusters_of_names_and_the_language(place: Path) -> None:
    found = discovered(place, BOTH, threshold=1.3, alpha=0.3)
    pair = tuple(NAMES["red-women"][:2])
    inputs = dataclasses.replace(found.manifest.inputs, clusters={"red-women": (pair,)}, language="en")
    made = dataclasses.replace(found, manifest=dataclasses.replace(found.manifest, inputs=inputs))
    (test, *_) = make_tests(made, BOTH[0], BOTH[1], 12)
    assert (test.X.clusters, test.Y.clusters, test.language) == ((pair,), (), "en")
    assert select_grouping("guo2021-groups").source.language == "en"


def test_first_names_are_left_out_of_written_tests() -> None:
    groups = ["african-american-females", "european-american-males"]
    found = biassay.discover("glove", groups=groups, n_permutations=25_000)
    (test, *_) = make_tests(found, "african-american-females", "european-american-males", 50)
    theirs = {w.word for w in get_group_view(found, "european-american-males").words if w.associated}
    assert {"steven", "bruce"} <= theirs
    assert not {*test.A.words, *test.B.words} & {"steven", "bruce", "barry", "donald", "colin", "ken"}


def test_too_few_words_say_what_to_do(found: biassay.Run, place: Path) -> None:
    none = discovered(place, BOTH, threshold=1.95)
    with pytest.raises(MeasurementError, match="0 are associated with red-women and 0 with blue-men"):
        make_tests(none, BOTH[0], BOTH[1], 12)
    with pytest.raises(UsageError, match="got 1"):
        make_tests(found, BOTH[0], BOTH[1], 1)
