"""README and docs are true: their commands and examples are run."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

import biassay
from biassay.cli import main
from biassay.datasets.abc_model import load_abc
from biassay.datasets.schema import load_topics
from biassay.prompts.sentences import make_texts
from biassay.studies.registry import get_study

from .docs_endpoint import ADDRESS, answering
from .docs_setting import blocks, people_take_part, write_setting

ROOT = Path(__file__).resolve().parents[1]
WRITTEN = sorted(page for page in (ROOT / "docs").rglob("*.md") if "generated" not in page.parts)
PAGES = [ROOT / "README.md", *WRITTEN]


@pytest.fixture(autouse=True)
def empty_folder(example: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: ARG001
    """Empty but for book.txt, which is any text."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "book.txt").write_text((ROOT / "README.md").read_text())
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_python_examples_run(page: Path) -> None:
    for example in blocks(page, "python"):
        exec(compile(example, str(page), "exec"), {})


@pytest.mark.extras
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_run(
    page: Path, empty_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from biassay.cli.discover import command as discover

    (permutations,) = (option for option in discover.params if option.name == "n_permutations")
    monkeypatch.setattr(permutations, "default", 9_999)  # a tenth of the time; what is found is not looked at
    monkeypatch.setattr("uvicorn.run", people_take_part)
    monkeypatch.setattr("biassay.survey.server._check_port", lambda *_: None)
    write_setting(page, empty_folder)
    with answering() as address:
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        printed = _printed_by(page, address, capsys)
    if (
        page.parent.name == "tutorials" or page.name == "README.md"
    ):  # what they quote is what is printed, but for line breaks
        for quoted in blocks(page, "text"):
            assert " ".join(quoted.split()) in " ".join(printed.split())


def _printed_by(page: Path, address: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What the commands of a page print, one after the other."""
    printed = ""
    for block in blocks(page, "console"):
        for line in block.splitlines():
            command, *arguments = shlex.split(line.removeprefix("$ ").replace(ADDRESS, address), comments=True)
            assert command == "biassay"
            with pytest.raises(SystemExit) as stop:
                main(arguments)
            said = capsys.readouterr()
            expected = re.findall(r"# exit code (\d)$", line)
            assert stop.value.code == int(expected[0] if expected else 0), (line, said.err)
            printed += f"{said.out}\n"
    return printed


def test_the_pages_have_examples() -> None:
    assert sum(len(blocks(page, "python")) for page in PAGES) >= 3
    assert sum(block.count("$ biassay") for page in PAGES for block in blocks(page, "console")) >= 6


def test_the_test_file_in_the_docs_is_valid_and_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, _ = blocks(ROOT / "docs" / "tests.md", "toml")
    (tmp_path / "animals.toml").write_text(content)
    with pytest.raises(SystemExit) as stop:
        main(["run", "glove", "--tests", "animals.toml"])
    assert stop.value.code == 0
    assert "animals-seen" in capsys.readouterr().out


def test_the_forms_in_the_docs_make_right_sentences(tmp_path: Path) -> None:
    _, forms = blocks(ROOT / "docs" / "tests.md", "toml")
    words = '[concepts.one]\nwords = ["midwives", "wife"]\n[concepts.two]\nwords = ["hourly", "unicorn"]\n'
    test = '[tests.own]\nX = "one"\nY = "two"\nA = "pleasant"\nB = "unpleasant"\ntargets = "needed"\n'
    (tmp_path / "own.toml").write_text(forms + words + test)
    (own,) = biassay.select_tests(str(tmp_path / "own.toml"))
    texts = make_texts(own)
    assert [text.text for text in texts.X] == [
        *("We need a midwife.", "Midwives are near.", "We need a wife.", "Wives are near.")
    ]
    assert [text.text for text in texts.Y if "need" in text.text] == ["We need an hourly.", "We need a unicorn."]


def test_the_groups_in_the_docs_are_valid_and_can_be_searched(tmp_path: Path) -> None:
    (content,) = blocks(ROOT / "docs" / "discovery.md", "toml")
    (tmp_path / "groups.toml").write_text(content)
    for arguments in (
        ["tests", "validate", "groups.toml"],
        ["discover", "--grouping", "groups.toml", "--groups", "old-women", "--n-permutations", "999"],
    ):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0


def test_the_groups_of_stereotypes_in_the_docs_are_valid(tmp_path: Path) -> None:
    (content,) = blocks(ROOT / "docs" / "stereotypes.md", "toml")
    (tmp_path / "own.toml").write_text(content)
    own = load_abc([tmp_path / "own.toml"])
    for part in ("groups", "templates", "pairs"):
        assert len(getattr(own, part)) == len(getattr(load_abc(), part)) + 1


def script_named(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_columns_in_the_docs_are_those_of_the_results() -> None:
    script = script_named("results_columns")
    page = script.PAGE.read_text(encoding="utf-8")
    assert page == script.with_columns(page), "run scripts/results_columns.py"
    tables = {(name, one.name) for name in ("word_association", "benchmarks") for one in get_study(name).schema.tables}
    written = {(mark["study"], mark["table"]) for mark in script.SECTION.finditer(page)}
    assert written == {("associations", "results"), *tables} - {("benchmarks", "decisions")}  # the same in every study


def test_figures_of_other_code_are_those_of_the_reference(reference: Path) -> None:
    page = (ROOT / "docs" / "explanation" / "other-code.md").read_text(encoding="utf-8")

    def expected(folder: str) -> Any:
        return json.loads((reference / folder / "expected.json").read_text(encoding="utf-8"))

    weat6, weat2 = (expected("glove840b_caliskan")[name] for name in ("weat6", "weat2"))
    tied, tail = (expected("weat")[name] for name in ("t07_a07_d050_ties", "t25_a25_d050"))
    ceat, detected = expected("ceat"), expected("ibd")["detected"]["1.00"]["AF"]
    against, near = ceat["unequal_pools"], ceat["near_null"]
    for said in (
        f"`weat6` is {weat6['effect_size']:.3f} with the first and {weat6['effect_size_ddof0']:.3f} with the second",
        f"the ratio is always {(16 / 15) ** 0.5:.3f}",
        f"has {weat2['exact']['p_ge']:.1e} here (`weat2`)",
        f"{tail['released']['p_value_parametric']:.5f} for what is {tail['exact']['p_ge']:.5f}",
        f"{tied['released']['numerator']} of {tied['n_partitions']:,} splits, and there are "
        f"{tied['exact']['count_ge']}",
        f"A pooled effect of {against['released']['CES']:.2f} has p = {against['released']['p_value']:.0f} there and "
        f"{against['meta']['p_two_sided']:.1e}",
        f"one of {near['released']['CES']:.2f} has {near['released']['p_value']:.3f} and "
        f"{near['meta']['p_two_sided']:.3f}",
        f"it keeps {len(detected['EIBD_released_numpy_fault'])} words of {len(detected['IBD'])}; the formula of the "
        f"paper keeps {len(detected['EIBD'])}, its prose {len(detected['EIBD_drop_if_any'])}",
    ):
        assert said in " ".join(page.split()), said


@pytest.mark.extras
@pytest.mark.slow
def test_replications_are_those_of_the_reference_values() -> None:
    script = script_named("replications")
    page = script.PAGE.read_text(encoding="utf-8")
    assert page == script.with_figures(page), "run scripts/replications.py"
    ours = [float(d) for d in re.findall(r"weat\d+\.md>\).*\| (\d\.\d{3}) \|", page)]
    asked = re.findall(r"`wat-\S+`\) \| (\S+) \| (\S+) \|", page)
    assert len(asked) == 8
    assert all(published == found for published, found in asked)
    assert [round(d + 1e-9, 2) for d in ours] == pytest.approx(script.CALISKAN, abs=0.0051)


def test_topics_named_in_the_docs_are_those_of_the_data() -> None:
    row = next(line for line in (ROOT / "docs" / "tests.md").read_text().splitlines() if line.startswith("| `topic` |"))
    assert re.findall(r"`(\w+)`", row.split("|")[3]) == list(load_topics())


def test_contributing_lists_every_package_in_import_order() -> None:
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Packages")[2].partition("\n## ")[0]
    table = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    packages = [name.removesuffix("/").removesuffix(".py") for row in table for name in re.findall(r"`([^`]+)`", row)]
    source = ROOT / "src" / "biassay"
    assert sorted(packages) == sorted(
        path.stem for path in source.iterdir() if path.stem[0] != "_" and (path.is_dir() or path.suffix == ".py")
    )
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    place = {name.strip().removeprefix("biassay."): -i for i, row in enumerate(layers) for name in row.split(":")}
    assert packages == sorted(packages, key=place.__getitem__)


def test_readme_shows_both_commands_and_links_that_exist() -> None:
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text
    assert "make test" in text
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (ROOT / link).exists(), link


PUBLIC = {name: getattr(biassay, name) for name in biassay.__all__ if inspect.isfunction(getattr(biassay, name))}
# They need a language model, or files.
NO_EXAMPLE = {"ask", "stereotypes", "benchmark", "import_logs"}


NEED_EXTRAS = {"compare", "find_contexts"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.extras] * (n in NEED_EXTRAS)) for n in PUBLIC])
def test_docstrings_of_public_functions_are_complete_and_their_examples_run(name: str) -> None:
    text = inspect.getdoc(PUBLIC[name]) or ""
    assert all(f"{section}\n{'-' * len(section)}" in text for section in ("Parameters", "Returns"))
    runner = doctest.DocTestRunner()
    for example in doctest.DocTestFinder(recurse=False).find(PUBLIC[name], name):
        runner.run(example)
    assert (runner.tries > 0) == (name not in NO_EXAMPLE)
    assert runner.failures == 0
