"""Does a family of models work on this machine? It is tried on a tiny temporary model.

Weights are random, so the vectors mean nothing; the way from texts to vectors is that of a real model. Nothing is
asked of any other machine.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from biassay.errors import MeasurementError
from biassay.models.answering import Answerer, LikelihoodModel
from biassay.models.base import Encoder
from biassay.models.family import Family, is_installed
from biassay.models.registry import open_as
from biassay.models.tiny import environment
from biassay.texts.requests import Likelihood, Prompt

__all__ = ["Outcome", "check", "device", "self_test"]

# Of two lengths, so that one is padded when both are in a batch.
TEXTS = ("this is the red rose", "joy")
# Numbers of 24 bits, summed in another order when the batch is another, differ by some 1e-6 of the largest. Padding
# that takes part, or a state carried over from one text to the next, makes a difference of 1e-2 and more.
_TOLERANCE = 1e-4
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
_SHOWN = 300  # characters of an error


@dataclass(frozen=True)
class Outcome:
    """The outcome of a self-test: ``seconds`` is None if it was not run, ``error`` is one line, empty if it passed."""

    family: str
    status: Literal["PASS", "FAIL", "skipped"]
    seconds: float | None = None
    error: str = ""


def self_test(family: Family) -> Outcome:
    """Try one family. Whatever goes wrong is part of the outcome."""
    if family.missing or family.selftest is None:
        return Outcome(family.name, "skipped")
    began = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory(prefix="biassay-selftest-") as folder:
            place = Path(folder)
            # No hub is asked, and what a family may keep is not kept in the user's cache.
            own = {"BIASSAY_CACHE": str(place / "cache"), "TORCHINDUCTOR_CACHE_DIR": str(place / "torch")}
            (place / family.name).mkdir()
            with environment(_OFFLINE | own), family.selftest(place / family.name) as model:
                _try(family, model)
    except Exception as error:  # a broken installation fails in every way there is
        return Outcome(family.name, "FAIL", time.perf_counter() - began, _in_one_line(error))
    return Outcome(family.name, "PASS", time.perf_counter() - began)


def _try(family: Family, model: str) -> None:
    """Encode texts; a family that cannot is asked what it can answer."""
    if family.texts is not None:
        check(open_as(model, "texts"))
        return
    for ability in family.abilities:
        opened = open_as(model, ability)
        if ability in _ANSWERED:
            _ANSWERED[ability](opened)


def _in_one_line(error: Exception) -> str:
    line = " ".join(f"{type(error).__name__}: {error}".split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"


def check(encoder: Encoder) -> None:
    """Encode two texts together and alone: shapes, finite numbers, and the same vectors up to rounding."""
    encoder.prepare(TEXTS)
    encoded = encoder.encode(TEXTS)
    together, alone = encoded.vectors, [encoder.encode([text]).vectors for text in TEXTS]
    size = together.shape[-1]
    shapes = [together.shape, *(vectors.shape for vectors in alone)]
    if size == 0 or shapes != [(2, size), (1, size), (1, size)]:
        raise MeasurementError(f"two texts together, then each alone, gave arrays of shape {shapes}")
    if not all(np.isfinite(vectors).all() for vectors in (together, *alone)):
        raise MeasurementError("a vector is not finite")
    unknown = [text[start:end] for text, spans in zip(TEXTS, encoded.unknown, strict=True) for start, end in spans]
    if unknown:
        raise MeasurementError(
            f"the tiny model does not know {', '.join(map(repr, unknown))}; it is asked for "
            f"{' and '.join(map(repr, TEXTS))}, and must know all of their words"
        )
    largest = np.abs(together).max()
    if np.abs(together[0] - together[1]).max() <= _TOLERANCE * largest:
        raise MeasurementError("two texts that differ have the same vector")
    off = np.abs(together - np.concatenate(alone)).max()
    if off > _TOLERANCE * largest:
        raise MeasurementError(f"a vector depends on its batch: off by {off:.2g}, where the largest is {largest:.2g}")


def _check_replies(model: Answerer) -> None:
    """Ask one prompt for words, and one for the likelihoods of two options."""
    prompts = [Prompt(TEXTS[0]), Prompt(TEXTS[0], options=("joy", "rose"))]
    model.prepare(prompts)
    said, chosen = model.reply(prompts)
    if not said.text or len(chosen.log_p) != 2 or not np.isfinite(chosen.log_p).all():
        raise MeasurementError(f"to a prompt it said {said.text!r}; options have the log-probabilities {chosen.log_p}")


def _check_likelihoods(model: LikelihoodModel) -> None:
    asked = [Likelihood(text) for text in TEXTS]
    model.prepare(asked)
    for text, found in zip(TEXTS, model.likelihoods(asked), strict=True):
        known = found.log_p[1:]  # of the first token it may not be told
        if not len(known) or not np.isfinite(known).all() or found.spans[-1, 1] != len(text):
            raise MeasurementError(f"the likelihoods of {text!r} are {found.log_p}")


_ANSWERED: Mapping[str, Callable[[Any], None]] = {"replies": _check_replies, "likelihoods": _check_likelihoods}


def device() -> str | None:
    """What torch computes on, in words; None: torch is not installed."""
    if not is_installed("torch"):
        return None
    try:
        import torch

        if torch.cuda.is_available():
            return f"CUDA: {torch.cuda.get_device_name()}"
    except Exception as error:  # the driver's and the linker's errors are of many kinds
        return f"not known: {_in_one_line(error)}"
    return "CPU; torch finds no CUDA GPU"
