"""Pages of runs, opened in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.reporting.browser import Opened, chromium
from tests.reporting.many_models import with_models

import biassay
from biassay.results.run_data import RunData
from biassay.runs.reports import render_report
from biassay.runs.run import Run

TESTS = ["weat6", "weat1", "sent-weat6", "sent-weat9", "weat9", "angry_black_woman_stereotype_b", "I1"]


@pytest.fixture(scope="module")
def tab() -> Iterator[Opened]:
    with chromium() as browser:
        one = Opened(browser)
        yield one
        one.close()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return biassay.run("glove", tests=TESTS, cache=tmp_path_factory.mktemp("vectors"))


@pytest.fixture(scope="module")
def run(alone: Run) -> Run:
    """A real run, and a second model made from it by noise."""
    return with_models(alone, 2)


@pytest.fixture(scope="module")
def nine(alone: Run) -> Run:
    return with_models(alone, 9)


@pytest.fixture(scope="module")
def many(alone: Run) -> Run:
    """More models than are shown side by side."""
    return with_models(alone, 13)


@pytest.fixture(scope="module")
def written(run: Run, nine: Run, many: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Pages that several tests open, by the identity of their run."""
    folder = tmp_path_factory.mktemp("pages")
    paths = {id(run): folder / "two models.html", id(nine): folder / "nine models.html"}
    paths[id(many)] = folder / "many models.html"
    for found in (run, nine, many):
        paths[id(found)].write_text(render_report(found), encoding="utf-8")
    return paths


@pytest.fixture
def opened(tab: Opened, written: dict[int, Path], tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Write a report and open it from disk; fail if the browser reports an error."""

    def check() -> None:
        assert tab.complaints == []
        assert [url for url in tab.requests if not url.startswith("file:")] == []
        assert len(tab.requests) <= 1

    def open_(found: RunData | str, **given: Any) -> Opened:
        check()
        path = written.get(id(found))
        if path is None:
            path = tmp_path / "a page.html"
            path.write_text(found if isinstance(found, str) else render_report(found), encoding="utf-8")
        tab.show(path, **given)
        assert len(tab.requests) == 1
        return tab

    yield open_
    check()
