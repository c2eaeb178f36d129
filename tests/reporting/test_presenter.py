"""A study that fills in no more than it must is shown all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.reporting.pages import Page
from tests.results.made_runs import result, run_of

from biassay.errors import UsageError
from biassay.reporting.document import Report, Statement
from biassay.reporting.html import render_page
from biassay.reporting.presenter import Presenter
from biassay.reporting.publication import publish
from biassay.results.run_data import RunGroup


class Plain(Presenter):
    def report(self, gathered: RunGroup, **_: Any) -> Report:
        statements = [Statement(f"{r.model}: <b>{r.effect_size}</b>", about=r.model) for r in gathered.run.results]
        return Report("Plain & simple", "subject", "headline", statements=statements)


RUN = run_of("1", [result("m", "t")])
PLAIN = Plain("Plain", (), lambda _: ())
SHOWN = [(PLAIN, gathered) for gathered in PLAIN.gather({"a": RUN, "b": RUN}, mixed=False)]


def test_every_run_has_a_part_of_the_page() -> None:
    page = Page(render_page(SHOWN))
    assert [anchor for anchor in page.ids if anchor.startswith("associations-") and "short" not in anchor] == [
        "associations-1",
        "associations-2",
    ]
    assert page.headings(2) == ["Plain & simple"] * 2
    assert "b" not in page.tags


def test_nothing_but_the_program_is_published(tmp_path: Path) -> None:
    written = publish(tmp_path / "paper", SHOWN)
    assert {path.name for path in written} == {"citations.md", "references.bib", "methods.tex", "methods.md"}


def test_it_is_not_compared() -> None:
    with pytest.raises(UsageError, match="a, b"):
        PLAIN.compare({"a": RUN, "b": RUN}, baseline=None, mixed=False)
