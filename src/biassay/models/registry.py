"""From a model string to a model. A new family is one file beside this one, and one line in the table.

Other packages add families by entry points of the group ``biassay.models``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, overload
from urllib.parse import parse_qsl

from biassay.errors import MissingExtraError, UnknownNameError, UsageError, nearest_names
from biassay.models.family import Ability, Family, ModelName
from biassay.plugins import load_plugins, refuse_clash

if TYPE_CHECKING:
    from biassay.models.answering import Answerer, LikelihoodModel
    from biassay.models.base import BlankFiller, Encoder, WordEncoder

__all__ = [
    "GROUP",
    "abilities_of",
    "consent_for",
    "families",
    "open_as",
    "open_encoder",
    "packages_of",
    "parse_model",
    "published_as",
    "splits",
]

GROUP = "biassay.models"
_BUILTIN = {
    "use": "biassay.models.use:FAMILY",
    "glove": "biassay.models.static:GLOVE",
    "vectors": "biassay.models.static:VECTORS",
    "hf": "biassay.models.hf:FAMILY",
    "st": "biassay.models.st:FAMILY",
    "elmo": "biassay.models.elmo:FAMILY",
    "infersent": "biassay.models.infersent:FAMILY",
    "gensen": "biassay.models.gensen:FAMILY",
    "api": "biassay.models.api:FAMILY",
    "chat": "biassay.models.chat:FAMILY",
    "completions": "biassay.models.completions:FAMILY",
    "python": "biassay.models.python:FAMILY",
}
_WHAT = {
    "texts": "encode texts",
    "words": "encode words in their contexts",
    "blanks": "fill blanks",
    "replies": "answer prompts",
    "likelihoods": "give likelihoods of texts",
}
_SETTING = re.compile(r"[A-Za-z_]{1,24}")  # what may be shown of a wrong setting: keys are longer and have digits
_PATH = re.compile(r"\.{0,2}[/\\]|\.{1,2}$")  # how a path begins that is no name on a hub
_BARE = re.compile(r"[\w.-]+(/[\w.-]+)?(@[\w./-]+)?")  # a name on a hub


def families() -> dict[str, Family]:
    """All families by name, those of other packages last."""
    return {name: _builtin(name) for name in _BUILTIN} | _plugins()


def _builtin(name: str) -> Family:
    module, _, attribute = _BUILTIN[name].partition(":")
    family: Family = getattr(import_module(module), attribute)
    return family


@cache
def _plugins() -> dict[str, Family]:
    return load_plugins(GROUP, _BUILTIN, Family)


def _family(name: str) -> Family | None:
    """One family; a built-in one costs the import of its own file and no other."""
    if name not in _BUILTIN:
        refuse_clash(GROUP, name)
    return _builtin(name) if name in _BUILTIN else _plugins().get(name)


def packages_of(name: str) -> tuple[str, ...]:
    """Distributions whose versions are recorded for a family; what follows a colon in its name says more of a model."""
    family = _family(name.partition(":")[0])
    return () if family is None else family.packages


def published_as(name: str) -> tuple[str, str]:
    """What papers call the one model of a family, and the work to cite for it; empty for a family of many."""
    own = name.partition(":")[0]
    family = _builtin(own) if own in _BUILTIN else _plugins().get(own)
    return ("", "") if family is None else (family.title, family.work)


def abilities_of(model: str) -> tuple[Ability, ...]:
    """What the models of the family that a string names can do."""
    return tuple(_of(parse_model(model)).abilities)


def splits(text: str) -> bool:
    """Can texts of a model be split among workers that each open it?"""
    return _of(parse_model(text)).splits


def parse_model(text: str) -> ModelName:
    """Take a model string apart and check everything that can be checked without opening the model.

    No message repeats what stands behind the question mark: a key pasted there would be shown.
    """
    head, _, query = text.partition("?")
    name, colon, rest = head.partition(":")
    family = _family(name)
    if family is None:
        raise _unknown(head, name)
    if family.takes_name and not rest:
        raise UsageError(f"model {head!r} lacks a name; write {family.form}")
    if colon and not family.takes_name:
        raise UsageError(f"model {head!r}: {name!r} takes no name; write {family.form}")
    return ModelName(text, name, rest, _settings(head, query, family))


def _unknown(head: str, name: str) -> UnknownNameError:
    known = families()
    forms = f"(models: {', '.join(family.form for family in known.values())})"
    bare = [f"{family.name}:{head}" for family in known.values() if family.takes_bare_names]
    if os.path.exists(head):
        near = f"vectors:{head}" if os.path.isfile(head) else f"hf:{head if _PATH.match(head) else f'./{head}'}"
        return UnknownNameError("model", head, [near], forms, like=near)
    if bare and _BARE.fullmatch(head) and not nearest_names(name, known):
        return UnknownNameError("model", head, bare, forms, like=bare[0])
    return UnknownNameError("model", head, known, forms, like=name)


def _settings(head: str, query: str, family: Family) -> dict[str, str]:
    pairs = parse_qsl(query, keep_blank_values=True)
    settings = dict(pairs)
    if len(settings) < len(pairs):
        raise UsageError(f"model {head!r}: a setting is given twice")
    if query and not settings:
        raise UsageError(f"model {head!r}: settings are written ?name=value&name=value")
    for setting in settings:
        if setting not in family.settings:
            shown = setting if _SETTING.fullmatch(setting) else "(not shown)"
            raise UnknownNameError(f"setting of model {head!r}:", shown, family.settings, _allowed(family.settings))
    return settings


def _allowed(settings: Mapping[str, str]) -> str:
    return f"(settings: {', '.join(settings)})" if settings else "(it takes no settings)"


def consent_for(model: str | ModelName) -> tuple[str, ...]:
    """What a model does that only the user may decide: run code, and send texts and keys, at the user's cost."""
    parsed = parse_model(model) if isinstance(model, str) else model
    return _of(parsed).consent(parsed)


@overload
def open_as(model: str | ModelName, ability: Literal["texts"]) -> Encoder: ...
@overload
def open_as(model: str | ModelName, ability: Literal["words"]) -> WordEncoder: ...
@overload
def open_as(model: str | ModelName, ability: Literal["blanks"]) -> BlankFiller: ...
@overload
def open_as(model: str | ModelName, ability: Literal["replies"]) -> Answerer: ...
@overload
def open_as(model: str | ModelName, ability: Literal["likelihoods"]) -> LikelihoodModel: ...
def open_as(model: str | ModelName, ability: Ability) -> Any:
    """The model that a string names, as one that can do what is wanted. Heavy libraries are imported here, not before.

    ``texts`` gives an encoder of texts, ``words`` one of words in their contexts, ``blanks`` one that fills blanks,
    ``replies`` one that answers prompts, ``likelihoods`` one that gives likelihoods of texts.
    """
    parsed = parse_model(model) if isinstance(model, str) else model
    family = _of(parsed)
    provide = getattr(family, ability)
    if provide is None:
        raise UsageError(_unable(parsed, ability))
    if family.missing:  # looked for, not imported: a run that finds all answers kept need not wait for torch to start
        raise _incomplete(parsed, family)
    return provide(parsed)


def _incomplete(model: ModelName, family: Family) -> UsageError:
    if family.extra is not None:
        return MissingExtraError(f"the model {model.head!r}", family.extra)
    return UsageError(f"the model {model.head!r} needs {', '.join(family.missing)}: {family.install}")


def open_encoder(model: str | ModelName) -> Encoder:
    """Open the encoder of texts that a model string names.

    Parameters
    ----------
    model : str
        ``use``, ``glove``, ``vectors:PATH``, ``hf:NAME``, ...: `biassay models` lists all families.

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
    return open_as(model, "texts")


def _of(model: ModelName) -> Family:
    family = _family(model.family)
    assert family is not None  # it was found when the model string was parsed
    return family


def _unable(model: ModelName, ability: Ability) -> str:
    able = {name: family.form for name, family in families().items() if ability in family.abilities}
    same = _of(model).same_as
    hint = f"; open the same model as {same}:{model.name}" if same in able else ""
    return f"model {model.head!r} cannot {_WHAT[ability]}{hint} (models that can: {', '.join(able.values())})"
