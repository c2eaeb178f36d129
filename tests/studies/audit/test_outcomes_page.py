"""docs/outcomes.md lists every outcome, and its word list can be read."""

from __future__ import annotations

import re
from pathlib import Path

from biassay.datasets.lexicons import lexicon_names, read_lexicon
from biassay.datasets.rubrics import load_rubric
from biassay.studies.audit.outcomes import get_outcome, get_outcome_package, judged_outcome_names, outcome_names

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "outcomes.md").read_text(encoding="utf-8")


def test_the_page_lists_every_outcome() -> None:
    rows = [
        f"| `{one.name}` | {one.measures} | {one.unit} | {len(one.words) or ''} | {one.weakness} |".replace(
            "|  |", "| |"
        )
        for one in map(get_outcome, outcome_names())
        if get_outcome_package(one.name) == "biassay"
    ]
    table = PAGE.partition("|---|---|---|---|---|\n")[2].partition("\n\n")[0]
    assert table.splitlines() == rows


def test_the_page_names_the_source_of_every_lexicon() -> None:
    table = PAGE.partition("## Word lists")[2].partition("\n\n## ")[0]
    assert sorted(re.findall(r"`(\w+)`", table)) == sorted(lexicon_names())


def test_the_word_list_of_the_page_is_valid(tmp_path: Path) -> None:
    (text,) = re.findall(r"^```toml\n(# caution\.toml.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    path = tmp_path / "caution.toml"
    path.write_text(text)
    assert read_lexicon(path).phrases == (("on", "guard"),)


def test_the_page_lists_every_rubric_and_its_own_is_valid(tmp_path: Path) -> None:
    section = PAGE.partition("## Judges")[2].partition("\n## ")[0]
    assert set(re.findall(r"`((?:judge|compare):[a-z]+)`", section.partition("\n\n    ")[0])) == set(
        judged_outcome_names()
    )
    (text,) = re.findall(r"^```toml\n(# formality\.toml.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    path = tmp_path / "formality.toml"
    path.write_text(text)
    assert get_outcome(f"judge:{path}").rubric == load_rubric(str(path))
