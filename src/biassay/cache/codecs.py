"""Convert requests to cache keys and model outputs to arrays."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from biassay.models.base import (
    BLANK_COLUMNS,
    FINISH_REASONS,
    BlankScores,
    Reply,
    Span,
    TextEmbeddings,
    TokenLikelihoods,
)
from biassay.prompts.requests import Blank, LikelihoodRequest, Prompt

Request_contra = TypeVar("Request_contra", contravariant=True)
Outputs = TypeVar("Outputs")
Arrays = Mapping[str, NDArray[Any]]


class Codec(Protocol[Request_contra, Outputs]):
    """Convert one kind of request and its outputs."""

    def key(self, request: Request_contra) -> str:
        """Return a string that is equal for equal requests only."""

    def pack(self, outputs: Outputs) -> Arrays:
        """Convert the outputs of a batch to arrays."""

    def unpack(self, arrays: Arrays, rows: NDArray[np.intp]) -> Outputs:
        """Convert some rows of a batch back to outputs, in the given order."""

    def join(self, parts: Iterable[Outputs], positions: NDArray[np.intp]) -> Outputs:
        """Concatenate outputs and move each to its position."""


class _TextCodec:
    """Vectors of texts with the spans of unknown words and the positions of truncation."""

    def key(self, request: str) -> str:
        return request

    def pack(self, outputs: TextEmbeddings) -> Arrays:
        notes = json.dumps(list(zip(outputs.unknown, outputs.truncated_at, strict=True))).encode()
        return {"vectors": outputs.vectors, "notes": np.frombuffer(notes, dtype=np.uint8)}

    def unpack(self, arrays: Arrays, rows: NDArray[np.intp]) -> TextEmbeddings:
        notes = json.loads(arrays["notes"].tobytes())
        selected = [notes[row] for row in rows.tolist()]
        unknown = [tuple((start, end) for start, end in spans) for spans, _ in selected]
        return TextEmbeddings.from_vectors(arrays["vectors"][rows], unknown, [cut for _, cut in selected])

    def join(self, parts: Iterable[TextEmbeddings], positions: NDArray[np.intp]) -> TextEmbeddings:
        vectors, start = np.zeros((len(positions), 0), dtype=np.float32), 0
        unknown: list[tuple[Span, ...]] = [()] * len(positions)
        cut: list[int | None] = [None] * len(positions)
        for part in parts:
            dimension = part.vectors.shape[1]  # 0 if all texts of the batch are out of vocabulary
            if dimension and not vectors.shape[1]:
                vectors = np.zeros((len(positions), dimension), dtype=np.float32)
            targets = positions[start : start + len(part.vectors)]
            if dimension:
                vectors[targets] = part.vectors
            for position, spans, end in zip(targets.tolist(), part.unknown, part.truncated_at, strict=True):
                unknown[position], cut[position] = spans, end
            start += len(targets)
        return TextEmbeddings.from_vectors(vectors, unknown, cut)


class _NumberCodec:
    """One number per text: its number of tokens, or its rank in a vocabulary."""

    def __init__(self, name: str, dtype: type[np.number[Any]]) -> None:
        self._name, self._dtype = name, dtype

    def key(self, request: str) -> str:
        return json.dumps([self._name, request])

    def pack(self, outputs: NDArray[Any]) -> Arrays:
        return {self._name: outputs}

    def unpack(self, arrays: Arrays, rows: NDArray[np.intp]) -> NDArray[Any]:
        return arrays[self._name][rows]

    def join(self, parts: Iterable[NDArray[Any]], positions: NDArray[np.intp]) -> NDArray[Any]:
        joined = np.empty(len(positions), dtype=self._dtype)
        joined[positions] = np.concatenate([np.empty(0, dtype=self._dtype), *parts])
        return joined


Item = TypeVar("Item")


class _ListCodec(Generic[Item]):
    """Outputs in a list."""

    def key(self, request: Blank | Prompt | LikelihoodRequest) -> str:
        return request.key

    def join(self, parts: Iterable[Sequence[Item]], positions: NDArray[np.intp]) -> list[Item]:
        joined: list[Any] = [None] * len(positions)
        for position, output in zip(positions.tolist(), chain.from_iterable(parts), strict=True):
            joined[position] = output
        return joined


class _BlankCodec(_ListCodec[BlankScores]):
    """Scores of all words of all blanks in one array; ``counts`` holds the numbers of words and pieces per blank."""

    def pack(self, outputs: Sequence[BlankScores]) -> Arrays:
        counts = [(len(blank.lengths), len(blank.pieces), blank.unknown, blank.passes) for blank in outputs]
        columns = [blank.columns.reshape(-1, len(BLANK_COLUMNS)) for blank in outputs]
        return {
            "counts": np.array(counts, dtype=np.int32).reshape(-1, 4),
            "lengths": np.concatenate([blank.lengths for blank in outputs]).astype(np.int32),
            "pieces": np.concatenate([blank.pieces for blank in outputs]).astype(np.int32),
            "columns": np.concatenate(columns).astype(np.float32),
        }

    def unpack(self, arrays: Arrays, rows: NDArray[np.intp]) -> list[BlankScores]:
        counts, lengths, pieces, columns = (arrays[name] for name in ("counts", "lengths", "pieces", "columns"))
        ends = np.cumsum(counts[:, :2], axis=0)
        blanks = []
        for row in rows.tolist():
            n_words, n_pieces, unknown, passes = counts[row].tolist()
            words_end, pieces_end = ends[row].tolist()
            own_words, own_pieces = slice(words_end - n_words, words_end), slice(pieces_end - n_pieces, pieces_end)
            blanks.append(BlankScores(lengths[own_words], pieces[own_pieces], columns[own_pieces], unknown, passes))
        return blanks


class _ReplyCodec(_ListCodec[Reply]):
    """UTF-8 of all replies in one array; ``counts`` holds the number of bytes and of options per reply.

    In ``tokens`` and ``ended``, -1 is unknown; otherwise ``ended`` is an index into `FINISH_REASONS`.
    """

    def pack(self, outputs: Sequence[Reply]) -> Arrays:
        texts = [reply.text.encode("utf-8", "surrogatepass") for reply in outputs]
        counts = [(len(text), len(reply.log_p)) for text, reply in zip(texts, outputs, strict=True)]
        tokens = [[-1 if n is None else n for n in (reply.tokens_in, reply.tokens_out)] for reply in outputs]
        ended = [-1 if reply.finish_reason is None else FINISH_REASONS.index(reply.finish_reason) for reply in outputs]
        return {
            "counts": np.array(counts, dtype=np.int64).reshape(-1, 2),
            "texts": np.frombuffer(b"".join(texts), dtype=np.uint8),
            "ended": np.array(ended, dtype=np.int8),
            "tokens": np.array(tokens, dtype=np.int64).reshape(-1, 2),
            "log_p": np.array([number for reply in outputs for number in reply.log_p], dtype=np.float64),
        }

    def unpack(self, arrays: Arrays, rows: NDArray[np.intp]) -> list[Reply]:
        counts, ended, tokens, log_p = (arrays[name] for name in ("counts", "ended", "tokens", "log_p"))
        texts, ends, replies = arrays["texts"].tobytes(), np.cumsum(counts, axis=0), []
        for row in rows.tolist():
            (n_bytes, n_options), (text_end, options_end) = counts[row].tolist(), ends[row].tolist()
            reason, (tokens_in, tokens_out) = int(ended[row]), (None if n < 0 else n for n in tokens[row].tolist())
            replies.append(
                Reply(
                    text=texts[text_end - n_bytes : text_end].decode("utf-8", "surrogatepass"),
                    finish_reason=None if reason < 0 else FINISH_REASONS[reason],
                    tokens_in=tokens_in,
                    tokens_out=tokens_out,
                    log_p=tuple(log_p[options_end - n_options : options_end].tolist()),
                )
            )
        return replies


class _LikelihoodCodec(_ListCodec[TokenLikelihoods]):
    """Tokens of all texts in one array; ``counts`` holds the number of tokens per text."""

    def pack(self, outputs: Sequence[TokenLikelihoods]) -> Arrays:
        spans = [text.spans.reshape(-1, 2) for text in outputs]
        return {
            "counts": np.array([len(text.log_p) for text in outputs], dtype=np.int64),
            "spans": np.concatenate([np.empty((0, 2)), *spans]).astype(np.int32),
            "log_p": np.concatenate([np.empty(0), *(text.log_p for text in outputs)]).astype(np.float64),
            "tokens": np.concatenate([np.empty(0, dtype=np.int64), *(text.tokens for text in outputs)]),
        }

    def unpack(self, arrays: Arrays, rows: NDArray[np.intp]) -> list[TokenLikelihoods]:
        counts, spans, log_p, tokens = (arrays[name] for name in ("counts", "spans", "log_p", "tokens"))
        ends = np.cumsum(counts)
        slices = [slice(int(ends[row] - counts[row]), int(ends[row])) for row in rows.tolist()]
        return [TokenLikelihoods(log_p[part], spans[part], tokens[part]) for part in slices]


TEXTS: Codec[str, TextEmbeddings] = _TextCodec()
TOKENS: Codec[str, NDArray[np.int64]] = _NumberCodec("tokens", np.int64)
RANKS: Codec[str, NDArray[np.float64]] = _NumberCodec("ranks", np.float64)
BLANKS: Codec[Blank, Sequence[BlankScores]] = _BlankCodec()
REPLIES: Codec[Prompt, Sequence[Reply]] = _ReplyCodec()
LIKELIHOODS: Codec[LikelihoodRequest, Sequence[TokenLikelihoods]] = _LikelihoodCodec()
