"""Finished texts of a file, and the words stated for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from biassay.datasets.catalogue import load_tests
from biassay.datasets.schema import GivenText
from biassay.errors import StimulusError
from biassay.prompts.sentences import get_assumed_words, hash_texts, make_texts

SENTENCES = {
    "targ1": ["This is Ann.", "Ann sings.", "This is Eve.", "Eve sings."],
    "targ2": ["This is Bob.", "Bob sings.", "This is Jim.", "Jim sings."],
    "attr1": ["It is new.", "It is old."],
    "attr2": ["It is near.", "It is far."],
}
WORDS = ["Ann", "Ann", "Eve", "Eve"]
SPANS = [[8, 11], [0, 3], [8, 11], [0, 3]]


def write(folder: Path, **more: Any) -> Path:
    """The sentences in the sent-bias form; ``more`` are further fields of the first set."""
    content: dict[str, dict[str, Any]] = {key: {"category": key, "examples": SENTENCES[key]} for key in SENTENCES}
    content["targ1"] |= more
    path = folder / "own.json"
    path.write_text(json.dumps(content))
    return path


def test_words_and_their_places_are_taken_as_told(tmp_path: Path) -> None:
    (test,) = load_tests(write(tmp_path, words=WORDS, spans=SPANS))
    assert test.X.words == ("Ann", "Eve")
    assert test.X.given[1] == GivenText("Ann sings.", "Ann", (0, 3))
    assert [(t.stimulus, t.form) for t in make_texts(test).X] == [(word, word) for word in WORDS]
    assert sorted(get_assumed_words(test)) == ["A", "B", "Y"]
    assert not test.has_known_target_words  # those of Y are not told


def test_where_nothing_is_told_the_place_is_found_and_the_word_is_not(tmp_path: Path) -> None:
    (test,) = load_tests(write(tmp_path))
    assert test.level == "sentence"
    assert [(t.stimulus, t.form) for t in make_texts(test).X] == list(zip(SENTENCES["targ1"], WORDS, strict=True))
    assert get_assumed_words(test) == {
        "X": ("Ann", "Eve"),
        "Y": ("Bob", "Jim"),
        "A": ("new", "old"),
        "B": ("near", "far"),
    }


def test_what_is_told_is_part_of_the_fingerprint(tmp_path: Path) -> None:
    spans = [[0, 4], *SPANS[1:]]
    told: list[dict[str, Any]] = [{}, {"words": WORDS}, *({"words": WORDS, "spans": own} for own in (SPANS, spans))]
    assert len({hash_texts(load_tests(write(tmp_path, **more))[0]) for more in told}) == 4


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"words": WORDS[:3]}, r"field targ1\.words: .* each of the 4 examples, got 3"),
        ({"words": "Ann"}, r"field targ1\.words: expected a list of texts"),
        ({"words": ["Ann"] * 4}, r"field targ1\.words: .*at least two words, got only 'Ann'"),
        ({"spans": SPANS[:3]}, r"field targ1\.spans: .* each of the 4 examples, got 3"),
        ({"spans": 3}, r"field targ1\.spans: expected a list"),
        ({"spans": [[8, 99], *SPANS[1:]]}, r"field targ1\.spans: .*'This is Ann\.', got list \[8, 99\]"),
        ({"spans": [[8, 8], *SPANS[1:]]}, r"targ1\.spans"),
        ({"spans": [[-4, 2], *SPANS[1:]]}, r"targ1\.spans"),
        ({"spans": [[True, 2], *SPANS[1:]]}, r"targ1\.spans"),
        ({"spans": ["8-11", *SPANS[1:]]}, r"targ1\.spans"),
        ({"examples": [SENTENCES["targ1"][0]] * 2}, r"field targ1\.examples: .*'This is Ann\.' appears twice"),
        ({"spams": SPANS}, r"field targ1\.spams: unknown field; did you mean 'spans'"),
    ],
)
def test_faults_are_named(tmp_path: Path, more: dict[str, Any], message: str) -> None:
    path = write(tmp_path, **more)
    with pytest.raises(StimulusError, match=message) as caught:
        load_tests(path)
    assert str(path) in str(caught.value)


def test_finished_texts_take_no_templates(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(
        '[concepts.x]\nexamples = ["I see Ann.", "I see Eve."]\n[tests.t]\nX = "x"\nY = "flowers"\nA = "pleasant"\n'
        'B = "unpleasant"\ntargets = "bleached"\n'
    )
    with pytest.raises(StimulusError, match="'x' consists of finished texts"):
        load_tests(path)
