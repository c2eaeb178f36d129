"""``biassay robustness``"""

from __future__ import annotations

from biassay.cli.study import command_of

__all__ = ["command"]

command = command_of("robustness")
