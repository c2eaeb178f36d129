"""``biassay run --contexts`` as a user types it, on tiny models."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.results.made_runs import d_span

import biassay
from biassay.cache.context_vectors import ShardStore
from biassay.runs.contexts import find_contexts
from biassay.runs.run import Run

from .ceat_tests import EACH, WORDS, write_test
from .conftest import Cli
from .shown_runs import stored

pytestmark = [pytest.mark.extras, pytest.mark.usefixtures("small_shards")]

LEFT_OUT = "6 contexts were left out because the model has no vector of the word there: Kevin 6"


def test_the_table_is_what_the_folder_holds(ceat: Cli, model: str, other: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    code, stdout, stderr = ceat(model, other, "--out", out, "--all")
    assert code == 0
    names = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert names == {*("manifest.json", "results.json", "results.tsv", "report.html", "arrays/0.npz", "arrays/1.npz")}
    (cells,) = [re.split(r" {2,}", line.strip())[2:] for line in stdout.splitlines() if "  own  " in line]
    assert len(cells) == 4 * len(stored(out))
    for i, result in enumerate(stored(out)):
        d, interval, p, by_word = cells[4 * i : 4 * i + 4]
        assert d == f"{result['effect_size']:z.2f}"
        assert interval == d_span(result["ci_low"], result["ci_high"], result["num_words"])
        for cell, value in ((p, result["p_value"]), (by_word, result["fixed_words_p_value"])):
            # two digits, or three decimals: half a unit in the last place
            exact: dict[str, Any] = {"rel": 0.05, "abs": 0.0005 if value >= 0.001 else 0.0}
            assert float(cell.rstrip("*")) == pytest.approx(value, **exact)
    assert f"Report  {out / 'report.html'}" in stdout
    for text in (model, other):
        said = {line.partition(", ")[0] for line in stderr.splitlines()}
        name = Path(text).name
        assert {f"{name}: encoding: 128 of 128 contexts", f"{name}: measuring: 1 of 1 tests"} <= said


def test_every_option_reaches_the_run(ceat: Cli, model: str, place: Path) -> None:
    """The result equals that of the Python function with the same settings, and differs from the defaults."""
    options = {"window": 9, "dtype": "float32", "seed": 3, "alpha": 0.2, "mode": "fixed", "min_contexts": 2}
    args = ("--window", 9, "--dtype", "float32", "--seed", 3, "--alpha", 0.2, "--mode", "fixed", "--min-contexts", 2)
    printed = json.loads(ceat(model, *args, "--json")[1])
    expected = biassay.run(model, contexts=place / "c.parquet", n_samples=60, **options)  # type: ignore[arg-type]
    assert printed["results"] == json.loads(expected.to_json())["results"]
    how = printed["manifest"]["settings"]
    assert (how["window"], how["dtype"], how["mode"], how["min_contexts"]) == (9, "float32", "fixed", 2)
    plain = json.loads(ceat(model, "--json")[1])["results"][0]
    assert plain["effect_size"] != printed["results"][0]["effect_size"]


def test_a_test_whose_words_were_not_sought_is_wrong_usage(ceat: Cli, model: str, place: Path, tmp_path: Path) -> None:
    """One concept is enough, and the other tests do not help."""
    odd = write_test(tmp_path / "odd.toml", WORDS | {"B": ["garden", "kitchen"]})
    for tests, name, label in ((("C1",), "C1", "Flowers"), ((place / "own.toml", odd), "odd", "B")):
        code, stdout, stderr = ceat(model, "--tests", ",".join(map(str, tests)), "--out", tmp_path / "run")
        assert (code, stdout) == (2, "")
        said = " ".join(stderr.split())
        assert f"test '{name}'" in said
        assert label in said
        assert "asked" not in said
        assert not (tmp_path / "run").exists()


@pytest.fixture
def partly_known(save_tiny: Callable[[str, Path], Path], tmp_path: Path) -> tuple[object, ...]:
    """A small WordPiece vocabulary that has John, Paul, Amy, Lisa, ... and not Kevin."""
    words = {
        "X": ["John", "Paul", "rose", "love", "Kevin"],
        "Y": ["Amy", "Lisa", "ant", "war"],
        "A": ["office", "salary"],
        "B": ["home", "wedding"],
    }
    texts = [f"This is {word}, and {i}." for group in words.values() for word in group for i in range(6)]
    (tmp_path / "corpus.txt").write_text("\n".join(texts))
    find_contexts(tmp_path / "corpus.txt", tmp_path / "c.parquet", str(write_test(tmp_path / "own.toml", words)))
    bert = f"hf:{save_tiny('bert', tmp_path / 'bert')}"
    return bert, "--contexts", tmp_path / "c.parquet", "--n-samples", 40


def test_words_a_model_does_not_know_are_told_and_lost(cli: Cli, partly_known: tuple[object, ...]) -> None:
    code, stdout, stderr = cli("run", *partly_known, "--json")
    assert code == 0
    told = [line for line in stderr.splitlines() if "no vector" in line]
    assert told == [
        "bert: of the contexts just encoded, 6 have no vector: the word is out of vocabulary",
        f"bert: {LEFT_OUT}",
    ]
    (result,) = json.loads(stdout)["results"]
    assert result["oov_words"] == {"X": ["Kevin"], "Y": [], "A": [], "B": []}
    assert result["too_rare"] == {"X": [], "Y": [], "A": [], "B": []}
    assert result["num_contexts"]["X"] == {"John": 6, "Paul": 6, "rose": 6, "love": 6, "Kevin": 0}
    assert result["num_targ1"] == 4
    code, stdout, _ = cli("run", *partly_known, "--max-unknown", 0.1)
    assert code == 1
    assert "Kevin 0 of 6" in " ".join(stdout.split())


@pytest.mark.parametrize("name", ["glove", "use"])
def test_models_that_know_no_contexts_are_refused(ceat: Cli, name: str, tmp_path: Path) -> None:
    code, stdout, stderr = ceat(name, "--out", tmp_path / "run")
    assert (code, stdout) == (2, "")
    assert f"'{name}'" in stderr
    assert "hf:NAME" in stderr
    assert "elmo:DIR" in stderr
    assert not (tmp_path / "run").exists()


def test_wrong_usage(cli: Cli, model: str, place: Path, tmp_path: Path) -> None:
    contexts = ("--contexts", place / "c.parquet")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    for args, words in (
        ((model, "--contexts", tmp_path / "none.parquet"), "`biassay contexts`"),
        ((model, "--contexts", place / "corpus.txt"), "cannot be read as a contexts file"),
        ((model, *contexts, "--n-samples", 2), "n_samples must be at least 3 and at most 1,000,000, got 2"),
        ((model, *contexts, "--window", 0), "window must be at least 1, got 0"),
        ((model, *contexts, "--mode", "fxied"), "'fxied' is not one of 'random', 'fixed'"),
        ((model, *contexts, "--dtype", "int8"), "'int8' is not one of 'float16', 'float32'"),
        ((model, *contexts, "--tests", "sent-weat6"), "'weat6' is the same with words"),
        ((model, *contexts, "--alpha", 2), "alpha must be above 0 and below 1"),
        ((model, *contexts, "--out", tmp_path / "full"), "is not an empty folder"),
        ((f"{model}?pool=mean", *contexts), "pool= applies to the vectors of whole texts"),
        ((model, *contexts, "--address", "127.0.0.1:6379"), "--address requires --engine ray"),
        (("--resume", tmp_path / "full", "--seed", 0, "--window", 9), "of the run; leave out --seed, --window"),
        (("--resume", tmp_path / "full"), "not a run folder"),
    ):
        code, stdout, stderr = cli("run", *args)
        assert (code, stdout) == (2, "")
        assert words in " ".join(stderr.split())
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["file"]


def test_models_measured_together_are_asked_only_if_all_can_be_opened(
    ceat: Cli, model: str, other: str, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    models = (model, other, f"broken=hf:{tmp_path / 'empty'}")
    code, _, stderr = ceat(*models, "--mode", "fixed", "--out", tmp_path / "run", "--cache", tmp_path / "cache")
    assert (code, "encoding" in stderr) == (2, False)
    assert stderr.splitlines()[-1].startswith("error: broken: ")
    assert not (tmp_path / "run").exists()


def interrupted(patch: pytest.MonkeyPatch, after: int, call: Callable[[], tuple[int, str, str]]) -> str:
    """Return the output of a command that is interrupted after some shards."""
    write = ShardStore.write
    written: list[int] = []

    def breaking(self: Any, number: int, vectors: Any) -> None:
        if len(written) == after:
            raise KeyboardInterrupt
        written.append(number)
        write(self, number, vectors)

    with patch.context() as patched:
        patched.setattr(ShardStore, "write", breaking)
        code, stdout, stderr = call()
    assert (code, stdout, len(written)) == (1, "", after)
    return stderr


def test_a_run_goes_on_with_its_own_folder_of_vectors(
    cli: Cli, ceat: Cli, model: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resume by the suggested command, from another folder although all paths were relative."""
    whole = json.loads(ceat(model, "--json", "--cache", tmp_path / "elsewhere")[1])["results"]
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("c.parquet").write_bytes((place / "c.parquet").read_bytes())
    args = ("--contexts", "c.parquet", "--n-samples", 60, "--out", "run", "--vectors", "kept")
    interrupted(monkeypatch, 20, lambda: cli("run", model, *args))
    out, (vectors,) = tmp_path / "here" / "run", (tmp_path / "here" / "kept").iterdir()
    settings = Run.load(out).manifest.settings
    assert (settings.vectors, settings.contexts) == (str(vectors.parent), str(tmp_path / "here" / "c.parquet"))
    before = {path.name: path.stat().st_mtime_ns for path in vectors.glob("*.npy")}
    assert len(before) == 20
    monkeypatch.chdir(tmp_path / "there")
    code, _, stderr = cli("resume", out)
    assert code == 2
    again = shlex.split(stderr.partition("biassay ")[2])
    assert again == ["resume", str(out), "--vectors", str(vectors.parent)]
    code, stdout, stderr = cli(*again, "--cache", tmp_path / "cache", "--json")
    assert (code, json.loads(stdout)["results"]) == (0, whole)
    left = 128 - 10 * EACH
    assert f"{Path(model).name}: encoding: {left} of {left} contexts" in stderr
    after = {path.name: path.stat().st_mtime_ns for path in vectors.glob("*.npy")}
    assert len(after) == 32
    assert before.items() <= after.items()
    assert not (tmp_path / "cache" / "contexts").exists()
    assert list((tmp_path / "there").iterdir()) == []
