"""For tests of pytest: the fixture ``biassay_check`` fails a test where a new model is worse than the old one.

    def test_tuned_model(biassay_check):
        biassay_check("runs/base", "hf:./tuned", tests="weat*")

pytest finds it by itself where biassay is installed. Importing this file loads nothing heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from biassay.results.comparison import Comparison

__all__ = ["Check", "biassay_check"]


class Check(Protocol):
    """What the fixture gives."""

    def __call__(
        self, old: object, new: object, *, fail_if: str = "worse", min_power: float = 0.2, **settings: Any
    ) -> Comparison: ...


@pytest.fixture(scope="session")
def biassay_check() -> Check:
    """Compares two models, runs or run folders, and fails the test with the verdict if the new one is worse.

    ``fail_if="inconclusive"`` fails it also where a question is inconclusive. It fails if no question of a topic
    detects a growth of twice the margin with a power of ``min_power``; 0 skips that. Further settings, such as
    ``tests`` and ``margin``, are those of `biassay.compare`, whose result is returned.
    """

    def check(
        old: object, new: object, *, fail_if: str = "worse", min_power: float = 0.2, **settings: Any
    ) -> Comparison:
        import biassay
        from biassay.errors import BiassayError, UsageError
        from biassay.pages.gate import said_of
        from biassay.results.verdicts import FAIL_IF

        try:
            if fail_if not in FAIL_IF:
                raise UsageError(f"fail_if must be {' or '.join(map(repr, FAIL_IF))}, got {fail_if!r}")
            found = biassay.compare(old, new, **settings)
            failed, gaps = found.failed(fail_if), found.power_gaps(min_power)
        except BiassayError as error:
            raise pytest.fail.Exception(f"{type(error).__name__}: {error}", pytrace=False) from None
        if failed or gaps:
            lines = [found.verdict, *(f"  {verdict.test}: {said_of(verdict)}" for verdict in failed)]
            lines += [f"  {gap}" for gap in gaps]
            pytest.fail("\n".join(lines), pytrace=False)
        return found

    return check
