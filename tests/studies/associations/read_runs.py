"""Runs to read: changed ones, and what the terminal shows of them."""

from __future__ import annotations

import dataclasses
import io
from typing import Any

from rich.console import Console

from biassay.results.records import Result
from biassay.results.run import Run
from biassay.studies.associations.terminal import print_run


def changed(run: Run, **given: Any) -> Run:
    return Run(run.manifest, tuple(dataclasses.replace(r, **given) for r in run.results))


def printed(run: Run, width: int = 160) -> str:
    out = io.StringIO()
    print_run(run, Console(file=out, width=width))
    return out.getvalue()


def as_refused(result: Result) -> Result:
    numbers = ("effect_size", "statistic", "p_", "log10_p_", "significant")
    nothing = {f.name: None for f in dataclasses.fields(Result) if f.name.startswith(numbers)}
    return dataclasses.replace(result, **nothing, status="refused", reason="too many words", leaning={})
