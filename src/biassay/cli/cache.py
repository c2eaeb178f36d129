"""Command `biassay cache`."""

from __future__ import annotations

import fnmatch
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from biassay.cache.inventory import KINDS, CacheEntry, CacheListing, list_cache, remove_entries, select_entries
from biassay.cli import SuggestingGroup
from biassay.cli.listings import format_size, print_json, print_rows
from biassay.cli.options import json_option, multi_option
from biassay.errors import StorageError, UnknownNameError, UsageError
from biassay.io import default_cache
from biassay.object_storage import is_url
from biassay.reporting.formats import format_count

_DURATIONS = {"h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600}


class _Duration(click.ParamType):  # type: ignore[type-arg]
    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        match = re.fullmatch(r"(\d{1,6})\s*([hdw])", str(value).strip().lower())
        if match is None:
            self.fail(f"{value!r} is not a duration such as 12h, 30d or 8w", param, ctx)
        return float(int(match[1]) * _DURATIONS[match[2]])


class _Size(click.ParamType):  # type: ignore[type-arg]
    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,6})?)\s*([kmgt]?)(i?)b?", str(value).strip().lower())
        if match is None:
            self.fail(f"{value!r} is not a size such as 500MB or 5GB", param, ctx)
        power = " kmgt".index(match[2] or " ")
        return int(float(match[1]) * (1024 if match[3] else 1000) ** power)


_cache_option = click.option(
    "--cache", metavar="DIR", help="Use this cache directory.  [default: $BIASSAY_CACHE or your own cache]"
)


@click.group("cache", cls=SuggestingGroup, invoke_without_command=True)
@_cache_option
@json_option
@click.pass_context
def command(ctx: click.Context, cache: str | None, as_json: bool) -> None:
    """List cached outputs by model, with kind, size and last use. Remove them with `biassay cache prune`.

    Kinds are embeddings, responses, likelihoods, measurements, models (dequantised GGUF files), digests, and leftovers
    (damaged files, and files of interrupted runs). The list covers caches on this machine only. Models downloaded from
    the Hugging Face hub are in another cache: see `hf cache`.
    """
    if ctx.invoked_subcommand is not None:
        ctx.obj = cache
        return
    listing = list_cache(_get_folder(cache))
    if as_json:
        print_json(_describe(listing))
        return
    _print_entries(listing.entries)
    click.echo(f"{format_size(listing.size)} in {listing.folder}")
    if listing.other_files:
        click.echo(f"{format_count(listing.other_files, 'other file')} not written by biassay, never removed")


@command.command("prune")
@multi_option(
    "--model",
    "models",
    metavar="NAME[,...]",
    help="Remove entries of these models, by name in the list or by pattern (hf:*).",
)
@multi_option("--kind", "kinds", item=click.Choice(tuple(KINDS)), help="Remove entries of these kinds.")
@click.option(
    "--older-than", type=_Duration(), metavar="TIME", help="Remove entries not used in this time, such as 30d."
)
@click.option(
    "--max-size",
    type=_Size(),
    metavar="SIZE",
    help="Remove the least recently used entries until the cache has at most this size, such as 5GB.",
)
@click.option("--all", "everything", is_flag=True, help="Remove all entries.")
@click.option("--dry-run", is_flag=True, help="Print what would be removed, and remove nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@_cache_option
@json_option
@click.pass_obj
def prune(
    parent_cache: str | None,
    models: tuple[str, ...],
    kinds: tuple[str, ...],
    older_than: float | None,
    max_size: int | None,
    everything: bool,
    dry_run: bool,
    yes: bool,
    cache: str | None,
    as_json: bool,
) -> None:
    """Remove entries of the cache that match all of the given options.

    Later runs query models and endpoints again for removed entries, which may cost tokens. biassay never removes
    entries that a run in progress may be using, or files that it did not write. It removes digests only with --all or
    --kind digests. Without a terminal, --yes is required.
    """
    if everything and (models or kinds or older_than is not None or max_size is not None):
        raise click.UsageError("--all removes everything; leave it out to use other options")
    if not (everything or models or kinds or older_than is not None or max_size is not None):
        raise click.UsageError("choose what to remove: --model, --kind, --older-than, --max-size or --all")
    listing = list_cache(_get_folder(cache if cache is not None else parent_cache))
    names = {name for entry in listing.entries for name in entry.names}
    for pattern in models:
        if not fnmatch.filter(names, pattern) and pattern not in names:
            raise UnknownNameError("cached model", pattern, names, "(`biassay cache` lists them)")

    def is_model(entry: CacheEntry) -> bool:
        return not models or any(
            name == pattern or fnmatch.fnmatchcase(name, pattern) for name in entry.names for pattern in models
        )

    entries = select_entries(
        listing,
        is_model=is_model,
        kinds=tuple(KINDS) if everything else kinds,
        older_than=older_than,
        max_size=max_size,
    )
    if not entries or dry_run:
        _report(entries, [], as_json=as_json, verb="Would remove" if dry_run else "Removed")
        return
    if not yes:
        _confirm(entries)
    removed, in_use, errors = remove_entries(listing, entries)
    _report(removed, in_use, as_json=as_json, verb="Removed")
    if errors:
        first = errors[0]
        more = f"; {len(errors) - 1} more could not be removed" if len(errors) > 1 else ""
        raise StorageError(f"{first.filename}: cannot be removed: {first.strerror}{more}")


def _get_folder(cache: str | None) -> Path:
    if cache is not None and not cache:
        raise UsageError("the name of the cache is empty; leave --cache out to use your own cache")
    if is_url(cache):
        raise UsageError(
            f"{cache}: biassay lists and prunes caches on this machine only; use the tools of your storage. "
            "Local copies of its files are in your own cache: leave --cache out to list them"
        )
    return default_cache() if cache is None else Path(cache)


def _confirm(entries: Sequence[CacheEntry]) -> None:
    size = format_size(sum(entry.size for entry in entries))
    if not sys.stdin.isatty():
        raise click.UsageError(f"this would remove {size}; add --yes to remove it, or --dry-run to list it")
    _print_entries(entries, err=True)
    click.confirm(f"Remove {size}?", abort=True, err=True)


def _report(removed: Sequence[CacheEntry], in_use: Sequence[CacheEntry], *, as_json: bool, verb: str) -> None:
    if as_json:
        content = {
            "removed" if verb == "Removed" else "would_remove": [*map(_describe_entry, removed)],
            "in_use": [*map(_describe_entry, in_use)],
            "bytes": sum(entry.size for entry in removed),
        }
        print_json(content)
        return
    if removed:
        _print_entries(removed)
        click.echo(f"{verb} {format_size(sum(entry.size for entry in removed))}.")
    elif not in_use:
        click.echo("Nothing to remove.")
    if in_use:
        size = format_size(sum(entry.size for entry in in_use))
        click.echo(f"Did not remove {size} that a run in progress may be using.")


def _print_entries(entries: Iterable[CacheEntry], *, err: bool = False) -> None:
    """Print a line per model and kind, the largest model first."""
    groups: dict[str, dict[str, list[CacheEntry]]] = {}
    for entry in entries:
        groups.setdefault(entry.model, {}).setdefault(entry.kind, []).append(entry)
    sizes = {model: sum(e.size for own in kinds.values() for e in own) for model, kinds in groups.items()}
    rows = [
        (
            model,
            kind,
            format_size(sum(entry.size for entry in own)),
            f"{datetime.fromtimestamp(max(entry.last_used for entry in own)):%Y-%m-%d %H:%M}",
        )
        for model, kinds in sorted(groups.items(), key=lambda item: (-sizes[item[0]], item[0]))
        for kind, own in sorted(kinds.items(), key=lambda item: list(KINDS).index(item[0]))
    ]
    if rows:
        print_rows(("model", "kind", "size", "last used"), rows, right=("size",), err=err)


def _describe(listing: CacheListing) -> dict[str, Any]:
    return {
        "folder": str(listing.folder),
        "bytes": listing.size,
        "other_files": listing.other_files,
        "entries": [*map(_describe_entry, listing.entries)],
    }


def _describe_entry(entry: CacheEntry) -> dict[str, Any]:
    return {
        "model": entry.model,
        "names": list(entry.names),
        "kind": entry.kind,
        "settings": dict(entry.settings),
        "folder": str(entry.folder),
        "files": len(entry.files),
        "bytes": entry.size,
        "last_used": datetime.fromtimestamp(entry.last_used, UTC).isoformat(timespec="seconds"),
    }
