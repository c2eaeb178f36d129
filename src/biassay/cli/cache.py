"""Command `biassay cache`."""

from __future__ import annotations

import fnmatch
import json
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.cells import cell_len

from biassay.cache.inventory import KINDS, CacheEntry, CacheListing, list_cache, remove_entries, select_entries
from biassay.cli import SuggestingGroup
from biassay.cli.listings import format_size
from biassay.cli.options import json_option, multi_option
from biassay.errors import StorageError, UnknownNameError, UsageError
from biassay.io import default_cache, make_printable
from biassay.object_storage import is_url
from biassay.reporting.formats import format_count

__all__ = ["command"]

_DURATIONS = {"h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600}
_WIDEST_NAME = 60


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
    "--cache", metavar="DIR", help="Use this cache directory.  [default: $BIASSAY_CACHE or the user's cache]"
)


@click.group("cache", cls=SuggestingGroup, invoke_without_command=True)
@_cache_option
@json_option
@click.pass_context
def command(ctx: click.Context, cache: str | None, as_json: bool) -> None:
    """List what is cached, by model: kind, size and last use. `biassay cache prune` removes parts of it.

    Kinds are embeddings, responses, likelihoods, measurements, models (dequantised GGUF files), digests, and leftovers
    (damaged files, and files of interrupted runs). Only a cache on this machine is listed. The cache of the Hugging
    Face hub is another one: see `hf cache`.
    """
    if ctx.invoked_subcommand is not None:
        ctx.obj = cache
        return
    listing = list_cache(_get_folder(cache))
    if as_json:
        click.echo(json.dumps(_describe(listing), indent=1, ensure_ascii=False))
        return
    _print_entries(listing.entries)
    click.echo(f"{format_size(listing.size)} in {listing.folder}")
    if listing.other_files:
        click.echo(
            f"{format_count(listing.other_files, 'other file')} in this folder: not biassay's, and never removed"
        )


@command.command("prune")
@multi_option(
    "--model", "models", metavar="NAME[,...]", help="Remove entries of these models, as listed; hf:* is a pattern."
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

    Models and endpoints are asked again for what was removed, which may cost tokens. Entries that a run in progress may
    be using are kept, and so are files that are not biassay's. Digests are only removed by --all or --kind digests.
    Without a terminal, --yes is required.
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
            name == one or fnmatch.fnmatchcase(name, one) for name in entry.names for one in models
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
        click.echo(json.dumps(content, indent=1, ensure_ascii=False))
        return
    if removed:
        _print_entries(removed)
        click.echo(f"{verb} {format_size(sum(entry.size for entry in removed))}.")
    elif not in_use:
        click.echo("Nothing to remove.")
    if in_use:
        size = format_size(sum(entry.size for entry in in_use))
        click.echo(f"Kept {size} that a run in progress may be using.")


def _print_entries(entries: Iterable[CacheEntry], *, err: bool = False) -> None:
    """Print a line per model and kind, the largest model first."""
    groups: dict[str, dict[str, list[CacheEntry]]] = {}
    for entry in entries:
        groups.setdefault(entry.model, {}).setdefault(entry.kind, []).append(entry)
    sizes = {model: sum(e.size for own in kinds.values() for e in own) for model, kinds in groups.items()}
    rows = [
        (
            make_printable(model),
            kind,
            format_size(sum(entry.size for entry in own)),
            _format_time(max(entry.last_used for entry in own)),
        )
        for model, kinds in sorted(groups.items(), key=lambda item: (-sizes[item[0]], item[0]))
        for kind, own in sorted(kinds.items(), key=lambda item: list(KINDS).index(item[0]))
    ]
    if not rows:
        return
    rows = [("model", "kind", "size", "last used"), *rows]
    width = min(max(cell_len(row[0]) for row in rows), _WIDEST_NAME)
    for model, kind, size, used in rows:
        padding = " " * (width - cell_len(model))
        click.echo(f"{model}{padding}  {kind:<12}  {size:>7}  {used}", err=err)


def _format_time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}"


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
