"""What is said against a test, for its page of the catalogue: from docs/criticism.toml."""

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
def known_criticism() -> Mapping[str, Any]:
    """Remarks in their order, and papers by name, each its short citation and its address."""
    return tomllib.loads(DATA.read_text(encoding="utf-8"))


def remarks_on(test: Test) -> list[Mapping[str, Any]]:
    """Those whose every condition fits the test."""
    return [remark for remark in known_criticism()["remarks"] if _concerns(remark, test)]


def criticism_of(test: Test) -> str:
    """The remarks on a test as a list in Markdown."""
    return as_list(remarks_on(test))


def as_list(remarks: Iterable[Mapping[str, Any]]) -> str:
    """Remarks as a list in Markdown."""
    return "\n".join(f"- **{remark['about']}.** {remark['says']}{_cited(remark)}" for remark in remarks)


def _concerns(remark: Mapping[str, Any], test: Test) -> bool:
    concepts = [test.concept(role) for role in ROLES]
    fits = {
        "concepts": lambda patterns: any(fnmatchcase(c.name, pattern) for c in concepts for pattern in patterns),
        "topics": lambda topics: test.topic in topics,
        "templates": lambda kinds: test.template in kinds,
        "smallest": lambda size: min(len(concept.words) for concept in concepts) <= size,
    }
    return all(fits[condition](remark[condition]) for condition in fits.keys() & remark.keys())


def _cited(remark: Mapping[str, Any]) -> str:
    papers = known_criticism()["papers"]
    links = [f"[{cited}]({address})" for cited, address in (papers[name] for name in remark.get("papers", ()))]
    return f" ({'; '.join(links)})" if links else ""
