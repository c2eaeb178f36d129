"""The page that walks through the example shows the example as it is."""

from __future__ import annotations

import itertools
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import biassay
from biassay import plugin
from biassay.runs.run import Run
from biassay.studies.registry import get_study
from biassay.studies.study import validate_study

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "examples" / "plugin"
EXCERPT = re.compile(r"^```(?:py|toml)\n# (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_every_excerpt_is_in_its_file() -> None:
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    excerpts = EXCERPT.findall(page)
    assert len(excerpts) == len(re.findall(r"^```(?:py|toml)$", page, re.MULTILINE)) == 8
    for name, excerpt in excerpts:
        file = PLUGIN / name if name == "pyproject.toml" else PLUGIN / "src" / "biassay_example" / name
        assert excerpt in file.read_text(encoding="utf-8"), name


def test_the_page_lists_what_the_plugin_module_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    docs_plugin = import_module("docs_plugin")
    page = (ROOT / "docs" / "plugin.md").read_text(encoding="utf-8")
    assert page == docs_plugin.make_page(), "run scripts/docs_plugin.py"
    rows = re.findall(r"^\| `(\w+)` \| \w.+ \|$", page, re.MULTILINE)
    assert sorted(rows) == sorted(plugin.__all__)


def test_extensions_import_from_one_module_only() -> None:
    files = [*(PLUGIN / "src").rglob("*.py"), ROOT / "docs" / "extending.md"]
    imported = {
        module
        for path in files
        for module in re.findall(r"^\s*(?:from|import) (biassay[\w.]*)", path.read_text(), re.MULTILINE)
    }
    assert {module for module in imported if not module.startswith("biassay_example")} <= {"biassay", "biassay.plugin"}


def test_the_study_in_one_file_measures_cosines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PLUGIN / "src")
    study = import_module("biassay_example.alike").STUDY
    monkeypatch.setattr("biassay.studies.registry._load_plugin_studies", lambda: {"alike": validate_study(study)})
    run = biassay.measure("alike", "glove")
    concept = biassay.select_tests(["weat6"])[0].X
    encoder = biassay.open_encoder("glove")
    encoder.prepare(concept.words)
    pairs = itertools.combinations(encoder.encode(concept.words).vectors.astype(float), 2)
    cosines = [one @ other / np.linalg.norm(one) / np.linalg.norm(other) for one, other in pairs]
    assert run.results[0].effect_size == pytest.approx(np.mean(cosines), rel=1e-6)
    assert [finding.evidence for finding in run.findings()] == ["descriptive"] * 4
    assert "checks passed" not in run._repr_html_()  # descriptive figures neither pass nor fail
    assert "check failed" not in run._repr_html_()
    report = biassay.measure("alike", "glove", {"test": "weat1"}).report(tmp_path / "report.html")
    assert re.search(r"Out of vocabulary on glove\W.*?gladiola", report.read_text(encoding="utf-8"), re.DOTALL)


def test_the_presenter_of_the_example_adds_a_section(
    measured: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    presenters = import_module("biassay_example.pronouns.report")
    study = get_study("pronouns")
    presenter = presenters.PronounsPresenter(study.title, study.schema.tables, study.findings)
    monkeypatch.setitem(vars(study), "presenter", presenter)
    html = measured.report(tmp_path / "report.html").read_text(encoding="utf-8")
    section = html.partition('id="pronouns-1-largest"')[2].partition("</table>")[0]
    largest = max(measured.tables["occupations"], key=lambda row: abs(row.log_odds))
    assert section.count("<tr") == 6
    assert largest.occupation in section


def test_nothing_in_biassay_knows_the_example() -> None:
    for path in (ROOT / "src").rglob("*.*"):
        assert b"biassay_example" not in path.read_bytes() or path.suffix == ".pyc", path
