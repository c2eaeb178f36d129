"""States of tokens: a transformer, run once, and what is read off its layers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UnknownNameError, UsageError
from biassay.models.attention import without_plans
from biassay.models.family import ModelName
from biassay.models.hub import check_device, choose_device
from biassay.models.memory import halves_of, in_halves
from biassay.models.weights import load_weights

if TYPE_CHECKING:
    import torch

    from biassay.models.checkpoint import Checkpoint
    from biassay.models.tokenising import Tokenised

    Pooling = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]  # states, mask, words
    Layers = tuple[int, ...]
    Way = tuple[Layers, Pooling]

__all__ = ["DTYPES", "Coming", "TokenStates", "choice"]

DTYPES = ("float32", "bfloat16", "float16")
_JOINS = ("sum", "concat")
_TOP = (-1,)
_TOKENS_AT_ONCE = {"cpu": 4096, "cuda": 131_072}


@dataclass(frozen=True, eq=False)
class Coming:
    """Vectors (texts, d), one array for every way they are made, which a device may still be at work on."""

    found: Sequence[torch.Tensor]
    done: torch.cuda.Event | None

    def vectors(self) -> list[NDArray[np.float32]]:
        """Wait for them."""
        if self.done is not None:
            self.done.synchronize()
        return [one.numpy() for one in self.found]


class TokenStates:
    """A model and the layers asked for: from the tokens of texts to one vector for each.

    Attributes
    ----------
    settings : dict
        Those that change the vectors.
    """

    def __init__(self, model: ModelName, checkpoint: Checkpoint) -> None:
        self._name, self._checkpoint, self._source = model, checkpoint, checkpoint.source
        self._depth = checkpoint.depth
        self._layers = _layers(model, self._depth)
        self._join = choice(model, "join", "sum", _JOINS)
        self._dtype = choice(model, "dtype", "float32", DTYPES)
        check_device(model)
        self._model: Any = None
        self._place: AbstractContextManager[Any] = nullcontext()
        self._one_at_a_time = threading.Lock()
        self.settings = self.settings_of(self._layers)

    @cached_property
    def device(self) -> str:
        return choose_device(self._name)

    def settings_of(self, layers: Layers) -> dict[str, str]:
        """The settings with which these layers would be asked for."""
        settings = {"layer": ",".join(map(str, layers))}
        if len(layers) > 1:
            settings["join"] = self._join
        if self._dtype != "float32":
            settings["dtype"] = self._dtype
        return settings

    @property
    def each_layer(self) -> list[Layers]:
        """Every layer by itself, the embedding first, the top last and as -1; what was asked for as it was written."""
        if self._depth is None:
            return [self._layers]
        single: list[Layers] = [*((number,) for number in range(self._depth)), _TOP]
        if len(self._layers) > 1:
            return [*single, self._layers]
        single[self._layers[0]] = self._layers
        return single

    def load(self) -> None:
        if self._model is None:
            import torch

            if self.device != "cpu":
                self._place = torch.cuda.device(torch.cuda.current_device())  # that of this thread, in any thread
            spread = check_device(self._name) == "auto"
            loaded = load_weights(self._source, "AutoModel", self._dtype, self.device, spread=spread)
            self._model = loaded.get_encoder() if self._checkpoint.config.is_encoder_decoder else loaded

    def vectors(self, tokenised: Tokenised, pooling: Pooling) -> NDArray[np.float32]:
        """Vectors (texts, d) of the layers asked for."""
        (vectors,) = self.begin(tokenised, [(self._layers, pooling)]).vectors()
        return vectors

    def begin(self, tokenised: Tokenised, ways: Sequence[Way], stopping: threading.Event | None = None) -> Coming:
        """Start the model on texts without waiting for the device. Several threads may do so.

        Parameters
        ----------
        tokenised : Tokenised
        ways : sequence of Way
            The vectors wanted, all from one pass.
        stopping : Event, optional
            If it is set meanwhile, raise `CancelledError` before the next piece.
        """
        import torch

        self.load()
        with self._one_at_a_time, self._place:
            pieces = list(self.pieces(tokenised))
            found = []
            for rows in pieces:
                if stopping is not None and stopping.is_set():
                    raise CancelledError
                found.append(self._pooled(tokenised, rows, ways))
            (order,) = self._send(np.argsort(np.concatenate(pieces)))
            whole = [torch.cat(parts) for parts in zip(*found, strict=True)]
            return self._receive([one[order.to(one.device)] for one in whole])

    @property
    def is_asynchronous(self) -> bool:
        """Whether the device computes on its own while this process continues."""
        return self.device != "cpu"

    def _send(self, *arrays: NDArray[Any]) -> list[torch.Tensor]:
        """Copy arrays to the device without waiting; only page-locked memory can be copied in the background."""
        import torch

        tensors = [torch.from_numpy(array) for array in arrays]
        if not self.is_asynchronous:
            return tensors
        return [one.pin_memory().to(self.device, non_blocking=True) for one in tensors]

    def _receive(self, vectors: Sequence[torch.Tensor]) -> Coming:
        """Copy vectors back from the device without waiting."""
        import torch

        if not self.is_asynchronous:
            return Coming(vectors, None)
        here = [torch.empty(one.shape, dtype=one.dtype, pin_memory=True) for one in vectors]
        for one, target in zip(vectors, here, strict=True):
            target.copy_(one, non_blocking=True)
        return Coming(here, torch.cuda.current_stream(vectors[0].device).record_event())

    def pieces(self, tokenised: Tokenised) -> Iterator[NDArray[np.intp]]:
        """Rows of the texts that go through the model together."""
        order = np.argsort(tokenised.lengths, kind="stable")
        return _by_size(order, tokenised, _TOKENS_AT_ONCE[self.device])

    def _pooled(self, tokenised: Tokenised, rows: NDArray[np.intp], ways: Sequence[Way]) -> list[torch.Tensor]:
        """Vectors of some texts; if they do not fit into memory, of each half in turn."""
        import torch

        def forward(rows: NDArray[np.intp]) -> list[torch.Tensor]:
            with torch.inference_mode():
                return self._forward(tokenised, rows, ways)

        halves = in_halves(self._source.name, forward, rows, halves_of)
        return [torch.cat(parts) for parts in zip(*halves, strict=True)]

    def _forward(self, tokenised: Tokenised, rows: NDArray[np.intp], ways: Sequence[Way]) -> list[torch.Tensor]:
        import torch

        ids, mask, words = self._send(*tokenised.padded(rows))
        states = self.run(ids, mask, [layers for layers, _ in ways])
        found = []
        for own, (_, pooling) in zip(states, ways, strict=True):
            pooled = [pooling(state, mask, words).float() for state in own]
            joined = torch.cat(pooled, dim=1) if self._join == "concat" else torch.stack(pooled).sum(dim=0)
            found.append(joined)
        return found

    def run(self, ids: torch.Tensor, mask: torch.Tensor, wanted: Sequence[Layers] = ()) -> list[list[torch.Tensor]]:
        """States (texts, tokens, d) of all layers wanted, by default those asked for."""
        wanted = wanted or [self._layers]
        with without_plans(self.device, ids.shape[1]):
            output = self._model(input_ids=ids, attention_mask=mask, output_hidden_states=set(wanted) != {_TOP})
        return [
            [output.last_hidden_state] if layers == _TOP else [output.hidden_states[i] for i in layers]
            for layers in wanted
        ]


def _by_size(order: NDArray[np.intp], tokenised: Tokenised, most: int) -> Iterator[NDArray[np.intp]]:
    """Texts of like length together, as many as the number of padded tokens allows."""
    lengths, start = tokenised.lengths[order], 0
    while start < len(order):
        padded = np.arange(1, len(order) - start + 1) * lengths[start:]
        end = start + max(1, int(np.searchsorted(padded, most, side="right")))
        yield order[start:end]
        start = end


def choice(model: ModelName, setting: str, default: str, allowed: tuple[str, ...]) -> str:
    value = model.settings.get(setting, default)
    if value not in allowed:
        raise UnknownNameError(f"{setting} of model {model.text!r}:", value, allowed, f"(one of {', '.join(allowed)})")
    return value


def _layers(model: ModelName, depth: int | None) -> Layers:
    try:
        layers = tuple(int(part) for part in model.settings.get("layer", "-1").split(","))
    except ValueError as error:
        raise UsageError(f"model {model.text!r}: layer is a number or several with commas between them") from error
    for layer in layers:
        if depth is not None and not -depth - 1 <= layer <= depth:
            raise UsageError(
                f"model {model.text!r} has no layer {layer}: 0 is the embedding, 1 to {depth} the layers, -1 the top"
            )
    return layers
