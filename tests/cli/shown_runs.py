"""Modified runs for the tests of ``biassay report`` and ``biassay compare``, and parsers of their output."""

from __future__ import annotations

import dataclasses
import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.results.made_runs import altered, with_rows

from biassay.runs.run import Run, load

TESTS = ("weat6", "weat7", "weat8")
MARK = "<title>biassay:"


def files(folder: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def told(stdout: str) -> Any:
    """JSON as any reader takes it."""
    return json.loads(stdout, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


def stored(folder: Path) -> list[dict[str, Any]]:
    """Return the results of a run folder, as `--json` prints them."""
    results: list[dict[str, Any]] = json.loads(load(folder).to_json())["results"]
    return results


def manifest_in(folder: Path) -> dict[str, Any]:
    """Return the manifest of a run folder without its digest."""
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    del manifest["digest"]
    return manifest


def read(page: Path) -> str:
    """Return the visible text of a report."""
    text = re.sub(r"<(script|style)\b.*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def table(stdout: str) -> list[list[str]]:
    rows = [line for line in stdout.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in row.strip("│").split("│")] for row in rows]


def line_of(stdout: str, test: str) -> list[str]:
    """Return the numbers in the last line of a test."""
    lines = [line for line in stdout.splitlines() if re.search(rf"[ ,]{re.escape(test)}([ ,]|$)", line)]
    cells = [re.split(r" {2,}", line.strip()) for line in lines]
    numbers = [[cell for cell in own if re.match(r"[-−]?(\d|inf)|NaN|\[|full range|–$", cell)] for own in cells]
    return [own for own in numbers if len(own) > 1][-1]


def judged(stdout: str) -> list[list[str]]:
    """Return the lines of verdicts: heading, test and numbers."""
    found: list[list[str]] = []
    outcome = ""
    for line in stdout.splitlines():
        if head := re.match(r"(Worse|Missing|Inconclusive|Better|No worse|Not measured) \(", line):
            outcome = head[1].lower()
        elif not line.startswith("  "):
            outcome = ""
        elif outcome and line.startswith("   "):  # the rest of a label that is wrapped
            found[-1][1] += f" {line.strip()}"
        elif outcome:
            label, *numbers = re.split(r"\s{2,}", line.strip())
            found.append([outcome, label, *numbers])
    return [[outcome, label.rpartition("(")[2].rstrip(")"), *numbers] for outcome, label, *numbers in found]


def edit(path: Path, change: Callable[[Any], Any]) -> None:
    """Change a file on purpose, as one does: without its digest."""
    content = json.loads(path.read_text())
    content.pop("digest", None)
    path.write_text(json.dumps(change(content) or content))


def edit_first(folder: Path, **given: Any) -> None:
    """Other values in the first result, named as its attributes: ``effect_size``, ``sentences_p_value``."""

    def change(content: Any) -> None:
        row = content["tables"]["results"][0]
        outcomes = {row["outcome"]["test"]: row["outcome"], **row["alternatives"]}
        for name, value in given.items():
            prefix = next((one for one in outcomes if name.startswith(f"{one}_")), None)
            place = row if name in row else row["outcome"] if prefix is None else outcomes[prefix]
            place[name.removeprefix(f"{prefix}_")] = value

    edit(folder / "results.json", change)


def renamed(run: Run, model: str) -> Run:
    """Run a model under another name, without options."""
    models = tuple(dataclasses.replace(record, name=model, text=model, settings={}) for record in run.manifest.models)
    rows = (altered(r, model=model, options="") for r in run.results)
    return with_rows(run, rows, models=models, run_id=f"of {model}")
