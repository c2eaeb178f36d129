"""``biassay run`` on tests that lose too many words or cannot be measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from biassay.runs.run import Run

from .conftest import Cli
from .small_tests import measured, write_test, write_vectors


def test_too_many_lost_words_refuse_one_test_and_leave_the_others(tmp_path: Path, cli: Cli) -> None:
    test = write_test(tmp_path / "poor.json", 5)
    text = test.read_text().replace('"x0"', '"quxquux"').replace('"x1"', '"blorgle"')
    test.write_text(text)
    fine = write_test(tmp_path / "fine.json", 5)
    model = f"vectors:{write_vectors(tmp_path / 'v.txt', 5)}"
    out = tmp_path / "run"
    code, stdout, _ = cli("run", model, "--tests", f"{test},{fine}", "--out", out)
    assert code == 0
    poor, good = Run.load(out).results
    assert (poor.status, poor.p_value, poor.effect_size) == ("skipped", None, None)
    assert (good.status, good.reason) == ("measured", None)
    assert poor.reason is not None
    for told in ("quxquux", "blorgle", "2 of 5", "targ1", "20%", "--max-unknown"):
        assert told in poor.reason
    assert poor.oov_words["X"] == ("quxquux", "blorgle")
    assert "quxquux" in stdout
    assert "blorgle" in stdout
    assert Run.load(out).manifest.models[0].oov_words == ("blorgle", "quxquux")


def test_sets_without_any_difference_fail_with_a_reason(tmp_path: Path, cli: Cli) -> None:
    path = write_vectors(tmp_path / "v.txt")
    path.write_text("".join(f"{line.split()[0]} 1 2 3\n" for line in path.read_text().splitlines()))
    code, stdout, _ = cli("run", f"vectors:{path}", "--tests", write_test(tmp_path / "own.json"), "--json")
    assert code == 1
    result = measured(stdout)["own"]
    assert (result["status"], result["effect_size"]) == ("failed", None)
    assert "undefined" in result["reason"]


def test_a_maximally_biased_model_is_significant(tmp_path: Path, cli: Cli) -> None:
    path = write_vectors(tmp_path / "v.txt", 5)
    lines = (line.split()[0] for line in path.read_text().splitlines())
    path.write_text("".join(f"{word} {'1 0.25' if word[0] in 'xa' else '-0.25 1'}\n" for word in lines))
    code, stdout, _ = cli("run", f"vectors:{path}", "--tests", write_test(tmp_path / "own.json", 5), "--json")
    result = measured(stdout)["own"]
    assert (code, result["significant"]) == (0, True)
    assert result["p_value"] == pytest.approx(2 / 252)
    assert 0.0 < result["ci_low"] < result["ci_high"]
    assert result["effect_size"] == pytest.approx(result["ci_high"])


def test_one_failed_test_is_exit_code_one_though_others_were_measured(tmp_path: Path, cli: Cli) -> None:
    vectors = write_vectors(tmp_path / "v.txt")
    with vectors.open("a") as file:
        file.writelines(f"same{i} 1 2 3 4 5 6 7 8\n" for i in range(4))
    flat = write_test(tmp_path / "flat.json")
    text = flat.read_text()
    for i, word in enumerate(("x0", "x1", "y0", "y1")):
        text = text.replace(f'"{word}"', f'"same{i}"')
    content = json.loads(text)
    for key in ("targ1", "targ2"):
        content[key]["examples"] = content[key]["examples"][:2]
    flat.write_text(json.dumps(content))
    args = ("run", f"vectors:{vectors}", "--tests", flat, "--tests", write_test(tmp_path / "own.json"), "--json")
    code, stdout, _ = cli(*args)
    assert {name: r["status"] for name, r in measured(stdout).items()} == {"flat": "failed", "own": "measured"}
    assert code == 1
