"""Parsed results of an older biassay, brought up to date in place: what they do not hold is not claimed."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from biassay.stimuli.catalogue import catalogue
from biassay.stimuli.description import description_of
from biassay.texts.sentences import digest_of

if TYPE_CHECKING:
    from biassay.results.stereotypes import StereotypeManifest

__all__ = ["update_associations", "update_stereotypes"]


def update_associations(content: Any) -> None:
    """Folders that do not say what their tests are about: the catalogue does, if it has one of that name and texts."""
    for result in content["results"]:
        if "about" not in result:
            result |= _description(result["test"], result["test_digest"])


@cache
def _description(name: str, digest: str) -> dict[str, str | None]:
    test = catalogue().tests.get(name)
    return {} if test is None or digest_of(test) != digest else description_of(test)


def update_stereotypes(_: StereotypeManifest, content: Any) -> None:
    """Folders that counted the pilot groups in, or emergent traits by a guess about noise: neither is known."""
    for result in content["results"]:
        for measure in result["measures"]:
            for found in measure["alignments"]:
                if "tau_held_out" in found:
                    _leave_pilot_out(found, measure)
        for crossed in result["intersections"]:
            if crossed["num_emergent"] is not None:
                crossed |= {"num_both_orders": crossed.get("num_both_orders", 0), "num_emergent": None}
                for trait in crossed["emergent"]:
                    trait |= {"p_value_additive": None, "q_value_additive": None}


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
