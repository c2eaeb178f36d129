"""``biassay contexts`` as a user types it."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from biassay.cli import contexts as command
from biassay.engines.local import LocalExecutor

pytestmark = pytest.mark.extras

Cli = Callable[..., tuple[int, str, str]]

# How many sentences of the corpus hold each word: Ingmar has too few, Zebedee none.
COUNTS = {
    "X": {"John": 6, "Paul": 9, "Mike": 6, "Kevin": 6, "Bill": 6, "Greg": 6, "Jeff": 6, "Steve": 6}
    | {"Ingmar": 3, "Zebedee": 0},
    "Y": {"Amy": 7, "Joan": 8},
    "A": {"office": 12, "salary": 6},
    "B": {"home": 6, "wedding": 40},
}
TOTAL = sum(count for words in COUNTS.values() for count in words.values())


class Breaking:
    """An engine that is interrupted after some results."""

    def __init__(self, after: int | None) -> None:
        self.after, self.tasks = after, 0

    def run(self, make: Any, tasks: Sequence[Any], **_: Any) -> Iterator[Any]:
        self.tasks = len(tasks)
        for count, result in enumerate(LocalExecutor().run(make, tasks, workers=1)):
            if count == self.after:
                raise KeyboardInterrupt
            yield result


def sentences() -> list[str]:
    """One stimulus a sentence, no sentence twice."""
    counts = {word: count for words in COUNTS.values() for word, count in words.items()}
    return [f"Number {i} was there, and {word} too." for word, count in counts.items() for i in range(count)]


def write_jsonl(path: Path, texts: Sequence[str], field: str = "body") -> Path:
    path.write_text("".join(json.dumps({field: text}) + "\n" for text in texts))
    return path


def spread(folder: Path, files: int) -> Path:
    """The corpus in several files."""
    folder.mkdir()
    for number in range(files):
        write_jsonl(folder / f"{number}.jsonl", sentences()[number::files])
    return folder


def rows(path: Path) -> list[dict[str, Any]]:
    """The contexts as any other program would read them."""
    parquet = pytest.importorskip("pyarrow.parquet")
    return list(parquet.read_table(path).to_pylist())


def counted(path: Path) -> dict[str, int]:
    stimuli = [row["stimulus"] for row in rows(path)]
    return {word: stimuli.count(word) for words in COUNTS.values() for word in words}


def cells(stdout: str) -> list[str]:
    """The cells of the one test's row; a cell may go over several lines."""
    lines = stdout.splitlines()
    rule = next(number for number, line in enumerate(lines) if line.startswith("─"))
    heading = next(line for line in lines[:rule] if line.startswith("test "))
    starts = [match.start() for match in re.finditer(r"(?:^|(?<=  ))\S", heading)]
    rows = lines[rule + 1 : lines.index("", rule)]
    ends = [*starts[1:], None]
    return [" ".join(row[a:b].strip() for row in rows).strip() for a, b in zip(starts, ends, strict=True)]


@pytest.fixture
def own_test(tmp_path: Path) -> Path:
    concepts = "".join(
        f'[concepts.{role}]\nlabel = "{role}"\nwords = {json.dumps(list(words))}\n' for role, words in COUNTS.items()
    )
    roles = "".join(f'{role} = "{role}"\n' for role in COUNTS)
    path = tmp_path / "own.toml"
    path.write_text(f'{concepts}[tests.own]\ntitle = "Names, work or home"\n{roles}')
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "corpus.jsonl", sentences())


def test_the_table_shows_what_was_found(cli: Cli, corpus: Path, own_test: Path, tmp_path: Path) -> None:
    out = tmp_path / "c.parquet"
    code, stdout, stderr = cli("contexts", corpus, "--out", out, "--tests", own_test)
    assert code == 0
    assert cells(stdout) == ["own", "yes", "14 of 16", "6 / 6 / 40", "Ingmar 3, Zebedee 0"]
    assert f"{TOTAL} contexts from {TOTAL} documents" in stdout
    assert "could not be read" not in stdout
    assert stdout.splitlines()[-1] == f"written to {out}; next: biassay run hf:NAME --contexts {out}"
    assert "MB" in stderr
    assert counted(out) == {word: count for words in COUNTS.values() for word, count in words.items()}
    for row in rows(out):
        assert row["text"][row["start"] : row["end"]] == row["stimulus"]


def test_json_is_the_coverage_and_nothing_else(cli: Cli, corpus: Path, own_test: Path, tmp_path: Path) -> None:
    code, stdout, _ = cli(
        *("contexts", corpus, "--out", tmp_path / "c.parquet", "--tests", own_test, "--json", "--per-stimulus", 5)
    )
    assert code == 0
    found = json.loads(stdout)
    kept = {role: {word: min(5, count) for word, count in words.items()} for role, words in COUNTS.items()}
    assert found.pop("tests") == [{"test": "own", "measurable": True, "contexts": kept}]
    assert found.pop("found") == {word: count for words in COUNTS.values() for word, count in words.items()}
    assert found.pop("contexts") == sum(map(sum, (words.values() for words in kept.values())))
    assert found.pop("bytes") == corpus.stat().st_size
    assert found == {"documents": TOTAL, "bad": 0, "undecodable": 0, "examples": [], "damaged": {}}


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_a_truncated_file_is_named_and_the_rest_is_used(
    cli: Cli, corpus: Path, own_test: Path, tmp_path: Path, quiet: tuple[str, ...]
) -> None:
    more = [f"Later number {i} was there, and Zebedee too." for i in range(3000)]
    whole = gzip.compress(write_jsonl(tmp_path / "more.txt", more).read_bytes())
    broken = tmp_path / "more.jsonl.gz"
    broken.write_bytes(whole[: len(whole) // 2])
    out = tmp_path / "c.parquet"
    code, stdout, stderr = cli(
        *("contexts", corpus, broken, "--out", out, "--tests", own_test, "--workers", 1, "-k", 5000, *quiet)
    )
    assert code == 1
    (line,) = [line for line in stderr.splitlines() if line.startswith("error: ")]
    assert line.startswith("error: more.jsonl.gz: the file ends in the middle of its compressed data")
    found = counted(out)
    assert 0 < found.pop("Zebedee") < 3000
    assert found == {word: n for words in COUNTS.values() for word, n in words.items() if word != "Zebedee"}
    assert bool(stdout) is not bool(quiet)


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_nothing_found_at_all_is_a_failure_that_is_told(
    cli: Cli, own_test: Path, tmp_path: Path, quiet: tuple[str, ...]
) -> None:
    corpus = tmp_path / "other.txt"
    corpus.write_text("Une maison au bord de la mer.\nOffice.\n")
    before = sorted(tmp_path.rglob("*"))
    code, stdout, stderr = cli("contexts", corpus, "--out", tmp_path / "c.parquet", "--tests", own_test, *quiet)
    assert (code, stdout) == (1, "")
    (line,) = [line for line in stderr.splitlines() if line.startswith("error: ")]
    assert line.startswith("error: no stimulus found in 2 documents; ")
    assert "--ignore-case" in line
    assert sorted(tmp_path.rglob("*")) == before


def test_wrong_usage_leaves_nothing(cli: Cli, corpus: Path, own_test: Path, tmp_path: Path) -> None:
    (tmp_path / "there.parquet").write_text("precious")
    (tmp_path / "odd.data").write_text("John was there.\n")
    before = sorted(tmp_path.rglob("*"))
    out, own = ("--out", tmp_path / "c.parquet"), ("--tests", own_test)
    for args, words in (
        ((tmp_path / "none.jsonl", *out, *own), "no corpus file at"),
        ((tmp_path / "odd.data", *out, *own), "unknown format of"),
        ((corpus, *out, *own, "--format", "jsno"), "'jsno' is not one of 'text', 'jsonl', 'csv', 'tsv', 'parquet'"),
        ((corpus, *out, *own, "--document", "page"), "'page' is not one of 'line', 'paragraph'"),
        ((corpus, "--out", tmp_path / "c.csv", *own), "name it 'c.parquet'"),
        ((corpus, "--out", tmp_path / "there.parquet", *own), "there.parquet already exists"),
        ((corpus, "--out", tmp_path / "none" / "c.parquet", *own), "does not exist"),
        ((corpus, *own), "missing option '--out'"),
        ((*out, *own), "missing argument 'CORPUS ...'"),
        ((corpus, *out, "--tests", "sent-weat6"), "'weat6' is the same with words"),
        ((corpus, *out, "--tests", "C77"), "C77"),
        ((corpus, *out, *own, "-k", 0), "per_stimulus must be at least 1, got 0"),
        ((corpus, *out, *own, "--seed", -1), "seed must be at least 0, got -1"),
        ((corpus, *out, *own, "--max-bad", 1.5), "max_bad must be at least 0 and at most 1, got 1.5"),
        ((corpus, *out, *own, "--max-bad", -0.5), "max_bad must be at least 0 and at most 1, got -0.5"),
        ((corpus, *out, *own, "--min-contexts", 0), "min_contexts must be at least 1, got 0"),
        ((corpus, *out, *own, "--workers", 0), "workers must be at least 1, got 0"),
        ((corpus, *out, *own, "--address", "127.0.0.1:6379"), "--address requires --engine ray"),
    ):
        code, stdout, stderr = cli("contexts", *args)
        assert (code, stdout) == (2, "")
        assert words in " ".join(stderr.split())
        assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "there.parquet").read_text() == "precious"


def test_an_interrupted_scan_goes_on_with_the_same_command(
    cli: Cli, own_test: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, out = spread(tmp_path / "folder", 4), tmp_path / "c.parquet"
    args = ("contexts", folder, "--tests", own_test, "-k", 5, "--out")
    assert cli(*args, tmp_path / "whole.parquet")[0] == 0
    engine = Breaking(3)
    monkeypatch.setattr(command, "open_engine", lambda *_: engine)
    code, stdout, stderr = cli(*args, out)
    assert (code, stdout, out.exists()) == (1, "", False)
    assert "interrupted" in stderr.splitlines()
    assert stderr.splitlines()[-1] == "the scan is saved; repeat the command to resume it"
    code, _, stderr = cli(*args, out, "--seed", 1)
    assert code == 2
    assert "c.parquet.partial holds an interrupted scan of other files or with other settings" in stderr
    engine.after = None
    code, stdout, stderr = cli(*args, out)
    assert (code, engine.tasks) == (0, 1)
    assert "resuming an interrupted scan" in stderr
    assert f"from {TOTAL} documents" in stdout
    assert rows(out) == rows(tmp_path / "whole.parquet")
    assert not (tmp_path / "c.parquet.partial").exists()


def test_what_cannot_be_read_is_counted_and_shown(cli: Cli, corpus: Path, own_test: Path, tmp_path: Path) -> None:
    good = corpus.read_bytes()
    corpus.write_bytes(good + b'{"body": "J\xff\xfe Amy"}\n{"body": broken}\n["Amy"]\n')
    code, stdout, _ = cli("contexts", corpus, "--out", tmp_path / "c.parquet", "--tests", own_test)
    assert code == 0
    shown = (f"byte {len(good)}: is not UTF-8", "broken JSON", "not a JSON object")
    (line,) = [line for line in stdout.splitlines() if line.startswith("3 unreadable documents: ")]
    assert all(words in line for words in shown)
    assert line.count("corpus.jsonl, byte ") == 3
    code, stdout, _ = cli("contexts", corpus, "--out", tmp_path / "d.parquet", "--tests", own_test, "--json")
    found = json.loads(stdout)
    assert (code, found["bad"], found["undecodable"], found["documents"]) == (0, 2, 1, TOTAL)
    assert len(found["examples"]) == 3


def test_the_advice_after_too_many_unreadable_documents_can_be_taken(cli: Cli, own_test: Path, tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "c.jsonl", sentences(), "mine")
    args = ("contexts", corpus, "--out", tmp_path / "c.parquet", "--tests", own_test)
    assert "Check --format and --field" in cli(*args)[2]
    assert cli(*args, "--field", "mine")[0] == 0
