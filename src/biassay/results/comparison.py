"""Compare models with a baseline."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from biassay.errors import UnknownNameError, UsageError
from biassay.io import make_printable
from biassay.results.codec import to_json
from biassay.results.differences import (
    MIN_POWER,
    VERDICT_OUTCOMES,
    PowerGap,
    Verdict,
    find_failing,
    find_power_gaps,
    format_outcome,
    summarize_verdicts,
)
from biassay.results.outcomes import Result
from biassay.results.tables import render_html_table, to_data_frame
from biassay.results.views import RunGroup, short_name

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CONFIDENCE", "Comparison", "choose_baseline", "find_setting_differences"]

CONFIDENCE = 0.95
_MAX_ROWS = 20  # of a table in a notebook
_ALWAYS = (
    "associations",
    "agreements",
    "words",
    "verdicts",
    "notes",
    "results",
)  # keys of the JSON that scripts may count on


@dataclass(frozen=True, repr=False)
class Comparison:
    """All differences from one model, in tables of records that name their ``model``.

    ``results`` are those that the differences are of, where runs were put together; ``gathered`` is what is compared.
    ``verdicts`` say of each test whether the other model is worse, where the study has such verdicts. ``notes`` say in
    what the runs are not alike, ``remarks`` what else must be known, and ``missing`` why models have no results.
    """

    study: str
    baseline: str
    tables: Mapping[str, tuple[Any, ...]]
    notes: tuple[str, ...] = ()
    results: tuple[Any, ...] = ()
    gathered: tuple[RunGroup, ...] = ()
    confidence: float = CONFIDENCE
    verdicts: tuple[Verdict, ...] = ()
    remarks: tuple[str, ...] = ()
    missing: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __repr__(self) -> str:
        rows = sum(map(len, self.tables.values()))
        many = f"{rows} difference{'' if rows == 1 else 's'}"
        return f"Comparison({self.study}: {', '.join(self.models)} with {self.baseline}; {many})"

    @property
    def models(self) -> list[str]:
        """The models that are compared with the first."""
        return list(dict.fromkeys(row.model for rows in self.tables.values() for row in rows))

    @property
    def verdict(self) -> str:
        """Whether the other models are worse, in a sentence each; empty: nothing is said of it."""
        return summarize_verdicts(self.verdicts)

    def failed(self, fail_if: str = "worse") -> tuple[Verdict, ...]:
        """Return the tests that fail a gate.

        Parameters
        ----------
        fail_if : {"worse", "inconclusive"}
            Whether questions fail that are worse, or also those that are inconclusive. A test that was measured on the
            old model and not on the new one fails in either case.

        Returns
        -------
        tuple of Verdict
        """
        return find_failing(self.verdicts, fail_if)

    def power_gaps(self, min_power: float = MIN_POWER) -> tuple[PowerGap, ...]:
        """Return the topics on which a gate could not have failed.

        Parameters
        ----------
        min_power : float
            Least power of one question of a topic for a growth of twice the margin. If 0, nothing is returned.

        Returns
        -------
        tuple of PowerGap
        """
        return find_power_gaps(self.verdicts, min_power)

    def to_json(self, fail_if: str | None = None, min_power: float = MIN_POWER) -> str:
        """The differences as JSON, and the results that they are of; with ``fail_if``, whether the gate is passed."""
        given: dict[str, Any] = {**self.tables, "verdicts": self.verdicts, "notes": self.notes}
        given["results"] = [row.to_dict() if isinstance(row, Result) else row for row in self.results]
        given["remarks"] = self.remarks
        if fail_if is not None:
            failed, gaps = self.failed(fail_if), self.power_gaps(min_power)
            tests = [{"model": one.model, "test": one.test, "outcome": one.outcome} for one in failed]
            given["gate"] = {"fail_if": fail_if, "passed": not failed and not gaps, "failed": tests, "power_gaps": gaps}
        about = {"baseline": self.baseline, "verdict": self.verdict, "confidence": self.confidence}
        return to_json(about | dict.fromkeys(_ALWAYS, ()) | given)

    def to_frame(self, name: str | None = None) -> pd.DataFrame:
        """Return the verdicts, or a table of differences, as a data frame.

        Parameters
        ----------
        name : str, optional
            ``"verdicts"`` or the name of a table of differences. By default the verdicts, or the first table if the
            study has no verdicts.

        Returns
        -------
        pandas.DataFrame
            Values that were not computed are ``pandas.NA``.
        """
        tables = {"verdicts": self.verdicts, **self.tables} if self.verdicts else dict(self.tables)
        if name is not None and name not in tables:
            raise UnknownNameError("table", name, tables, f"(tables of this comparison: {', '.join(tables)})")
        rows = tables[next(iter(tables)) if name is None else name]
        columns = [field.name for field in dataclasses.fields(rows[0])] if rows else []
        return to_data_frame({column: [getattr(row, column) for row in rows] for column in columns})

    def _repr_html_(self) -> str:
        """The verdict, then the numbers behind it; where none is given, the differences."""
        summary = self.verdict or f"{', '.join(self.models)} compared with {self.baseline}"
        notes = "".join(f"<p>Not alike: {escape(make_printable(note))}.</p>" for note in self.notes)
        shown = (
            [_render_verdicts(self.verdicts)]
            if self.verdicts
            else [_render_table(*table) for table in self.tables.items()]
        )
        return f"<div><p><b>{escape(make_printable(summary))}</b></p>{notes}{''.join(shown)}</div>"


def _render_verdicts(verdicts: Sequence[Verdict]) -> str:
    """Tests that fail first."""
    several = len({one.model for one in verdicts}) > 1
    old, unit = verdicts[0].baseline, verdicts[0].unit
    head = {
        "test": "What is tested, and its name in biassay.",
        **({"model": "The new model."} if several else {}),
        f"{unit}, {old}": "On the old model.",
        f"{unit}, new" if several else f"{unit}, {verdicts[0].model}": "On the new model.",
        "growth": "Change towards the stereotype, over what both models were asked.",
        "interval": "Interval of the growth, simultaneous over all questions.",
        "verdict": f"Worse: moved towards the stereotype by more than {verdicts[0].margin:.3g}.",
    }
    ordered = sorted(verdicts, key=lambda one: (VERDICT_OUTCOMES.index(one.outcome), -(one.growth or 0.0)))
    lines = [
        [
            f"{one.title} ({one.test})",
            *([one.model] if several else []),
            *map(_format_cell, (one.effect_baseline, one.effect_model, one.growth)),
            "–" if one.low is None or one.high is None else f"{one.low:.2f} to {one.high:.2f}",
            format_outcome(one.outcome) if one.decides else f"{format_outcome(one.outcome)} (does not decide)",
        ]
        for one in ordered
    ]
    return _render_first_rows("", head, lines)


def _render_table(name: str, rows: Sequence[Any]) -> str:
    if not rows:
        return ""
    names = [field.name for field in dataclasses.fields(rows[0]) if field.name not in ("baseline", "title")]
    return _render_first_rows(
        name, dict.fromkeys(names, ""), [[_format_cell(getattr(row, name)) for name in names] for row in rows]
    )


def _render_first_rows(title: str, head: Mapping[str, str], lines: Sequence[Sequence[str]]) -> str:
    more = f"<p>and {len(lines) - _MAX_ROWS:,} more rows</p>" if len(lines) > _MAX_ROWS else ""
    return (
        render_html_table(title, head, [[make_printable(cell) for cell in line] for line in lines[:_MAX_ROWS]]) + more
    )


def _format_cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.2f}" if isinstance(value, float) else ", ".join(value) if isinstance(value, tuple) else str(value)


def choose_baseline(labels: Sequence[str], baseline: str | None) -> str:
    """The model given, by its label or as it was typed, or the first; there must be another to compare it with."""
    if len(labels) < 2:
        raise UsageError(f"there is one model only ({', '.join(labels)}); name another run to compare it with")
    if baseline is not None and baseline not in labels and short_name(baseline) in labels:
        return short_name(baseline)
    if baseline is not None and baseline not in labels:
        raise UnknownNameError("model", baseline, labels, f"(models of these runs: {', '.join(labels)})")
    return baseline or labels[0]


def find_setting_differences(
    manifests: Mapping[str, object], fields: Mapping[str, str], *, mixed: bool
) -> tuple[str, ...]:
    """In which ``fields``, by what they are called, runs differ that should be alike; an error unless ``mixed``."""
    found = []
    for what, field in fields.items():
        values = {name: getattr(manifest, field) for name, manifest in manifests.items()}
        if len(set(values.values())) > 1:
            found.append(f"{what}: " + ", ".join(f"{value} in {name}" for name, value in values.items()))
    if found and not mixed:
        raise UsageError("the runs cannot be compared: " + "; ".join(found) + " (--mixed compares them all the same)")
    return tuple(found)
