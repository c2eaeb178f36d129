"""The page that walks through the example shows the example as it is."""

from __future__ import annotations

import itertools
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import biassay
from biassay.studies.study import checked

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


def test_what_the_page_imports_is_where_it_says() -> None:
    table = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8").partition("## What you import")[2]
    rows = re.findall(r"^\| (`.*?) \| `(biassay[\w.]*)` \|", table, re.MULTILINE)
    assert len(rows) == table.count("\n| `")
    for names, module in rows:
        assert all(hasattr(import_module(module), name) for name in re.findall(r"`(\w+)`", names)), (names, module)


def test_the_study_in_one_file_measures_cosines(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    (code,) = (own for own in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL) if "Study" in own)
    names: dict[str, Any] = {}
    exec(compile(code, "extending.md", "exec"), names)
    monkeypatch.setattr("biassay.studies.registry._added", lambda: {"alike": checked(names["STUDY"])})
    run = biassay.measure("alike", "glove")
    concept = biassay.select_tests(["weat6"])[0].X
    encoder = biassay.open_encoder("glove")
    encoder.prepare(concept.words)
    pairs = itertools.combinations(encoder.encode(concept.words).vectors.astype(float), 2)
    cosines = [one @ other / np.linalg.norm(one) / np.linalg.norm(other) for one, other in pairs]
    assert run.results[0].cosine == pytest.approx(np.mean(cosines), rel=1e-6)
    assert [finding.standing for finding in run.findings()] == ["descriptive"] * 4


def test_nothing_in_biassay_knows_the_example() -> None:
    for path in (ROOT / "src").rglob("*.*"):
        assert b"biassay_example" not in path.read_bytes() or path.suffix == ".pyc", path
