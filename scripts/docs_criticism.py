"""Select the known criticism of a test from docs/criticism.toml, for its page of the catalogue."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from biassay.datasets.schema import ROLES, Test

DATA = Path(__file__).resolve().parents[1] / "docs" / "criticism.toml"


@cache
def load_criticism() -> Mapping[str, Any]:
    """Load remarks in their order, and papers by name with short citation and URL."""
    return tomllib.loads(DATA.read_text(encoding="utf-8"))


def list_criticism(test: Test) -> str:
    """List the remarks whose conditions all fit an association test, as Markdown."""
    return format_remarks(remark for remark in load_criticism()["remarks"] if _fits(remark, test))


def format_remarks(remarks: Iterable[Mapping[str, Any]]) -> str:
    """Format remarks as a Markdown list."""
    return "\n".join(f"- **{remark['about']}.** {remark['says']}{_cite_papers(remark)}" for remark in remarks)


def _fits(remark: Mapping[str, Any], test: Test) -> bool:
    concepts = [test.concept(role) for role in ROLES]
    checks = {
        "concepts": lambda patterns: any(fnmatchcase(c.name, pattern) for c in concepts for pattern in patterns),
        "topics": lambda topics: test.topic in topics,
        "templates": lambda kinds: test.template in kinds,
        "smallest": lambda size: min(len(concept.words) for concept in concepts) <= size,
    }
    return all(checks[condition](remark[condition]) for condition in checks.keys() & remark.keys())


def _cite_papers(remark: Mapping[str, Any]) -> str:
    papers = load_criticism()["papers"]
    links = [f"[{citation}]({url})" for citation, url in (papers[name] for name in remark.get("papers", ()))]
    return f" ({'; '.join(links)})" if links else ""
