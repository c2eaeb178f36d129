"""What the models of a run are called where they stand side by side."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from biassay.models.registry import published_as
from biassay.results.data import ModelRecord, RunData, place_finder

__all__ = [
    "ModelKey",
    "model_key",
    "model_labels",
    "numbered",
    "published_model",
    "record_labels",
    "short_name",
    "told_apart",
]

ModelKey = tuple[str, str, str | None]
_OBJECT = "object"  # what stands before the colon in the name of an object
_ON_HUBS = ("hf", "st")
_NAME = re.compile(r"(?P<family>\w+):(?P<rest>.*?)(?: #\d+)?(?P<run> \[.*\])?", re.DOTALL)


def numbered(name: str, taken: Collection[str]) -> str:
    """The name, with a number if it is taken."""
    names = itertools.chain((name,), (f"{name} #{number}" for number in itertools.count(2)))
    return next(free for free in names if free not in taken)


def model_key(row: Any) -> ModelKey:
    """What tells the models of a run apart, in its rows."""
    return row.model, row.options, getattr(row, "model_revision", None)


def model_labels(run: RunData) -> dict[ModelKey, str]:
    """A label for every model that has rows: the name that the user gave, or the last part of its own.

    The models of the manifest are told apart whether or not they have rows, so that a part of a run has the same
    labels. Models of several runs put together, and of older runs, may differ in nothing but their weights: they get a
    number.
    """
    rows = {model_key(row): row for table in run.tables.values() for row in table}
    records, place_of = list(run.manifest.models), place_finder(run.manifest.models)
    places: dict[ModelKey, int] = {}
    for key, row in rows.items():
        place = place_of(row)
        if place is None:
            place = len(records)
            records.append(ModelRecord(row.model, row.model, "", key[2], _settings(row.options)))
        places[key] = place
    labels = told_apart(records)
    return {key: labels[place] for key, place in places.items()}


def record_labels(run: RunData) -> list[str]:
    """The labels of the models of the manifest, in its order."""
    return told_apart(run.manifest.models)


def published_model(record: ModelRecord) -> tuple[str, str]:
    """What papers call a model that is the one of its family, and the work to cite for it; empty for any other."""
    return published_as(record.family)


def short_name(name: str) -> str:
    """The last part of a name on a hub, of a path or of a class path: of ``hf:org/model@main``, ``model``."""
    parts = _NAME.fullmatch(name)
    return name if parts is None else _last(parts["family"], parts["rest"]) + (parts["run"] or "")


def _settings(options: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in options.split(";") if part)


def told_apart(records: Sequence[ModelRecord]) -> list[str]:
    """Short names; of those that are the same with revision, folder, and the settings that differ, or else a number."""
    labels = [short_name(record.name) if _is_default(record) else record.name for record in records]
    forms: tuple[Callable[[ModelRecord], str], ...] = (_with_revision, _with_parent)
    for form in forms:
        for places in _clashes(labels):
            longer = {i: form(records[i]) for i in places if _is_default(records[i])}
            if len({*longer.values()}) > 1 or len(longer) < len(places):
                for i, label in longer.items():
                    labels[i] = label
    for places in _clashes(labels):
        names = dict.fromkeys(name for i in places for name in records[i].settings)
        differing = [name for name in names if len({records[i].settings.get(name) for i in places}) > 1]
        for i in places:
            own = ";".join(f"{name}={records[i].settings[name]}" for name in differing if name in records[i].settings)
            labels[i] += f" ({own})" if own else ""
    unique: dict[str, None] = {}
    taken = {*labels}
    for label in labels:
        own = label if label not in unique else numbered(label, taken)
        unique[own] = None
        taken.add(own)
    return list(unique)


def _clashes(labels: Sequence[str]) -> Iterable[list[int]]:
    """The places of every label that several models have."""
    places: dict[str, list[int]] = {}
    for place, label in enumerate(labels):
        places.setdefault(label, []).append(place)
    return [several for several in places.values() if len(several) > 1]


def _is_default(record: ModelRecord) -> bool:
    """Is its name what the user typed for the model, not a name of the user's own?"""
    parts = _NAME.fullmatch(record.name)
    return parts is not None and parts["family"] in (record.family.partition(":")[0], _OBJECT)


def _last(family: str, rest: str) -> str:
    if family in (_OBJECT, "python"):
        return re.split(r"[:.]", rest)[-1]
    return re.split(r"[/\\]", _plain(family, rest))[-1] or rest


def _plain(family: str, rest: str) -> str:
    """Without the revision of a hub and a slash at the end."""
    return (rest.partition("@")[0] if family in _ON_HUBS else rest).rstrip("/\\")


def _with_revision(record: ModelRecord) -> str:
    parts = _NAME.fullmatch(record.name)
    assert parts is not None  # it begins with its family
    family, rest = parts["family"], parts["rest"]
    revision = rest.partition("@")[2] if family in _ON_HUBS else ""
    return _last(family, rest) + (f"@{revision}" if revision else "") + (parts["run"] or "")


def _with_parent(record: ModelRecord) -> str:
    """The folder before the name, as it was asked for where the name has none; of an object the module."""
    parts = _NAME.fullmatch(record.name)
    assert parts is not None
    family, rest = parts["family"], parts["rest"]
    if family in (_OBJECT, "python"):
        return rest + (parts["run"] or "")
    asked = record.text.partition("?")[0].partition(":")[2]
    found = [re.split(r"[/\\]", _plain(family, path)) for path in (rest, asked)]
    longest = max(found, key=lambda path: len(path) if path[-1] == found[0][-1] else 0)
    revision = _with_revision(record).removeprefix(_last(family, rest))
    return "/".join(longest[-2:]) + revision
