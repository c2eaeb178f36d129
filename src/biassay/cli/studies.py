"""Define the commands that start, resume and print runs."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from biassay.cli import COMMAND_SUMMARIES
from biassay.cli.options import (
    CliRunOptions,
    Decorator,
    SectionedCommand,
    apply_options,
    open_engine,
    settings_options,
    suggest_tests,
)
from biassay.cli.progress import make_listener
from biassay.errors import BiassayError, MissingExtraError, UnknownNameError, UsageError
from biassay.io import make_printable
from biassay.reporting.html import REPORT_FILE
from biassay.reporting.terminal import make_console
from biassay.results.run_folder import MANIFEST_JSON, read_models, read_run_json
from biassay.runs.api import measure, resume
from biassay.runs.folders import is_unfinished
from biassay.runs.models import requires_user_input
from biassay.runs.reports import print_run
from biassay.runs.run import Run
from biassay.studies.registry import get_study
from biassay.studies.settings import get_setting_specs

_ALL_OPTION_NAMES = {field.name for field in dataclasses.fields(CliRunOptions)}
_RESUME_OPTION_NAMES = _ALL_OPTION_NAMES - {"out"} | {"models", "folder", "vectors"}
"""Arguments that are accepted together with --resume."""
_REPEATED_OPTION_NAMES = ("cache", "vectors", "engine", "address", "gpus", "budget")
"""Arguments that a later `biassay resume` needs again."""


def study_options(settings: type, *, budget: bool = False, models: str = "MODEL ...") -> Callable[..., Any]:
    """Create a decorator that adds the argument MODEL and all options of a study to a command.

    Parameters
    ----------
    settings : type
        Settings class of the study.
    budget : bool
        If True, add ``--budget``.
    models : str
        How the help shows the argument.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        names = _ALL_OPTION_NAMES - (set() if budget else {"budget"})
        argument = click.argument("models", nargs=-1, metavar=models)
        return apply_options((argument, settings_options(settings), settings_options(CliRunOptions, names)), command)

    return decorate


def measure_and_print(
    study: str, models: tuple[str, ...], given: dict[str, Any], *, usage: str = "", default: tuple[str, ...] = ()
) -> None:
    """Run a study, or resume a run of it, and print the results.

    Parameters
    ----------
    study : str
        Name of the study.
    models : tuple of str
        Models that the user named.
    given : dict
        All other arguments of the command.
    usage : str
        Usage line for the error if no model is given.
    default : tuple of str
        Models to measure if the user named none.
    """
    options = CliRunOptions.pop_from(given)
    if not models and not default and options.resumed is None and given.get("scores") is None:
        raise click.UsageError(f"no model given; write {usage}")
    chosen = models if options.resumed is not None else models or default
    try:
        run = run_or_resume(study, chosen, given, options)
    except MissingExtraError as error:
        if not models:
            error.add_note("to measure the vectors that come with biassay instead: biassay run glove")
        raise
    finish_run(run, options)


def run_or_resume(study: str, models: tuple[str, ...], given: dict[str, Any], options: CliRunOptions) -> Run:
    """Run a study, or resume an interrupted run.

    Parameters
    ----------
    study : str
        Name of the study.
    models : tuple of str
        Models to measure.
    given : dict
        Settings of the study.
    options : CliRunOptions
        Options that do not belong to a study.
    """
    if options.resumed is not None:
        _check_resume_options()
    engine = open_engine(options.engine, options.address, options.gpus)
    with (
        _suggest_tests_option(given.get("tests")),
        _hint_resume(options),
        make_listener(quiet=options.quiet) as listener,
    ):
        common: dict[str, Any] = {
            "cache": options.cache,
            "engine": engine,
            "listener": listener,
            "budget": options.budget,
        }
        if options.resumed is not None:
            return resume(options.resumed, models or None, vectors=given.get("vectors"), **common)
        return measure(study, models, given, out=options.out, **common)


def _check_resume_options() -> None:
    """Raise if settings are given with --resume, which takes them from the run."""
    given = [
        option.opts[0]
        for option in click.get_current_context().command.params
        if option.name not in _RESUME_OPTION_NAMES and _is_on_command_line(option.name or "")
    ]
    if given:
        raise click.UsageError(f"--resume takes the settings of the run; leave out {', '.join(given)}")


def _is_on_command_line(option: str) -> bool:
    return click.get_current_context().get_parameter_source(option) is ParameterSource.COMMANDLINE


@contextmanager
def _suggest_tests_option(tests: Sequence[str] | None) -> Iterator[None]:
    """Explain how to name tests if a name given as a model is a test."""
    try:
        yield
    except UnknownNameError as error:
        if tests is not None and error.kind == "model" and (name := suggest_tests(error.name)):
            example = ",".join(dict.fromkeys((*tests, name)))
            raise UsageError(
                f"{error.name!r} is not a model; name tests with --tests and separate them by commas: --tests {example}"
            ) from error
        raise


@contextmanager
def _hint_resume(options: CliRunOptions) -> Iterator[None]:
    """Append a hint to an error: how to resume the unfinished run."""
    try:
        yield
    except (KeyboardInterrupt, BiassayError, OSError) as error:
        rejected = options.resumed is not None and isinstance(error, UsageError)  # would be rejected again
        if options.folder is not None and not rejected and is_unfinished(options.folder):
            error.add_note(f"to continue: {_format_resume_command(options.folder)}")
        elif isinstance(error, KeyboardInterrupt) and options.folder is None:
            error.add_note("to continue, type the same command again: finished outputs are cached")
        raise


def _format_resume_command(folder: Path) -> str:
    """Return the command that continues a run with the options of this command."""
    models = [(str(model.get("name")), str(model.get("text"))) for model in read_models(folder)]
    texts = [text for _, text in models]
    again = sorted(
        f"--model {shlex.quote(f'{name}={text}' if texts.count(text) > 1 else text)}"
        for name, text in models
        if requires_user_input(text)
    )
    settings = read_run_json(folder / MANIFEST_JSON).get("settings")
    judge = settings.get("judge") if isinstance(settings, dict) else None
    if isinstance(judge, str) and judge not in texts and requires_user_input(judge):
        again.append(f"--model {shlex.quote(judge)}")
    params = click.get_current_context().params
    options = [
        f"--{name} {shlex.quote(str(params[name]))}" for name in _REPEATED_OPTION_NAMES if _is_on_command_line(name)
    ]
    return " ".join(["biassay resume", shlex.quote(str(folder)), *again, *options])


def finish_run(run: Run, options: CliRunOptions, **shown: Any) -> None:
    """Print a run as tables or as JSON; exit with 1 if a measurement failed.

    Parameters
    ----------
    run : Run
        The complete run.
    options : CliRunOptions
        Options of the command.
    **shown
        Options of the study for `print_run`.
    """
    if options.as_json:
        click.echo(run.to_json(), nl=False)
    elif not options.quiet:
        console = make_console()
        print_run(run, console, everything=options.everything, **shown)
        if options.folder is not None:
            line = f"Report  {options.folder / REPORT_FILE}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    records = run.manifest.models
    failed = [record for record in records if record.failed]
    for record in failed:
        click.echo(make_printable(f"error: {record.name}: {record.failed}"), err=True)
    if failed:
        measured = sum(not record.failed and not record.skipped for record in records)
        retry = f"; to retry the others: {_format_resume_command(options.folder)}" if options.folder else ""
        click.echo(f"measured {measured} of {len(records)} models{retry}", err=True)
    if failed or run.study.has_failures(run) or any(record.skipped for record in records):
        sys.exit(1)


_MODELS_HELP = "A MODEL is a string such as hf:NAME, or LABEL=MODEL. List them with `biassay models`."
Models = tuple[str, ...]
_Check = Callable[[Models, dict[str, Any]], str | None]
_CHECKS: dict[str, tuple[_Check, tuple[str, ...], dict[str, Any]]] = {}


def _study_command(*studies: str, **attributes: Any) -> Callable[[_Check], _Check]:
    """Create a decorator that registers a study's command.

    The decorated function checks the arguments. Its docstring is the help of the command.

    Parameters
    ----------
    *studies : str
        Names of studies. If there are several, the function returns the one to run.
    **attributes
        Other arguments of `_make_study_command`.
    """

    def register(check: _Check) -> _Check:
        _CHECKS[check.__name__] = check, studies, attributes
        return check

    return register


def make_command(name: str) -> click.Command:
    """Create the command ``biassay NAME``."""
    if name in _COMMANDS:
        return _COMMANDS[name]
    if name in _CHECKS:
        check, studies, attributes = _CHECKS[name]
        return _make_study_command(name, check, studies, **attributes)
    study = get_study(name)
    summary = COMMAND_SUMMARIES.get(name, f"Run the study {name!r} of the package {study.package}: {study.title}.")
    return _make_study_command(name, None, (name,), help=f"{summary}\n\n{_MODELS_HELP}")


def _make_study_command(
    name: str,
    check: _Check | None,
    studies: Sequence[str],
    *,
    help: str = "",
    usage: str = "",
    default: Models = (),
    arguments: Sequence[Decorator] = (),
    budget: bool = False,
) -> click.Command:
    """Create a command with the options of all its studies.

    Parameters
    ----------
    name : str
    check : callable or None
        Function that checks models and options and may return the study to run.
    studies : sequence of str
        Names of the studies.
    help : str
        Help of the command. Defaults to the docstring of `check`.
    usage, default
        See `measure_and_print`.
    arguments : sequence of decorators
        Arguments before the models.
    budget : bool
        If True, add ``--budget``.
    """

    def command(models: Models, **given: Any) -> None:
        study = check and check(models, given)
        measure_and_print(study or studies[0], models, given, usage=usage or f"biassay {name} MODEL", default=default)

    settings = tuple(get_study(study).schema.settings for study in studies)
    joined = settings[0] if len(settings) == 1 else dataclasses.make_dataclass("Both", [], bases=settings, frozen=True)
    metavar = "[MODEL ...]" if default else "MODEL ..."
    decorated = apply_options((*arguments, study_options(joined, budget=budget, models=metavar)), command)
    return click.command(name, cls=SectionedCommand, help=help or (check and check.__doc__))(decorated)


@_study_command("associations", default=("use",))
def run(models: Models, given: dict[str, Any]) -> None:
    """Run association tests on models (WEAT, SEAT); with --contexts, on words in the contexts of a corpus (CEAT).

    A MODEL is `use` (the default), `glove`, `vectors:PATH`, `hf:NAME`, ..., or LABEL=MODEL. List them with
    `biassay models`.
    """


@_study_command("audit", usage="biassay audit MODEL --documents DIR", budget=True)
def audit(models: Models, given: dict[str, Any]) -> None:
    """Test whether scores or selection change when only the name in a document changes.

    A MODEL encodes texts (scores are cosines with each --query), replies to prompts (log-odds of Yes to
    --question), or is your function `python:MODULE:NAME` that scores texts. Instead of models, audit logged scores
    with --scores.
    """
    if given["scores"] is not None and models:
        raise click.UsageError("--scores audits logged scores without a model; leave out the models")


@_study_command("word_association", usage="biassay ask chat:NAME", budget=True)
def ask(models: Models, given: dict[str, Any]) -> None:
    """Ask chat or instruct models which of two group words they associate with each word (word association tests).

    A MODEL responds to prompts: `chat:NAME` or `completions:NAME` behind an endpoint, or `hf:NAME`.

    Without --tests, biassay runs the published tests that can be significant. Tests with too few pairs of group
    words are descriptive: name them, or use --tests all, to run them too.
    """


def _benchmark_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    from biassay.studies.benchmarks.tasks import list_benchmarks

    return click.argument("benchmark", type=click.Choice(list_benchmarks()), required=False)(command)


_BENCHMARK_USAGE = "biassay benchmark bbq MODEL --data PATH"


@_study_command("benchmarks", usage=_BENCHMARK_USAGE, arguments=(_benchmark_argument,), budget=True)
def benchmark(models: Models, given: dict[str, Any]) -> None:
    """Score models on a published benchmark, with intervals over its templates, writers, terms or questions.

    For crows-pairs and stereoset, a MODEL provides likelihoods of sentences: `hf:NAME`, masked or causal, or
    `completions:NAME`. For the others, it answers questions: `chat:NAME`, `completions:NAME` or `hf:NAME`. biassay
    does not download the data.
    """
    if given["resumed"] is None and given["benchmark"] is None:
        raise click.UsageError(f"no benchmark given; write {_BENCHMARK_USAGE}")
    if given["resumed"] is None and models and given["data"] is None:
        raise click.UsageError(f"no data given for {given['benchmark']}; add --data FILE, FOLDER or PACKAGE")


@_study_command("prompt_robustness", "robustness", budget=True)
def robustness(models: Models, given: dict[str, Any]) -> str:  # noqa: ARG001
    """Test whether results depend on how a model is measured or prompted.

    A MODEL encodes texts: association tests are repeated over layers, poolings, similarities, templates and words.

    With --benchmark, or --tests wat-..., a MODEL responds to prompts (`chat:NAME`, `completions:NAME`, `hf:NAME`):
    results are repeated over wordings, orders, temperatures and system messages.
    """
    asks = given["benchmark"] is not None or any(str(test).startswith("wat-") for test in given["tests"])
    study, other = ("prompt_robustness", "robustness") if asks else ("robustness", "prompt_robustness")
    names, foreign = (set(get_setting_specs(get_study(study).schema.settings)) for study in (study, other))
    for name in foreign - names:
        if _is_on_command_line(name):
            kind = "models that encode texts" if asks else "--benchmark or --tests wat-..."
            raise click.UsageError(f"--{name.replace('_', '-')} is for {kind}; leave it out")
        given.pop(name, None)
    return study


@_study_command("debiasing", usage="biassay debias MODEL --concept gender --method leace")
def debias(models: Models, given: dict[str, Any]) -> None:
    """Erase a concept from models, and measure what is gone, what is left and what is lost.

    A MODEL encodes texts: `glove`, `vectors:PATH`, `hf:NAME`, `st:NAME`, ... Four numbers are compared before and
    after: associations, a linear probe on held-out words, a name audit, and similarities between words. Use the
    erased model as MODEL?erase=METHOD:CONCEPT.
    """


@click.command("resume", cls=SectionedCommand)
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="[LABEL=]MODEL",
    help="Give a model of the run again. May be repeated.",
)
@click.option(
    "--vectors", type=click.Path(path_type=Path), help="Use this folder of context vectors, if the run had one."
)
@settings_options(CliRunOptions, _ALL_OPTION_NAMES - {"out", "resumed"})
def _resume(folder: Path, models: tuple[str, ...], **given: Any) -> None:
    """Continue an interrupted run of any study.

    biassay does not take models from the folder that run code (`python:`, `trust_remote_code=`) or send texts away
    (`api:`, `chat:`, `completions:`): give such a model again with --model, and a folder of context vectors with
    --vectors. The judge of an audit counts as a model.
    """
    options = CliRunOptions.pop_from({**given, "resumed": folder})
    finish_run(run_or_resume("", models, {"vectors": given["vectors"]}, options), options)


@click.command("import")
@click.argument("logs", nargs=-1, required=True, metavar="LOG ...", type=click.Path(path_type=Path))
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Set the significance level.")
@settings_options(CliRunOptions, ("out", "everything", "quiet", "as_json"))
def _import(logs: tuple[Path, ...], alpha: float, **given: Any) -> None:
    """Score BBQ, CrowS-Pairs or StereoSet from responses that another tool logged.

    A LOG is a sample log of lm-evaluation-harness (samples_TASK_DATE.jsonl, made with --log_samples), a log of Inspect
    (.eval or .json), or a file of responses that the authors of BBQ released (preds_CATEGORY.jsonl). Neither tool needs
    to be installed.
    """
    from biassay.runs.log_import import import_logs  # only this command needs the readers

    options = CliRunOptions.pop_from(given)
    with make_listener(quiet=options.quiet) as listener:
        run = import_logs(logs, alpha=alpha, out=options.out, listener=listener)
    finish_run(run, options)


_COMMANDS = {"import": _import, "resume": _resume}
