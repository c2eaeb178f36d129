"""Corpora and kept answers in object storage: in memory, failing now and then, and behind a server that speaks S3."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import fsspec
import pytest
from tests.cli.conftest import Cli, cli  # noqa: F401  (a fixture)
from tests.flaky_storage import FlakyStorage, register

import biassay
from biassay import object_storage
from biassay.errors import MeasurementError, UsageError
from biassay.runs.contexts import find_contexts

from .conftest import Heard
from .test_engine import write_test

pytestmark = pytest.mark.extras

MODEL = """
import numpy as np

class Seen:
    revision = "1"
    seen = []
    def encode(self, texts):
        type(self).seen += texts
        return np.array([np.random.default_rng([*text.encode()]).normal(size=6) for text in texts])
"""


@pytest.fixture
def flaky(monkeypatch: pytest.MonkeyPatch) -> type[FlakyStorage]:
    monkeypatch.setattr(object_storage, "_RETRY_WAITS", (0.01, 0.01, 0.01))
    return register()


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the texts that the model `python:seen_texts:Seen` encoded."""
    (tmp_path / "seen_texts.py").write_text(MODEL)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "seen_texts", raising=False)
    import seen_texts  # type: ignore[import-not-found]

    found: list[str] = seen_texts.Seen.seen
    return found


def forget(cache: Path) -> None:
    """Another machine: nothing is kept there."""
    shutil.rmtree(cache)
    cache.mkdir()


def put(folder: Path, address: str) -> None:
    system, root = fsspec.core.url_to_fs(address)
    for file in sorted(folder.iterdir()):
        system.makedirs(root, exist_ok=True)
        system.pipe_file(f"{root}/{file.name}", file.read_bytes())


@pytest.mark.parametrize("seed", range(4))
def test_slow_storage_that_fails_by_chance_gives_the_same(
    flaky: type[FlakyStorage], seen: list[str], own_cache: Path, tmp_path: Path, seed: int
) -> None:
    test, rng = write_test(tmp_path / "own.json"), random.Random(seed)
    expected = biassay.run("python:seen_texts:Seen", test, cache=tmp_path / "here")
    flaky.slow, flaky.by_chance = 0.02, lambda: rng.random() < 0.2
    for _ in range(3):
        forget(own_cache)
        assert biassay.run("python:seen_texts:Seen", test, cache="flaky://kept").results == expected.results
    assert len(seen) == 2 * len(set(seen))  # here and there


def in_english(test: str) -> str:
    """The same test with a random baseline, so that its texts are in two files of the cache."""
    given = json.loads(Path(test).read_text())
    given["targ1"]["test"] = {"language": "en"}
    Path(test).write_text(json.dumps(given))
    return test


def test_what_arrives_damaged_is_asked_again_and_mended_there(
    flaky: type[FlakyStorage], seen: list[str], own_cache: Path, tmp_path: Path
) -> None:
    test = in_english(write_test(tmp_path / "own.json"))
    first = biassay.run("python:seen_texts:Seen", test, cache="flaky://kept")
    asked = len(seen)
    name = next(name for name in flaky.store if name.endswith(".npz"))
    whole = flaky.store[name].getvalue()
    flaky().pipe_file(name, whole[:-7])
    forget(own_cache)
    assert biassay.run("python:seen_texts:Seen", test, cache="flaky://kept").results == first.results
    assert asked < len(seen) < 2 * asked
    assert flaky.store[name].getvalue() == whole


def test_storage_that_cannot_be_read_is_named_and_one_that_cannot_be_written_is_told(
    flaky: type[FlakyStorage], seen: list[str], tmp_path: Path
) -> None:
    test, heard = write_test(tmp_path / "own.json"), Heard()
    flaky.fail.update(ls=4)
    with pytest.raises(MeasurementError, match=r"flaky://kept: no response after 4 tries: ls was interrupted"):
        biassay.run("python:seen_texts:Seen", test, cache="flaky://kept")
    assert seen == []
    flaky.fail.update(put=10_000)
    first = biassay.run("python:seen_texts:Seen", test, cache="flaky://kept", listener=heard)
    assert [said.partition(": ")[0][:12] for said in heard.notices] == ["flaky://kept"]
    assert not [name for name in flaky.store if name.endswith(".npz")]
    flaky.fail.clear()
    assert biassay.run("python:seen_texts:Seen", test, cache="flaky://kept").results == first.results
    assert [name for name in flaky.store if name.endswith(".npz")]  # what was here only, is there now
    assert len(seen) == len(set(seen))
    with pytest.raises(UsageError, match="nowhere://x: unknown kind of URL"):
        biassay.run("python:seen_texts:Seen", test, cache="nowhere://x")


def test_a_corpus_there_gives_the_same_contexts(
    flaky: type[FlakyStorage], corpus: Path, test_file: Path, tmp_path: Path
) -> None:
    (corpus / "00.jsonl.gz").write_bytes(gzip.compress((corpus / "00.jsonl").read_bytes()))
    (corpus / "00.jsonl").unlink()
    here = find_contexts(corpus, tmp_path / "here.parquet", str(test_file), per_stimulus=40, workers=1)
    put(corpus, "flaky://corpus/all")
    flaky.fail.update(info=2, cat=3)
    for number, place in enumerate(("flaky://corpus/all", "flaky://corpus/all/*")):
        out = tmp_path / f"there{number}.parquet"
        there = find_contexts(place, out, str(test_file), per_stimulus=40, workers=1)
        assert there.contexts.table.equals(here.contexts.table)
        assert there.progress.bytes == here.progress.bytes


def _s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    from moto.server import ThreadedMotoServer
    from pyarrow.fs import FileSystem

    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    FileSystem.from_uri("s3://kept?allow_bucket_creation=true")[0].create_dir("kept")
    yield "s3://kept"
    server.stop()


def _gs(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    from gcp_storage_emulator.server import create_server

    monkeypatch.setattr("http.server.HTTPServer", ThreadingHTTPServer)  # connections are held for a while
    server = create_server("127.0.0.1", 0, in_memory=True, default_bucket="kept")
    server.start()
    port = server._api._httpd.socket.getsockname()[1]
    monkeypatch.setenv("CLOUD_STORAGE_EMULATOR_ENDPOINT", f"http://127.0.0.1:{port}")
    yield "gs://anonymous@kept"
    server.stop()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("serve", [_s3, _gs])
def test_a_bucket_holds_answers(
    serve: Callable[..., Iterator[str]],
    monkeypatch: pytest.MonkeyPatch,
    seen: list[str],
    own_cache: Path,
    tmp_path: Path,
) -> None:
    object_storage._open_bucket.cache_clear()
    test = write_test(tmp_path / "own.json")
    for bucket in serve(monkeypatch):
        first = biassay.run("python:seen_texts:Seen", test, cache=f"{bucket}/answers")
        asked = len(seen)
        forget(own_cache)
        assert biassay.run("python:seen_texts:Seen", test, cache=f"{bucket}/answers").results == first.results
        assert len(seen) == asked
        found = [
            (one.name, one.matched_by_folder) for one in object_storage.find_remote_files(f"{bucket}/answers/*/*.npz")
        ]
        assert found
        assert all(name.endswith(".npz") and not in_folder for name, in_folder in found)
    object_storage._open_bucket.cache_clear()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_bucket_holds_a_corpus(
    monkeypatch: pytest.MonkeyPatch, corpus: Path, test_file: Path, tmp_path: Path
) -> None:
    object_storage._open_bucket.cache_clear()
    here = find_contexts(corpus, tmp_path / "here.parquet", str(test_file), per_stimulus=40, workers=1)
    for bucket in _s3(monkeypatch):
        for file in corpus.iterdir():
            object_storage.RemoteFolder(f"{bucket}/corpus/deep").write(file.name, file.read_bytes())
        for workers, place in enumerate((f"{bucket}/corpus/deep/*.jsonl", f"{bucket}/corpus/deep/"), start=1):
            out = tmp_path / f"{workers}.parquet"
            there = find_contexts(place, out, str(test_file), per_stimulus=40, workers=workers)
            assert there.contexts.table.equals(here.contexts.table)
    object_storage._open_bucket.cache_clear()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_bucket_that_does_not_exist_is_named_at_once(
    monkeypatch: pytest.MonkeyPatch, seen: list[str], tmp_path: Path
) -> None:
    object_storage._open_bucket.cache_clear()
    for _ in _s3(monkeypatch):
        with pytest.raises(UsageError, match=r"^s3://other: the bucket does not exist"):
            biassay.run("python:seen_texts:Seen", write_test(tmp_path / "own.json"), cache="s3://other/x")
    assert seen == []


def test_compare_keeps_answers_there_too(
    flaky: type[FlakyStorage],
    seen: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,  # noqa: F811
) -> None:
    test = write_test(tmp_path / "own.json")
    biassay.run("python:seen_texts:Seen", test, out=tmp_path / "run", cache=tmp_path / "here")
    monkeypatch.chdir(tmp_path)
    again = ("compare", tmp_path / "run", "again=python:seen_texts:Seen", "--quiet", "--cache", "flaky://kept")
    assert cli(*again)[0] == 0
    assert [name for name in flaky.store if name.endswith(".npz")]
    assert not (tmp_path / "flaky:").exists()
    assert seen


def test_an_address_in_the_environment_is_no_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BIASSAY_CACHE", "s3://kept/answers")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"s3://kept/answers.*--cache"):
        biassay.run("python:seen_texts:Seen", write_test(tmp_path / "own.json"))
    monkeypatch.delenv("BIASSAY_CACHE")
    with pytest.raises(UsageError, match="expected two slashes"):
        biassay.run("python:seen_texts:Seen", write_test(tmp_path / "own.json"), cache="s3:/kept/answers")
    assert not (tmp_path / "s3:").exists()
