"""Commands of studies: run, ask, benchmark, import, and one per study without a module of its own."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from biassay.cli import COMMAND_SUMMARIES
from biassay.cli.common import make_listener
from biassay.cli.options import SectionedCommand, json_option, quiet_option
from biassay.cli.runs import CliRunOptions, finish_run, measure_and_print, study_options
from biassay.errors import MissingExtraError
from biassay.studies.registry import get_study

_MODELS_HELP = "A MODEL is a string such as hf:NAME, or LABEL=MODEL. List them with `biassay models`."


def make_command(name: str) -> click.Command:
    """Create the command ``biassay NAME MODEL ...``."""
    if name == "import":
        return _import
    makers = {
        "run": _make_run,
        "audit": _make_audit,
        "ask": _make_ask,
        "benchmark": _make_benchmark,
        "robustness": _make_robustness,
        "debias": _make_debias,
    }
    return makers[name]() if name in makers else _make_default(name)


def _make_default(name: str) -> click.Command:
    study = get_study(name)

    @study_options(study.schema.settings)
    def command(models: tuple[str, ...], **given: Any) -> None:
        measure_and_print(name, models, given, usage=f"biassay {name} MODEL")

    summary = COMMAND_SUMMARIES.get(name, f"Run the study {name!r} of the package {study.package}: {study.title}.")
    created: click.Command = click.command(name, cls=SectionedCommand, help=f"{summary}\n\n{_MODELS_HELP}")(command)
    return created


def _make_run() -> click.Command:
    from biassay.studies.associations.settings import AssociationSettings

    @click.command("run", cls=SectionedCommand)
    @study_options(AssociationSettings, models="[MODEL ...]")
    def command(models: tuple[str, ...], **given: Any) -> None:
        """Run association tests on models (WEAT, SEAT); with --contexts, on words in the contexts of a corpus (CEAT).

        A MODEL is `use` (the default), `glove`, `vectors:PATH`, `hf:NAME`, ..., or LABEL=MODEL. List them with
        `biassay models`.
        """
        try:
            measure_and_print("associations", models, given, default=("use",))
        except MissingExtraError as error:
            if not models:
                error.add_note("to measure the vectors that come with biassay instead: biassay run glove")
            raise

    return command


def _make_audit() -> click.Command:
    from biassay.runs.api import name_logged_model
    from biassay.studies.audit.settings import AuditSettings

    @click.command("audit", cls=SectionedCommand)
    @study_options(AuditSettings, budget=True)
    def command(models: tuple[str, ...], **given: Any) -> None:
        """Test whether scores or selection change when only the name in a document changes.

        A MODEL encodes texts (scores are cosines with each --query), replies to prompts (log-odds of Yes to
        --question), or is your function `python:MODULE:NAME` that scores texts. Instead of models, audit logged scores
        with --scores.
        """
        if given["scores"] is not None:
            if models:
                raise click.UsageError("--scores audits logged scores without a model; leave out the models")
            models = (name_logged_model(Path(given["scores"])),)
        measure_and_print("audit", models, given, usage="biassay audit MODEL --documents DIR")

    return command


def _make_ask() -> click.Command:
    from biassay.studies.word_association.settings import WordAssociationSettings

    @click.command("ask", cls=SectionedCommand)
    @study_options(WordAssociationSettings, budget=True)
    def command(models: tuple[str, ...], **given: Any) -> None:
        """Ask chat or instruct models which of two group words they associate with each word (word association tests).

        A MODEL responds to prompts: `chat:NAME` or `completions:NAME` behind an endpoint, or `hf:NAME`.

        Without --tests, biassay runs the published tests that can be significant. Tests with too few pairs of group
        words are descriptive: name them, or use --tests all, to run them too.
        """
        measure_and_print("word_association", models, given, usage="biassay ask chat:NAME")

    return command


def _make_benchmark() -> click.Command:
    from biassay.studies.benchmarks.settings import BenchmarkSettings
    from biassay.studies.benchmarks.tasks import list_benchmarks

    @click.command("benchmark", cls=SectionedCommand)
    @click.argument("benchmark", type=click.Choice(list_benchmarks()), required=False)
    @study_options(BenchmarkSettings, budget=True)
    def command(benchmark: str | None, models: tuple[str, ...], **given: Any) -> None:
        """Score models on a published benchmark, with intervals over its templates, writers, terms or questions.

        For crows-pairs and stereoset, a MODEL provides likelihoods of sentences: `hf:NAME`, masked or causal, or
        `completions:NAME`. For the others, it answers questions: `chat:NAME`, `completions:NAME` or `hf:NAME`. biassay
        does not download the data.
        """
        usage = "biassay benchmark bbq MODEL --data PATH"
        if given["resumed"] is None and benchmark is None:
            raise click.UsageError(f"no benchmark given; write {usage}")
        if given["resumed"] is None and models and given["data"] is None:
            raise click.UsageError(f"no data given for {benchmark}; add --data FILE, FOLDER or PACKAGE")
        measure_and_print("benchmarks", models, {"benchmark": benchmark, **given}, usage=usage)

    return command


def _make_robustness() -> click.Command:
    from biassay.studies.robustness.settings import PromptRobustnessSettings, RobustnessSettings

    encoding, prompting = (
        {field.name for field in dataclasses.fields(settings)}
        for settings in (RobustnessSettings, PromptRobustnessSettings)
    )
    both = dataclasses.make_dataclass("Both", [], bases=(PromptRobustnessSettings, RobustnessSettings), frozen=True)

    @click.command("robustness", cls=SectionedCommand)
    @study_options(both, budget=True)
    @click.pass_context
    def command(context: click.Context, /, models: tuple[str, ...], **given: Any) -> None:
        """Test whether results depend on how a model is measured or prompted.

        A MODEL encodes texts: association tests are repeated over layers, poolings, similarities, templates and words.

        With --benchmark, or --tests wat-..., a MODEL responds to prompts (`chat:NAME`, `completions:NAME`, `hf:NAME`):
        results are repeated over wordings, orders, temperatures and system messages.
        """
        asks = given["benchmark"] is not None or any(str(test).startswith("wat-") for test in given["tests"])
        for name in encoding - prompting if asks else prompting - encoding:
            if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
                option = f"--{name.replace('_', '-')}"
                kind = "models that encode texts" if asks else "--benchmark or --tests wat-..."
                raise click.UsageError(f"{option} is for {kind}; leave it out")
            given.pop(name, None)
        study = "prompt_robustness" if asks else "robustness"
        measure_and_print(study, models, given, usage="biassay robustness MODEL")

    return command


def _make_debias() -> click.Command:
    from biassay.studies.debiasing.settings import DebiasingSettings

    @click.command("debias", cls=SectionedCommand)
    @study_options(DebiasingSettings)
    def command(models: tuple[str, ...], **given: Any) -> None:
        """Erase a concept from models, and measure what is gone, what is left and what is lost.

        A MODEL encodes texts: `glove`, `vectors:PATH`, `hf:NAME`, `st:NAME`, ... Four numbers are compared before and
        after: associations, a linear probe on held-out words, a name audit, and similarities between words. Use the
        erased model as MODEL?erase=METHOD:CONCEPT.
        """
        measure_and_print("debiasing", models, given, usage="biassay debias MODEL --concept gender --method leace")

    return command


@click.command("import")
@click.argument("logs", nargs=-1, required=True, metavar="LOG ...", type=click.Path(path_type=Path))
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Set the significance level.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the run to this new folder.")
@click.option("--all", "everything", is_flag=True, help="Print all rows and columns.")
@quiet_option
@json_option
def _import(
    logs: tuple[Path, ...], alpha: float, out: Path | None, everything: bool, quiet: bool, as_json: bool
) -> None:
    """Score BBQ, CrowS-Pairs or StereoSet from responses that another tool logged.

    A LOG is a sample log of lm-evaluation-harness (samples_TASK_DATE.jsonl, made with --log_samples), a log of Inspect
    (.eval or .json), or a file of responses that the authors of BBQ released (preds_CATEGORY.jsonl). Neither tool needs
    to be installed.
    """
    from biassay.runs.log_import import import_logs  # no other command of this module needs the readers

    with make_listener(quiet=quiet) as listener:
        run = import_logs(logs, alpha=alpha, out=out, listener=listener)
    finish_run(run, CliRunOptions(out=out, everything=everything, quiet=quiet, as_json=as_json))
