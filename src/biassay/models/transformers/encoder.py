"""Encode texts and words in context with Hugging Face models (`hf:NAME`): token states of any layer, pooled."""

from __future__ import annotations

import dataclasses
import itertools
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from biassay.errors import ModelError, UsageError
from biassay.models.backend import ModelBackend, ModelName, defer, read_choice_setting
from biassay.models.base import (
    SAMPLING_SETTINGS,
    ContextEmbeddings,
    Identity,
    Representation,
    Span,
    TextEmbeddings,
    check_spans,
    default_representation,
    reject_settings,
)
from biassay.models.devices import DEVICE_HELP
from biassay.models.transformers.batches import (
    BatchPrefetcher,
    avoid_cudnn_attention,
    retry_in_halves,
    split_in_half,
)
from biassay.models.transformers.checkpoint import DTYPES, TRUST_HELP, Checkpoint, find_checkpoint, load_weights

if TYPE_CHECKING:
    import torch

    from biassay.models.transformers.tokenizer import TokenizedTexts

    Pooling = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]  # states, mask, words
    Layers = tuple[int, ...]
    LayerPooling = tuple[Layers, Pooling]


PoolName = Literal["cls", "mean", "max", "first", "last"]
POOLS: tuple[PoolName, ...] = get_args(PoolName)
_TOP_LAYER = (-1,)
_MAX_BATCH_TOKENS = {"cpu": 4096, "cuda": 131_072}


@dataclass(frozen=True, eq=False)
class PendingVectors:
    """Vectors that a device may still be computing, one tensor (texts, d) per layer and pooling."""

    tensors: Sequence[torch.Tensor]
    done: torch.cuda.Event | None

    def vectors(self) -> list[NDArray[np.float32]]:
        """Wait for the device and return the arrays."""
        if self.done is not None:
            self.done.synchronize()
        return [tensor.numpy() for tensor in self.tensors]


class TokenStates:
    """Run a model on tokenized texts and pool the states of its layers.

    Attributes
    ----------
    settings : dict of str to str
        Settings that change the vectors.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint, model = checkpoint, checkpoint.model
        self._depth = checkpoint.depth
        self._layers = _parse_layers(model, self._depth)
        self._join = read_choice_setting(model, "join", ("sum", "concat"), "sum")
        self._dtype = read_choice_setting(model, "dtype", DTYPES, "float32")
        self._model: Any = None
        self._device_context: AbstractContextManager[Any] = nullcontext()
        self._lock = threading.Lock()
        self.settings = self.get_layer_settings(self._layers)

    def get_layer_settings(self, layers: Layers) -> dict[str, str]:
        """Return the settings that select these layers."""
        settings = {"layer": ",".join(map(str, layers))}
        if len(layers) > 1:
            settings["join"] = self._join
        if self._dtype != "float32":
            settings["dtype"] = self._dtype
        return settings

    @property
    def each_layer(self) -> list[Layers]:
        """Every single layer, from the embedding to the top (-1); the selected layers as the user wrote them."""
        if self._depth is None:
            return [self._layers]
        single: list[Layers] = [*((layer,) for layer in range(self._depth)), _TOP_LAYER]
        if len(self._layers) > 1:
            return [*single, self._layers]
        single[self._layers[0]] = self._layers
        return single

    def load(self) -> None:
        """Load the weights."""
        if self._model is None:
            import torch

            if self._checkpoint.device != "cpu":
                # Background threads use the GPU of the thread that loads the model.
                self._device_context = torch.cuda.device(torch.cuda.current_device())
            loaded = load_weights(self._checkpoint, "AutoModel", self._dtype, unused=("pooler.",))
            self._model = loaded.get_encoder() if self._checkpoint.config.is_encoder_decoder else loaded

    def vectors(self, tokenized: TokenizedTexts, pooling: Pooling) -> NDArray[np.float32]:
        """Return vectors (texts, d) of the selected layers."""
        (vectors,) = self.start(tokenized, [(self._layers, pooling)]).vectors()
        return vectors

    def start(
        self, tokenized: TokenizedTexts, poolings: Sequence[LayerPooling], stopping: threading.Event | None = None
    ) -> PendingVectors:
        """Start the model on texts without waiting for the device. Thread-safe.

        Parameters
        ----------
        tokenized : TokenizedTexts
            Token ids of the texts.
        poolings : sequence of LayerPooling
            Layers and poolings, all computed in one pass.
        stopping : Event, optional
            If set in the meantime, raise `CancelledError` before the next batch.
        """
        import torch

        self.load()
        with self._lock, self._device_context, torch.inference_mode():
            batches = list(self.split_batches(tokenized))
            results: list[list[torch.Tensor]] = []
            for rows in batches:
                if stopping is not None and stopping.is_set():
                    raise CancelledError
                forward = partial(self._forward, tokenized, poolings)
                results += retry_in_halves(self._checkpoint.label, forward, rows, split_in_half)
            (order,) = self._send(np.argsort(np.concatenate(batches)))
            vectors = [torch.cat(parts) for parts in zip(*results, strict=True)]
            return self._receive([tensor[order.to(tensor.device)] for tensor in vectors])

    @property
    def is_asynchronous(self) -> bool:
        """True if the device computes while this process continues."""
        return self._checkpoint.device != "cpu"

    def _send(self, *arrays: NDArray[Any]) -> list[torch.Tensor]:
        """Copy arrays to the device without waiting; only page-locked memory can be copied in the background."""
        import torch

        tensors = [torch.from_numpy(array) for array in arrays]
        if not self.is_asynchronous:
            return tensors
        return [tensor.pin_memory().to(self._checkpoint.device, non_blocking=True) for tensor in tensors]

    def _receive(self, vectors: Sequence[torch.Tensor]) -> PendingVectors:
        """Copy vectors back from the device without waiting."""
        import torch

        if not self.is_asynchronous:
            return PendingVectors(vectors, None)
        targets = [torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True) for tensor in vectors]
        for tensor, target in zip(vectors, targets, strict=True):
            target.copy_(tensor, non_blocking=True)
        return PendingVectors(targets, torch.cuda.current_stream(vectors[0].device).record_event())

    def split_batches(self, tokenized: TokenizedTexts) -> Iterator[NDArray[np.intp]]:
        """Yield batches of rows with similar text length, limited in padded tokens."""
        order = np.argsort(tokenized.lengths, kind="stable")
        lengths, start = tokenized.lengths[order], 0
        while start < len(order):
            padded = np.arange(1, len(order) - start + 1) * lengths[start:]
            end = start + max(1, int(np.searchsorted(padded, _MAX_BATCH_TOKENS[self._checkpoint.device], side="right")))
            yield order[start:end]
            start = end

    def _forward(
        self, tokenized: TokenizedTexts, poolings: Sequence[LayerPooling], rows: NDArray[np.intp]
    ) -> list[torch.Tensor]:
        """Return the vectors of some texts, one tensor per pooling."""
        import torch

        ids, mask, words = self._send(*tokenized.padded(rows))
        needs_all = any(layers != _TOP_LAYER for layers, _ in poolings)
        with avoid_cudnn_attention(self._checkpoint.device, ids.shape[1]):
            output = self._model(input_ids=ids, attention_mask=mask, output_hidden_states=needs_all)
        vectors = []
        for layers, pooling in poolings:
            states = [output.last_hidden_state if layers == _TOP_LAYER else output.hidden_states[i] for i in layers]
            pooled = [pooling(state, mask, words).float() for state in states]
            vectors.append(torch.cat(pooled, dim=1) if self._join == "concat" else torch.stack(pooled).sum(dim=0))
        return vectors


def pool(name: PoolName, states: torch.Tensor, mask: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """Pool token states into one vector per text.

    Parameters
    ----------
    name : {"cls", "mean", "max", "first", "last"}
        "mean" and "max" pool all tokens, as sentence encoders were trained; "first" and "last" select a token of the
        text itself; "cls" selects the special token at the start.
    states : Tensor, shape (texts, tokens, d)
        Token states.
    mask : Tensor, shape (texts, tokens)
        1 for tokens, 0 for padding.
    words : Tensor, shape (texts, tokens)
        1 for tokens of the text, 0 for special tokens and padding.

    Returns
    -------
    Tensor, shape (texts, d)
    """
    import torch

    rows = torch.arange(len(states), device=states.device)
    if name == "cls":
        return states[:, 0]
    if name == "first":
        return states[rows, words.argmax(dim=1)]
    if name == "last":
        return states[rows, words.shape[1] - 1 - words.flip(dims=[1]).argmax(dim=1)]
    covered = mask.unsqueeze(-1).bool()
    if name == "max":
        return states.masked_fill(~covered, -torch.inf).amax(dim=1)
    return (states * covered).sum(dim=1, dtype=torch.float32) / mask.sum(dim=1, keepdim=True)


def _parse_layers(model: ModelName, depth: int | None) -> Layers:
    try:
        layers = tuple(int(part) for part in model.settings.get("layer", "-1").split(","))
    except ValueError as error:
        raise UsageError(f"model {model.text!r}: layer must be a number or several, separated by commas") from error
    for layer in layers:
        if depth is not None and not -depth - 1 <= layer <= depth:
            raise UsageError(
                f"model {model.text!r} has no layer {layer}: 0 is the embedding, 1 to {depth} the layers, -1 the top"
            )
    return layers


_WORD_PARTS: tuple[PoolName, ...] = ("last", "first", "mean")
_WORD_BATCH_SIZES = {"cpu": 2048, "cuda": 65_536}
_PART_SIZE = 4096  # texts that are tokenized while the GPU works on the previous ones


class HfWordEncoder:
    """Encode a word in context as its last token, its first token, or the mean of all its tokens."""

    def __init__(self, model: ModelName) -> None:
        reject_settings(model, "pool", *SAMPLING_SETTINGS)
        self._checkpoint = checkpoint = find_checkpoint(model)
        checkpoint.check_tokenizer()
        self._states = TokenStates(checkpoint)
        self._part: PoolName = read_choice_setting(model, "word", _WORD_PARTS, "last")  # type: ignore[assignment]
        settings = {"word": self._part, **self._states.settings}
        self.identity = Identity(checkpoint.name, "hf", checkpoint.fingerprint, tuple(settings.items()))

    @property
    def batch_size(self) -> int:
        """Number of texts per call of `encode_words`."""
        return _WORD_BATCH_SIZES[self._checkpoint.device]

    def prepare(self) -> None:
        """Load the weights."""
        self._states.load()

    def encode_words(self, texts: Sequence[str], spans: Sequence[Span]) -> ContextEmbeddings:
        """Return one vector per text, that of the word at its span."""
        check_spans(texts, spans)
        starts = range(0, len(texts), _PART_SIZE)
        parts = ([items[start : start + _PART_SIZE] for start in starts] for items in (texts, spans))
        vectors, missing = [], []
        with ThreadPoolExecutor(max_workers=1) as thread:
            for tokenized, reasons in thread.map(self._checkpoint.text_tokenizer.locate, *parts):
                vectors.append(self._states.vectors(tokenized, self._pooling))
                missing += reasons
        return ContextEmbeddings.from_vectors(self.identity.name, texts, np.concatenate(vectors), missing)

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of tokens per text, without special tokens."""
        return self._checkpoint.text_tokenizer.count(texts)

    def _pooling(self, states: torch.Tensor, _: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """Pool the tokens of the word as if they were the whole text."""
        return pool(self._part, states, words, words)


class HfEncoder:
    """Encode texts by pooling token states of one or several layers."""

    def __init__(self, model: ModelName) -> None:
        reject_settings(model, "word", *SAMPLING_SETTINGS)
        self._checkpoint = checkpoint = find_checkpoint(model)
        self._states = TokenStates(checkpoint)
        self._pool = _choose_pooling(model, checkpoint)
        settings = {"pool": self._pool, **self._states.settings}
        self.identity = Identity(checkpoint.name, "hf", checkpoint.fingerprint, tuple(settings.items()))
        self._tokenized: BatchPrefetcher[Sequence[str], TokenizedTexts] = BatchPrefetcher(
            lambda texts: checkpoint.text_tokenizer(texts)
        )
        self._running: BatchPrefetcher[tuple[Sequence[str], tuple[str, ...]], tuple[TokenizedTexts, PendingVectors]] = (
            BatchPrefetcher(self._start)
        )

    @property
    def batch_size(self) -> int:
        """Number of texts per call of `encode`."""
        return 512 if self._checkpoint.device == "cpu" else 16_384

    def prepare(self, texts: Sequence[str]) -> None:  # noqa: ARG002
        """Load the weights."""
        self._states.load()

    def prefetch_representations(self, texts: Sequence[str], names: Sequence[str]) -> None:
        """Start on texts of a later batch.

        A background thread tokenizes them. On a GPU, a second thread also starts the model on them, so that the GPU
        continues with the next batch while the previous one is copied back and cached.
        """
        self._tokenized.prefetch(texts)
        if self._states.is_asynchronous:
            self._running.prefetch((texts, tuple(names)))

    def cancel_prefetch(self) -> None:
        """Drop prefetched texts and wait until the background threads are idle."""
        self._running.cancel()
        self._tokenized.cancel()

    def _start(self, requested: tuple[Sequence[str], tuple[str, ...]]) -> tuple[TokenizedTexts, PendingVectors]:
        texts, names = requested
        tokenized = self._tokenized(texts)
        ways = [(layers, partial(pool, pooling)) for _, layers, pooling in map(self._offered.__getitem__, names)]
        return tokenized, self._states.start(tokenized, ways, self._running.stopping)

    def encode(self, texts: Sequence[str]) -> TextEmbeddings:
        """Return one vector per text, with unknown and truncated parts."""
        return self.encode_representations(texts, [self._default_name])[self._default_name]

    @cached_property
    def _default_name(self) -> str:
        return default_representation(self).name

    @property
    def representations(self) -> tuple[Representation, ...]:
        """Every layer, from the embedding to the top, with every pooling."""
        return tuple(representation for representation, *_ in self._offered.values())

    @cached_property
    def _offered(self) -> dict[str, tuple[Representation, Layers, PoolName]]:
        pools = [name for name in POOLS if name != "cls" or self._checkpoint.has_cls]
        offered = {}
        for layers, name in itertools.product(self._states.each_layer, pools):
            settings = self._states.get_layer_settings(layers)
            identity = dataclasses.replace(self.identity, settings=tuple({"pool": name, **settings}.items()))
            settings.pop("dtype", None)  # the same for all
            representation = Representation((*settings.items(), ("pool", name)), identity)
            offered[representation.name] = (representation, layers, name)
        return offered

    def encode_representations(self, texts: Sequence[str], names: Sequence[str]) -> dict[str, TextEmbeddings]:
        """Return one set of embeddings per representation, all from one pass."""
        tokenized, pending = self._running((texts, tuple(names)))
        return {
            name: TextEmbeddings.from_vectors(vectors, tokenized.unknown, tokenized.truncated_at)
            for name, vectors in zip(names, pending.vectors(), strict=True)
        }

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of tokens per text, without special tokens."""
        return self._checkpoint.text_tokenizer.count(texts)


def _read_trained_pooling(checkpoint: Checkpoint) -> str | None:
    """Return the pooling that a sentence-transformers folder was trained with, if `pool` supports it."""
    folder = Path(checkpoint.location)
    path = folder / "1_Pooling" / "config.json"
    if not path.is_file():
        modules = folder / "modules.json"
        if modules.is_file() and "1_Pooling" in modules.read_text(encoding="utf-8", errors="replace"):
            raise ModelError(
                f"{checkpoint.label}: {modules} names 1_Pooling, which is missing; copy the whole folder, or "
                "choose the pooling, such as pool=mean"
            )
        return None
    modes = json.loads(path.read_text(encoding="utf-8"))
    names = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens", "max": "pooling_mode_max_tokens"}
    chosen = [name for name, key in names.items() if modes.get(key)]
    return chosen[0] if len(chosen) == 1 else None


def _choose_pooling(model: ModelName, checkpoint: Checkpoint) -> PoolName:
    """Return the user's pooling, or the one the model was trained for: [CLS] for BERT, the last token for GPT."""
    has_cls = checkpoint.has_cls
    default = "last" if checkpoint.ends_last else "cls" if has_cls else "mean"
    trained = None if "pool" in model.settings else _read_trained_pooling(checkpoint)
    name = read_choice_setting(model, "pool", POOLS, trained or default)
    if name == "cls" and not has_cls:
        raise UsageError(f"model {model.text!r} has no [CLS] token at the start of a text; use pool=mean or pool=last")
    return name  # type: ignore[return-value]


def _selftest(folder: Path) -> AbstractContextManager[str]:
    from biassay.models.selftest import write_tiny_bert

    return nullcontext(f"hf:{write_tiny_bert(folder)}")


BACKEND = ModelBackend(
    name="hf",
    syntax="hf:NAME[@REVISION]",
    description="Hugging Face encoder or language model",
    settings={
        "pool": f"texts: {', '.join(POOLS)}; by default the pooling the model was trained for",
        "word": "words in context: last (default), first or mean of the word's tokens",
        "layer": "0 for the embedding, -1 (default) for the top; separate several by commas",
        "join": "how to combine several layers: sum (default) or concat",
        "dtype": f"{DTYPES[0]} (default), {' or '.join(DTYPES[1:])}",
        "device": DEVICE_HELP,
        "trust_remote_code": TRUST_HELP,
        **{name: f"replies: {text}" for name, text in SAMPLING_SETTINGS.items()},
        "chat": "replies: true (default) to use the model's chat template, false for plain text",
    },
    extra="hf",
    needs=("torch", "transformers"),
    packages=("torch", "transformers"),
    texts=HfEncoder,
    words=HfWordEncoder,
    blanks=defer("biassay.models.transformers.language_model:open_language_model"),
    replies=defer("biassay.models.transformers.generation:HfReplies"),
    likelihoods=defer("biassay.models.transformers.language_model:HfLikelihoods"),
    selftest=_selftest,
    takes_bare_names=True,
)
