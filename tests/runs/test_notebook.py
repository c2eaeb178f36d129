"""Display in notebooks: runs, comparisons, tests, figures and errors."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.results.made_runs import result, run_of
from tests.studies.associations.publish_runs import measured_in_contexts
from tests.studies.stereotypes.made_runs import compared_with_people

import biassay
from biassay.errors import UnknownNameError, UsageError
from biassay.reporting.charts import base
from biassay.reporting.charts.base import SCHEMA
from biassay.runs import progress
from biassay.runs.run import Run

HOSTILE = '<script>alert("1")</script><img src=//x onerror=alert(1)>'
TAGS = {"div", "p", "b", "table", "caption", "thead", "tbody", "tr", "th", "td"}
DRAWN = {"style", "svg", "defs", "circle", "path", "use", "line", "text"}
DRAWN |= {"figure", "figcaption", "strong", "span", "small", "ul", "li", "details", "summary"}


class Read(HTMLParser):
    """Parse HTML into tags, attributes, and the cells of rows."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.rows: list[list[str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return biassay.run("glove", tests=["weat1", "weat6", "weat7"], cache=tmp_path_factory.mktemp("vectors"))


def test_a_run_shows_its_findings_what_holds_first(run: Run) -> None:
    shown = Read(run._repr_html_())
    assert set(shown.tags) <= TAGS | DRAWN
    assert not any(name.startswith("on") or name == "src" for name in shown.attributes)
    head, *rows = shown.rows
    assert "model" not in head
    by_item = {one.item: one for one in run.findings()}
    items = [match[1] for row in rows if (match := re.search(r"\((\S+)\)$", row[0]))]
    assert sorted(items) == sorted(by_item)
    assert items[-1] == "weat1"  # a check of the method, which is not corrected
    assert "correction" not in rows[-1][-1]
    for item, row in zip(items, rows, strict=True):
        effect, low, high = by_item[item].effect, by_item[item].low, by_item[item].high
        assert row[1:3] == [f"d {effect:.2f}", f"[{low:.2f}, {high:.2f}]"]


def test_whatever_stands_in_a_run_is_shown_as_text() -> None:
    rows = [result(model, HOSTILE, title=HOSTILE) for model in (HOSTILE, "other")]
    hostile = run_of("one", rows)
    for shown in (Read(hostile._repr_html_()), Read(hostile.compare()._repr_html_())):
        assert set(shown.tags) <= TAGS | DRAWN
        assert not any(name.startswith("on") or name == "src" for name in shown.attributes)
        assert HOSTILE in shown.text


def test_figures_show_themselves_and_are_saved(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = run.figures()
    assert [*figures] == ["forest-texts-1", "matrix-texts"]
    figure = figures["forest-texts-1"]
    assert isinstance(figure, biassay.Figure)
    drawn = {value["effect"] for value in figure.spec["data"]["values"]}
    assert drawn == {row.effect_size for row in run.results}
    monkeypatch.setattr(base, "can_draw", lambda: False)
    bundle = figure._repr_mimebundle_()
    assert {*bundle} == {"application/vnd.vegalite.v6+json", "text/plain"}
    assert bundle["application/vnd.vegalite.v6+json"] == figure.to_dict() == {"$schema": SCHEMA, **figure.spec}
    assert json.loads(figure.save(tmp_path / "f.json").read_text()) == figure.to_dict()
    for wrong in (tmp_path / "f.gif", tmp_path / "none" / "f.json"):
        with pytest.raises(UsageError):
            figure.save(wrong)


@pytest.mark.extras
def test_figures_are_saved_as_pictures_and_shown_where_vega_is_not_drawn(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    figure = run.figures()["matrix-texts"]
    for ending, magic in (("svg", b"<svg"), ("pdf", b"%PDF-"), ("PNG", b"\x89PNG")):
        assert figure.save(tmp_path / f"f.{ending}").read_bytes().startswith(magic)
    assert figure._repr_mimebundle_()["image/svg+xml"] == (tmp_path / "f.svg").read_text()


@pytest.mark.extras
def test_figures_are_charts_of_altair(run: Run) -> None:
    """Altair checks them against the schema of Vega-Lite, and gives the same drawing back."""
    altair = pytest.importorskip("altair")
    runs: list[Any] = [run, measured_in_contexts(("one", "two")), compared_with_people()]
    figures = [figure for one in runs for figure in Run.from_data(one).figures().values()]
    assert {figure.name.partition("-")[0] for figure in figures} >= {"forest", "matrix", "profile"}
    for figure in figures:
        chart = figure.to_altair()
        assert isinstance(chart, altair.TopLevelMixin)
        assert chart.to_dict()["config"]["title"] == figure.spec["config"]["title"]


SESSION = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in ("import biassay", "biassay.select_tests('weatt')", "1 / 0"):
    shell.run_cell(cell)
bundle, _ = shell.display_formatter.format(shell.user_ns["biassay"].select_tests("weat1")[0])
print("bundle", sorted(bundle))
"""


@pytest.mark.extras
def test_ipython_shows_the_message_alone_and_other_errors_as_ever() -> None:
    pytest.importorskip("IPython")
    done = subprocess.run([sys.executable, "-c", SESSION], capture_output=True, text=True, check=True)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    ours, _, other = plain.partition("ZeroDivisionError")
    assert "UnknownNameError: unknown test 'weatt'" in ours
    assert "catalogue.py" not in ours
    assert "Traceback" not in ours
    assert "1 / 0" in other
    assert "text/html" in plain.rpartition("bundle")[2]


class Line:
    """Stand-in for a notebook's display handle that records the displayed data."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def display(self, data: dict[str, str], *, raw: bool, display_id: bool) -> Line:
        assert raw
        assert display_id
        self.update(data, raw=raw)
        return self

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.given += data.values()


def test_progress_is_one_line_written_anew_and_not_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    line, clock = Line(), [0.0]
    kernel = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=line.display))
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    listener = progress.default_listener()
    for done in range(1001):
        clock[0] = done * 0.01
        listener.progress("m", "texts", done, 1000)
    assert len(line.given) == 20  # two a second
    assert line.given[0] == "m: encoding: 50 of 1,000 texts, 100/s, 10 s left"
    assert line.given[-1] == "m: encoding: 1,000 of 1,000 texts, 100/s"
    line.given.clear()
    quick = progress.default_listener()
    for done in range(11):
        quick.progress("m", "texts", done, 10)
    assert line.given == []


def test_an_empty_run_shows_that_it_is() -> None:
    assert Read(run_of("one", [])._repr_html_()).rows == []


def test_without_altair_it_is_said_how_to_get_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(UsageError, match="pip install altair"):
        run.figures()["matrix-texts"].to_altair()


def test_an_error_offers_its_message_without_a_traceback() -> None:
    error = UnknownNameError("test", "weatt", ["weat1"])
    assert error._render_traceback_() == [f"UnknownNameError: {error}"]
