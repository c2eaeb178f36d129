"""Samples of tests over contexts, and the records of such tests: kept beside the results and read back."""

from __future__ import annotations

import contextlib
import csv
import gc
import io
import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biassay.errors import RunFolderError
from biassay.results.codec import to_json, to_tsv
from biassay.results.records import (
    FORMAT_VERSION,
    PAPER_COLUMNS,
    ContextsRecord,
    Contextual,
    Manifest,
    ModelRecord,
    Result,
    TestRecord,
)
from biassay.results.run import Run
from biassay.results.samples import SAMPLES, Samples, load_samples, save_samples

# Behind the columns that every table has, in this order.
CONTEXTUAL = (
    *("standard_error", "z", "tau2", "q", "i2", "prediction_low", "prediction_high", "interval_low", "interval_high"),
    *("confidence", "share_significant", "n_samples"),
)
ROLES = ("X", "Y", "A", "B")


def contextual(**given: Any) -> Contextual:
    fields: dict[str, Any] = {name: 0.125 * place for place, name in enumerate(CONTEXTUAL)}
    fields |= {"n_samples": 40, "num_contexts": {role: {"one": 7, "two": 8} for role in ROLES}}
    return Contextual(**fields | given)


def result(**given: Any) -> Result:
    """A result over contexts; ``given`` replaces fields."""
    numbers = ("p_value", "effect_size", "statistic", "log10_p_value", "p_error", "effect_size_by_word")
    by_word = ("p_value_by_word", "log10_p_value_by_word", "p_error_by_word", "p_floor_by_word")
    later = ("p_value_holm", "significant", "significant_holm", "p_value_by_word_holm")
    names = ("model", "options", "test", "title", "targ1", "targ2", "attr1", "attr2", "p_route", "p_route_by_word")
    about = ("protocol", "alternative", "source", "test_version", "test_digest", "model_revision")
    fields: dict[str, Any] = dict.fromkeys((*numbers, *by_word), 0.5)
    fields |= dict.fromkeys((*later, "significant_by_word", "significant_by_word_holm", "reason"))
    fields |= {name: name for name in (*names, *about)}
    fields |= dict.fromkeys(("num_targ1", "num_targ2", "num_attr1", "num_attr2"), 2)
    fields |= {"status": "measured", "level": "context", "alpha": 0.01, "seed": 0, "leaning": {"X": {"one": 0.5}}}
    fields |= {"num_words": dict.fromkeys(ROLES, 2), "num_cut": dict.fromkeys(ROLES, 0)}
    fields |= {"lost": dict.fromkeys(ROLES, ()), "contextual": contextual()}
    return Result(**fields | given)


def manifest(**given: Any) -> Manifest:
    record = ContextsRecord("c.parquet", "d", 16, 8, 0, 99, 1000, 40, "fixed", None, "float16", 5)
    fields: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "run_id": "one",
        "status": "complete",
        "created": "2026-01-01T00:00:00+00:00",
        "finished": None,
        "versions": {"biassay": "0"},
        "models": (ModelRecord("m", "m", "f", None, {}),),
        "tests": (TestRecord("t", "t", "d", "s", "c", "l", "1"),),
        "protocol": "ceat",
        "alternative": "two-sided",
        "alpha": 0.01,
        "max_lost": 0.2,
        "seed": 0,
        "words_lost": {},
        "contexts": record,
    }
    return Manifest(**fields | given)


def some(seed: int, count: int = 9) -> Samples:
    rng = np.random.default_rng(seed)
    return Samples(rng.normal(size=count), rng.random(count), rng.random(count))


def table(results: tuple[Result, ...]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(to_tsv(results)), delimiter="\t", quoting=csv.QUOTE_NONE))


def assert_same(found: dict[tuple[int, str], Samples], given: dict[tuple[int, str], Samples]) -> None:
    """Bit for bit, NaN and the sign of zero too."""
    assert set(found) == set(given)
    for key, samples in given.items():
        for part in ("effect_sizes", "variances", "p_values"):
            ours, theirs = getattr(found[key], part), getattr(samples, part)
            assert (ours.dtype, ours.tobytes()) == (theirs.dtype, theirs.tobytes())


def test_samples_come_back_as_they_were(tmp_path: Path) -> None:
    odd = Samples(np.array([math.nan, -0.0, 1e-320]), np.array([math.inf, 0.0, 1.0]), np.array([0.0, 1.0, 0.5]))
    names = ("C1", "own/test", "<script>alert(1)</script>", "prénoms ☃", "../up", "file", "a.npy")
    given = {(0, name): some(number) for number, name in enumerate(names)} | {(12, "C1"): odd}
    save_samples(tmp_path, given)
    assert_same(load_samples(tmp_path), given)
    assert sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.*")) == [
        "samples/0.npz",
        "samples/12.npz",
    ]


def test_samples_can_be_read_with_numpy_alone(tmp_path: Path) -> None:
    save_samples(tmp_path, {(0, "C1"): some(1)})
    with np.load(tmp_path / SAMPLES / "0.npz", allow_pickle=False) as archive:
        assert sorted(archive.files) == ["C1/effect_sizes", "C1/p_values", "C1/variances"]
        assert np.array_equal(archive["C1/p_values"], some(1).p_values)


def test_a_run_without_samples_has_no_folder_of_them(tmp_path: Path) -> None:
    Run(manifest(), (result(),)).save(tmp_path)
    assert not (tmp_path / SAMPLES).exists()
    assert Run.load(tmp_path).samples == {}


def test_a_run_comes_back_with_its_samples(tmp_path: Path) -> None:
    rows = (result(contextual=contextual(interval_low=None, interval_high=None, q=math.inf)), result(contextual=None))
    run = Run(manifest(), rows, {(0, "t"): some(3)})
    run.save(tmp_path)
    again = Run.load(tmp_path)
    assert again == run
    assert again.results[0].contextual == rows[0].contextual
    assert again.manifest.contexts == run.manifest.contexts
    assert_same(dict(again.samples), dict(run.samples))


def test_samples_of_models_that_follow_join_the_others(tmp_path: Path) -> None:
    running = manifest(status="running")
    Run(running, (), {(0, "t"): some(1)}).save(tmp_path)
    Run(running, (), {(0, "t"): some(1), (1, "t"): some(2)}).save(tmp_path)
    assert_same(load_samples(tmp_path), {(0, "t"): some(1), (1, "t"): some(2)})


def test_saving_reads_neither_results_nor_samples_of_the_state_before(tmp_path: Path) -> None:
    run = Run(manifest(status="running"), (result(),), {(0, "t"): some(1)})
    run.save(tmp_path)
    whole = (tmp_path / "results.json").read_bytes()
    for path in (tmp_path / "results.json", tmp_path / SAMPLES / "0.npz"):
        path.write_bytes(b"never read")
    run.save(tmp_path)
    assert (tmp_path / "results.json").read_bytes() == whole
    other = Run(manifest(status="running", run_id="another"))
    with pytest.raises(RunFolderError, match="holds another run"):
        other.save(tmp_path)


def archive(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **{name.replace("__", "/"): array for name, array in arrays.items()})
    return buffer.getvalue()


WHOLE = archive(t__effect_sizes=np.ones(3), t__variances=np.ones(3), t__p_values=np.ones(3))


def refusal(folder: Path) -> tuple[str, list[str]]:
    """What loading a run says, and which files it left open."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ResourceWarning)
        said = ""
        try:
            Run.load(folder)
        except RunFolderError as error:
            said = str(error)
        gc.collect()
    return said, [str(warning.message) for warning in seen]


def array_file() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.ones(3))
    return buffer.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("0.npz", WHOLE[: len(WHOLE) // 2], id="truncated"),
        pytest.param("0.npz", WHOLE[:200] + b"\xff" + WHOLE[201:], id="a wrong byte"),
        pytest.param("0.npz", b"not an archive", id="something else"),
        pytest.param("0.npz", archive(t__effect_sizes=np.ones(3)), id="parts missing"),
        pytest.param("0.npz", archive(t__effect_sizes=np.array([{}]), t__variances=np.ones(1)), id="objects"),
        pytest.param("x.npz", WHOLE, id="no number of a model"),
        pytest.param("0.npz", b"", id="empty"),
        pytest.param("0.npz", array_file(), id="an array"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    Run(manifest(), (result(),), {(0, "t"): some(0)}).save(tmp_path)
    path = tmp_path / SAMPLES / name
    path.write_bytes(content)
    assert refusal(tmp_path)[0].startswith(f"{path}: not a file of samples: ")


def test_a_damaged_file_is_closed(tmp_path: Path) -> None:
    Run(manifest(), (result(),), {(0, "t"): some(0)}).save(tmp_path)
    (tmp_path / SAMPLES / "0.npz").write_bytes(WHOLE[: len(WHOLE) // 2])
    said, left = refusal(tmp_path)
    assert "0.npz" in said
    assert left == []


@pytest.mark.slow
def test_no_single_wrong_byte_is_an_error_of_another_kind(tmp_path: Path) -> None:
    """Each byte is either found out or of no account; what comes back is never something else."""
    path = tmp_path / SAMPLES / "0.npz"
    path.parent.mkdir()
    with warnings.catch_warnings():  # a file left open is the fault of another test
        warnings.simplefilter("ignore", ResourceWarning)
        for place in range(len(WHOLE)):
            path.write_bytes(WHOLE[:place] + bytes([WHOLE[place] ^ 0xFF]) + WHOLE[place + 1 :])
            with contextlib.suppress(RunFolderError):
                found = load_samples(tmp_path)
                assert all(np.array_equal(samples.effect_sizes, np.ones(3)) for samples in found.values())
        gc.collect()


def test_the_table_has_the_columns_of_contexts_only_where_there_are_any() -> None:
    over, without = result(test="a"), result(test="b", contextual=None, status="refused", effect_size=None)
    first, second = table((over, without))
    names = list(first)
    assert tuple(names[:9]) == PAPER_COLUMNS
    assert tuple(names[-len(CONTEXTUAL) :]) == CONTEXTUAL
    assert len(set(names)) == len(names)
    assert list(second) == names
    for place, name in enumerate(CONTEXTUAL[:-1]):
        assert float(first[name]) == 0.125 * place
        assert second[name] == ""
    assert (first["n_samples"], second["n_samples"]) == ("40", "")
    (only,) = table((without,))
    assert list(only) == [*names[: -len(CONTEXTUAL)], "interval_low", "interval_high", "confidence"]


def test_what_was_not_computed_is_an_empty_cell_and_no_zero() -> None:
    row = result(contextual=contextual(interval_low=None, interval_high=math.nan, prediction_low=-math.inf, tau2=0.0))
    (cells,) = table((row,))
    assert [cells[name] for name in ("interval_low", "interval_high", "prediction_low", "tau2")] == [
        *("", "nan", "-inf", "0.0")
    ]


numbers = st.floats()


@pytest.mark.slow
@given(
    st.builds(
        contextual,
        **dict.fromkeys((*CONTEXTUAL[:7], "confidence", "share_significant"), numbers),
        interval_low=st.none() | numbers,
        interval_high=st.none() | numbers,
        n_samples=st.integers(3, 10**6),
        num_contexts=st.dictionaries(st.sampled_from(ROLES), st.dictionaries(st.text(), st.integers(0, 10**6))),
    )
)
def test_any_record_comes_back_from_json_as_it_was(tmp_path_factory: pytest.TempPathFactory, found: Contextual) -> None:
    folder = tmp_path_factory.mktemp("run")
    Run(manifest(), (result(contextual=found),)).save(folder)
    assert Run.load(folder).results[0].contextual == found


def test_results_of_before_there_were_contexts_can_be_read(tmp_path: Path) -> None:
    run = Run(manifest(contexts=None, protocol="exact"), (result(contextual=None, level="word"),))
    run.save(tmp_path)
    for name, field in (("results.json", "contextual"), ("manifest.json", "contexts")):
        content = json.loads((tmp_path / name).read_text())
        for record in content.get("results", [content]):
            assert record.pop(field) is None
        del content["digest"]
        (tmp_path / name).write_text(json.dumps(content))
    again = Run.load(tmp_path)
    assert again == run
    assert (again.results[0].contextual, again.manifest.contexts, again.samples) == (None, None, {})


def test_a_record_of_contexts_of_the_wrong_shape_names_the_file(tmp_path: Path) -> None:
    Run(manifest(), (result(),)).save(tmp_path)
    whole = json.loads((tmp_path / "results.json").read_text())
    del whole["digest"]
    for wrong in ({"tau2": "small"}, {"n_samples": None}, {"num_contexts": 3}):
        content = json.loads(json.dumps(whole))
        content["results"][0]["contextual"] |= wrong
        (tmp_path / "results.json").write_text(json.dumps(content))
        with pytest.raises(RunFolderError, match=r"results\.json: not a record"):
            Run.load(tmp_path)


@pytest.mark.extras
def test_to_frame_has_the_columns_of_contexts() -> None:
    pytest.importorskip("pandas")
    rows = (result(test="a"), result(test="b", contextual=None), result(test="c", contextual=contextual(i2=math.nan)))
    frame = Run(manifest(), rows).to_frame()
    assert list(frame.columns) == to_tsv(rows).partition("\n")[0].split("\t")
    assert tuple(frame.columns[-len(CONTEXTUAL) :]) == CONTEXTUAL
    first, second, third = frame["i2"]
    assert first == 0.5
    assert not isinstance(second, float)  # not computed is not NaN
    assert math.isnan(third)
    assert frame["n_samples"][0] == 40
    assert CONTEXTUAL[0] not in Run(manifest(), rows[1:2]).to_frame().columns


def test_json_of_a_run_holds_contexts_and_no_samples() -> None:
    run = Run(manifest(), (result(),), {(0, "t"): some(0)})
    printed = json.loads(run.to_json())
    assert set(printed) == {"manifest", "results"}
    assert printed["results"][0]["contextual"]["num_contexts"]["X"] == {"one": 7, "two": 8}
    assert printed["results"][0] == json.loads(to_json(run.results[0]))
