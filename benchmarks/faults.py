"""Kill the driver, a worker or a node of a Ray cluster during runs, and check that the results do not change.

python benchmarks/faults.py [--trials 20] [--only driver worker node drivers]

The cluster is simulated on this machine: a head, and two nodes of one core. Each trial kills a process by
signal 9 at a random moment and resumes a run that lost its driver, or two drivers fill one cache at the
same time. Rows and the names of cache files, which are hashes of their content, are compared with those
of a run without a cluster.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))
os.environ["PYTHONPATH"] = str(ROOT / "src")  # the nodes inherit it
os.environ["OMP_NUM_THREADS"] = "1"

import biassay  # noqa: E402
from biassay.engines.ray_cluster import RayExecutor  # noqa: E402

MODELS = {"one": "use", "two": "glove"}
TESTS = ["weat?", "sent-weat6*", "sent-weat7"]
DRIVER = "import sys; from biassay.cli import main; main(sys.argv[1:])"
_LONGEST = 600.0  # seconds per trial
Found = tuple[list[Any], list[str]]


class Place:
    """Folder for runs, cluster, and expected results."""

    def __init__(self, folder: Path, cluster: Any) -> None:
        self.folder, self.cluster, self.cache = folder, cluster, folder / "cache"
        self.expected = self.found(biassay.run(MODELS, TESTS, cache=self.cache))
        self.engine = RayExecutor(cluster.address)

    def found(self, run: biassay.Run) -> Found:
        return list(run.results), sorted(str(path.relative_to(self.cache)) for path in self.cache.rglob("*.npz"))

    def forget(self) -> None:
        for path in list(self.folder.iterdir()):
            shutil.rmtree(path)

    def kept(self) -> int:
        return len(list(self.cache.rglob("*.npz")))

    def a_moment(self, rng: random.Random) -> Callable[[], bool]:
        """Return a condition: the cache has a random number of files, from none to all but one."""
        wanted = rng.randrange(len(self.expected[1]))
        return lambda: self.kept() >= wanted

    def begin(self, name: str) -> subprocess.Popen[bytes]:
        """Start a driver process, which resumes the run if there is one."""
        out = self.folder / name
        models = [f"{name}={model}" for name, model in MODELS.items()]
        what = ["resume", str(out)] if (out / "manifest.json").exists() else ["run", *models, "--out", str(out)]
        tests = [] if what[0] == "resume" else ["--tests", ",".join(TESTS)]
        how = ["--engine", "ray", "--address", self.cluster.address, "--cache", str(self.cache), "--quiet"]
        return subprocess.Popen([sys.executable, "-c", DRIVER, *what, *how, *tests])


@contextmanager
def cluster_of(nodes: int) -> Iterator[Any]:
    """Simulate a cluster: a head without workers, and nodes of one core."""
    import ray
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 100_000_000})
    for _ in range(nodes):
        made.add_node(num_cpus=1, object_store_memory=100_000_000)
    made.wait_for_nodes()
    try:
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def workers() -> list[int]:
    """List the worker processes of nodes that this process started."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            is_worker = (place / "cmdline").read_bytes().startswith(b"ray::Worker")
            if is_worker and parent(parent(int(place.name))) == os.getpid():
                found.append(int(place.name))
        except OSError:
            continue
    return found


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def until(is_so: Callable[[], bool], is_over: Callable[[], bool]) -> bool:
    """Wait until a condition holds; return False if the run ends first."""
    began = time.monotonic()
    while not is_so():
        if is_over() or time.monotonic() - began > _LONGEST:
            return False
        time.sleep(0.01)
    return True


def while_running(place: Place, moment: Callable[[], bool], do: Callable[[], bool]) -> tuple[Found, bool]:
    """Run in this process and call `do` once the condition `moment` holds."""
    over = threading.Event()
    done: list[bool] = []
    thread = threading.Thread(target=lambda: done.append(until(moment, over.is_set) and do()))
    thread.start()
    try:
        found = place.found(biassay.run(MODELS, TESTS, cache=place.cache, engine=place.engine))
    finally:
        over.set()
        thread.join()
    return found, done == [True]


def lose_worker(place: Place, rng: random.Random) -> tuple[Found, bool]:
    moment = place.a_moment(rng)

    def kill() -> bool:
        found = workers()
        if found:
            os.kill(rng.choice(sorted(found)), signal.SIGKILL)
        return bool(found)

    return while_running(place, lambda: moment() and bool(workers()), kill)


def lose_node(place: Place, rng: random.Random) -> tuple[Found, bool]:
    def kill() -> bool:
        place.cluster.remove_node(rng.choice(list(place.cluster.worker_nodes)), allow_graceful=False)
        return True

    found, hit = while_running(place, place.a_moment(rng), kill)
    if hit:
        place.cluster.add_node(num_cpus=1, object_store_memory=100_000_000)
    return found, hit


def lose_driver(place: Place, rng: random.Random) -> tuple[Found, bool]:
    driver = place.begin("run")
    hit = until(place.a_moment(rng), lambda: driver.poll() is not None)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    place.begin("run").wait(_LONGEST)
    return place.found(biassay.load(place.folder / "run")), hit


def two_drivers(place: Place, rng: random.Random) -> tuple[Found, bool]:
    """Start two drivers with one cache; files that both write must have the same name and content."""
    first = place.begin("run")
    time.sleep(rng.random())
    second = place.begin("other")
    for driver in (first, second):
        driver.wait(_LONGEST)
    found = [place.found(biassay.load(place.folder / name)) for name in ("run", "other")]
    return found[0] if found[0] == found[1] else ([], []), True


KINDS = {"driver": lose_driver, "worker": lose_worker, "node": lose_node, "drivers": two_drivers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first trial (seeds the random moments)")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS))
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    counts = {kind: [0, 0, 0] for kind in chosen.only}
    try:
        with cluster_of(2) as cluster:
            place = Place(folder, cluster)
            print(f"{len(place.expected[0])} rows, {len(place.expected[1])} files of answers", flush=True)
            for trial in range(chosen.first, chosen.first + chosen.trials):
                for kind, count in counts.items():
                    place.forget()
                    found, hit = KINDS[kind](place, random.Random(f"{kind} {trial}"))
                    count[:] = [count[0] + 1, count[1] + hit, count[2] + (found == place.expected)]
                told = [f"{kind}: {n}, {hit} in the middle, {same} the same" for kind, (n, hit, same) in counts.items()]
                print("trials of " + "; ".join(told), flush=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
