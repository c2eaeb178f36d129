"""From a model string to an encoder. A new family is one line in the table and one file beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from urllib.parse import parse_qsl

from biassay.encoders.base import Encoder
from biassay.errors import UnknownNameError, UsageError

__all__ = ["FAMILIES", "Family", "ModelName", "open_encoder", "parse_model"]


@dataclass(frozen=True)
class Family:
    """How a kind of model is named, what it needs, and where its provider is."""

    form: str
    about: str
    provider: str
    settings: tuple[str, ...] = ()
    extra: str | None = None

    @property
    def takes_name(self) -> bool:
        return ":" in self.form


FAMILIES: Mapping[str, Family] = {
    "use": Family(
        "use", "Universal Sentence Encoder, multilingual v3 (the default)", "biassay.encoders.use:provide", extra="use"
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
        ("pool", "layer", "join", "dtype", "device", "trust_remote_code"),
        extra="hf",
    ),
    "st": Family(
        "st:NAME[@REVISION]",
        "any sentence-transformers model, by name or folder",
        "biassay.encoders.st:provide",
        ("device", "dtype", "trust_remote_code"),
        extra="st",
    ),
    "elmo": Family(
        "elmo:DIR",
        "ELMo from options.json and weights.hdf5",
        "biassay.encoders.elmo:provide",
        ("pool", "layers", "device"),
        extra="elmo",
    ),
    "infersent": Family(
        "infersent:DIR",
        "InferSent V1 or V2 from its checkpoint and word vectors",
        "biassay.encoders.infersent:provide",
        ("version", "device"),
        extra="infersent",
    ),
    "gensen": Family(
        "gensen:DIR[+DIR]",
        "GenSen, one model or two side by side",
        "biassay.encoders.gensen:provide",
        ("pool", "expand", "lower", "device"),
        extra="gensen",
    ),
    "api": Family(
        "api:MODEL",
        "any OpenAI-compatible embeddings endpoint",
        "biassay.encoders.api:provide",
        ("base_url", "key_env", "batch", "concurrency", "retries", "timeout", "dimensions"),
        extra="api",
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


def parse_model(text: str) -> ModelName:
    """Take a model string apart and check everything that can be checked without opening the model."""
    head, _, query = text.partition("?")
    family, colon, name = head.partition(":")
    if family not in FAMILIES:
        forms = ", ".join(f.form for f in FAMILIES.values())
        raise UnknownNameError("model", text, FAMILIES, f"(models: {forms})", like=family)
    known = FAMILIES[family]
    if known.takes_name and not name:
        raise UsageError(f"model {text!r} lacks a name; write {known.form}")
    if colon and not known.takes_name:
        raise UsageError(f"model {text!r}: {family!r} takes no name; write {known.form}")
    pairs = parse_qsl(query, keep_blank_values=True)
    settings = dict(pairs)
    if len(settings) < len(pairs):
        raise UsageError(f"model {text!r}: a setting is given twice")
    if query and not settings:
        raise UsageError(f"model {text!r}: settings are written ?name=value&name=value, got {query!r}")
    for setting in settings:
        if setting not in known.settings:
            raise UnknownNameError(f"setting of model {text!r}:", setting, known.settings, _allowed(known))
    return ModelName(text, family, name, settings)


def _allowed(family: Family) -> str:
    return f"(settings: {', '.join(family.settings)})" if family.settings else "(it takes no settings)"


def open_encoder(model: str | ModelName) -> Encoder:
    """The encoder a model string names. Heavy libraries are imported here and not before."""
    parsed = parse_model(model) if isinstance(model, str) else model
    module, _, function = FAMILIES[parsed.family].provider.partition(":")
    provide: Callable[[ModelName], Encoder] = getattr(import_module(module), function)
    return provide(parsed)
