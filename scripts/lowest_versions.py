"""Print the lowest supported version of every dependency, as constraints for pip.

python scripts/lowest_versions.py > lowest.txt
pip install --constraint lowest.txt .
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def list_lowest(requirements: list[str]) -> list[str]:
    """Turn ``name>=1.2`` into ``name==1.2``; leave out requirements without a lower bound."""
    bounds = (re.match(r"([A-Za-z0-9_.-]+)(?:\[.*?\])?>=([\d.]+)", requirement) for requirement in requirements)
    return [f"{bound[1]}=={bound[2]}" for bound in bounds if bound is not None]


if __name__ == "__main__":
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    print("\n".join(list_lowest(project["dependencies"])))
