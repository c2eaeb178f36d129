"""Interface and registry of outcomes of responses: functions from texts to numbers.

Each outcome is one object, or a lexicon in its own data file.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biassay.datasets.lexicons import lexicon_names, load_lexicon, read_lexicon
from biassay.datasets.names import AuditName
from biassay.datasets.rubrics import Rubric, load_rubric, rubric_names
from biassay.errors import MeasurementError, MissingExtraError, UnknownNameError, UsageError
from biassay.packages import check_unique_name, find_package, load_plugins
from biassay.prompts.judging import RUBRIC_SCALE
from biassay.studies.audit.outcomes.responses import Responses
from biassay.studies.audit.settings import JUDGED

_GROUP = "biassay.outcomes"
OWN_PREFIX = "python:"
"""Prefix of outcomes that are functions of the user."""


@dataclass(frozen=True, eq=False)
class OutcomeScores:
    """Scores of responses.

    Attributes
    ----------
    values : (n,) float64
        One number per response; NaN if it is undefined.
    reasons : tuple of str
        Why a score is undefined; empty if it is defined.
    """

    values: NDArray[np.float64]
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class ResponseOutcome:
    """A number computed from each response, such as its length.

    Attributes
    ----------
    name, title : str
        Name for commands, and title for reports.
    unit : str
        Unit of the number.
    measures, source, weakness : str
        Meaning, source and known faults of the outcome.
    compute : callable
        Function from `Responses` to one number per response. NaN is undefined.
    languages : tuple of str
        Languages of responses that it can score; empty for all.
    words : tuple of str
        Words that it counts, if it counts words of a list.
    requires : tuple of str
        Module that it imports and extra that installs it, if any.
    undefined : str
        Why a score can be NaN, for responses that are neither empty nor in another language.
    rubric : Rubric or None
        What a judge scores instead of `compute`.
    compares : bool
        Whether the judge compares pairs of responses.
    """

    name: str
    title: str
    unit: str
    measures: str
    source: str
    weakness: str
    compute: Callable[[Responses], ArrayLike]
    languages: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    undefined: str = "undefined"
    rubric: Rubric | None = None
    compares: bool = False

    @property
    def is_installed(self) -> bool:
        """Whether the module that it imports is installed."""
        return not self.requires or find_spec(self.requires[0]) is not None

    def check_installed(self) -> None:
        """Raise MissingExtraError if the module that it imports is not installed."""
        if not self.is_installed:
            raise MissingExtraError(f"the outcome {self.name!r} uses {self.requires[0]} and", self.requires[1])

    def score(self, texts: Sequence[str], names: Sequence[AuditName]) -> OutcomeScores:
        """Score texts. In each text, "Person" first replaces the name from its prompt in `names`."""
        self.check_installed()
        return self.score_responses(Responses(texts, names))

    def score_responses(self, responses: Responses) -> OutcomeScores:
        """Score responses. Empty ones, and those in a language that the outcome cannot score, are NaN."""
        values = self._validate(self.compute(responses), len(responses))
        reasons = [self.undefined if math.isnan(value) else "" for value in values]
        if self.languages:
            reads_english = "en" in self.languages
            other = "not English" if reads_english else f"English, not {', '.join(self.languages)}"
            reasons = [
                reason if english == reads_english else other
                for reason, english in zip(reasons, responses.is_english, strict=True)
            ]
        reasons = ["empty" if empty else reason for reason, empty in zip(reasons, responses.is_empty, strict=True)]
        values[[bool(reason) for reason in reasons]] = np.nan
        return OutcomeScores(values, tuple(reasons))

    def _validate(self, returned: ArrayLike, n: int) -> NDArray[np.float64]:
        where = f"outcome {self.name!r}: the function returned"
        try:
            values = np.array(returned, dtype=np.float64)
        except (TypeError, ValueError) as error:
            message = f"outcome {self.name!r}: the function did not return numbers: {error}"
            raise MeasurementError(message) from error
        if values.shape != (n,):
            raise MeasurementError(
                f"{where} an array of shape {values.shape} for {n} responses; return one number per response"
            )
        if np.isinf(values).any():
            raise MeasurementError(f"{where} an infinite number; return NaN if a score is undefined")
        return values


def outcome_names() -> tuple[str, ...]:
    """Return the names of all outcomes, built-in ones first."""
    return (*_list_built_in_names(), *_load_plugin_outcomes())


def _list_built_in_names() -> tuple[str, ...]:
    return (*_load_built_in(), *lexicon_names())


def _load_built_in() -> dict[str, ResponseOutcome]:
    from biassay.studies.audit.outcomes.built_in import OUTCOMES  # imported late, because it imports this module

    return OUTCOMES


def _load_plugin_outcomes() -> dict[str, Any]:
    return load_plugins(_GROUP, _list_built_in_names(), ResponseOutcome)


def judged_outcome_names() -> tuple[str, ...]:
    """Return the names of all outcomes that a judge scores by a bundled rubric."""
    return tuple(f"{prefix}{rubric}" for prefix in JUDGED for rubric in rubric_names())


def get_outcome(name: str) -> ResponseOutcome:
    """Return an outcome.

    Parameters
    ----------
    name : str
        Name of an outcome; a lexicon ``FILE.toml``; ``python:MODULE:FUNCTION``, a function from a list of masked
        responses to one number each; or ``judge:RUBRIC`` or ``compare:RUBRIC``, which a judge scores.
    """
    if name.startswith(OWN_PREFIX):
        return _make_own_outcome(name)
    if prefix := next((prefix for prefix in JUDGED if name.startswith(prefix)), ""):
        return _make_judged_outcome(prefix, name.removeprefix(prefix))
    if name in _load_built_in():
        return _load_built_in()[name]
    from biassay.studies.audit.outcomes.built_in import make_lexicon_outcome

    if name in lexicon_names():
        return make_lexicon_outcome(load_lexicon(name))
    if name.lower().endswith(".toml"):
        lexicon = read_lexicon(Path(name))
        if lexicon.name in outcome_names():
            raise UsageError(f"{name}: biassay has an outcome {lexicon.name!r}; rename the file")
        return make_lexicon_outcome(lexicon)
    check_unique_name(_GROUP, name)
    added = _load_plugin_outcomes()
    if name not in added:
        known = (*_list_built_in_names(), *added)
        raise UnknownNameError(
            "outcome",
            name,
            (*known, *judged_outcome_names()),
            f"(one of {', '.join(known)}; a lexicon FILE.toml; python:MODULE:FUNCTION; or judge:RUBRIC)",
        )
    own: ResponseOutcome = added[name]
    return own


def get_outcome_package(name: str) -> str:
    """Return the distribution that provides an outcome."""
    is_own = name in (*_list_built_in_names(), *judged_outcome_names())
    return "biassay" if is_own else find_package(_GROUP, name)


def _make_judged_outcome(prefix: str, source: str) -> ResponseOutcome:
    rubric, compares = load_rubric(source), JUDGED[prefix]

    def compute(_: Responses) -> ArrayLike:
        raise MeasurementError(f"outcome {prefix}{rubric.name!r}: texts are scored by a judge; name it with --judge")

    low, high = RUBRIC_SCALE
    return ResponseOutcome(
        name=f"{prefix}{rubric.name}",
        title=f"{rubric.title} (judged{', in comparison' if compares else ''})",
        unit="share of comparisons" if compares else "points",
        measures=f"{rubric.measures} Scored by the model of --judge: "
        + (
            "the share of comparisons with a text for another name in which it is chosen."
            if compares
            else f"{low} is {rubric.low}, {high} is {rubric.high}."
        ),
        source=f"own rubric: {rubric.comparison if compares else rubric.question}",
        weakness=rubric.weakness,
        compute=compute,
        rubric=rubric,
        compares=compares,
    )


def _make_own_outcome(name: str) -> ResponseOutcome:
    module_name, _, attribute = name.removeprefix(OWN_PREFIX).partition(":")
    if not module_name or not attribute:
        raise UsageError(f"outcome {name!r}: write python:MODULE:FUNCTION")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)  # as `python -m` does
    try:
        module = import_module(module_name)
    except Exception as error:  # user code may raise anything
        raise UsageError(f"outcome {name!r}: the module {module_name!r} cannot be imported: {error!r}") from error
    function = getattr(module, attribute, None)
    if not callable(function):
        known = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise UnknownNameError(f"function in the module {module_name!r}:", attribute, known)

    def compute(responses: Responses) -> ArrayLike:
        try:
            returned: ArrayLike = function(list(responses.masked))
        except Exception as error:
            raise MeasurementError(f"outcome {name!r}: the function raised {error!r}") from error
        return returned

    return ResponseOutcome(
        name=name,
        title=attribute.replace("_", " "),
        unit="",
        measures="A function of yours.",
        source=name,
        weakness="Unknown to biassay.",
        compute=compute,
        undefined="undefined by the function",
    )
