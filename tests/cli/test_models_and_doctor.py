"""``biassay models`` and ``biassay doctor``: installed, missing and broken backends."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from biassay.errors import MeasurementError
from biassay.models import selftest, word_vectors
from biassay.models.base import Identity, TextEmbeddings
from biassay.models.registry import get_backends
from biassay.models.selftest import SelfTestResult, VowelEncoder, check_encoder, run_self_test

Cli = Callable[..., tuple[int, str, str]]
FAMILIES = get_backends()
CORE = [name for name, family in FAMILIES.items() if not family.needs]


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("biassay.models.backend.find_spec", lambda _: None)


@pytest.fixture
def own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """`python:` lets modules beside the user be found, for as long as the process lasts."""
    monkeypatch.setattr(sys, "path", list(sys.path))


# models


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.usefixtures("narrow")
def test_models_lists_every_backend_on_one_screen(cli: Cli) -> None:
    code, stdout, stderr = cli("models")
    assert (code, stderr) == (0, "")
    lines = stdout.splitlines()
    assert len([line for line in lines if "pip install" not in line]) <= 20
    assert max(len(line) for line in lines if "pip install" not in line) <= 80
    for backend in FAMILIES.values():
        [row] = [line for line in lines if line.startswith(f"{backend.syntax}  ")]
        assert backend.description[:20] in row
        assert backend.capabilities[0] in row
    assert "biassay models hf" in stdout


@pytest.mark.usefixtures("nothing_installed", "narrow")
def test_without_extras_models_gives_the_install_command(cli: Cli) -> None:
    code, stdout, _ = cli("models")
    assert code == 0
    lines = stdout.splitlines()
    assert len(lines) <= 23
    for name, backend in FAMILIES.items():
        [row] = [line for line in lines if line.startswith(f"{backend.syntax}  ")]
        assert row.split()[-1] == ("yes" if name in CORE else "no")
        if name not in CORE:
            assert f"not installed: {backend.install}" in cli("models", name)[1].splitlines()
    assert 'Install the missing packages: pip install "biassay[use,hf,st,mteb,elmo,infersent,gensen,api]"' in lines
    assert {"glove", "vectors", "python"} <= set(CORE)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["models"], ["models", "--json"], ["doctor", "--help"]])
def test_looking_imports_no_model(arguments: list[str]) -> None:
    """In a new process, since other tests may have imported them here."""
    code = (
        f"import sys\nfrom biassay.cli import main\ntry:\n main({arguments})\nexcept SystemExit: pass\n"
        "print('\\n', *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "biassay" in loaded
    assert not loaded & {package for family in FAMILIES.values() for package in family.needs}


# doctor


@pytest.mark.usefixtures("nothing_installed", "own_path")
def test_without_extras_doctor_tests_the_core_and_skips_the_rest(cli: Cli, own_cache: Path) -> None:
    (own_cache / "deep").mkdir()
    (own_cache / "deep" / "file").write_bytes(b"x" * 1500)
    code, stdout, stderr = cli("doctor")
    assert code == 0
    assert re.search(rf"^Python +{re.escape(sys.version.split()[0])}$", stdout, re.MULTILINE)
    assert re.search(r"^numpy +\d", stdout, re.MULTILINE)
    assert re.search(rf"^cache +{re.escape(str(own_cache))} \(1\.5 kB in 1 files\)$", stdout, re.MULTILINE)
    assert re.search(r"^device +unknown: torch is not installed$", stdout, re.MULTILINE)
    lines = [line.split(maxsplit=1) for line in stdout.splitlines()]
    results = {name: rest for name, rest in lines if name in FAMILIES}
    for name, family in FAMILIES.items():
        expected = r"PASS +\d+\.\d\d s" if name in CORE else re.escape(f"skipped (not installed: {family.install})")
        assert re.fullmatch(expected, results[name]), name
    assert stderr.splitlines() == [f"self-test {list(FAMILIES).index(n) + 1} of {len(FAMILIES)}: {n} ..." for n in CORE]
    assert [path.name for path in own_cache.rglob("*")] == ["deep", "file"]


@pytest.mark.parametrize("flag", ["--quiet", "--json"])
@pytest.mark.usefixtures("nothing_installed", "own_path")
def test_a_failure_is_told_in_one_line_and_the_rest_goes_on(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, flag: str
) -> None:
    @contextmanager
    def broken(folder: Path) -> Iterator[str]:
        raise OSError(f"libfirst.so:\n  cannot open {'x' * 500}")
        yield str(folder)  # type: ignore[unreachable]

    monkeypatch.setattr(word_vectors, "VECTORS", dataclasses.replace(word_vectors.VECTORS, selftest=broken))
    code, stdout, stderr = cli("doctor", flag)
    assert code == 1
    [line] = [line for line in stderr.splitlines() if line.startswith("error")]
    assert line.startswith("error: the self-test of 'vectors' failed: OSError: libfirst.so: cannot open xxx")
    assert len(line) < 400
    if flag == "--json":
        statuses = {entry["backend"]: entry["status"] for entry in json.loads(stdout)["selftests"]}
        assert {name: statuses[name] for name in CORE} == dict.fromkeys(CORE, "PASS") | {"vectors": "FAIL"}


# Self-tests


@pytest.mark.usefixtures("own_path")
@pytest.mark.parametrize("family", CORE)
def test_the_environment_is_as_before(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    before = dict(os.environ)
    assert run_self_test(FAMILIES[family]).status == "PASS"
    assert dict(os.environ) == before


def test_hubs_are_not_to_be_asked_during_a_self_test() -> None:
    seen: dict[str, str] = {}

    @contextmanager
    def looking(folder: Path) -> Iterator[str]:
        seen.update(os.environ)
        yield f"vectors:{folder}/none"

    outcome = run_self_test(dataclasses.replace(FAMILIES["vectors"], selftest=looking))
    assert (outcome.status, outcome.error.split(":")[0]) == ("FAIL", "VectorFileError")
    assert (seen["HF_HUB_OFFLINE"], seen["TRANSFORMERS_OFFLINE"]) == ("1", "1")
    assert not Path(seen["BIASSAY_CACHE"]).parent.exists()


class Wrong:
    """A valid encoder whose vectors are modified."""

    identity = Identity("wrong", "wrong", None)
    batch_size = 2

    def __init__(self, change: Callable[[NDArray[np.float32]], Any], unknown: tuple[tuple[int, int], ...] = ()) -> None:
        self.change, self.unknown = change, unknown

    def prepare(self, texts: Sequence[str]) -> None:
        pass

    def encode(self, texts: Sequence[str]) -> TextEmbeddings:
        vectors = np.array(VowelEncoder().encode(texts), dtype=np.float32)
        return TextEmbeddings.from_vectors(np.asarray(self.change(vectors)), [self.unknown] * len(texts))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v[:1], r"shape \[\(1, 5\), \(1, 5\), \(1, 5\)\]"),
        (lambda v: v[:, : len(v)], r"shape \[\(2, 2\), \(1, 1\), \(1, 1\)\]"),
        (lambda v: v[:, :0], r"shape \[\(2, 0\)"),
        (lambda v: v[0], r"shape \[\(5,\)"),
        (lambda v: v * np.nan, "not finite"),
        (lambda v: v + (np.inf if len(v) == 1 else 0), "not finite"),
        (lambda v: v * 0, "the same vector"),
        (lambda v: v * 0 + 1, "the same vector"),
        (lambda v: v + 0.01 * len(v), "depends on its batch: off by 0.01; the largest value is 3"),
        (lambda v: v[::-1], "depends on its batch"),
    ],
)
def test_a_wrong_encoder_is_found_out(change: Callable[[NDArray[np.float32]], Any], message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        check_encoder(Wrong(change))


@pytest.mark.extras
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.usefixtures("own_path")
def test_every_installed_family_passes(family: str) -> None:
    outcome = run_self_test(FAMILIES[family])
    expected = "skipped" if FAMILIES[family].missing else "PASS"
    assert outcome == SelfTestResult(family, expected, outcome.seconds)  # type: ignore[arg-type]


# Connections are seen before they are made: names are not even looked up.
GUARD = """
import ipaddress, sys
def guard(event, arguments):
    if event == "socket.connect" and not (
        isinstance(arguments[1], tuple) and ipaddress.ip_address(arguments[1][0]).is_loopback
    ):
        print("REACHED OUT", arguments[1:], file=sys.stderr)
    if event == "socket.getaddrinfo" and arguments[0] not in ("127.0.0.1", "localhost"):
        print("REACHED OUT", arguments, file=sys.stderr)
sys.addaudithook(guard)
from biassay.cli import main
main(["doctor", "--json"])
"""


@pytest.mark.extras
def test_doctor_reaches_out_to_nobody_and_leaves_nothing(tmp_path: Path) -> None:
    """In a process of its own, with a home and a folder for temporary files of its own."""
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    home.mkdir()
    temporary.mkdir()
    kept = ("BIASSAY_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    environment = {name: value for name, value in os.environ.items() if name not in kept}
    environment |= {"HOME": str(home), "TMPDIR": str(temporary), "BIASSAY_API_KEY": "sk-not to be used"}
    done = subprocess.run([sys.executable, "-c", GUARD], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for entry in found["selftests"]:
        family = FAMILIES.get(entry["backend"])  # a process of its own also sees the families of other packages
        assert entry["status"] == ("skipped" if family is not None and family.missing else "PASS")
    assert "REACHED OUT" not in done.stderr
    assert all(line.startswith("self-test ") for line in done.stderr.splitlines())
    assert found["cache"]["folder"].startswith(str(home))
    assert list(home.rglob("*")) == []
    assert list(temporary.rglob("*")) == []


@pytest.mark.extras
def test_the_device_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert selftest.describe_device() == "CPU; torch finds no CUDA GPU"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H200")
    assert selftest.describe_device() == "CUDA: NVIDIA H200"

    def fails() -> bool:
        raise RuntimeError("the driver\nis too old")

    monkeypatch.setattr(torch.cuda, "is_available", fails)
    assert selftest.describe_device() == "not known: RuntimeError: the driver is too old"


def test_words_that_a_tiny_model_does_not_know_are_named() -> None:
    with pytest.raises(MeasurementError, match="'thi', 'joy'"):
        check_encoder(Wrong(lambda vectors: vectors, unknown=((0, 3),)))


def test_an_unknown_backend_is_suggested(cli: Cli) -> None:
    code, _, stderr = cli("models", "hff")
    assert code == 2
    assert "unknown backend 'hff'; did you mean 'hf'?" in stderr
