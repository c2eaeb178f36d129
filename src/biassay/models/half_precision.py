"""Half precision on a CPU, tried first in another process.

Some virtual machines announce the matrix instructions AMX and refuse to run them. torch believes the announcement, and
the first product of half-precision matrices ends the process with "Illegal instruction".
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from biassay.errors import ModelError

__all__ = ["TRIAL", "refuse_deadly"]

TRIAL = """
import torch
for dtype in (torch.bfloat16, torch.float16):
    for size in (32, 256):
        a = torch.ones(1, 1, size, size, dtype=dtype)
        torch.nn.functional.linear(a, a[0, 0])
        torch.nn.functional.scaled_dot_product_attention(a, a, a)
"""


def refuse_deadly(name: str, model: Any) -> None:
    """Refuse a model in half precision where computing with it would end Python."""
    import torch

    halves = (torch.bfloat16, torch.float16)
    if not any(weights.dtype in halves and weights.device.type == "cpu" for weights in model.parameters()):
        return
    announced = getattr(torch.cpu, "_is_amx_tile_supported", lambda: True)  # not in every release of torch
    if announced() and (code := _code_of_trial(sys.executable)) != 0:
        raise ModelError(
            f"model {name!r}: this CPU does not run half precision, though it claims to (a trial ended with code "
            f"{code}); use hf: with dtype=float32, or set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 before Python starts"
        )


@cache
def _code_of_trial(python: str) -> int:
    """0 if all went well, the number of a signal below 0 if one ended it."""
    import subprocess

    command = [python, "-P", "-c", TRIAL]  # -P: nothing is imported from the working folder
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode
