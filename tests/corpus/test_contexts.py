"""The contexts file, windows, and whether there are contexts enough."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.corpus.rows import Row, rows_table
from tests.damage import damages

from biassay.corpus.contexts import FORMAT_VERSION, coverage, cut_window, read_contexts, write_contexts
from biassay.corpus.sampler import ContextSample
from biassay.datasets.catalogue import select_tests
from biassay.datasets.schema import ROLES
from biassay.errors import UsageError

pytestmark = pytest.mark.extras

STIMULI = ("she", "he", "they")
ROWS = [
    ("she", Row(2**64 - 2, "She laughs.", "a.txt:9", 0, 3)),
    ("he", Row(7, "Thus he – “é” – spoke.", "a.txt:0", 5, 7)),
    ("she", Row(3, "And she left.", "b.txt:0", 4, 7)),
]


@pytest.fixture
def sample() -> ContextSample:
    return ContextSample.from_table(STIMULI, 10, rows_table([name for name, _ in ROWS], [row for _, row in ROWS]))


def test_there_and_back(tmp_path: Path, sample: ContextSample) -> None:
    path = tmp_path / "contexts.parquet"
    write_contexts(path, sample, {"seed": 4, "found": {"she": 12}})
    read = read_contexts(path)
    assert read.stimuli == STIMULI
    assert read.metadata["seed"] == 4
    assert read.metadata["found"] == {"she": 12}
    assert read.texts(read.get_rows("she")) == ["And she left.", "She laughs."]
    assert read.spans(read.get_rows("she")) == [(4, 7), (0, 3)]
    assert read.texts(read.get_rows("he")) == ["Thus he – “é” – spoke."]
    assert [read.count(stimulus) for stimulus in STIMULI] == [2, 1, 0]
    assert read.texts(read.get_rows("they")) == []
    assert read.texts([2, 0]) == ["Thus he – “é” – spoke.", "And she left."]
    assert read.table["key"].to_pylist() == [3, 2**64 - 2, 7]
    assert [file.name for file in tmp_path.iterdir()] == ["contexts.parquet"]
    for row in read.table.to_pylist():
        assert row["text"][row["start"] : row["end"]].lower() == row["stimulus"]


def test_documents_are_told_apart_by_their_sources(tmp_path: Path) -> None:
    sources = {"she": ["a.txt:0", "b.txt:0", "a.txt:0", "", ""], "he": ["b.txt:0", ""]}
    rows = [
        (name, Row(key, f"{name} {key}.", source, 0, len(name)))
        for name, own in sources.items()
        for key, source in enumerate(own)
    ]
    sample = ContextSample.from_table(STIMULI, 10, rows_table([n for n, _ in rows], [r for _, r in rows]))
    write_contexts(tmp_path / "x.parquet", sample, {})
    read = read_contexts(tmp_path / "x.parquet")
    she, he = (read.documents(read.get_rows(name)).tolist() for name in ("she", "he"))
    assert (she[0] == she[2], she[1] == he[0]) == (True, True)
    assert len({*she, *he}) == 2 + 3  # each context without a source is a document of its own
    assert read.num_unknown_documents == 3


def test_a_file_that_is_not_ours_is_refused(tmp_path: Path, sample: ContextSample) -> None:
    path = tmp_path / "other.parquet"
    with pytest.raises(UsageError, match=r"no contexts file at .*other"):
        read_contexts(path)
    path.write_bytes(b"PAR1 but not really")
    with pytest.raises(UsageError, match=r"other.*cannot be read"):
        read_contexts(path)
    pq.write_table(pa.table({"text": ["x"]}), path)
    with pytest.raises(UsageError, match=r"other.*not a contexts file"):
        read_contexts(path)
    write_contexts(path, sample, {})
    table = pq.read_table(path)
    newer = table.schema.metadata[b"biassay"].replace(
        f'"format": {FORMAT_VERSION}'.encode(), f'"format": {FORMAT_VERSION + 1}'.encode()
    )
    pq.write_table(table.replace_schema_metadata({b"biassay": newer}), path)
    with pytest.raises(UsageError, match=r"other.*newer biassay"):
        read_contexts(path)


def test_a_damaged_file_is_refused_or_read_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "contexts.parquet"
    rows = [Row(2**60 + i, f"Thus she – “{i}” – spoke {i * i} times.", f"a.txt:{i}", 5, 8) for i in range(50)]
    write_contexts(path, ContextSample.from_table(("she",), 50, rows_table(["she"] * 50, rows)), {"seed": 4})
    whole, content, taken = read_contexts(path), path.read_bytes(), 0
    for damaged in damages(content, 300):
        path.write_bytes(damaged)
        try:
            found = read_contexts(path)
        except UsageError as error:
            assert str(path) in str(error)  # noqa: PT017
            assert "`biassay contexts`" in str(error)  # noqa: PT017
            continue
        taken += 1
        assert (found.table, found.metadata, found.stimuli) == (whole.table, whole.metadata, whole.stimuli)
    assert taken < 100  # statistics of columns and sizes that are not read


@pytest.mark.parametrize("column", ["stimulus", "text", "start", "end", "source", "key"])
def test_other_rows_under_the_old_digest_are_refused(tmp_path: Path, sample: ContextSample, column: str) -> None:
    path = tmp_path / "contexts.parquet"
    write_contexts(path, sample, {})
    table = pq.read_table(path)
    at = table.column_names.index(column)
    pq.write_table(table.set_column(at, table.field(at), table[column].take([1, 0, 2])), path)
    if table[column][0] != table[column][1]:
        with pytest.raises(UsageError, match="damaged"):
            read_contexts(path)
    pq.write_table(table, path, row_group_size=1)  # in other pieces it is the same
    assert read_contexts(path).table == table.replace_schema_metadata(None)


@pytest.mark.parametrize("content", [b"{", b"[1, 2]", b"\xff", b'{"stimuli": 3}', b"[" * 100_000, b'{"format": "x"}'])
def test_metadata_that_cannot_be_read_is_refused(tmp_path: Path, sample: ContextSample, content: bytes) -> None:
    path = tmp_path / "contexts.parquet"
    write_contexts(path, sample, {})
    pq.write_table(pq.read_table(path).replace_schema_metadata({b"biassay": content}), path)
    with pytest.raises(UsageError, match="damaged"):
        read_contexts(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_a_device_or_a_folder_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(UsageError, match="cannot be read as a contexts file"):
            read_contexts(path)


def test_a_write_that_fails_names_the_file_and_leaves_nothing(tmp_path: Path, sample: ContextSample) -> None:
    with pytest.raises(OSError, match="contexts"):
        write_contexts(tmp_path / "missing" / "contexts.parquet", sample, {})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (9, "two three four five SIX, seven eight nine ten"),
        (3, "five SIX, seven"),
        (1, "SIX,"),
        (None, "one two three four five SIX, seven eight nine ten eleven"),
    ],
)
def test_window(words: int | None, expected: str) -> None:
    text = "one two three four five SIX, seven eight nine ten eleven"
    start = text.index("SIX")
    cut, span = cut_window(text, (start, start + 3), words)
    assert cut == expected
    assert cut[slice(*span)] == "SIX"


def test_coverage() -> None:
    test = select_tests(["weat6"])[0]
    counts = {word: 3 for role in ROLES for word in test.concept(role).words}
    counts |= {test.X.words[0]: 0, test.Y.words[0]: 0, test.Y.words[1]: 2}  # of eight, one may be lost and two may not
    (covered,) = coverage(counts.__getitem__, [test], least=3)
    assert not covered.measurable
    names = f"{test.Y.words[0]} 0, {test.Y.words[1]} 2"
    assert f"2 of 8 words of {test.Y.label} have fewer than 3 usable contexts (in the corpus: {names})" in (
        covered.reason or ""
    )
    assert covered.missing == {"X": test.X.words[:1], "Y": test.Y.words[:2], "A": (), "B": ()}
    assert covered.counts["Y"][test.Y.words[1]] == 2
    found = counts | {test.Y.words[1]: 7}
    (placed,) = coverage(counts.__getitem__, [test], least=3, in_corpus=found.__getitem__)
    assert placed.missing == covered.missing == covered.too_rare
    assert placed.too_rare == {"X": test.X.words[:1], "Y": test.Y.words[:1], "A": (), "B": ()}
    causes = f"(in the corpus: {test.Y.words[0]} 0; located by the model: {test.Y.words[1]} 2 of 7)"
    assert f"2 of 8 words of {test.Y.label} have fewer than 3 usable contexts {causes}" in (placed.reason or "")
    (milder,) = coverage(counts.__getitem__, [test], least=1)
    assert milder.measurable
    (nothing,) = coverage(counts.__getitem__, [test], least=4, max_unknown=1.0)
    assert "too few are left" in (nothing.reason or "")
