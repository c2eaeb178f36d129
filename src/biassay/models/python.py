"""``python:MODULE:NAME``: the user's own object."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from biassay.errors import MeasurementError, UnknownNameError, UsageError, VectorError
from biassay.models.base import Encoded, Identity
from biassay.models.family import Family, ModelName

__all__ = ["FAMILY", "OBJECT", "PythonEncoder", "provide", "wrap"]

OBJECT = "object:"
"""How the text of a model begins that no string can name."""
_NAMED = 5
_SOURCES: WeakKeyDictionary[type, str] = WeakKeyDictionary()  # digests, read before a file can change under a class


def provide(model: ModelName) -> PythonEncoder:
    module_name, _, name = model.name.partition(":")
    if not module_name or not name:
        raise UsageError(f"model {model.text!r}: write python:MODULE:NAME")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # a module beside the user, as `python -m` finds it
    try:
        module = import_module(module_name)
    except Exception as error:  # whatever the user's module does while it is imported
        raise UsageError(f"model {model.text!r}: the module {module_name!r} cannot be imported: {error!r}") from error
    if not hasattr(module, name):
        raise UnknownNameError(f"name in the module {module_name!r}:", name, *_suggestions(module))
    found = getattr(module, name)
    if isinstance(found, type):
        try:
            found = found()
        except TypeError as error:
            raise UsageError(f"model {model.text!r}: the class needs arguments: {error}") from error
    if not callable(getattr(found, "encode", None)):
        raise UsageError(f"model {model.text!r}: the object has no method encode(texts) -> array of shape (texts, d)")
    return PythonEncoder(model, found, module)


def _suggestions(module: ModuleType) -> tuple[list[str], str]:
    """Return the names of a module's models, and a hint that lists some of them."""
    public = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    models = [name for name, value in public.items() if _is_model(value)]
    if not models:
        return [], "(the module has no object with a method encode(texts))"
    more = f" and {len(models) - _NAMED} more" if len(models) > _NAMED else ""
    return models, f"(objects with a method encode: {', '.join(models[:_NAMED])}{more})"


def _is_model(value: object) -> bool:
    """Has it a method `encode` that takes texts? That of a string does not."""
    text = issubclass(value, str) if isinstance(value, type) else isinstance(value, str)
    return not text and callable(getattr(value, "encode", None))


def wrap(found: Any, text: str | None = None) -> PythonEncoder:
    """An encoder of the user's object; ``text`` is its name in results, its class by default."""
    if not callable(getattr(found, "encode", None)):
        raise UsageError(f"a model is a string or an object with encode(texts) -> array, got {type(found).__name__}")
    kind = f"{type(found).__module__}:{type(found).__qualname__}"
    return PythonEncoder(ModelName(text or f"{OBJECT}{kind}", "python", kind, {}), found)


class PythonEncoder:
    """Any object with ``encode(texts) -> array``.

    A text whose row is None or all NaN is out of vocabulary. Vectors are cached only if the object has an attribute
    ``revision`` that names the state of its weights; the source files of its module and class are part of the identity.
    Tokens are counted if it has a method ``count_tokens(texts)``.
    """

    batch_size = 256

    def __init__(self, model: ModelName, found: Any, module: ModuleType | None = None) -> None:
        self._text, self._object = model.text, found
        self.count_tokens = getattr(found, "count_tokens", None)
        revision = getattr(found, "revision", None)
        if revision is not None:
            source = _source_digest(type(found), module)
            revision = f"{revision}, source {source}" if source else str(revision)
        self.identity = Identity(model.text, f"python:{model.name}", revision)

    def prepare(self, texts: Sequence[str]) -> None:
        pass

    def encode(self, texts: Sequence[str]) -> Encoded:
        try:
            returned = self._object.encode(list(texts))
        except Exception as error:
            raise MeasurementError(f"model {self._text!r}: encode() raised {error!r}") from error
        try:
            vectors = _to_array(returned)
        except (TypeError, ValueError) as error:
            raise VectorError(f"model {self._text!r}: encode() did not return an array of numbers: {error}") from error
        empty = vectors.ndim == 2 and not vectors.shape[1] and any(row is not None for row in returned)
        if vectors.ndim != 2 or len(vectors) != len(texts) or empty:
            raise VectorError(
                f"model {self._text!r}: encode() was given {len(texts)} texts and returned an array of shape "
                f"{vectors.shape}; expected ({len(texts)}, d)"
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
        return Encoded.of(vectors, spans)


def _to_array(returned: Any) -> NDArray[np.float32]:
    """Return vectors as a new array; rows that are None become NaN, and without any vector the array has no columns."""
    if not isinstance(returned, list | tuple) or all(row is not None for row in returned):
        return np.array(returned, dtype=np.float32)
    known = np.array([row for row in returned if row is not None], dtype=np.float32)
    if known.size and known.ndim != 2:
        return known
    vectors = np.full((len(returned), known.shape[1] if known.size else 0), np.nan, dtype=np.float32)
    vectors[[row is not None for row in returned]] = known.reshape(-1, vectors.shape[1]) if known.size else 0.0
    return vectors


def _source_digest(kind: type, module: ModuleType | None) -> str:
    """Return a digest of the source files of a model's class and of the module that names it; empty if there are none.

    A script or notebook (`__main__`) is left out, because it changes between a run and its continuation.
    """
    if kind not in _SOURCES:
        names = dict.fromkeys(one.__name__ for one in (module, sys.modules.get(kind.__module__)) if one is not None)
        files = [getattr(sys.modules.get(name), "__file__", None) for name in names if name != "__main__"]
        contents = [Path(file).read_bytes() for file in files if file is not None and Path(file).is_file()]
        digests = [hashlib.sha256(content).hexdigest() for content in contents]
        _SOURCES[kind] = hashlib.sha256("".join(digests).encode()).hexdigest()[:16] if digests else ""
    return _SOURCES[kind]


def _consent(model: ModelName) -> tuple[str, ...]:
    return (f"run the Python code {model.name}",)


@contextmanager
def _selftest(_: Path) -> Iterator[str]:
    yield "python:biassay.models.tiny:Letters"


FAMILY = Family(
    name="python",
    form="python:MODULE:NAME",
    about="your own object with encode(texts) -> array",
    texts=provide,
    splits=False,  # nobody said that there may be several of it
    consent=_consent,
    selftest=_selftest,
)
