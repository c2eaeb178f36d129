"""Fixtures for all rooms: no test touches the user's cache, and reference values are read in place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# A test never asserts how long something takes, and a busy machine takes long.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

_HERE = Path(__file__).resolve()


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A vector store of the test's own."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("BIASSAY_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def reference() -> Path:
    """Folder of reference values; tests that need it are skipped where it is absent."""
    given = os.environ.get("BIASSAY_REFERENCE")
    folder = Path(given) if given else _HERE.parents[2] / "shared" / "reference"
    if not folder.is_dir():
        pytest.skip("reference values are absent: set BIASSAY_REFERENCE to their folder")
    return folder


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Tiny models are slowed by threads that wait for each other."""
    torch: Any = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def asked_place(one_thread: None, tmp_path_factory: pytest.TempPathFactory) -> Any:  # noqa: ARG001
    """A tiny model that knows the words of its own groups, traits and templates, and people's judgements of them."""
    from tests.pipeline.asked_models import Place

    return Place(tmp_path_factory.mktemp("asked"))
