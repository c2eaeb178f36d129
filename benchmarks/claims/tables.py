"""Render the simulation results as Markdown: a summary table and the appendix of the docs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .claim import Claim
from .registry import CLAIMS, UNTESTED

__all__ = ["appendix", "summary_table"]

Row = dict[str, Any]
_HEAD = """# Validity: all simulations

Generated from `benchmarks/validity.json` by `python benchmarks/validity.py --tables`; do not edit. See
[validity](validity.md) for the summary. "p at .05" is the share of p-values at or below .05, and "error" the standard
error of the simulation. "Met" compares a figure with its limits. A figure outside them by less than two errors may be
chance. Rows without limits show a number outside its null hypothesis. "t3" is Student's t with 3 degrees
of freedom.
"""
_VERDICTS = ("yes", "within two errors", "**no**")
_STUDIES = {
    "associations": "Association tests",
    "robustness": "Robustness",
    "discovery": "Discovery",
    "stereotypes": "Stereotypes",
    "word_association": "Word associations",
    "benchmarks": "Benchmarks",
    "prompt_robustness": "Robustness of prompts",
    "audit": "Name audits",
    "debiasing": "Debiasing",
    "survey": "Survey",
}


def appendix(rows: Sequence[Row]) -> str:
    """Return the appendix of docs/validity.md: a summary of all claims, then every simulation."""
    return f"{_HEAD}\n## Summary\n\n{summary_table(rows)}\n\n{details(rows)}\n"


def summary_table(rows: Sequence[Row]) -> str:
    """Summarize the simulations of every claim and its limits. Rows outside a null hypothesis have no limits."""
    head = [
        "number",
        "study",
        "simulations",
        "repetitions",
        "p at .05",
        "p at .01",
        "share or coverage",
        "limits",
        "met",
    ]
    parts: dict[tuple[str, str], list[Row]] = {}
    for name in CLAIMS:
        for row in (row for row in rows if row["claim"] == name):
            parts.setdefault((name, _wanted(row)), []).append(row)
    return _table(head, [_summary(CLAIMS[name], wanted, part) for (name, wanted), part in parts.items()])


def _wanted(row: Row) -> str:
    return "within 0.05 of the prediction" if "predicted" in row else str(row["wanted"])


def _summary(claim: Claim, wanted: str, rows: Sequence[Row]) -> list[str]:
    verdicts = [_verdict(row) for row in rows]
    few = ", 5 words per set" if all(row["simulated"].startswith("5, 5 targets") for row in rows) else ""
    kept = ", ".join(f"{verdicts.count(one)} {one}" for one in _VERDICTS if one in verdicts)
    return [
        claim.title + (few if wanted else ", outside its null hypothesis"),
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
    """List the claims of every study and all simulations."""
    parts = []
    for study, title in _STUDIES.items():
        claims = [claim for claim in CLAIMS.values() if claim.study == study]
        parts.append(f"## {title}")
        parts.append(
            _table(
                ["number", "claim", "null hypothesis or truth", "sampling unit", "assumes", "limits"],
                map(_promise, claims),
            )
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
                    "limits",
                    "met",
                ]
                parts.append(f"**{claim.title}**\n\n{_table(head, own)}")
    others = [[f"`{column}`", about] for column, about in UNTESTED.items()]
    parts.append(f"## Columns without a claim\n\n{_table(['column', 'content'], others)}")
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
    """Return whether a figure is within its limits, or outside by less than two errors of the simulation."""
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
