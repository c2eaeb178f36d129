"""Weights of Hugging Face models: where they are put, and in which precision."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from typing import Any

from biassay.models.half_precision import refuse_deadly
from biassay.models.hub import Source, loading, open_config, quiet_library, refuse_missing

__all__ = ["load_weights"]

# Parts that pooling token states never uses: a checkpoint may lack them.
_UNUSED = ("pooler.",)
_ROOM = 1.2  # a GPU must hold the weights so many times for what is computed to find a place beside them


def load_weights(
    source: Source, auto_class: str, dtype: str, device: str, *, spread: bool, unused: tuple[str, ...] = _UNUSED
) -> Any:
    """The model, ready to run. A part that the checkpoint lacks is an error that names it.

    ``spread`` allows a model that is too large for one GPU to be put on all of them, and what is left into the memory
    of the machine or onto its disk. A quantised model keeps its own precision where none is asked for.
    """
    import torch

    library = quiet_library()
    quantised = getattr(open_config(source), "quantization_config", None) is not None
    spread = spread and _is_too_large(source, auto_class, dtype, device)
    placed: dict[str, Any] = {"device_map": {"": device}} if quantised else {}
    if spread:
        placed = {"device_map": "auto", "offload_folder": tempfile.mkdtemp(), "max_memory": _most_memory()}
    with loading(source.name, "weights"):
        model, info = getattr(library, auto_class).from_pretrained(
            source.place,
            dtype="auto" if quantised and dtype == "float32" else getattr(torch, dtype),
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # so that they are named below
            **placed,
            **source.options,
        )
    source.check_unchanged()
    refuse_missing(source.name, info, unused)
    model = model.eval() if placed else model.to(device).eval()
    if spread:
        weakref.finalize(model, shutil.rmtree, placed["offload_folder"], ignore_errors=True)
    refuse_deadly(source.name, model)
    return model


def _is_too_large(source: Source, auto_class: str, dtype: str, device: str) -> bool:
    """Does one GPU lack the room for a model? Its size comes from its configuration."""
    import torch

    if device != "cuda":
        return False
    with loading(source.name, "configuration"), torch.device("meta"):
        empty = getattr(quiet_library(), auto_class).from_config(open_config(source))
    numbers = sum(weights.numel() for weights in empty.parameters())
    free, _ = torch.cuda.mem_get_info()
    return bool(_ROOM * numbers * getattr(torch, dtype).itemsize > free)


def _most_memory() -> dict[Any, Any] | None:
    """How much of every device may be used; None: as much as it has."""
    return None
