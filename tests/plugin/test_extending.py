"""The page that walks through the example shows the example as it is."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import biassay
from biassay import plugin
from biassay.studies.study import validate_study

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "examples" / "plugin"
EXCERPT = re.compile(r"^```(?:py|toml)\n# (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_every_excerpt_is_in_its_file() -> None:
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    excerpts = EXCERPT.findall(page)
    assert len(excerpts) == len(re.findall(r"^```(?:py|toml)$", page, re.MULTILINE)) == 9
    for name, excerpt in excerpts:
        file = PLUGIN / name if name == "pyproject.toml" else PLUGIN / "src" / "biassay_example" / name
        assert excerpt in file.read_text(encoding="utf-8"), name


def test_the_page_lists_what_the_plugin_module_holds() -> None:
    table = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8").partition("## What you import")[2]
    rows = re.findall(r"^\| (`[^|]*?) \|", table, re.MULTILINE)
    listed = {name for names in rows for name in re.findall(r"`(\w+)`", names)}
    assert listed == set(plugin.__all__)
    for name in listed:
        assert getattr(plugin, name) is not None


def test_extensions_import_from_one_module_only() -> None:
    files = [*(PLUGIN / "src").rglob("*.py"), ROOT / "docs" / "extending.md"]
    imported = {
        module
        for path in files
        for module in re.findall(r"^\s*(?:from|import) (biassay[\w.]*)", path.read_text(), re.MULTILINE)
    }
    assert {module for module in imported if not module.startswith("biassay_example")} <= {"biassay", "biassay.plugin"}


def test_the_study_in_one_file_measures_cosines(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    (code,) = (own for own in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL) if "Study" in own)
    names: dict[str, Any] = {}
    exec(compile(code, "extending.md", "exec"), names)
    monkeypatch.setattr(
        "biassay.studies.registry._load_plugin_studies", lambda: {"alike": validate_study(names["STUDY"])}
    )
    run = biassay.measure("alike", "glove")
    concept = biassay.select_tests(["weat6"])[0].X
    encoder = biassay.open_encoder("glove")
    encoder.prepare(concept.words)
    pairs = itertools.combinations(encoder.encode(concept.words).vectors.astype(float), 2)
    cosines = [one @ other / np.linalg.norm(one) / np.linalg.norm(other) for one, other in pairs]
    assert run.results[0].cosine == pytest.approx(np.mean(cosines), rel=1e-6)
    assert [finding.evidence for finding in run.findings()] == ["descriptive"] * 4
    assert "checks passed" not in run._repr_html_()  # descriptive figures neither pass nor fail
    assert "check failed" not in run._repr_html_()


def test_nothing_in_biassay_knows_the_example() -> None:
    for path in (ROOT / "src").rglob("*.*"):
        assert b"biassay_example" not in path.read_bytes() or path.suffix == ".pyc", path
