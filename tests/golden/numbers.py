"""The numbers of a run as a flat table. Only this file knows the format of a run folder.

It reads plain JSON, so that recorded tables stay valid however the package changes.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .stereotypes import flatten_outcomes, nest_stereotypes
from .tables import Table

# What a run costs, what differs by machine, what is said rather than measured, and what was asked.
_LEFT_OUT = {
    *("texts", "encoded", "seconds", "num_questions", "num_passes", "num_asked"),
    *("model", "options", "model_revision", "test", "test_digest", "test_version", "source", "format_version"),
    *("title", "targ1", "targ2", "attr1", "attr2", "label", "labels", "others", "reason", "note", "notes"),
    *("protocol", "alternative", "alpha", "seed", "level", "confidence", "about", "topic", "variant_of", "template"),
    *("threshold_source", "threshold_emergent_source", "human_group", "digest", "baseline"),
    "cosine_standard_error",  # newer than the records; p_value is computed from it
}
_NAMED_BY = ("measure", "annotators", "group", "word", "domain_a", "domain_b", "trait", "direction")
_RECORDED_AS = {"oov_names": "names_lost", "oov_validation": "validation_lost", "oov_words": "words_lost"}
_OF_THE_RUN = ("status", *_RECORDED_AS, "ceiling")
_RECORDS = {
    *("curve", "curve_emergent", "contexts", "rated"),
    *("tau_first", "tau_second", "tau_reversed", "tau_closest"),
}
_COUNTS = ("thresholds", "tp", "fp", "fn", "tn")
_ARRAYS = {"results.tsv", "by_template", "contexts.standard_errors"}  # not in what `--json` prints
_SAMPLES = {"samples": "effect_sizes", "sample_p_values": "p_values"}
_PAPERS = ("p_value", "effect_size", "num_targ1", "num_targ2", "num_attr1", "num_attr2")
_OUTCOMES = {
    "crossed": ("ci_low", "ci_high", "p_value", "df", "power_80"),
    "fixed_words": ("effect_size", "p_value", "log10_p_value", "p_opposite", "p_floor"),
    "sentences": ("effect_size", "p_value", "log10_p_value"),
    "pooled": ("effect_size", "standard_error", "p_value", "log10_p_value"),
}


def numbers_of(folder: Path) -> Table:
    """All numbers of a run folder."""
    manifest, results = (json.loads((folder / f"{name}.json").read_text("utf-8")) for name in ("manifest", "results"))
    tables = results["tables"]
    if _kind(manifest) == "discovery":
        tables = {**tables, "curves": _with_counts(folder, manifest, tables["curves"])}
    arrays = _arrays(folder) if _kind(manifest) == "stereotypes" else None
    table = numbers_in({"manifest": manifest, **tables}, arrays)
    if _kind(manifest) == "associations":
        table |= _samples(folder, manifest) | _first_columns(folder, manifest)
    return table


def shown(table: Table) -> Table:
    """What of the numbers of a folder `--json` prints too: all but results.tsv and arrays."""
    return {
        key: value
        for key, value in table.items()
        if key[2] not in _ARRAYS and not key[2].startswith("samples.") and not _of_curve(key[2])
    }


def numbers_in(run: Mapping[str, Any], arrays: Mapping[str, Any] | None = None) -> Table:
    """All numbers of a run as `--json` prints it, and of its arrays where they are given."""
    manifest = run["manifest"]
    if _kind(manifest) == "stereotypes":
        human = manifest["inputs"]["human"]
        manifest = {**manifest, "ceiling": human and human["ceiling"]}
        results = nest_stereotypes(run, arrays)
    else:
        results = run["results"]
    if _kind(manifest) == "associations":
        manifest = {**manifest, "oov_words": {model["text"]: model["oov_words"] for model in manifest["models"]}}
        decisions = {_key(one, "item"): one for one in run["decisions"]}
        results = [_flat(row, decisions[_key(row, "test")]) for row in results]
    if _kind(manifest) == "discovery":
        manifest, results = {**manifest, **run["models"][0]}, _nested_groups(run)
    models = [model["text"] for model in manifest["models"]]
    table: Table = {}
    _add(table, "", "", {_RECORDED_AS.get(name, name): manifest[name] for name in _OF_THE_RUN if name in manifest})
    for place, found in enumerate(results):
        if _kind(manifest) == "associations":
            _add(table, _typed(manifest, found), found["test"], found)
        elif _kind(manifest) == "discovery":
            _add(table, models[0], found["group"], found)
        else:
            _add(table, models[place], "", found)
    return table


def _key(row: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    return row["model"], row["options"], row["model_revision"], row[name]


def _flat(row: Mapping[str, Any], decision: Mapping[str, Any]) -> dict[str, Any]:
    """A result with its outcomes, named as columns are, as `--json` prints it; a folder holds records in records."""
    flat = {
        **_without(_without(row, "associations"), "oov_words"),
        "leaning": row["associations"],
        "lost": row["oov_words"],
    }
    if "outcome" not in row:
        return flat
    primary = row["outcome"]
    outcomes = {primary["test"]: primary, **row["alternatives"]}
    for name, fields in _OUTCOMES.items():
        flat |= {f"{name}_{field}": outcomes.get(name, {}).get(field) for field in fields}
    return {**decision, **primary, **flat}


def _nested_groups(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Nest the flat tables of discovery: one record per group, scores in lists."""
    found = []
    for record in run["groups"]:
        group = flatten_outcomes(record)
        parts = {
            name: [_with_lists(row) for row in run[table] if row["group"] == group["group"]]
            for name, table in (("words", "results"), ("validated", "validated"))
        }
        curves = {row["task"]: row for row in run["curves"] if row["group"] == group["group"]}
        named = {
            name: flatten_outcomes(curves.get(task)) for task, name in (("ibd", "curve"), ("eibd", "curve_emergent"))
        }
        found.append({**group, **parts, **{n: None if c is None else _without(c, "task") for n, c in named.items()}})
    return found


def _with_lists(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**_without(row, "group"), **{name: list(row[name].values()) for name in ("scores", "constituents")}}


def _without(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


def _with_counts(
    folder: Path, manifest: Mapping[str, Any], curves: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Curves with what is kept as arrays: counts at every threshold."""
    places = {model["text"]: place for place, model in enumerate(manifest["models"])}
    found = []
    for row in curves:
        with np.load(folder / f"arrays/{places[_typed(manifest, row)]}.npz", allow_pickle=False) as archive:
            arrays = {name: archive[f"{row['group']}/{row['task']}/{name}"].tolist() for name in _COUNTS}
        found.append({**row, **{n: v if n == "thresholds" else list(map(int, v)) for n, v in arrays.items()}})
    return found


def _of_curve(quantity: str) -> bool:
    return quantity.startswith("curve") and quantity.partition(".")[2] in _COUNTS


def numbers_in_report(runs: Sequence[Mapping[str, Any]]) -> Table:
    """All numbers of `report --json`."""
    tables = [numbers_in(run) for run in runs]
    return {key: value for table in tables for key, value in table.items()}


def numbers_in_comparison(found: Mapping[str, Any]) -> Table:
    """All numbers of `compare --json`."""
    table: Table = {("", "", "baseline"): found["baseline"]}
    for kind, named in (("associations", "test"), ("agreements", "measure"), ("words", "group")):
        for row in found[kind]:
            _add(table, row["model"], row[named], row)
    return table


def _kind(manifest: Mapping[str, Any]) -> str:
    return str(manifest["study"])


def _typed(manifest: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """The model of a row as it was typed."""
    for model in manifest["models"]:
        options = ";".join(f"{name}={value}" for name, value in model["settings"].items())
        if (model["name"], options) == (found["model"], found["options"]):
            return str(model["text"])
    return f"{found['model']} {found['options']}".strip()


def _add(table: Table, model: str, item: str, record: Mapping[str, Any], prefix: str = "") -> None:
    """Fields of a record; records in it give items of their own, or, where there is one only, longer names."""
    for name, value in _with_scores_by_group(record).items():
        if name in _LEFT_OUT or name in _NAMED_BY:
            continue
        if name in _RECORDS and value is not None:
            _add(table, model, item, value, f"{prefix}{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            for named, part in _named(value):
                _add(table, model, " / ".join(filter(None, (item, prefix + name, named))), part)
        else:
            table[model, item, prefix + name] = value


def _with_scores_by_group(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Scores of a measure of stereotypes, which stand beside its profiles, in them: templates by name."""
    if "profiles" not in record or "scores" not in record:
        return record
    pairs = zip(record["profiles"], record["scores"], strict=True)
    profiles = [{**p, "by_template": dict(zip(record["templates"], s, strict=True))} for p, s in pairs]
    return {name: value for name, value in record.items() if name != "scores"} | {"profiles": profiles}


def _named(records: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Records of a list by what they are about; a second one about the same gets a number."""
    seen: Counter[str] = Counter()
    for record in records:
        name = " / ".join(str(record[key]) for key in _NAMED_BY if key in record)
        seen[name] += 1
        yield (name if seen[name] == 1 else f"{name} #{seen[name]}"), record


def _arrays(folder: Path) -> dict[str, Any]:
    """The arrays of a run, "PLACE/NAME"."""
    found: dict[str, Any] = {}
    for path in sorted(folder.glob("arrays/*.npz")):
        with np.load(path, allow_pickle=False) as archive:
            found |= {f"{path.stem}/{name}": archive[name] for name in archive.files}
    return found


def _samples(folder: Path, manifest: Mapping[str, Any]) -> Table:
    """What tests over contexts were pooled from, summed up."""
    table: Table = {}
    for path in sorted(folder.glob("arrays/*.npz")):
        model = manifest["models"][int(path.stem)]["text"]
        with np.load(path, allow_pickle=False) as archive:
            for name in archive.files:
                test, _, part = name.rpartition("/")
                if test != "scales":  # cosines of frequent words, which no test of the papers has
                    table[model, test, f"samples.{_SAMPLES.get(part, part)}"] = _summary(archive[name])
    return table


def _summary(array: Any) -> dict[str, Any]:
    figures = {"mean": array.mean(), "deviation": array.std(), "least": array.min(), "most": array.max()}
    return {"n": len(array), **{k: float(v) for k, v in figures.items()}, "first": array[:3].tolist()}


def _first_columns(folder: Path, manifest: Mapping[str, Any]) -> Table:
    """The papers' columns of results.tsv; an empty cell was not computed."""
    with (folder / "results.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return {
        (_typed(manifest, row), row["test"], "results.tsv"): [_papers_number(row, name) for name in _PAPERS]
        for row in rows
    }


def _papers_number(row: Mapping[str, str], name: str) -> float | None:
    value = row[name] if name.startswith("num") else row[f"sentences_{name}"] or row[f"pooled_{name}"]
    return float(value) if value else None
