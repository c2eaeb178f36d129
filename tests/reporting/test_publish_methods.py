"""The paragraph on methods: every number from the manifest or the rows, every key in the bibliography."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from tests.results.made_runs import as_refused, with_rows
from tests.studies.associations.compared_runs import in_one, other_model
from tests.studies.associations.publish_runs import NASTY, measured_in_contexts
from tests.studies.showing import cited
from tests.studies.stereotypes.made_runs import compared_with_people

import biassay
from biassay.reporting.methods import MethodsSentence, make_paragraphs, methods_latex, methods_markdown, to_bibtex
from biassay.reporting.presenter import DefaultPresenter
from biassay.results.run_data import RunData
from biassay.runs.reports import get_presenter
from biassay.runs.run import Run


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("vectors")


@pytest.fixture(scope="module")
def run(cache: Path) -> Run:
    return biassay.run("glove", tests=["weat1", "weat6", "weat7", "sent-weat6"], seed=17, max_unknown=0.3, cache=cache)


@pytest.fixture(scope="module")
def all_runs(run: Run, cache: Path) -> dict[str, RunData]:
    return {
        "texts": run,
        "papers": biassay.run("glove", tests=["weat6"], protocol="may2019", cache=cache),
        "contexts": measured_in_contexts(),
        "stereotypes": compared_with_people(),
        "discovery": biassay.discover("glove", "african-american-females", n_permutations=97, keep=20, cache=cache),
        "robustness": biassay.robustness("glove", tests=["weat6", "weat7"], n_subsets=3, cache=cache),
    }


def sentences(run: RunData) -> list[MethodsSentence]:
    return list(get_presenter(run.manifest.study).methods_paragraph(run))


def latex(run: RunData) -> str:
    return methods_latex(make_paragraphs([(get_presenter(run.manifest.study), run)]), cited(run))


def numbers(run: RunData) -> set[str]:
    return set(re.findall(r"\d[\d,.]*\d|\d", " ".join(one.text for one in sentences(run))))


def test_every_study_is_told_and_its_works_are_in_the_bibliography(all_runs: dict[str, RunData]) -> None:
    for run in all_runs.values():
        keys = set(re.findall(r"@[a-z]+\{([^,]+),", to_bibtex(cited(run))))
        used = {key for found in re.findall(r"\\cite\{([^}]+)\}", latex(run)) for key in found.split(",")}
        asked = {
            work
            for said in make_paragraphs([(get_presenter(run.manifest.study), run)])
            for one in said
            for work in one.works
        }
        assert len(used) == len(asked) > 1  # no work is lost on the way
        assert used <= keys
        assert "biassay" in used
        assert sentences(run)[0].text.startswith(f"With biassay {run.manifest.versions.get('biassay', 'unknown')} we ")


def test_numbers_are_those_of_the_run(all_runs: dict[str, RunData]) -> None:
    texts = numbers(all_runs["texts"])
    assert {"3", "1", "95", "0.05", "30", "17"} <= texts  # tests about people, check, interval, level, lost, seed
    assert {"0.01", "100,000", "99,999"} <= numbers(all_runs["papers"])
    contexts, made = all_runs["contexts"], all_runs["contexts"].manifest
    source = made.inputs.contexts
    expected = {f"{n:,}" for n in (made.settings.n_samples, source.documents, source.rows, source.per_stimulus)}
    assert expected <= numbers(contexts)
    stereotypes, made = all_runs["stereotypes"], all_runs["stereotypes"].manifest
    expected = {str(len(made.inputs.groups)), str(len(made.inputs.pairs)), f"{made.settings.n_bootstrap:,}"}
    assert expected <= numbers(stereotypes)
    words = f"{all_runs['discovery'].tables['groups'][0].n_words:,}"
    assert {"97", "6", "34", "0.05", words} <= numbers(all_runs["discovery"])
    choices = {row.n_specifications for row in all_runs["robustness"].results}
    assert {"2", "3", "0.05", *map(str, choices)} <= numbers(all_runs["robustness"])


def templates_told(measure: str, chosen: tuple[str, ...]) -> str:
    """Return the methods sentences about a run with 35 templates."""
    templates = {f"t{i}": f"{{Group}} are {i} {{trait}}." for i in range(35)}
    run = compared_with_people(templates=templates, measures=(measure,))
    rows = [dataclasses.replace(row, templates=tuple(templates), chosen=chosen) for row in run.tables["measures"]]
    one = dataclasses.replace(run, tables={**run.tables, "measures": tuple(rows)})
    return " ".join(sentence.text for sentence in sentences(one))


def test_only_templates_that_were_used_are_told() -> None:
    told = templates_told("ilps", ("t7",))
    assert 'means over the template "[Group] are 7 [trait]."' in told
    assert "we chose these from 35 templates as those that agree best with people's ratings of pilot groups" in told
    two = templates_told("ilps", ("t7", "t9"))
    assert 'means over "[Group] are 7 [trait]." and "[Group] are 9 [trait]."; we chose these from 35' in two
    every = templates_told("ilps", tuple(f"t{i}" for i in range(35)))
    assert "means over all 35 templates" in every
    assert "we chose" not in every


def test_names_are_escaped(run: Run) -> None:
    for name in NASTY:
        models = tuple(dataclasses.replace(one, text=name, name=name) for one in run.manifest.models)
        hostile = with_rows(run, run.results, models=models)
        code = latex(hostile).replace("\\%", "").partition("\n")[2]
        assert not re.search(r"(?<!\\)[%#&]", code)
        assert code.count("{") == code.count("}")
        text = methods_markdown(make_paragraphs([(get_presenter("associations"), hostile)]), cited(hostile))
        rendered = MarkdownIt("commonmark", {"html": True}).render(text)
        assert set(re.findall(r"<(\w+)", rendered)) == {"p"}


def test_a_study_that_says_nothing_is_told_by_its_manifest(run: Run) -> None:
    made = dataclasses.replace(run.manifest, study="own", package="other", versions={"biassay": "9", "other": "3.1"})
    own = RunData(made, run.tables)
    first, settings = DefaultPresenter("Own", (), lambda _: ()).methods_paragraph(own)
    assert first.text.startswith("With biassay 9 we measured the model glove (")
    assert first.text.endswith(" by the study own of other 3.1")
    assert {"seed = 17", "max_unknown = 0.3"} <= set(settings.text.removeprefix("Settings: ").split(", "))


@pytest.mark.skipif(shutil.which("bibtex") is None, reason="LaTeX is not installed")
def test_it_compiles_with_its_bibliography(all_runs: dict[str, RunData], tmp_path: Path) -> None:
    shown = [(get_presenter(run.manifest.study), run) for run in all_runs.values()]
    works = cited(*all_runs.values())
    (tmp_path / "references.bib").write_text(to_bibtex(works), encoding="utf-8")
    (tmp_path / "methods.tex").write_text(methods_latex(make_paragraphs(shown), works), encoding="utf-8")
    (tmp_path / "t.tex").write_text(
        "\\documentclass[twocolumn]{article}\\usepackage[T1]{fontenc}\\begin{document}\\input{methods}"
        "\\bibliographystyle{plain}\\bibliography{references}\\end{document}"
    )
    tex = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    for command in (tex, ["bibtex", "t"], tex, tex):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    log = (tmp_path / "t.log").read_text(encoding="latin-1")
    assert "undefined" not in log


def test_a_comparison_has_a_paragraph_of_its_own(run: Run) -> None:
    both = in_one(run, other_model(run, "two", 3))
    found, presenter = both.compare(), get_presenter("associations")
    *_, last = make_paragraphs([(presenter, both)], (presenter, found))
    text = " ".join(one.text for one in last)
    assert text.startswith("We compared two with glove by ")
    verdict = found.verdicts[0]
    family = next(row.family for row in found.tables["associations"] if row.family)
    assert {"95", str(family), f"{verdict.margin:g}", f"{verdict.alpha:g}"} <= set(re.findall(r"\d[\d.]*\d|\d", text))


def test_what_is_missing_and_unfinished_is_said(run: Run) -> None:
    assert "missing" not in latex(run)
    refused = with_rows(run, [as_refused(run.results[0]), *run.results[1:]], status="running")
    assert "1 result is missing" in latex(refused)
    assert "not finished" in latex(refused)
