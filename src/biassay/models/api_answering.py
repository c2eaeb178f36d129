"""How the answers of an endpoint are read."""

from __future__ import annotations

import math
from typing import Any

from biassay.errors import MeasurementError
from biassay.models.answering import Ended
from biassay.models.api_asking import message_of, parsed
from biassay.models.api_connection import MalformedError
from biassay.models.api_settings import connection_settings
from biassay.models.sampling import SAMPLING_SETTINGS

__all__ = [
    "CONCURRENCY",
    "answering_settings",
    "choice_of",
    "choices_of",
    "ended_by",
    "log_probability",
    "used_by",
]

CONCURRENCY = 16
_NO_COUNT = 2**31  # tokens: no request has so many
_ENDED: dict[str, Ended] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "filter",
    "refusal": "refusal",
}


def answering_settings(path: str) -> dict[str, str]:
    return {
        **connection_settings(path, CONCURRENCY),
        "rate": "the most requests in a minute; by default as many as are answered",
        **SAMPLING_SETTINGS,
    }


def choices_of(body: bytes) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The answers in the body of a response, by their index, and what says how many tokens they took."""
    found = parsed(body)
    choices = found.get("choices") if isinstance(found, dict) else None
    if not isinstance(choices, list):
        raise MalformedError(f"no list 'choices': {message_of(body)}")
    if not choices or not all(isinstance(choice, dict) for choice in choices):
        raise MalformedError(f"{len(choices)} choices, of which not all are objects")
    indices = [choice.get("index", place) for place, choice in enumerate(choices)]
    if sorted(map(str, indices)) != sorted(map(str, range(len(choices)))):
        raise MalformedError(f"choices with the indices {indices}")
    usage = found.get("usage")
    order = sorted(range(len(choices)), key=lambda place: int(indices[place]))
    return [choices[place] for place in order], usage if isinstance(usage, dict) else {}


def choice_of(body: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The one answer that was asked for."""
    choices, usage = choices_of(body)
    return choices[0], usage


def used_by(usage: dict[str, Any]) -> tuple[int | None, int | None]:
    """Tokens that were read and written."""
    numbers = (usage.get(name) for name in ("prompt_tokens", "completion_tokens"))
    first, second = (number if type(number) is int and 0 <= number < _NO_COUNT else None for number in numbers)
    return first, second


def ended_by(reason: object) -> Ended | None:
    """Why an answer ended, from what an endpoint says of it."""
    return _ENDED.get(reason, "other") if isinstance(reason, str) else None


def log_probability(name: str, number: object) -> float:
    """A log-probability as an endpoint gives it; what is no such number is an error at once."""
    kind = type(number)
    try:
        found = float(number) if kind in (int, float) else math.nan  # type: ignore[arg-type]
    except OverflowError:
        found = math.inf
    if not math.isfinite(found) or found > 1e-3:
        shown = f"{found:g}" if kind in (int, float) else f"({kind.__name__})"  # and not what may be of any length
        raise MeasurementError(f"{name} gave the log-probability {shown}; it must be a number, and not above 0")
    return min(found, 0.0)
