"""The page that walks through the example shows the example as it is."""

from __future__ import annotations

import re
from pathlib import Path

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


def test_nothing_in_biassay_knows_the_example() -> None:
    for path in (ROOT / "src").rglob("*.*"):
        assert b"biassay_example" not in path.read_bytes() or path.suffix == ".pyc", path
