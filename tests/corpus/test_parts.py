"""One large compressed file in parts: the contexts of all parts are those of the whole, whoever scans them."""

from __future__ import annotations

import functools
import gzip
import json
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import biassay
from biassay.corpus.files import CorpusPart, find_corpus_files, find_seek_points, split_files
from biassay.corpus.sampler import ContextSample
from biassay.corpus.scan import ScanSettings, scan_part
from biassay.runs import contexts as runs_corpus

pytestmark = pytest.mark.extras

STIMULI = ("she", "he", "love")
WORDS = [*STIMULI, "She", "it", "was", "naïve", "Dr.", "Smith", "end.", "Stop!", "why?", "\n", "\n\n", "then\n"]


def pieces(data: bytes, rng: random.Random, most: int) -> Iterator[bytes]:
    while data:
        size = rng.randrange(1, most)
        yield data[:size]
        data = data[size:]


def bgzip(data: bytes, rng: random.Random, most: int) -> bytes:
    """Blocks as the specification of SAM has them, and an empty one at the end."""
    blocks = []
    for piece in [*pieces(data, rng, most), b""]:
        deflate = zlib.compressobj(wbits=-15)
        packed = deflate.compress(piece) + deflate.flush()
        extra = b"XY" + struct.pack("<HB", 1, 7) + b"BC" + struct.pack("<HH", 2, len(packed) + 30)
        head = struct.pack("<4BI2BH", 31, 139, 8, 4, 0, 0, 255, len(extra)) + extra
        blocks.append(head + packed + struct.pack("<II", zlib.crc32(piece), len(piece)))
        assert len(blocks[-1]) == len(packed) + 31
    return b"".join(blocks)


def zstd(data: bytes, rng: random.Random, most: int, told: bool = True) -> bytes:
    """Frames with and without a checksum; between some stands one that holds no data."""
    frames = []
    for piece in pieces(data, rng, most):
        whole = zstandard.ZstdCompressor(write_checksum=rng.random() < 0.5, write_content_size=told)
        frames.append(whole.compress(piece))
        if rng.random() < 0.3:
            frames.append(struct.pack("<II", 0x184D2A53, 3) + b"abc")
    return b"".join(frames)


WAYS: dict[str, Callable[[bytes, random.Random, int], bytes]] = {"": lambda d, *_: d, ".gz": bgzip, ".zst": zstd}


def contexts_of(parts: tuple[CorpusPart, ...], k: int, document: str) -> tuple[list[dict[str, object]], int]:
    sample, count = ContextSample(STIMULI, k), 0
    for part in parts:
        for result in scan_part(part, ScanSettings(STIMULI, k, document=document), sample.get_limits()):
            assert result.damage is None
            sample.add(result.table)
            count += result.stats.documents
    return sample.to_table().to_pylist(), count


@settings(max_examples=40, deadline=None, phases=[Phase.generate])
@given(
    st.integers(0, 10**6),
    st.integers(0, 80),
    st.sampled_from([".txt", ".jsonl"]),
    st.sampled_from(sorted(WAYS)),
    st.sampled_from(["line", "paragraph"]),
    st.integers(1, 3000),
    st.integers(2, 3000),
)
def test_parts_are_the_whole(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    count: int,
    ending: str,
    compression: str,
    document: str,
    part_bytes: int,
    most: int,
) -> None:
    rng = random.Random(seed)
    texts = [" ".join(rng.choices(WORDS, k=rng.randrange(30))) for _ in range(count)]
    data = "\n".join(texts if ending == ".txt" else [json.dumps({"body": text}) for text in texts]).encode()
    path = tmp_path_factory.getbasetemp() / f"corpus{ending}{compression}"
    path.write_bytes(WAYS[compression](data, rng, most))
    (file,) = find_corpus_files([path])
    assert contexts_of(split_files([file], part_bytes), 7, document) == contexts_of((CorpusPart(file),), 7, document)


@pytest.mark.parametrize("compression", [".gz", ".zst"])
def test_entries_are_places_where_decompression_begins(tmp_path: Path, compression: str) -> None:
    rng = random.Random(0)
    data = rng.randbytes(5000) + bytes(300_000)
    path = tmp_path / f"a.txt{compression}"
    path.write_bytes(WAYS[compression](data, rng, 40_000))
    found = find_seek_points(path, compression[1:])
    assert len(found) > 10
    assert found[-1] == (path.stat().st_size, len(data))
    opened = gzip.decompress if compression == ".gz" else _unpacked
    for at, before in found[:-1]:
        assert opened(path.read_bytes()[at:]) == data[before:]
    path.write_bytes(path.read_bytes()[:-20])
    assert find_seek_points(path, compression[1:]) == [place for place in found if place[0] <= path.stat().st_size]


def _unpacked(stored: bytes) -> bytes:
    return zstandard.ZstdDecompressor().stream_reader(stored, read_across_frames=True).read()


def test_what_does_not_tell_its_size_is_one_part(tmp_path: Path) -> None:
    data = b"she left\n" * 1000
    for name, content in (
        ("a.txt.gz", gzip.compress(data)),
        ("b.txt.zst", zstd(data, random.Random(0), 500, told=False)),
        ("c.txt.gz", b""),
        ("d.txt.zst", b"no such thing"),
    ):
        (tmp_path / name).write_bytes(content)
        (file,) = find_corpus_files([tmp_path / name])
        assert split_files([file], 100) == (CorpusPart(file),)


@pytest.mark.parametrize("compression", sorted(WAYS))
def test_two_processes_on_one_file_find_what_one_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: str
) -> None:
    rng = random.Random(3)
    texts = [" ".join(rng.choices(WORDS, k=30)) for _ in range(3000)]
    path = tmp_path / f"corpus.jsonl{compression}"
    path.write_bytes(WAYS[compression]("".join(json.dumps({"text": t}) + "\n" for t in texts).encode(), rng, 20_000))
    found = []
    for part_bytes, workers in ((1 << 30, 1), (50_000, 1), (50_000, 2)):
        monkeypatch.setattr(runs_corpus, "split_files", functools.partial(split_files, part_bytes=part_bytes))
        out = tmp_path / f"{part_bytes}-{workers}.parquet"
        biassay.find_contexts(path, out, (), words=STIMULI, per_stimulus=40, workers=workers)
        found.append(out.read_bytes())
    assert found[0] == found[1] == found[2]
