"""Write the faults of WEATHub's lists by language into docs/tutorials/languages.md."""

from __future__ import annotations

from pathlib import Path

from biassay.datasets.languages import load_corrections, load_language_tests, load_languages
from biassay.datasets.linter import FAULTS, check_collections

PAGE = Path(__file__).resolve().parents[1] / "docs" / "tutorials" / "languages.md"
MARKS = ("<!-- made by scripts/docs_languages.py -->\n", "<!-- end -->\n")


def make_table() -> str:
    """Return one row per language: its tests, the corrections, and tests with each fault in the published lists."""
    rows, totals = [], [0] * (len(FAULTS) + 3)
    for code, name in load_languages().items():
        ((_, published, faults),) = check_collections([f"weathub-{code}-published"])
        counts = [len({fault.test for fault in faults if fault.kind == kind}) for kind in FAULTS]
        numbers = [published, *counts, len(load_corrections().get(code, ())), len(load_language_tests(code))]
        totals = [one + other for one, other in zip(totals, numbers, strict=True)]
        rows.append(f"| {name} (`{code}`) | {' | '.join(map(str, numbers))} |\n")
    head = f"| language | published tests | {' | '.join(FAULTS)} | corrections | tests |\n|---|{'---|' * len(totals)}\n"
    return f"{head}{''.join(rows)}| all | {' | '.join(map(str, totals))} |\n"


def with_table(page: str) -> str:
    """Return the page with an updated table."""
    before, _, rest = page.partition(MARKS[0])
    return f"{before}{MARKS[0]}\n{make_table()}\n{MARKS[1]}{rest.partition(MARKS[1])[2]}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
