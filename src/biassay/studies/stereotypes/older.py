"""Folders of stereotypes in older formats: parsed content in, the present form out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.results.storage import Older
from biassay.stimuli.abc import load_abc

__all__ = ["upgrade"]

_SETTINGS = ("variant", "prior", "all_adjectives", "seed")
_INPUTS = (
    "abc",
    "abc_digest",
    "citation",
    "licence",
    "pairs",
    "dimensions",
    "groups",
    "templates",
    "measures",
    "notes",
)
_TAUS = ("first", "second", "reversed", "closest")


def upgrade(manifest: dict[str, Any], results: dict[str, Any]) -> Older:
    """Format 1: results were nested by model and measure, settings and inputs stood in the manifest itself."""
    tables: dict[str, list[dict[str, Any]]] = {}
    arrays: dict[str, NDArray[np.float64]] = {}
    for place, result in enumerate(results["results"]):
        _update(result)
        for name, row in _rows(result):
            tables.setdefault(name, []).append({"model": result["model"], "options": result["options"], **row})
        for name, values in _arrays(result):
            arrays[f"{place}/{name}"] = np.array(values, dtype=np.float64)
    return Older(_manifest(manifest, results["results"]), tables, arrays)


def _manifest(manifest: Mapping[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    own = dict(manifest)
    contexts = dict(own.pop("contexts", None) or {})
    least = contexts.pop("min_contexts", 5)
    human, notes, ceiling = own.pop("human"), own.pop("human_notes"), own.pop("ceiling")
    lost = [[*result["unknown_adjectives"], *result["unknown_groups"]] for result in results]
    models = [
        {**model, "measured": True, "words_lost": sorted(words)}
        for model, words in zip(own.pop("models"), lost, strict=True)
    ]
    inputs = {name: own.pop(name) for name in _INPUTS}
    settings = {name: own.pop(name) for name in _SETTINGS} | {
        "measures": inputs["measures"],
        "groups": inputs["groups"],
        "templates": list(inputs["templates"]),
        "contexts": contexts.get("file"),
        "min_contexts": least,
        "human": human,
        "intersections": any(result["intersections"] for result in results),
        "n_bootstrap": own.pop("draws"),
    }
    inputs |= {
        "traits": {pair.name: [pair.left, pair.right] for pair in load_abc().pairs if pair.name in inputs["pairs"]},
        "human": None if human is None else {"file": human, "notes": notes, "ceiling": ceiling},
        "contexts": contexts or None,
    }
    return own | {
        "study": own.pop("kind"),
        "package": "biassay",
        "models": models,
        "settings": settings,
        "inputs": inputs,
    }


def _rows(result: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """All rows of one model, by their tables."""
    nested = ("measures", "intersections", "contexts")
    rows = [("models", {name: value for name, value in result.items() if name not in nested})]
    for found in result["measures"]:
        rows += _measure_rows(found)
    for crossed in result["intersections"]:
        rows += _pair_rows(crossed)
    seen = result.get("contexts")
    if seen is not None:
        rows.append(("contexts", {**seen, "words_options": seen["options"], "options": result["options"]}))
    return rows


def _measure_rows(found: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    of = {"measure": found["measure"]}
    about = {name: found[name] for name in ("templates", "chosen", "undefined")}
    rows = [("measures", {**of, **about, "groups": [profile["group"] for profile in found["profiles"]]})]
    rows += [("profiles", {**of, **profile}) for profile in found["profiles"]]
    for alignment in found["alignments"]:
        rows.append(("alignments", {**of, **alignment}))
        who = {**of, "annotators": alignment["annotators"]}
        rows += [("group_alignments", {**who, **group}) for group in alignment["groups"]]
    return rows


def _pair_rows(crossed: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    of = {"measure": crossed["measure"]}
    order = {**of, **{name: crossed[name] for name in ("num_groups", "num_both_orders")}}
    for name in _TAUS:
        mean = crossed[f"tau_{name}"]
        order |= {
            f"tau_{name}": mean["value"],
            f"standard_error_{name}": mean["standard_error"],
            f"n_{name}": mean["n"],
        }
    rows = [("orders", order)]
    rows += [(table, {**of, **row}) for table in ("dominance", "emergent") for row in crossed[table]]
    return rows if crossed["rated"] is None else [*rows, ("rated", {**of, **crossed["rated"]})]


def _arrays(result: dict[str, Any]) -> list[tuple[str, Any]]:
    arrays = [(f"{found['measure']}/scores", found["scores"]) for found in result["measures"] if found["templates"]]
    seen = result.get("contexts")
    return arrays if seen is None else [*arrays, ("ceat/standard_errors", seen["standard_errors"])]


def _update(result: dict[str, Any]) -> None:
    """Results that counted the pilot groups in, or emergent traits by a guess about noise: neither is known."""
    for measure in result["measures"]:
        for found in measure["alignments"]:
            if "tau_held_out" in found:
                _leave_pilot_out(found, measure)
    for crossed in result["intersections"]:
        if crossed["num_emergent"] is not None:
            crossed["num_both_orders"] = crossed.get("num_both_orders", 0)
            for trait in crossed["emergent"]:
                trait["p_value_additive"] = None


def _leave_pilot_out(found: dict[str, Any], measure: dict[str, Any]) -> None:
    if found["pilot_tau"] is None or len(measure["templates"]) < 2:  # templates were not chosen
        found |= dict.fromkeys(("pilot_tau", "tau_with_pilot", "p_value_with_pilot", "precision_with_pilot"))
        found["groups"] = [group | {"pilot": False} for group in found["groups"]]
        return
    for name in ("tau", "p_value", "precision"):
        found |= {f"{name}_with_pilot": found[name], name: found[f"{name}_held_out"]}
    spans = (f"{of}_{other}" for of in ("tau", "precision") for other in ("annotators", "groups", "both"))
    found |= dict.fromkeys((*spans, "tau_shuffled", "p_value_shuffled", "num_annotators"))
    held = {group["group"] for group in found["groups"] if not group["pilot"]}
    rated = [profile for profile in measure["profiles"] if profile["group"] in held and profile["human"]]
    cells = [sum(None not in cell for cell in zip(p["scores"], p["human"], strict=True)) for p in rated]
    found |= {"num_groups": sum(map(bool, cells)), "num_cells": sum(cells)}
