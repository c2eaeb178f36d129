"""Test files that cannot be measured are refused with their file, line and field."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .bad_tests import content, write_test
from .conftest import Cli, Refused


def edited(tmp_path: Path, edit: Callable[[dict[str, Any]], object]) -> Path:
    given = content()
    edit(given)
    return write_test(tmp_path / "own.json", given)


@pytest.mark.parametrize(("one", "other", "names"), [("targ1", "targ2", "X and Y"), ("attr1", "attr2", "A and B")])
def test_overlapping_sets_name_the_word(one: str, other: str, names: str, tmp_path: Path, refused: Refused) -> None:
    path = edited(tmp_path, lambda c: c[other]["examples"].append(c[one]["examples"][2]))
    said = refused("glove", "--tests", path)
    assert str(path) in said
    assert f"{names} share {content()[one]['examples'][2]!r}" in said


def test_unequal_sizes_under_may2019(tmp_path: Path, lines: list[str], refused: Refused, cli: Cli) -> None:
    path = edited(tmp_path, lambda c: c["targ1"]["examples"].pop())
    (tmp_path / "v.txt").write_text("\n".join(lines))
    said = refused(f"vectors:{tmp_path}/v.txt", "--tests", path, "--protocol", "may2019")
    assert "'own'" in said
    assert "got 3 and 4" in said
    assert "protocol exact" in said
    assert cli("run", f"vectors:{tmp_path}/v.txt", "--tests", path)[0] == 0


def test_bad_json_names_file_and_line(tmp_path: Path, refused: Refused) -> None:
    path = write_test(tmp_path / "own.json")
    path.write_text(path.read_text().replace('"y1",', '"y1"'))
    line = next(i for i, text in enumerate(path.read_text().splitlines(), 1) if '"y1"' in text)
    said = refused("glove", "--tests", path)
    assert f"{path}: line {line + 1}: not valid JSON" in said  # the comma is missed where the next word begins


@pytest.mark.parametrize("text", ["", "[]", '"x"', "null", "{}"])
def test_json_that_is_no_test(text: str, tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "own.json").write_text(text)
    said = refused("glove", "--tests", tmp_path / "own.json")
    assert f"{tmp_path}/own.json" in said
    assert "field :" not in said


@pytest.mark.parametrize(("key", "line"), [("targ1", 2), ("attr2", 29)])
def test_a_missing_field_names_file_line_and_field(key: str, line: int, tmp_path: Path, refused: Refused) -> None:
    path = edited(tmp_path, lambda c: c[key].pop("category"))
    said = refused("glove", "--tests", path)
    # the line on which the set begins: the field itself stands nowhere
    assert f"{path}: line {line}: field {key}.category" in said


def test_an_unknown_field_suggests_the_nearest(tmp_path: Path, refused: Refused) -> None:
    said = refused("glove", "--tests", edited(tmp_path, lambda c: c["targ1"].update(exampels=["a", "b"])))
    assert "field targ1.exampels: unknown field; did you mean 'examples'?" in said
    said = refused("glove", "--tests", edited(tmp_path, lambda c: c.update(target1=c.pop("targ1"))))
    assert "field target1: unknown field; did you mean 'targ1'?" in said


def test_two_different_tests_of_one_name(tmp_path: Path, refused: Refused) -> None:
    write_test(tmp_path / "weat6.json")
    said = refused("glove", "--tests", f"weat6,{tmp_path / 'weat6.json'}")
    assert "two tests have the name 'weat6'" in said
    assert f"{tmp_path}/weat6.json" in said


def test_a_field_that_stands_twice(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "own.json"
    path.write_text('{"targ1": {"category": "a", "category": "b"}}')
    said = refused("glove", "--tests", path)
    assert str(path) in said
    assert "'category' appears twice" in said
