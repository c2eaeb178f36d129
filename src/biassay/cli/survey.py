"""Command `biassay survey`."""

from __future__ import annotations

import ipaddress
import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from biassay.cli import SuggestingGroup
from biassay.cli.listings import make_table, print_json, print_table
from biassay.cli.options import add_validated_options, check_new_file, json_option, multi_option
from biassay.datasets.abc_model import load_abc
from biassay.datasets.human_ratings import read_human_ratings
from biassay.errors import MissingExtraError, UsageError
from biassay.io import write_atomically
from biassay.reporting.terminal import make_console
from biassay.studies.settings import setting
from biassay.survey.links import make_signed_link
from biassay.survey.study import SurveyStudy, format_response_study, read_bundled_study, read_study

TOKEN_VARIABLE = "BIASSAY_SURVEY_TOKEN"
_DATABASE_VARIABLE = "BIASSAY_SURVEY_DATABASE"
_LINK_KEY_VARIABLE = "BIASSAY_SURVEY_LINK_KEY"

database_option = click.option(
    "--database",
    envvar=_DATABASE_VARIABLE,
    metavar="URL",
    help=f"Use this database: postgresql://... or sqlite:///FILE.  [default: ${_DATABASE_VARIABLE} or NAME.sqlite]",
)
study_argument = click.argument("study", metavar="STUDY")


def _parse_proxies(_: click.Context, __: click.Parameter, given: str | None) -> list[str] | None:
    return None if given is None else [_parse_proxy(part.strip()) for part in given.split(",")]


def _parse_proxy(text: str) -> str:
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r} is not an IP address or network; expected those of your proxies, separated by commas, such as "
            "127.0.0.1 or 10.1.2.0/28"
        ) from error
    if network.prefixlen == 0:
        raise click.BadParameter(f"{text!r} covers every IP address; name those of your proxies only")
    return text


proxies_option = click.option(
    "--behind-proxy",
    "proxies",
    callback=_parse_proxies,
    metavar="ADDRESS[,...]",
    help="Trust the X-Forwarded-For headers of these reverse proxies, given by IP address or network.",
)


def read_secret(variable: str, what: str, least: int) -> str | None:
    """Read a secret from an environment variable.

    Parameters
    ----------
    variable : str
        Name of the variable.
    what : str
        Name of the secret, for the error message.
    least : int
        Minimum length; shorter secrets can be guessed.

    Returns
    -------
    str or None
        None if the variable is not set.
    """
    secret = os.environ.get(variable) or None
    if secret is not None and len(secret) < least:
        raise UsageError(f"${variable} has {len(secret)} characters; {what} needs at least {least}")
    return secret


def get_link_key(study: str) -> str | None:
    """Return the key that signs links, or None if the study does not sign links."""
    if not read_study(study).pool.signed:
        return None
    key = read_secret(_LINK_KEY_VARIABLE, "a key", 32)
    if key is None:
        raise UsageError(f"this study signs its links (pool.signed); set ${_LINK_KEY_VARIABLE} to the key")
    return key


def find_missing_disclosures(study: SurveyStudy) -> list[str]:
    """List the disclosures to participants that the study file lacks."""
    missing = [name for name in ("researcher", "contact", "approval") if not getattr(study, name)]
    return [f"missing from the consent page: {', '.join(missing)} (fields of the study file)"] if missing else []


def open_store(study: str, database: str | None, *, new: bool = False) -> Any:
    """Open a study with its data.

    Parameters
    ----------
    study : str
        Study file or name of a bundled study.
    database : str or None
        URL of the database; by default an SQLite file in this folder.
    new : bool
        If True, create the database if it does not exist.

    Returns
    -------
    Store
    """
    try:
        import sqlalchemy as sa

        from biassay.survey.database import open_database
        from biassay.survey.store import Store
    except ImportError as error:
        raise MissingExtraError("the survey", "survey") from error
    read = read_study(study)
    if database is None and Path(read.name).name != read.name:
        raise UsageError(f"the study name {read.name!r} cannot be a file name; choose a database with --database")
    url = sa.URL.create("sqlite", database=f"{read.name}.sqlite") if database is None else database
    file = _sqlite_file(url)
    if not new and file is not None and not file.exists():
        raise UsageError(
            f"{file} does not exist; run this in the folder where the study was served, or name its database with "
            "--database"
        )
    return Store(open_database(url), read)


def _sqlite_file(url: Any) -> Path | None:
    """Return the file of an SQLite URL, or None; an invalid URL fails later."""
    import sqlalchemy as sa

    try:
        made = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        return None
    known = made.get_backend_name() == "sqlite" and made.database not in (None, "", ":memory:")
    return Path(str(made.database)) if known else None


_FEW_ANNOTATIONS = 5


@click.group("survey", cls=SuggestingGroup)
def command() -> None:
    """Run a survey of how people see groups.

    A STUDY is a .toml file, or `cao2022`, which asks about 25 groups along 16 pairs of traits; `biassay survey new`
    writes that file for you to change.
    """


@command.command("new")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--texts", type=click.Path(path_type=Path), help="Also write the texts of the pages, for translation.")
@click.option(
    "--responses",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Let people rate a random sample of the texts of this audit, with names masked.",
)
@click.option(
    "--labels",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="Draw about this many texts, the same number per name.",
)
def new(file: Path, texts: Path | None, responses: Path | None, labels: int) -> None:
    """Write a study file to edit and serve."""
    for path in filter(None, (file, texts)):
        check_new_file(path)
    if responses is None:
        content, bundled = read_bundled_study("cao2022"), "english"
    else:
        from biassay.runs.folders import load_run_data
        from biassay.studies.audit.judges import draw_responses, list_rubrics

        run = load_run_data(responses)
        drawn, bundled = draw_responses(run, labels), "responses"
        content = format_response_study(drawn, [(rubric.low, rubric.high) for rubric in list_rubrics(run)])
        click.echo(f"{len(drawn):,} texts of {responses}, names masked")
    write_atomically(file, content.encode())
    if texts is not None:
        write_atomically(texts, read_bundled_study(bundled).encode())
        click.echo(f'written to {texts}; name it in the study: texts = "{texts.name}"')
    click.echo(f"written to {file}; serve it with: biassay survey serve {file}")
    click.echo(
        "The consent text is a draft: before you invite anybody, have your review board approve it and fill in "
        "researcher, contact and approval."
    )


@command.command("check")
@study_argument
def check(study: str) -> None:
    """Check a study file and summarize it."""
    read = read_study(study)
    what = "text" if read.responses else "group"
    click.echo(f"{read.name} ({read.digest}): {len(read.groups)} {what}s, {len(read.pairs)} pairs of traits")
    each = read.groups_per_participant
    click.echo(
        f"{read.annotations} valid annotations of each {what}; each participant rates {each} {what}s, one of them "
        f"twice: at least {-(-len(read.groups) * read.annotations // each)} participants"
    )
    rules = ", ".join(f"{name} {value}" for name, value in vars(read.rules).items())
    click.echo(f"rules: {rules}")
    facts = ", ".join(asked.name for asked in read.demographics) or "none"
    linked = "linked to ratings in exports" if read.link_demographics else "not linked to ratings"
    click.echo(f"demographics: {facts} ({linked})")
    click.echo(
        f"language: {read.texts.language}; places are reserved for {read.session_minutes:g} minutes without activity"
    )
    for line in find_missing_disclosures(read):
        click.echo(line)


@dataclass(frozen=True)
class ServeOptions:
    """Options of `biassay survey serve`."""

    host: str = setting("127.0.0.1", "Listen on this IP address; 0.0.0.0 accepts connections from elsewhere.")
    port: int = setting(8000, "Listen on this port.", low=0, high=65535)
    https: bool = setting(False, "Require https for cookies.")
    begin: int = setting(
        60,
        "Let at most this many people per minute begin from one IP address. Use 0 for no limit.",
        low=0,
        option="--begin-limit",
    )
    page: int = setting(
        120,
        "Accept at most this many pages per minute from a participant. Use 0 for no limit.",
        low=0,
        option="--page-limit",
    )
    unfinished: int = setting(
        60,
        "Let at most this many people from one IP address take part at the same time. Use 0 for no limit.",
        low=0,
        option="--unfinished-limit",
    )


@command.command("serve")
@study_argument
@database_option
@add_validated_options(ServeOptions)
@proxies_option
def serve(
    study: str,
    database: str | None,
    host: str,
    port: int,
    https: bool,
    proxies: list[str] | None,
    **limits: int,
) -> None:
    """Serve a study to participants.

    The pages of the researcher are at /researcher and need a token: set $BIASSAY_SURVEY_TOKEN to turn them on.
    """
    token = read_secret(TOKEN_VARIABLE, "a token", 12)
    key = get_link_key(study)
    store = open_store(study, database, new=True)
    from biassay.survey import server
    from biassay.survey.app import RateLimits, make_app

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    app = make_app(store, token=token, secure=https, limits=RateLimits(**limits), link_key=key)
    place = f"{'https' if https else 'http'}://{host}:{port}"
    click.echo(
        f"study {store.study.name} ({store.study.digest}), {store.engine.url.render_as_string(hide_password=True)}"
    )
    click.echo(f"participants: {place}/")
    side = f"{place}/researcher" if token else f"off; set ${TOKEN_VARIABLE} to a token to turn it on"
    click.echo(f"researchers:  {side}")
    for line in find_missing_disclosures(store.study):
        click.echo(line)
    server.serve(app, host, port, proxies)


@command.command("links")
@study_argument
@click.argument("numbers", nargs=-1, metavar="[NUMBER]...")
@click.option("--site", required=True, metavar="URL", help="Set the URL at which participants reach the study.")
def links(study: str, numbers: tuple[str, ...], site: str) -> None:
    """Print a signed link per NUMBER of the pool; by default read numbers from standard input.

    The key comes from $BIASSAY_SURVEY_LINK_KEY, as for `serve`.
    """
    if not site.startswith(("https://", "http://")):
        raise UsageError(f"--site: expected a URL that starts with https://, got {site!r}")
    key = get_link_key(study)
    if key is None:
        raise UsageError("this study does not sign its links; set pool.signed = true in its file")
    read = read_study(study)
    for number in numbers or sys.stdin.read().split():
        click.echo(make_signed_link(site, key, read, number))


@command.command("status")
@study_argument
@database_option
@json_option
def status(study: str, database: str | None, as_json: bool) -> None:
    """Show the progress of a study: annotations per group, and how many participants passed."""
    store = open_store(study, database)
    import dataclasses

    from biassay.survey.progress import compute_progress

    found = compute_progress(store)
    if as_json:
        print_json(dataclasses.asdict(found))
        return
    numbers = ("valid", "being rated", "wanted")
    table = make_table("group", *numbers, right=numbers)
    for group in found.groups:
        table.add_row(escape(group.group), str(group.valid), str(group.held), str(group.target))
    click.echo(f"{store.study.name} ({found.digest})")
    print_table(table)
    console = make_console()
    people = ", ".join(f"{count} {name}" for name, count in sorted(found.status.items())) or "nobody yet"
    rate = "" if found.pass_rate is None else f"; {found.pass_rate:.0%} of those who ended passed"
    console.print(f"participants: {people}{rate}", markup=False, highlight=False)
    for reason, count in found.reasons.items():
        console.print(f"rejected for {reason}: {count}", markup=False, highlight=False)


@command.command("export")
@study_argument
@database_option
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Write all files to this new folder.")
def export(study: str, database: str | None, out: Path) -> None:
    """Export ratings as JSON, CSV and Parquet, with demographics of participants and the study file."""
    store = open_store(study, database)
    from biassay.survey.export import export_all

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not an empty folder; choose another")
    contents, left_out = export_all(store)
    out.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_atomically(out / name, content)
    for line in left_out:
        click.echo(line, err=True)
    if store.study.responses:
        click.echo(f"written to {out}; repeat the audit with --human {out / 'ratings.json'}")
        return
    own = "" if _is_known(store.study) else " --files FILE (your own groups and traits, see docs/stereotypes.md)"
    click.echo(f"written to {out}; compare a model: biassay stereotypes MODEL --human {out / 'ratings.json'}{own}")


@command.command("means")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--annotators",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Select annotators, such as Gender=Woman. If repeated, all conditions apply.",
)
@multi_option("--groups", metavar="NAME[,...]", help="Select groups.  [default: all]")
@json_option
def means(file: Path, annotators: tuple[str, ...], groups: tuple[str, ...], as_json: bool) -> None:
    """Print mean ratings from an export, over all annotators or some of them.

    To select annotators, the study must link demographics to ratings.
    """
    ratings = read_human_ratings(file)
    for pair in annotators:
        field, equals, value = pair.partition("=")
        if not equals:
            raise click.UsageError(f"--annotators expects FIELD=VALUE, got {pair!r}")
        ratings = ratings.subgroup(field, value)
    ratings = ratings.select_groups(groups) if groups else ratings
    names = [" - ".join(pair) for pair in ratings.pairs]
    rows = {
        group: {name: None if mean != mean else round(float(mean), 4) for name, mean in zip(names, own, strict=True)}
        for group, own in zip(ratings.groups, ratings.means, strict=True)
    }
    raters = dict(zip(ratings.groups, ratings.raters, strict=True))
    if as_json:
        found = {"annotators": len(ratings.annotators), "raters": raters, "means": rows}
        print_json(found)
        return
    click.echo("mean ratings, 0 left to 100 right")
    table = make_table("pair", *rows, right=rows)
    table.add_row("annotators of the group", *(f"{raters[group]}" for group in rows), end_section=True)
    for name in names:
        table.add_row(escape(name), *("–" if (mean := own[name]) is None else f"{mean:.1f}" for own in rows.values()))
    print_table(table)
    console = make_console()
    few = [group for group in rows if 0 < raters[group] < _FEW_ANNOTATIONS]
    if few:
        console.print(f"fewer than {_FEW_ANNOTATIONS} annotators: {', '.join(few)}", markup=False, highlight=False)


def _is_known(study: SurveyStudy) -> bool:
    """Return whether all groups and traits of a study are bundled ones."""
    abc = load_abc()
    groups = {name for group in abc.groups for name in group.human}
    pairs = {(pair.left, pair.right) for pair in abc.pairs}
    return set(study.groups) <= groups and set(study.pairs) <= pairs


@command.command("delete")
@study_argument
@database_option
@click.argument("identifier", metavar="CODE")
@click.option("--pool-number", is_flag=True, help="Treat CODE as the number in the pool.")
def delete(study: str, database: str | None, identifier: str, pool_number: bool) -> None:
    """Delete everything about one participant, identified by completion code or number in the pool."""
    if not open_store(study, database).delete(identifier, by="pool_id" if pool_number else "code"):
        kind, other = ("number in the pool", "without") if pool_number else ("completion code", "with")
        raise UsageError(f"no participant has the {kind} {identifier!r}; try again {other} --pool-number")
    click.echo("Deleted. Earlier exports still contain this participant: export again and destroy the old files.")
