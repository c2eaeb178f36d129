"""How far a step is, in words: what is done, how much of it, how fast, and how long the rest will take."""

from __future__ import annotations

import time

from biassay.results.labels import short_name

__all__ = ["Clock", "duration", "step_of"]

_BYTES = "bytes"
_STEPS = {  # what is done with a unit, in plain words, and what its number is called
    "texts asked": ("encoding", "texts"),
    "blanks asked": ("filling in blanks", "blanks"),
    "prompts asked": ("asking", "prompts"),
    "sentences asked": ("reading", "sentences"),
    "contexts asked": ("encoding", "contexts"),
    "tests": ("measuring", "tests"),
    "measures": ("measuring", "measures"),
    "readings": ("reading layers", "readings"),
    "words": ("searching", "words"),
    "figures": ("drawing", "figures"),
    _BYTES: ("reading", "MB"),
}
_LOADING_FIRST = frozenset({"contexts asked"})  # workers load the model after the step was announced
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def duration(seconds: float) -> str:
    """A time as a person says it: 45 s, 1 min 20 s, 2 h 5 min."""
    whole = max(0, round(seconds))
    for size, large, small, part in ((_DAY, "d", "h", _HOUR), (_HOUR, "h", "min", _MINUTE), (_MINUTE, "min", "s", 1)):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {large}" + (f" {rest} {small}" if rest else "")
    return f"{whole} s"


def _amount(number: float, unit: str) -> str:
    if unit != _BYTES:
        return f"{number:,.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"
    return f"{number / 1e6:,.0f}" if number >= 10_000_000 else f"{number / 1e6:.2g}"


def step_of(who: str, unit: str) -> str:
    """Whose step it is, and what is done."""
    return f"{short_name(who)}: {_STEPS[unit][0]}" if unit in _STEPS else short_name(who)


def _pace(rate: float, unit: str) -> str:
    """Units in a second; of slow ones, how long each takes."""
    if not rate:
        return ""
    if unit == _BYTES:
        return f", {_amount(rate, unit)} MB/s"
    return f", {_amount(rate, unit)}/s" if rate >= 1.0 else f", {duration(1.0 / rate)} each"


class Clock:
    """Rates of steps since each began; work done before that does not count."""

    def __init__(self) -> None:
        self._began: dict[tuple[str, str], tuple[float, int]] = {}
        self._announced: dict[str, float] = {}

    def begin(self, who: str) -> None:
        """Start the clock for the next step of a model. Without it, a step starts when it first reports progress."""
        self._announced[who] = time.monotonic()

    def rate(self, who: str, unit: str, done: int) -> float:
        """Units per second; 0 where it is not known yet."""
        now = time.monotonic()
        if (who, unit) not in self._began:
            announced = self._announced.pop(who, None)
            if announced is None or unit in _LOADING_FIRST:
                self._began[who, unit] = now, done
            else:
                self._began[who, unit] = announced, 0
        began, before = self._began[who, unit]
        return (done - before) / (now - began) if now > began and done > before else 0.0

    def said(self, who: str, unit: str, done: int, total: int) -> tuple[str, str]:
        """How much is done and how fast, and how long the rest will take; a total of 0 is not known."""
        rate = self.rate(who, unit, done)
        of = f" of {_amount(total, unit)}" if total else ""
        name = _STEPS[unit][1] if unit in _STEPS else unit
        left = f"{duration((total - done) / rate)} left" if rate and done < total else ""
        return f"{_amount(done, unit)}{of} {name}{_pace(rate, unit)}", left
