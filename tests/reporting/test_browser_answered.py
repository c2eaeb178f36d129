"""Pages of word association tests and benchmarks in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.models.api_server import no_key  # noqa: F401
from tests.reporting.browser import Opened, violations
from tests.studies.answered_runs import asked, bbq, sentences
from tests.studies.showing import page_of

from biassay.runs.reports import compare_models, render_report
from biassay.runs.run import Run

pytestmark = pytest.mark.extras

CUT = "[...document.querySelectorAll('.label, th')].filter((one) => one.scrollWidth > one.clientWidth + 1)"
SHOWN = ("words", "bbq", "stereoset", "compared")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Pages by what they show."""
    folder = tmp_path_factory.mktemp("answered")
    old, new = bbq(folder, "old", 20), bbq(folder, "new", 200)
    runs = {"old": old, "new": new}
    pages: dict[str, Run] = {
        "words": asked(folder, "mild", 100),
        "bbq": old,
        "stereoset": sentences(folder, "stereoset"),
    }
    return {
        **{name: render_report(run) for name, run in pages.items()},
        "compared": page_of(runs, compare_models(runs)),
    }


@pytest.mark.parametrize("name", SHOWN)
def test_axe_finds_nothing_and_no_label_is_cut(made: dict[str, str], opened: Callable[..., Opened], name: str) -> None:
    for width, dark in ((1280, False), (390, True)):
        one = opened(made[name], width=width, dark=dark)
        assert violations(one) == []
        assert one.page.evaluate(f"{CUT}.map((one) => one.textContent)") == []
        assert one.page.evaluate("document.documentElement.scrollWidth") <= width
