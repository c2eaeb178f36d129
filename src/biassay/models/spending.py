"""Tokens that endpoints use, and how many they may."""

from __future__ import annotations

import threading

from biassay.errors import UsageError

__all__ = ["Spending", "rough_tokens"]

_BYTES_A_TOKEN = 4  # of English, in the vocabularies of today


def rough_tokens(text: str) -> int:
    """About how many tokens a text has."""
    return len(text.encode("utf-8", "surrogatepass")) // _BYTES_A_TOKEN + 1


class Spending:
    """Counts tokens. No request is sent whose tokens, with those of all that is under way, may exceed the limit.

    What a request will use is estimated before it is sent, and replaced by what the endpoint says it used.

    Attributes
    ----------
    limit : int or None
    tokens_in, tokens_out : int
        Used so far.
    """

    def __init__(self, limit: int | None = None) -> None:
        if limit is not None and limit < 0:
            raise UsageError(f"a budget is a number of tokens, 0 or more, got {limit}")
        self.limit, self.tokens_in, self.tokens_out = limit, 0, 0
        self._reserved = 0
        self._lock = threading.Lock()

    @property
    def used(self) -> int:
        return self.tokens_in + self.tokens_out

    def reserve(self, tokens: int) -> bool:
        """Set tokens aside for a request; False: there are not so many left."""
        with self._lock:
            if self.limit is not None and self.used + self._reserved + tokens > self.limit:
                return False
            self._reserved += tokens
            return True

    def settle(self, reserved: int, tokens_in: int, tokens_out: int) -> None:
        """A request is done: it used so many tokens of those that were set aside for it."""
        with self._lock:
            self._reserved -= reserved
            self.tokens_in += tokens_in
            self.tokens_out += tokens_out
