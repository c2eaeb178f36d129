"""Run the command line in this process, with inputs that several test files share."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.studies.associations.publish_runs import measured_in_contexts

import biassay
from biassay.cli import main
from biassay.runs import fetch
from biassay.runs.contexts import find_contexts
from biassay.runs.run import Run

from . import bad_tests, ceat_tests, shown_runs

Cli = Callable[..., tuple[int, str, str]]
Refused = Callable[..., str]
FILLERS = ("the", "old", "house", "near", "river", "was", "seen", "by", "everyone", "and", "nobody", "said", "much")


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command in this process: exit code, stdout, stderr. Anything but a clean exit fails the test."""

    def call(*args: object) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main([str(arg) for arg in args])
        said = capsys.readouterr()
        return int(stop.value.code or 0), said.out, said.err

    return call


@pytest.fixture
def refused(cli: Cli, tmp_path: Path) -> Refused:
    """Runs a command that must be refused without a trace; returns what it said."""

    def call(*args: object) -> str:
        out = tmp_path / "refused-run"
        code, stdout, stderr = cli("run", *args, "--out", out)
        assert (code, stdout) == (2, ""), stderr
        assert not out.exists()
        assert "Traceback" not in stderr
        return " ".join(stderr.split())

    return call


@pytest.fixture
def test_file(tmp_path: Path) -> Path:
    return bad_tests.write_test(tmp_path / "own.json")


@pytest.fixture
def lines() -> list[str]:
    """Return the lines of a valid vector file for `bad_tests.content`."""
    rng = np.random.default_rng(3)
    all_words = [word for concept in bad_tests.content().values() for word in concept["examples"]]
    return [f"{word} " + " ".join(f"{v:.4f}" for v in rng.normal(size=5)) for word in all_words]


@pytest.fixture
def encoders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "odd_encoders.py").write_text(bad_tests.ENCODERS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "python:odd_encoders"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write own.toml and c.parquet: eight contexts of every word of the test."""
    folder = tmp_path_factory.mktemp("contexts")
    rng = random.Random(3)
    texts = [
        f"So {' '.join(rng.choices(FILLERS, k=6))} {word} {' '.join(rng.choices(FILLERS, k=6))} {i}."
        for group in ceat_tests.WORDS.values()
        for word in group
        for i in range(ceat_tests.EACH)
    ]
    (folder / "corpus.txt").write_text("\n".join(texts))
    own = ceat_tests.write_test(folder / "own.toml", ceat_tests.WORDS)
    find_contexts(folder / "corpus.txt", folder / "c.parquet", str(own))
    return folder


@pytest.fixture(scope="module")
def save_tiny() -> Callable[[str, Path], Path]:
    pytest.importorskip("transformers")
    source = Path(__file__).parents[1] / "models" / "tiny_models.py"
    spec = importlib.util.spec_from_file_location("tiny_models_for_ceat", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.save_tiny


@pytest.fixture(scope="module")
def model(save_tiny: Callable[[str, Path], Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A byte-level model, which knows every word."""
    return f"hf:{save_tiny('roberta', tmp_path_factory.mktemp('roberta'))}"


@pytest.fixture(scope="module")
def other(save_tiny: Callable[[str, Path], Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"hf:{save_tiny('gpt2', tmp_path_factory.mktemp('gpt2'))}"


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Split the contexts of a word into two shards: five and three."""
    monkeypatch.setattr(fetch, "SHARD_ROWS", 5)


@pytest.fixture
def ceat(cli: Cli, place: Path) -> Cli:
    """``biassay run MODEL ... --contexts c.parquet --n-samples 60 ...``"""

    def call(*args: object) -> tuple[int, str, str]:
        return cli("run", *args, "--contexts", place / "c.parquet", "--n-samples", 60)

    return call


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("vectors")


@pytest.fixture(scope="module")
def glove(cache: Path) -> Run:
    return biassay.run("glove", tests=list(shown_runs.TESTS), cache=cache)


@pytest.fixture(scope="module")
def mine(glove: Run, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run a model of random vectors on the same tests."""
    rng = np.random.default_rng(4)
    words = dict.fromkeys(w for r in glove.results for role in r.associations.values() for w in role)
    path = tmp_path_factory.mktemp("mine") / "mine.txt"
    path.write_text("".join(f"{w} {' '.join(f'{v:.4f}' for v in rng.normal(size=8))}\n" for w in words))
    return biassay.run(f"vectors:{path}", tests=list(shown_runs.TESTS), cache=cache)


@pytest.fixture(scope="module")
def contexts() -> Run:
    return measured_in_contexts(("one",))


@pytest.fixture(scope="module")
def words(cache: Path) -> Run:
    return biassay.discover("glove", "african-american-females", n_permutations=99, keep=20, cache=cache)


@pytest.fixture
def one(glove: Run, tmp_path: Path) -> Path:
    return glove.save(tmp_path / "one")


@pytest.fixture
def folder(one: Path) -> Path:
    """Return the first run, as the tests of ``biassay report`` call it."""
    return one


@pytest.fixture
def two(mine: Run, tmp_path: Path) -> Path:
    return mine.save(tmp_path / "two")


@pytest.fixture
def refuses(cli: Cli, tmp_path: Path) -> Callable[..., str]:
    """Runs a command that must be refused, leaving all files as they are; returns what it said."""

    def call(*args: object, code: int = 2) -> str:
        before = shown_runs.files(tmp_path)
        found, stdout, stderr = cli(*args)
        assert (found, stdout) == (code, ""), stderr
        assert "Traceback" not in stderr
        assert shown_runs.files(tmp_path) == before
        return " ".join(stderr.split())

    return call
