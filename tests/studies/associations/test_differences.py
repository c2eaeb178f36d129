"""Differences between models: tables, figures and sentences with the numbers of the records."""

from __future__ import annotations

import dataclasses

import pytest
from tests.results.made_runs import as_refused, with_rows
from tests.studies.associations.compared_runs import edited, keeping, of, other_model, rows_of, without

from biassay.reporting.document import Cell
from biassay.reporting.latex import to_latex
from biassay.reporting.markdown import to_markdown
from biassay.results.comparison import Comparison
from biassay.runs.reports import compare_models
from biassay.runs.run import Run
from biassay.studies.associations.compare import difference_table, get_evidence

MODELS = ["near", "far", "none"]


@pytest.fixture(scope="module")
def found(first: Run) -> Comparison:
    """Of the last model one test was refused, one has too few words, and one was not asked; weat8 is a check."""
    near, far, none = (other_model(first, name, 3, noise) for name, noise in zip(MODELS, (0.01, 0.3, 1.0), strict=True))
    far = dataclasses.replace(
        far, arrays={place: -table if place.endswith("cosines") else table for place, table in far.arrays.items()}
    )
    few = list(of(none, "weat7").associations["X"])[:1]
    none = without(keeping(none, "weat7", X=few), "sent-weat6")
    none = with_rows(none, tuple(as_refused(r) if r.test == "weat6" else r for r in none.results))
    runs = zip("abcd", (first, near, far, none), strict=True)
    return compare_models({name: edited(run, "weat8", about="method") for name, run in runs})


def test_the_table_is_that_of_the_comparison(found: Comparison) -> None:
    table = difference_table(found)
    assert [span.title for span in table.models] == MODELS
    assert [row.stub[0] for row in table.rows] == ["weat6", "weat7", "sent-weat6", "weat8, sanity check"]
    cells = {row.stub[0].split(",")[0]: row.cells for row in table.rows}
    kinds = set()
    for r in rows_of(found):
        place = 2 * MODELS.index(r.model)
        difference, interval = cells[r.test][place : place + 2]
        if r.difference is None:
            assert (difference, interval) == (Cell("–"), Cell("–"))
        elif r.interval_low is None or r.interval_high is None:
            assert (difference, interval) == (Cell(f"{r.difference:z.2f}"), Cell("–"))
        else:
            assert interval.text.replace("−", "-") == f"[{r.interval_low:z.2f}, {r.interval_high:z.2f}]"
            assert difference == Cell(f"{r.difference:z.2f}", "*" * get_evidence(r))
        kinds.add((difference.mark, interval.text == "–", difference.text == "–"))
    assert {("**", False, False), ("", False, False), ("", True, False), ("", True, True)} <= kinds
    assert cells["sent-weat6"][4:] == (Cell("–"), Cell("–"))  # the third model was not asked
    for text in (to_markdown(table), to_latex(table, "tab:differences")):
        assert all(model in text for model in MODELS)
