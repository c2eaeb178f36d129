"""Compute token vectors of any layer in one forward pass."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UsageError
from biassay.models.backend import ModelName, read_choice_setting
from biassay.models.devices import check_device, choose_device
from biassay.models.transformers.batches import avoid_cudnn_attention, retry_in_halves, split_in_half
from biassay.models.transformers.checkpoint import Checkpoint, load_weights

if TYPE_CHECKING:
    import torch

    from biassay.models.transformers.tokenizer import TokenizedTexts

    Pooling = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]  # states, mask, words
    Layers = tuple[int, ...]
    LayerPooling = tuple[Layers, Pooling]


DTYPES = ("float32", "bfloat16", "float16")
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

    def __init__(self, model: ModelName, checkpoint: Checkpoint) -> None:
        self._name, self._checkpoint = model, checkpoint
        self._depth = checkpoint.depth
        self._layers = _parse_layers(model, self._depth)
        self._join = read_choice_setting(model, "join", ("sum", "concat"), "sum")
        self._dtype = read_choice_setting(model, "dtype", DTYPES, "float32")
        check_device(model)
        self._model: Any = None
        self._device_context: AbstractContextManager[Any] = nullcontext()
        self._lock = threading.Lock()
        self.settings = self.get_layer_settings(self._layers)

    @cached_property
    def device(self) -> str:
        """Device of the model, "cpu" or "cuda"."""
        return choose_device(self._name)

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

            if self.device != "cpu":
                # Background threads use the GPU of the thread that loads the model.
                self._device_context = torch.cuda.device(torch.cuda.current_device())
            loaded = load_weights(self._checkpoint, self._name, "AutoModel", self._dtype, unused=("pooler.",))
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
                results += retry_in_halves(self._checkpoint.typed, forward, rows, split_in_half)
            (order,) = self._send(np.argsort(np.concatenate(batches)))
            vectors = [torch.cat(parts) for parts in zip(*results, strict=True)]
            return self._receive([tensor[order.to(tensor.device)] for tensor in vectors])

    @property
    def is_asynchronous(self) -> bool:
        """True if the device computes while this process continues."""
        return self.device != "cpu"

    def _send(self, *arrays: NDArray[Any]) -> list[torch.Tensor]:
        """Copy arrays to the device without waiting; only page-locked memory can be copied in the background."""
        import torch

        tensors = [torch.from_numpy(array) for array in arrays]
        if not self.is_asynchronous:
            return tensors
        return [tensor.pin_memory().to(self.device, non_blocking=True) for tensor in tensors]

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
        """Yield the rows of texts of similar length that go through the model together, with a maximum of padding."""
        order = np.argsort(tokenized.lengths, kind="stable")
        lengths, start = tokenized.lengths[order], 0
        while start < len(order):
            padded = np.arange(1, len(order) - start + 1) * lengths[start:]
            end = start + max(1, int(np.searchsorted(padded, _MAX_BATCH_TOKENS[self.device], side="right")))
            yield order[start:end]
            start = end

    def _forward(
        self, tokenized: TokenizedTexts, poolings: Sequence[LayerPooling], rows: NDArray[np.intp]
    ) -> list[torch.Tensor]:
        """Return the vectors of some texts, one tensor per pooling."""
        import torch

        ids, mask, words = self._send(*tokenized.padded(rows))
        needs_all = any(layers != _TOP_LAYER for layers, _ in poolings)
        with avoid_cudnn_attention(self.device, ids.shape[1]):
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
