"""Represent a system whose scores are in a file (`scores:FILE`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from biassay.errors import UsageError
from biassay.io import content_digest
from biassay.models.backend import ModelBackend, ModelName
from biassay.models.base import Identity


class LoggedScorer:
    """Stand-in for a system whose scores were logged; audits read them from the file."""

    batch_size = 1
    scorer = "texts"

    def __init__(self, model: ModelName) -> None:
        path = Path(model.name).expanduser()
        self.identity = Identity(model.text, "scores", content_digest(path))

    def prepare(self, texts: Sequence[str]) -> None:
        """Do nothing."""

    def encode(self, texts: Sequence[str]) -> NoReturn:  # noqa: ARG002
        """Raise UsageError."""
        raise UsageError(
            f"{self.identity.name} has logged scores and cannot score other texts; audit it with `biassay audit "
            "--scores`"
        )


BACKEND = ModelBackend(
    name="scores",
    syntax="scores:FILE",
    description="scores that a system logged, for audits",
    texts=LoggedScorer,
    splittable=False,
)
