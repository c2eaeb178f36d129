"""Which files are found and how they are read: every format in every compression, whole and damaged."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from biassay.corpus import reader as reader_module
from biassay.corpus import streams
from biassay.corpus.files import CorpusPart, find_corpus_files, split_files
from biassay.corpus.reader import ReadStats, open_reader, strip_html
from biassay.errors import UnknownNameError, UsageError

pytestmark = pytest.mark.extras

TEXTS = ["She left.", "naïve “quotes”", 'a "quoted, one"', "e\u0301 in two pieces", "last"]
COMPOSED = [*TEXTS[:3], "é in two pieces", "last"]


def read(
    part: CorpusPart, field: str | None = None, document: str = "line", markup: bool = False
) -> tuple[list[str], list[int], ReadStats, str | None]:
    reader, tally = open_reader(part, field, document, markup), ReadStats()
    texts: list[str] = []
    places: list[int] = []
    for chunk in reader.chunks():
        documents = chunk.parse(tally)
        texts += [documents[number].decode() for number in range(len(documents))]
        places += documents.positions.tolist()
    return texts, places, tally, reader.damage


def read_file(
    path: Path, format: str | None = None, **settings: object
) -> tuple[list[str], list[int], ReadStats, str | None]:
    (file,) = find_corpus_files([path], format)
    return read(CorpusPart(file), **settings)  # type: ignore[arg-type]


def as_text(texts: list[str]) -> bytes:
    return "\n".join(texts).encode()


def as_jsonl(texts: list[str]) -> bytes:
    return b"".join(json.dumps({"id": i, "body": text}).encode() + b"\n" for i, text in enumerate(texts))


def as_csv(texts: list[str], delimiter: str = ",") -> bytes:
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=delimiter).writerows([["id", "text"], *([i, text] for i, text in enumerate(texts))])
    return file.getvalue().encode()


def as_tsv(texts: list[str]) -> bytes:
    return as_csv(texts, "\t")


def as_parquet(texts: list[str]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"n": range(len(texts)), "content": texts}), file, row_group_size=2)
    return file.getvalue()


def long_window(data: bytes) -> bytes:
    parameters = zstandard.ZstdCompressionParameters(window_log=30, enable_ldm=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return compressor.compress(data) + compressor.flush()


FORMATS: dict[str, Callable[[list[str]], bytes]] = {
    ".txt": as_text,
    ".jsonl": as_jsonl,
    ".ndjson": as_jsonl,
    ".json": as_jsonl,
    ".csv": as_csv,
    ".tsv": as_tsv,
    ".parquet": as_parquet,
}
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": long_window,
}


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_in_every_compression(tmp_path: Path, ending: str, compression: str) -> None:
    path = tmp_path / f"corpus{ending}{compression}"
    path.write_bytes(COMPRESSIONS[compression](FORMATS[ending](TEXTS)))
    texts, places, tally, damage = read_file(path)
    assert texts == COMPOSED
    assert damage is None
    assert (tally.documents, tally.bad, tally.undecodable) == (5, 0, 0)
    if ending in (".csv", ".tsv", ".parquet"):
        assert places == [1, 2, 3, 4, 5]
    else:
        data = FORMATS[ending](TEXTS)
        assert [data[place : place + 4] for place in places] == [line[:4] for line in data.split(b"\n")[:5]]


@pytest.mark.parametrize("compression", [".gz", ".bz2", ".zst"])
def test_members_one_after_the_other(tmp_path: Path, compression: str) -> None:
    """And between frames of zstd one that is to be skipped, as pzstd writes them; after gzip zeros, as tar does."""
    pack = COMPRESSIONS[compression]
    between = struct.pack("<II", 0x184D2A50, 3) + b"abc" if compression == ".zst" else b""
    after = bytes(1000) if compression == ".gz" else b""
    path = tmp_path / f"corpus.txt{compression}"
    path.write_bytes(pack(b"one\ntw") + between + pack(b"o\n") + pack(b"") + pack(b"three") + after)
    texts, _, _, damage = read_file(path)
    assert (texts, damage) == (["one", "two", "three"], None)


@pytest.mark.parametrize("compression", [".gz", ".bz2", ".zst"])
@pytest.mark.parametrize("harm", ["truncated", "corrupt", "not compressed at all"])
def test_what_stands_before_the_damage_is_read(tmp_path: Path, compression: str, harm: str) -> None:
    rng_lines = [f"line {i} {os.urandom(40).hex()}" for i in range(40_000)]
    packed = bytearray(COMPRESSIONS[compression](as_text(rng_lines)))
    if harm == "truncated":
        packed = packed[: len(packed) // 2]
    elif harm == "corrupt":
        packed[len(packed) // 2 : len(packed) // 2 + 2000] = bytes(2000)
    else:
        packed = bytearray(b"line 0, as it is")
    path = tmp_path / f"corpus.txt{compression}"
    path.write_bytes(packed)
    texts, _, _, damage = read_file(path)
    assert damage
    # A flipped byte within a block of zstd or gzip can pass until the checksum; the lines before it are right.
    least = 0 if harm == "not compressed at all" else 10_000
    assert texts[:least] == rng_lines[:least]
    assert len(texts) >= least


def test_unreadable_file_and_missing_column(tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("x")
    (file,) = find_corpus_files([path])
    path.unlink()
    assert "No such file" in (read(CorpusPart(file))[3] or "")
    for ending in (".csv", ".parquet"):
        path = tmp_path / f"corpus{ending}"
        path.write_bytes(FORMATS[ending](TEXTS))
        assert "no column 'title'" in (read_file(path, field="title")[3] or "")
        path.write_bytes(b"PAR1")
        assert read_file(path)[0] == []


def test_bad_lines_are_counted_and_shown(tmp_path: Path) -> None:
    lines = [
        b'{"body": "good"}',
        b'{"body": "broken',
        b'{"text": "another field"}',
        b'{"body": 3}',
        b"[1]",
        b"",
        b'{"body": null}',
        b'{"body": "[deleted]"}',
        b'{"body": "[removed]"}',
        b'{"body": "\xff"}',
        b'{"body": "\\ud800"}',
        b'{"body": "also \\ud83d\\ude00 good", "n": NaN}',
    ]
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b"\n".join(lines))
    texts, _, tally, _ = read_file(path)
    assert texts == ["good", "", "", "", "also 😀 good"]
    assert (tally.documents, tally.bad, tally.undecodable) == (5, 4, 2)
    assert tally.examples[0] == "corpus.jsonl, byte 17: broken JSON"
    assert "no field 'body'" in tally.examples[1]
    assert len(tally.examples) == 5
    path.write_bytes(b"good\n\xff\xfe\nalso\n")
    texts, places, tally, _ = read_file(path, format="text")
    assert (texts, places, tally.undecodable) == (["good", "also"], [0, 8], 1)


def test_fields(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"text": "no"}\n{"text": "no", "body": "yes", "selftext": "third"}\n')
    assert read_file(path)[0] == ["yes"]
    assert read_file(path, field="selftext")[0] == ["third"]
    path.write_text('{"comment": "x"}\n')
    texts, _, tally, _ = read_file(path)
    assert (texts, tally.bad) == ([], 1)
    assert "body, text, content, sentence; name yours" in tally.examples[0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_or_a_device_is_no_corpus(tmp_path: Path) -> None:
    (tmp_path / "zero.txt").symlink_to("/dev/zero")
    for name in ("pipe.txt", "pipe.zst"):
        os.mkfifo(tmp_path / name)
    for path in tmp_path.iterdir():
        with pytest.raises(UsageError, match="pipe or a device"):
            find_corpus_files([path])


def test_a_line_too_long_is_bad_and_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a hundredth of the limits: this checks the text that is read, not the memory."""
    for module in (streams, reader_module):
        monkeypatch.setattr(module, "MAX_DOCUMENT_BYTES", 600_000)
    monkeypatch.setattr(streams, "BLOCK_BYTES", 10_000)
    path = tmp_path / "corpus.txt"
    path.write_bytes(b"first\n" + b"x" * 2_000_000 + b"\nlast\n" + b"y" * 2_000_000)
    texts, places, tally, _ = read_file(path)
    assert (texts, places) == (["first", "last"], [0, 2_000_007])
    assert (tally.documents, tally.bad) == (2, 2)
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b'{"body": "' + b"x" * 2_000_000 + b'"}\n{"text": "She left."}\n')
    texts, _, tally, _ = read_file(path)  # the field is found in the first line that is read
    assert (texts, tally.documents, tally.bad) == (["She left."], 1, 1)


def test_files_folders_and_patterns(tmp_path: Path) -> None:
    for name in (
        "a.txt",
        "sub/b.jsonl",
        "sub/deep/c.csv.gz",
        "sub/RC_2019-01.zst",
        ".hidden.txt",
        ".git/x.txt",
        "d.md",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")

    def names(*patterns: Path | str, **settings: str) -> list[str]:
        return [file.name for file in find_corpus_files(patterns, **settings)]

    assert names(tmp_path) == ["a.txt", "sub/RC_2019-01.zst", "sub/b.jsonl", "sub/deep/c.csv.gz"]
    assert names(tmp_path / "*.txt") == ["a.txt"]
    assert names(f"{tmp_path}/**/*.jsonl") == ["sub/b.jsonl"]
    assert names(f"{tmp_path}/s*/*.jsonl") == ["sub/b.jsonl"]
    assert names(tmp_path / "a.txt", tmp_path, tmp_path / "sub" / ".." / "a.txt")[0] == "a.txt"
    assert len(names(tmp_path, tmp_path / "a.txt")) == 4
    assert names(tmp_path / "d.md", format="text") == ["d.md"]
    with pytest.raises(UsageError, match=r"d\.md.*\.txt, \.jsonl"):
        names(tmp_path / "d.md")
    with pytest.raises(UsageError, match="no corpus file"):
        names(tmp_path / "*.xyz")
    with pytest.raises(UsageError, match="no corpus file"):
        names(tmp_path / "nothing.txt")
    with pytest.raises(UnknownNameError, match="did you mean 'jsonl'"):
        names(tmp_path, format="json")
    with pytest.raises(UsageError, match="no corpus"):
        names()


def test_markup() -> None:
    source = "<p>She &amp; <b>he</b>.</p>One<br/>two<br />a < b &lt;i&gt; <!-- gone --><script>x()</script>"
    assert strip_html(source).split() == ["She", "&", "he.", "One", "two", "a", "<", "b", "<i>"]
    assert strip_html("so<b>me</b>one<br>x") == "someone\nx"


def test_packed_parquet_that_unpacks_to_too_much_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "x.parquet.gz").write_bytes(gzip.compress(bytes(100 << 20), 9))
    texts, _, _, damage = read_file(tmp_path / "x.parquet.gz")
    assert texts == []
    assert damage is not None
    assert "larger than 64 MiB" in damage


def test_undecodable_rows_of_csv_and_rows_too_short(tmp_path: Path) -> None:
    path = tmp_path / "corpus.csv"
    path.write_bytes(b"\xef\xbb\xbfid,body\n1,good\n2,\xff\n3\n4,last\n")
    texts, places, tally, _ = read_file(path)
    assert (texts, places) == (["good", "last"], [1, 4])
    assert (tally.bad, tally.undecodable) == (1, 1)


def test_parts_of_parquet_are_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "corpus.parquet"
    path.write_bytes(as_parquet(TEXTS))
    parts = split_files(find_corpus_files([path]), part_bytes=1)
    assert [(part.start, part.stop) for part in parts] == [(0, 1), (1, 2), (2, 3)]
    assert [text for part in parts for text in read(part)[0]] == COMPOSED
    assert [place for part in parts for place in read(part)[1]] == [1, 2, 3, 4, 5]
    assert pickle.loads(pickle.dumps(parts)) == parts
