"""Model specifications, opened models and models that fail.

A run folder may come from somebody you do not trust. Models and folders that would run code, send texts and keys, or
write elsewhere
are therefore never taken from it: the user gives them again.
"""

from __future__ import annotations

import dataclasses
import errno
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, NoReturn

from biassay.cache.outputs import Capabilities
from biassay.errors import BiassayError, BudgetError, ModelError, StorageError, UsageError, VectorError
from biassay.io import read_text
from biassay.models.backend import Capability, ModelName
from biassay.models.base import Identity, StreamingModel, default_representation, list_representations
from biassay.models.erasure import ErasedEncoder, Erasure
from biassay.models.python_object import OBJECT_PREFIX, wrap_object
from biassay.models.registry import (
    get_capabilities,
    get_packages,
    get_required_consents,
    open_model,
    parse_model,
    refuse_scorer,
)
from biassay.models.vector_files import HasVocabulary
from biassay.results.run_data import ModelRecord, make_unique, make_unique_labels
from biassay.results.run_folder import MANIFEST_JSON
from biassay.runs.progress import Listener, announce_step

_GIVEN_NAME = re.compile(r"[^:?=/\s][^:?=]*")  # no part of a model string before its first equals sign


@dataclass(frozen=True, eq=False)
class ModelSpec:
    """A model as the user specified it.

    Attributes
    ----------
    text : str
        Model string, or the text that represents an object in the manifest.
    model : str or object
        The model string, or the object itself.
    name : str or None
        Label in results, if the user or an earlier run chose one.
    """

    text: str
    model: object
    name: str | None = None


def parse_model_specs(models: object) -> tuple[ModelSpec, ...]:
    """Parse models as users give them; duplicates count once.

    Parameters
    ----------
    models : str, object, list of them, or dict
        Model strings or objects, or a dict from labels to them. A string ``LABEL=MODEL`` has a label. A string
        ``@FILE`` names a file with one model per line; blank lines and lines that begin with # are skipped.
    """
    if isinstance(models, Mapping):
        pairs = list(models.items())
        if not all(isinstance(name, str) and name for name, _ in pairs):
            raise UsageError("labels of models must be strings, as in {'base': model, 'tuned': other}")
    else:
        given = models if isinstance(models, list | tuple) else (models,)
        pairs = [_split_given_name(model) for item in given for model in _expand_model_list(item)]
    if not pairs:
        raise UsageError("no model given; name at least one")
    unique = {(name, model if isinstance(model, str) else id(model)): (name, model) for name, model in pairs}
    names = [name for name, _ in unique if name is not None]
    check_unique_names(names)
    unprintable = next((name for name in names if not name.isprintable()), None)
    if unprintable is not None:
        raise UsageError(f"the label {unprintable!r} of a model has unprintable characters; choose another")
    specs: list[ModelSpec] = []
    for name, model in unique.values():
        text = model if isinstance(model, str) else _make_object_text(model, name, {spec.text for spec in specs})
        specs.append(ModelSpec(text, model, name))
    return tuple(specs)


def check_unique_names(names: Sequence[str]) -> None:
    """Raise UsageError if two models have the same label."""
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise UsageError(f"two models have the label {duplicate!r}; choose different labels")


def _expand_model_list(model: object) -> Iterable[object]:
    """Return the models in a file ``@FILE``, or the given model."""
    if not isinstance(model, str) or not model.startswith("@"):
        return (model,)
    lines = [line.strip() for line in read_text(Path(model[1:]).expanduser()).splitlines()]
    listed = [line for line in lines if line and not line.startswith("#")]
    if not listed:
        raise UsageError(f"{model[1:]}: no model given; write one model per line")
    nested = next((line for line in listed if line.startswith("@")), None)
    if nested is not None:
        raise UsageError(f"{model[1:]}: {nested!r} is another list; write one model per line")
    return listed


def _split_given_name(model: object) -> tuple[str | None, object]:
    """Split ``LABEL=MODEL`` into label and model string."""
    if not isinstance(model, str):
        return None, model
    name, equals, rest = model.partition("=")
    return (name, rest) if equals and rest and _GIVEN_NAME.fullmatch(name) else (None, model)


def get_given_name(model: object) -> str | None:
    """Return the label of ``LABEL=MODEL`` or ``LABEL=FOLDER``, or None."""
    return _split_given_name(model)[0]


def _make_object_text(model: object, name: str | None, taken: set[str]) -> str:
    return make_unique(f"{OBJECT_PREFIX}{name}" if name else wrap_object(model).identity.name, taken)


def make_model_record(text: str, identity: Identity) -> ModelRecord:
    """Make the manifest record of an opened model."""
    return ModelRecord(text, identity.name, identity.backend, identity.revision, dict(identity.settings))


def get_package_versions(models: Sequence[ModelRecord]) -> dict[str, str]:
    """Return the versions of the packages that can change the outputs of some models."""
    return get_versions(name for record in models for name in get_packages(record.backend))


def get_versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of distributions, "unknown" if one is not installed."""
    versions: dict[str, str] = {}
    for name in packages:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "unknown"
    return versions


def make_unique_identities(specs: Sequence[ModelSpec], identities: Sequence[Identity]) -> tuple[Identity, ...]:
    """Return identities with the labels that the user chose, numbered where two models share a label.

    Models with different settings may share a label, because results show the settings beside it. Chosen labels come
    first, so that a model that failed before takes none from the others.
    """
    unique: dict[int, Identity] = {}
    for index in sorted(range(len(specs)), key=lambda index: specs[index].name is None):
        identity = identities[index]
        taken = {other.name for other in unique.values() if other.options == identity.options}
        unique[index] = dataclasses.replace(identity, name=make_unique(specs[index].name or identity.name, taken))
    return tuple(unique[index] for index in range(len(specs)))


def restore_model_specs(folder: Path, records: Sequence[ModelRecord], models: object) -> tuple[ModelSpec, ...]:
    """Return the models of an interrupted run.

    Parameters
    ----------
    folder : Path
        The run folder.
    records : sequence of ModelRecord
        Models in its manifest.
    models : str, object, list of them, dict, or None
        Models that the user gives again. The others are opened as the manifest names them, unless they would run
        code or send texts away, which is an error.
    """
    specs = () if models is None else parse_model_specs(models)
    _check_objects_named(folder, records, specs)
    given = _match_to_records(folder, records, specs)
    _check_consent(folder, [record for index, record in enumerate(records) if index not in given])
    return tuple(
        ModelSpec(record.text, given[index].model if index in given else record.text, _get_final_name(record))
        for index, record in enumerate(records)
    )


def _get_final_name(record: ModelRecord) -> str | None:
    """Return the label of a model, or None if it is a placeholder because the model could not be opened."""
    head = record.text.partition("?")[0]
    return None if record.failed is not None and record.revision is None and record.name == head else record.name


def _check_objects_named(folder: Path, records: Sequence[ModelRecord], specs: Sequence[ModelSpec]) -> None:
    """Raise UsageError for objects without labels if the run has several objects."""
    objects = [record for record in records if record.text.startswith(OBJECT_PREFIX)]
    if len(objects) > 1 and any(spec.name is None and not isinstance(spec.model, str) for spec in specs):
        raise UsageError(
            f"{folder}: the run has {len(objects)} models that are Python objects; pass each with its label: "
            f"{_format_call(folder, select_user_input(records))}"
        )


def _match_to_records(folder: Path, records: Sequence[ModelRecord], specs: Sequence[ModelSpec]) -> dict[int, ModelSpec]:
    """Match given models to those of a run: by string or label, else by the string without its settings."""
    matched: dict[int, ModelSpec] = {}
    unmatched = list(specs)
    keys: tuple[Callable[[str], str], ...] = (str, lambda text: text.partition("?")[0])
    for key in keys:
        for spec in tuple(unmatched):
            wanted = key(spec.name or spec.text)
            candidates = (i for i, r in enumerate(records) if i not in matched and wanted in (key(r.text), r.name))
            index = next(candidates, None)
            if index is not None:
                matched[index] = spec
                unmatched.remove(spec)
    if unmatched:
        known = ", ".join(repr(record.name) for record in records)
        raise UsageError(
            f"{folder}: the run has no model {unmatched[0].name or unmatched[0].text!r}; its models: {known}"
        )
    return matched


def requires_user_input(text: str) -> bool:
    """Return whether a model is never taken from a run folder, because it is an object or needs consent."""
    return text.startswith(OBJECT_PREFIX) or bool(get_required_consents(text))


def select_user_input(records: Sequence[ModelRecord]) -> list[ModelRecord]:
    """Select the models of a run that the user must give again."""
    return [record for record in records if requires_user_input(record.text)]


def _check_consent(folder: Path, records: Sequence[ModelRecord]) -> None:
    """Raise UsageError if the user did not give a model that requires it. Nothing is opened or imported before."""
    missing = select_user_input(records)
    if any(record.text.startswith(OBJECT_PREFIX) for record in missing):
        raise UsageError(
            f"{folder}: the run has models that are Python objects, which a folder cannot store; pass them again: "
            f"{_format_call(folder, missing)}"
        )
    if missing:
        raise UsageError(f"{folder}: {_format_refusal(folder, [parse_model(record.text) for record in missing])}")


def _format_refusal(folder: Path, models: Sequence[ModelName]) -> str:
    """Format what the models would do and the command that allows it, unless it has control characters."""
    effects = "; ".join(f"{model.head!r} would {' and '.join(get_required_consents(model))}" for model in models)
    command = _format_command(folder, [model.text for model in models])
    if not f"{effects}{command}".isprintable():
        return "a model of the run has a name with unprintable characters; start a new run"
    return f"{effects}. This is never taken from a run folder. To allow it, give the model again: {command}"


def refuse_folder(folder: Path, setting: str, value: str, specs: Sequence[ModelSpec]) -> NoReturn:
    """Refuse to write to an output folder that only the run folder names, and suggest the command that allows it.

    Parameters
    ----------
    folder : Path
        The run folder.
    setting, value : str
        Setting that names the output folder.
    specs : sequence of ModelSpec
        Models of the run; the command repeats those that the user gave.
    """
    given = [
        spec.model
        for spec in specs
        if isinstance(spec.model, str) and (spec.model != spec.text or get_required_consents(spec.text))
    ]
    command = f"{_format_command(folder, given)} --{setting} {shlex.quote(value)}"
    if not command.isprintable():
        raise UsageError(f"{folder}: the {setting} folder of the run has unprintable characters; start a new run")
    raise UsageError(
        f"{folder}: the run would write {setting} to {value!r}. This is never taken from a run folder. To allow "
        f"it, give the {setting} folder again: {command}"
    )


def _format_command(folder: Path, models: Sequence[str]) -> str:
    return " ".join(["biassay resume", shlex.quote(str(folder)), *(f"--model {shlex.quote(text)}" for text in models)])


def _format_call(folder: Path, records: Sequence[ModelRecord]) -> str:
    models = ", ".join(f"{r.name!r}: {'...' if r.text.startswith(OBJECT_PREFIX) else repr(r.text)}" for r in records)
    return f"biassay.resume({str(folder)!r}, models={{{models}}})"


@contextmanager
def resume_hint(folder: Path, specs: Sequence[ModelSpec], records: Sequence[ModelRecord]) -> Iterator[None]:
    """Append a hint to an error: how to resume a run whose models are objects.

    Parameters
    ----------
    folder : Path
        The run folder.
    specs : sequence of ModelSpec
    records : sequence of ModelRecord
        The same models, as in the manifest.
    """
    try:
        yield
    except BaseException as error:
        if any(not isinstance(spec.model, str) for spec in specs) and (folder / MANIFEST_JSON).exists():
            error.add_note(f"resume with: {_format_call(folder, select_user_input(records))}")
        raise


def check_unchanged(folder: Path, records: Sequence[ModelRecord], new_records: Sequence[ModelRecord]) -> None:
    """Raise UsageError if a model of a resumed run has other weights or settings. Failed models are not compared.

    Parameters
    ----------
    folder : Path
        The run folder.
    records, new_records : sequence of ModelRecord
        Models in the manifest, and as opened now.
    """
    for old, new in zip(records, new_records, strict=True):
        if old.failed is not None or new.failed is not None:
            continue
        if (old.backend, old.revision, old.settings) != (new.backend, new.revision, new.settings):
            raise UsageError(f"{folder}: the model {old.text!r} has changed since the run began; start a new run")


Stage = Literal["opening", "fetching", "measuring"]
_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}


def is_model_error(error: Exception, specs: Sequence[ModelSpec], index: int, stage: Stage) -> bool:
    """Return whether an error concerns one model of several, so that the run continues with the others.

    Errors of the request, disk, storage, budget or a user's own object stop the run.

    Parameters
    ----------
    error : Exception
    specs : sequence of ModelSpec
        All models of the run.
    index : int
        Index of the model.
    stage : {"opening", "fetching", "measuring"}
        While models are opened, a wrong request stops the run, because nothing has begun. While a model is measured,
        no model library is at work, so that an unexpected exception is a bug.
    """
    if len(specs) < 2 or not isinstance(specs[index].model, str) or isinstance(error, BudgetError | StorageError):
        return False
    if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
        return False
    if stage == "measuring" and not isinstance(error, BiassayError | OSError):
        return False
    return stage == "fetching" or not isinstance(error, UsageError) or isinstance(error, ModelError | VectorError)


def format_error(error: Exception) -> str:
    """Format the reason why a model failed on one line, with the type of an unexpected exception."""
    if isinstance(error, BiassayError | OSError):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else 'no message'}; run this model alone to see the traceback"


@dataclass(frozen=True, eq=False)
class OpenedModel:
    """A model of a run.

    Attributes
    ----------
    spec : ModelSpec
    opened : dict
        The model as opened for every capability that the study needs.
    identity : Identity
        Identity that results show.
    label : str
        Name that is unique within the run.
    failed : str or None
        Reason why it could not be opened.
    erasure : Erasure or None
        Concept to erase from its vectors. `opened` then holds the model itself, whose outputs are cached.
    """

    spec: ModelSpec
    opened: dict[Capability, Any]
    identity: Identity
    label: str
    failed: str | None = None
    erasure: Erasure | None = None

    @property
    def record(self) -> ModelRecord:
        """Record of the model in the manifest."""
        return dataclasses.replace(make_model_record(self.spec.text, self.identity), failed=self.failed)

    @property
    def is_remote(self) -> bool:
        """Whether an endpoint serves the model, so that requests are sent from this process."""
        return bool(self.identity.destination) or any(
            isinstance(model, StreamingModel) for model in self.opened.values()
        )

    @property
    def cache_keys(self) -> frozenset[str]:
        """Keys under which its outputs are cached."""
        return frozenset(model.identity.key for model in self.opened.values() if model.identity.key is not None)

    @property
    def slug(self) -> str:
        """Name for a folder of the model."""
        return re.sub(r"[^\w.=-]+", "-", self.spec.text).strip("-")

    def find_method(self, name: str) -> Any:
        """Return an optional attribute of the first opened model that has it, or None."""
        return getattr(self.first_with(name), name, None)

    def first_with(self, name: str) -> Any:
        """Return the first opened model that has an optional attribute, or None."""
        return next((model for model in self.opened.values() if getattr(model, name, None) is not None), None)

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of the model, as studies see them."""
        encoder, filler = self.opened.get("texts"), self.opened.get("blanks")
        return Capabilities(
            kind=self.find_method("kind"),
            has_mask=bool(getattr(filler, "has_mask", False)),
            has_output_layer=bool(getattr(filler, "has_output_layer", True)),
            has_vocabulary=isinstance(encoder, HasVocabulary),
            folds_case=bool(self.find_method("folds_case")),
            oov_hint=self.identity.oov_hint,
            representations=() if encoder is None else list_representations(encoder),
            default_representation="" if encoder is None else default_representation(encoder).name,
            option_log_p=self.find_method("option_log_p") or "",
            scorer=getattr(encoder, "scorer", ""),
        )


ChooseCapabilities = Callable[[Sequence[Capability]], Sequence[Capability]]


def open_models(
    specs: Sequence[ModelSpec],
    capabilities: Sequence[Capability] | ChooseCapabilities,
    listener: Listener,
    *,
    scorers: bool = False,
) -> tuple[OpenedModel, ...]:
    """Open all models after checking all model strings. Some of several models may fail, but not all.

    Parameters
    ----------
    specs : sequence of ModelSpec
    capabilities : sequence of str, or callable
        Capabilities that the study needs, or a function to them from the capabilities of the backend.
    listener : Listener
    scorers : bool
        If True, models may score texts instead of encoding them.
    """
    parsed = [parse_model(spec.model) if isinstance(spec.model, str) else spec.model for spec in specs]
    records = [_make_unopened_record(spec, model) for spec, model in zip(specs, parsed, strict=True)]
    labels = make_unique_labels(records)
    opened: list[dict[Capability, Any]] = [{} for _ in specs]
    errors: dict[int, Exception] = {}
    for index, (spec, model, label) in enumerate(zip(specs, parsed, labels, strict=True)):
        announce_step(listener, label, "opening the model")
        try:
            opened[index] = {
                capability: _open_for(spec, model, capability, scorers=scorers)
                for capability in (capabilities(_list_capabilities(model)) if callable(capabilities) else capabilities)
            }
        except Exception as error:
            if not is_model_error(error, specs, index, "opening"):
                raise
            listener.notice(f"{label}: cannot be opened: {format_error(error)}")
            errors[index] = error
    if len(errors) == len(specs):
        raise errors[0]
    erased = [_take_erased(models) for models in opened]
    identities = make_unique_identities(
        specs,
        [
            (encoder or next(iter(models.values()))).identity
            if models
            else Identity(record.name, record.backend, None, tuple(record.settings.items()))
            for models, record, encoder in zip(opened, records, erased, strict=True)
        ],
    )
    labels = make_unique_labels([make_model_record(s.text, i) for s, i in zip(specs, identities, strict=True)])
    failed = [format_error(errors[index]) if index in errors else None for index in range(len(specs))]
    erasures = [encoder and encoder.erasure for encoder in erased]
    found = zip(specs, opened, identities, labels, failed, erasures, strict=True)
    return tuple(OpenedModel(*fields) for fields in found)


def _take_erased(opened: dict[Capability, Any]) -> ErasedEncoder | None:
    """Replace an encoder that erases a concept by the model itself, and return it."""
    encoder = opened.get("texts")
    if not isinstance(encoder, ErasedEncoder):
        return None
    opened["texts"] = encoder.base
    return encoder


def _make_unopened_record(spec: ModelSpec, model: object) -> ModelRecord:
    if isinstance(model, ModelName):
        return ModelRecord(spec.text, spec.name or model.head, model.backend, None, dict(model.settings))
    return ModelRecord(spec.text, spec.name or spec.text, spec.text.partition(":")[0], None, {})


def _list_capabilities(model: object) -> tuple[Capability, ...]:
    return get_capabilities(model.text) if isinstance(model, ModelName) else ("texts",)


def _open_for(spec: ModelSpec, model: object, capability: Capability, *, scorers: bool) -> Any:
    if isinstance(model, ModelName) or capability == "texts":
        opened = open_model(model, capability) if isinstance(model, ModelName) else wrap_object(model, spec.text)
        if not scorers:
            refuse_scorer(opened)
        return opened
    raise UsageError(
        f"{spec.text}: a Python object can only encode texts; for {capability}, name a model by a string such as "
        f"hf:NAME instead of {type(model).__name__}"
    )
