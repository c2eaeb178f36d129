"""What becomes of a discovery: lost names and words, folders, and tests made of the words found."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import biassay
from biassay.errors import MeasurementError, RunFolderError, StimulusError, UnknownNameError, UsageError
from biassay.pipeline.common import Silent
from biassay.pipeline.found_tests import CIRCULAR, against_of, found_tests
from biassay.results.discovery import DUAL_USE, Discovery
from biassay.stimuli.catalogue import load_tests, select_grouping
from biassay.stimuli.export import to_toml

from . import planted_words as made_up
from .planted_words import ALL_RATED, GROUPS, NAMES, TABLE, WORDS, discovered, planted, write_groups, write_vectors

BOTH = ["red-women", "blue-men"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planted(tmp_path_factory.mktemp("found"))


@pytest.fixture(scope="module")
def found(place: Path) -> Discovery:
    return discovered(place, BOTH, threshold=1.3)


def test_lost_names_are_listed_and_left_out(tmp_path: Path) -> None:
    lost = ("redmen2", "redmen7")
    made = discovered(planted(tmp_path, *lost, "bluewomen0"))
    assert made.manifest.names_lost == {"red-women": (), "red-men": lost, "blue-women": ("bluewomen0",), "blue-men": ()}
    assert made.manifest.groups == {group: tuple(names) for group, names in NAMES.items()}
    own, other = NAMES["red-women"], [name for name in NAMES["red-men"] if name not in lost]
    unit = {word: v / np.linalg.norm(v) for word, v in ((w, x.astype(float)) for w, x in TABLE.items())}
    for word in made.results[0].words[:10]:
        cosines = [float(unit[word.word] @ unit[name]) for name in (*own, *other)]
        expected = (np.mean(cosines[:8]) - np.mean(cosines[8:])) / np.std(cosines, ddof=1)
        assert word.scores[0] == pytest.approx(expected, abs=1e-9)


def test_names_lost_above_the_limit_are_refused(tmp_path: Path) -> None:
    place = planted(tmp_path, "redmen2", "redmen5", "redmen7")
    message = r"does not know 3 of 8 names of red-men \(redmen2, redmen5, redmen7\); the limit is 34%, --max-lost"
    with pytest.raises(MeasurementError, match=message):
        discovered(place)
    assert discovered(place, max_lost=0.375).manifest.names_lost["red-men"] == ("redmen2", "redmen5", "redmen7")


def test_a_group_of_one_name_that_is_known_is_refused_at_any_limit(tmp_path: Path) -> None:
    place = planted(tmp_path, *NAMES["blue-women"][1:])
    with pytest.raises(MeasurementError, match=r"7 of 8 names of blue-women .*; at least two must be left"):
        discovered(place, max_lost=1.0)


def test_lost_words_are_listed_those_rated_apart(tmp_path: Path) -> None:
    place = planted(tmp_path, "random1", "blossom0", "random9")
    asked = ["random5", "nowhere", "random9", "blossom0", "hammer2"]
    made = discovered(place, "red-men", words=asked)
    assert made.manifest.validation_lost == ("blossom0", "random1")
    assert made.manifest.words_lost == ("nowhere", "random9", "blossom0")
    assert made.results[0].num_words == 2
    assert {w.word for w in made.results[0].validated} == ALL_RATED - {"blossom0", "random1"}
    whole = discovered(place).manifest
    assert (whole.validation_lost, whole.words_lost) == (("blossom0", "random1"), ())
    with pytest.raises(MeasurementError, match="no word was left to search: the model knows none of them, or they are"):
        discovered(place, words=["nowhere", "redwomen0"])


@pytest.mark.parametrize("compare", ["any", "every"])
def test_a_word_at_right_angles_to_all_names_has_no_score_and_no_p_value(compare: Any, tmp_path: Path) -> None:
    made = discovered(made_up.with_a_word_aside(tmp_path), compare=compare)
    word = made.results[0].words[-1]
    assert (word.word, word.score, word.scores, word.constituents) == ("aside", None, (None,) * 3, (None,) * 2)
    assert word.p_value is word.q_value is word.p_value_excess is word.q_value_excess is None
    assert [word.associated, word.eibd, word.emergent] == [False] * 3
    assert Discovery.load(made.save(tmp_path / "out")) == made
    p = [w.p_value for w in made.results[0].words[:-1]]
    largest = max(value for value in p if value is not None)
    # Corrected over the words that have a p-value: of the largest the rank is their number.
    assert made.results[0].words[p.index(largest)].q_value == pytest.approx(largest)


def words_of(found: Discovery, group: str, against: str, kind: str) -> list[str]:
    """Words found of a group that are above its threshold against another one, best first."""
    findings = found.of(group)
    place = [other for other in GROUPS if other != group].index(against)
    told = [(-word.scores[place], word.word) for word in findings.words if getattr(word, kind)]
    limit = findings.threshold if kind == "associated" else findings.threshold_emergent
    return [word for score, word in sorted(told) if -score > limit]


@pytest.mark.parametrize("size", [4, 50])
@pytest.mark.parametrize("against", ["blue-men", "red-men"])
def test_the_test_written_loads_and_its_sides_share_no_word(
    size: int, against: str, place: Path, tmp_path: Path
) -> None:
    found = discovered(place, ["red-women", against], threshold=1.3 if against == "blue-men" else 1.2, alpha=0.3)
    path = tmp_path / "test.toml"
    path.write_text(to_toml(*found_tests(found, "red-women", against, size)))
    tests = load_tests(path)
    # The four words that lean most to red women rather than to blue men are all emergent: no second test of these.
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
    # What leans to both as much, and was found because of a third group, is in no test of the two.
    both = ("both",) if against == "blue-men" else ("red",)
    assert [w for w in found.of("red-women").words if w.associated and w.word.startswith(both)]
    assert not [word for test in tests for word in (*test.A.words, *test.B.words) if word.startswith(both)]
    run = biassay.run(f"vectors:{place / 'v.txt'}", tests=str(path))
    assert [r.status for r in run.results] == ["measured"] * len(tests)
    assert all(r.effect_size > 1.5 for r in run.results)  # the words were chosen for it


def test_without_emergent_words_there_is_one_test(place: Path) -> None:
    made = discovered(place, BOTH, threshold=-1.5)  # every category of an associated word is above it
    assert [sum(w.emergent for w in f.words) for f in made.results] == [0, 0]
    assert [test.name for test in found_tests(made, *BOTH, 12)] == ["red-women-associated"]


def test_too_few_words_say_what_to_do(found: Discovery, place: Path) -> None:
    none = discovered(place, BOTH, threshold=1.95)
    message = (
        r"two words a side that lean .*: 0 were found of red-women and 0 of blue-men; .*--words.*--keep.*--threshold"
    )
    with pytest.raises(MeasurementError, match=message):
        found_tests(none, *BOTH, 12)
    with pytest.raises(UsageError, match="at least two words a side, got 1"):
        found_tests(found, *BOTH, 1)


def test_the_other_group_of_a_test(place: Path, tmp_path: Path) -> None:
    own = select_grouping(str(place / "own.toml"))
    with pytest.raises(UsageError, match=r"name it with --against \(one of red-men, blue-women, blue-men\)"):
        against_of(own, "red-women", None)
    with pytest.raises(UsageError, match="both are 'red-men'"):
        against_of(own, "red-men", "red-men")
    with pytest.raises(UnknownNameError, match="'blue-man'; did you mean 'blue-men'"):
        against_of(own, "red-women", "blue-man")
    path = write_groups(tmp_path / "with.toml", more='[grouping]\nagainst = "red-men"\n')
    assert against_of(select_grouping(str(path)), "red-women", None) == "red-men"
    assert against_of(select_grouping(str(path)), "red-women", "blue-men") == "blue-men"


def test_a_folder_loads_to_what_was_found(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    made = discovered(place, BOTH, out=out)
    assert {path.name for path in out.iterdir()} == {"manifest.json", "results.json", "results.tsv", "report.html"}
    assert biassay.Discovery.load(out) == made
    assert made.note == DUAL_USE
    assert DUAL_USE in (out / "results.json").read_text()
    manifest = made.manifest
    assert (manifest.kind, manifest.status, manifest.vocabulary) == ("discovery", "complete", "the words of the model")
    assert (manifest.permutations, manifest.alpha, manifest.seed, manifest.rule) == (499, 0.05, 0, "any")
    assert (manifest.threshold, manifest.compare, manifest.vocabulary_digest) == (None, "any", None)
    assert manifest.grouping_digest == select_grouping(str(place / "own.toml")).digest
    with pytest.raises(RunFolderError, match="holds another run"):
        made.save(out)


def test_results_tsv_has_a_column_for_every_group_and_pair_of_categories(place: Path, tmp_path: Path) -> None:
    made = discovered(place, ["red-women", "blue-women"], out=tmp_path / "out")
    with (tmp_path / "out" / "results.tsv").open(newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t")
    assert header == [
        *("model", "options", "group", "word", "score", "p_value", "q_value", "p_value_excess", "q_value_excess"),
        *("associated", "eibd", "emergent", *(f"against {group}" for group in GROUPS)),
        *("colour: red / blue", "gender: women / men", "colour: blue / red"),
    ]
    words = [(findings, word) for findings in made.results for word in findings.words]
    assert len(rows) == len(words) == 2 * len(WORDS)
    for row, (findings, word) in zip(rows, words, strict=True):
        cells = dict(zip(header, row, strict=True))
        assert (cells["model"], cells["options"]) == ("vectors:v.txt", "case=keep")
        assert (cells["group"], cells["word"]) == (findings.group, word.word)
        assert float(cells["score"]) == word.score
        assert float(cells["q_value_excess"]) == word.q_value_excess
        assert cells["associated"] == str(word.associated).lower()
        own, red = f"against {findings.group}", findings.group == "red-women"
        assert cells[own] == cells["colour: blue / red" if red else "colour: red / blue"] == ""
        against = [float(cells[f"against {group}"]) for group in GROUPS if group != findings.group]
        assert tuple(against) == word.scores
        pairs = [float(cells[pair]) for pair in ("colour: red / blue" if red else "colour: blue / red", header[-2])]
        assert tuple(pairs) == word.constituents


@pytest.mark.extras
def test_to_frame_has_the_columns_of_the_table(found: Discovery, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    frame = found.to_frame()
    header = (found.save(tmp_path / "out") / "results.tsv").read_text().splitlines()[0]
    assert list(frame.columns) == header.split("\t")
    assert len(frame) == 2 * len(WORDS)
    assert frame["score"].max() == max(word.score for f in found.results for word in f.words)


def test_folders_of_other_kinds_are_told_apart(found: Discovery, tmp_path: Path) -> None:
    found.save(tmp_path / "discovery")
    biassay.run("glove", tests="weat6", out=tmp_path / "run")
    with pytest.raises(RunFolderError, match="holds a run of kind 'discovery'; a run of 'associations' is needed"):
        biassay.Run.load(tmp_path / "discovery")
    with pytest.raises(RunFolderError, match="holds a run of kind 'associations'; a run of 'discovery' is needed"):
        Discovery.load(tmp_path / "run")
    with pytest.raises(RunFolderError, match=r"manifest\.json is missing"):
        Discovery.load(tmp_path)


def test_a_folder_that_holds_something_is_refused_before_anything_is_encoded(place: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunFolderError, match="not an empty folder"):
        biassay.discover(made_up.Untouched(), "red-men", groups=place / "own.toml", out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(MeasurementError, match="asked for"):  # it is the folder that was refused, not the model
        biassay.discover(made_up.Untouched(), "red-men", groups=place / "own.toml", out=tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"group": ()}, "name at least one group: red-women, red-men, blue-women, blue-men"),
        ({"group": "red-woman"}, "unknown group 'red-woman'; did you mean 'red-women'"),
        ({"rule": "some"}, "unknown rule 'some' .*one of any, all"),
        ({"compare": "all"}, "unknown compare 'all' .*one of any, every"),
        ({"alpha": 0.0}, "alpha must lie between 0 and 1, got 0.0"),
        ({"alpha": float("nan")}, "alpha must lie between 0 and 1, got nan"),
        ({"max_lost": 1.1}, "max_lost must lie between 0 and 1, got 1.1"),
        ({"threshold": float("inf")}, "the threshold must be a number, got inf"),
        ({"permutations": 0}, "permutations must be at least 1, got 0"),
        ({"keep": 0}, "keep must be at least 1, got 0"),
        ({"seed": -1}, "the seed must not be negative, got -1"),
        ({"words": []}, "a list of words: there are no words"),
        ({"words": ["", ""]}, "a list of words: there are no words"),
    ],
)
def test_settings_out_of_range_are_refused_before_anything_is_encoded(
    given: dict[str, object], message: str, place: Path
) -> None:
    group = given.pop("group", "red-women")
    with pytest.raises(UsageError, match=message):
        biassay.discover(made_up.Untouched(), group, groups=place / "own.toml", **given)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "there are no words; expected one a line"), (b" \n\n", "there are no words"), (b"a\n\xff", r"byte 2")],
)
def test_faults_of_a_file_of_words_are_named(content: bytes, message: str, place: Path, tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes(content)
    with pytest.raises(StimulusError, match=rf"words\.txt: .*{message}"):
        discovered(place, words=path)
    with pytest.raises(StimulusError, match=r"missing\.txt: cannot be read: No such file"):
        discovered(place, words=str(tmp_path / "missing.txt"))


def test_a_rated_word_without_a_score_survives_saving(tmp_path: Path) -> None:
    made = discovered(made_up.with_a_word_aside(tmp_path, rated={"red-women": {"biases": ["blossom0", "aside"]}}))
    assert made.results[0].validated[1].scores == (None, None, None)
    assert made.results[0].validated[1].constituents == (None, None)
    assert Discovery.load(made.save(tmp_path / "out")) == made


def test_categories_with_the_same_values_keep_their_own_columns(place: Path, tmp_path: Path) -> None:
    answers = {"red": "yes", "blue": "no", "women": "yes", "men": "no"}
    parts = [
        f'[groups.{group}]\nbelongs = {{ parent = "{answers[one]}", student = "{answers[two]}" }}\n'
        f"names = {json.dumps(NAMES[group])}\n"
        for group, (one, two) in GROUPS.items()
    ]
    (tmp_path / "yes.toml").write_text("\n".join(parts))
    made = discovered(place, groups=tmp_path / "yes.toml", out=tmp_path / "out")
    first = (tmp_path / "out" / "results.tsv").read_text().splitlines()[1].split("\t")
    assert tuple(map(float, first[-2:])) == made.results[0].words[0].constituents


@pytest.mark.parametrize("odd", ["\u00a0word", "\u3000word", "word\x7f", "\u200bword"])
def test_odd_words_of_a_vocabulary_do_not_spoil_the_test_written(odd: str, tmp_path: Path) -> None:
    write_vectors(tmp_path / "v.txt", TABLE | {odd: TABLE["blossom0"] + TABLE["blossom1"]})
    write_groups(tmp_path / "own.toml")
    made = discovered(tmp_path, BOTH, threshold=1.3)
    assert odd in [w.word for w in made.of("red-women").words if w.associated]
    path = tmp_path / "test.toml"
    path.write_text(to_toml(*found_tests(made, *BOTH, 50)))
    assert not [test for test in load_tests(path) if odd in test.A.words]
    assert len(load_tests(path)) == 2


def test_a_label_with_a_control_character_is_written_and_read(found: Discovery, tmp_path: Path) -> None:
    labels = {group: f"{group} \x7f \t \x1b" for group in GROUPS}
    made = Discovery(dataclasses.replace(found.manifest, labels=labels), found.results)
    (tmp_path / "test.toml").write_text(to_toml(*found_tests(made, *BOTH, 12)))
    assert "\x7f" not in (tmp_path / "test.toml").read_text()
    assert load_tests(tmp_path / "test.toml")[0].X.label == labels["red-women"]


def test_findings_of_a_group_that_was_not_asked_for(found: Discovery) -> None:
    with pytest.raises(
        UnknownNameError, match=r"did you mean 'red-women'\? \(groups that were looked at: red-women, blue"
    ):
        found.of("red-woman")
    with pytest.raises(UnknownNameError, match="unknown group 'red-men'"):
        found.of("red-men")


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("there", [False, True])
def test_a_search_that_ends_early_leaves_no_folder(error: Any, there: bool, place: Path, tmp_path: Path) -> None:
    class Stopping(Silent):
        def searching(self, *_: object) -> None:
            assert out.is_dir()  # made before the work
            raise error

    out = tmp_path / "out"
    if there:
        out.mkdir()
    with pytest.raises(error):
        discovered(place, out=out, listener=Stopping())
    assert list(tmp_path.rglob("*")) == ([out] if there else [])


def test_a_folder_that_cannot_be_made_is_told_before_the_work(place: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunFolderError, match=r"file/out: the folder cannot be made: Not a directory"):
        biassay.discover(made_up.Untouched(), "red-men", groups=place / "own.toml", out=tmp_path / "file" / "out")
