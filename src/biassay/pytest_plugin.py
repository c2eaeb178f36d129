"""Provide the pytest fixture ``biassay_check``, which fails a test if a new model is worse than the old one.

    def test_tuned_model(biassay_check):
        biassay_check("runs/base", "hf:./tuned", tests="weat*")

pytest finds the fixture wherever biassay is installed. Importing this module loads nothing heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from biassay.results.comparison import Comparison


class BiassayCheck(Protocol):
    """Type of the fixture ``biassay_check``."""

    def __call__(
        self, old: object, new: object, *, fail_if: str = "worse", min_power: float = 0.2, **settings: Any
    ) -> Comparison:
        """Compare `new` with `old`; fail the test if it is worse."""


@pytest.fixture(scope="session")
def biassay_check() -> BiassayCheck:
    """Return a function that compares two models, runs or run folders and fails the test if the new one is worse.

    With ``fail_if="inconclusive"`` it also fails if a question is inconclusive. It fails if no question of a topic
    detects a growth of twice the margin with a power of `min_power`; use 0 to skip this. It passes further settings,
    such as ``tests`` and ``margin``, to `biassay.compare` and returns its result.
    """

    def check(
        old: object, new: object, *, fail_if: str = "worse", min_power: float = 0.2, **settings: Any
    ) -> Comparison:
        import biassay
        from biassay.errors import BiassayError, UsageError
        from biassay.reporting.comparison import format_verdict
        from biassay.results.comparison import FAIL_IF

        try:
            if fail_if not in FAIL_IF:
                raise UsageError(f"fail_if must be {' or '.join(map(repr, FAIL_IF))}, got {fail_if!r}")
            comparison = biassay.compare(old, new, **settings)
            failed, gaps = comparison.failed(fail_if), comparison.power_gaps(min_power)
        except BiassayError as error:
            raise pytest.fail.Exception(f"{type(error).__name__}: {error}", pytrace=False) from None
        if failed or gaps:
            lines = [comparison.verdict, *(f"  {verdict.test}: {format_verdict(verdict)}" for verdict in failed)]
            lines += [f"  {gap}" for gap in gaps]
            pytest.fail("\n".join(lines), pytrace=False)
        return comparison

    return check
