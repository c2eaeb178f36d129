"""Test backends on tiny temporary models.

The models have random weights but take the same path from texts to vectors as real ones. No other machine is contacted.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from biassay.errors import MeasurementError, format_examples
from biassay.models.backend import ModelBackend, is_installed
from biassay.models.base import Encoder, LikelihoodModel, TextGenerator
from biassay.models.registry import open_model
from biassay.prompts.requests import LikelihoodRequest, Prompt

TINY_VOCABULARY = ("this", "is", "the", "red", "rose", "joy")
TINY_SIZE, TINY_HIDDEN_SIZE = 8, 6


@contextmanager
def _set_environment(changed: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables temporarily."""
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


@contextmanager
def serve_tiny_endpoint(backend: str) -> Iterator[str]:
    """Serve OpenAI's embeddings, chat and completions endpoints; yield a model string of the backend."""
    key = "BIASSAY_SELFTEST_KEY"  # the user's own keys are for other servers
    with _set_environment({key: "none"}), ThreadingHTTPServer(("127.0.0.1", 0), _EndpointHandler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"{backend}:tiny?base_url=http://127.0.0.1:{server.server_port}&key_env={key}&retries=0"
        finally:
            server.shutdown()
            thread.join()


class VowelEncoder:
    """Count the vowels of a text: an encoder as a user may write one."""

    def encode(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one row of vowel counts per text."""
        return [[float(text.count(vowel)) for vowel in "aeiou"] for text in texts]


class _EndpointHandler(BaseHTTPRequestHandler):
    """Embed texts by vowel counts; reply "joy" to every prompt and score one token per character."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(self.embed(request) if "input" in request else self.generate(request)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Do not log requests."""

    def embed(self, request: dict[str, Any]) -> dict[str, Any]:
        rows = VowelEncoder().encode(request["input"])
        return {"data": [{"index": i, "embedding": row} for i, row in enumerate(rows)]}

    def generate(self, request: dict[str, Any]) -> dict[str, Any]:
        prompt = request.get("prompt", "")
        prompts = prompt if isinstance(prompt, list) else [prompt]
        choices = [{"index": index, **self.choice(request, prompt)} for index, prompt in enumerate(prompts)]
        return {
            "choices": choices,
            "usage": {"prompt_tokens": len("".join(prompts)), "completion_tokens": len(choices)},
        }

    def choice(self, request: dict[str, Any], prompt: str) -> dict[str, Any]:
        if "messages" in request:
            likely = [{"token": word, "logprob": -0.5 - i} for i, word in enumerate(("joy", "rose"))]
            return {"message": {"content": "joy"}, "logprobs": {"content": [{"top_logprobs": likely}]}}
        if request.get("echo"):
            numbers = [None, *(-0.1 - ord(character) % 32 for character in prompt[1:])]
            return {"text": prompt, "logprobs": {"tokens": [*prompt], "token_logprobs": numbers}}
        return {"text": "joy"}


def make_random_arrays(shapes: Mapping[str, Sequence[int]]) -> dict[str, NDArray[np.float32]]:
    """Draw one array per name, always the same."""
    rng = np.random.default_rng(0)
    return {name: rng.normal(scale=0.5, size=shape).astype(np.float32) for name, shape in shapes.items()}


def save_tensors(path: Path, shapes: Mapping[str, Sequence[int]]) -> None:
    """Write a checkpoint of random tensors."""
    import torch

    torch.save({name: torch.from_numpy(array) for name, array in make_random_arrays(shapes).items()}, path)


def write_tiny_vectors(folder: Path, more: Sequence[str] = ()) -> Path:
    """Write random vectors of `TINY_VOCABULARY` and more words; return the file."""
    path = folder / "vectors.txt"
    rows = make_random_arrays(dict.fromkeys((*TINY_VOCABULARY, *more), (TINY_SIZE,)))
    path.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows.items()), encoding="utf-8")
    return path


def write_tiny_bert(folder: Path) -> Path:
    """Write a BERT model with random weights; return the folder."""
    import torch

    library: Any = import_module("transformers")
    library.utils.logging.disable_progress_bar()
    vocabulary = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *TINY_VOCABULARY)
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    library.BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=16).save_pretrained(folder)
    sizes = {"hidden_size": TINY_SIZE, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    config = library.BertConfig(vocab_size=len(vocabulary), max_position_embeddings=16, **sizes)
    model = library.BertModel(config)
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    model.load_state_dict(
        {name: torch.from_numpy(array) for name, array in make_random_arrays(shapes).items()}, strict=False
    )
    model.save_pretrained(folder)
    return folder


TEXTS = ("this is the red rose", "joy")  # two lengths, so that a batch of both needs padding
# Rounding in another order changes a float32 vector by some 1e-6 of its largest value. Padding that takes part, or a
# state carried over from one text to the next, changes it by 1e-2 or more.
_TOLERANCE = 1e-4
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
_MAX_ERROR_LENGTH = 300  # characters of an error


@dataclass(frozen=True)
class SelfTestResult:
    """Result of a self-test.

    Attributes
    ----------
    backend : str
        Name of the backend.
    status : {"PASS", "FAIL", "skipped"}
        Result.
    seconds : float or None
        Duration; None if it did not run.
    error : str
        One line; empty if it passed.
    """

    backend: str
    status: Literal["PASS", "FAIL", "skipped"]
    seconds: float | None = None
    error: str = ""


def run_self_test(backend: ModelBackend) -> SelfTestResult:
    """Test one backend; errors are part of the result."""
    if backend.missing or backend.selftest is None:
        return SelfTestResult(backend.name, "skipped")
    start = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory(prefix="biassay-selftest-") as name:
            folder = Path(name)
            names = ("BIASSAY_CACHE", "TORCHINDUCTOR_CACHE_DIR", "MTEB_CACHE")
            caches = {name: str(folder / name.lower()) for name in names}
            (folder / backend.name).mkdir()
            with _set_environment(_OFFLINE | caches), backend.selftest(folder / backend.name) as model:
                _check_model(backend, model)
    except Exception as error:  # a broken installation fails in many ways
        return SelfTestResult(backend.name, "FAIL", time.perf_counter() - start, _format_error(error))
    return SelfTestResult(backend.name, "PASS", time.perf_counter() - start)


def _check_model(backend: ModelBackend, model: str) -> None:
    """Check the text encoder, or all other capabilities of a backend without one."""
    if backend.texts is not None:
        check_encoder(open_model(model, "texts"))
        return
    for capability in backend.capabilities:
        opened = open_model(model, capability)
        if capability in _GENERATION_CHECKS:
            _GENERATION_CHECKS[capability](opened)


def _format_error(error: Exception) -> str:
    line = " ".join(f"{type(error).__name__}: {error}".split())
    return line if len(line) <= _MAX_ERROR_LENGTH else line[: _MAX_ERROR_LENGTH - 1] + "…"


def check_encoder(encoder: Encoder) -> None:
    """Encode two texts in one batch and separately; raise MeasurementError if the vectors are not valid or differ."""
    encoder.prepare(TEXTS)
    encoded = encoder.encode(TEXTS)
    together, alone = encoded.vectors, [encoder.encode([text]).vectors for text in TEXTS]
    size = together.shape[-1]
    shapes = [together.shape, *(vectors.shape for vectors in alone)]
    if size == 0 or shapes != [(2, size), (1, size), (1, size)]:
        raise MeasurementError(f"two texts together, then each alone, gave arrays of shape {shapes}")
    if not all(np.isfinite(vectors).all() for vectors in (together, *alone)):
        raise MeasurementError("a vector is not finite")
    unknown = [text[start:end] for text, spans in zip(TEXTS, encoded.unknown, strict=True) for start, end in spans]
    if unknown:
        raise MeasurementError(
            f"out of vocabulary: {format_examples([*map(repr, unknown)])}; a tiny model must know all words of "
            f"{' and '.join(map(repr, TEXTS))}"
        )
    largest = np.abs(together).max()
    if np.abs(together[0] - together[1]).max() <= _TOLERANCE * largest:
        raise MeasurementError("two different texts have the same vector")
    off = np.abs(together - np.concatenate(alone)).max()
    if off > _TOLERANCE * largest:
        raise MeasurementError(f"a vector depends on its batch: off by {off:.2g}; the largest value is {largest:.2g}")


def _check_replies(model: TextGenerator) -> None:
    """Generate one response and score two options."""
    prompts = [Prompt(TEXTS[0]), Prompt(TEXTS[0], options=("joy", "rose"))]
    model.prepare(prompts)
    reply, scored = model.reply(prompts)
    if not reply.text or len(scored.log_p) != 2 or not np.isfinite(scored.log_p).all():
        raise MeasurementError(f"the response is {reply.text!r}; the options have log-probabilities {scored.log_p}")


def _check_likelihoods(model: LikelihoodModel) -> None:
    requests = [LikelihoodRequest(text) for text in TEXTS]
    model.prepare(requests)
    for text, result in zip(TEXTS, model.likelihoods(requests), strict=True):
        known = result.log_p[1:]  # the first token may have none
        if not len(known) or not np.isfinite(known).all() or result.spans[-1, 1] != len(text):
            raise MeasurementError(f"the log-probabilities of {text!r} are {result.log_p}")


_GENERATION_CHECKS: Mapping[str, Callable[[Any], None]] = {"replies": _check_replies, "likelihoods": _check_likelihoods}


def describe_device() -> str | None:
    """Describe the device that torch uses; return None if torch is not installed."""
    if not is_installed("torch"):
        return None
    try:
        import torch

        if torch.cuda.is_available():
            return f"CUDA: {torch.cuda.get_device_name()}"
    except Exception as error:  # drivers and linkers raise many types
        return f"not known: {_format_error(error)}"
    return "CPU; torch finds no CUDA GPU"
