"""What a search is given: names and words that a model does not know, settings, files and folders that are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import biassay
from biassay.errors import InsufficientVocabularyError, MeasurementError, StimulusError, UsageError
from biassay.studies.discovery.results import list_group_views

from . import planted_words as made_up
from .planted_words import ALL_RATED, NAMES, discovered, planted


def test_unknown_names_above_the_limit_are_refused(tmp_path: Path) -> None:
    place = planted(tmp_path, "redmen2", "redmen5", "redmen7")
    with pytest.raises(InsufficientVocabularyError, match=r"3 of 8 names of red-men .*--max-unknown"):
        discovered(place, out=tmp_path / "refused")
    assert not (tmp_path / "refused").exists()
    (tmp_path / "whole").mkdir()
    both = {"refused": f"vectors:{place / 'v.txt'}", "whole": f"vectors:{planted(tmp_path / 'whole') / 'v.txt'}"}
    run = biassay.discover(both, "red-women", grouping=place / "own.toml", n_permutations=9, out=tmp_path / "two")
    assert {row.model for row in run.results} == {"whole"}
    assert [record.skipped is None for record in run.manifest.models] == [False, True]
    assert biassay.load(tmp_path / "two") == run
    with pytest.raises(MeasurementError, match=r"^refused, .* not measured: .*3 of 8"):
        biassay.compare(run)
    (row,) = discovered(place, max_unknown=0.375).tables["models"]
    assert row.oov_names["red-men"] == ("redmen2", "redmen5", "redmen7")


def test_lost_words_are_listed_those_rated_apart(tmp_path: Path) -> None:
    place = planted(tmp_path, "random1", "blossom0", "random9")
    asked = ["random5", "nowhere", "random9", "blossom0", "hammer2"]
    made = discovered(place, "red-men", words=asked)
    (row,), (group,) = made.tables["models"], list_group_views(made)
    assert row.oov_validation == ("blossom0", "random1")
    assert row.oov_words == ("nowhere", "random9", "blossom0")
    assert made.manifest.models[0].oov_words == ("blossom0", "nowhere", "random1", "random9")
    assert group.row.n_words == 2
    assert {w.word for w in group.validated} == ALL_RATED - {"blossom0", "random1"}
    (whole,) = discovered(place).tables["models"]
    assert (whole.oov_validation, whole.oov_words) == (("blossom0", "random1"), ())
    with pytest.raises(InsufficientVocabularyError, match="no word is left"):
        discovered(place, words=["nowhere", "redwomen0"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"group": ()}, "red-women, red-men, blue-women, blue-men"),
        ({"group": "red-woman"}, "'red-women'"),
        ({"rule": "some"}, "rule 'some'"),
        ({"compare": "all"}, "compare 'all'"),
        ({"alpha": 0.0}, r"alpha .*got 0.0"),
        ({"alpha": float("nan")}, "alpha .*got nan"),
        ({"max_unknown": 1.1}, "max_unknown .*got 1.1"),
        ({"threshold": float("inf")}, "threshold .*got inf"),
        ({"n_permutations": 0}, "n_permutations .*got 0"),
        ({"keep": 0}, "keep .*got 0"),
        ({"seed": -1}, "seed .*got -1"),
        ({"words": []}, "no words"),
        ({"words": ["", ""]}, "no words"),
    ],
)
def test_settings_out_of_range_are_refused_before_anything_is_encoded(
    given: dict[str, Any], message: str, place: Path
) -> None:
    group = given.pop("group", "red-women")
    with pytest.raises(UsageError, match=message):
        biassay.discover(made_up.Untouched(), group, grouping=place / "own.toml", **given)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "no words; write one word per line"), (b" \n\n", "no words"), (b"a\n\xff", r"byte 2")],
)
def test_faults_of_a_file_of_words_are_named(content: bytes, message: str, place: Path, tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes(content)
    with pytest.raises(StimulusError, match=rf"words\.txt: .*{message}"):
        discovered(place, words=path)
    with pytest.raises(StimulusError, match=r"missing\.txt: cannot be read: No such file"):
        discovered(place, words=str(tmp_path / "missing.txt"))


def test_a_group_of_one_name_that_is_known_is_refused_at_any_limit(tmp_path: Path) -> None:
    place = planted(tmp_path, *NAMES["blue-women"][1:])
    with pytest.raises(InsufficientVocabularyError, match="7 of 8 names of blue-women"):
        discovered(place, max_unknown=1.0)
