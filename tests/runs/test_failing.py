"""A failing model does not stop the others; also lists of models in files."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Cli, cli  # noqa: F401  (a fixture)

import biassay
from biassay.errors import MeasurementError, UsageError, VectorFileError
from biassay.runs.models import parse_model_specs
from biassay.runs.run import Run

from .test_engine import write_test, write_vectors

FAILING = """
import numpy as np, pathlib

class Sometimes:
    revision = "1"
    def encode(self, texts):
        if pathlib.Path(__file__).with_name("broken").exists():
            raise ValueError("a library gave up")
        return np.array([np.random.default_rng([*text.encode()]).normal(size=6) for text in texts])
"""


@pytest.fixture
def test(tmp_path: Path) -> str:
    return write_test(tmp_path / "own.json")


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Files of vectors, of which the second is damaged; the fourth model fails when it is asked."""
    found = [write_vectors(tmp_path / f"{name}.txt", seed=seed) for seed, name in enumerate("abc")]
    shutil.copyfile(tmp_path / "b.txt", tmp_path / "whole.txt")
    (tmp_path / "b.txt").write_bytes(b"\x00\x01")
    (tmp_path / "fails_at_times.py").write_text(FAILING)
    (tmp_path / "broken").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "fails_at_times", raising=False)
    return [*found[:2], "python:fails_at_times:Sometimes", found[2]]


def repair(tmp_path: Path) -> None:
    shutil.copyfile(tmp_path / "whole.txt", tmp_path / "b.txt")
    (tmp_path / "broken").unlink()


def test_the_others_are_measured_and_what_failed_is_tried_again(
    test: str,
    models: list[str],
    tmp_path: Path,
    cli: Cli,  # noqa: F811
) -> None:
    out = tmp_path / "run"
    (tmp_path / "models.txt").write_text("# of one family\n\n" + "".join(f"  {model}\n" for model in models))
    code, _, said = cli("run", f"@{tmp_path / 'models.txt'}", "--tests", test, "--out", out)
    run = Run.load(out)
    assert code == 1
    assert run.manifest.status == "complete"
    assert [record.failed is None for record in run.manifest.models] == [True, False, False, True]
    assert [record.measured for record in run.manifest.models] == [True, False, False, True]
    assert [result.model for result in run.results] == ["vectors:a.txt", "vectors:c.txt"]
    assert "a library gave up" in str(run.manifest.models[2].failed)
    assert said.count("error:") == 2
    assert "measured 2 of 4 models" in said
    assert "a library gave up" in (out / "report.html").read_text(encoding="utf-8")

    code, _, said = cli("run", f"@{tmp_path / 'models.txt'}", "--tests", test, "--out", out)
    assert (code, f"biassay resume {out}" in said) == (2, True)
    again = ["resume", out, "--model", models[2]]
    assert cli(*again)[0] == 1  # still so
    repair(tmp_path)
    assert cli(*again)[0] == 0
    whole = biassay.run(models, test, out=tmp_path / "whole")
    assert Run.load(out).results == whole.results
    assert "a library gave up" not in (out / "report.html").read_text(encoding="utf-8")
    assert [r.name for r in Run.load(out).manifest.models] == [r.name for r in whole.manifest.models]
    assert (out / "results.tsv").read_bytes() == (tmp_path / "whole" / "results.tsv").read_bytes()


def test_if_none_can_be_measured_or_there_is_one_only_the_error_is_raised(
    test: str, models: list[str], tmp_path: Path
) -> None:
    with pytest.raises(VectorFileError):
        biassay.run(models[1], test, out=tmp_path / "run")
    missing = f"vectors:{tmp_path / 'missing.txt'}"
    with pytest.raises(VectorFileError):
        biassay.run([missing, f"{missing}?case=fold"], test, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(MeasurementError, match="a library gave up"):
        biassay.run(models[1:3], test, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()  # nothing was answered
    repair(tmp_path)
    assert len(biassay.run(models[1:3], test, out=tmp_path / "run").results) == 2


def test_a_list_names_models_and_says_what_is_wrong_with_it(tmp_path: Path) -> None:
    listed = tmp_path / "models.txt"
    listed.write_text("\ufeff# two\nbase=glove\n  use  \n\n#glove\n", encoding="utf-8")
    found = parse_model_specs([f"@{listed}", "base=glove", "vectors:x.txt"])
    assert [(one.name, one.model) for one in found] == [("base", "glove"), (None, "use"), (None, "vectors:x.txt")]
    listed.write_text("# nothing\n")
    with pytest.raises(UsageError, match="no model given"):
        parse_model_specs(f"@{listed}")
    listed.write_text("@other.txt\n")
    with pytest.raises(UsageError, match="is another list"):
        parse_model_specs(f"@{listed}")
    with pytest.raises(UsageError, match="cannot be read"):
        parse_model_specs("@nowhere.txt")
