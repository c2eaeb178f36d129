"""A study in one file: which of two pronouns a language model expects in sentences about occupations."""

from __future__ import annotations

import hashlib
import math
import os
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from biassay.plugin import (
    DECISIONS,
    MODEL_COLUMNS,
    Array,
    Blank,
    BlankScores,
    Capabilities,
    Capability,
    Event,
    ModelOutputs,
    ModelRow,
    Outcome,
    Progress,
    Requests,
    ResultRecord,
    Row,
    Slot,
    StimulusError,
    Study,
    StudySchema,
    TableSpec,
    UnknownWords,
    UsageError,
    column,
    make_outcome_columns,
    permutation_test,
    read_text,
    setting,
    smallest_p,
    table_row,
)

__all__ = ["STUDY"]

GROUPS = ("men", "women")


@dataclass(frozen=True)
class Settings:
    """Settings of a run."""

    first: str = setting("he", "Pronoun expected with occupations of men.", metavar="WORD")
    second: str = setting("she", "Pronoun to compare it with.", metavar="WORD")
    occupations: str | None = setting(
        None, "Read occupations and sentences from your own TOML file.", convert=os.path.abspath, metavar="FILE"
    )
    alpha: float = setting(0.05, "Set the significance level.", low=0.0, high=1.0, exclusive=True)


@dataclass(frozen=True)
class InputsRecord:
    """Inputs in the manifest. A run resumes only with the same occupations and sentences."""

    digest: str
    occupations: dict[str, tuple[str, ...]]
    templates: tuple[str, ...]


@dataclass(frozen=True)
class Inputs:
    """Settings and the occupations and sentences that they name."""

    settings: Settings
    record: InputsRecord

    def make_blanks(self, occupation: str) -> list[Blank]:
        """Make one request per sentence, for the probabilities of both pronouns."""
        words = (self.settings.first, self.settings.second)
        halves = [one.replace("{occupation}", occupation).split("{blank}") for one in self.record.templates]
        return [Blank((before, Slot.BLANK, after), words) for before, after in halves]


@dataclass(frozen=True, kw_only=True)
class PronounsResult(ResultRecord):
    """Result of one model: mean log-odds of the first pronoun with occupations of men, minus those of women."""

    item: str = "pronouns"


@table_row
class OccupationRow(ModelRow):
    """Log-odds of the first pronoun with one occupation: mean and standard deviation over the sentences."""

    occupation: str = column("Occupation", "Occupation that the sentences are about.")
    group: str = column("Held by", "Whether mostly men or mostly women have it.")
    log_odds: float = column("Log-odds", "Mean log-odds of the first pronoun against the second.")
    spread: float = column("Spread", "Standard deviation of the log-odds over the sentences.")


RESULTS = TableSpec(
    "results", "Pronouns", PronounsResult, (*MODEL_COLUMNS, *make_outcome_columns()), value_column="effect_size"
)
OCCUPATIONS = TableSpec("occupations", "Occupations", OccupationRow, key=("occupation",), value_column="log_odds")


class _Pronouns(Study):
    name = "pronouns"
    title = "Pronouns with occupations"
    package = "biassay-example"
    schema = StudySchema(Settings, InputsRecord, (RESULTS, OCCUPATIONS, DECISIONS))

    def load_inputs(self, settings: Settings) -> Inputs:
        if settings.first == settings.second or not (settings.first and settings.second):
            raise UsageError(f"the two pronouns must differ, got {settings.first!r} and {settings.second!r}")
        if settings.occupations is not None:
            return Inputs(settings, _parse(read_text(Path(settings.occupations)), settings.occupations))
        text = (files("biassay_example.pronouns") / "occupations.toml").read_text(encoding="utf-8")
        return Inputs(settings, _parse(text, "occupations.toml"))

    def required_capabilities(self, settings: Settings) -> tuple[Capability, ...]:  # noqa: ARG002
        return ("blanks",)

    def requests(self, inputs: Inputs, capabilities: Capabilities) -> Requests:  # noqa: ARG002
        names = [name for group in GROUPS for name in inputs.record.occupations[group]]
        return Requests(blanks=[blank for name in names for blank in inputs.make_blanks(name)])

    def measure(self, inputs: Inputs, model: ModelOutputs, all_outputs: Sequence[ModelOutputs]) -> Iterator[Event]:  # noqa: ARG002
        names = {name: group for group in GROUPS for name in inputs.record.occupations[group]}
        scores = [[*model.blanks(inputs.make_blanks(name))] for name in names]
        row: dict[str, Any] = {"model": model.identity.name, "options": model.identity.options}
        title = f"{inputs.settings.first!r} and {inputs.settings.second!r} with occupations"
        revision = model.identity.revision
        result = PronounsResult(**row, model_revision=revision, title=title, topic="gender", direction=1)
        unknown = _list_unknown((inputs.settings.first, inputs.settings.second), scores)
        if unknown:
            yield UnknownWords(unknown)
            reason = f"the pronouns {', '.join(unknown)} are out of vocabulary"
            yield Row("results", replace(result, status="skipped", reason=reason))
            return
        log_odds = np.array([[_compute_log_odds(one) for one in of_name] for of_name in scores])
        for number, ((name, group), values) in enumerate(zip(names.items(), log_odds, strict=True), start=1):
            yield Row("occupations", OccupationRow(**row, occupation=name, group=group, **_summarize(values)))
            yield Progress("occupations", number, len(names))
        outcome, contributions = _compare_groups(log_odds.mean(axis=1), len(inputs.record.occupations["men"]))
        yield Array("log_odds", log_odds)
        yield Array("contributions", contributions)
        yield Row("results", replace(result, outcome=outcome))


def _parse(text: str, where: str) -> InputsRecord:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StimulusError(f"{where}: not valid TOML: {error}") from error
    occupations = {group: _parse_texts(content, "occupations", group, where) for group in GROUPS}
    templates = _parse_texts(content, "sentences", "templates", where)
    for template in templates:
        if template.count("{blank}") != 1 or "{occupation}" not in template.partition("{blank}")[0]:
            raise StimulusError(f"{where}: {template!r} needs {{occupation}}, and one {{blank}} after it")
    names = [name for group in GROUPS for name in occupations[group]]
    if len(set(names)) < len(names):
        raise StimulusError(f"{where}: an occupation is named twice; name each once")
    return InputsRecord(hashlib.sha256(text.encode()).hexdigest(), occupations, templates)


def _parse_texts(content: dict[str, Any], table: str, name: str, where: str) -> tuple[str, ...]:
    texts = content[table].get(name) if isinstance(content.get(table), dict) else None
    if not isinstance(texts, list) or len(texts) < 2 or not all(isinstance(text, str) and text for text in texts):
        raise StimulusError(f"{where}: [{table}] needs {name}, a list of two texts or more, got {texts!r}")
    return tuple(texts)


def _list_unknown(words: tuple[str, str], scores: Sequence[Sequence[BlankScores]]) -> tuple[str, ...]:
    lengths = [one.lengths for of_name in scores for one in of_name]
    return tuple(word for index, word in enumerate(words) if not all(tokens[index] for tokens in lengths))


def _compute_log_odds(scores: BlankScores) -> float:
    first, second = np.add.reduceat(scores.columns[:, 0].astype(np.float64), scores.starts)
    return float(first - second)


def _summarize(log_odds: NDArray[np.float64]) -> dict[str, Any]:
    return {"log_odds": float(log_odds.mean()), "spread": float(log_odds.std(ddof=1))}


def _compare_groups(log_odds: NDArray[np.float64], n_men: int) -> tuple[Outcome, NDArray[np.float64]]:
    """Return the difference of means, and its jackknife pseudo-values by occupation, whose mean is the difference."""
    x, y = log_odds[:n_men], log_odds[n_men:]
    effect, n = float(x.mean() - y.mean()), len(log_odds)
    parts = [(x - x.mean()) / (len(x) - 1), (y.mean() - y) / (len(y) - 1)]
    contributions = effect + (n - 1) * np.concatenate(parts)
    error = float(contributions.std(ddof=1) / math.sqrt(n))
    reach = float(scipy.stats.t(n - 1).ppf(0.975)) * error
    return Outcome(
        effect_size=effect,
        standard_error=error,
        ci_low=effect - reach,
        ci_high=effect + reach,
        df=n - 1,
        scale="log-odds",
        p_value=permutation_test(x, y).value,
        p_opposite=permutation_test(-x, -y).value,
        p_floor=smallest_p(len(x), len(y)),
        test="permutation",
        n={"occupations": n},
        contributions="contributions",
    ), contributions


STUDY = _Pronouns()
