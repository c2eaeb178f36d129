"""Find the backend of a model string and open the model.

A new backend is one module in this package and one line in `_BUILTIN`. Other packages add backends by entry points of
the group ``biassay.models``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, overload
from urllib.parse import parse_qsl

from biassay.errors import MissingExtraError, UnknownNameError, UsageError, find_nearest_names
from biassay.models.backend import ERASE, Capability, ModelBackend, ModelName
from biassay.packages import check_unique_name, import_object, load_plugins

if TYPE_CHECKING:
    from biassay.models.base import BlankFiller, Encoder, LikelihoodModel, TextGenerator, WordEncoder
    from biassay.models.erasure import Erasure


GROUP = "biassay.models"
_BUILTIN = {
    "use": "biassay.models.universal_sentence_encoder:BACKEND",
    "glove": "biassay.models.word_vectors:GLOVE",
    "vectors": "biassay.models.word_vectors:VECTORS",
    "hf": "biassay.models.transformers.encoder:BACKEND",
    "st": "biassay.models.sentence_transformers:BACKEND",
    "mteb": "biassay.models.mteb:BACKEND",
    "elmo": "biassay.models.recurrent.elmo:BACKEND",
    "infersent": "biassay.models.recurrent.infersent:BACKEND",
    "gensen": "biassay.models.recurrent.gensen:BACKEND",
    "api": "biassay.models.openai.embeddings:BACKEND",
    "chat": "biassay.models.openai.chat:BACKEND",
    "completions": "biassay.models.openai.completions:BACKEND",
    "python": "biassay.models.python_object:BACKEND",
}
_INTERNAL = {"scores": "biassay.models.logged_scores:BACKEND"}  # represents logged scores; not listed
_CAPABILITY_TEXTS = {
    "texts": "encode texts",
    "words": "encode words in context",
    "blanks": "fill blanks",
    "replies": "reply to prompts",
    "likelihoods": "score texts",
}
_LIST_HINT = "(list models: biassay models)"
_SETTING_NAME = re.compile(r"[A-Za-z_]{1,24}")  # safe to show in errors: API keys are longer and have digits
_PATH = re.compile(r"\.{0,2}[/\\]|\.{1,2}$")  # start of a path that is not a hub name
_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?(@[\w./-]+)?")


def get_backends() -> dict[str, ModelBackend]:
    """Return all backends by name, plugins last."""
    return {name: _load_builtin(name) for name in _BUILTIN} | _load_plugin_backends()


def _load_builtin(name: str) -> ModelBackend:
    backend: ModelBackend = import_object((_BUILTIN | _INTERNAL)[name])
    return backend


@cache
def _load_plugin_backends() -> dict[str, ModelBackend]:
    return load_plugins(GROUP, _BUILTIN, ModelBackend)


def _find_backend(name: str) -> ModelBackend | None:
    """Return a backend or None; a built-in one imports only its own module."""
    if name in _BUILTIN or name in _INTERNAL:
        return _load_builtin(name)
    check_unique_name(GROUP, name)
    return _load_plugin_backends().get(name)


def get_packages(name: str) -> tuple[str, ...]:
    """Return the distributions whose versions a run records for a backend; `name` may be a model string."""
    backend = _find_backend(name.partition(":")[0])
    return () if backend is None else backend.packages


def get_publication(name: str) -> tuple[str, str]:
    """Return title and citation of a backend's published model; empty for a backend with many models."""
    backend = _find_backend(name.partition(":")[0])
    return ("", "") if backend is None else (backend.title, backend.citation)


def get_capabilities(model: str) -> tuple[Capability, ...]:
    """Return the capabilities of a model string's backend."""
    return _get_backend(parse_model(model)).capabilities


def can_split_texts(text: str) -> bool:
    """Return True if texts may be split among workers that each open the model."""
    return _get_backend(parse_model(text)).splittable


def parse_model(text: str) -> ModelName:
    """Parse a model string and check everything that can be checked without opening the model.

    Error messages never repeat the part after the question mark, because a key may have been pasted there.
    """
    head, _, query = text.partition("?")
    name, colon, rest = head.partition(":")
    backend = _find_backend(name)
    if backend is None:
        raise _make_unknown_backend_error(head, name)
    if backend.takes_name and not rest:
        raise UsageError(f"model {head!r} lacks a name; write {backend.syntax}")
    if colon and not backend.takes_name:
        raise UsageError(f"model {head!r}: {name!r} takes no name; write {backend.syntax}")
    settings = _parse_settings(head, query, backend.all_settings)
    if ERASE in settings:
        _parse_erasure(settings[ERASE])
    return ModelName(text, name, rest, settings)


def _parse_erasure(text: str) -> Erasure:
    from biassay.models.erasure import Erasure  # few models need it

    return Erasure.parse(text)


def _make_unknown_backend_error(head: str, name: str) -> UnknownNameError:
    known = get_backends()
    rest = head.removeprefix(name)
    bare = [f"{backend.name}:{head}" for backend in known.values() if backend.takes_bare_names]
    if os.path.exists(head):
        near = f"vectors:{head}" if os.path.isfile(head) else f"hf:{head if _PATH.match(head) else f'./{head}'}"
        return UnknownNameError("model", head, [near], _LIST_HINT, similar_to=near)
    if bare and _HUB_NAME.fullmatch(head) and not find_nearest_names(name, known):
        return UnknownNameError("model", head, bare, _LIST_HINT, similar_to=bare[0])
    if nearest := find_nearest_names(name, known):
        models = [name + (rest if known[name].takes_name else "") for name in nearest]
        return UnknownNameError("model", head, models, _LIST_HINT, similar_to=models[0])
    syntaxes = ", ".join(backend.syntax for backend in known.values())
    return UnknownNameError("model", head, (), f"(models: {syntaxes}) {_LIST_HINT}")


def _parse_settings(head: str, query: str, allowed: Mapping[str, str]) -> dict[str, str]:
    pairs = parse_qsl(query, keep_blank_values=True)
    settings = dict(pairs)
    if len(settings) < len(pairs):
        raise UsageError(f"model {head!r}: a setting is given twice")
    if query and not settings:
        raise UsageError(f"model {head!r}: settings are written ?name=value&name=value")
    for setting in settings:
        if setting not in allowed:
            shown = setting if _SETTING_NAME.fullmatch(setting) else "(not shown)"
            hint = f"(settings: {', '.join(allowed)})" if allowed else "(it takes no settings)"
            raise UnknownNameError(f"setting of model {head!r}:", shown, allowed, hint)
    return settings


def get_required_consents(model: str | ModelName) -> tuple[str, ...]:
    """List the actions on opening a model that need the user's consent, such as running code or sending texts."""
    parsed = parse_model(model) if isinstance(model, str) else model
    return _get_backend(parsed).required_consents(parsed)


@overload
def open_model(model: str | ModelName, capability: Literal["texts"]) -> Encoder: ...
@overload
def open_model(model: str | ModelName, capability: Literal["words"]) -> WordEncoder: ...
@overload
def open_model(model: str | ModelName, capability: Literal["blanks"]) -> BlankFiller: ...
@overload
def open_model(model: str | ModelName, capability: Literal["replies"]) -> TextGenerator: ...
@overload
def open_model(model: str | ModelName, capability: Literal["likelihoods"]) -> LikelihoodModel: ...
def open_model(model: str | ModelName, capability: Capability) -> Any:
    """Open a model for one kind of request; heavy libraries are imported here.

    Parameters
    ----------
    model : str or ModelName
        Model string.
    capability : {"texts", "words", "blanks", "replies", "likelihoods"}
        Capability that the study needs: encode texts, encode words in context, fill blanks, reply to prompts or score
        texts.

    Returns
    -------
    Encoder, WordEncoder, BlankFiller, TextGenerator or LikelihoodModel
        The opened model.
    """
    parsed = parse_model(model) if isinstance(model, str) else model
    backend = _get_backend(parsed)
    if ERASE in parsed.settings:
        return _open_erased(parsed, capability)
    opener = getattr(backend, capability)
    if opener is None:
        raise UsageError(_explain_missing_capability(parsed, capability))
    # Only look for packages: a run whose responses are all cached must not wait for torch.
    if backend.missing and backend.extra is not None:
        raise MissingExtraError(f"the {parsed.label}", backend.extra)
    if backend.missing:
        raise UsageError(f"the {parsed.label} needs {', '.join(backend.missing)}: {backend.install}")
    return opener(parsed)


def _open_erased(model: ModelName, capability: Capability) -> Encoder:
    """Open a model as an encoder whose vectors lack a concept."""
    from biassay.models.erasure import ErasedEncoder

    if capability != "texts":
        raise UsageError(
            f"{model.label}: erase= changes the vectors of texts, and this command needs a model that can "
            f"{_CAPABILITY_TEXTS[capability]}; leave it out"
        )
    base = open_model(model.drop_setting(ERASE), "texts")
    refuse_scorer(base)
    return ErasedEncoder(base, _parse_erasure(model.settings[ERASE]))


def open_encoder(model: str | ModelName) -> Encoder:
    """Open a model as a text encoder.

    Parameters
    ----------
    model : str
        ``use``, ``glove``, ``vectors:PATH``, ``hf:NAME``, ...; `biassay models` lists all backends.

    Returns
    -------
    Encoder
        With ``prepare(texts)``, which loads the weights, and ``encode(texts)``, which returns vectors.

    Examples
    --------
    >>> import biassay
    >>> encoder = biassay.open_encoder("glove")
    >>> encoder.prepare(["rose", "the red rose"])
    >>> encoder.encode(["rose", "the red rose"]).vectors.shape
    (2, 100)
    """
    encoder = open_model(model, "texts")
    refuse_scorer(encoder)
    return encoder


def refuse_scorer(opened: Any) -> None:
    """Raise UsageError if an opened model is a scorer."""
    if getattr(opened, "scorer", ""):
        raise UsageError(
            f"model {opened.identity.name!r} returns scores, not vectors, so words cannot be compared; audit it "
            "with `biassay audit`, or give an object with encode(texts) -> array"
        )


def _get_backend(model: ModelName) -> ModelBackend:
    backend = _find_backend(model.backend)
    assert backend is not None  # parsing the model string has found it
    return backend


def _explain_missing_capability(model: ModelName, capability: Capability) -> str:
    capable = {name: backend.syntax for name, backend in get_backends().items() if capability in backend.capabilities}
    alias = _get_backend(model).alias_of
    hint = f"; open the same model as {alias}:{model.name}" if alias in capable else ""
    models = ", ".join(capable.values())
    return f"{model.label} cannot {_CAPABILITY_TEXTS[capability]}{hint} (models that can: {models})"
