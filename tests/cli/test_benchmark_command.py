"""``biassay benchmark``: a tiny masked model, tables and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.models.tiny_models import save_tiny

from .conftest import Cli


def crows(path: Path) -> Path:
    people = ("john", "paul", "amy", "lisa")
    pairs = [(f"{a} is good here.", f"{b} is good here.") for a in people for b in people if a < b]
    rows = [f"{i},{more},{less},stereo,gender,a" for i, (more, less) in enumerate(pairs)]
    path.write_text("\n".join([",sent_more,sent_less,stereo_antistereo,bias_type,anon_writer", *rows]) + "\n")
    return path


@pytest.mark.extras
def test_crows_pairs_of_a_masked_model(cli: Cli, tmp_path: Path) -> None:
    data = crows(tmp_path / "crows.csv")
    model = f"hf:{save_tiny('bert', tmp_path / 'bert', head=True)}"
    code, stdout, stderr = cli("benchmark", "crows-pairs", model, "--data", data, "--json", "--out", tmp_path / "run")
    record = json.loads(stdout)["manifest"]["inputs"]
    assert (code, record["version"], record["digests"]["all"] in stderr) == (0, "", True)  # of another version
    (row,) = json.loads(stdout)["results"]
    assert (row["category"], row["items"], row["n_items"], row["left_out"]) == ("gender", 6, 6, 0)
    assert (tmp_path / "run" / "report.html").is_file()
    code, stdout, _ = cli("benchmark", "crows-pairs", model, "--data", data)
    assert (code, "gender" in stdout) == (0, True)
    code, stdout, _ = cli("report", tmp_path / "run", "--out", tmp_path / "page.html")
    assert code == 0


def test_what_is_missing_is_said(cli: Cli, tmp_path: Path) -> None:
    for given in (
        (),
        ("bbq",),
        ("bbq", "chat:x"),
        ("height", "chat:x", "--data", tmp_path),
        ("bbq", "chat:x", "--data", tmp_path),
        ("bbq", "chat:x", "--data", "no-such-package"),
    ):
        code, stdout, stderr = cli("benchmark", *given)
        assert (code, stdout, bool(stderr)) == (2, "", True)
