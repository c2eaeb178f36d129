"""Carries the golden cases out."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from biassay.cli import main
from biassay.cli.progress import ProgressLog
from biassay.results.run_data import short_name

from .cases import CASES, Case, Stop
from .made_inputs import make_inputs
from .models import make_models
from .numbers import numbers_in_comparison, numbers_in_report, numbers_of
from .tables import Table

_SHOWN = {"report": numbers_in_report, "compare": numbers_in_comparison}


@dataclass(frozen=True)
class Outcome:
    """The numbers of a case, exit codes by command, and the folder of its run."""

    numbers: Table
    exit_codes: dict[str, int]
    folder: Path | None = None

    @property
    def table(self) -> Table:
        """What is recorded."""
        return self.numbers | {("", command, "exit_code"): code for command, code in self.exit_codes.items()}


@dataclass(frozen=True)
class _Said:
    code: int
    output: str
    errors: str


class Place:
    """A folder in which cases are run, each once; what they need is made when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._outcomes: dict[str, Outcome] = {}
        make_inputs(folder)

    def outcome(self, name: str) -> Outcome:
        if name not in self._outcomes:
            self._outcomes[name] = self._run(CASES[name])
        return self._outcomes[name]

    def _run(self, case: Case) -> Outcome:
        for name in case.needs:
            self.outcome(name)
        if case.extras and not (self._folder / "models").exists():
            make_models(self._folder / "models")
            self._cli(
                "contexts corpus.txt --tests tests.toml --abc --files own.toml --out contexts.parquet --workers 1"
            )
        return self.shown(case.command) if case.command.split()[0] in _SHOWN else self._measured(case)

    def shown(self, command: str) -> Outcome:
        """What a command prints of run folders."""
        kind = command.split()[0]
        said = self._cli(command + " --json" + " --out page.html" * (kind == "report"))
        if not said.output:
            raise RuntimeError(f"{command}: {said.errors}")
        return Outcome(_SHOWN[kind](json.loads(said.output)), {command: said.code})

    def _measured(self, case: Case) -> Outcome:
        folder = self._folder / case.name
        command, options = f"{case.command} --out {case.name}", f"--cache cache-{case.name} --quiet"
        if case.stop is not None:
            with _stopped(case.stop) as reached:
                self._cli(f"{command} {options.removesuffix('--quiet')}")
            if not reached:
                raise RuntimeError(f"{case.name} was not stopped")
            command = case.stop.then.format(out=case.name)
        said = self._cli(f"{command} {options}")
        if not folder.exists():
            raise RuntimeError(f"{command}: {said.errors}")
        codes = {wrong: self._cli(f"{wrong} --out refused {options}").code for wrong in case.refused}
        return Outcome(numbers_of(folder), {case.command: said.code, **codes}, folder)

    def _cli(self, command: str) -> _Said:
        output, errors = io.StringIO(), io.StringIO()
        with chdir(self._folder), redirect_stdout(output), redirect_stderr(errors):
            try:
                main(shlex.split(command))
            except SystemExit as end:
                return _Said(int(end.code or 0), output.getvalue(), errors.getvalue())
        raise AssertionError("the command line always ends with an exit code")


@contextmanager
def _stopped(stop: Stop) -> Iterator[list[str]]:
    """Ctrl-C at the moment in which the command line is told of a step; the list tells whether it came so far."""
    tell = ProgressLog.progress
    reached: list[str] = []
    label = short_name(stop.model.partition("?")[0])

    def interrupt(self: ProgressLog, who: str, unit: str, done: int, total: int) -> None:
        if (who, unit) == (label, stop.step):
            reached.append(who)
            raise KeyboardInterrupt
        tell(self, who, unit, done, total)

    with mock.patch.object(ProgressLog, "progress", interrupt):
        yield reached
