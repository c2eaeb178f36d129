"""``python:MODULE:NAME``: the user's own object."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from biassay.errors import MeasurementError, UnknownNameError, UsageError, VectorError
from biassay.models.base import Encoded, Identity
from biassay.models.family import Family, ModelName

__all__ = ["FAMILY", "OBJECT", "PythonEncoder", "provide", "wrap"]

OBJECT = "object:"
"""How the text of a model begins that no string can name."""


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
        raise UnknownNameError(f"name in the module {module_name!r}:", name, vars(module))
    found = getattr(module, name)
    if isinstance(found, type):
        try:
            found = found()
        except TypeError as error:
            raise UsageError(f"model {model.text!r}: the class needs arguments: {error}") from error
    if not callable(getattr(found, "encode", None)):
        raise UsageError(f"model {model.text!r}: the object has no method encode(texts) -> array of shape (texts, d)")
    return PythonEncoder(model, found)


def wrap(found: Any, text: str | None = None) -> PythonEncoder:
    """An encoder of the user's object; ``text`` is its name in results, its class by default."""
    if not callable(getattr(found, "encode", None)):
        raise UsageError(f"a model is a string or an object with encode(texts) -> array, got {type(found).__name__}")
    kind = f"{type(found).__module__}:{type(found).__qualname__}"
    return PythonEncoder(ModelName(text or f"{OBJECT}{kind}", "python", kind, {}), found)


class PythonEncoder:
    """Any object with ``encode(texts) -> array``.

    Its vectors are kept in the store only if it has an attribute ``revision`` that names the state of its weights. Its
    tokens are counted if it has a method ``count_tokens(texts)``.
    """

    batch_size = 256

    def __init__(self, model: ModelName, found: Any) -> None:
        self._text, self._object = model.text, found
        self.count_tokens = getattr(found, "count_tokens", None)
        revision = getattr(found, "revision", None)
        self.identity = Identity(model.text, f"python:{model.name}", None if revision is None else str(revision))

    def prepare(self, texts: Sequence[str]) -> None:
        pass

    def encode(self, texts: Sequence[str]) -> Encoded:
        try:
            returned = self._object.encode(list(texts))
        except Exception as error:
            raise MeasurementError(f"model {self._text!r}: encode() raised {error!r}") from error
        try:
            vectors = np.asarray(returned, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise VectorError(f"model {self._text!r}: encode() did not return an array of numbers: {error}") from error
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise VectorError(
                f"model {self._text!r}: encode() was given {len(texts)} texts and returned an array of shape "
                f"{vectors.shape}; expected ({len(texts)}, d)"
            )
        return Encoded.of(vectors)


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
