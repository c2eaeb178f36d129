"""The models of a run: as a user gives them, and as they are found again when an interrupted run goes on.

A run folder may come from a stranger: what would run code, send texts and keys, or write elsewhere is given again.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import NoReturn

from biassay.errors import UsageError
from biassay.files import read_text
from biassay.models.base import Identity
from biassay.models.family import ModelName
from biassay.models.python import OBJECT, wrap
from biassay.models.registry import consent_for, packages_of, parse_model
from biassay.results.data import ModelRecord
from biassay.results.labels import numbered
from biassay.results.storage import MANIFEST

__all__ = [
    "Asked",
    "asked_models",
    "check_unchanged",
    "identified",
    "identities_of",
    "models_again",
    "must_be_given",
    "own_name",
    "package_versions",
    "refuse_folder",
    "telling_how_to_resume",
    "to_give_again",
    "versions_of",
]


_OWN_NAME = re.compile(r"[^:?=/\s][^:?=]*")  # no part of a model string before its first equals sign


@dataclass(frozen=True, eq=False)
class Asked:
    """A model as it was asked for.

    Attributes
    ----------
    text : str
        What the manifest calls it.
    model : str or object
        The model string, or the object itself.
    name : str or None
        What results call it, where that is settled.
    """

    text: str
    model: object
    name: str | None = None


def asked_models(models: object) -> tuple[Asked, ...]:
    """One model or a list of them, strings or objects, or a mapping from names; one that is given twice counts once.

    A string ``@FILE`` stands for the lines of a file, a model each; those that are blank or begin with # say nothing.
    """
    if isinstance(models, Mapping):
        pairs = list(models.items())
        if not all(isinstance(name, str) and name for name, _ in pairs):
            raise UsageError("the names of models are strings: {'base': model, 'tuned': other}")
    else:
        given = models if isinstance(models, list | tuple) else (models,)
        pairs = [_named(model) for one in given for model in _listed(one)]
    if not pairs:
        raise UsageError("name at least one model")
    hidden = next((name for name, _ in pairs if name is not None and not name.isprintable()), None)
    if hidden is not None:
        raise UsageError(f"the name of a model holds characters that cannot be shown: {hidden!r}")
    names = [name for name, _ in dict.fromkeys((name, _known(model)) for name, model in pairs) if name is not None]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two models have the name {twice!r}; give each a name of its own")
    unique = {(name, _known(model)): (name, model) for name, model in pairs}
    asked: list[Asked] = []
    for name, model in unique.values():
        text = model if isinstance(model, str) else _object_text(model, name, {other.text for other in asked})
        asked.append(Asked(text, model, name))
    return tuple(asked)


def _listed(model: object) -> Iterable[object]:
    """The models that one that was given stands for."""
    if not isinstance(model, str) or not model.startswith("@"):
        return (model,)
    lines = [line.strip() for line in read_text(Path(model[1:]).expanduser()).splitlines()]
    listed = [line for line in lines if line and not line.startswith("#")]
    if not listed:
        raise UsageError(f"{model[1:]}: names no model; a model stands on a line of its own")
    nested = next((line for line in listed if line.startswith("@")), None)
    if nested is not None:
        raise UsageError(f"{model[1:]}: {nested!r} is a list, and a list holds models only")
    return listed


def _known(model: object) -> object:
    return model if isinstance(model, str) else id(model)


def _named(model: object) -> tuple[str | None, object]:
    """A name of the user's own stands in front of a model string: ``MiniLM=st:NAME``."""
    if not isinstance(model, str):
        return None, model
    name, equals, rest = model.partition("=")
    return (name, rest) if equals and rest and _OWN_NAME.fullmatch(name) else (None, model)


def own_name(model: object) -> str | None:
    """The name that stands before a model or a run folder."""
    return _named(model)[0]


def _object_text(model: object, name: str | None, taken: set[str]) -> str:
    return numbered(f"{OBJECT}{name}" if name else wrap(model).identity.name, taken)


def identified(text: str, identity: Identity) -> ModelRecord:
    """A model as it was asked for and as it was opened."""
    return ModelRecord(text, identity.name, identity.family, identity.revision, dict(identity.settings))


def package_versions(models: Sequence[ModelRecord]) -> dict[str, str]:
    """Versions of the packages that can change the answers of some models."""
    return versions_of(name for record in models for name in packages_of(record.family))


def versions_of(packages: Iterable[str]) -> dict[str, str]:
    """Versions of distributions; one that cannot be found is "unknown"."""
    found: dict[str, str] = {}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "unknown"
    return found


def identities_of(asked: Sequence[Asked], found: Sequence[Identity]) -> tuple[Identity, ...]:
    """What was opened, under the names that the user gave; a name that another model has gets a number.

    Models of other settings may share a name, for results show the settings beside it. Names that are settled come
    first: a model that failed before takes none from the others.
    """
    apart: dict[int, Identity] = {}
    for place in sorted(range(len(asked)), key=lambda place: asked[place].name is None):
        identity = found[place]
        same = {other.name for other in apart.values() if other.options == identity.options}
        apart[place] = dataclasses.replace(identity, name=numbered(asked[place].name or identity.name, same))
    return tuple(apart[place] for place in range(len(asked)))


def models_again(folder: Path, records: Sequence[ModelRecord], models: object) -> tuple[Asked, ...]:
    """The models of an interrupted run, those that ``models`` gives again as given there.

    The others are opened as the folder names them, if that can do no harm.
    """
    asked = () if models is None else asked_models(models)
    _check_named(folder, records, asked)
    given = _placed(folder, records, asked)
    left = [record for place, record in enumerate(records) if place not in given]
    _check_consent(folder, left)
    return tuple(
        Asked(record.text, given[place].model if place in given else record.text, _settled(record))
        for place, record in enumerate(records)
    )


def _settled(record: ModelRecord) -> str | None:
    """The name of a model, unless it is but what stood for it while it could not be opened."""
    head = record.text.partition("?")[0]
    return None if record.failed is not None and record.revision is None and record.name == head else record.name


def _check_named(folder: Path, records: Sequence[ModelRecord], given: Sequence[Asked]) -> None:
    """Refuse objects without names where the run has several: nothing else says which of them is which."""
    objects = [record for record in records if record.text.startswith(OBJECT)]
    if len(objects) > 1 and any(one.name is None and not isinstance(one.model, str) for one in given):
        raise UsageError(
            f"{folder}: the run has {len(objects)} models that are objects; give each by the name that it has there: "
            f"{_call(folder, to_give_again(records))}"
        )


def _placed(folder: Path, records: Sequence[ModelRecord], given: Sequence[Asked]) -> dict[int, Asked]:
    """Which model of the run each one given is: that of its text or name, or else the same with other settings."""
    placed: dict[int, Asked] = {}
    left = list(given)
    keys: tuple[Callable[[str], str], ...] = (str, lambda text: text.partition("?")[0])
    for key in keys:
        for one in tuple(left):
            wanted = key(one.name or one.text)
            same = (i for i, r in enumerate(records) if i not in placed and wanted in (key(r.text), r.name))
            place = next(same, None)
            if place is not None:
                placed[place] = one
                left.remove(one)
    if left:
        known = ", ".join(repr(record.name) for record in records)
        raise UsageError(f"{folder}: the run has no model {left[0].name or left[0].text!r}; its models: {known}")
    return placed


def must_be_given(text: str) -> bool:
    """Is it a model that is not taken from a run folder?"""
    return text.startswith(OBJECT) or bool(consent_for(text))


def to_give_again(records: Sequence[ModelRecord]) -> list[ModelRecord]:
    """The models of a run that cannot be taken from its folder."""
    return [record for record in records if must_be_given(record.text)]


def _check_consent(folder: Path, records: Sequence[ModelRecord]) -> None:
    """Refuse models that only the user can give; nothing was opened, imported or asked for yet."""
    missing = to_give_again(records)
    if any(record.text.startswith(OBJECT) for record in missing):
        raise UsageError(
            f"{folder}: the run has models that are objects, which no folder can hold; give them again: "
            f"{_call(folder, missing)}"
        )
    if missing:
        raise UsageError(f"{folder}: {_refusal(folder, [parse_model(record.text) for record in missing])}")


def _refusal(folder: Path, models: Sequence[ModelName]) -> str:
    """What the models would do, and the command that lets them; a terminal is not given what it might obey."""
    asks = "; ".join(f"{model.head!r} would {' and '.join(consent_for(model))}" for model in models)
    again = _command(folder, [model.text for model in models])
    if not f"{asks}{again}".isprintable():
        return "a model of the run has a name that cannot be shown; start a new run"
    return f"{asks}. That is not taken from a folder. If you want it, give the model again: {again}"


def refuse_folder(folder: Path, setting: str, value: str, asked: Sequence[Asked]) -> NoReturn:
    """Refuse to write to a folder that only the run names; the command that allows it gives the same models again."""
    strings = [one for one in asked if isinstance(one.model, str)]
    given = [str(one.model) for one in strings if one.model != one.text or consent_for(one.text)]
    again = f"{_command(folder, given)} --{setting} {shlex.quote(value)}"
    if not again.isprintable():
        raise UsageError(f"{folder}: the run has a folder of {setting} that cannot be shown; start a new run")
    raise UsageError(
        f"{folder}: the run would write {setting} to {value!r}. That is not taken from a folder. If you want it, give "
        f"the folder of {setting} again: {again}"
    )


def _command(folder: Path, models: Sequence[str]) -> str:
    return " ".join(["biassay resume", shlex.quote(str(folder)), *(f"--model {shlex.quote(text)}" for text in models)])


def _call(folder: Path, records: Sequence[ModelRecord]) -> str:
    models = ", ".join(f"{r.name!r}: {'...' if r.text.startswith(OBJECT) else repr(r.text)}" for r in records)
    return f"biassay.resume({str(folder)!r}, models={{{models}}})"


@contextmanager
def telling_how_to_resume(folder: Path, asked: Sequence[Asked], records: Sequence[ModelRecord]) -> Iterator[None]:
    """If a run of objects is left unfinished, say how it goes on."""
    try:
        yield
    except BaseException as error:
        if any(not isinstance(one.model, str) for one in asked) and (folder / MANIFEST).exists():
            error.add_note(f"go on with: {_call(folder, to_give_again(records))}")
        raise


def check_unchanged(folder: Path, records: Sequence[ModelRecord], found: Sequence[ModelRecord]) -> None:
    """Refuse to go on with other weights or settings; what failed before, or fails now, has nothing to differ in."""
    for record, now in zip(records, found, strict=True):
        if record.failed is not None or now.failed is not None:
            continue
        if (record.family, record.revision, record.settings) != (now.family, now.revision, now.settings):
            raise UsageError(f"{folder}: the model {record.text!r} has changed since the run began; start a new run")
