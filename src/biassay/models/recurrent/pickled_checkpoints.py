"""Read old pickled checkpoints without running code, and run recurrent layers from them.

A pickle can run any program. Tensors are read by PyTorch's ``weights_only`` loader, vocabularies by an unpickler
without classes and functions.
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


Tensors = Mapping[str, "torch.Tensor"]
_GATES = {"LSTM": 4, "GRU": 3}
# A token of the largest published model needs about 100 kB.
_MAX_BATCH_TOKENS = {"cpu": 4096, "cuda": 32_768}


def fingerprint_files(files: Sequence[Path]) -> str:
    """Hash the content of several files."""
    return hashlib.blake2b(" ".join(map(file_fingerprint, files)).encode(), digest_size=16).hexdigest()


def get_only_file(folder: Path, expected: str, files: Sequence[Path], layout: str) -> Path:
    """Return the only matching file. Raise ModelError if there are several or none.

    Parameters
    ----------
    folder : Path
        The model's folder.
    expected : str
        Description of the file, for the error message.
    files : sequence of Path
        Files that match the description.
    layout : str
        Description of the folder, for the error message.
    """
    if len(files) != 1:
        names = ", ".join(file.name for file in files) or "none"
        raise ModelError(f"{folder}: expected one {expected}, got {names}; {layout}")
    return files[0]


def check_not_external(path: Path, data_set: Any) -> None:
    """Raise ModelError if an HDF5 data set is stored in another file, which the fingerprint does not cover."""
    elsewhere = getattr(data_set, "is_virtual", False) or getattr(data_set, "external", None)
    if elsewhere or Path(data_set.file.filename) != path:
        raise ModelError(f"{path}: {data_set.name} is stored in another file; write all data into one file")


def load_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Load a state dict to the CPU; raise ModelError if the file has anything else."""
    import torch

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the age of the file
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from error
    except Exception as error:  # damaged pickles fail in many ways
        raise ModelError(f"{path}: {_explain_refusal(error)}") from error
    if not isinstance(loaded, dict) or not loaded:
        raise ModelError(f"{path}: expected a state dict of named tensors, got {type(loaded).__name__}")
    for name, value in loaded.items():
        if not isinstance(name, str) or not isinstance(value, torch.Tensor):
            raise ModelError(f"{path}: expected named tensors only, got {type(value).__name__} under {name!r}")
        if value.layout is not torch.strided or value.is_quantized or value.device.type != "cpu":
            raise ModelError(f"{path}: the tensor {name!r} is sparse, quantised or has no values")
    return loaded


def _explain_refusal(error: Exception) -> str:
    match = re.search(r"GLOBAL ([\w.]+)", str(error))
    if match is None:
        return f"not a checkpoint of torch.save, or a damaged one ({type(error).__name__})"
    return (
        f"the checkpoint contains code that would run on this machine: {match[1]!r}. Convert a pickled module (such as "
        "infersent.allnli.pickle) to a state dict once, where you trust it and have its source: "
        "torch.save(torch.load(OLD, weights_only=False).state_dict(), NEW)"
    )


class _Latin1Encoder:
    """Replace ``_codecs.encode``, with which Python 3 pickles bytes for Python 2."""

    __slots__ = ()

    def __call__(self, text: object, encoding: object = "latin1") -> bytes:
        if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
            raise pickle.UnpicklingError(f"_codecs.encode with the encoding {encoding!r}")
        return text.encode("latin-1")


class _PlainUnpickler(pickle.Unpickler):
    """Unpickle numbers, strings, bytes, lists, tuples and dicts; everything else needs a global and fails."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        super().__init__(file, encoding="bytes")  # strings of Python 2 are decoded later
        self._path = path

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if (module_name, global_name) == ("_codecs", "encode"):
            return _Latin1Encoder()
        raise ModelError(
            f"{self._path}: the vocabulary contains '{module_name}.{global_name}', which could run code; write it "
            "again with plain dicts, strings and numbers"
        )


def load_vocabulary(path: Path) -> dict[str, int]:
    """Read ``{'word2id': {word: number}, ...}`` from a pickle of Python 2 or 3."""
    try:
        with path.open("rb") as file:
            loaded = _PlainUnpickler(file, path).load()
    except ModelError:
        raise
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from error
    except Exception as error:  # damaged pickles fail in many ways
        raise ModelError(f"{path}: not a pickled vocabulary, or a damaged one ({error!r})") from error
    return _check_vocabulary(loaded, path)


def _check_vocabulary(loaded: object, path: Path) -> dict[str, int]:
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
            continue  # truncated inside a character; no text contains it
    return words


def get_tensor(path: Path, tensors: Tensors, name: str, shape: tuple[int | None, ...]) -> torch.Tensor:
    """Return a tensor of a checkpoint as float32.

    Parameters
    ----------
    path : Path
        The checkpoint, for error messages.
    tensors : mapping of str to Tensor
        All tensors of the checkpoint.
    name : str
        Name of the tensor.
    shape : tuple of int or None
        Expected shape; None for any size.

    Raises
    ------
    ModelError
        If the tensor is missing, has another shape or values that are not finite.
    """
    tensor = tensors.get(name)
    if tensor is None:
        raise ModelError(f"{path}: the checkpoint lacks the tensor {name!r}; it has {', '.join(sorted(tensors)[:12])}")
    fits = len(shape) == tensor.ndim and all(s in (None, f) for s, f in zip(shape, tensor.shape, strict=True))
    if not fits or 0 in tensor.shape:
        expected = ", ".join("any" if size is None else str(size) for size in shape)
        raise ModelError(f"{path}: the tensor {name!r} has the shape {tuple(tensor.shape)}; expected ({expected})")
    if not tensor.is_floating_point() or not bool(tensor.isfinite().all()):
        raise ModelError(f"{path}: the tensor {name!r} ({tensor.dtype}) has values that are not finite real numbers")
    return tensor.float()


class BidirectionalRnn:
    """Bidirectional recurrent layers from a checkpoint.

    Parameters
    ----------
    path : Path
        The checkpoint, for error messages.
    tensors : mapping of str to Tensor
        All tensors of the checkpoint.
    kind : {"LSTM", "GRU"}
        Type of the layers.
    prefix : str
        Prefix of the names of the layers' tensors.
    device : {"cpu", "cuda"}
        Where to run.
    others : tuple of str
        Names of tensors that do not belong to the layers. Any further tensor raises ModelError.
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

        numbers = [re.fullmatch(rf"{re.escape(prefix)}\.\w+_l(\d+)(_reverse)?", name) for name in tensors]
        rows, self.dimension = get_tensor(path, tensors, f"{prefix}.weight_ih_l0", (None, None)).shape
        layers = getattr(torch.nn, kind)(
            self.dimension,
            max(rows // _GATES[kind], 1),
            num_layers=len({match[1] for match in numbers if match}),
            bidirectional=True,
            device="meta",  # no values, so that no random ones can remain
        )
        shapes = {f"{prefix}.{name}": tuple(weights.shape) for name, weights in layers.state_dict().items()}
        state = {name: get_tensor(path, tensors, name, shape) for name, shape in shapes.items()}
        if extra := sorted(tensors.keys() - state.keys() - set(others)):
            raise ModelError(f"{path}: the checkpoint has unexpected tensors: {', '.join(extra[:5])}")
        layers.load_state_dict({name.removeprefix(f"{prefix}."): value for name, value in state.items()}, assign=True)
        self._layers = layers.to(device).eval()
        self._layers.flatten_parameters()
        self._device = device

    def pool(self, sequences: Sequence[NDArray[np.float32]], pool: str) -> NDArray[np.float32]:
        """Return one vector per sequence (tokens, dimension), independent of the batch.

        "max" is the maximum over the tokens, [forward | backward]; "last" (GRU) the final states of the top layer,
        [backward | forward].
        """
        import torch

        vectors = np.empty((len(sequences), 2 * self._layers.hidden_size), dtype=np.float32)
        with torch.inference_mode(), _disable_tf32(self._device):
            for rows in _group_by_length([len(s) for s in sequences], _MAX_BATCH_TOKENS[self._device]):
                vectors[rows] = self._run([sequences[row] for row in rows], pool).cpu().numpy()
        return vectors

    def _run(self, sequences: Sequence[NDArray[np.float32]], pool: str) -> torch.Tensor:
        import torch
        from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

        # Packed, so that the backward direction starts at a text's last token and not in the padding.
        packed = pack_sequence([torch.from_numpy(s).to(self._device) for s in sequences], enforce_sorted=False)
        outputs, final = self._layers(packed)
        if pool == "last":
            return torch.cat([final[-1], final[-2]], dim=1)
        states, _ = pad_packed_sequence(outputs, padding_value=-torch.inf)
        return states.amax(dim=0)


def _disable_tf32(device: str) -> AbstractContextManager[None]:
    """Keep cuDNN from rounding recurrent layers to TF32, which changes vectors by 4e-4."""
    import torch

    return nullcontext() if device == "cpu" else torch.backends.cudnn.flags(enabled=True, allow_tf32=False)


def _group_by_length(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Yield batches of rows of similar length with at most `most` padded tokens."""
    rows: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if rows and (len(rows) + 1) * lengths[row] > most:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows
