"""Kinds of answers as a store keeps them: how a request is known, and how answers become arrays and come back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from biassay.models.answering import ENDED, Reply, TokenLikelihoods
from biassay.models.base import COLUMNS, Encoded, Filled, Span
from biassay.texts.requests import Blank, Likelihood, Prompt

__all__ = ["BLANKS", "LIKELIHOODS", "RANKS", "REPLIES", "TEXTS", "TOKENS", "Codec"]

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

    def join(self, parts: Iterable[Answers], places: NDArray[np.intp]) -> Answers:
        """The answers of parts that come one after the other, each answer at its place."""


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

    def join(self, parts: Iterable[Encoded], places: NDArray[np.intp]) -> Encoded:
        vectors, at = np.zeros((len(places), 0), dtype=np.float32), 0
        unknown: list[tuple[Span, ...]] = [()] * len(places)
        cut: list[int | None] = [None] * len(places)
        for part in parts:
            dimension = part.vectors.shape[1]  # 0: the batch holds out-of-vocabulary texts only
            if dimension and not vectors.shape[1]:
                vectors = np.zeros((len(places), dimension), dtype=np.float32)
            own = places[at : at + len(part.vectors)]
            if dimension:
                vectors[own] = part.vectors
            for place, spans, end in zip(own.tolist(), part.unknown, part.cut, strict=True):
                unknown[place], cut[place] = spans, end
            at += len(own)
        return Encoded.of(vectors, unknown, cut)


class _Numbers:
    """A number for every text: how many tokens it has, or its place in a vocabulary."""

    def __init__(self, name: str, kind: type[np.number[Any]]) -> None:
        self._name, self._kind = name, kind

    def key(self, request: str) -> str:
        return json.dumps([self._name, request])

    def pack(self, answers: NDArray[Any]) -> Arrays:
        return {self._name: answers}

    def unpack(self, arrays: Arrays, rows: NDArray[np.intp]) -> NDArray[Any]:
        return arrays[self._name][rows]

    def join(self, parts: Iterable[NDArray[Any]], places: NDArray[np.intp]) -> NDArray[Any]:
        found = np.empty(len(places), dtype=self._kind)
        found[places] = np.concatenate([np.empty(0, dtype=self._kind), *parts])
        return found


One = TypeVar("One")


class _Listed(Generic[One]):
    """Answers in a list."""

    def key(self, request: Blank | Prompt | Likelihood) -> str:
        return request.key

    def join(self, parts: Iterable[Sequence[One]], places: NDArray[np.intp]) -> list[One]:
        found: list[Any] = [None] * len(places)
        for place, one in zip(places.tolist(), (one for part in parts for one in part), strict=True):
            found[place] = one
        return found


class _Blanks(_Listed[Filled]):
    """Blanks with all their words, one behind the other; ``counts`` says how many words and pieces each has."""

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


class _Replies(_Listed[Reply]):
    """Texts as UTF-8, one behind the other; ``counts`` says how long each is, in bytes, and how many options it has.

    In ``tokens``, -1 is a number that is not known; so it is in ``ended``, where others are places in `ENDED`.
    """

    def pack(self, answers: Sequence[Reply]) -> Arrays:
        texts = [one.text.encode("utf-8", "surrogatepass") for one in answers]
        counts = [(len(text), len(one.log_p)) for text, one in zip(texts, answers, strict=True)]
        tokens = [[-1 if n is None else n for n in (one.tokens_in, one.tokens_out)] for one in answers]
        return {
            "counts": np.array(counts, dtype=np.int64).reshape(-1, 2),
            "texts": np.frombuffer(b"".join(texts), dtype=np.uint8),
            "ended": np.array([-1 if one.ended is None else ENDED.index(one.ended) for one in answers], dtype=np.int8),
            "tokens": np.array(tokens, dtype=np.int64).reshape(-1, 2),
            "log_p": np.array([number for one in answers for number in one.log_p], dtype=np.float64),
        }

    def unpack(self, arrays: Arrays, rows: NDArray[np.intp]) -> list[Reply]:
        counts, ended, tokens, log_p = (arrays[name] for name in ("counts", "ended", "tokens", "log_p"))
        texts, ends, found = arrays["texts"].tobytes(), np.cumsum(counts, axis=0), []
        for row in rows.tolist():
            (size, options), (text, option) = counts[row].tolist(), ends[row].tolist()
            why, (tokens_in, tokens_out) = int(ended[row]), (None if n < 0 else n for n in tokens[row].tolist())
            found.append(
                Reply(
                    text=texts[text - size : text].decode("utf-8", "surrogatepass"),
                    ended=None if why < 0 else ENDED[why],
                    tokens_in=tokens_in,
                    tokens_out=tokens_out,
                    log_p=tuple(log_p[option - options : option].tolist()),
                )
            )
        return found


class _Likelihoods(_Listed[TokenLikelihoods]):
    """Tokens of texts, one behind the other; ``counts`` says how many each has."""

    def pack(self, answers: Sequence[TokenLikelihoods]) -> Arrays:
        spans = [one.spans.reshape(-1, 2) for one in answers]
        return {
            "counts": np.array([len(one.log_p) for one in answers], dtype=np.int64),
            "spans": np.concatenate([np.empty((0, 2)), *spans]).astype(np.int32),
            "log_p": np.concatenate([np.empty(0), *(one.log_p for one in answers)]).astype(np.float64),
            "tokens": np.concatenate([np.empty(0, dtype=np.int64), *(one.tokens for one in answers)]),
        }

    def unpack(self, arrays: Arrays, rows: NDArray[np.intp]) -> list[TokenLikelihoods]:
        counts, spans, log_p, tokens = (arrays[name] for name in ("counts", "spans", "log_p", "tokens"))
        ends = np.cumsum(counts)
        own = [slice(int(ends[row] - counts[row]), int(ends[row])) for row in rows.tolist()]
        return [TokenLikelihoods(log_p[part], spans[part], tokens[part]) for part in own]


TEXTS: Codec[str, Encoded] = _Texts()
TOKENS: Codec[str, NDArray[np.int64]] = _Numbers("tokens", np.int64)
RANKS: Codec[str, NDArray[np.float64]] = _Numbers("ranks", np.float64)
BLANKS: Codec[Blank, Sequence[Filled]] = _Blanks()
REPLIES: Codec[Prompt, Sequence[Reply]] = _Replies()
LIKELIHOODS: Codec[Likelihood, Sequence[TokenLikelihoods]] = _Likelihoods()
