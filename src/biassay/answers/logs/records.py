"""What a log of another tool says, in plain records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from biassay.stimuli.benchmarks.bbq import BbqItem
from biassay.stimuli.benchmarks.crows_pairs import CrowsPair
from biassay.texts.choices import Choice

__all__ = ["FORMS", "Log", "LoggedChoice", "LoggedFilling", "LoggedPair", "Unmapped"]

FORMS = (
    "samples_TASK_DATE.jsonl of lm-evaluation-harness, a log of Inspect (.eval, .json), or answers released with BBQ "
    "(preds_CATEGORY.jsonl)"
)
"""What logs are read."""


@dataclass(frozen=True)
class LoggedChoice:
    """A question of BBQ and what was chosen; ``epoch`` counts repeated answers from 1."""

    item: BbqItem
    choice: Choice
    epoch: int = 1


@dataclass(frozen=True)
class LoggedPair:
    """A pair of CrowS-Pairs and the log-likelihoods of its sentences, whole."""

    pair: CrowsPair
    more: float
    less: float


@dataclass(frozen=True)
class LoggedFilling:
    """An item of StereoSet and the sentence chosen: ``label`` is its gold label, None if none was chosen."""

    id: str
    target: str
    bias_type: str
    choice: Choice
    label: str | None
    epoch: int = 1


@dataclass(frozen=True)
class Unmapped:
    """A sample that could not be used: where it is in the log, why, and which item of the data it is."""

    place: str
    reason: str
    item: str = ""

    @property
    def name(self) -> str:
        return f"{self.item} ({self.place})" if self.item else self.place


@dataclass(frozen=True)
class Log:
    """Everything of one log.

    Attributes
    ----------
    path : Path
    digest : str
        Of the file.
    tool, version : str
        lm-evaluation-harness or Inspect; empty where the log does not say which version.
    benchmark : "bbq", "crows-pairs" or "stereoset"
    task, model : str
        As the log calls them; empty where it does not.
    method : "answer" or "likelihood"
        Whether the model wrote an answer, or options were compared by their likelihood.
    answers : tuple of LoggedChoice, LoggedPair or LoggedFilling
    unmapped : tuple of Unmapped
    """

    path: Path
    digest: str
    tool: str
    version: str
    benchmark: Literal["bbq", "crows-pairs", "stereoset"]
    task: str
    model: str
    method: Literal["answer", "likelihood"]
    answers: tuple[LoggedChoice, ...] | tuple[LoggedPair, ...] | tuple[LoggedFilling, ...]
    unmapped: tuple[Unmapped, ...]
