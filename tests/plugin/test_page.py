"""The page that every study gets, in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.reporting.browser import Opened, chromium, violations

from biassay.runs.compare import compare_runs, report_runs
from biassay.runs.run import Run

pytestmark = pytest.mark.extras


def test_the_page_of_a_study_is_accessible_and_fits(measured: Run, tmp_path: Path) -> None:
    folder = measured.save(tmp_path / "run")
    pages = {"run": tmp_path / "run.html", "compared": tmp_path / "compared.html"}
    report_runs([folder], out=pages["run"])
    compare_runs([str(folder)], out=pages["compared"])
    with chromium() as browser:
        opened = Opened(browser)
        for page in pages.values():
            opened.show(page, width=400)
            assert opened.page.evaluate("document.documentElement.scrollWidth") <= 400
            opened.show(page)
            assert violations(opened) == []
            assert opened.complaints == []
        opened.show(pages["run"])
        assert len(opened.table("#pronouns-1-results table >> nth=1")) == 40
