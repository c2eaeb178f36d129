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
    assert poor.lost["X"] == ("quxquux", "blorgle")
    assert "quxquux" in stdout
    assert "blorgle" in stdout
    assert Run.load(out).manifest.models[0].words_lost == ("blorgle", "quxquux")


def test_max_unknown_lets_a_poor_test_through_and_lists_what_it_lost(tmp_path: Path, cli: Cli) -> None:
    test = write_test(tmp_path / "poor.json", 5)
    test.write_text(test.read_text().replace('"x0"', '"quxquux"').replace('"x1"', '"blorgle"'))
    model = f"vectors:{write_vectors(tmp_path / 'v.txt', 5)}"
    code, stdout, _ = cli("run", model, "--tests", test, "--json", "--max-unknown", "0.4")
    assert code == 0
    result = measured(stdout)["poor"]
    assert (result["status"], result["num_targ1"], result["lost"]["X"]) == ("measured", 3, ["quxquux", "blorgle"])
    assert cli("run", model, "--tests", test, "--max-unknown", "0.39")[0] == 1


def test_nothing_measured_is_exit_code_one(tmp_path: Path, cli: Cli) -> None:
    test = write_test(tmp_path / "poor.json", 3)
    test.write_text(test.read_text().replace('"x0"', '"quxquux"'))
    model = f"vectors:{write_vectors(tmp_path / 'v.txt', 3)}"
    code, stdout, _ = cli("run", model, "--tests", test, "--out", tmp_path / "run")
    assert code == 1
    assert "quxquux" in stdout
    assert Run.load(tmp_path / "run").manifest.status == "complete"
    assert "quxquux" in (tmp_path / "run" / "report.html").read_text()


def test_a_model_of_which_nothing_was_measured_is_exit_code_one(tmp_path: Path, cli: Cli) -> None:
    test, known = write_test(tmp_path / "own.json"), f"vectors:{write_vectors(tmp_path / 'v.txt')}"
    for models, expected in (((known,), 0), (("glove",), 1), ((known, "glove"), 1), (("glove", known), 1)):
        code, stdout, _ = cli("run", *models, "--tests", test, "--json")
        found = {r["model"]: r["status"] for r in json.loads(stdout)["results"]}
        expected_states = {"vectors:v.txt": "measured", "glove": "skipped"}
        assert found == {m: s for m, s in expected_states.items() if m in found}
        assert (code, len(found)) == (expected, len(models))


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
