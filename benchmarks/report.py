"""Measure the time to render a report, its size, and its first paint in a browser.

A real run plus noise gives reports of any size. Needs Chromium for the second part.
"""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import biassay
from biassay.runs.run import Run
from biassay.studies.associations.results import decide_associations

SIZES = ((10, 120), (1000, 46))
LAUNCH = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
WATCH = """
window.shifted = 0;
new PerformanceObserver((list) => { for (const entry of list.getEntries()) window.shifted += entry.value; })
  .observe({ type: "layout-shift", buffered: true });
"""


def noisy(found: Run, models: int, tests: int) -> Run:
    """Make ``models`` x ``tests`` results from measured ones plus noise."""
    rng = np.random.default_rng(0)
    measured = [r for r in found.results if r.effect_size is not None]
    results, records = [], []
    for m in range(models):
        records.append(dataclasses.replace(found.manifest.models[0], text=f"model {m}", name=f"model {m}"))
        for t in range(tests):
            r = measured[t % len(measured)]
            p = float(10.0 ** -rng.exponential(2.0))
            log = float(np.log10(p))
            noisy = {k: {w: float(v + rng.normal(0, 0.05)) for w, v in ws.items()} for k, ws in r.associations.items()}
            effect = float(rng.normal(0.5, 0.6))
            others = {
                name: dataclasses.replace(one, p_value=max(p, one.p_floor or 0.0), log10_p_value=log)
                for name, one in r.alternatives.items()
            }
            results.append(
                dataclasses.replace(
                    r.record,
                    model=f"model {m}",
                    test=r.test if t < len(measured) else f"{r.test} ({t})",
                    outcome=dataclasses.replace(r.outcome, effect_size=effect, p_value=p),
                    alternatives=others,
                    associations=noisy,
                )
            )
    manifest = dataclasses.replace(found.manifest, models=tuple(records))
    decisions = decide_associations(manifest.settings, results)
    return Run(manifest, {"results": tuple(results), "decisions": decisions})


def painted(page: Path) -> str:
    """Return the median first paint and layout shift of five page loads, with console messages."""
    browser = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return "playwright is not installed"
    if browser is None:
        return "Chromium is not installed"
    times, shifts, said = [], [], []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=LAUNCH)
        for _ in range(5):
            context = chromium.new_context(viewport={"width": 1280, "height": 900})
            opened = context.new_page()
            opened.on("console", lambda message: said.append(message.text))
            opened.add_init_script(WATCH)
            opened.goto(page.as_uri())
            opened.wait_for_timeout(300)
            times.append(opened.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
            shifts.append(opened.evaluate("window.shifted"))
            context.close()
        chromium.close()
    spread = f"{min(times):.0f} to {max(times):.0f} ms"
    return f"first paint {sorted(times)[2]:.0f} ms ({spread}), layout shift {max(shifts)}, console messages {len(said)}"


def main() -> None:
    found = biassay.run("glove")
    for models, tests in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            noisy(found, models, tests).save(Path(folder) / "run")
            page = Path(folder) / "report.html"
            start = time.perf_counter()
            command = [sys.executable, "-m", "biassay", "report", f"{folder}/run", "--out", str(page), "--quiet"]
            subprocess.run(command, check=True)
            seconds = time.perf_counter() - start
            print(
                f"{models} models x {tests} tests: {seconds:.1f} s, {page.stat().st_size / 1e6:.2f} MB; {painted(page)}"
            )


if __name__ == "__main__":
    main()
