"""Groups of commands that know which one was meant."""

from __future__ import annotations

from typing import Any

import click

from biassay.errors import nearest_names

__all__ = ["Commands"]


class Commands(click.Group):
    """An unknown command is answered with the nearest name, or with all of them."""

    def has_command(self, name: str) -> bool:
        return name in self.commands

    def meant(self, name: str) -> str | None:  # noqa: ARG002
        """What was meant by a name that is no command, where that is known."""
        return None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and not self.has_command(args[0]):
            known = self.list_commands(ctx)
            near = self.meant(args[0]) or next(iter(nearest_names(args[0], known)), None)
            hint = f"; did you mean {near!r}?" if near else f"; commands: {', '.join(known)}"
            raise click.UsageError(f"unknown command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)
