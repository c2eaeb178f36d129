"""Records the golden runs: ``python -m tests.golden.record [CASE ...]``, all cases by default.

A table is written only where it differs by more than its case allows, or says more or less than it did, so that what
has changed is what `git diff` shows.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from .cases import CASES, Case
from .numbers import shown
from .running import Outcome, Place
from .tables import Table, differences, from_text, to_text

RECORDED = Path(__file__).parent / "recorded"
WORKING = Path(tempfile.gettempdir()) / "biassay-golden"


def recorded(name: str) -> Table:
    """The table of a case."""
    return from_text((RECORDED / f"{name}.json").read_text(encoding="utf-8"))


def unlike(case: Case, outcome: Outcome) -> list[str]:
    """What differs between a case and what was recorded."""
    if case.same_as is None:
        return list(differences(recorded(case.name), outcome.table, case.tolerance))
    expected = {key: value for key, value in recorded(case.same_as).items() if key[2] != "exit_code"}
    return list(differences(expected if outcome.folder else shown(expected), outcome.numbers, case.tolerance))


def record(case: Case, outcome: Outcome) -> str:
    """Write what a case gave, if it is news; says what was done."""
    if case.same_as is not None:
        return "; ".join(unlike(case, outcome)[:3]) or f"as {case.same_as}"
    path = RECORDED / f"{case.name}.json"
    if path.exists() and recorded(case.name).keys() == outcome.table.keys() and not unlike(case, outcome):
        return "unchanged"
    path.write_text(to_text(outcome.table, case.tolerance.digits), encoding="utf-8")
    return "recorded"


def main(names: Iterable[str]) -> None:
    cases = [CASES[name] for name in names] or list(CASES.values())
    RECORDED.mkdir(exist_ok=True)
    WORKING.mkdir()  # an error if somebody else is recording
    os.environ["BIASSAY_CACHE"] = str(WORKING / "cache")
    try:
        place = Place(WORKING)
        for case in cases:
            print(f"{case.name}: {record(case, place.outcome(case.name))}", flush=True)
    finally:
        shutil.rmtree(WORKING)


if __name__ == "__main__":
    main(sys.argv[1:])
