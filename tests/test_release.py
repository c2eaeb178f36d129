"""What is released: the files of the distributions, what they do where nothing else is installed, and one version."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import biassay
from biassay.datasets.catalogue import load_catalogue

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DEVELOPERS = {"all", "demo", "docs", "test", "lint"}
RESTRICTED = re.compile(rb"share-?\s?alike|\bby-(nc-)?sa\b|non-?commercial|\bby-nc\b", re.IGNORECASE)
MEGABYTE = 1_000_000


def test_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    head = re.search(r"^## (\S+) \((.+)\)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert head is not None
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [PROJECT["version"]]
    assert head[1] == biassay.__version__ == PROJECT["version"]
    released = [] if head[2] == "unreleased" else [head[2]]
    assert re.findall(r"^date-released: (.+)$", citation, re.MULTILINE) == released


def test_all_names_every_extra_for_users() -> None:
    extras = PROJECT["optional-dependencies"]
    named = re.fullmatch(r"biassay\[(.+)\]", *extras["all"])
    assert named is not None
    assert sorted(named[1].split(",")) == sorted(extras.keys() - DEVELOPERS)


def test_the_command_has_the_name_of_the_package() -> None:
    """So that ``uvx biassay`` and ``pipx run biassay`` find it."""
    assert [PROJECT["name"]] == list(PROJECT["scripts"])


def test_the_notice_names_every_data_file_under_a_licence_of_the_package() -> None:
    sections = re.split(r"^(Apache-2\.0|MIT|CC-BY-4\.0|PDDL-1\.0)\b", (ROOT / "NOTICE").read_text("utf-8"), flags=re.M)
    texts = dict(zip(sections[1::2], sections[2::2], strict=True))
    assert sorted(texts) == sorted(PROJECT["license"].split(" AND "))
    named = {name: licence for licence, text in texts.items() for name in re.findall(r"^  (\w+/data/\S+)", text, re.M)}
    package = ROOT / "src" / "biassay"
    data = [path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_file()]
    assert sorted(named) == sorted(name for name in data if "/data/" in name and not name.endswith((".py", ".pyc")))
    for name, licence in named.items():
        if name.endswith(".toml") and name.startswith("datasets/data/") and name != "datasets/data/topics.toml":
            source = tomllib.loads((package / name).read_text("utf-8")).get("source", {})
            assert licence in source.get("licence", licence)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was made from it."""
    folder = tmp_path_factory.mktemp("dist")
    _done(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


def _done(*command: object, **settings: object) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        env=environment | {name: str(value) for name, value in settings.items()},
        cwd="/",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _sources() -> set[str]:
    files = (path for path in (ROOT / "src").rglob("*") if path.is_file() and path.parent.name != "__pycache__")
    return {path.relative_to(ROOT / "src").as_posix() for path in files}


@pytest.mark.extras
@pytest.mark.slow
def test_distributions_hold_the_package_and_its_licence(
    built: Path, record_testsuite_property: Callable[[str, object], None]
) -> None:
    (wheel,) = built.glob("*.whl")
    (sdist,) = built.glob("*.tar.gz")
    assert wheel.name == f"biassay-{biassay.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = {name: archive.read(name) for name in archive.namelist()}
    about = f"biassay-{biassay.__version__}.dist-info"
    described = {name for name in in_wheel if name.startswith(f"{about}/")}
    assert in_wheel.keys() - described == _sources()
    assert in_wheel[f"{about}/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    assert in_wheel[f"{about}/licenses/NOTICE"] == (ROOT / "NOTICE").read_bytes()
    described_as = in_wheel[f"{about}/METADATA"].decode()
    assert "\nLicense-Expression: Apache-2.0 AND MIT AND CC-BY-4.0 AND PDDL-1.0\n" in described_as
    files = re.findall(r"^License-File: (.+)$", described_as, re.MULTILINE)
    assert sorted(Path(file).name for file in files) == ["LICENSE", "NOTICE", "bai2025.LICENSE", "lexicons.LICENSE"]
    assert all(f"{about}/licenses/{file}" in in_wheel for file in files)
    assert json.loads(in_wheel["biassay/models/data/glove.json"])["licence"].startswith("Public Domain")
    data = "biassay/datasets/data"
    licences = [name for name in in_wheel if name.endswith(".LICENSE") and name not in described]
    assert sorted(licences) == [f"{data}/lexicons/lexicons.LICENSE", f"{data}/word_associations/bai2025.LICENSE"]
    of_benchmarks = [name for name in in_wheel if re.search("benchmarks/|bbq|crows|stereo_?set", name.lower())]
    assert [name for name in of_benchmarks if not name.endswith(".py")] == [f"{data}/benchmarks/bbq_targets.json"]
    with tarfile.open(sdist) as packed:
        in_sdist = {name.partition("/")[2] for name in packed.getnames()}
    top = {".gitignore", "CHANGELOG.md", "CITATION.cff", "LICENSE", "NOTICE", "PKG-INFO", "README.md", "pyproject.toml"}
    assert in_sdist == top | {f"src/{name}" for name in _sources()}
    assert [name for name, content in in_wheel.items() if RESTRICTED.search(content)] == []
    for path in (wheel, sdist):
        record_testsuite_property(path.name, path.stat().st_size)
        assert path.stat().st_size < 6 * MEGABYTE


@pytest.mark.extras
@pytest.mark.slow
def test_the_wheel_works_where_nothing_else_is_installed(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    place = tmp_path / "venv"
    _done(sys.executable, "-m", "venv", place)
    command = place / "bin" / "biassay"
    pip = (place / "bin" / "python", "-m", "pip", "--disable-pip-version-check")
    _done(*pip, "install", "--quiet", "--no-compile", "--constraint", ROOT / "constraints.txt", wheel)
    assert str(place) in _done(place / "bin" / "python", "-c", "import biassay; print(biassay.__file__)")
    assert _done(command, "--version").split()[-1] == PROJECT["version"]
    out = tmp_path / "run"
    _done(command, "run", "glove", "--tests", "weat6", "--out", out, "--quiet", BIASSAY_CACHE=tmp_path / "cache")
    (made,) = biassay.load(out).results
    (here,) = biassay.run("glove", tests="weat6").results
    assert (made.effect_size, made.p_value) == (here.effect_size, here.p_value)
    assert (out / "report.html").stat().st_size > 0
    listed = json.loads(_done(command, "tests", "list", "--json"))
    assert {test["name"] for test in listed} == set(load_catalogue().tests)
    _done(*pip, "check")
