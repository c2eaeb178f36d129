"""Command `biassay models`."""

from __future__ import annotations

from collections.abc import Iterable

import click

from biassay.cli.listings import print_json, print_rows
from biassay.cli.options import json_option
from biassay.errors import UnknownNameError, format_install_command
from biassay.models.backend import ModelBackend
from biassay.models.registry import get_backends

_CAPABILITIES = """\
texts: run, discover, robustness; words: run --contexts; blanks: stereotypes;
replies: ask, other benchmarks; likelihoods: benchmark crows-pairs, stereoset"""

_WIDEST_CAPABILITIES = 21  # those of hf in two lines


@click.command("models")
@click.argument("backend", required=False)
@json_option
def command(backend: str | None, as_json: bool) -> None:
    """List the model backends, or show the settings of one BACKEND.

    Models encode texts, encode words in context, fill blanks, reply to prompts, or provide likelihoods of texts. The
    list shows which commands use which.
    """
    known = get_backends()
    if backend is None:
        if as_json:
            print_json([*map(_describe_backend, known.values())])
        else:
            _print_list(known.values())
        return
    chosen = known.get(backend.partition(":")[0])
    if chosen is None:
        raise UnknownNameError("backend", backend, known, f"(backends: {', '.join(known)})")
    if as_json:
        print_json(_describe_backend(chosen))
    else:
        _print_backend(chosen)


def _print_list(backends: Iterable[ModelBackend]) -> None:
    backends = tuple(backends)
    rows = [
        (backend.syntax, backend.description, ", ".join(backend.capabilities), "no" if backend.missing else "yes")
        for backend in backends
    ]
    print_rows(("model", "what it is", "can do", "ready"), rows, widths={"can do": _WIDEST_CAPABILITIES})
    click.echo(_CAPABILITIES)
    missing = [backend for backend in backends if backend.missing]
    if extras := dict.fromkeys(backend.extra for backend in missing if backend.extra is not None):
        click.echo(f"Install what is missing: {format_install_command(*extras)}")
    for backend in missing:
        if backend.extra is None:
            click.echo(f"Install {backend.name}: {backend.install}")
    click.echo("Show the settings of a backend: biassay models hf")


def _print_backend(backend: ModelBackend) -> None:
    click.echo(f"{backend.syntax}: {backend.description}")
    click.echo(f"can do: {', '.join(backend.capabilities)}")
    click.echo(f"not installed: {backend.install}" if backend.missing else "ready: yes")
    if not backend.all_settings:
        click.echo("settings: none")
        return
    first, second, *_ = (*backend.all_settings, None)
    more = f"&{second}=..." if second else ""
    click.echo(f'settings follow the name: "{backend.syntax}?{first}=...{more}"\n')
    print_rows(("setting", "values"), list(backend.all_settings.items()))


def _describe_backend(backend: ModelBackend) -> dict[str, object]:
    return {
        "backend": backend.name,
        "syntax": backend.syntax,
        "description": backend.description,
        "capabilities": backend.capabilities,
        "settings": backend.all_settings,
        "ready": not backend.missing,
        "needs": backend.needs,
        "missing": backend.missing,
        "install": backend.install,
    }
