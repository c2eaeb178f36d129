"""Memory: large tests need little of it, and a run without enough of it fails with a message."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from biassay.engines.local import LocalExecutor
from biassay.errors import MeasurementError, explain_memory_errors

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="measures and limits memory as Linux does")

MODEL = """
import resource, sys
import numpy as np
import biassay, scipy.special, scipy.stats
from biassay.runs import api

class Model:
    def encode(self, texts):
        seeds = (int.from_bytes(text.encode()[-7:], "big") for text in texts)
        return np.stack([np.random.default_rng(seed).standard_normal(DIMENSIONS) for seed in seeds]).astype(np.float32)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
"""
LARGE = """
words = {role: [f"{role}{i}" for i in range(3000)] for role in "XYAB"}
before = peak()
(row,) = biassay.run(Model(), tests=words).results
assert row.status == "measured", row.reason
assert row.p_value is not None and row.ci_low < row.effect_size < row.ci_high
print(peak() - before)
"""
LIMITED = """
def limit():
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 60 * 2**20,) * 2)

np.ones((600, 600)) @ np.ones((600, 600))  # OpenBLAS ends the process if it cannot allocate its buffers
words = {role: [f"{role}{i}" for i in range(3000)] for role in "XYAB"}
limit()
try:
    biassay.run(Model(), tests=words)
except biassay.BiassayError as error:
    print(type(error).__name__, error)
"""


def python(program: str, timeout: float = 600.0, **variables: str) -> str:
    """Run a program in a process of its own; the time limit is there for one that hangs."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **variables}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=timeout, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("own_cache")
def test_three_thousand_words_per_set_take_little_memory() -> None:
    """They took 2.6 GB. Now they take 255 MB, on a busy machine up to 100 MB more. Fewer dimensions save time."""
    assert float(python(MODEL.replace("DIMENSIONS", "100") + LARGE)) < 450.0


@pytest.mark.usefixtures("own_cache")
def test_a_run_with_too_little_memory_says_so() -> None:
    shown = python(MODEL.replace("DIMENSIONS", "300") + LIMITED)
    assert shown.startswith("MeasurementError not enough memory")
    assert "raise the memory limit" in shown


@dataclass(frozen=True)
class Hungry:
    """Workers that run out of memory: by their own limit, or killed as by the system."""

    kind: str

    def __call__(self) -> Hungry:
        if self.kind == "killed at start":
            os.kill(os.getpid(), 9)
        return self

    def work(self, task: int) -> Iterator[int]:
        if self.kind == "killed":
            os.kill(os.getpid(), 9)
        if self.kind == "library":
            raise RuntimeError("std::bad_alloc")
        resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
        yield len(bytearray(2**32)) + task


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("killed", "killed by signal 9 .out of memory. use fewer workers."),
        ("killed at start", "killed by signal 9 .out of memory. use fewer workers."),
        ("library", "not enough memory: std::bad_alloc"),
        ("limit", "not enough memory"),
    ],
)
def test_workers_without_memory_end_the_work(kind: str, message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        list(LocalExecutor().run(_Make(kind), list(range(8)), workers=2))  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Make:
    kind: str

    def __call__(self) -> object:
        return Hungry(self.kind)().work


def test_errors_of_libraries_without_memory_are_explained() -> None:
    for message in ("std::bad_alloc", "CUDA out of memory.", "[enforce fail] DefaultCPUAllocator: can't allocate"):
        with pytest.raises(MeasurementError, match="not enough memory"), explain_memory_errors():
            raise RuntimeError(message)
    with pytest.raises(RuntimeError, match="another"), explain_memory_errors():
        raise RuntimeError("another")
