"""Count the tokens that endpoints use and enforce a budget."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

from biassay.errors import BudgetError, UsageError

_BYTES_PER_TOKEN = 4  # typical of English text


def estimate_token_count(text: str) -> int:
    """Estimate the number of tokens of a text."""
    return len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN + 1


class TokenBudget:
    """Count tokens and reserve them for requests, so that pending requests cannot exceed a limit.

    The tokens of a request are estimated before it is sent and replaced by the endpoint's count; the estimate counts
    for an attempt without response. With a limit, the first request is sent alone, and later estimates are scaled by
    the largest underestimate so far.

    Attributes
    ----------
    limit : int or None
        Largest number of tokens; None for no limit.
    tokens_in, tokens_out : int
        Tokens used so far, including earlier processes of the run.
    on_use : callable or None
        Called with the tokens in and out of each response and of each attempt that may be charged.
    """

    def __init__(self, limit: int | None = None) -> None:
        if limit is not None and limit < 0:
            raise UsageError(f"the token budget must be 0 or more, got {limit}")
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
        """Tokens used so far, in and out."""
        return self.tokens_in + self.tokens_out

    def required_tokens(self, tokens_in: int, tokens_out: int) -> int:
        """Return the number of tokens to reserve for a request with the given estimates."""
        return math.ceil(tokens_in * self._factor) + tokens_out

    def reserve(self, tokens_in: int, tokens_out: int) -> int | None:
        """Reserve tokens for a request; return None if too few are left or the first request is still pending."""
        with self._lock:
            needed = self.required_tokens(tokens_in, tokens_out)
            if self.limit is not None:
                if self._reserved and not self._has_answer:
                    return None
                if self.used + self._reserved + needed > self.limit:
                    return None
            self._reserved += needed
            return needed

    def release(self, reserved: int) -> None:
        """Give back the tokens reserved for a request that failed."""
        with self._lock:
            self._reserved -= reserved

    def record_failed(self, tokens_in: int, tokens_out: int) -> BudgetError | None:
        """Count a failed attempt that may be charged and reserve the same tokens for another one.

        Returns
        -------
        BudgetError or None
            An error if too few tokens are left for another attempt.
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

    def record_used(self, reserved: int, estimated_in: int, tokens_in: int, tokens_out: int) -> None:
        """Replace the tokens reserved for a request by those that it used.

        Parameters
        ----------
        reserved : int
            Result of `reserve`.
        estimated_in : int
            Estimated tokens to be read.
        tokens_in, tokens_out : int
            Tokens read and written according to the endpoint.
        """
        with self._lock:
            self._reserved -= reserved
            self._has_answer = True
            self._factor = max(self._factor, tokens_in / max(estimated_in, 1))
            self._use(tokens_in, tokens_out)
