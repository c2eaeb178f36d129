"""Pages of the docs are linked, and generated pages match the code."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest

import biassay
from biassay.cli import main
from biassay.datasets.catalogue import load_catalogue
from biassay.datasets.schema import ROLES
from biassay.datasets.word_associations import select_published

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
TOCTREE = re.compile(r"^(?:```\{toctree\}|<!-- toctree)\n(.*?)^(?:```|-->)", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("docs_reference", ROOT / "scripts" / "docs_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(ROOT / "scripts"))
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(ROOT / "scripts"))


@pytest.fixture(scope="module")
def made(script: ModuleType) -> dict[str, str]:
    pages: dict[str, str] = script.make_pages()
    return pages


def written_pages() -> dict[str, str]:
    """Return the pages of the repository by their path in docs/."""
    pages = (page for page in DOCS.rglob("*.md") if "generated" not in page.parts)
    return {page.relative_to(DOCS).as_posix(): page.read_text(encoding="utf-8") for page in pages}


def test_every_page_is_in_one_table_of_contents(made: dict[str, str]) -> None:
    pages = written_pages() | {f"generated/{name}": content for name, content in made.items()}
    listed = []
    for name, content in pages.items():
        for line in "".join(TOCTREE.findall(content)).splitlines():
            if line and not line.startswith(":"):
                entry = match[1] if (match := re.search(r"<(.+)>$", line)) else line
                place = (DOCS / name).parent.joinpath(f"{entry}.md").resolve()
                listed.append(place.relative_to(DOCS.resolve()).as_posix())
    assert sorted(listed) == sorted(pages.keys() - {"index.md"})


def test_links_between_pages_lead_somewhere(made: dict[str, str]) -> None:
    pages = written_pages() | {f"generated/{name}": content for name, content in made.items()}
    places = {(DOCS / name).resolve() for name in pages}
    for name, content in pages.items():
        for link in re.findall(r"(?<!\\)\]\(<?([^)>#]+)", content):
            if not link.startswith("https://"):
                place = (DOCS / name).parent.joinpath(link).resolve()
                assert place in places or place.exists(), (name, link)


def test_every_test_of_the_catalogue_has_a_page_of_its_words_source_and_smallest_effect(made: dict[str, str]) -> None:
    tests = {name: test for name, test in load_catalogue().tests.items() if test.alias_of is None}
    asked = [test.name for test in select_published()]
    assert {name for name in made if name.startswith("catalogue/")} == {
        "catalogue/index.md",
        *(f"catalogue/{name}.md" for name in (*tests, *asked)),
    }
    for name, test in tests.items():
        page = re.sub(r"\\(.)", r"\1", made[f"catalogue/{name}.md"])
        for role in ROLES:
            assert f"- **{test.concept(role).label}** (" in page
            assert re.search(rf", {role}(; concept `{re.escape(test.concept(role).name)}`)?\): ", page)
            assert f"): {', '.join(test.concept(role).words)}\n" in page
        assert test.source.citation in page
        assert test.source.licence in page
        smallest = biassay.power(name).smallest_d
        assert re.findall(r"true d of \*\*(.+)\*\*", page) == ([] if smallest is None else [f"{smallest:.2f}"])
    assert "`C6`" in made["catalogue/weat6.md"]
    assert "**1.36**" in made["catalogue/weat6.md"]


def test_every_test_for_models_that_answer_has_a_page_of_its_words_pairs_and_source(made: dict[str, str]) -> None:
    never = 0
    for test in select_published():
        page = re.sub(r"\\(.)", r"\1", made[f"catalogue/{test.name}.md"])
        assert f"](<{test.name}.md>)" in made["catalogue/index.md"]
        for concept in test.concepts.values():
            assert f"): {', '.join(concept.words)}\n" in page
        for known in (*(" or ".join(pair) for pair in test.pairs), test.source.citation, test.source.licence):
            assert known in page
        never += "cannot be significant at .05 for other group words" in page
    assert never == made["catalogue/index.md"].count(", descriptive)") == 11
    remarks = tomllib.loads((DOCS / "criticism.toml").read_text(encoding="utf-8"))["asked"]
    assert all(any(remark["says"] in page for page in made.values()) for remark in remarks)


def test_what_is_said_against_a_test_is_of_this_test_and_cites_papers_that_are_listed(made: dict[str, str]) -> None:
    known = tomllib.loads((DOCS / "criticism.toml").read_text(encoding="utf-8"))
    listed = written_pages()["explanation/criticism.md"].partition("## References")[2]
    assert all(f"({address})" in listed for _, address in known["papers"].values())
    assert {p for of in ("remarks", "asked") for one in known[of] for p in one.get("papers", ())} == set(
        known["papers"]
    )
    pages = {name: page for name, page in made.items() if name.startswith("catalogue/") and "/index" not in name}
    for remark in known["remarks"]:
        concerned = [page for page in pages.values() if remark["says"] in page]
        assert concerned, remark
        for word in re.findall(r"\*(\w+)\*", remark["says"]):  # a word that is quoted is one of the test
            assert all(re.search(rf"\): .*\b{word}\b", page, re.IGNORECASE) for page in concerned) or word == "about"
    for name, page in pages.items():
        assert len(re.findall(r"^- \*\*", page, re.MULTILINE)) >= 2, name
        assert ("Templates." in page) == ("| texts | sentences, bleached |" in page), name


def test_commands_have_all_options_of_their_help(made: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    sections = re.split(r"^##+ ", made["commands.md"], flags=re.MULTILINE)[1:]
    by_command = {section.partition("\n")[0]: section for section in sections}
    assert {"biassay run", "biassay survey serve", "biassay tests power"} <= by_command.keys()
    for command, section in by_command.items():
        with pytest.raises(SystemExit):
            main([*command.split()[1:], "--help"])
        options = re.findall(r"^  (--[\w-]+)", click.unstyle(capsys.readouterr().out), re.MULTILINE)
        for option in options:
            assert option in section or option == "--help", (command, option)


def test_every_public_name_is_in_the_reference(made: dict[str, str], script: ModuleType) -> None:
    assert sorted(re.findall(r"^   (\w+)$", made["functions.md"], re.MULTILINE)) == sorted(biassay.__all__)
    run = script.list_documented_members()["Run"]
    assert (run["report"], run["load"], run["results"]) == ("automethod", "automethod", "autoproperty")
    assert script.list_documented_members()["Association"]["crossed"] == "autoproperty"
