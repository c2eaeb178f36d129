"""Old checkpoints are pickles, and a pickle can run any program. Only tensors and words are read out of them.

Tensors pass through PyTorch's ``weights_only`` loader, vocabularies through an unpickler that knows no class and no
function. What recurrent encoders share is here too: layers made of checked tensors, run without padding.
"""

from __future__ import annotations

import hashlib
import pickle
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from biassay.errors import ModelError
from biassay.models.vector_files import file_fingerprint

if TYPE_CHECKING:
    import torch

__all__ = ["BiRnn", "check_stored_inside", "fingerprint", "load_tensors", "load_vocabulary", "tensor"]

Tensors = Mapping[str, "torch.Tensor"]
_GATES = {"LSTM": 4, "GRU": 3}
# A token of the largest published model takes about 100 kB while it is worked on.
_TOKENS_AT_ONCE = {"cpu": 4096, "cuda": 32_768}


def fingerprint(files: Sequence[Path]) -> str:
    """A digest of the content of some files."""
    return hashlib.blake2b(" ".join(map(file_fingerprint, files)).encode(), digest_size=16).hexdigest()


def check_stored_inside(path: Path, data_set: Any) -> None:
    """Refuse a data set of an HDF5 file that is a link to another file: its content is not part of the fingerprint."""
    elsewhere = getattr(data_set, "is_virtual", False) or getattr(data_set, "external", None)
    if elsewhere or Path(data_set.file.filename) != path:
        raise ModelError(f"{path}: {data_set.name} is stored in another file; write all data into one file")


def load_tensors(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a state dict by name, on the CPU. A file that holds anything else is refused, and not run."""
    import torch

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the age of the file; what comes out of it is checked
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from error
    except Exception as error:  # a damaged pickle fails in every way there is
        raise ModelError(f"{path}: {_refusal(error)}") from error
    if not isinstance(loaded, dict) or not loaded:
        raise ModelError(f"{path}: expected a state dict of named tensors, got {type(loaded).__name__}")
    for name, value in loaded.items():
        if not isinstance(name, str) or not isinstance(value, torch.Tensor):
            raise ModelError(f"{path}: expected named tensors only, got {type(value).__name__} under {name!r}")
        if value.layout is not torch.strided or value.is_quantized or value.device.type != "cpu":
            raise ModelError(f"{path}: the tensor {name!r} is sparse, quantised or empty of values")
    return loaded


def _refusal(error: Exception) -> str:
    asked = re.search(r"GLOBAL ([\w.]+)", str(error))
    if asked is None:
        return f"not a checkpoint of torch.save, or a damaged one ({type(error).__name__})"
    return (
        f"the checkpoint holds more than tensors: it asks for {asked[1]!r}, code that would run on this machine, so it "
        "is refused. A pickled module (such as infersent.allnli.pickle) has to be converted to a state dict once, "
        "where you trust it and have its source: torch.save(torch.load(OLD, weights_only=False).state_dict(), NEW)"
    )


class _Latin1:
    """What stands in for ``_codecs.encode``: with it Python 3 writes bytes so that Python 2 can read them."""

    __slots__ = ()

    def __call__(self, text: object, encoding: object = "latin1") -> bytes:
        if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
            raise pickle.UnpicklingError(f"_codecs.encode asked for {encoding!r}")
        return text.encode("latin-1")


class _PlainUnpickler(pickle.Unpickler):
    """Admits numbers, strings, bytes, lists, tuples and dicts: every other thing needs a global, and gets none."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        super().__init__(file, encoding="bytes")  # Python 2 strings are bytes; which letters they mean is seen later
        self._path = path

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if (module_name, global_name) == ("_codecs", "encode"):
            return _Latin1()
        raise ModelError(
            f"{self._path}: the vocabulary asks for '{module_name}.{global_name}', which no vocabulary needs and "
            "which could run a program, so it is refused; write it again with plain dicts, strings and numbers"
        )


def load_vocabulary(path: Path) -> dict[str, int]:
    """Words and their numbers, from a pickle of ``{'word2id': {word: number}, ...}`` by Python 2 or 3."""
    try:
        with path.open("rb") as file:
            loaded = _PlainUnpickler(file, path).load()
    except ModelError:
        raise
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from error
    except Exception as error:  # a damaged pickle fails in every way there is
        raise ModelError(f"{path}: not a pickled vocabulary, or a damaged one ({error!r})") from error
    return _words(loaded, path)


def _words(loaded: object, path: Path) -> dict[str, int]:
    table = loaded.get("word2id", loaded.get(b"word2id")) if isinstance(loaded, dict) else None
    if not isinstance(table, dict):
        raise ModelError(f"{path}: expected a dict with an entry 'word2id', a dict from words to numbers")
    words: dict[str, int] = {}
    for key, number in table.items():
        if not isinstance(key, str | bytes) or type(number) is not int:
            raise ModelError(f"{path}: word2id maps words to whole numbers, got {key!r}: {number!r}")
        try:
            words[key.decode() if isinstance(key, bytes) else key] = number
        except UnicodeDecodeError:
            continue  # cut inside a letter when the corpus was prepared: no text can hold it
    return words


def tensor(path: Path, tensors: Tensors, name: str, shape: tuple[int | None, ...]) -> torch.Tensor:
    """One tensor of a checkpoint in float32, or an error that names it. None in ``shape``: any size."""
    found = tensors.get(name)
    if found is None:
        raise ModelError(f"{path}: the checkpoint lacks the tensor {name!r}; it has {', '.join(sorted(tensors)[:12])}")
    fits = len(shape) == found.ndim and all(s in (None, f) for s, f in zip(shape, found.shape, strict=True))
    if not fits or 0 in found.shape:
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise ModelError(f"{path}: the tensor {name!r} has the shape {tuple(found.shape)}; expected ({wanted})")
    if not found.is_floating_point() or not bool(found.isfinite().all()):
        raise ModelError(f"{path}: the tensor {name!r} ({found.dtype}) holds values that are not finite real numbers")
    return found.float()


def _depth(tensors: Tensors, prefix: str) -> int:
    """Number of layers, from whatever part of the topmost one is there: a part that is not will be missed."""
    numbers = [re.fullmatch(rf"{re.escape(prefix)}\.\w+_l(\d+)(_reverse)?", name) for name in tensors]
    return 1 + max((int(match[1]) for match in numbers if match), default=0)


class BiRnn:
    """Bidirectional recurrent layers from a checkpoint.

    Parameters
    ----------
    path : Path
        The checkpoint, for messages.
    tensors : name -> tensor
        All tensors of the checkpoint.
    kind : {"LSTM", "GRU"}
    prefix : str
        What the names of the layers' tensors begin with.
    others : tuple of str
        Names of the tensors that belong to something else. One that belongs to nothing is an error: what it was for
        would be left out.
    """

    def __init__(
        self,
        path: Path,
        tensors: Tensors,
        kind: Literal["LSTM", "GRU"],
        prefix: str,
        device: str,
        others: tuple[str, ...] = (),
    ) -> None:
        import torch

        state = _layer_tensors(path, tensors, _GATES[kind], prefix)
        strange = sorted(set(tensors) - {f"{prefix}.{name}" for name in state} - set(others))
        if strange:
            raise ModelError(f"{path}: the checkpoint has tensors that this family has not: {', '.join(strange[:5])}")
        rows, self.dimension = state["weight_ih_l0"].shape
        made = getattr(torch.nn, kind)(
            self.dimension,
            rows // _GATES[kind],
            num_layers=_depth(tensors, prefix),
            bidirectional=True,
            device="meta",  # holds no numbers, so that none can be left in place
        )
        made.load_state_dict(state, assign=True)
        self._layers = made.to(device).eval()
        self._layers.flatten_parameters()
        self._device = device

    def pooled(self, sequences: Sequence[NDArray[np.float32]], pool: Literal["max", "last"]) -> NDArray[np.float32]:
        """One vector for each sequence (tokens, dimension), whatever the others are.

        ``max``: over the tokens, [forward | backward]. ``last`` (GRU): final states of the top layer,
        [backward | forward].
        """
        import torch

        vectors = np.empty((len(sequences), 2 * self._layers.hidden_size), dtype=np.float32)
        with torch.inference_mode(), _full_precision(self._device):
            for rows in _by_size([len(s) for s in sequences], _TOKENS_AT_ONCE[self._device]):
                vectors[rows] = self._run([sequences[row] for row in rows], pool).cpu().numpy()
        return vectors

    def _run(self, sequences: Sequence[NDArray[np.float32]], pool: Literal["max", "last"]) -> torch.Tensor:
        import torch
        from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

        # Packed, so that the backward direction begins at a text's last token and not in the padding.
        packed = pack_sequence([torch.from_numpy(s).to(self._device) for s in sequences], enforce_sorted=False)
        outputs, final = self._layers(packed)
        if pool == "last":
            return torch.cat([final[-1], final[-2]], dim=1)
        states, _ = pad_packed_sequence(outputs, padding_value=-torch.inf)
        return states.amax(dim=0)


def _layer_tensors(path: Path, tensors: Tensors, gates: int, prefix: str) -> dict[str, torch.Tensor]:
    """The layers' tensors, named as PyTorch does; sizes follow from the first two."""
    size = tensor(path, tensors, f"{prefix}.weight_ih_l0", (None, None)).shape[1]
    hidden = tensor(path, tensors, f"{prefix}.weight_hh_l0", (None, None)).shape[1]
    state = {}
    for layer in range(_depth(tensors, prefix)):
        shapes = {"weight_ih": (gates * hidden, size if layer == 0 else 2 * hidden)}
        shapes["weight_hh"] = (gates * hidden, hidden)
        for direction in ("", "_reverse"):
            for part, shape in {
                **shapes,
                "bias_ih": shapes["weight_hh"][:1],
                "bias_hh": shapes["weight_hh"][:1],
            }.items():
                name = f"{part}_l{layer}{direction}"
                state[name] = tensor(path, tensors, f"{prefix}.{name}", shape)
    return state


def _full_precision(device: str) -> AbstractContextManager[None]:
    """cuDNN rounds the numbers of recurrent layers to TF32 if it may: vectors off by 4e-4, under the same identity."""
    import torch

    return nullcontext() if device == "cpu" else torch.backends.cudnn.flags(enabled=True, allow_tf32=False)


def _by_size(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Rows of like length together, as many as the number of tokens with padding allows."""
    rows: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if rows and (len(rows) + 1) * lengths[row] > most:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows
