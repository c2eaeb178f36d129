"""The weights and the network of ELMo, in torch. Imported only where torch is needed."""

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
from biassay.models.elmo import CHARACTERS, Options
from biassay.models.old_checkpoints import check_stored_inside

__all__ = ["TEXT_BEGIN", "TEXT_END", "ElmoModel", "character_ids", "data_sets", "read_weights"]

TEXT_BEGIN, TEXT_END = "<S>", "</S>"
_TEXT_BEGIN_ID, _TEXT_END_ID, _WORD_BEGIN_ID, _WORD_END_ID, _FILLING_ID = 256, 257, 258, 259, 260
_BOUNDARIES = {TEXT_BEGIN: [_TEXT_BEGIN_ID], TEXT_END: [_TEXT_END_ID]}

# These bound the memory whatever the number of texts: on a CPU, to some 100 MB each for the published network.
_WORDS_AT_ONCE = 256
_PLACES_AT_ONCE = {"cpu": 4096, "cuda": 65_536}
_WORDS_KEPT = 20_000


def character_ids(word: str, length: int) -> list[int]:
    """A word as the ids of its bytes between two marks; what is longer than ``length`` allows is cut off."""
    content = _BOUNDARIES.get(word) or list(word.encode("utf-8", "ignore")[: length - 2])
    return [_WORD_BEGIN_ID, *content, _WORD_END_ID]


def data_sets(options: Options) -> dict[str, tuple[int, ...]]:
    """Name and shape of every data set that the weights must hold."""
    width, out = sum(count for _, count in options.filters), options.projection
    shapes: dict[str, tuple[int, ...]] = {"char_embed": (CHARACTERS, options.embedding)}
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
    """Every data set named, checked before it is read; nothing is ever filled in."""
    h5py: Any = import_module("h5py")  # it comes without types
    try:
        with h5py.File(path, "r") as file:
            _check_complete(path, _names(h5py, file), shapes)
            return {name: _array(path, file[name], name, shape) for name, shape in shapes.items()}
    except (OSError, KeyError, RuntimeError, ValueError, TypeError) as error:  # whatever a damaged file makes of h5py
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{path}: damaged, or not an HDF5 file: {error}; fetch it again") from error


def _names(h5py: Any, file: Any) -> list[str]:
    found: list[str] = []
    file.visititems(lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) else None)
    return found


def _check_complete(path: Path, found: Iterable[str], shapes: dict[str, tuple[int, ...]]) -> None:
    present = set(found)
    missing = [name for name in shapes if name not in present]
    if missing:
        raise ModelError(
            f"{path}: {len(missing)} of {len(shapes)} data sets are missing, the first is {missing[0]} "
            f"of shape {shapes[missing[0]]}; the options ask for it"
        )
    # A layer that the options do not mention would be left out without a word.
    extra = sorted(name for name in present - set(shapes) if name.startswith(("CNN", "RNN")))
    if extra:
        raise ModelError(f"{path}: the data set {extra[0]} has no place in the network that the options describe")


def _array(path: Path, item: Any, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    check_stored_inside(path, item)
    if item.shape != shape:
        raise ModelError(f"{path}: {name} has the shape {item.shape}, the options ask for {shape}")
    if item.dtype.kind != "f":
        raise ModelError(f"{path}: {name} holds {item.dtype}, expected floating-point numbers")
    with np.errstate(over="ignore"):  # what is too large for float32 is refused below
        values = np.asarray(item[()], dtype=np.float32)
    if not np.isfinite(values).all():
        raise ModelError(f"{path}: {name} holds numbers that are not finite; fetch the file again")
    return values


class ElmoModel:
    """Weights on a device, and the way through them."""

    def __init__(self, options: Options, weights: Mapping[str, NDArray[np.float32]], device: str) -> None:
        auto = "cuda" if torch.cuda.is_available() else "cpu"
        self._device = torch.device(auto if device == "auto" else device)
        self._options = options
        self._activation = torch.relu if options.activation == "relu" else torch.tanh
        self._weights = {name: torch.from_numpy(array).to(self._device) for name, array in weights.items()}
        self._cells = [self._cell(layer) for layer in range(options.layers)]
        self._kept: dict[str, Tensor] = {}

    def _cell(self, layer: int) -> tuple[Tensor, Tensor, Tensor]:
        """Weights (2, ...), bias (2, 1, ...) and projection (2, ...) of a layer, forward and backward stacked."""
        names = [f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell" for direction in (0, 1)]
        # Taken out of the dictionary, since the stack is a copy and these are most of the model.
        weight, bias, projection = (
            torch.stack([self._weights.pop(f"{name}/{part}") for name in names]) for part in ("W_0", "B", "W_P_0")
        )
        return weight, bias[:, None], projection

    @torch.inference_mode()
    def word_vectors(self, words: Sequence[str]) -> Tensor:
        """Vectors (words, projection) without context; each distinct word is computed once and kept for a while."""
        if len(self._kept) > _WORDS_KEPT:
            self._kept.clear()
        # By length, so that short words are not filled up to the length of the longest.
        new = sorted({word for word in words if word not in self._kept}, key=lambda word: (len(word), word))
        for start in range(0, len(new), _WORDS_AT_ONCE):
            part = new[start : start + _WORDS_AT_ONCE]
            self._kept.update(zip(part, self._from_characters(part), strict=True))
        return torch.stack([self._kept[word] for word in words])

    def _from_characters(self, words: Sequence[str]) -> Tensor:
        get = self._weights
        letters = get["char_embed"][self._characters(words)]
        x = torch.cat([self._convolved(letters, i) for i in range(len(self._options.filters))], dim=1)
        for i in range(self._options.highways):
            gate = torch.sigmoid(x @ get[f"CNN_high_{i}/W_carry"] + get[f"CNN_high_{i}/b_carry"])
            changed = torch.relu(x @ get[f"CNN_high_{i}/W_transform"] + get[f"CNN_high_{i}/b_transform"])
            x = gate * changed + (1 - gate) * x
        return x @ get["CNN_proj/W_proj"] + get["CNN_proj/b_proj"]

    def _characters(self, words: Sequence[str]) -> Tensor:
        """Ids (words, places), filled up only as far as it matters.

        Convolutions see more than one window of filling alone as the same again, and the maximum is over windows.
        """
        ids = [character_ids(word, self._options.word_length) for word in words]
        widest = max(width for width, _ in self._options.filters)
        places = min(self._options.word_length, max(map(len, ids)) + widest)
        filled = [row + [_FILLING_ID] * (places - len(row)) for row in ids]
        return torch.tensor(filled, device=self._device)

    def _convolved(self, letters: Tensor, i: int) -> Tensor:
        """One filter width, maximum over places: (words, places, embedding) to (words, filters).

        A product of matrices, because convolutions on a GPU may round to ten bits.
        """
        width, count = self._options.filters[i]
        windows = letters.unfold(1, width, 1).transpose(2, 3).flatten(2)
        scores = windows @ self._weights[f"CNN/W_cnn_{i}"].reshape(-1, count) + self._weights[f"CNN/b_cnn_{i}"]
        return self._activation(scores.amax(dim=1))

    def run(self, texts: Sequence[Sequence[str]]) -> Iterator[tuple[int, Tensor]]:
        """Row and states (layers + 1, words, 2 * projection) of every text, the longest texts first."""
        order = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
        most = _PLACES_AT_ONCE[self._device.type]
        while order:
            count = max(1, most // (len(texts[order[0]]) + 2))
            batch, order = order[:count], order[count:]
            states = self._states([[TEXT_BEGIN, *texts[row], TEXT_END] for row in batch])
            for place, row in enumerate(batch):
                yield row, states[:, place, 1 : len(texts[row]) + 1]

    @torch.inference_mode()
    def _states(self, texts: Sequence[Sequence[str]]) -> Tensor:
        """States (layers + 1, texts, places, 2 * projection) of texts with their boundaries, longest first."""
        lengths = torch.tensor([len(text) for text in texts])
        words = self._filled(texts)
        places = torch.arange(words.shape[1])
        turned = torch.where(places < lengths[:, None], lengths[:, None] - 1 - places, places).to(self._device)
        rows = torch.arange(len(texts), device=self._device)[:, None]
        # Each text is turned round within its own length, so that in both directions filling comes after it.
        x = torch.stack([words, words[rows, turned]])
        alive = (lengths[:, None] > places).sum(dim=0).tolist()
        layers = [x]
        for number, cell in enumerate(self._cells):
            out = self._layer(cell, x, alive)
            x = out + x if self._options.skip and number > 0 else out
            layers.append(x)
        return torch.stack([torch.cat([forward, back[rows, turned]], dim=2) for forward, back in layers])

    def _filled(self, texts: Sequence[Sequence[str]]) -> Tensor:
        distinct = {word: i for i, word in enumerate(dict.fromkeys(word for text in texts for word in text))}
        longest = len(texts[0])
        # The filling is never read: any word does.
        ids = [[distinct[word] for word in text] + [0] * (longest - len(text)) for text in texts]
        return self.word_vectors(list(distinct))[torch.tensor(ids, device=self._device)]

    def _layer(self, cell: tuple[Tensor, Tensor, Tensor], inputs: Tensor, alive: Sequence[int]) -> Tensor:
        """Both directions (2, texts, places, projection) from zero state; step ``t`` takes the texts that reach it."""
        weight, bias, projection = cell
        clip, clip_out = self._options.cell_clip, self._options.projection_clip
        outputs = torch.zeros_like(inputs)
        hidden = torch.zeros_like(inputs[:, :, 0])
        memory = hidden.new_zeros(*hidden.shape[:2], self._options.cell)
        for t, n in enumerate(alive):
            seen = torch.cat([inputs[:, :n, t], hidden[:, :n]], dim=2)
            enter, candidate, keep, leave = torch.baddbmm(bias, seen, weight).chunk(4, dim=2)
            # The forget bias of 1 is not in the file.
            memory = torch.sigmoid(enter) * torch.tanh(candidate) + torch.sigmoid(keep + 1) * memory[:, :n]
            memory = _clipped(memory, clip)
            hidden = _clipped(torch.bmm(torch.sigmoid(leave) * torch.tanh(memory), projection), clip_out)
            outputs[:, :n, t] = hidden
        return outputs


def _clipped(values: Tensor, limit: float | None) -> Tensor:
    return values if limit is None else values.clamp(-limit, limit)
