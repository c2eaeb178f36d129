"""Citations: every work once, matched by the citations in the data files."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from tests.results.made_runs import with_rows
from tests.studies.associations.publish_runs import NASTY, SCRIPT, measured_in_contexts
from tests.studies.showing import cited as citations

import biassay
from biassay.reporting.methods import Citation, to_bibtex, to_text
from biassay.runs.run import Run

ENTRY = re.compile(r"@([a-z]+)\{([a-z0-9-]+),\n(.*?)\n\}\n", re.DOTALL)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    tests = ["weat6", "weat1", "sent-weat6", "C1", "I1", "guo2021-supplement"]
    return biassay.run("glove", tests=tests, cache=tmp_path_factory.mktemp("vectors"))


@pytest.fixture(scope="module")
def discovery(tmp_path_factory: pytest.TempPathFactory) -> Run:
    cache = tmp_path_factory.mktemp("vectors")
    return biassay.discover("glove", ["african-american-females"], n_permutations=19, alpha=0.5, keep=5, cache=cache)


CROSSED = {"clark1973", "judd2012", "satterthwaite1946", "fieller1954"}
CORRECTED = {"holm1979", "goeman2010"}


def works(cited: tuple[Citation, ...]) -> dict[str, Citation]:
    found = {citation.key: citation for citation in cited}
    assert len(found) == len(cited)
    return found


def with_sources(run: Run, *given: tuple[str, str]) -> Run:
    """One test for every name and citation of a source."""
    test = run.manifest.inputs.tests[0]
    tests = tuple(
        dataclasses.replace(test, name=f"own{place}", source=name, citation=citation)
        for place, (name, citation) in enumerate(given)
    )
    return with_rows(run, run.results, inputs=dataclasses.replace(run.manifest.inputs, tests=tests))


def entries(text: str) -> dict[str, dict[str, str]]:
    """BibTeX taken apart: braces balanced in every value."""
    found = {}
    for kind, key, body in ENTRY.findall(text):
        fields = dict(re.findall(r"^  ([a-z]+) = \{(.*)\},?$", body, re.MULTILINE))
        assert len(fields) == len(body.splitlines())
        for value in fields.values():
            depth = 0
            for character in value:
                depth += (character == "{") - (character == "}")
                assert depth >= 0
            assert depth == 0
        found[key] = {"kind": kind} | fields
    return found


def test_sources_and_methods_of_a_run_are_cited_once_each(run: Run) -> None:
    cited = works(citations(run))
    assert set(cited) == {"caliskan2017", "may2019", "guo2021", "pennington2014", "biassay"} | CROSSED | CORRECTED
    assert cited["caliskan2017"].uses == ("tests weat6, weat1 (Table 1)", "the method WEAT")
    assert cited["may2019"].uses == ("test sent-weat6 (supplement)", "the method SEAT")
    assert cited["holm1979"].uses == ("correction for the number of questions",)
    tests, supplement = cited["guo2021"].uses
    assert tests == "tests C1, I1 (appendix)"
    assert supplement.endswith("(appendix, Tables 3 and 4)")


def test_runs_over_contexts_and_discoveries_cite_their_methods(run: Run, discovery: Run) -> None:
    assert "the method CEAT" in works(citations(measured_in_contexts()))["guo2021"].uses
    cited = works(citations(discovery))
    assert set(cited) == {"guo2021", "benjamini1995", "pennington2014", "biassay"}
    assert cited["guo2021"].uses == ("groups of guo2021-groups (appendix, IBD and EIBD)", "the methods IBD and EIBD")
    together = works(citations(run, discovery, measured_in_contexts()))
    assert (
        set(together)
        == {"caliskan2017", "may2019", "guo2021", "benjamini1995", "pennington2014", "biassay"} | CROSSED | CORRECTED
    )
    assert len(together["guo2021"].uses) == 5
    assert citations() == ()


def test_biassay_is_cited_as_its_own_file_says_with_the_versions_of_the_runs(run: Run, discovery: Run) -> None:
    text = (Path(__file__).parents[2] / "CITATION.cff").read_text(encoding="utf-8").split("references:")[0]
    said = dict(re.findall(r"^(?:  - )?(\w+): (.+)$", text, re.MULTILINE))
    older = with_rows(run, (), versions={"biassay": "0.0.1"})
    for found, note in (
        ((run,), f"Version {said['version']}"),
        ((discovery, older), f"Versions 0.0.1, {said['version']}"),
    ):
        own = citations(*found)[-1]
        title = f"{said['title']}: {said['abstract'].removesuffix('.')}"
        assert dict(own.fields) == {
            "title": title,
            "organization": said["name"],
            "year": found[0].manifest.created[:4],
            "note": note,
        }
        assert own.key == "biassay"


def test_every_citation_of_the_data_files_is_known(run: Run) -> None:
    data = Path(biassay.__file__).parent / "datasets" / "data"
    loaded = [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(data.glob("*/*.toml"))]
    files = [content["source"] for content in loaded if "source" in content]  # lists of names have one per list
    given = [source for source in files if not source["citation"].startswith("biassay, ")]
    assert len(given) > 5
    for source in given:
        cited = citations(with_sources(run, (source["name"], source["citation"])))
        assert cited[0].type != "misc", source
        assert dict(cited[0].fields)["doi"] == source["doi"]


def test_sources_of_ones_own_are_cited_in_their_own_words(run: Run) -> None:
    own = with_sources(run, ("My lists", "Me 2025, My lists"), ("my-lists", "Me 2026, Others"), ("may2019", "Somebody"))
    cited = [c for c in citations(own) if c.type == "misc"]
    assert [c.key for c in cited] == ["my-lists", "my-lists-2", "may2019-2"]
    assert [c.text for c in cited] == ["Me 2025, My lists", "Me 2026, Others", "Somebody"]
    assert [c.uses for c in cited] == [("test own0",), ("test own1",), ("test own2",)]


def test_the_text_is_a_line_a_work(run: Run) -> None:
    lines = to_text(citations(run)).splitlines()
    assert len(lines) == 11
    assert lines[0] == (
        "Aylin Caliskan, Joanna J. Bryson and Arvind Narayanan 2017. Semantics derived automatically from language "
        "corpora contain human-like biases. Science 356(6334), 183–186. doi:10.1126/science.aal4230 "
        "(for: tests weat6, weat1 (Table 1); the method WEAT)"
    )


@pytest.mark.parametrize("nasty", [*NASTY, SCRIPT, "} @article{x, title={y}", "100% @me {"])
def test_hostile_citations_stay_inside_their_entry(run: Run, nasty: str) -> None:
    cited = citations(with_sources(run, (nasty, nasty)))
    text = to_bibtex(cited)
    assert set(entries(text)) == {citation.key for citation in cited}
    outside = ENTRY.sub("", text)
    assert "@" not in outside
    assert all(line.startswith("% For: ") for line in outside.split("\n") if line)


@pytest.mark.skipif(shutil.which("bibtex") is None, reason="bibtex is not installed")
def test_bibtex_reads_it(run: Run, discovery: Run, tmp_path: Path) -> None:
    own = with_sources(run, *((nasty, f"Own {nasty}") for nasty in NASTY))
    (tmp_path / "t.bib").write_text(to_bibtex(citations(run, discovery, own)), encoding="utf-8")
    (tmp_path / "t.aux").write_text("\\citation{*}\n\\bibdata{t}\n\\bibstyle{plain}\n")
    done = subprocess.run(["bibtex", "t"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert not re.search("error|empty", done.stdout.lower()), done.stdout
    assert (tmp_path / "t.bbl").read_text(encoding="utf-8").count(r"\bibitem") == 12 + len(NASTY)
