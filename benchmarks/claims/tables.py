"""The figures as Markdown: a summary for both pages, and for the docs promises and every simulation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .claim import Claim
from .registry import CLAIMS, UNTESTED

__all__ = ["details", "summary_table", "write_pages"]

Row = dict[str, Any]
_START, _END = "<!-- figures of validity.json -->", "<!-- end of figures -->"
_VERDICTS = ("yes", "within two errors", "**no**")
_STUDIES = {
    "associations": "Association tests",
    "robustness": "Robustness",
    "discovery": "Words of groups",
    "stereotypes": "Stereotypes",
    "word_association": "Word associations",
    "benchmarks": "Benchmarks",
    "survey": "Survey",
}


def write_pages(rows: Sequence[Row], readme: Path, docs: Path) -> None:
    """Put the figures between the marks of both pages."""
    _write(readme, summary_table(rows))
    _write(docs, f"{summary_table(rows)}\n\n{details(rows)}")


def _write(page: Path, text: str) -> None:
    before, start, rest = page.read_text().partition(_START)
    _, end, after = rest.partition(_END)
    if not start or not end:
        raise SystemExit(f"{page} has no marks {_START} and {_END} to write between")
    page.write_text(f"{before}{_START}\n{text}\n{_END}{after}")


def summary_table(rows: Sequence[Row]) -> str:
    """A row for every claim and what is wanted of it; nothing is, outside its null."""
    head = [
        "number",
        "study",
        "simulations",
        "repetitions",
        "p at .05",
        "p at .01",
        "share or coverage",
        "wanted",
        "kept",
    ]
    parts: dict[tuple[str, str], list[Row]] = {}
    for name in CLAIMS:
        for row in (row for row in rows if row["claim"] == name):
            parts.setdefault((name, _wanted(row)), []).append(row)
    return _table(head, [_summary(CLAIMS[name], wanted, part) for (name, wanted), part in parts.items()])


def _wanted(row: Row) -> str:
    return "within 0.05 of what was predicted" if "predicted" in row else str(row["wanted"])


def _summary(claim: Claim, wanted: str, rows: Sequence[Row]) -> list[str]:
    verdicts = [_verdict(row) for row in rows]
    few = ", 5 words a set" if all(row["simulated"].startswith("5, 5 targets") for row in rows) else ""
    kept = ", ".join(f"{verdicts.count(one)} {one}" for one in _VERDICTS if one in verdicts)
    return [
        claim.title + (few if wanted else ", outside its null"),
        _STUDIES[claim.study],
        str(len(rows)),
        _range([row["n"] for row in rows], "{:,}"),
        _range([row["at_05"] for row in rows if "at_05" in row]),
        _range([row["at_01"] for row in rows if "at_01" in row]),
        _range([row[name] for row in rows for name in ("share", "coverage") if name in row]),
        wanted,
        "all" if set(verdicts) == {"yes"} else kept or "–",
    ]


def details(rows: Sequence[Row]) -> str:
    """For every study its numbers, what they promise, and all simulations."""
    parts = []
    for study, title in _STUDIES.items():
        claims = [claim for claim in CLAIMS.values() if claim.study == study]
        parts.append(f"## {title}")
        parts.append(
            _table(["number", "promises", "null or truth", "unit", "assumes", "not kept"], map(_promise, claims))
        )
        for claim in claims:
            own = [_detail(row) for row in rows if row["claim"] == claim.name]
            if own:
                head = [
                    "simulated",
                    "repetitions",
                    "p at .05",
                    "p at .01",
                    "share or coverage",
                    "error",
                    "wanted",
                    "kept",
                ]
                parts.append(f"**{claim.title}**\n\n{_table(head, own)}")
    others = [[f"`{column}`", about] for column, about in UNTESTED.items()]
    parts.append(f"## Columns that promise nothing\n\n{_table(['column', 'what it is'], others)}")
    return "\n\n".join(parts)


def _promise(claim: Claim) -> list[str]:
    return [claim.title, claim.promise, claim.truth, claim.unit, claim.assumes, claim.missed]


def _detail(row: Row) -> list[str]:
    about = row["simulated"] + (f": {row['note']}" if row["note"] else "")
    if row["missing"] > 0.005:
        about += f" (no number in {row['missing']:.1%})"
    value = next((_figure(row[name]) for name in ("share", "coverage") if name in row), "")
    shares = [_figure(row[name]) if name in row else "" for name in ("at_05", "at_01")]
    return [about, f"{row['n']:,}", *shares, value, _figure(row["error"]), row["wanted"], _verdict(row)]


def _verdict(row: Row) -> str:
    """Whether a figure lies within its limits; outside by less than two errors of the simulation, it may be chance."""
    if row["off"] is None:
        return "–"
    return _VERDICTS[0 if not row["off"] else 1 if row["off"] < 2.0 else 2]


def _figure(value: float) -> str:
    return f"{value:.3f}"


def _range(values: Iterable[float], form: str = "{:.3f}") -> str:
    found = sorted(values)
    if not found:
        return ""
    low, high = form.format(found[0]), form.format(found[-1])
    return low if low == high else f"{low} to {high}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
