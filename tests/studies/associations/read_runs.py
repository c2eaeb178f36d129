"""Runs to read: changed ones, and what the terminal shows of them."""

from __future__ import annotations

import dataclasses
import io
from typing import Any

from rich.console import Console
from tests.results.made_runs import with_rows

from biassay.runs.run import Run
from biassay.studies.associations.terminal import print_run


def changed(run: Run, **given: Any) -> Run:
    return with_rows(run, (dataclasses.replace(r, **given) for r in run.results))


def printed(run: Run, width: int = 160) -> str:
    out = io.StringIO()
    print_run(run, Console(file=out, width=width))
    return out.getvalue()
