"""Interface of a benchmark: its items, its scores and its texts; and the sample of its items that a run uses."""

from __future__ import annotations

import fnmatch
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from biassay.cache.outputs import Capabilities, ModelOutputs
from biassay.datasets.benchmark_files import FlaggedItems, read_flagged
from biassay.errors import UnknownNameError, UsageError
from biassay.grouping import group_pairs
from biassay.models.backend import Capability
from biassay.results.run_data import RunSlice
from biassay.stats.balanced_sample import draw_balanced
from biassay.stats.clusters import ClusterEstimate, Floats, cluster_estimate
from biassay.studies.benchmarks.settings import BenchmarkSettings
from biassay.studies.benchmarks.tasks import get_task
from biassay.studies.study import Event, Requests, derive_seed

if TYPE_CHECKING:
    from biassay.studies.benchmarks.results import BenchmarkResult

Totals = dict[object, tuple[float, ...]]
"""What every sampling unit adds to a score."""
_STEP = 1e-5  # for derivatives


@dataclass(frozen=True, eq=False)
class Statistic:
    """A score of totals over sampling units, and how reports describe it.

    Attributes
    ----------
    scale : str
        Name of the scale.
    compute : callable
        Function from totals (..., m) to the distance of the score from that of a model without bias.
    claims : (str, str)
        What a score above and below that of a model without bias means: "with the stereotype".
    sentences : (str, str)
        The claims as sentences about a ``{category}`` in a ``{condition}``.
    distance : str
        Name of the distance from the score without bias, if it is not `scale`.
    limit : float or None
        Largest distance from the score without bias. None if there is none.
    lowest : float
        Smallest possible score, at which intervals end.
    null : float
        Score without bias.
    weight : int, sequence of int or None
        Column of the totals that the score divides by, as in `cluster_estimate`.
    direction : {1, None}
        Sign that is expected. None if neither is.
    untested : str
        Why the score is described and not tested; empty if it is tested.
    heavy_tails : bool
        Whether a few sampling units may decide the score, as in `cluster_estimate`.
    link : pair of callables, optional
        Function from the score to the scale on which its interval is computed, and its inverse.
    """

    scale: str
    compute: Callable[[Floats], Floats]
    claims: tuple[str, str]
    sentences: tuple[str, str]
    distance: str = ""
    limit: float | None = 1.0
    lowest: float = -math.inf
    null: float = 0.0
    weight: int | Sequence[int] | None = 1
    direction: int | None = 1
    untested: str = ""
    heavy_tails: bool = False
    link: tuple[Callable[[Floats], Floats], Callable[[float], float]] | None = None

    def estimate(self, totals: Floats, confidence: float) -> ClusterEstimate:
        """Estimate the score from totals (units, m), with an interval for other sampling units."""
        within = (-math.inf, math.inf) if self.limit is None else (-self.limit, self.limit)
        options: Any = {"confidence": confidence, "weight": self.weight, "heavy_tails": self.heavy_tails}
        if self.link is None:
            found = cluster_estimate(totals, self.compute, within=within, **options)
            return replace(found, interval=(max(found.interval[0], self.lowest), found.interval[1]))
        forward, inverse = self.link
        found = cluster_estimate(totals, lambda own: forward(self.compute(own)), **options)
        value, low, high = (inverse(number) for number in (found.value, *found.interval))
        slope = (inverse(found.value + _STEP) - inverse(found.value - _STEP)) / (2.0 * _STEP)
        error = slope * found.standard_error
        return replace(found, value=value, interval=(low, high), standard_error=error)


@dataclass(frozen=True, eq=False)
class BenchmarkData:
    """Items of a benchmark, as they were read.

    Attributes
    ----------
    items : tuple of (str, item)
        Items with their categories.
    digests : dict of str to str
        Hash of the content, by category or for "all" of them.
    versions : dict of str to str
        Released version that has this content, by the same keys; empty if there is none.
    flagged : int
        Number of items that are left out because a file lists them.
    without_target : dict of str to int
        Number of items that cannot be scored, by category.
    """

    items: tuple[tuple[str, Any], ...]
    digests: dict[str, str]
    versions: dict[str, str]
    flagged: int = 0
    without_target: Mapping[str, int] = field(default_factory=dict)


class BenchmarkTask(ABC):
    """A benchmark: how its items are read, asked and scored, and how reports describe it.

    Attributes
    ----------
    name, title : str
        Name for commands, and title for reports.
    source : str
        Work to cite: a key of biassay's references, or free text.
    capability : {"replies", "likelihoods"}
        Capabilities that a model needs.
    item_name : str
        Name of one item: question, pair.
    unit : str
        Name of the sampling unit: template.
    n_options : int
        Number of options of a question; 0 if items have no options.
    balance : str
        Factors over which a sample is balanced, or "in" and the units that it draws as a whole.
    statistics : dict of str to Statistic
        Scores by condition; "" if there is one.
    score_text : str
        The scores in one sentence, for the methods section.
    caption : str
        Caption of the figure.
    terms : dict of str to str
        Explanations of terms in reports.
    ends : (str, str)
        Labels of both ends of the figure's axis.
    unusable : str
        Why some items cannot be scored: "questions have no target and are not scored".
    notes : tuple of str
        Known faults of the benchmark, for reports.
    doubts : str
        Work on its faults: a key of biassay's references.
    accepts_flagged : bool
        If True, a file may list items to leave out.
    """

    name: str
    title: str
    source: str
    capability: Capability = "replies"
    item_name: str = "question"
    unit: str = "template"
    n_options: int = 0
    balance: str = ""
    statistics: ClassVar[Mapping[str, Statistic]]
    score_text: str
    caption: str
    terms: ClassVar[Mapping[str, str]] = {}
    ends: tuple[str, str] = ("against the stereotype", "with the stereotype")
    unusable: str = "items cannot be scored"
    notes: tuple[str, ...] = ()
    doubts: str = ""
    accepts_flagged: ClassVar[bool] = False

    @abstractmethod
    def read(self, location: Path | str, flagged: FlaggedItems | None) -> BenchmarkData:
        """Read the items from a file, a folder or an installed package."""

    @abstractmethod
    def requests(self, inputs: BenchmarkInputs, capabilities: Capabilities) -> Requests:
        """Return the requests to a model with these capabilities."""

    @abstractmethod
    def measure(self, inputs: BenchmarkInputs, model: ModelOutputs) -> Iterator[Event]:
        """Yield the rows of one model."""

    @abstractmethod
    def sum_by_unit(self, model: RunSlice, row: BenchmarkResult) -> Totals:
        """Return the contribution of every sampling unit to the score of a row, for comparisons of models."""

    def factors(self, item: Any) -> tuple[Hashable, ...]:  # noqa: ARG002
        """Return the levels of an item over which a sample is balanced."""
        return ()

    def draw(self, items: Sequence[Any], limit: int, rng: np.random.Generator) -> tuple[Any, ...]:
        """Draw at most `limit` items of a category, balanced over `factors`.

        Parameters
        ----------
        items : sequence
            Items of the category.
        limit : int
        rng : numpy Generator
        """
        levels = np.array([_encode_levels(column) for column in zip(*map(self.factors, items), strict=True)]).T
        return tuple(items[index] for index in draw_balanced(levels, limit, rng).tolist())

    def get_statistic(self, condition: str) -> Statistic:
        """Return the score of a condition."""
        return self.statistics.get(condition) or next(iter(self.statistics.values()))


def describe_balance(task: BenchmarkTask) -> str:
    """Return the fields over which a sample is balanced, or the units of which it consists, after a comma."""
    balance = task.balance
    return f", {balance if balance.startswith('in ') else f'balanced over {balance}'}" if balance else ""


def draw_sample(items: Mapping[str, tuple[Any, ...]], settings: BenchmarkSettings) -> dict[str, tuple[Any, ...]]:
    """Draw at most ``settings.limit`` items of every category; all of them without a limit."""
    limit, task = settings.limit, get_task(settings.benchmark)
    if limit is None:
        return dict(items)
    return {
        name: task.draw(own, limit, np.random.default_rng(derive_seed(settings.seed, "limit", name)))
        if limit < len(own)
        else own
        for name, own in items.items()
    }


def _encode_levels(column: Sequence[Hashable]) -> list[int]:
    known = {level: code for code, level in enumerate(dict.fromkeys(column))}
    return [known[level] for level in column]


RELEASED = "as released"
"""Version of data that equals the authors' release."""


@dataclass(frozen=True)
class BenchmarkInputsRecord:
    """Stored in the manifest, so that a run is resumed only with the same items.

    ``digests`` are of all items of the files, by category for BBQ, and of the categories that are measured.
    ``versions`` says by the same keys what was released under this content; empty: nothing that is known; ``version``
    is that of all of them. ``without_target`` are items that cannot be scored, ``unmapped`` samples of logs
    that cannot be used, and ``unmapped_samples`` which ones and why. ``available`` is the number of items by category
    of which a part was drawn (``--limit``); empty: all were used.
    """

    benchmark: str
    digests: dict[str, str]
    version: str
    items: dict[str, int]
    flagged: int
    flagged_digest: str
    without_target: int
    unmapped: int = 0
    unmapped_samples: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    available: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class BenchmarkInputs:
    """Settings, and the items by category; ``differs`` lists deviations from the released data."""

    settings: BenchmarkSettings
    record: BenchmarkInputsRecord
    items: Mapping[str, tuple[Any, ...]]
    differs: str = ""

    @property
    def all_items(self) -> list[Any]:
        """Items of all categories, in order."""
        return [item for items in self.items.values() for item in items]


def load_inputs(settings: BenchmarkSettings) -> BenchmarkInputs:
    """Read the items of a benchmark from the user's file, folder or installed package."""
    task = get_task(settings.benchmark)
    if settings.data is None:
        raise UsageError(f"name the data of {settings.benchmark} is: --data (data=) FILE, FOLDER or PACKAGE")
    if settings.flagged is not None and not task.accepts_flagged:
        raise UsageError(f"--flagged leaves out items of crows-pairs and stereoset, not of {settings.benchmark}")
    location = os.path.abspath(settings.data) if Path(settings.data).exists() else settings.data
    flagged = None if settings.flagged is None else read_flagged(os.path.abspath(settings.flagged))
    settings = replace(settings, data=location, flagged=None if flagged is None else str(flagged.path))
    data = task.read(location, flagged)
    every = _group_by_category(data.items, settings)
    items = draw_sample(every, settings)
    measured = {"all", *(name.removesuffix(" (names)") for name in items)}
    versions = {name: version for name, version in data.versions.items() if name in measured}
    digests = {name: data.digests[name] for name in versions}
    other = {name: digest for name, digest in digests.items() if not versions[name]}
    record = BenchmarkInputsRecord(
        settings.benchmark,
        digests,
        "" if other else next(iter(versions.values()), ""),
        {name: len(of) for name, of in items.items()},
        data.flagged,
        "" if flagged is None else flagged.digest,
        sum(n for name, n in data.without_target.items() if _is_chosen(name, settings)),
        versions=versions,
        available={name: len(of) for name, of in every.items() if len(items[name]) < len(of)},
    )
    named = ", ".join(f"{name} (digest {digest})" for name, digest in other.items())
    differs = f"the data differs from the authors' release (another version, or a part of one): {named}"
    return BenchmarkInputs(settings, record, items, differs if other else "")


def _group_by_category(items: Sequence[tuple[str, Any]], settings: BenchmarkSettings) -> dict[str, tuple[Any, ...]]:
    found = group_pairs(items)
    for name in settings.categories:
        if not fnmatch.filter(found, name):
            raise UnknownNameError("category", name, found, f"(in the data: {', '.join(found)})")
    if not found:
        raise UsageError(f"{settings.data}: no item of {settings.benchmark} is left to measure")
    return {name: tuple(of) for name, of in found.items() if _is_chosen(name, settings)}


def _is_chosen(category: str, settings: BenchmarkSettings) -> bool:
    return not settings.categories or any(fnmatch.fnmatchcase(category, pattern) for pattern in settings.categories)
