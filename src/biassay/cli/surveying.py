"""How commands of ``biassay survey`` find a study, its database, and what only the researcher knows."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path
from typing import Any

import click

from biassay.errors import MissingExtraError, UsageError

__all__ = ["TOKEN", "database_option", "link_key", "open_store", "proxies_option", "secret", "study_argument", "unsaid"]

TOKEN = "BIASSAY_SURVEY_TOKEN"
_DATABASE = "BIASSAY_SURVEY_DATABASE"
_LINK_KEY = "BIASSAY_SURVEY_LINK_KEY"

database_option = click.option(
    "--database",
    envvar=_DATABASE,
    metavar="URL",
    help=f"postgresql://... or sqlite:///FILE; also from ${_DATABASE}.  [default: NAME.sqlite in this folder]",
)
study_argument = click.argument("study", metavar="STUDY")


def _proxies(_: click.Context, __: click.Parameter, given: str | None) -> list[str] | None:
    return None if given is None else [_proxy(part.strip()) for part in given.split(",")]


def _proxy(text: str) -> str:
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r} is neither an address nor a network; expected those of your proxies, separated by commas, like "
            "127.0.0.1 or 10.1.2.0/28"
        ) from error
    if network.prefixlen == 0:
        raise click.BadParameter(f"{text!r} is every address; name those of your proxies only")
    return text


proxies_option = click.option(
    "--behind-proxy",
    "proxies",
    callback=_proxies,
    metavar="ADDRESS[,...]",
    help="Addresses or networks of your reverse proxies. Only their X-Forwarded-For headers are believed.",
)


def secret(variable: str, what: str, least: int) -> str | None:
    """From the environment; what is short can be guessed."""
    found = os.environ.get(variable) or None
    if found is not None and len(found) < least:
        raise UsageError(f"${variable} has {len(found)} characters; {what} needs at least {least}")
    return found


def link_key(study: str) -> str | None:
    """The key that signs links; None if links of the study are not signed."""
    from biassay.survey.study import read_study

    if not read_study(study).pool.signed:
        return None
    key = secret(_LINK_KEY, "a key", 32)
    if key is None:
        raise UsageError(f"the links of this study are signed (pool.signed); put the key into ${_LINK_KEY}")
    return key


def unsaid(study: Any) -> list[str]:
    """What participants have a right to know and the study file does not say."""
    missing = [name for name in ("researcher", "contact", "approval") if not getattr(study, name)]
    return [f"not said to participants: {', '.join(missing)} (fields of the study file)"] if missing else []


def open_store(study: str, database: str | None, *, new: bool = False) -> Any:
    """The study with its data; only who serves it may make a database."""
    try:
        import sqlalchemy as sa

        from biassay.survey.database import open_database
        from biassay.survey.store import Store
    except ImportError as error:
        raise MissingExtraError("the survey", "survey") from error
    from biassay.survey.study import read_study

    read = read_study(study)
    if database is None and Path(read.name).name != read.name:
        raise UsageError(f"the study {read.name!r} cannot name a file; name a database with --database")
    url = sa.URL.create("sqlite", database=f"{read.name}.sqlite") if database is None else database
    file = _sqlite_file(url)
    if not new and file is not None and not file.exists():
        raise UsageError(
            f"{file} does not exist, so there are no answers; run this where the study was served, or name its "
            "database with --database"
        )
    return Store(open_database(url), read)


def _sqlite_file(url: Any) -> Path | None:
    """The file of an address of SQLite; what is no address is refused when it is opened."""
    import sqlalchemy as sa

    try:
        made = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        return None
    known = made.get_backend_name() == "sqlite" and made.database not in (None, "", ":memory:")
    return Path(str(made.database)) if known else None
