"""The compiled reading of lines against Python's own: what it calls clear, json reads in the same way."""

from __future__ import annotations

import json
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from biassay.texts.blocks import LONGEST
from biassay.texts.characters import STABLE, kinds
from biassay.texts.skimming import Skimmed, skim

pytestmark = pytest.mark.extras

letters = st.text(
    st.sampled_from('ab "\\/\n\t\x00\x1f\x7fé’中😀e\u0301\u0327가\u11a8\u212b\u0344[]{}:,') | st.characters(),
    max_size=20,
)
keys = st.sampled_from(["body", "bod", "body2", "", "a\\b", "é"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | letters,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
rows = st.dictionaries(keys, values, max_size=4) | st.fixed_dictionaries({"a": values, "body": letters, "z": values})
layouts = st.sampled_from([(", ", ": "), (",", ":"), (" , ", " :  "), ("\t,\r", ":\t")])


def documents(skimmed: Skimmed) -> list[bytes]:
    joined = skimmed.joined()
    return [joined.document(number) for number in range(len(joined))]


def as_json(line: bytes) -> bytes | None:
    """The document of a line by the book; None where there is none."""
    try:
        row = json.loads(line.decode())
        text = row["body"] or ""
        made = unicodedata.normalize("NFC", text).encode()
    except (ValueError, KeyError, TypeError):
        return None
    return b"" if made in (b"[deleted]", b"[removed]") else made


@settings(max_examples=500, deadline=None)
@given(
    st.lists(st.tuples(rows, st.booleans(), layouts), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 500), st.sampled_from([*b'"\\{}[]:,0-.eutn \x00\x80\xc3\xed\xf4'])), max_size=2),
    st.booleans(),
)
def test_json_lines(
    written: list[tuple[dict[str, object], bool, tuple[str, str]]], harms: list[tuple[int, int]], ended: bool
) -> None:
    """Lines as json writes them, with a byte or two of all changed."""
    lines = [json.dumps(row, ensure_ascii=ascii, separators=layout) for row, ascii, layout in written]
    block = bytearray("\n".join(lines).encode(errors="surrogatepass") + b"\n" * ended)
    for place, byte in harms:
        block[place % len(block)] = byte
    skimmed = skim(bytes(block), "body", LONGEST)
    whole = bytes(block).removesuffix(b"\n").split(b"\n")
    assert [skimmed.line(number) for number in range(len(whole))] == [line.removesuffix(b"\r") for line in whole]
    for line, clear, document in zip(whole, skimmed.clear, documents(skimmed), strict=True):
        if clear:
            assert as_json(line) == document


@pytest.mark.parametrize(
    "line",
    [
        '{"body": "x"}',
        ' {"n": -0.5e+7, "body" : "[deleted]" , "list": [], "o": {"a": [1, {"b": [null, true, false]}], "c": {}}}\r',
        json.dumps({"id": "a", "body": 'say "é" \n \\ 😀 ’', "score": 3}),
        json.dumps({"body": "naïve — 中文 Привет 한국"}, ensure_ascii=False),
        '{"bod\\u0079": "by an escape"}',
        '{"body": null}',
        '{"body": ""}',
    ],
)
def test_the_usual_is_clear(line: str) -> None:
    """Else it would still be right, and slow."""
    skimmed = skim(f"{line}\n".encode(), "body", LONGEST)
    assert skimmed.clear.tolist() == [True]
    assert documents(skimmed) == [as_json(line.encode())]


@pytest.mark.parametrize(
    "line",
    [
        *(
            "",
            " ",
            "[]",
            "{}",
            "{",
            '{"body"',
            '{"body":',
            '{"body": "',
            '{"body": "x"',
            '{"body": "x"},',
            '{"body": "x",}',
        ),
        *(
            '{"body": 3}',
            '{"body": ["x"]}',
            '{"text": "x"}',
            '{"body": "x", "body": "y"}',
            '{"body": "x"} {"body": "y"}',
        ),
        *(
            '{"body": "\\ud800"}',
            '{"body": "\\udc00\\ud800"}',
            '{"body": "\\x"}',
            '{"body": "\\u12g4"}',
            '{"body": "e\\u0301"}',
        ),
        *('{"a": 01, "body": "x"}', '{"a": 1., "body": "x"}', '{"a": -, "body": "x"}', '{"a": 1e, "body": "x"}'),
        *('{"a": NaN, "body": "x"}', '{"a": [1,], "body": "x"}', '{"a": [}, "body": "x"}', '{"a": nul, "body": "x"}'),
        '{"a": ' + "[" * 100 + "]" * 100 + ', "body": "x"}',
    ],
)
def test_the_unusual_is_left_to_others(line: str) -> None:
    assert not skim(line.encode() + b"\n", "body", LONGEST).clear.any()


@pytest.mark.parametrize(
    "byte", [b"\x80", b"\xc3", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe0\x80\x80", b"\xff"]
)
def test_broken_utf8_is_left_to_others(byte: bytes) -> None:
    for line in (b'{"body": "%b"}', b'{"a": "%b", "body": "x"}', b'{"%b": 1, "body": "x"}'):
        assert not skim(line % byte, "body", LONGEST).clear.any()
    assert not skim(b"a " + byte, None, LONGEST).clear.any()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(st.sampled_from("ab \t\r\x0b\x0c\x1cé\u0301中"), max_size=8), max_size=6))
@example(["", "\r", " \r", "e\u0301"])
def test_lines(lines: list[str]) -> None:
    block = "\n".join(lines).encode()
    skimmed = skim(block, None, LONGEST)
    whole = [line.removesuffix(b"\r") for line in block.split(b"\n")]
    assert [skimmed.line(number) for number in range(len(skimmed.starts))] == [line for line in whole if line.strip()]
    for number, (clear, document) in enumerate(zip(skimmed.clear, documents(skimmed), strict=True)):
        assert document == skimmed.line(number)
        assert not clear or unicodedata.is_normalized("NFC", document.decode())


def test_lines_too_long_are_left_to_others() -> None:
    line = b'{"body": "%b"}' % (b"x" * 50)
    assert skim(line + b"\n" + line, "body", 60).clear.tolist() == [False, False]
    assert skim(line + b"\n" + line, None, 62).clear.tolist() == [True, True]


def test_what_was_left_takes_its_place() -> None:
    skimmed = skim(b'{"body": "a"}\n{"body": 3}\n{"body": "b"}\nbroken\n{"body": "c"}\n', "body", LONGEST)
    assert skimmed.clear.tolist() == [True, False, True, False, True]
    skimmed.put(1, b"three")
    skimmed.put(3, None)
    assert documents(skimmed) == [b"a", b"three", b"b", b"c"]
    assert skimmed.kept.tolist() == [True, True, True, False, True]


def test_stable_characters_need_no_normalisation() -> None:
    """Each after any other: 100,000 texts of four, and every character that another combines with is left out."""
    stable = np.flatnonzero(kinds() & STABLE)
    assert stable[:0x300].tolist() == list(range(0x300))
    drawn = np.random.default_rng(0).choice(stable, (100_000, 4))
    for codes in drawn.tolist():
        assert unicodedata.is_normalized("NFC", "".join(map(chr, codes)))
    known = set(stable.tolist())
    for code in range(0x110000):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            assert int(parts[1], 16) not in known
