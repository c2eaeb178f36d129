"""A log of any tool that is known, by its file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from biassay.answers.logs.bbq_release import is_bbq_release, read_bbq_release
from biassay.answers.logs.inspect_ai import read_inspect
from biassay.answers.logs.lm_eval import read_lm_eval
from biassay.answers.logs.records import FORMS, Log
from biassay.errors import UsageError

__all__ = ["read_log", "read_logs"]


def read_logs(paths: Sequence[Path]) -> list[Log]:
    """Read logs, in their order; the files of answers released with BBQ (preds_CATEGORY.jsonl) are read together."""
    released = [path for path in paths if path.is_file() and is_bbq_release(path)]
    others = [read_log(path) for path in paths if path not in released]
    return [*(read_bbq_release(released) if released else ()), *others]


def read_log(path: Path | str) -> Log:
    """Read answers to BBQ, CrowS-Pairs or StereoSet from a log of lm-evaluation-harness or Inspect.

    Parameters
    ----------
    path : Path
        A sample log (samples_TASK_DATE.jsonl), or a log of Inspect (.eval or .json). Neither package is needed.

    Returns
    -------
    Log
        What was answered, and what of it cannot be used, with the reason.
    """
    path = Path(path)
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name its logs one by one: {FORMS}")
    if not path.is_file():
        raise UsageError(f"{path}: no such file; expected {FORMS}")
    if path.suffix.lower() == ".jsonl":
        return read_lm_eval(path)
    if path.suffix.lower() in (".eval", ".json"):
        if path.name.startswith("results_"):
            raise UsageError(f"{path}: holds scores, no answers; give the file samples_TASK_DATE.jsonl beside it")
        return read_inspect(path)
    raise UsageError(f"{path}: unknown kind of log; expected {FORMS}")
