"""The local engine: every task once, on several processes, and errors as if they had happened here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from biassay.engines.local import LocalExecutor
from biassay.errors import MeasurementError, StimulusError, UnknownNameError

sys.path.insert(0, str(Path(__file__).parent))  # for the worker processes, which import the helpers by name
from engine_helpers import Squares, Unmakeable


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)


def expected(tasks: list[int]) -> list[tuple[int, int]]:
    return sorted((task, piece) for task in tasks for piece in range(max(1, task)))


@pytest.mark.parametrize("workers", [1, 2, 3, None])
def test_every_task_is_done_once(workers: int | None) -> None:
    tasks = [0, 5, 3, 1, 4, 2, 6]
    found = list(LocalExecutor().run(Squares(), tasks, workers=workers))
    assert sorted(found)[0][:2] == (0, 0)
    assert sorted((task, piece) for task, piece, _ in found) == expected(tasks)
    assert len({pid for _, _, pid in found}) <= (workers or os.cpu_count() or 1)
    if workers and workers > 1:
        assert os.getpid() not in {pid for _, _, pid in found}


def test_a_system_that_does_not_tell_which_cores_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert {pid for _, _, pid in LocalExecutor().run(Squares(), [2, 2])} == {os.getpid()}


def test_a_worker_with_a_model_runs_in_this_process() -> None:
    assert {pid for _, _, pid in LocalExecutor().run(Squares(), [2, 2], model=True)} == {os.getpid()}


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_errors_arrive_as_what_they_are(workers: int) -> None:
    engine = LocalExecutor()
    with pytest.raises(UnknownNameError, match="did you mean 'rose'"):
        list(engine.run(Squares(fail_at=3), [1, 2, 3], workers=workers))
    with pytest.raises(OSError, match="No space left on device") as caught:
        list(engine.run(Squares(fail_at=3, how="disk"), [1, 2, 3], workers=workers))
    assert caught.value.errno == 28
    with pytest.raises(OSError, match=r"^the model is gated$"):
        list(engine.run(Squares(fail_at=3, how="network"), [1, 2, 3], workers=workers))
    with pytest.raises(StimulusError, match="nothing to make it from"):
        list(engine.run(Unmakeable(), [1, 2], workers=workers))
    with pytest.raises((RuntimeError, ZeroDivisionError), match="a fault of the program"):
        list(engine.run(Squares(fail_at=3, how="fault"), [1, 2, 3], workers=workers))


def test_a_killed_worker_is_told(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match=r"killed by signal 9 \(out of memory\? use fewer workers\)"):
        list(LocalExecutor().run(Squares(str(tmp_path), kill_at=3), [1, 2, 3, 4], workers=2))


def test_workers_end_when_no_more_results_are_wanted() -> None:
    results = LocalExecutor().run(Squares(), [50, 50], workers=2)
    pid = next(results)[2]
    results.close()  # type: ignore[attr-defined]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_workers_end_with_a_parent_that_was_killed() -> None:
    script = (
        "from engine_helpers import Squares; from biassay.engines.local import LocalExecutor\n"
        "for r in LocalExecutor().run(Squares(), [500, 500], workers=2): print(r[2], flush=True)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = {int(parent.stdout.readline()) for _ in range(20)}
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20.0
    while any(_alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(_alive(pid) for pid in pids)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
