"""``biassay survey``"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from biassay.cli.commands import Commands
from biassay.cli.common import check_new_file, console_for_tables
from biassay.cli.surveying import (
    TOKEN,
    database_option,
    link_key,
    open_store,
    proxies_option,
    secret,
    study_argument,
    unsaid,
)
from biassay.errors import UsageError
from biassay.files import write_atomically

__all__ = ["command"]

_FEW = 5


@click.group("survey", cls=Commands)
def command() -> None:
    """The human study: ask people how groups are seen.

    A STUDY is a .toml file, or `cao2022`, which asks about 25 groups along 16 pairs of traits; `biassay survey new`
    writes that file for you to change.
    """


@command.command("new")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--texts", type=click.Path(path_type=Path), help="Also write what participants read, to be translated.")
def new(file: Path, texts: Path | None) -> None:
    """Write a study file to change and to serve."""
    from biassay.survey.study import study_text

    for path in filter(None, (file, texts)):
        check_new_file(path)
    write_atomically(file, study_text("cao2022").encode())
    if texts is not None:
        write_atomically(texts, study_text("english").encode())
        click.echo(f'written to {texts}; name it in the study: texts = "{texts.name}"')
    click.echo(f"written to {file}; serve it with: biassay survey serve {file}")
    click.echo(
        "The text of consent is a draft: have your review board approve it, and say who you are (researcher, contact, "
        "approval), before you invite anybody."
    )


@command.command("check")
@study_argument
def check(study: str) -> None:
    """Say what is in a study file, or what is wrong with it."""
    from biassay.survey.study import read_study

    read = read_study(study)
    click.echo(f"{read.name} ({read.digest}): {len(read.groups)} groups, {len(read.pairs)} pairs of traits")
    each = read.groups_a_participant
    click.echo(
        f"{read.annotations} valid annotations of each group; each participant rates {each} groups, one of them twice: "
        f"at least {-(-len(read.groups) * read.annotations // each)} participants"
    )
    rules = ", ".join(f"{name} {value}" for name, value in vars(read.rules).items())
    click.echo(f"rules: {rules}")
    facts = ", ".join(asked.name for asked in read.demographics) or "none"
    linked = "shown beside ratings in exports" if read.link_demographics else "not to be joined to ratings"
    click.echo(f"facts asked for: {facts} ({linked})")
    click.echo(
        f"language: {read.texts.language}; places are kept for {read.session_minutes:g} minutes without activity"
    )
    for line in unsaid(read):
        click.echo(line)


@command.command("serve")
@study_argument
@database_option
@click.option("--host", default="127.0.0.1", show_default=True, help="0.0.0.0 to be reached from elsewhere.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True)
@click.option("--https", is_flag=True, help="It is reached by https: cookies are never sent without.")
@proxies_option
@click.option(
    "--begin-limit",
    type=click.IntRange(min=0),
    default=60,
    show_default=True,
    help="How many people may begin from one address in a minute; 0: no limit.",
)
@click.option(
    "--page-limit",
    type=click.IntRange(min=0),
    default=120,
    show_default=True,
    help="How many pages one participant may send in a minute; 0: no limit.",
)
@click.option(
    "--unfinished-limit",
    type=click.IntRange(min=0),
    default=60,
    show_default=True,
    help="How many people from one address may be taking part at the same time; 0: no limit.",
)
def serve(
    study: str,
    database: str | None,
    host: str,
    port: int,
    https: bool,
    proxies: list[str] | None,
    begin_limit: int,
    page_limit: int,
    unfinished_limit: int,
) -> None:
    """Let people take part, in their browsers.

    The researcher's side is at /researcher, behind a token that you put into $BIASSAY_SURVEY_TOKEN; without it there is
    none.
    """
    token = secret(TOKEN, "a token", 12)
    key = link_key(study)
    store = open_store(study, database, new=True)
    from biassay.survey import server
    from biassay.survey.app import make_app
    from biassay.survey.site import Limits

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    limits = Limits(begin=begin_limit, page=page_limit, unfinished=unfinished_limit)
    app = make_app(store, token=token, secure=https, limits=limits, link_key=key)
    place = f"{'https' if https else 'http'}://{host}:{port}"
    click.echo(
        f"study {store.study.name} ({store.study.digest}), {store.engine.url.render_as_string(hide_password=True)}"
    )
    click.echo(f"participants: {place}/")
    side = f"{place}/researcher" if token else f"off; put a token into ${TOKEN} to have it"
    click.echo(f"researchers:  {side}")
    for line in unsaid(store.study):
        click.echo(line)
    server.serve(app, host, port, proxies)


@command.command("links")
@study_argument
@click.argument("numbers", nargs=-1, metavar="[NUMBER]...")
@click.option("--site", required=True, metavar="URL", help="Where participants reach the study.")
def links(study: str, numbers: tuple[str, ...], site: str) -> None:
    """Write signed links, one for each NUMBER of the pool; without any, for those on standard input.

    The key is taken from $BIASSAY_SURVEY_LINK_KEY, as by `serve`.
    """
    from biassay.survey.links import signed_link
    from biassay.survey.study import read_study

    if not site.startswith(("https://", "http://")):
        raise UsageError(f"--site: expected an address that begins with https://, got {site!r}")
    key = link_key(study)
    if key is None:
        raise UsageError("the links of this study are not signed; set pool.signed = true in its file")
    read = read_study(study)
    for number in numbers or sys.stdin.read().split():
        click.echo(signed_link(site, key, read, number))


@command.command("status")
@study_argument
@database_option
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON instead of a table.")
def status(study: str, database: str | None, as_json: bool) -> None:
    """How far the study is: annotations of each group, who passed."""
    store = open_store(study, database)
    import dataclasses
    import json

    from biassay.survey.progress import progress_of

    found = progress_of(store)
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(found), ensure_ascii=False, indent=1))
        return
    table = Table("group", title=f"{escape(store.study.name)} ({found.digest})", title_justify="left")
    for name in ("valid", "being rated", "wanted"):
        table.add_column(name, justify="right")
    for group in found.groups:
        table.add_row(escape(group.group), str(group.valid), str(group.held), str(group.target))
    console = console_for_tables()
    console.print(table)
    people = ", ".join(f"{count} {name}" for name, count in sorted(found.status.items())) or "nobody yet"
    rate = "" if found.pass_rate is None else f"; {found.pass_rate:.0%} of those who ended passed"
    console.print(f"participants: {people}{rate}", markup=False, highlight=False)
    for reason, count in found.reasons.items():
        console.print(f"rejected for {reason}: {count}", markup=False, highlight=False)


@command.command("export")
@study_argument
@database_option
@click.option("--out", type=click.Path(path_type=Path), required=True, help="A new folder for all files.")
def export(study: str, database: str | None, out: Path) -> None:
    """Write the answers to files: the released JSON shape, CSV, Parquet, facts about people, the study."""
    store = open_store(study, database)
    from biassay.survey.export import exported_all

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not an empty folder; choose another")
    contents, left_out = exported_all(store)
    out.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_atomically(out / name, content)
    for line in left_out:
        click.echo(line, err=True)
    own = "" if _is_known(store.study) else " --with FILE (your own groups and traits, see docs/stereotypes.md)"
    click.echo(f"written to {out}; compare a model: biassay stereotypes MODEL --human {out / 'ratings.json'}{own}")


@command.command("means")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--annotators", multiple=True, metavar="FIELD=VALUE", help="Only of these annotators; repeat for all of several."
)
@click.option("--group", "groups", multiple=True, help="Only of these groups.")
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON instead of a table.")
def means(file: Path, annotators: tuple[str, ...], groups: tuple[str, ...], as_json: bool) -> None:
    """Mean ratings from an export, of all annotators or of some: what do women say, what do men?

    Some annotators can be chosen where the study links facts about people to their ratings.
    """
    import json

    from biassay.stimuli.human import read_human

    ratings = read_human(file)
    for pair in annotators:
        field, equals, value = pair.partition("=")
        if not equals:
            raise click.UsageError(f"--annotators is written FIELD=VALUE, got {pair!r}")
        ratings = ratings.subgroup(field, value)
    ratings = ratings.of_groups(groups) if groups else ratings
    names = [" - ".join(pair) for pair in ratings.pairs]
    rows = {
        group: {name: None if mean != mean else round(float(mean), 4) for name, mean in zip(names, own, strict=True)}
        for group, own in zip(ratings.groups, ratings.means, strict=True)
    }
    raters = dict(zip(ratings.groups, ratings.raters, strict=True))
    if as_json:
        found = {"annotators": len(ratings.annotators), "raters": raters, "means": rows}
        click.echo(json.dumps(found, ensure_ascii=False, indent=1))
        return
    table = Table("pair", title="mean ratings, 0 left to 100 right", title_justify="left")
    for group in rows:
        table.add_column(escape(group), justify="right", overflow="fold")
    table.add_row("annotators of the group", *(f"{raters[group]}" for group in rows), end_section=True)
    for name in names:
        table.add_row(escape(name), *(_shown(rows[group][name]) for group in rows))
    console = console_for_tables()
    console.print(table)
    few = [group for group in rows if 0 < raters[group] < _FEW]
    if few:
        console.print(f"fewer than {_FEW} annotators: {', '.join(few)}", markup=False, highlight=False)


def _is_known(study: Any) -> bool:
    """Are groups and traits those that models are asked about anyway?"""
    from biassay.stimuli.abc import load_abc

    abc = load_abc()
    groups = {name for group in abc.groups for name in group.human}
    pairs = {(pair.left, pair.right) for pair in abc.pairs}
    return set(study.groups) <= groups and set(study.pairs) <= pairs


def _shown(mean: float | None) -> str:
    return "–" if mean is None else f"{mean:.1f}"


@command.command("delete")
@study_argument
@database_option
@click.argument("identifier", metavar="CODE")
@click.option("--pool-number", is_flag=True, help="Read CODE as the participant's number in the pool.")
def delete(study: str, database: str | None, identifier: str, pool_number: bool) -> None:
    """Delete everything about one participant, identified by completion code or number in the pool."""
    if not open_store(study, database).delete(identifier, by="pool_id" if pool_number else "code"):
        kind, other = ("number in the pool", "without") if pool_number else ("completion code", "with")
        raise UsageError(f"no participant has the {kind} {identifier!r}; try again {other} --pool-number")
    click.echo("Deleted. Earlier exports still contain this participant: export again and destroy the old files.")
