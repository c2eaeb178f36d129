"""Run 50 models on a simulated cluster; some models are damaged, and the driver is killed repeatedly.

python benchmarks/many_models.py [--models 50] [--kills 5]

The models are tiny and have different weights; every tenth lacks its weights. The list is measured by one process
without a cluster, and by a driver on two nodes of one core that is killed by signal 9 at random moments and
resumed. Tables and failed models of both are compared exactly. Memory is the peak of one process, over
the first five models and over all.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "models"), str(ROOT / "benchmarks")]

import tiny_models  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

import biassay  # noqa: E402
from faults import DRIVER, cluster_of, until  # noqa: E402

TESTS = ("weat1", "weat6", "weat7")
MEASURED = f"""{DRIVER.replace("main(sys.argv[1:])", "")}
import resource
try:
    main(sys.argv[1:])
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)
"""


def save_models(folder: Path, count: int) -> list[str]:
    """Save models, every tenth without weights, and return the lines of a model list."""
    lines = []
    for number in range(count):
        place = tiny_models.save_tiny("roberta", folder / f"m{number}")
        file = place / "model.safetensors"
        weights = load_file(file)
        torch.manual_seed(number)
        save_file({name: torch.randn_like(own) * 0.3 for name, own in weights.items()}, file, {"format": "pt"})
        if number % 10 == 3:
            file.unlink()
        lines.append(f"m{number}=hf:{place}")
    return lines


def driver(folder: Path, models: Path, name: str, *how: str) -> subprocess.Popen[bytes]:
    """Start a driver process, which resumes the run if there is one."""
    out = folder / name
    begins = not (out / "manifest.json").exists()
    what = ["run", f"@{models}", "--out", str(out), "--tests", ",".join(TESTS)] if begins else ["resume", str(out)]
    what[1:1] = ["--cache", str(folder / f"{name}-cache"), "--quiet", *how]
    return subprocess.Popen([sys.executable, "-c", MEASURED, *what], stderr=subprocess.PIPE)


def ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process and return its peak memory in megabytes."""
    _, said = process.communicate()
    return int(said.split()[-1])


def kill_at(process: subprocess.Popen[bytes], cache: Path, wanted: float) -> int:
    """Kill the process once the cache has this number of files; return how many it has then."""

    def kept() -> int:
        return len(list(cache.rglob("*.npz")))

    until(lambda: kept() >= wanted, lambda: process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return kept()


def measured(folder: Path, name: str) -> tuple[bytes, list[bool]]:
    records = biassay.load(folder / name).manifest.models
    return (folder / name / "results.tsv").read_bytes(), [record.failed is None for record in records]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=50)
    parser.add_argument("--kills", type=int, default=5)
    chosen = parser.parse_args()
    folder, rng = Path(tempfile.mkdtemp(prefix="many-")), random.Random(1)
    try:
        lines = save_models(folder / "models", chosen.models)
        few, many = folder / "few.txt", folder / "many.txt"
        few.write_text("\n".join(lines[:5]))
        many.write_text("\n".join(lines))
        memory = [ended(driver(folder, few, "few"))]
        began = time.monotonic()
        memory.append(ended(driver(folder, many, "one")))
        seconds = time.monotonic() - began
        expected = measured(folder, "one")
        print(f"one process: {expected[1].count(True)} of {len(lines)} models measured in {seconds:.0f} s; ", end="")
        print(f"{memory[0]} MB over 5 models, {memory[1]} MB over all", flush=True)
        with cluster_of(2) as cluster:
            for kill in range(chosen.kills):
                wanted = (kill + rng.random()) * len(lines) / chosen.kills
                process = driver(folder, many, "ray", "--engine", "ray", "--address", cluster.address)
                kept = kill_at(process, folder / "ray-cache", wanted)
                print(f"killed with {kept} files of answers kept", flush=True)
            memory.append(ended(driver(folder, many, "ray", "--engine", "ray", "--address", cluster.address)))
        print(f"on the cluster, after {chosen.kills} kills: the same: {measured(folder, 'ray') == expected}; ", end="")
        print(f"{memory[2]} MB at most in the last driver")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
