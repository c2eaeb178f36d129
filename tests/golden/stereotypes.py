"""Nest the flat tables of stereotypes by model and measure. It reads plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

_TAUS = ("first", "second", "reversed", "closest")


def nest_stereotypes(run: Mapping[str, Any], arrays: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """One record a model; without ``arrays`` it has no scores by template and no standard errors."""
    models = []
    for place, record in enumerate(run["manifest"]["models"]):
        options = ";".join(f"{name}={value}" for name, value in record["settings"].items())
        own = {
            table: [row for row in rows if (row["model"], row["options"]) == (record["name"], options)]
            for table, rows in run.items()
            if table not in ("manifest", "findings")
        }
        nested = {
            "measures": [_measure(found, own, arrays, place) for found in own["measures"]],
            "intersections": [_crossed(order, own) for order in own["orders"]],
            "contexts": _contexts(own, arrays, place),
        }
        models += [row | nested for row in own["models"]]
    return models


def flatten_outcomes(row: Mapping[str, Any] | None) -> Any:
    """Flatten the outcomes of a record: alternatives have their name as prefix, numbers of units the prefix ``n_``."""
    if row is None or "outcome" not in row:
        return row
    flat = {name: value for name, value in row.items() if name not in ("outcome", "alternatives", "direction")}
    for prefix, outcome in (("", row["outcome"]), *((f"{n}_", one) for n, one in row.get("alternatives", {}).items())):
        flat |= {f"{prefix}{name}": value for name, value in outcome.items() if name != "n"}
        flat |= {f"{prefix}n_{name}": value for name, value in outcome["n"].items()}
    return flat


def _of(rows: list[Any], **same: str) -> list[Any]:
    """Rows about the same, without what they have in common."""
    own = [row for row in rows if all(row[name] == value for name, value in same.items())]
    return [{name: value for name, value in row.items() if name not in same} for row in own]


def _measure(row: Any, own: Any, arrays: Mapping[str, Any] | None, place: int) -> dict[str, Any]:
    measure = row["measure"]
    alignments = [
        {
            **flatten_outcomes(found),
            "groups": _of(own["group_alignments"], measure=measure, annotators=found["annotators"]),
        }
        for found in _of(own["alignments"], measure=measure)
    ]
    made = {name: value for name, value in row.items() if name != "groups"}
    made |= {"profiles": _of(own["profiles"], measure=measure), "alignments": alignments}
    if arrays is not None:
        array = arrays.get(f"{place}/{measure}/scores")
        made["scores"] = [[]] * len(row["groups"]) if array is None else _plain(array)
    return made


def _crossed(row: Any, own: Any) -> dict[str, Any]:
    measure = row["measure"]
    made = {name: row[name] for name in ("measure", "num_groups", "num_both_orders")} | {"num_emergent": None}
    for name in _TAUS:
        mean = {"value": row[f"tau_{name}"], "standard_error": row[f"standard_error_{name}"], "n": row[f"n_{name}"]}
        made[f"tau_{name}"] = mean
    emergent = [{**found, "q_value_additive": 1.0} for found in _of(own["emergent"], measure=measure)]
    rated = _of(own["rated"], measure=measure)
    made |= {"dominance": _of(own["dominance"], measure=measure), "emergent": emergent}
    return {**made, "rated": rated[0] if rated else None}


def _contexts(own: Any, arrays: Mapping[str, Any] | None, place: int) -> dict[str, Any] | None:
    for row in own["contexts"]:
        made = {name: value for name, value in row.items() if name != "words_options"}
        return made if arrays is None else {**made, "standard_errors": _plain(arrays[f"{place}/ceat/standard_errors"])}
    return None


def _plain(array: Any) -> Any:
    """Lists of numbers; None where there is none."""
    return np.where(np.isnan(array), None, array.astype(object)).tolist()  # type: ignore[attr-defined]
