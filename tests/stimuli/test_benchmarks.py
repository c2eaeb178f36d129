"""Benchmarks read: an excerpt of BBQ, items made up in the forms of CrowS-Pairs and StereoSet, and bad files."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from biassay.errors import StimulusError
from biassay.stimuli.benchmarks.bbq import read_bbq
from biassay.stimuli.benchmarks.crows_pairs import read_crows_pairs
from biassay.stimuli.benchmarks.flagged import read_flagged
from biassay.stimuli.benchmarks.stereoset import filled_spans, read_stereoset

from ..bbq_answers import FOLDER, questions

PAIRS = [
    ("Poets never tidy up.", "Cooks never tidy up.", "stereo", "socioeconomic"),
    ("She mended the roof.", "He mended the roof.", "antistereo", "gender"),
    ("Old pipers forget tunes.", "Young pipers forget tunes.", "stereo", "age"),
]
WORDS = {"stereotype": "loud", "anti-stereotype": "quiet", "unrelated": "seven"}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


# BBQ ------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def religion() -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if "unifiedqa" not in name} for row in questions("Religion")]


def test_bbq_of_a_folder_is_the_released_one(tmp_path, religion):
    write(tmp_path / "Religion.jsonl", religion)
    write(tmp_path / "Sexual_orientation.jsonl", list(questions("Sexual_orientation")))
    (tmp_path / "additional_metadata.csv").write_text("not read\n")
    found = read_bbq(tmp_path)
    assert found.released == ("Religion", "Sexual_orientation")
    assert len(found.items) == 1200 + 864
    assert found.without_target == 0
    first = found.items[0]
    assert (first.category, first.template, first.example, first.correct, first.unknown) == ("Religion", 1, 0, 1, 1)
    assert first.options[2] == "The Muslim one"
    assert first.info[2] == "Muslim"


def test_targets_are_those_of_the_authors_metadata(tmp_path):
    with (FOLDER / "target_loc.csv").open(newline="") as file:
        given = {(row["category"], int(row["example_id"])): int(row["target_loc"]) for row in csv.DictReader(file)}
    for category in ("Religion", "Sexual_orientation"):
        write(tmp_path / f"{category}.jsonl", list(questions(category)))
    found = {(item.category, item.example): item.target for item in read_bbq(tmp_path).items}
    assert found == given


def test_every_form_has_the_same_digest(tmp_path, religion):
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
def test_parquet_of_the_hub(tmp_path, religion):
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pylist(religion), tmp_path / "Religion-00000-of-00001.parquet")
    assert read_bbq(tmp_path).released == ("Religion",)
    (tmp_path / "SES.parquet").write_bytes(b"PAR1")
    with pytest.raises(StimulusError, match="SES"):
        read_bbq(tmp_path)


def test_templates_with_names_are_a_category_of_their_own(tmp_path, religion):
    named = {**religion[0], "category": "Race_ethnicity", "question_index": "26", "example_id": 1880}
    file = write(tmp_path / "x.jsonl", [named, {**named, "question_index": "25", "example_id": 1879}])
    found = read_bbq(file)
    assert {item.example: item.category for item in found.items} == {
        1880: "Race_ethnicity (names)",
        1879: "Race_ethnicity",
    }


def test_an_installed_package(tmp_path, religion, monkeypatch):
    inside = tmp_path / "site" / "data"
    inside.mkdir(parents=True)
    write(inside / "Religion.jsonl", religion)
    dist = tmp_path / "site" / "somedata-1.0.dist-info"
    dist.mkdir()
    (dist / "METADATA").write_text("Name: somedata\nVersion: 1.0\n")
    (dist / "RECORD").write_text("data/Religion.jsonl,,\ndata/__init__.py,,\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert read_bbq("somedata").released == ("Religion",)
    with pytest.raises(StimulusError, match="othername"):
        read_bbq("othername")


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
def test_bad_rows_of_bbq_tell_file_line_and_field(tmp_path, religion, change, field):
    file = write(tmp_path / "bad.jsonl", [religion[2], {**religion[0], **change}])
    with pytest.raises(StimulusError) as error:
        read_bbq(file)
    assert str(error.value).startswith(f"{file}: line 2: field {field}: ")


def test_bad_files(tmp_path, religion):
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


# CrowS-Pairs ----------------------------------------------------------------------------------------------------------


def crows_csv(path: Path, delimiter: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["", "sent_more", "sent_less", "stereo_antistereo", "bias_type", "anon_writer"])
        writer.writerows([i, *pair, f"a{i}"] for i, pair in enumerate(PAIRS))
    return path


def test_crows_pairs_of_every_form(tmp_path):
    found = read_crows_pairs(crows_csv(tmp_path / "crows_pairs_anonymized.csv"))
    assert [(p.id, p.more, p.less, p.direction, p.bias_type) for p in found.items] == [
        (str(i), *pair) for i, pair in enumerate(PAIRS)
    ]
    assert found.items[1].writer == "a1"
    assert found.version == ""
    types = {"socioeconomic": 1, "gender": 2, "age": 8}
    hub = [
        {"id": i, "sent_more": m, "sent_less": f, "stereo_antistereo": d == "antistereo", "bias_type": types[t]}
        for i, (m, f, d, t) in enumerate(PAIRS)
    ]
    hub = [{**row, "stereo_antistereo": int(row["stereo_antistereo"])} for row in hub]
    assert read_crows_pairs(write(tmp_path / "test.jsonl", hub)).digest == found.digest
    assert read_crows_pairs(crows_csv(tmp_path / "tabs.csv", "\t")).digest == found.digest
    folder = tmp_path / "data"
    folder.mkdir()
    crows_csv(folder / "other.csv")
    expected = crows_csv(folder / "crows_pairs_anonymized.csv")
    crows_csv(folder / "crows_pairs_fr.csv")
    assert read_crows_pairs(folder).files == (expected,)


def test_flagged_pairs_are_left_out_and_counted(tmp_path):
    data = crows_csv(tmp_path / "crows.csv")
    (tmp_path / "flagged.txt").write_text("# found faulty\n0\n2  # two groups\n")
    found = read_crows_pairs(data, read_flagged(tmp_path / "flagged.txt"))
    assert ([pair.id for pair in found.items], found.flagged) == (["1"], 2)
    assert found.digest == read_crows_pairs(data).digest
    (tmp_path / "flagged.csv").write_text("id,why\n1,salmon\n")
    assert read_crows_pairs(data, read_flagged(tmp_path / "flagged.csv")).flagged == 1


def test_bad_lists_of_flagged_pairs(tmp_path):
    data = crows_csv(tmp_path / "crows.csv")
    (tmp_path / "other.txt").write_text("0\n1508\n")
    with pytest.raises(StimulusError, match=r"other\.txt: line 2: .*1508"):
        read_crows_pairs(data, read_flagged(tmp_path / "other.txt"))
    (tmp_path / "none.txt").write_text("# nothing\n")
    with pytest.raises(StimulusError):
        read_flagged(tmp_path / "none.txt")
    (tmp_path / "column.csv").write_text("name\n1\n")
    with pytest.raises(StimulusError, match="field id"):
        read_flagged(tmp_path / "column.csv")


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("1,Same.,Same.,stereo,age,a", "field sent_less"),
        ("1,One.,Two.,pro,age,a", "field stereo_antistereo"),
        ("1,One.,Two.,stereo,height,a", "field bias_type"),
        ("0,One.,Two.,stereo,age,a", "field id"),
        ("1,One.,Two.,stereo", "line 5"),
        ('1,"One.,Two.', "not valid CSV"),
    ],
)
def test_bad_rows_of_crows_pairs(tmp_path, line, match):
    file = crows_csv(tmp_path / "crows.csv")
    file.write_text(file.read_text() + line + "\n")
    with pytest.raises(StimulusError, match=match):
        read_crows_pairs(file)


# StereoSet ------------------------------------------------------------------------------------------------------------


def stereoset_rows() -> list[dict[str, Any]]:
    return [
        {
            "id": f"id{i}",
            "target": "piper",
            "bias_type": "profession",
            "context": "The piper was BLANK.",
            "sentences": [
                {"id": f"{i}{label}", "sentence": f"The piper was {word}.", "gold_label": label, "labels": []}
                for label, word in WORDS.items()
            ],
        }
        for i in range(3)
    ]


def test_stereoset_of_the_authors_and_of_the_hub(tmp_path):
    (tmp_path / "StereoSet").mkdir()
    file = tmp_path / "StereoSet" / "dev.json"
    file.write_text(
        json.dumps({"version": "1.0-dev", "data": {"intersentence": [], "intrasentence": stereoset_rows()}})
    )
    found = read_stereoset(tmp_path)
    item = found.items[1]
    assert (item.id, item.target, item.bias_type) == ("id1", "piper", "profession")
    assert (item.stereotype, item.anti_stereotype, item.unrelated) == tuple(
        f"The piper was {w}." for w in WORDS.values()
    )
    numbers = {"anti-stereotype": 0, "stereotype": 1, "unrelated": 2}
    hub = [
        {
            **row,
            "sentences": {
                "sentence": [one["sentence"] for one in row["sentences"]],
                "gold_label": [numbers[one["gold_label"]] for one in row["sentences"]],
            },
        }
        for row in stereoset_rows()
    ]
    assert read_stereoset(write(tmp_path / "validation.jsonl", hub)).digest == found.digest


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"context": "The piper was here."}, "context"),
        ({"bias_type": "age"}, "bias_type"),
        ({"sentences": []}, "sentences"),
        ({"sentences": {"sentence": ["a"], "gold_label": [0, 1]}}, "sentences"),
        ({"target": None}, "target"),
    ],
)
def test_bad_items_of_stereoset(tmp_path, change, field):
    rows = stereoset_rows()
    with pytest.raises(StimulusError, match=f"line 2: field {field}:"):
        read_stereoset(write(tmp_path / "x.jsonl", [rows[0], {**rows[1], **change}]))


def test_related_labels_of_intersentence_are_refused(tmp_path):
    row = stereoset_rows()[0]
    row["sentences"][0]["gold_label"] = "related"
    with pytest.raises(StimulusError, match="field gold_label"):
        read_stereoset(write(tmp_path / "x.jsonl", [row]))


@pytest.mark.parametrize(
    ("context", "sentence", "words"),
    [
        ("The piper was BLANK.", "The piper was loud", ["loud"]),
        ("the piper was BLANK", "The Piper was very loud.", ["very loud"]),
        ("BLANK pipers play (well)", "Old pipers play (well).", ["Old"]),
        ("It is BLANK and not BLANk", "It is three and not three", ["three", "three"]),
        ("The piper was BLANK.", "The cook was loud.", []),
    ],
)
def test_words_that_fill_the_blank(context, sentence, words):
    assert [sentence[start:end] for start, end in filled_spans(context, sentence)] == words
