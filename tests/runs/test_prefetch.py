"""`biassay run` starts the model on the next batches before it reads the vectors of the current one."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Cli, cli
from tests.models.tiny_models import save_tiny

import biassay
from biassay.cache.responses import ModelCache
from biassay.models.base import TextEmbeddings
from biassay.models.transformers.encoder import HfEncoder, PendingVectors, TokenStates

__all__ = ["cli"]
pytestmark = [pytest.mark.extras, pytest.mark.usefixtures("one_thread")]
BATCH = 64
TESTS = ("weat6", "sent-weat6")
AHEAD = 2


class Device:
    """The CPU, presented as a device that computes on its own; records when batches start, are read and are stored."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events: list[tuple[str, int]] = []
        self.threads: set[str] = set()
        self._lock = threading.Lock()
        self._started = 0
        device = self

        class Done:
            def __init__(self, batch: int) -> None:
                self._batch = batch

            def synchronize(self) -> None:
                device.record("read", self._batch)

        def receive(_: TokenStates, vectors: Sequence[Any]) -> PendingVectors:
            with device._lock:
                batch, device._started = device._started, device._started + 1
            device.threads.add(threading.current_thread().name)
            device.record("start", batch)
            return PendingVectors(vectors, Done(batch))  # type: ignore[arg-type]

        add = ModelCache.add

        def stored(store: Any, requests: Sequence[Any], answers: Any, **more: Any) -> None:
            add(store, requests, answers, **more)
            if isinstance(answers, TextEmbeddings):
                device.record("store", len(requests))

        monkeypatch.setattr(TokenStates, "is_asynchronous", True)
        monkeypatch.setattr(TokenStates, "_send", lambda _, *arrays: [_tensor(array) for array in arrays])
        monkeypatch.setattr(TokenStates, "_receive", receive)
        monkeypatch.setattr(ModelCache, "add", stored)

    def record(self, event: str, batch: int) -> None:
        with self._lock:
            self.events.append((event, batch))

    def count(self, event: str) -> int:
        return sum(name == event for name, _ in self.events)

    def before(self, event: str) -> Iterator[tuple[int, int]]:
        """Yield how many batches were started and stored before each event of a kind."""
        for position, (name, _) in enumerate(self.events):
            if name == event:
                earlier = [other for other, _ in self.events[:position]]
                yield earlier.count("start"), earlier.count("store")


def _tensor(array: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(array)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"hf:{save_tiny('roberta', tmp_path_factory.mktemp('model'))}?device=cpu"


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HfEncoder, "batch_size", BATCH)


def files_in(cache: Path) -> dict[str, bytes]:
    return {str(path.relative_to(cache)): path.read_bytes() for path in cache.rglob("*.npz")}


def test_the_next_batches_run_while_vectors_are_read_and_stored(
    model: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cached files, named by their content, are those of a run that starts one batch after the other."""
    common = ("run", model, "--tests", ",".join(TESTS), "--quiet")
    assert cli(*common, "--cache", tmp_path / "plain", "--out", tmp_path / "one")[0] == 0
    with monkeypatch.context() as patch:
        device = Device(patch)
        assert cli(*common, "--cache", tmp_path / "ahead", "--out", tmp_path / "two")[0] == 0
    batches = device.count("start")
    assert batches == device.count("read") == device.count("store") > 2 * AHEAD
    assert len(device.threads) == 2  # the first batch runs in the main thread
    for position, (started, stored) in enumerate(device.before("read")):
        assert stored == position  # every batch is stored before the next one is read
        assert started <= position + 1 + AHEAD  # the bound on memory
    assert files_in(tmp_path / "ahead") == files_in(tmp_path / "plain")
    assert biassay.load(tmp_path / "one").tables == biassay.load(tmp_path / "two").tables


def test_batches_are_started_before_the_one_ahead_of_them_is_read(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device gets its next batch although nobody has read the current one."""
    device = Device(monkeypatch)
    read = PendingVectors.vectors

    def read_late(coming: PendingVectors) -> Any:
        if device.count("read") == 1:
            waiting = threading.Event()
            for _ in range(500):
                if device.count("start") >= 2 + AHEAD:
                    break
                waiting.wait(0.02)
        return read(coming)

    monkeypatch.setattr(PendingVectors, "vectors", read_late)
    biassay.run(model, TESTS, cache=tmp_path)
    started, stored = list(device.before("read"))[1]
    assert (started, stored) == (2 + AHEAD, 1)
