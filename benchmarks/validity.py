"""Simulate the error rate of every p-value and the coverage of every interval that biassay prints.

python benchmarks/validity.py                      the whole table, about 20 minutes on 2 cores
python benchmarks/validity.py --only "crossed p"   one claim, study or simulation; the others keep their figures
python benchmarks/validity.py --quick              a minute: everything runs, nothing is written
python benchmarks/validity.py --tables             write the tables from validity.json again

Figures go to validity.json, and from there to docs/validity-appendix.md.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from claims.claim import Line
from claims.registry import CLAIMS, all_lines
from claims.running import measured
from claims.tables import appendix, summary_table

HERE = Path(__file__).resolve().parent
FILE = HERE / "validity.json"


def main() -> None:
    options = _parser().parse_args()
    kept = {_key(row): row for row in json.loads(FILE.read_text())} if FILE.exists() else {}
    lines = all_lines()
    if not options.tables:
        chosen = [line for line in lines if _asked(line, options.only)]
        start = time.perf_counter()
        rows = measured(chosen, processes=options.processes, quick=options.quick, progress=_telling(start))
        if options.quick:
            print(summary_table(rows))
            return
        kept |= {_key(row): row for row in rows}
    order = [(line.claim, line.experiment.name, line.note) for line in lines]
    rows = [kept[key] for key in order if key in kept]
    FILE.write_text(json.dumps(rows, indent=1) + "\n")
    (HERE.parent / "docs" / "validity-appendix.md").write_text(appendix(rows))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the repetitions; nothing is written")
    parser.add_argument("--only", default="", help="part of the name of a claim, a study or a simulation")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--tables", action="store_true", help="simulate nothing; write the tables from validity.json")
    return parser


def _asked(line: Line, only: str) -> bool:
    return any(only in name for name in (line.claim, line.experiment.name, CLAIMS[line.claim].study))


def _key(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["claim"], row["experiment"], row["note"]


def _telling(start: float) -> Any:
    return lambda text: print(f"{time.perf_counter() - start:6.0f} s  {text}", flush=True)


if __name__ == "__main__":
    main()
