"""Tables of typed columns: file, data frame and JSON agree, and mark missing values."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import sys
from typing import Any

import pytest
from tests.results.made_runs import contexts, over_contexts, result, run_of

from biassay.errors import MissingExtraError, UnknownNameError
from biassay.results.run_folder import write_run
from biassay.results.tables import Column, format_tsv, iter_tsv
from biassay.runs.run import Run
from biassay.studies.associations.results import PAPER_COLUMNS, RESULTS, AssociationRecord
from biassay.studies.registry import get_study, study_names

NAN = math.nan
PAPERS = ["model", "options", "test", "p_value", "effect_size", "num_targ1", "num_targ2", "num_attr1", "num_attr2"]
PLAIN = ["model", "options", "test", "effect_size", "ci_low", "ci_high", "standard_error", "scale", "p_value"]


def lines(*rows: AssociationRecord) -> list[dict[str, str]]:
    text = run_of("one", rows).table().to_tsv()
    return list(csv.DictReader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize("study", study_names())
def test_every_column_of_every_study_has_a_name_a_label_and_help(study: str) -> None:
    tables = get_study(study).schema.tables
    assert tables[0].name == "results"
    for table in tables:
        columns = () if callable(table.columns) else table.columns
        assert len({column.name for column in columns}) == len(columns)
        for column in columns:
            assert column.label
            assert column.help.endswith((".", "?")), column.name
            assert column.name.isidentifier()


def test_the_primary_outcome_comes_first_and_the_papers_have_nine_columns() -> None:
    assert [column.name for column in RESULTS.get_columns(run_of("one", []))][:9] == PLAIN
    assert [column.name for column in PAPER_COLUMNS] == PAPERS


def test_every_field_has_a_column_but_those_of_single_words() -> None:
    fields = {field.name for field in dataclasses.fields(AssociationRecord)}
    fields -= {"outcome", "alternatives", "associations", "leave_one_out", "num_contexts", "warnings"}
    assert fields <= set(lines(result())[0])


@pytest.mark.extras
def test_file_frame_and_json_hold_the_same(tmp_path: Any) -> None:
    pytest.importorskip("pandas")
    rows = (
        over_contexts(result(test="a"), share_significant=0.5),
        result(test="b", effect_size=NAN),
        result(test="c", p=None),
    )
    run = run_of("one", rows, contexts=contexts())
    write_run(tmp_path, run, run.study.schema)
    header, *cells = (line.split("\t") for line in (tmp_path / "results.tsv").read_text().splitlines())
    frame = run.to_frame()
    assert list(frame.columns) == header == [column.name for column in run.table().columns]
    assert run.table().to_tsv() == (tmp_path / "results.tsv").read_text()
    stored = json.loads(run.to_json())["results"]
    for place, line in enumerate(cells):
        told = dict(zip(header, line, strict=True))
        assert told["test"] == frame["test"][place] == stored[place]["test"]
        assert told["p_value"] == ("" if stored[place]["p_value"] is None else repr(stored[place]["p_value"]))
    assert frame["share_significant"][0] == 0.5 == stored[0]["share_significant"]
    assert not isinstance(frame["share_significant"][1], float)


def test_what_was_not_computed_is_an_empty_cell_and_nan_is_not() -> None:
    rows = lines(*(result(p_value=v, fixed_words_p_value=v, test=str(i)) for i, v in enumerate((None, NAN, 0.0))))
    assert [row["p_value"] for row in rows] == ["", "nan", "0.0"]
    assert [row["significant"] for row in rows] == ["", "false", "true"]
    (row,) = lines(over_contexts(result(), new_contexts_low=None, new_contexts_high=-math.inf, statistic=0.0))
    assert [row[name] for name in ("new_contexts_low", "new_contexts_high", "statistic")] == ["", "-inf", "0.0"]


def test_a_frame_without_pandas_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="frame"):
        run_of("one", []).to_frame()


def test_no_cell_is_run_by_a_spreadsheet_and_nothing_is_lost() -> None:
    formulas = ("=1+1", "+cmd|x", "-x", "@SUM(1)", "'=1", '"=1"', "\uff1d1", "-", "-1-1", "\t=1")
    plain = ("-5", "+1e-3", "'s", "a=b", "plain")
    rows = lines(*(result(test=text, effect_size=-0.25, statistic=-1e-300) for text in (*formulas, *plain)))
    cells = [row["test"] for row in rows]
    assert cells == [*(f"'{text.strip()}" for text in formulas), *plain]
    assert {(row["effect_size"], row["statistic"]) for row in rows} == {("-0.25", "-1e-300")}


def test_a_table_shows_itself_and_an_unknown_one_is_refused() -> None:
    run = run_of("one", [result("<b>m</b>", f"t{i}", title="<script>") for i in range(70)])
    page = run.table()._repr_html_()
    assert page.count("<tr>") == 1 + 60
    assert "<script>" not in page
    assert "<b>" not in page
    assert "&lt;b&gt;m" in page
    assert len(run.table()) == 70
    assert [row.test for row in run.table()] == [row.test for row in run.results]
    assert len(repr(run.table("results")).splitlines()) == 61
    with pytest.raises(UnknownNameError, match="resuls"):
        run.table("resuls")
    compared = run_of("one", [result("<b>m</b>", "t"), result("other", "t")]).compare()
    assert "<b>m" not in compared._repr_html_()
    assert isinstance(run, Run)


def test_a_long_table_is_written_in_pieces_whose_rows_are_made_as_they_come() -> None:
    columns = [
        Column("real", "real", "A number.", "number"),
        Column("text", "text", "A text.", get=lambda n: f"t{n % 7:.0f}"),
    ]
    expected = "real\ttext\n" + "".join(f"{i}.0\tt{i % 7}\n" for i in range(5000))
    made: list[float] = []
    rows = (made.append(i) or float(i) for i in range(5000))  # type: ignore[func-returns-value]
    pieces = iter_tsv(columns, rows)
    head, first = next(pieces), next(pieces)
    assert 0 < len(made) < 5000
    assert head + first + "".join(pieces) == format_tsv(columns, list(map(float, range(5000)))) == expected
