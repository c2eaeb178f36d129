"""``biassay stereotypes``"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from biassay.cli.common import console_for_tables, engine_options, listener_for, open_engine
from biassay.measures.group_ceat import CEAT
from biassay.measures.word_associations import MEASURES, VARIANTS
from biassay.pipeline.stereotypes import ALL_MEASURES, stereotypes
from biassay.report.html import REPORT
from biassay.studies.stereotypes.terminal import print_stereotypes

__all__ = ["command"]


@contextmanager
def _going_on() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as error:
        error.add_note("what was answered is kept: the same command goes on from there")
        raise


@click.command("stereotypes")
@click.argument("models", nargs=-1, metavar="MODEL ...")
@click.option(
    "--measure",
    "measures",
    multiple=True,
    type=click.Choice(ALL_MEASURES),
    help="May be given several times.  [default: all but ceat]",
)
@click.option(
    "--contexts",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="For --measure ceat: a file made by `biassay contexts --abc`.",
)
@click.option(
    "--min-contexts",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="For --measure ceat: a word with fewer contexts is left out.",
)
@click.option("--human", type=click.Path(path_type=Path), metavar="FILE", help="Human judgements to compare with.")
@click.option(
    "--annotators",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Compare also with these annotators only; may be given several times.",
)
@click.option(
    "--group", "groups", multiple=True, metavar="NAME", help="Names, patterns or domains.  [default: all groups]"
)
@click.option(
    "--template", "templates", multiple=True, metavar="NAME", help="Names, patterns or kinds.  [default: all templates]"
)
@click.option(
    "--with",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A file of your own groups, traits, templates.",
)
@click.option(
    "--prior",
    type=click.Choice(("mask", "word")),
    default="mask",
    show_default=True,
    help="What a group is compared with: itself masked, or 'person' and 'people'.",
)
@click.option(
    "--variant", type=click.Choice(VARIANTS), default="paper", show_default=True, help="Form of the measures."
)
@click.option("--all-adjectives", is_flag=True, help="Take the median over all adjectives of a trait.")
@click.option("--intersections", is_flag=True, help="Also ask about all pairs of groups.")
@click.option("--draws", type=int, default=1000, show_default=True, help="Of bootstrap and split halves.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of what is drawn.")
@click.option("--out", type=click.Path(path_type=Path), help="A new folder for what is found.")
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    help="Where answers and vectors are kept.  [default: $BIASSAY_CACHE or the user's cache]",
)
@engine_options
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@click.option("--json", "as_json", is_flag=True, help="Print what is found as JSON instead of tables.")
def command(
    models: tuple[str, ...],
    measures: tuple[str, ...],
    contexts: Path | None,
    min_contexts: int,
    human: Path | None,
    annotators: tuple[str, ...],
    groups: tuple[str, ...],
    templates: tuple[str, ...],
    files: tuple[Path, ...],
    prior: str,
    variant: str,
    all_adjectives: bool,
    intersections: bool,
    draws: int,
    seed: int,
    out: Path | None,
    cache: Path | None,
    engine: str,
    address: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """What language models tie to social groups along agency, beliefs and communion (the ABC model).

    A MODEL is a masked or causal language model, `hf:NAME`. For --measure ceat alone it may be any model that gives a
    word a vector in its context, `hf:NAME` or `elmo:DIR`.
    """
    if not models:
        raise click.UsageError("name at least one MODEL: biassay stereotypes hf:NAME")
    for pair in annotators:
        if "=" not in pair:
            raise click.UsageError(f"--annotators is written FIELD=VALUE, got {pair!r}")
    if annotators and human is None:
        raise click.UsageError("--annotators is for --human")
    if CEAT not in measures and engine != "local":
        raise click.UsageError("--engine is for --measure ceat")
    with _going_on(), listener_for(quiet=quiet) as listener:
        found = stereotypes(
            models,
            measures=measures or MEASURES,
            groups=groups,
            templates=templates,
            files=files,
            contexts=contexts,
            min_contexts=min_contexts,
            human=human,
            annotators=[(field, value) for field, _, value in (pair.partition("=") for pair in annotators)],
            prior=prior,
            variant=variant,
            all_adjectives=all_adjectives,
            intersections=intersections,
            draws=draws,
            seed=seed,
            out=out,
            cache=cache,
            engine=open_engine(engine, address),
            listener=listener,
        )
    if as_json:
        click.echo(found.to_json(), nl=False)
    elif not quiet:
        console = console_for_tables()
        print_stereotypes(found, console)
        if out is not None:
            console.print(f"written to {out}; open {out / REPORT}", markup=False, highlight=False, soft_wrap=True)
