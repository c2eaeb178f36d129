"""Runs of all kinds made by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from biassay.results.discovery import Discovery, DiscoveryManifest
from biassay.results.records import FORMAT_VERSION, ContextsRecord, Manifest, ModelRecord, Result, TestRecord
from biassay.results.run import Run, with_corrections
from biassay.results.samples import Samples
from biassay.results.stereotypes import StereotypeManifest, Stereotypes

ROLES = ("X", "Y", "A", "B")
LATER = ("p_value_holm", "significant", "significant_holm")
LATER_BY_WORD = ("p_value_by_word_holm", "significant_by_word", "significant_by_word_holm")


def result(model: str, test: str, p: float | None = 0.5, **given: Any) -> Result:
    """A result without settings of its model; ``given`` replaces fields."""
    names = ("title", "targ1", "targ2", "attr1", "attr2", "p_route", "p_route_by_word", "source", "test_version")
    numbers = ("effect_size", "statistic", "log10_p_value", "p_error", "effect_size_by_word", "log10_p_value_by_word")
    fields: dict[str, Any] = {name: name for name in names}
    fields |= dict.fromkeys((*numbers, "p_error_by_word", "p_floor_by_word"), 0.25)
    fields |= dict.fromkeys((*LATER, *LATER_BY_WORD, "reason", "model_revision"))
    fields |= dict.fromkeys(("num_targ1", "num_targ2", "num_attr1", "num_attr2"), 4)
    fields |= {"model": model, "options": "", "test": test, "p_value": p, "p_value_by_word": p}
    fields |= {"status": "measured", "level": "word", "protocol": "exact", "alternative": "greater", "alpha": 0.01}
    fields |= {"num_words": dict.fromkeys(ROLES, 4), "num_cut": dict.fromkeys(ROLES, 0), "seed": 0}
    fields |= {"lost": dict.fromkeys(ROLES, ()), "leaning": {}, "test_digest": f"digest of {test}"}
    return Result(**fields | given)


def record(name: str, **given: Any) -> ModelRecord:
    return ModelRecord(**{"text": name, "name": name, "family": "f", "revision": None, "settings": {}} | given)


def contexts(**given: Any) -> ContextsRecord:
    made = ContextsRecord("c.parquet", "d", 16, 8, 0, 99, 1000, 40, "fixed", 9, "float16", 5)
    return dataclasses.replace(made, **given)


def run_of(run_id: str, rows: list[Result], samples: dict[tuple[int, str], Samples] | None = None, **given: Any) -> Run:
    """A run with these rows, corrected on its own; its models in the order of their rows."""
    fields: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "run_id": run_id,
        "status": "complete",
        "created": "2026-01-02T00:00:00+00:00",
        "finished": "2026-01-03T00:00:00+00:00",
        "versions": {"biassay": "0"},
        "models": tuple(record(name) for name in dict.fromkeys(r.model for r in rows)),
        "tests": tuple(
            TestRecord(name, name, digest, "s", "c", "l", "1")
            for name, digest in dict.fromkeys((r.test, r.test_digest) for r in rows)
        ),
        "protocol": "exact",
        "alternative": "greater",
        "alpha": 0.01,
        "max_lost": 0.2,
        "seed": 0,
        "words_lost": {},
    }
    made = Manifest(**fields | given)
    return Run(made, with_corrections(tuple(rows), made.alpha), samples or {})


def some(seed: int) -> Samples:
    rng = np.random.default_rng(seed)
    return Samples(rng.normal(size=5), rng.random(5), rng.random(5))


def discovery() -> Discovery:
    texts = ("grouping", "grouping_title", "grouping_digest", "citation", "licence", "vocabulary", "rule", "compare")
    fields: dict[str, Any] = dict.fromkeys((*texts, "note"), "as given") | {"vocabulary_digest": None}
    fields |= {"groups": {"g": ("a", "b")}, "labels": {"g": "G"}, "names_lost": {}, "validation_lost": ()}
    fields |= {"words_lost": (), "threshold": None, "positive_only": True, "permutations": 9, "keep": 5}
    return Discovery(DiscoveryManifest(**beginning("discovery"), **fields, alpha=0.05, max_lost=0.2, seed=0), ())


def stereotypes() -> Stereotypes:
    texts = ("abc", "abc_digest", "citation", "licence", "variant", "prior")
    fields: dict[str, Any] = dict.fromkeys(texts, "as given") | {"pairs": ("a/b",), "dimensions": {}, "groups": ("g",)}
    fields |= {"templates": {}, "measures": ("ilps",), "all_adjectives": False, "human": None, "human_notes": ()}
    fields |= {"notes": (), "draws": 9, "ceiling": None, "seed": 0}
    return Stereotypes(StereotypeManifest(**beginning("stereotypes"), **fields), ())


def beginning(kind: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"format_version": FORMAT_VERSION, "run_id": kind, "status": "complete", "created": "then"}
    return fields | {"finished": None, "versions": {}, "models": (record("m"),), "kind": kind}
