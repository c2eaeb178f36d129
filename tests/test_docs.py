"""Run the commands and examples of README.md and docs."""

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

import numpy as np
import pytest
from scipy.stats import spearmanr

import biassay
from biassay.cli import main
from biassay.datasets.abc_model import load_abc
from biassay.datasets.catalogue import load_catalogue
from biassay.datasets.schema import load_topics
from biassay.datasets.word_associations import select_published
from biassay.prompts.sentences import make_texts

from .docs_endpoint import URL, serve_models
from .docs_setting import find_blocks, simulate_participants, write_files

ROOT = Path(__file__).resolve().parents[1]
WRITTEN = sorted(page for page in (ROOT / "docs").rglob("*.md") if "generated" not in page.parts)
PAGES = [ROOT / "README.md", *WRITTEN]


@pytest.fixture(autouse=True)
def empty_folder(example: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: ARG001
    """Change to a folder that contains only a text, book.txt."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "book.txt").write_text((ROOT / "README.md").read_text())
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_python_examples_run(page: Path) -> None:
    for example in find_blocks(page, "python"):
        exec(compile(example, str(page), "exec"), {})


@pytest.mark.extras
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_run(
    page: Path, empty_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from biassay.cli.discover import command as discover

    (permutations,) = (option for option in discover.params if option.name == "n_permutations")
    monkeypatch.setattr(permutations, "default", 9_999)  # a tenth of the time
    monkeypatch.setattr("uvicorn.run", simulate_participants)
    monkeypatch.setattr("biassay.survey.server._check_port", lambda *_: None)
    write_files(page, empty_folder)
    with serve_models() as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        printed = _run_commands(page, url, capsys)
    if page.parent.name == "tutorials" or page.name == "README.md":  # they quote output, with other line breaks
        for quoted in find_blocks(page, "text"):
            assert " ".join(quoted.split()) in " ".join(printed.split())


def _run_commands(page: Path, url: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Run the commands of a page and return their output."""
    printed = ""
    for block in find_blocks(page, "console"):
        for line in block.splitlines():
            command, *arguments = shlex.split(line.removeprefix("$ ").replace(URL, url), comments=True)
            assert command == "biassay"
            with pytest.raises(SystemExit) as stop:
                main(arguments)
            output = capsys.readouterr()
            expected = re.findall(r"# exit code (\d)$", line)
            assert stop.value.code == int(expected[0] if expected else 0), (line, output.err)
            printed += f"{output.err}\n{output.out}\n"
    return printed


def test_the_pages_have_examples() -> None:
    assert sum(len(find_blocks(page, "python")) for page in PAGES) >= 3
    assert sum(block.count("$ biassay") for page in PAGES for block in find_blocks(page, "console")) >= 6


def test_the_test_file_in_the_docs_is_valid_and_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, _ = find_blocks(ROOT / "docs" / "tests.md", "toml")
    (tmp_path / "animals.toml").write_text(content)
    with pytest.raises(SystemExit) as stop:
        main(["run", "glove", "--tests", "animals.toml"])
    assert stop.value.code == 0
    assert "animals-seen" in capsys.readouterr().out


def test_the_forms_in_the_docs_make_right_sentences(tmp_path: Path) -> None:
    _, forms = find_blocks(ROOT / "docs" / "tests.md", "toml")
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
    (content,) = find_blocks(ROOT / "docs" / "discovery.md", "toml")
    (tmp_path / "groups.toml").write_text(content)
    for arguments in (
        ["tests", "validate", "groups.toml"],
        ["discover", "--grouping", "groups.toml", "--groups", "old-women", "--n-permutations", "999"],
    ):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0


def test_the_groups_of_stereotypes_in_the_docs_are_valid(tmp_path: Path) -> None:
    (content,) = find_blocks(ROOT / "docs" / "stereotypes.md", "toml")
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
    script = script_named("docs_columns")
    page = script.PAGE.read_text(encoding="utf-8")
    assert page == script.make_page(), "run scripts/docs_columns.py"
    assert "| `fixed_words_p_value` | " in page
    assert page.count("(`decisions`)") == 1  # the same in every study


def test_the_agreement_of_measures_in_the_docs_is_that_of_glove() -> None:
    """The whole page needs three models: python scripts/docs_measures.py. Correlations are checked against SciPy."""
    script = script_named("docs_measures")
    run = biassay.run({"GloVe": "glove"}, list(script.list_tests()), metric="all", random_sets=0)
    scores, signed, tests = script.collect_scores(run)
    own = scores["GloVe"]
    known = np.isfinite(own["d"])
    expected = {}
    for name in list(signed)[1:]:
        pair = own["d"][known], own[name][known]
        expected[name] = spearmanr(*(pair if signed[name] else map(np.abs, pair))).statistic
    row = f"| GloVe | {' | '.join(f'{value:.2f}' for value in expected.values())} | {known.sum()} |"
    assert row in script.PAGE.read_text(encoding="utf-8"), "run scripts/docs_measures.py"
    value, low, high = script.make_matrix(scores, {"d": True, "same": True}, range(len(tests)))["d", "same"]
    assert value == pytest.approx(expected["same"])
    assert low < value < high


def test_the_faults_of_lists_in_the_docs_are_those_that_the_linter_finds() -> None:
    script = script_named("docs_languages")
    page = script.PAGE.read_text(encoding="utf-8")
    assert page == script.with_table(page), "run scripts/docs_languages.py"
    rows = re.findall(r"^\| \w[^|]* \(`\w+`\) \|", page, re.MULTILINE)
    assert len(rows) == 25


def test_the_catalogue_lists_every_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    script = script_named("docs_catalogue")
    page = script.PAGE.read_text(encoding="utf-8")
    assert page == script.with_test_list(page), "run scripts/docs_catalogue.py"
    names = {name for name, test in load_catalogue().tests.items() if test.alias_of is None}
    names |= {test.name for test in select_published()}
    assert set(re.findall(r"^\| `(\S+)` \|", page, re.MULTILINE)) == names


def test_the_gallery_shows_every_report_with_a_small_picture() -> None:
    script = script_named("docs_gallery")
    page = script.PAGE.read_text(encoding="utf-8")
    assert page == script.with_gallery(page), "run scripts/docs_gallery.py"
    for case in script.SHOWCASES:
        picture = script.PICTURES / f"{case.name}.png"
        assert picture.stat().st_size < 100_000
        assert picture.read_bytes().startswith(b"\x89PNG")


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
        f"p of `weat2` is {weat2['exact']['p_ge']:.1e}",
        f"{tail['released']['p_value_parametric']:.5f} instead of {tail['exact']['p_ge']:.5f}",
        f"{tied['released']['numerator']} of {tied['n_partitions']:,} splits instead of {tied['exact']['count_ge']}",
        f"A pooled effect of {against['released']['CES']:.2f} has p = {against['released']['p_value']:.0f} in the "
        f"released code and "
        f"{against['meta']['p_two_sided']:.1e}",
        f"an effect of {near['released']['CES']:.2f} has {near['released']['p_value']:.3f} and "
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
    ours = [float(d) for d in re.findall(r"\(`weat\d+`\).*\| (\d\.\d{3}) \|", page)]
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
NO_EXAMPLE = {"ask", "stereotypes", "benchmark", "import_logs", "prompt_robustness", "relate"}


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
