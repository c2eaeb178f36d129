"""Encode or score texts with a Python object (`python:MODULE:NAME`)."""

from __future__ import annotations

import hashlib
import inspect
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

from biassay.errors import MeasurementError, UnknownNameError, UsageError, VectorError, format_examples
from biassay.models.backend import ModelBackend, ModelName
from biassay.models.base import Identity, TextEmbeddings, split_score, split_text_pair

OBJECT_PREFIX = "object:"
"""Prefix of the name of a model that was passed as an object."""
_MAX_NAMES = 5
_N_CHECKED = 8  # texts that are scored twice
_MAX_SHOWN = 80  # characters of a text in an error
# By class or function and module; read once, before a source file can change.
_SOURCE_DIGESTS: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()


def open_text_encoder(model: ModelName) -> PythonEncoder | PythonScorer:
    """Open ``python:MODULE:NAME``: an object, a class that is called without arguments, or a function."""
    module_name, _, name = model.name.partition(":")
    if not module_name or not name:
        raise UsageError(f"model {model.text!r}: write python:MODULE:NAME")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)  # as `python -m` does
    try:
        module = import_module(module_name)
    except Exception as error:  # user code may raise anything
        is_missing = isinstance(error, ModuleNotFoundError) and error.name == module_name
        hint = f"; run biassay in the folder of {module_name}.py" if is_missing else ""
        raise UsageError(
            f"model {model.text!r}: the module {module_name!r} cannot be imported: {error!r}{hint}"
        ) from error
    if not hasattr(module, name):
        raise UnknownNameError(f"name in the module {module_name!r}:", name, *_suggest_names(module))
    encoder = getattr(module, name)
    if isinstance(encoder, type):
        try:
            encoder = encoder()
        except TypeError as error:
            raise UsageError(f"model {model.text!r}: the class needs arguments: {error}") from error
    if callable(getattr(encoder, "encode", None)):
        return PythonEncoder(model, encoder, module)
    if not callable(encoder):
        raise UsageError(
            f"model {model.text!r}: the object has no method encode(texts) -> array of shape (texts, d), and is no "
            "function score(texts)"
        )
    return PythonScorer(model, encoder, module)


def _suggest_names(module: ModuleType) -> tuple[list[str], str]:
    """Return the names of a module's encoders and of its own functions, and a hint that lists some of them."""
    public = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    encoders = [name for name, value in public.items() if _is_model(value)]
    functions = [n for n, value in public.items() if inspect.isfunction(value) and value.__module__ == module.__name__]
    kinds = {"objects with a method encode": encoders, "functions": functions}
    parts = [f"{kind}: {format_examples(names, _MAX_NAMES)}" for kind, names in kinds.items() if names]
    hint = "; ".join(parts) or "the module has no object with a method encode(texts), and no function score(texts)"
    return encoders + functions, f"({hint})"


def _is_model(value: object) -> bool:
    """Return True if a value has a method `encode` and is not a string, whose `encode` is another one."""
    is_string = issubclass(value, str) if isinstance(value, type) else isinstance(value, str)
    return not is_string and callable(getattr(value, "encode", None))


def wrap_object(model: Any, text: str | None = None) -> PythonEncoder | PythonScorer:
    """Wrap a user's object or function; `text` is its name in results, by default its class or its own name."""
    is_encoder = callable(getattr(model, "encode", None))
    if not is_encoder and not callable(model):
        raise UsageError(f"a model is a string or an object with encode(texts) -> array, got {type(model).__name__}")
    named = model if hasattr(model, "__qualname__") and not is_encoder else type(model)
    name = f"{named.__module__}:{named.__qualname__}"
    parsed = ModelName(text or f"{OBJECT_PREFIX}{name}", "python", name, {})
    return PythonEncoder(parsed, model) if is_encoder else PythonScorer(parsed, model)


class _PythonModel:
    """Model of a user's Python object or function. Its outputs are cached only if it has a ``revision``."""

    batch_size = 256

    def __init__(self, model: ModelName, value: Any, module: ModuleType | None = None) -> None:
        self._text, self._value = model.text, value
        self.count_tokens = getattr(value, "count_tokens", None)
        revision = getattr(value, "revision", None)
        if revision is not None:
            source = _hash_source(value if inspect.isroutine(value) else type(value), module)
            revision = f"{revision}, source {source}" if source else str(revision)
        self.identity = Identity(model.text, f"python:{model.name}", revision)


class PythonEncoder(_PythonModel):
    """Encode texts with any object that has ``encode(texts) -> array``.

    A text whose row is None or all NaN is out of vocabulary. Vectors are cached only if the object has an attribute
    ``revision`` that names its weights; the source files of its module and class are then part of the identity. Tokens
    are counted if the object has a method ``count_tokens(texts)``.
    """

    def prepare(self, texts: Sequence[str]) -> None:
        """Do nothing: the object was loaded by the user."""

    def encode(self, texts: Sequence[str]) -> TextEmbeddings:
        """Call the object and check its result."""
        try:
            returned = self._value.encode(list(texts))
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


class PythonScorer(_PythonModel):
    """Score texts with any function ``score(texts)`` or ``score(queries, documents)`` that returns one number each.

    A text of `score(queries, documents)` is a query and a document, see `join_text_pair`. Scores are cached only if the
    function has an attribute ``revision``.

    Attributes
    ----------
    scorer : {"texts", "pairs"}
        Arguments of the function.
    """

    def __init__(self, model: ModelName, value: Any, module: ModuleType | None = None) -> None:
        super().__init__(model, value, module)
        self.scorer = "pairs" if _count_required_parameters(value) == 2 else "texts"

    def prepare(self, texts: Sequence[str]) -> None:
        """Score a few texts twice, the second time in another batch; raise MeasurementError if a score changes."""
        sample = list(texts[:_N_CHECKED])
        first, second = self._call(sample), self._call(sample[: (len(sample) + 1) // 2])
        for text, one, other in zip(sample, first, second, strict=False):
            if not np.isclose(one, other, rtol=1e-3, atol=1e-5):
                raise MeasurementError(
                    f"model {self._text!r}: score() returned {one:.6g} and then, in a smaller batch, {other:.6g} for "
                    f"{text[:_MAX_SHOWN]!r}; the score of a text must not change between calls or with the other texts "
                    "of a batch: average random scores, or set their seed, inside the function"
                )

    def encode(self, texts: Sequence[str]) -> TextEmbeddings:
        """Return scores as vectors, see `split_score`."""
        return TextEmbeddings.from_vectors(split_score(self._call(list(texts))))

    def _call(self, texts: list[str]) -> NDArray[np.float64]:
        arguments = (
            [texts] if self.scorer == "texts" else list(map(list, zip(*map(split_text_pair, texts), strict=True)))
        )
        try:
            returned = self._value(*arguments)
        except Exception as error:
            raise MeasurementError(f"model {self._text!r}: score() raised {error!r}") from error
        try:
            scores = np.asarray(returned, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise MeasurementError(
                f"model {self._text!r}: score() did not return numbers: {error}; return one number per text"
            ) from error
        if scores.shape == (len(texts), 1):
            scores = scores[:, 0]
        if scores.shape != (len(texts),):
            raise MeasurementError(
                f"model {self._text!r}: score() returned an array of shape {scores.shape} for {len(texts)} texts; "
                "return one number per text"
            )
        if not np.isfinite(scores).all():
            wrong = int(np.argmin(np.isfinite(scores)))
            raise MeasurementError(
                f"model {self._text!r}: score() returned {scores[wrong]} for {texts[wrong][:_MAX_SHOWN]!r}; return "
                "a finite number for every text"
            )
        return scores


def _count_required_parameters(function: Any) -> int:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a function of a C library
        return 1
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(parameter.default is parameter.empty and parameter.kind in kinds for parameter in parameters)


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


def _hash_source(owner: Any, module: ModuleType | None) -> str:
    """Hash the source files of a class or function and of the module that names it; return "" if there are none.

    A script or notebook (`__main__`) does not count, because it changes between a run and its continuation.
    """
    by_module, named_in = _SOURCE_DIGESTS.setdefault(owner, {}), "" if module is None else module.__name__
    if named_in not in by_module:
        names = dict.fromkeys((named_in, owner.__module__))
        files = [getattr(sys.modules.get(name), "__file__", None) for name in names if name != "__main__"]
        contents = [Path(file).read_bytes() for file in files if file is not None and Path(file).is_file()]
        digests = [hashlib.sha256(content).hexdigest() for content in contents]
        by_module[named_in] = hashlib.sha256("".join(digests).encode()).hexdigest()[:16] if digests else ""
    return by_module[named_in]


BACKEND = ModelBackend(
    name="python",
    syntax="python:MODULE:NAME",
    description="your object with encode(texts)",
    texts=open_text_encoder,
    splittable=False,  # the object may not allow several instances
    required_consents=lambda model: (f"run the Python code {model.name}",),
    selftest=lambda _: nullcontext("python:biassay.models.selftest:VowelEncoder"),
)
