"""Records of a run: written and read back, nothing is lost and "not computed" is never a number."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biassay.errors import MissingExtraError, RunFolderError
from biassay.results.codec import structured, to_json, to_tsv
from biassay.results.records import FORMAT_VERSION, PAPER_COLUMNS, Manifest, ModelRecord, Result, TestRecord
from biassay.results.run import Run, with_corrections
from biassay.stats.effect_interval import effect_interval

NAN = math.nan


def result(**given: Any) -> Result:
    """A measured result; ``given`` replaces fields."""
    fields: dict[str, Any] = {
        "model": "m",
        "options": "",
        "test": "t",
        "p_value": 0.5,
        "effect_size": 0.25,
        "num_targ1": 3,
        "num_targ2": 3,
        "num_attr1": 3,
        "num_attr2": 3,
        "status": "measured",
        "reason": None,
        "title": "a title",
        "level": "word",
        "targ1": "X",
        "targ2": "Y",
        "attr1": "A",
        "attr2": "B",
        "statistic": 0.1,
        "log10_p_value": -0.30103,
        "p_route": "enumeration",
        "p_error": 0.0,
        "p_value_by_word": 0.5,
        "log10_p_value_by_word": -0.30103,
        "p_route_by_word": "enumeration",
        "num_words": {"X": 3, "Y": 3, "A": 3, "B": 3},
        "effect_size_by_word": 0.5,
        "p_floor_by_word": 0.05,
        "p_error_by_word": 0.0,
        "alpha": 0.01,
        "num_cut": {"X": 0, "Y": 0, "A": 0, "B": 0},
        "p_value_holm": None,
        "significant": None,
        "significant_holm": None,
        "p_value_by_word_holm": None,
        "significant_by_word": None,
        "significant_by_word_holm": None,
        "protocol": "exact",
        "alternative": "greater",
        "seed": 0,
        "source": "s",
        "test_version": "1",
        "test_digest": "d",
        "model_revision": None,
        "lost": {"X": (), "Y": (), "A": (), "B": ()},
        "leaning": {"X": {"x": 0.1}},
    }
    return Result(**fields | given)


def manifest(**given: Any) -> Manifest:
    fields: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "run_id": "one",
        "status": "complete",
        "created": "2026-01-01T00:00:00+00:00",
        "finished": None,
        "versions": {"biassay": "0"},
        "models": (ModelRecord("m?x=1", "m", "f", None, {"x": "1"}, 3, 2, 0.5),),
        "tests": (TestRecord("t", "t*", "d", "s", "c", "l", "1"),),
        "protocol": "exact",
        "alternative": "greater",
        "alpha": 0.01,
        "max_lost": 0.2,
        "seed": 0,
        "words_lost": {"m?x=1": ("w", "two words")},
    }
    return Manifest(**fields | given)


def table(results: tuple[Result, ...]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(to_tsv(results)), delimiter="\t", quoting=csv.QUOTE_NONE))


any_text = st.text(max_size=20)
any_float = st.floats()
maybe_float = st.none() | any_float
maybe_bool = st.none() | st.booleans()
maybe_text = st.none() | any_text
counts = st.integers(0, 10**6)
roles = st.sampled_from("XYAB")

results = st.builds(
    Result,
    model=any_text,
    options=any_text,
    test=any_text,
    p_value=maybe_float,
    effect_size=maybe_float,
    num_targ1=counts,
    num_targ2=counts,
    num_attr1=counts,
    num_attr2=counts,
    status=st.sampled_from(["measured", "refused", "failed"]),
    reason=maybe_text,
    title=any_text,
    level=st.sampled_from(["word", "sentence"]),
    targ1=any_text,
    targ2=any_text,
    attr1=any_text,
    attr2=any_text,
    statistic=maybe_float,
    log10_p_value=maybe_float,
    p_route=maybe_text,
    p_error=maybe_float,
    p_value_by_word=maybe_float,
    log10_p_value_by_word=maybe_float,
    p_route_by_word=maybe_text,
    num_words=st.dictionaries(roles, counts),
    num_cut=st.dictionaries(roles, counts),
    effect_size_by_word=maybe_float,
    p_floor_by_word=maybe_float,
    p_error_by_word=maybe_float,
    alpha=st.floats(0.001, 0.1),
    p_value_holm=maybe_float,
    significant=maybe_bool,
    significant_holm=maybe_bool,
    p_value_by_word_holm=maybe_float,
    significant_by_word=maybe_bool,
    significant_by_word_holm=maybe_bool,
    protocol=any_text,
    alternative=any_text,
    seed=counts,
    source=any_text,
    test_version=any_text,
    test_digest=any_text,
    model_revision=maybe_text,
    lost=st.dictionaries(roles, st.lists(any_text, max_size=3).map(tuple)),
    leaning=st.dictionaries(roles, st.dictionaries(any_text, any_float, max_size=3)),
)
models = st.builds(
    ModelRecord,
    text=any_text,
    name=any_text,
    family=any_text,
    revision=maybe_text,
    settings=st.dictionaries(any_text, any_text, max_size=2),
    texts=counts,
    encoded=counts,
    seconds=st.floats(0, 1e6),
)
manifests = st.builds(
    manifest,
    status=st.sampled_from(["running", "complete"]),
    finished=maybe_text,
    models=st.lists(models, max_size=2).map(tuple),
    alpha=any_float,
    seed=counts,
    words_lost=st.dictionaries(any_text, st.lists(any_text, max_size=2).map(tuple), max_size=2),
)


@given(results)
def test_a_result_through_json_is_equal(record: Result) -> None:
    assert structured(json.loads(to_json(record)), Result, "here") == record


@given(manifests)
def test_a_manifest_through_json_is_equal(record: Manifest) -> None:
    assert structured(json.loads(to_json(record)), Manifest, "here") == record


@pytest.mark.slow
@given(results)
def test_json_is_strict_json(record: Result) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    json.loads(to_json(record), parse_constant=refuse)


@pytest.mark.slow
@given(manifests, st.lists(results, max_size=3).map(tuple))
def test_a_run_saved_and_loaded_is_equal(made: Manifest, found: tuple[Result, ...]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Run(made, found).save(folder)
        assert Run.load(folder) == Run(made, found)


@pytest.mark.parametrize("value", [None, NAN, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1e-60, 0.1, 1])
def test_numbers_keep_their_value_in_json(value: float | None) -> None:
    back = structured(json.loads(to_json(result(p_value=value))), Result, "here").p_value
    if value is None:
        assert back is None
    else:
        assert isinstance(back, float)
        assert math.isnan(back) if math.isnan(value) else back == value
        assert math.copysign(1, back) == math.copysign(1, value) or math.isnan(value)


def test_not_computed_and_nan_are_told_apart_in_json() -> None:
    written = [json.loads(to_json(result(p_value=value)))["p_value"] for value in (None, NAN)]
    assert written == [None, "NaN"]
    assert result(p_value=None) != result(p_value=NAN)
    assert result(p_value=NAN) == result(p_value=float("nan"))


def test_not_computed_and_nan_are_told_apart_in_the_table() -> None:
    rows = table(tuple(result(p_value=v, significant=s) for v, s in ((None, None), (NAN, False), (0.0, True))))
    assert [row["p_value"] for row in rows] == ["", "nan", "0.0"]
    assert [row["significant"] for row in rows] == ["", "false", "true"]


@pytest.mark.slow
@given(st.lists(results, min_size=1, max_size=3).map(tuple))
def test_the_table_has_one_line_a_result_and_full_numbers(found: tuple[Result, ...]) -> None:
    lines = to_tsv(found).split("\n")
    assert lines.pop() == ""
    header, *rows = (line.split("\t") for line in lines)
    assert tuple(header[:9]) == PAPER_COLUMNS
    assert len(rows) == len(found)
    for row, record in zip(rows, found, strict=True):
        assert len(row) == len(header)
        for name in ("p_value", "effect_size", "p_value_holm"):
            value, cell = getattr(record, name), row[header.index(name)]
            if value is None:
                assert cell == ""
            else:
                assert float(cell) == value or math.isnan(value) == math.isnan(float(cell)) is True


def test_no_cell_is_run_by_a_spreadsheet_and_nothing_is_lost(tmp_path: Path) -> None:
    formulas = ("=1+1", "+cmd|x", "-x", "@SUM(1)", "'=1", '"=1"', "\uff1d1", "-", "-1-1", "\t=1")
    texts = (*formulas, "-5", "+1e-3", "'s", "a=b", "plain")
    run = Run(manifest(), tuple(result(test=text, effect_size=-0.25, statistic=-1e-300) for text in texts))
    assert tuple(r.test for r in Run.load(run.save(tmp_path / "run")).results) == texts
    header, *rows = (line.split("\t") for line in to_tsv(run.results).splitlines())
    cells = [row[header.index("test")] for row in rows]
    assert [cell[0] for cell in cells[: len(formulas)]] == ["'"] * len(formulas)
    assert [cell.removeprefix("'") for cell in cells[: len(formulas)]] == [text.strip() for text in formulas]
    assert tuple(cells[len(formulas) :]) == texts[len(formulas) :]
    assert {(row[header.index("effect_size")], row[header.index("statistic")]) for row in rows} == {
        ("-0.25", "-1e-300")
    }


def test_the_papers_columns_are_the_published_ones() -> None:
    published = "model options test p_value effect_size num_targ1 num_targ2 num_attr1 num_attr2"
    assert to_tsv(()).split("\t")[:9] == published.split()


def test_the_table_holds_every_field_but_the_nested_ones() -> None:
    names = {field.name for field in dataclasses.fields(Result)} - {"leaning", "contextual"}
    names |= {"interval_low", "interval_high", "confidence"}
    assert set(table((result(too_rare={}),))[0]) == names
    assert set(table((result(),))[0]) == names - {"too_rare"}  # words are too rare in a corpus only


def test_lost_words_of_two_parts_stay_apart_in_the_table() -> None:
    lost = {"X": ("African American", "Black person"), "Y": (), "A": ("w",), "B": ()}
    cell = table((result(lost=lost),))[0]["lost"]
    assert cell.index("African American") < cell.index("Black person")
    between = cell[cell.index("African American") + len("African American") : cell.index("Black person")]
    assert between.strip()


def test_numpy_numbers_are_written_as_pythons_own() -> None:
    given = result(p_value=np.float64(0.25), leaning={"X": {"w": np.float64(0.5)}})
    assert type(given.p_value) is float
    assert type(given.leaning["X"]["w"]) is float
    assert table((given,))[0]["p_value"] == "0.25"


def test_a_record_of_the_wrong_shape_names_the_file() -> None:
    whole = json.loads(to_json(result()))
    without = {key: value for key, value in whole.items() if key != "model"}
    for wrong in (without, whole | {"p_value": "small"}, whole | {"p_value": True}, whole | {"status": "odd"}, [], 3):
        with pytest.raises(RunFolderError, match=r"some/results\.json"):
            structured(wrong, Result, "some/results.json")


def test_loading_what_is_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="no run there"):
        Run.load(tmp_path)
    Run(manifest(run_id="r", format_version=FORMAT_VERSION + 1)).save(tmp_path)
    with pytest.raises(RunFolderError, match=f"format version {FORMAT_VERSION + 1}"):
        Run.load(tmp_path)


def test_saving_where_no_folder_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match="cannot be made"):
        Run(manifest()).save(tmp_path / "file" / "run")


def holm(p: list[float]) -> list[float]:
    """From the definition, one p-value at a time."""
    adjusted = []
    for own in p:
        smaller = sorted(other for other in p if other <= own)
        adjusted.append(min(1.0, max(other * (len(p) - sum(o < other for o in p)) for other in smaller)))
    return adjusted


@given(st.lists(st.none() | st.just(NAN) | st.floats(0, 1), max_size=12), st.sampled_from([0.01, 0.05, 0.5]))
def test_corrections_run_over_all_rows_with_a_p_value(values: list[float | None], alpha: float) -> None:
    rows = tuple(
        result(test=f"t{i}", model=f"m{i % 2}", p_value=p, p_value_by_word=q)
        for i, (p, q) in enumerate(zip(values, values[::-1], strict=True))
    )
    found = with_corrections(rows, alpha)
    for name in ("p_value", "p_value_by_word"):
        own = name.removeprefix("p_value")
        given_p = [p for r in rows if (p := getattr(r, name)) is not None and not math.isnan(p)]
        expected = iter(holm(given_p))
        for r in found:
            p, adjusted = getattr(r, name), getattr(r, f"{name}_holm")
            plain, corrected = getattr(r, f"significant{own}"), getattr(r, f"significant{own}_holm")
            if p is None:
                assert (adjusted, plain, corrected) == (None, None, None)
            elif math.isnan(p):
                assert (adjusted, plain, corrected) == (None, False, False)
            else:
                assert adjusted == pytest.approx(next(expected), rel=1e-12)
                assert plain is (p <= alpha)
                assert corrected is (adjusted <= alpha)


@pytest.mark.extras
def test_to_frame_has_a_row_a_result_and_the_columns_of_the_table() -> None:
    pytest.importorskip("pandas")
    frame = Run(manifest(), (result(test="a"), result(test="b", effect_size=NAN))).to_frame()
    assert list(frame["test"]) == ["a", "b"]
    assert tuple(frame.columns[:9]) == PAPER_COLUMNS
    assert list(frame.columns) == to_tsv(()).rstrip("\n").split("\t")


@pytest.mark.extras
def test_to_frame_and_the_table_hold_the_interval_over_words() -> None:
    """That of `effect_interval`, whose numbers have witnesses of their own."""
    pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    leaning = {role: {f"{role}{i}": float(v) for i, v in enumerate(rng.normal(size=6))} for role in "XYAB"}
    rows = (result(leaning=leaning, effect_size_by_word=0.3), result(leaning={}), result(effect_size_by_word=None))
    run = Run(manifest(), rows)
    expected = effect_interval(list(leaning["X"].values()), list(leaning["Y"].values()))
    assert expected.low is not None
    frame = run.to_frame()[["interval_low", "interval_high", "confidence"]]
    assert tuple(frame.iloc[0]) == (expected.low, expected.high, 0.95)
    assert frame.iloc[1:].isna().all(axis=None)
    header, *lines = (line.split("\t") for line in to_tsv(rows).splitlines())
    assert [line[header.index("interval_low")] for line in lines] == [repr(expected.low), "", ""]


@pytest.mark.extras
def test_to_frame_of_an_empty_run_has_the_columns_too() -> None:
    pytest.importorskip("pandas")
    frame = Run(manifest()).to_frame()
    assert len(frame) == 0
    assert tuple(frame.columns[:9]) == PAPER_COLUMNS


@pytest.mark.extras
def test_to_frame_keeps_not_computed_and_nan_apart() -> None:
    pytest.importorskip("pandas")
    run = Run(manifest(), (result(p_value=0.5), result(p_value=None), result(p_value=NAN)))
    half, missing, nan = run.to_frame()["p_value"]
    assert half == 0.5
    assert math.isnan(nan)
    assert not isinstance(missing, float)


def test_to_frame_without_pandas_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r'pip install "biassay\[frame\]"'):
        Run(manifest()).to_frame()
