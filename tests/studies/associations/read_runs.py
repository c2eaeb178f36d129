"""What the terminal shows of runs."""

from __future__ import annotations

import io

from rich.console import Console

from biassay.runs.run import Run
from biassay.studies.associations.terminal import print_run


def printed(run: Run, width: int = 160) -> str:
    out = io.StringIO()
    print_run(run, Console(file=out, width=width))
    return out.getvalue()
