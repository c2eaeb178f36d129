"""Names in reports are escaped."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.reporting.pages import Page
from tests.studies.associations.publish_runs import changed
from tests.studies.showing import printed

import biassay
from biassay.runs.reports import render_report
from biassay.runs.run import Run

HOSTILE = "<script>alert(1)</script>"


@pytest.mark.slow
@pytest.mark.parametrize("field", ["test", "model", "options", "targ1", "attr1", "reason", "sentences_route"])
def test_hostile_names_are_escaped(field: str, measured: Run) -> None:
    text = render_report(changed(measured, **{field: HOSTILE}))
    page = Page(text)
    assert HOSTILE not in text
    if field in ("test", "model", "options", "targ1", "attr1", "reason"):
        assert HOSTILE in page.text
    held = {"model": "models", "options": "models", "reason": "reasons"}.get(field, "tests")
    if field != "sentences_route":
        assert HOSTILE in str(page.data["texts"][held])  # a string of the data, and nothing else


def test_hostile_names_from_a_file_are_escaped_end_to_end(tmp_path: Path) -> None:
    words = {"X": ["cat", "lion"], "Y": ["dog", "wolf"], "A": ["love", "joy"], "B": ["war", "<b>grief</b>"]}
    concepts = "".join(
        f'[concepts.{role}]\nlabel = "{HOSTILE}{role}"\nwords = {given!r}\n' for role, given in words.items()
    )
    roles = "".join(f'{role} = "{role}"\n' for role in words)
    source = f'[source]\nname = "{HOSTILE}"\ncitation = "{HOSTILE}"\nlicence = "{HOSTILE}"\nversion = "1"\n'
    path = tmp_path / "own.toml"
    path.write_text(f'{source}{concepts}[tests."{HOSTILE}"]\ntitle = "{HOSTILE}"\n{roles}')
    run = biassay.run("glove", tests=str(path), max_unknown=0.5, out=tmp_path / "run")
    assert [r.test for r in run.results] == [HOSTILE]
    text = (tmp_path / "run" / "report.html").read_text()
    page = Page(text)
    assert HOSTILE not in text
    assert "b" not in page.tags
    assert HOSTILE in page.text
    assert HOSTILE in printed(run)


def test_an_attribute_cannot_be_broken_out_of(measured: Run) -> None:
    nasty = '" onmouseover="alert(1)'
    page = Page(render_report(changed(measured, test=nasty)))
    assert nasty in page.text
    assert any(nasty in value for _, name, value in page.attributes if name == "aria-label")


@pytest.mark.parametrize("nasty", ["</script><script>alert(1)</script>", "<!--<script>", "]]>&amp;\u2028"])
def test_the_data_cannot_be_broken_out_of(nasty: str, measured: Run) -> None:
    """`<!--<script>` would hide the end of the script from a browser."""
    page = Page(render_report(changed(measured, model=nasty, test=nasty, title=nasty, targ1=nasty)))
    assert page.data["texts"]["models"] == [nasty]
    assert not {"<", ">", "&"} & set("".join(page.scripts[0][1]))
