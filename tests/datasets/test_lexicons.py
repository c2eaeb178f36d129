"""Lexicons: bundled lists and files of the user."""

from __future__ import annotations

from pathlib import Path

import pytest

from biassay.datasets.lexicons import lexicon_names, load_lexicon, read_lexicon
from biassay.errors import StimulusError, UnknownNameError

FILE = """
title = "words of travel"
measures = "Share of words about travel."
weakness = "None known."
language = "en"
words = ["travel*", "go", "on the road"]

[source]
name = "own"
citation = "Written for this test"
licence = "Apache-2.0"
version = "1"
"""


def read(folder: Path, text: str):  # type: ignore[no-untyped-def]
    path = folder / "travel.toml"
    path.write_text(text, encoding="utf-8")
    return read_lexicon(path)


def test_bundled_lexicons_state_source_and_licence() -> None:
    assert len(lexicon_names()) == 8
    for name in lexicon_names():
        lexicon = load_lexicon(name)
        assert lexicon.name == name
        assert lexicon.source.licence.startswith("MIT licence (github.com/")
        assert lexicon.source.doi
        assert lexicon.weakness


@pytest.mark.parametrize(
    ("name", "n", "some"),
    [
        ("agentic", 10, "outspoken*"),
        ("communal", 12, "nurtur*"),
        ("standout", 16, "excellen*"),
        ("grindstone", 21, "assiduous*"),
        ("ability", 30, "adroit*"),
        ("hedging", 99, "on the whole"),
        ("masculine", 51, "self-relian*"),
        ("feminine", 48, "flatterable*"),
    ],
)
def test_bundled_lexicons_have_the_words_of_their_source(name: str, n: int, some: str) -> None:
    words = load_lexicon(name).words
    assert (len(words), some in words) == (n, True)


def test_words_match_whole_or_by_their_beginning(tmp_path: Path) -> None:
    lexicon = read(tmp_path, FILE)
    assert (lexicon.name, lexicon.phrases) == ("travel", (("on", "the", "road"),))
    vocabulary = {"travel", "travelling", "retravel", "go", "going", "well-travelled", "go-between", "road"}
    assert lexicon.select(vocabulary) == {"travel", "travelling", "go", "well-travelled", "go-between"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"go"', '"Go"', r"travel.toml: line 6: field words\[1\]: the word 'Go' has capitals; write it in lower case"),
        ('"go"', '"g*o"', r"a star is allowed at the end of a word only, got 'g\*o'"),
        ('"on the road"', '"on the road*"', r"a phrase cannot have a star, got 'on the road\*'; list its forms"),
        ('"go"', '"travel*"', r"the word 'travel\*' appears twice"),
        ('weakness = "None known."', "", "the field 'weakness' is missing"),
        ('version = "1"', "", "field source: the field 'version' is missing"),
        ("language", "langauge", "field langauge: unknown field; did you mean 'language'"),
        ("words = [", "words = ", "not valid TOML"),
    ],
)
def test_mistakes_name_line_and_field(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(StimulusError, match=message):
        read(tmp_path, FILE.replace(old, new))


def test_an_unknown_lexicon_is_suggested() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'agentic'"):
        load_lexicon("agentc")
