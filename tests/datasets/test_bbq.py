"""BBQ read: two categories as released, in every form, and bad files."""

from __future__ import annotations

import csv
import gzip
import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from biassay.datasets.bbq import read_bbq
from biassay.errors import StimulusError

from ..bbq_answers import FOLDER, questions


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def religion() -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if "unifiedqa" not in name} for row in questions("Religion")]


def test_bbq_of_a_folder_is_the_released_one(tmp_path: Path, religion: list[dict[str, Any]]) -> None:
    write(tmp_path / "Religion.jsonl", religion)
    write(tmp_path / "Sexual_orientation.jsonl", list(questions("Sexual_orientation")))
    (tmp_path / "additional_metadata.csv").write_text("not read\n")
    found = read_bbq(tmp_path)
    assert found.released == ("Religion", "Sexual_orientation")
    assert len(found.items) == 1200 + 864
    assert not found.without_target
    first = found.items[0]
    assert (first.category, first.template, first.example, first.correct, first.unknown) == ("Religion", 1, 0, 1, 1)
    assert first.options[2] == "The Muslim one"
    assert first.info[2] == "Muslim"


def test_bbq_of_a_cache_of_the_hub_whose_files_are_links_to_blobs(
    tmp_path: Path, religion: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "datasets--heegyu--bbq"
    blobs, snapshot = place / "blobs", place / "snapshots" / "0123abcd" / "data"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    write(tmp_path / "Religion.jsonl", religion).rename(blobs / "9f86d081")
    (snapshot / "Religion.jsonl").symlink_to(Path("..", "..", "..", "blobs", "9f86d081"))
    expected = read_bbq(snapshot / "Religion.jsonl")
    assert expected.released == ("Religion",)
    for folder in (place, snapshot.parent, snapshot):
        assert read_bbq(folder).digests == expected.digests
    linked = tmp_path / "linked"
    linked.symlink_to(snapshot)
    monkeypatch.chdir(linked)
    for folder in (linked, Path()):
        assert read_bbq(folder).digests == expected.digests


def test_targets_are_those_of_the_authors_metadata(tmp_path: Path) -> None:
    with (FOLDER / "target_loc.csv").open(newline="") as file:
        given = {(row["category"], int(row["example_id"])): int(row["target_loc"]) for row in csv.DictReader(file)}
    for category in ("Religion", "Sexual_orientation"):
        write(tmp_path / f"{category}.jsonl", list(questions(category)))
    found = {(item.category, item.example): item.target for item in read_bbq(tmp_path).items}
    assert found == given


def test_every_form_has_the_same_digest(tmp_path: Path, religion: list[dict[str, Any]]) -> None:
    digest = read_bbq(write(tmp_path / "Religion.jsonl", religion)).digests
    packed = tmp_path / "test.jsonl.gz"
    packed.write_bytes(gzip.compress((tmp_path / "Religion.jsonl").read_bytes()))
    plain = tmp_path / "test.json"
    plain.write_text(json.dumps(religion[::-1]))
    assert read_bbq(packed).digests == read_bbq(plain).digests == digest
    changed = [{**religion[0], "question": "Who?"}, *religion[1:]]
    other = read_bbq(write(tmp_path / "changed.jsonl", changed))
    assert other.digests != digest
    assert other.released == ()


@pytest.mark.extras
def test_parquet_of_the_hub(tmp_path: Path, religion: list[dict[str, Any]]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pylist(religion), tmp_path / "Religion-00000-of-00001.parquet")
    assert read_bbq(tmp_path).released == ("Religion",)
    (tmp_path / "SES.parquet").write_bytes(b"PAR1")
    with pytest.raises(StimulusError, match="SES"):
        read_bbq(tmp_path)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"category": "Politics"}, "category"),
        ({"label": 3}, "label"),
        ({"label": None}, "label"),
        ({"example_id": 1200}, "example_id"),
        ({"question_index": "one"}, "question_index"),
        ({"context_condition": "clear"}, "context_condition"),
        ({"answer_info": {"ans0": ["a", "a"], "ans1": ["b", "b"], "ans2": ["c", "c"]}}, "answer_info"),
        ({"answer_info": {"ans0": ["a", "a"], "ans1": ["b", "b"], "ans2": ["c", "unknown"]}}, "answer_info"),
        ({"answer_info": {"ans0": "a", "ans1": ["b"], "ans2": ["c"]}}, "answer_info.ans0"),
        ({"ans2": ""}, "ans2"),
        ({"question": 5}, "question"),
    ],
)
def test_bad_rows_of_bbq_tell_file_line_and_field(
    tmp_path: Path, religion: list[dict[str, Any]], change: dict[str, Any], field: str
) -> None:
    file = write(tmp_path / "bad.jsonl", [religion[2], {**religion[0], **change}])
    with pytest.raises(StimulusError) as error:
        read_bbq(file)
    assert str(error.value).startswith(f"{file}: line 2: field {field}: ")


def test_bad_files(tmp_path: Path, religion: list[dict[str, Any]]) -> None:
    with pytest.raises(StimulusError, match="line 2"):
        read_bbq(write(tmp_path / "twice.jsonl", [religion[0], religion[0]]))
    broken = tmp_path / "broken.jsonl"
    broken.write_text(json.dumps(religion[0]) + '\n{"a": \n')
    with pytest.raises(StimulusError, match="line 2"):
        read_bbq(broken)
    lists = tmp_path / "lists.jsonl"
    lists.write_text("[1, 2]\n")
    with pytest.raises(StimulusError, match="line 1"):
        read_bbq(lists)
    (tmp_path / "empty").mkdir()
    with pytest.raises(StimulusError, match="empty"):
        read_bbq(tmp_path / "empty")
    other = tmp_path / "a.xlsx"
    other.write_bytes(b"PK")
    with pytest.raises(StimulusError, match=r"\.xlsx"):
        read_bbq(other)
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(json.dumps(religion[0]).encode())[:40])
    with pytest.raises(StimulusError, match="cut"):
        read_bbq(cut)


def test_of_all_benchmarks_only_the_targets_of_bbq_are_shipped() -> None:
    folder = resources.files("biassay.datasets") / "data" / "benchmarks"
    assert [file.name for file in folder.iterdir()] == ["bbq_targets.json"]
    shipped = json.loads((folder / "bbq_targets.json").read_text(encoding="utf-8"))
    assert shipped["licence"] == "CC BY 4.0"
    assert sum(len("".join(table["targets"])) for table in shipped["categories"].values()) == 58492
