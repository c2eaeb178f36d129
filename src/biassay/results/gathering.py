"""Runs that are shown as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from biassay.errors import UsageError
from biassay.results.data import RunData

__all__ = ["Gathered", "check_distinct"]


@dataclass(frozen=True)
class Gathered:
    """One run or several as one: ``run`` is what is shown, ``parts`` are the runs that it came from.

    ``differences`` says in what the runs differ that should be alike; it is empty unless that was asked for.
    """

    run: RunData
    parts: Mapping[str, RunData]
    differences: tuple[str, ...] = ()


def check_distinct(runs: Mapping[str, RunData]) -> None:
    """Copies of one run are refused."""
    by_id: dict[str, str] = {}
    for name, run in runs.items():
        if run.manifest.run_id in by_id:
            raise UsageError(f"{by_id[run.manifest.run_id]} and {name} are copies of one run; leave one of them out")
        by_id[run.manifest.run_id] = name
