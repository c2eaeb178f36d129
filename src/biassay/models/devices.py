"""Choose between CPU and GPU."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from biassay.errors import UsageError
from biassay.models.backend import ModelName, read_choice_setting

DEVICE_HELP = "auto (default: all GPUs, then CPU memory for what does not fit), cpu or cuda"


def check_device(model: ModelName) -> str:
    """Return the setting ``device`` without importing torch; raise UnknownNameError if it is not valid."""
    return read_choice_setting(model, "device", ("auto", "cpu", "cuda"), "auto")


def choose_device(model: ModelName) -> str:
    """Return "cpu" or "cuda"; ``device=auto`` selects a GPU if there is one."""
    requested = check_device(model)
    if requested == "cpu":
        return "cpu"
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if requested == "cuda":
        raise UsageError(f"{model.label}: device=cuda was requested, but there is no usable GPU; use device=cpu")
    return "cpu"


def get_gpu_transfer() -> Callable[[NDArray[Any]], Any] | None:
    """Return a function that copies an array to the GPU; None without a GPU or without torch.

    torch is imported only if the machine has an NVIDIA device.
    """
    if not any(Path("/dev").glob("nvidia[0-9]*")) or find_spec("torch") is None:
        return None
    import torch

    if not torch.cuda.is_available():
        return None
    return lambda array: torch.asarray(array, device="cuda")
