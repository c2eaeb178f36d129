"""Tokens that endpoints use, and how many they may."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

from biassay.errors import BudgetError, UsageError

__all__ = ["Spending", "rough_tokens"]

_BYTES_A_TOKEN = 4  # of English, in the vocabularies of today


def rough_tokens(text: str) -> int:
    """About how many tokens a text has."""
    return len(text.encode("utf-8", "surrogatepass")) // _BYTES_A_TOKEN + 1


class Spending:
    """Counts tokens. No request is sent whose tokens, with those of all that is under way, may exceed the limit.

    What a request will read is estimated before it is sent, and replaced by what the endpoint says; of an attempt
    without an answer the estimate is kept. Where there is a
    limit, the first request goes alone, and estimates are then raised by as much as one was ever too low.

    Attributes
    ----------
    limit : int or None
    tokens_in, tokens_out : int
        Used so far, by earlier processes of the run too.
    on_use : callable or None
        Called with the tokens in and out of every response and of every attempt that may be charged.
    """

    def __init__(self, limit: int | None = None) -> None:
        if limit is not None and limit < 0:
            raise UsageError(f"a budget is a number of tokens, 0 or more, got {limit}")
        self.limit, self.tokens_in, self.tokens_out = limit, 0, 0
        self._reserved, self._factor = 0, 1.0
        self._has_answer = False
        self._lock = threading.Lock()
        self.on_use: Callable[[int, int], None] | None = None

    def carry_over(self, tokens_in: int, tokens_out: int) -> None:
        """Add the tokens that earlier processes of the same run used."""
        with self._lock:
            self.tokens_in += tokens_in
            self.tokens_out += tokens_out

    def _use(self, tokens_in: int, tokens_out: int) -> None:
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out
        if self.on_use is not None:
            self.on_use(tokens_in, tokens_out)

    @property
    def used(self) -> int:
        return self.tokens_in + self.tokens_out

    def needed(self, tokens_in: int, tokens_out: int) -> int:
        """What is set aside for a request that is estimated to read and write so many tokens."""
        return math.ceil(tokens_in * self._factor) + tokens_out

    def reserve(self, tokens_in: int, tokens_out: int) -> int | None:
        """Set tokens aside for a request; None: there are not so many left, or the first is still under way."""
        with self._lock:
            needed = self.needed(tokens_in, tokens_out)
            if self.limit is not None:
                if self._reserved and not self._has_answer:
                    return None
                if self.used + self._reserved + needed > self.limit:
                    return None
            self._reserved += needed
            return needed

    def release(self, reserved: int) -> None:
        """A request failed."""
        with self._lock:
            self._reserved -= reserved

    def lose(self, tokens_in: int, tokens_out: int) -> BudgetError | None:
        """An attempt brought no answer and may have to be paid: what was set aside counts as used.

        The same is set aside for another attempt; an error comes back where there are not so many left.
        """
        with self._lock:
            self._use(math.ceil(tokens_in * self._factor), tokens_out)
            if self.limit is None or self.used + self._reserved <= self.limit:
                return None
        return BudgetError(
            f"the budget of {self.limit:,} tokens does not allow another attempt at a request that failed: "
            f"{self.used:,} tokens are used, including failed attempts that may be charged; responses are cached: give "
            "a larger --budget and resume the run"
        )

    def settle(self, reserved: int, estimated_in: int, tokens_in: int, tokens_out: int) -> None:
        """A request is answered: it used so many tokens of those that were set aside for it."""
        with self._lock:
            self._reserved -= reserved
            self._has_answer = True
            self._factor = max(self._factor, tokens_in / max(estimated_in, 1))
            self._use(tokens_in, tokens_out)
