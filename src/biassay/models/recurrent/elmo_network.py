"""ELMo weights and network in torch; import it only when torch is needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from biassay.errors import ModelError
from biassay.models.recurrent.elmo import N_CHARACTERS, ElmoOptions
from biassay.models.recurrent.pickled_checkpoints import check_not_external

TEXT_START, TEXT_END = "<S>", "</S>"
_TEXT_START_ID, _TEXT_END_ID, _WORD_START_ID, _WORD_END_ID, _PADDING_ID = 256, 257, 258, 259, 260
_BOUNDARIES = {TEXT_START: [_TEXT_START_ID], TEXT_END: [_TEXT_END_ID]}

# Limits of memory, about 100 MB each for the published network on a CPU.
_MAX_BATCH_WORDS = 256
_MAX_BATCH_POSITIONS = {"cpu": 4096, "cuda": 65_536}
_MAX_CACHED_WORDS = 20_000


def character_ids(word: str, length: int) -> list[int]:
    """Return the ids of a word's bytes between two markers, truncated to `length`."""
    content = _BOUNDARIES.get(word) or list(word.encode("utf-8", "ignore")[: length - 2])
    return [_WORD_START_ID, *content, _WORD_END_ID]


def list_datasets(options: ElmoOptions) -> dict[str, tuple[int, ...]]:
    """Return name and shape of every data set that the weights must contain."""
    width, out = sum(count for _, count in options.filters), options.projection
    shapes: dict[str, tuple[int, ...]] = {"char_embed": (N_CHARACTERS, options.embedding)}
    for i, (size, count) in enumerate(options.filters):
        shapes |= {f"CNN/W_cnn_{i}": (1, size, options.embedding, count), f"CNN/b_cnn_{i}": (count,)}
    for i in range(options.highways):
        for gate in ("carry", "transform"):
            shapes |= {f"CNN_high_{i}/W_{gate}": (width, width), f"CNN_high_{i}/b_{gate}": (width,)}
    shapes |= {"CNN_proj/W_proj": (width, out), "CNN_proj/b_proj": (out,)}
    for direction in (0, 1):
        for layer in range(options.layers):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            shapes |= {f"{cell}/W_0": (2 * out, 4 * options.cell), f"{cell}/B": (4 * options.cell,)}
            shapes |= {f"{cell}/W_P_0": (options.cell, out)}
    return shapes


def read_weights(path: Path, shapes: dict[str, tuple[int, ...]]) -> dict[str, NDArray[np.float32]]:
    """Read all data sets; raise ModelError if one is missing, unexpected or has another shape."""
    h5py: Any = import_module("h5py")  # it has no types
    try:
        with h5py.File(path, "r") as file:
            _check_complete(path, _list_names(h5py, file), shapes)
            return {name: _read_array(path, file[name], name, shape) for name, shape in shapes.items()}
    except (OSError, KeyError, RuntimeError, ValueError, TypeError) as error:  # damaged files
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{path}: damaged, or not an HDF5 file: {error}; download it again") from error


def _list_names(h5py: Any, file: Any) -> list[str]:
    found: list[str] = []
    file.visititems(lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) else None)
    return found


def _check_complete(path: Path, found: Iterable[str], shapes: dict[str, tuple[int, ...]]) -> None:
    present = set(found)
    missing = [name for name in shapes if name not in present]
    if missing:
        raise ModelError(
            f"{path}: {len(missing)} of {len(shapes)} data sets are missing; the options require {missing[0]} "
            f"of shape {shapes[missing[0]]}"
        )
    # A layer that the options do not mention would be ignored.
    extra = sorted(name for name in present - set(shapes) if name.startswith(("CNN", "RNN")))
    if extra:
        raise ModelError(f"{path}: the data set {extra[0]} is not part of the network that the options describe")


def _read_array(path: Path, item: Any, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    check_not_external(path, item)
    if item.shape != shape:
        raise ModelError(f"{path}: {name} has the shape {item.shape}; the options require {shape}")
    if item.dtype.kind != "f":
        raise ModelError(f"{path}: {name} holds {item.dtype}, expected floating-point numbers")
    with np.errstate(over="ignore"):  # values too large for float32 raise an error below
        values = np.asarray(item[()], dtype=np.float32)
    if not np.isfinite(values).all():
        raise ModelError(f"{path}: {name} has values that are not finite; download the file again")
    return values


class ElmoNetwork:
    """Run the ELMo network on a device."""

    def __init__(self, options: ElmoOptions, weights: Mapping[str, NDArray[np.float32]], device: str) -> None:
        auto = "cuda" if torch.cuda.is_available() else "cpu"
        self._device = torch.device(auto if device == "auto" else device)
        self._options = options
        self._activation = torch.relu if options.activation == "relu" else torch.tanh
        self._weights = {name: torch.from_numpy(array).to(self._device) for name, array in weights.items()}
        self._cells = [self._cell(layer) for layer in range(options.layers)]
        self._word_cache: dict[str, Tensor] = {}

    def _cell(self, layer: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return weights (2, ...), bias (2, 1, ...) and projection (2, ...) of a layer, both directions stacked."""
        names = [f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell" for direction in (0, 1)]
        # Removed from the dictionary, because the stack is a copy of the largest part of the model.
        weight, bias, projection = (
            torch.stack([self._weights.pop(f"{name}/{part}") for name in names]) for part in ("W_0", "B", "W_P_0")
        )
        return weight, bias[:, None], projection

    @torch.inference_mode()
    def word_vectors(self, words: Sequence[str]) -> Tensor:
        """Return context-free vectors (words, projection); vectors of recent words are cached."""
        if len(self._word_cache) > _MAX_CACHED_WORDS:
            self._word_cache.clear()
        # By length, to avoid padding.
        new = sorted({word for word in words if word not in self._word_cache}, key=lambda word: (len(word), word))
        for start in range(0, len(new), _MAX_BATCH_WORDS):
            part = new[start : start + _MAX_BATCH_WORDS]
            self._word_cache.update(zip(part, self._from_characters(part), strict=True))
        return torch.stack([self._word_cache[word] for word in words])

    def _from_characters(self, words: Sequence[str]) -> Tensor:
        weights = self._weights
        letters = weights["char_embed"][self._pad_characters(words)]
        x = torch.cat([self._convolve(letters, i) for i in range(len(self._options.filters))], dim=1)
        for i in range(self._options.highways):
            gate = torch.sigmoid(x @ weights[f"CNN_high_{i}/W_carry"] + weights[f"CNN_high_{i}/b_carry"])
            transformed = torch.relu(x @ weights[f"CNN_high_{i}/W_transform"] + weights[f"CNN_high_{i}/b_transform"])
            x = gate * transformed + (1 - gate) * x
        return x @ weights["CNN_proj/W_proj"] + weights["CNN_proj/b_proj"]

    def _pad_characters(self, words: Sequence[str]) -> Tensor:
        """Return ids (words, length) with one window of padding; more would not change the maximum over windows."""
        ids = [character_ids(word, self._options.word_length) for word in words]
        widest = max(width for width, _ in self._options.filters)
        length = min(self._options.word_length, max(map(len, ids)) + widest)
        return torch.tensor([row + [_PADDING_ID] * (length - len(row)) for row in ids], device=self._device)

    def _convolve(self, letters: Tensor, i: int) -> Tensor:
        """Apply the filters of one width and take the maximum: (words, length, embedding) to (words, filters).

        A matrix product, because convolutions on a GPU may round to ten bits.
        """
        width, count = self._options.filters[i]
        windows = letters.unfold(1, width, 1).transpose(2, 3).flatten(2)
        scores = windows @ self._weights[f"CNN/W_cnn_{i}"].reshape(-1, count) + self._weights[f"CNN/b_cnn_{i}"]
        return self._activation(scores.amax(dim=1))

    def run(self, texts: Sequence[Sequence[str]]) -> Iterator[tuple[int, Tensor]]:
        """Yield row and states (layers + 1, words, 2 * projection) of each text, longest texts first."""
        order = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
        max_positions = _MAX_BATCH_POSITIONS[self._device.type]
        while order:
            count = max(1, max_positions // (len(texts[order[0]]) + 2))
            batch, order = order[:count], order[count:]
            states = self._states([[TEXT_START, *texts[row], TEXT_END] for row in batch])
            for i, row in enumerate(batch):
                yield row, states[:, i, 1 : len(texts[row]) + 1]

    @torch.inference_mode()
    def _states(self, texts: Sequence[Sequence[str]]) -> Tensor:
        """Return states (layers + 1, texts, positions, 2 * projection) of texts with boundaries, longest first."""
        lengths = torch.tensor([len(text) for text in texts])
        words = self._pad_texts(texts)
        positions = torch.arange(words.shape[1])
        reverse = torch.where(positions < lengths[:, None], lengths[:, None] - 1 - positions, positions)
        reverse = reverse.to(self._device)
        rows = torch.arange(len(texts), device=self._device)[:, None]
        # Each text is reversed within its own length, so that padding follows it in both directions.
        x = torch.stack([words, words[rows, reverse]])
        n_active = (lengths[:, None] > positions).sum(dim=0).tolist()
        layers = [x]
        for number, cell in enumerate(self._cells):
            out = self._run_layer(cell, x, n_active)
            x = out + x if self._options.skip and number > 0 else out
            layers.append(x)
        return torch.stack([torch.cat([forward, back[rows, reverse]], dim=2) for forward, back in layers])

    def _pad_texts(self, texts: Sequence[Sequence[str]]) -> Tensor:
        distinct = {word: i for i, word in enumerate(dict.fromkeys(word for text in texts for word in text))}
        longest = len(texts[0])
        # Padding is never read, so any word will do.
        ids = [[distinct[word] for word in text] + [0] * (longest - len(text)) for text in texts]
        return self.word_vectors(list(distinct))[torch.tensor(ids, device=self._device)]

    def _run_layer(self, cell: tuple[Tensor, Tensor, Tensor], inputs: Tensor, n_active: Sequence[int]) -> Tensor:
        """Run both directions (2, texts, positions, projection); step t processes the first ``n_active[t]`` texts."""
        weight, bias, projection = cell
        clip, clip_out = self._options.cell_clip, self._options.projection_clip
        outputs = torch.zeros_like(inputs)
        hidden = torch.zeros_like(inputs[:, :, 0])
        memory = hidden.new_zeros(*hidden.shape[:2], self._options.cell)
        for t, n in enumerate(n_active):
            step = torch.cat([inputs[:, :n, t], hidden[:, :n]], dim=2)
            input_gate, candidate, forget, output = torch.baddbmm(bias, step, weight).chunk(4, dim=2)
            # The forget bias of 1 is not in the file.
            memory = torch.sigmoid(input_gate) * torch.tanh(candidate) + torch.sigmoid(forget + 1) * memory[:, :n]
            memory = _clip(memory, clip)
            hidden = _clip(torch.bmm(torch.sigmoid(output) * torch.tanh(memory), projection), clip_out)
            outputs[:, :n, t] = hidden
        return outputs


def _clip(values: Tensor, limit: float | None) -> Tensor:
    return values if limit is None else values.clamp(-limit, limit)
