"""Tiny models for the self-tests of families: random weights, and servers that answer on this machine."""

from __future__ import annotations

import json
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "HIDDEN",
    "SIZE",
    "WORDS",
    "Letters",
    "answering_endpoint",
    "embeddings_endpoint",
    "environment",
    "random_arrays",
    "save_tensors",
    "write_bert",
    "write_vectors",
]

WORDS = ("this", "is", "the", "red", "rose", "joy")
SIZE, HIDDEN = 8, 6


@contextmanager
def environment(changed: Mapping[str, str]) -> Iterator[None]:
    """Environment variables set for a while."""
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def embeddings_endpoint() -> AbstractContextManager[str]:
    """A server that answers as OpenAI's embeddings endpoint does; gives its address."""
    return _serving(_Embeddings)


def answering_endpoint() -> AbstractContextManager[str]:
    """A server that answers as OpenAI's chat and completions endpoints do; gives its address."""
    return _serving(_Answers)


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class Letters:
    """An encoder as a user may write one: counts of the vowels in a text."""

    def encode(self, texts: Sequence[str]) -> list[list[float]]:
        return [[float(text.count(vowel)) for vowel in "aeiou"] for text in texts]


class _Endpoint(BaseHTTPRequestHandler, ABC):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(self.answer(asked)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @abstractmethod
    def answer(self, asked: dict[str, Any]) -> dict[str, Any]: ...

    def log_message(self, format: str, *args: object) -> None:
        """Do not log requests."""


class _Embeddings(_Endpoint):
    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        rows = Letters().encode(asked["input"])
        return {"data": [{"index": i, "embedding": row} for i, row in enumerate(rows)]}


class _Answers(_Endpoint):
    """Always says "joy"; every character is a token, and the less likely, the later it comes in the alphabet."""

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        given = asked.get("prompt", "")
        prompts = given if isinstance(given, list) else [given]
        choices = [{"index": index, **self.choice(asked, prompt)} for index, prompt in enumerate(prompts)]
        return {
            "choices": choices,
            "usage": {"prompt_tokens": len("".join(prompts)), "completion_tokens": len(choices)},
        }

    def choice(self, asked: dict[str, Any], prompt: str) -> dict[str, Any]:
        if "messages" in asked:
            likely = [{"token": word, "logprob": -0.5 - i} for i, word in enumerate(("joy", "rose"))]
            return {"message": {"content": "joy"}, "logprobs": {"content": [{"top_logprobs": likely}]}}
        if asked.get("echo"):
            numbers = [None, *(-0.1 - ord(character) % 32 for character in prompt[1:])]
            return {"text": prompt, "logprobs": {"tokens": [*prompt], "token_logprobs": numbers}}
        return {"text": "joy"}


def random_arrays(shapes: Mapping[str, Sequence[int]]) -> dict[str, NDArray[np.float32]]:
    rng = np.random.default_rng(0)
    return {name: rng.normal(scale=0.5, size=shape).astype(np.float32) for name, shape in shapes.items()}


def save_tensors(path: Path, shapes: Mapping[str, Sequence[int]]) -> None:
    import torch

    torch.save({name: torch.from_numpy(array) for name, array in random_arrays(shapes).items()}, path)


def write_vectors(folder: Path, more: Sequence[str] = ()) -> Path:
    path = folder / "vectors.txt"
    rows = random_arrays(dict.fromkeys((*WORDS, *more), (SIZE,)))
    path.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows.items()), encoding="utf-8")
    return path


def write_bert(folder: Path) -> Path:
    import torch

    library: Any = import_module("transformers")
    library.utils.logging.disable_progress_bar()
    vocabulary = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS)
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    library.BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=16).save_pretrained(folder)
    sizes = {"hidden_size": SIZE, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    config = library.BertConfig(vocab_size=len(vocabulary), max_position_embeddings=16, **sizes)
    model = library.BertModel(config)
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    model.load_state_dict(
        {name: torch.from_numpy(array) for name, array in random_arrays(shapes).items()}, strict=False
    )
    model.save_pretrained(folder)
    return folder
