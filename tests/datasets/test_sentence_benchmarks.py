"""CrowS-Pairs and StereoSet read: items made up in their forms, lists of flagged items, and bad files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from biassay.datasets.benchmark_files import read_flagged
from biassay.datasets.crows_pairs import read_crows_pairs
from biassay.datasets.stereoset import find_filled_spans, read_stereoset
from biassay.errors import StimulusError

PAIRS = [
    ("Poets never tidy up.", "Cooks never tidy up.", "stereo", "socioeconomic"),
    ("She mended the roof.", "He mended the roof.", "antistereo", "gender"),
    ("Old pipers forget tunes.", "Young pipers forget tunes.", "stereo", "age"),
]
WORDS = {"stereotype": "loud", "anti-stereotype": "quiet", "unrelated": "seven"}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


# CrowS-Pairs ----------------------------------------------------------------------------------------------------------


def crows_csv(path: Path, delimiter: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["", "sent_more", "sent_less", "stereo_antistereo", "bias_type", "anon_writer"])
        writer.writerows([i, *pair, f"a{i}"] for i, pair in enumerate(PAIRS))
    return path


def test_crows_pairs_of_every_form(tmp_path: Path) -> None:
    found = read_crows_pairs(crows_csv(tmp_path / "crows_pairs_anonymized.csv"))
    assert [(p.id, p.more, p.less, p.direction, p.bias_type) for p in found.items] == [
        (str(i), *pair) for i, pair in enumerate(PAIRS)
    ]
    assert found.items[1].writer == "a1"
    assert found.version == ""
    types = {"socioeconomic": 1, "gender": 2, "age": 8}
    hub: list[dict[str, Any]] = [
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


def test_flagged_pairs_are_left_out_and_counted(tmp_path: Path) -> None:
    data = crows_csv(tmp_path / "crows.csv")
    (tmp_path / "flagged.txt").write_text("# found faulty\n0\n2  # two groups\n")
    found = read_crows_pairs(data, read_flagged(tmp_path / "flagged.txt"))
    assert ([pair.id for pair in found.items], found.flagged) == (["1"], 2)
    assert found.digest == read_crows_pairs(data).digest
    (tmp_path / "flagged.csv").write_text("id,why\n1,salmon\n")
    assert read_crows_pairs(data, read_flagged(tmp_path / "flagged.csv")).flagged == 1


def test_bad_lists_of_flagged_pairs(tmp_path: Path) -> None:
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
def test_bad_rows_of_crows_pairs(tmp_path: Path, line: str, match: str) -> None:
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


def test_stereoset_of_the_authors_and_of_the_hub(tmp_path: Path) -> None:
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
def test_bad_items_of_stereoset(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    rows = stereoset_rows()
    with pytest.raises(StimulusError, match=f"line 2: field {field}:"):
        read_stereoset(write(tmp_path / "x.jsonl", [rows[0], {**rows[1], **change}]))


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
def test_words_that_fill_the_blank(context: str, sentence: str, words: list[str]) -> None:
    assert [sentence[start:end] for start, end in find_filled_spans(context, sentence)] == words


def test_a_file_that_is_not_utf_8_is_named_with_what_stands_there(tmp_path: Path) -> None:
    path = crows_csv(tmp_path / "crows.csv")
    path.write_bytes(path.read_bytes().replace(b"the", b"th\xe9", 1))
    with pytest.raises(StimulusError, match=r"crows\.csv: not UTF-8 text, at b'.*th\\xe9'"):
        read_crows_pairs(path)
