"""Kinds of answers as a store keeps them: how a request is known, and how answers become arrays and come back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from biassay.models.base import COLUMNS, Encoded, Filled
from biassay.texts.requests import Blank

__all__ = ["BLANKS", "TEXTS", "Codec"]

Request_contra = TypeVar("Request_contra", contravariant=True)
Answers = TypeVar("Answers")
Arrays = Mapping[str, NDArray[Any]]


class Codec(Protocol[Request_contra, Answers]):
    """One kind of request and the answers to it."""

    def key(self, request: Request_contra) -> str:
        """Equal for equal requests only."""

    def pack(self, answers: Answers) -> Arrays:
        """The answers of a batch."""

    def unpack(self, arrays: Arrays, rows: NDArray[np.intp]) -> Answers:
        """Some answers of a batch, in the order asked for."""

    def join(self, parts: Sequence[Answers], order: NDArray[np.intp]) -> Answers:
        """Answers one part behind the other, then put in order."""


class _Texts:
    """Vectors of texts, what was unknown of each, and where it was cut."""

    def key(self, request: str) -> str:
        return request

    def pack(self, answers: Encoded) -> Arrays:
        notes = json.dumps(list(zip(answers.unknown, answers.cut, strict=True))).encode()
        return {"vectors": answers.vectors, "notes": np.frombuffer(notes, dtype=np.uint8)}

    def unpack(self, arrays: Arrays, rows: NDArray[np.intp]) -> Encoded:
        notes = json.loads(arrays["notes"].tobytes())
        chosen = [notes[row] for row in rows.tolist()]
        unknown = [tuple((start, end) for start, end in spans) for spans, _ in chosen]
        return Encoded.of(arrays["vectors"][rows], unknown, [cut for _, cut in chosen])

    def join(self, parts: Sequence[Encoded], order: NDArray[np.intp]) -> Encoded:
        if not parts:
            return Encoded.of(np.empty((0, 0), dtype=np.float32))
        vectors = np.concatenate([part.vectors for part in parts])[order]
        unknown, cut = [one for part in parts for one in part.unknown], [one for part in parts for one in part.cut]
        return Encoded.of(vectors, [unknown[i] for i in order.tolist()], [cut[i] for i in order.tolist()])


class _Blanks:
    """Blanks with all their words, one behind the other; ``counts`` says how many words and pieces each has."""

    def key(self, request: Blank) -> str:
        return request.key

    def pack(self, answers: Sequence[Filled]) -> Arrays:
        counts = [(len(one.lengths), len(one.pieces), one.unknown, one.passes) for one in answers]
        columns = [one.columns.reshape(-1, len(COLUMNS)) for one in answers]
        return {
            "counts": np.array(counts, dtype=np.int32).reshape(-1, 4),
            "lengths": np.concatenate([one.lengths for one in answers]).astype(np.int32),
            "pieces": np.concatenate([one.pieces for one in answers]).astype(np.int32),
            "columns": np.concatenate(columns).astype(np.float32),
        }

    def unpack(self, arrays: Arrays, rows: NDArray[np.intp]) -> list[Filled]:
        counts, lengths, pieces, columns = (arrays[name] for name in ("counts", "lengths", "pieces", "columns"))
        ends = np.cumsum(counts[:, :2], axis=0)
        found = []
        for row in rows.tolist():
            words, parts, unknown, passes = counts[row].tolist()
            word, part = ends[row].tolist()
            own = slice(part - parts, part)
            found.append(Filled(lengths[word - words : word], pieces[own], columns[own], unknown, passes))
        return found

    def join(self, parts: Sequence[Sequence[Filled]], order: NDArray[np.intp]) -> list[Filled]:
        everything = [one for part in parts for one in part]
        return [everything[i] for i in order.tolist()]


TEXTS: Codec[str, Encoded] = _Texts()
BLANKS: Codec[Blank, Sequence[Filled]] = _Blanks()
