"""A browser for the tests of a file, and a small study that is served for one of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.reporting.browser import chromium
from tests.survey.served import PAIRS, served, write_study

NAMES = [f"{left} - {right}" for left, right in PAIRS]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Of a small study that nobody has taken part in."""
    with served(write_study(tmp_path), tmp_path) as found:
        yield found
