"""Every p-value and interval that biassay prints has a claim in the table of benchmarks/validity.py, or a reason."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import biassay
from biassay.studies.associations.compare import AssociationDifference
from biassay.studies.registry import get_study
from biassay.studies.stereotypes.compare import AgreementDifference

ROOT = Path(__file__).resolve().parents[1]
STUDIES = (
    "associations",
    "discovery",
    "stereotypes",
    "robustness",
    "word_association",
    "benchmarks",
    "audit",
    "prompt_robustness",
    "debiasing",
)
COMPARED = {"associations": AssociationDifference, "stereotypes": AgreementDifference}
EMPTY: Any = SimpleNamespace(tables={}, manifest=SimpleNamespace(inputs=SimpleNamespace(labels={}, groups=())))


@pytest.fixture(scope="module")
def registry() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from claims import registry as found

    yield found
    sys.path.remove(str(ROOT / "benchmarks"))


def printed() -> Iterator[str]:
    """Columns that hold a p-value or an end of an interval, as study.table.column."""
    for name in STUDIES:
        for table in get_study(name).schema.tables:
            for column in table.get_columns(EMPTY):
                if column.format in ("p", "interval") or re.search(r"(^|_)(low|high)$", column.name):
                    yield f"{name}.{table.name}.{column.name}"
    for name, record in COMPARED.items():
        for field in dataclasses.fields(record):
            if re.search(r"_(low|high)$|^[pq]_", field.name):
                yield f"{name}.compare.{field.name}"
    yield from ("survey.progress.low", "survey.progress.high")


def test_every_printed_p_value_and_interval_has_a_claim(registry: ModuleType) -> None:
    claimed = {column for claim in registry.CLAIMS.values() for column in claim.columns}
    assert set(printed()) == claimed | set(registry.UNTESTED)
    assert not claimed & set(registry.UNTESTED)


def test_every_claim_is_simulated_and_has_its_figures(registry: ModuleType) -> None:
    """Worlds are named once, and validity.json has a row for every line: after a change, it is to be run again."""
    lines = registry.all_lines()
    assert {line.claim for line in lines} == set(registry.CLAIMS)
    worlds = {line.experiment.name: line.experiment.simulated for line in lines}
    assert all(worlds[line.experiment.name] == line.experiment.simulated for line in lines)
    rows = json.loads((ROOT / "benchmarks" / "validity.json").read_text())
    wanted = [(line.claim, line.experiment.name, line.note, line.read.limits) for line in lines]
    assert [(row["claim"], row["experiment"], row["note"], row["wanted"]) for row in rows] == wanted
    assert all(row["n"] == line.experiment.repetitions for row, line in zip(rows, lines, strict=True))


def test_the_appendix_has_the_figures_of_the_file(registry: ModuleType) -> None:  # noqa: ARG001
    from claims.tables import appendix

    rows = json.loads((ROOT / "benchmarks" / "validity.json").read_text())
    assert (ROOT / "docs" / "validity-appendix.md").read_text() == appendix(rows)
    assert f"all {len(rows):,} simulation results" in (ROOT / "docs" / "validity.md").read_text()


def test_shares_are_counted_over_repetitions(registry: ModuleType) -> None:  # noqa: ARG001
    from claims.claim import Coverage, Level

    p = np.array([0.04, 0.2, np.nan, 0.009])
    found = Level("p", (0.0, 0.6, 0.2)).read({"p": p})
    assert (found["at_05"], found["at_01"], found["missing"]) == (0.5, 0.25, 0.25)
    error = np.std([1, 0, 0, 0], ddof=1) / 2
    assert found["off"] == pytest.approx((0.25 - 0.2) / error)
    assert found["error"] == pytest.approx(np.std([1, 0, 0, 1], ddof=1) / 2)
    ends = {"low": np.array([0.0, 1.5, np.nan]), "high": np.array([2.0, 3.0, np.nan]), "d": np.array([0.0, 1.0, 2.0])}
    held = Coverage("low", "high", "d", (0.4, 0.6)).read(ends)
    assert (held["coverage"], held["missing"], held["off"]) == (0.5, pytest.approx(1 / 3), 0.0)


def test_the_benchmark_of_the_gate_measures_and_compares(tmp_path: Path) -> None:
    """The run that `measure` returns is one that `compare` accepts: a copy of random vectors is no worse."""
    spec = importlib.util.spec_from_file_location("gate_benchmark", ROOT / "benchmarks" / "gate.py")
    assert spec is not None
    assert spec.loader is not None
    gate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gate)
    words = gate.words_of(biassay.select_tests("weat6"))
    vectors = dict(zip(words, np.random.default_rng(0).normal(size=(len(words), 50)), strict=True))
    old, new = (gate.measure(vectors, ["weat6"], name, str(tmp_path)) for name in ("old", "new"))
    assert old.results[0].cosine_sd > 0.0
    assert [verdict.outcome for verdict in biassay.compare(old, new).verdicts] == ["no_worse"]
