"""Encode texts with a Python object (`python:MODULE:NAME`)."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from biassay.errors import MeasurementError, UnknownNameError, UsageError, VectorError
from biassay.models.backend import ModelBackend, ModelName
from biassay.models.base import Identity, TextEmbeddings

__all__ = ["BACKEND", "OBJECT_PREFIX", "PythonEncoder", "open_text_encoder", "wrap_object"]

OBJECT_PREFIX = "object:"
"""Prefix of the name of a model that was passed as an object."""
_MAX_NAMES = 5
_SOURCE_DIGESTS: WeakKeyDictionary[type, str] = WeakKeyDictionary()  # read once, before a source file can change


def open_text_encoder(model: ModelName) -> PythonEncoder:
    """Open ``python:MODULE:NAME``: an object, or a class that is called without arguments."""
    module_name, _, name = model.name.partition(":")
    if not module_name or not name:
        raise UsageError(f"model {model.text!r}: write python:MODULE:NAME")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)  # as `python -m` does
    try:
        module = import_module(module_name)
    except Exception as error:  # user code may raise anything
        raise UsageError(f"model {model.text!r}: the module {module_name!r} cannot be imported: {error!r}") from error
    if not hasattr(module, name):
        raise UnknownNameError(f"name in the module {module_name!r}:", name, *_suggest_names(module))
    encoder = getattr(module, name)
    if isinstance(encoder, type):
        try:
            encoder = encoder()
        except TypeError as error:
            raise UsageError(f"model {model.text!r}: the class needs arguments: {error}") from error
    if not callable(getattr(encoder, "encode", None)):
        raise UsageError(f"model {model.text!r}: the object has no method encode(texts) -> array of shape (texts, d)")
    return PythonEncoder(model, encoder, module)


def _suggest_names(module: ModuleType) -> tuple[list[str], str]:
    """Return the names of a module's encoders, and a hint that lists some of them."""
    public = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    models = [name for name, value in public.items() if _is_model(value)]
    if not models:
        return [], "(the module has no object with a method encode(texts))"
    more = f" and {len(models) - _MAX_NAMES} more" if len(models) > _MAX_NAMES else ""
    return models, f"(objects with a method encode: {', '.join(models[:_MAX_NAMES])}{more})"


def _is_model(value: object) -> bool:
    """Return True if a value has a method `encode` and is not a string, whose `encode` is another one."""
    is_string = issubclass(value, str) if isinstance(value, type) else isinstance(value, str)
    return not is_string and callable(getattr(value, "encode", None))


def wrap_object(encoder: Any, text: str | None = None) -> PythonEncoder:
    """Wrap a user's object; `text` is its name in results, by default its class."""
    if not callable(getattr(encoder, "encode", None)):
        raise UsageError(f"a model is a string or an object with encode(texts) -> array, got {type(encoder).__name__}")
    class_name = f"{type(encoder).__module__}:{type(encoder).__qualname__}"
    return PythonEncoder(ModelName(text or f"{OBJECT_PREFIX}{class_name}", "python", class_name, {}), encoder)


class PythonEncoder:
    """Encode texts with any object that has ``encode(texts) -> array``.

    A text whose row is None or all NaN is out of vocabulary. Vectors are cached only if the object has an attribute
    ``revision`` that names its weights; the source files of its module and class are then part of the identity. Tokens
    are counted if the object has a method ``count_tokens(texts)``.
    """

    batch_size = 256

    def __init__(self, model: ModelName, encoder: Any, module: ModuleType | None = None) -> None:
        self._text, self._encoder = model.text, encoder
        self.count_tokens = getattr(encoder, "count_tokens", None)
        revision = getattr(encoder, "revision", None)
        if revision is not None:
            source = _hash_source(type(encoder), module)
            revision = f"{revision}, source {source}" if source else str(revision)
        self.identity = Identity(model.text, f"python:{model.name}", revision)

    def prepare(self, texts: Sequence[str]) -> None:
        """Do nothing: the object was loaded by the user."""

    def encode(self, texts: Sequence[str]) -> TextEmbeddings:
        """Call the object and check what it returns."""
        try:
            returned = self._encoder.encode(list(texts))
        except Exception as error:
            raise MeasurementError(f"model {self._text!r}: encode() raised {error!r}") from error
        try:
            vectors = _to_array(returned)
        except (TypeError, ValueError) as error:
            raise VectorError(f"model {self._text!r}: encode() did not return an array of numbers: {error}") from error
        empty = vectors.ndim == 2 and not vectors.shape[1] and any(row is not None for row in returned)
        if vectors.ndim != 2 or len(vectors) != len(texts) or empty:
            raise VectorError(
                f"model {self._text!r}: encode() returned an array of shape {vectors.shape} for {len(texts)} texts; "
                f"expected ({len(texts)}, d)"
            )
        unknown = np.asarray(np.isnan(vectors).all(axis=1))
        zero = ~unknown & ~vectors.any(axis=1)
        if zero.any():
            raise MeasurementError(
                f"model {self._text!r}: encode() returned a zero vector for {texts[int(zero.argmax())]!r}, which "
                "has no direction; if the word is out of vocabulary, return None or a row of NaN"
            )
        vectors[unknown] = 0.0
        spans = [((0, len(text)),) if missing else () for text, missing in zip(texts, unknown.tolist(), strict=True)]
        return TextEmbeddings.from_vectors(vectors, spans)


def _to_array(returned: Any) -> NDArray[np.float32]:
    """Copy vectors into an array; a row of None becomes NaN, and without any vector there are no columns."""
    if not isinstance(returned, list | tuple) or all(row is not None for row in returned):
        return np.array(returned, dtype=np.float32)
    known = np.array([row for row in returned if row is not None], dtype=np.float32)
    if known.size and known.ndim != 2:
        return known
    vectors = np.full((len(returned), known.shape[1] if known.size else 0), np.nan, dtype=np.float32)
    vectors[[row is not None for row in returned]] = known.reshape(-1, vectors.shape[1]) if known.size else 0.0
    return vectors


def _hash_source(kind: type, module: ModuleType | None) -> str:
    """Hash the source files of an encoder's class and of the module that names it; return "" if there are none.

    A script or notebook (`__main__`) does not count, because it changes between a run and its continuation.
    """
    if kind not in _SOURCE_DIGESTS:
        modules = (module, sys.modules.get(kind.__module__))
        names = dict.fromkeys(module.__name__ for module in modules if module is not None)
        files = [getattr(sys.modules.get(name), "__file__", None) for name in names if name != "__main__"]
        contents = [Path(file).read_bytes() for file in files if file is not None and Path(file).is_file()]
        digests = [hashlib.sha256(content).hexdigest() for content in contents]
        _SOURCE_DIGESTS[kind] = hashlib.sha256("".join(digests).encode()).hexdigest()[:16] if digests else ""
    return _SOURCE_DIGESTS[kind]


BACKEND = ModelBackend(
    name="python",
    syntax="python:MODULE:NAME",
    description="your own object with encode(texts) -> array",
    texts=open_text_encoder,
    splittable=False,  # the object may not allow several instances
    required_consents=lambda model: (f"run the Python code {model.name}",),
    selftest=lambda _: nullcontext("python:biassay.models.selftest:VowelEncoder"),
)
