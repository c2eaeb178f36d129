"""A corpus on the Hugging Face Hub, here a server of this machine with the four answers that reading takes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import pytest

from biassay.runs.contexts import find_contexts

pytestmark = pytest.mark.extras

_COMMIT = "0" * 40


class Hub(BaseHTTPRequestHandler):
    files: dict[str, bytes]

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if "/resolve/main/" in path:
            self._send(self.files[path.partition("/resolve/main/")[2]])
        elif "/tree/main" in path:
            self._send(json.dumps(self._listed(path.partition("/tree/main")[2].strip("/"))).encode())
        else:
            self._send(json.dumps({"id": "we/corpus", "sha": _COMMIT, "siblings": []}).encode())

    def _listed(self, folder: str) -> list[dict[str, object]]:
        found = [name for name in self.files if name.rpartition("/")[0] == folder]
        folders = {name.partition("/")[0] for name in self.files if "/" in name} if not folder else ()
        return [
            *({"type": "file", "oid": _COMMIT, "size": len(self.files[name]), "path": name} for name in found),
            *({"type": "directory", "oid": _COMMIT, "size": 0, "path": name} for name in folders),
        ]

    def _send(self, content: bytes) -> None:
        first, _, last = self.headers.get("Range", "").removeprefix("bytes=").partition("-")
        part = content[int(first or 0) : int(last or len(content)) + 1]
        self.send_response(206 if first else 200)
        if first:
            self.send_header("Content-Range", f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def hub(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    from huggingface_hub import HfFileSystem, constants

    Hub.files = {f"data/{file.name}": file.read_bytes() for file in corpus.iterdir()}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setitem(fsspec.config.conf, "hf", {"endpoint": f"http://127.0.0.1:{server.server_port}"})
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    HfFileSystem.clear_instance_cache()
    yield
    HfFileSystem.clear_instance_cache()
    server.shutdown()
    server.server_close()


@pytest.mark.usefixtures("hub")
def test_a_corpus_on_the_hub_gives_the_same_contexts(corpus: Path, test_file: Path, tmp_path: Path) -> None:
    here = find_contexts(corpus, tmp_path / "here.parquet", str(test_file), per_stimulus=40, workers=1)
    for number, place in enumerate(("hf://datasets/we/corpus/data", "hf://datasets/we/corpus/data/*.jsonl")):
        there = find_contexts(place, tmp_path / f"{number}.parquet", str(test_file), per_stimulus=40, workers=1)
        assert there.contexts.table.equals(here.contexts.table)
