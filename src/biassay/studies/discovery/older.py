"""Folders of discovery in older formats: parsed content in, the present form out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.results.storage import Older
from biassay.studies.discovery.making import CURVE_ARRAYS, array_name
from biassay.studies.discovery.records import Task

__all__ = ["upgrade"]

_SETTINGS = ("threshold", "rule", "compare", "positive_only", "alpha", "max_lost", "keep", "seed")
_INPUTS = (
    *("grouping", "grouping_title", "grouping_digest", "citation", "licence", "groups", "labels"),
    *("vocabulary_digest", "note"),
)
_LOST = ("vocabulary", "names_lost", "validation_lost", "words_lost")
_CURVES: Mapping[Task, str] = {"ibd": "curve", "eibd": "curve_emergent"}
_NESTED = {*_CURVES.values(), "validated", "words", "others", "num_excess"}


def upgrade(manifest: dict[str, Any], results: dict[str, Any]) -> Older:
    """Format 1: one model, settings and inputs in the manifest itself, all about a group in one record."""
    own, found = dict(manifest), [_with_eibd(group, manifest["alpha"]) for group in results["results"]]
    settings = {name: own.pop(name) for name in _SETTINGS}
    settings |= {"n_permutations": own.pop("permutations"), "group": [group["group"] for group in found]}
    settings |= {"groups": own["grouping"], "words": own["vocabulary"] if own["vocabulary_digest"] else None}
    inputs, lost = ({name: own.pop(name) for name in names} for names in (_INPUTS, _LOST))
    (model,) = own.pop("models")
    names = [name for group in lost["names_lost"].values() for name in group]
    model = {**model, "measured": True, "words_lost": sorted({*names, *lost["validation_lost"], *lost["words_lost"]})}
    own |= {"study": own.pop("kind"), "package": "biassay", "models": [model], "settings": settings, "inputs": inputs}
    options = ";".join(f"{name}={value}" for name, value in model["settings"].items())
    who = {"model": model["name"], "options": options}
    return Older(own, {**_tables(found, who), "models": [{**who, **lost}]}, _arrays(found))


def _with_eibd(group: dict[str, Any], alpha: float) -> dict[str, Any]:
    """Folders that called emergent whatever EIBD detects."""
    if "num_eibd" in group:
        return group
    words = []
    for word in group["words"]:
        q = word["q_value_excess"]
        words.append({**word, "eibd": word["emergent"], "emergent": word["emergent"] and q is not None and q <= alpha})
    return {**group, "num_eibd": group["num_emergent"], "num_emergent": group["num_excess"], "words": words}


def _tables(found: list[dict[str, Any]], who: dict[str, str]) -> dict[str, list[dict[str, Any]]]:
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in ("results", "groups", "validated", "curves")}
    for group in found:
        of = {**who, "group": group["group"]}
        tables["groups"].append({**of, **{name: value for name, value in group.items() if name not in _NESTED}})
        tables["results"] += [{**of, **_with_names(word, group)} for word in group["words"]]
        tables["validated"] += [{**of, **_with_names(word, group)} for word in group["validated"]]
        for task, name in _CURVES.items():
            if group[name] is not None:
                numbers = {key: value for key, value in group[name].items() if key not in CURVE_ARRAYS}
                tables["curves"].append({**of, "task": task, **numbers})
    return tables


def _with_names(word: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
    """Scores by what they are against; they stood in the order of the group's lists."""
    named = (("scores", group["other_groups"]), ("constituents", group["constituents"]))
    return word | {name: dict(zip(names, word[name], strict=True)) for name, names in named}


def _arrays(found: list[dict[str, Any]]) -> dict[str, NDArray[np.float64]]:
    return {
        f"0/{array_name(group['group'], task, part)}": np.asarray(group[name][part], dtype=np.float64)
        for group in found
        for task, name in _CURVES.items()
        if group[name] is not None
        for part in CURVE_ARRAYS
    }
