"""Attention on a GPU: which kernels may be chosen, and that the choice ends with the pass."""

from __future__ import annotations

import pytest

from biassay.models.transformers.batches import avoid_cudnn_attention


@pytest.mark.extras
@pytest.mark.parametrize(("longest", "flash"), [(7, False), (64, False), (65, True)])
def test_kernels_with_plans_are_left_out_for_as_long_as_a_pass_takes(longest: int, flash: bool) -> None:
    from torch.backends import cuda

    def allowed() -> tuple[bool, ...]:
        names = ("cudnn", "flash", "mem_efficient", "math")
        return tuple(getattr(cuda, f"{name}_sdp_enabled")() for name in names)

    before = allowed()
    with avoid_cudnn_attention("cuda", longest):
        assert allowed() == (False, flash, True, True)
    assert allowed() == before
    with avoid_cudnn_attention("cpu", longest):
        assert allowed() == before
