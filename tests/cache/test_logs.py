"""Logs of other tools: responses that agree with the tools' scores, skipped samples, and invalid logs."""

from __future__ import annotations

import gzip
import json
import shutil
import struct
import sys
import tracemalloc
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from biassay.datasets.bbq import read_bbq
from biassay.datasets.data_rows import read_rows
from biassay.errors import MissingExtraError, UsageError
from biassay.studies.benchmarks.logs import read_log

LOGS = Path(__file__).parents[1] / "reference" / "logs"
DATE = "2026-11-16T09-49-00.983770"
SAMPLES = {task: LOGS / f"samples_{task}_{DATE}.jsonl" for task in ("bbq", "bbq_generate", "crows_pairs_english")}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def written(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


# lm-evaluation-harness ------------------------------------------------------------------------------------------------


def test_compared_options_are_right_where_the_tool_says_so() -> None:
    found = read_log(SAMPLES["bbq"])
    assert (found.benchmark, found.by_likelihood, found.task, found.model) == ("bbq", True, "bbq", "dummy")
    assert (found.tool, found.version, found.unmapped) == ("lm-evaluation-harness", "0.4.13", ())
    right = [answer.choice.option == answer.item.correct for answer in found.answers]
    assert right == [row["acc"] == 1.0 for row in lines(SAMPLES["bbq"])]


def test_written_answers_are_read_by_our_rules() -> None:
    """The tool matches options by single words and counts an empty or other response as wrong."""
    found = read_log(SAMPLES["bbq_generate"])
    assert (found.by_likelihood, len(found.answers)) == (False, 12)
    kinds = "".join(answer.choice.kind[0] for answer in found.answers)
    assert kinds == "cccruuecccuc"  # chosen, refused, unparsed, empty
    named = [a.item.info[a.choice.option] for a in found.answers if a.choice.option not in (None, a.item.unknown)]
    assert named == ["Muslim", "Jewish", "Muslim", "Muslim"]


def test_pairs_have_the_likelihoods_of_the_log() -> None:
    found = read_log(SAMPLES["crows_pairs_english"])
    assert (found.benchmark, len(found.answers)) == ("crows-pairs", 4)
    rows = lines(SAMPLES["crows_pairs_english"])
    assert [answer.more > answer.less for answer in found.answers] == [row["pct_stereotype"] == 1.0 for row in rows]
    for answer, row in zip(found.answers, rows, strict=True):
        assert abs(answer.more - answer.less) == pytest.approx(row["likelihood_diff"], rel=1e-12)
        assert answer.pair.more == row["doc"]["sent_more"]
    assert found.answers[1].pair.direction == "antistereo"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"filtered_resps": [["nan", "False"]] * 12}, "filtered_resps"),
        ({"filtered_resps": [["-1", "False"]] * 3}, "filtered_resps"),
        ({"arguments": {}}, "arguments"),
        ({"doc": {"category": "Politics"}}, "category"),
        ({"doc": None}, "doc"),
    ],
)
def test_what_cannot_be_used_is_listed_with_the_reason(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    rows = lines(SAMPLES["bbq"])
    found = read_log(written(tmp_path / "some.jsonl", [rows[0], {**rows[1], **change}, *rows[2:]]))
    assert len(found.answers) == 5
    assert ["line 2" in one.name and one.reason.split(":")[0] for one in found.unmapped] == [f"field {reason}"]
    assert found.model == ""


def test_logs_of_other_tasks_are_refused(tmp_path: Path) -> None:
    row = {"doc_id": 0, "doc": {"question": "2+2?"}, "arguments": {}, "filtered_resps": []}
    with pytest.raises(UsageError, match="gsm8k"):
        read_log(written(tmp_path / f"samples_gsm8k_{DATE}.jsonl", [row]))
    with pytest.raises(UsageError, match="'doc'"):
        read_log(written(tmp_path / "plain.jsonl", [{"a": 1}]))
    bad = {**lines(SAMPLES["bbq"])[0], "filtered_resps": []}
    with pytest.raises(UsageError, match="none of its 1 samples"):
        read_log(written(tmp_path / "all_bad.jsonl", [bad]))
    with pytest.raises(UsageError, match="samples_TASK"):
        read_log(LOGS / f"results_{DATE}.json")
    with pytest.raises(UsageError, match="no such file"):
        read_log(tmp_path / "absent.eval")
    shutil.copy(LOGS / "README.md", tmp_path)
    with pytest.raises(UsageError, match="unknown kind"):
        read_log(tmp_path / "README.md")


# Inspect --------------------------------------------------------------------------------------------------------------


def unpacked(path: Path) -> dict[str, Any]:
    """A log of Inspect as its JSON form has it."""
    import zstandard

    with zipfile.ZipFile(path) as archive, path.open("rb") as file:

        def member(info: zipfile.ZipInfo) -> Any:
            file.seek(info.header_offset)
            name, extra = struct.unpack("<26xHH", file.read(30))
            file.seek(name + extra, 1)
            packed = file.read(info.compress_size)
            return json.loads(zstandard.ZstdDecompressor().decompressobj().decompress(packed))

        samples = [member(info) for info in archive.infolist() if info.filename.startswith("samples/")]
        return {**member(archive.getinfo("header.json")), "samples": samples}


@pytest.mark.extras
def test_bbq_of_inspect_is_right_where_its_scorer_says_so() -> None:
    found = read_log(LOGS / "bbq.eval")
    assert (found.tool, found.version, found.model, found.benchmark) == ("Inspect", "0.3.285", "mockllm/model", "bbq")
    scored = [sample["scores"]["choice"] for sample in unpacked(LOGS / "bbq.eval")["samples"]]
    for answer, score in zip(found.answers, scored, strict=True):
        if score["answer"] in ("A", "B", "C"):
            assert (answer.choice.option == answer.item.correct) == (score["value"] == "C")
    kinds = [answer.choice.kind for answer in found.answers]
    assert kinds == ["chosen", "chosen", "chosen", "refused", "chosen", "unparsed"] * 2


@pytest.mark.extras
def test_stereoset_of_inspect_has_its_labels() -> None:
    found = read_log(LOGS / "stereoset.eval")
    assert (found.benchmark, len(found.answers)) == ("stereoset", 16)
    for answer, sample in zip(found.answers, unpacked(LOGS / "stereoset.eval")["samples"], strict=True):
        value = sample["scores"]["stereoset_scorer"]["value"]
        if answer.label is not None:
            assert value[answer.label] == 1
        # The tool reads "The Muslim one" as the letter T; we read no letter there either.
        assert (answer.label is None) == bool(value["invalid"])
    assert {answer.target for answer in found.answers} == {"piper", "poet"}


def small(tmp_path: Path, **changed: Any) -> Path:
    """A log with one made-up sample of StereoSet."""
    sample = {
        "id": "id0",
        "epoch": 1,
        "input": "The piper was BLANK.",
        "choices": ["The piper was loud.", "The piper was quiet.", "The piper was seven."],
        "target": ["A", "B"],
        "metadata": {
            "gold_labels": ["stereotype", "anti-stereotype", "unrelated"],
            "task_type": "intrasentence",
            "bias_type": "profession",
            "target": "piper",
        },
        "output": {"choices": [{"message": {"role": "assistant", "content": "ANSWER: B"}}]},
    }
    header = changed.pop("header", {})
    failed = {**sample, **changed, "id": "id1"}
    root = {
        "version": 2,
        "eval": {"task": "inspect_evals/stereoset", "model": "m"},
        "samples": [sample, failed],
        **header,
    }
    (tmp_path / "log.json").write_text(json.dumps(root))
    return tmp_path / "log.json"


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"metadata": {"task_type": "intersentence"}}, "metadata.task_type"),
        ({"choices": None}, "choices"),
    ],
)
def test_samples_of_inspect_that_cannot_be_used(tmp_path: Path, changed: dict[str, Any], field: str) -> None:
    found = read_log(small(tmp_path, **changed))
    assert [answer.label for answer in found.answers] == ["anti-stereotype"]
    assert [(one.name, one.reason.split(":")[0]) for one in found.unmapped] == [
        ("sample id1, epoch 1", f"field {field}")
    ]


@pytest.mark.parametrize("changed", [{"error": {"message": "filtered"}}, {"output": {"choices": []}}, {"output": None}])
def test_samples_of_inspect_that_failed_choose_nothing(tmp_path: Path, changed: dict[str, Any]) -> None:
    found = read_log(small(tmp_path, **changed))
    assert [(answer.choice.kind, answer.label) for answer in found.answers] == [
        ("chosen", "anti-stereotype"),
        ("failed", None),
    ]


@pytest.mark.parametrize(
    ("header", "match"),
    [
        ({"eval": {"task": "inspect_evals/gsm8k"}}, "gsm8k"),
        ({"plan": {"steps": [{"solver": "multiple_choice", "params": {"shuffle": True}}]}}, "shuffled"),
        ({"samples": []}, "none of its 0"),
        ({"eval": None}, "'eval'"),
        ({"samples": 7}, "'samples' is not a list"),
    ],
)
def test_logs_of_inspect_that_are_refused(tmp_path: Path, header: dict[str, Any], match: str) -> None:
    with pytest.raises(UsageError, match=match):
        read_log(small(tmp_path, header=header))


@pytest.mark.parametrize("header", ["{}", "[]", '{"eval": 3}', "null"])
def test_a_header_without_eval_is_refused(tmp_path: Path, header: str) -> None:
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        archive.writestr("header.json", header)
    with pytest.raises(UsageError, match=r"log\.eval: not a whole log of Inspect: no object 'eval'"):
        read_log(tmp_path / "log.eval")


STRANGE: list[dict[str, Any]] = [
    {"metadata": [1]},
    {"metadata": "x"},
    {"output": {"choices": "abc"}},
    {"output": {"choices": [3]}},
    {"output": {"choices": [{"message": []}]}},
    {"output": {"choices": [{"message": {"content": [1, {"type": "text", "text": 5}]}}]}},
    {"target": {"a": 1}},
    {"choices": 5},
]


@pytest.mark.parametrize("changed", STRANGE)
def test_a_sample_of_another_form_is_left_out_or_read_log(tmp_path: Path, changed: dict[str, Any]) -> None:
    found = read_log(small(tmp_path, **changed))
    assert len(found.answers) + len(found.unmapped) == 2


@pytest.mark.parametrize("packages", [[], "x", None])
def test_strange_heads_do_no_harm(tmp_path: Path, packages: object) -> None:
    about = {"task": "inspect_evals/stereoset", "packages": packages, "task_args": 3}
    assert read_log(small(tmp_path, header={"eval": about, "plan": {"steps": [3, {"params": []}]}})).version == ""


@pytest.mark.parametrize("arguments", [[3], [[]], {"a": {}}, {"a": 3}, "abc"])
def test_strange_requests_are_left_out(tmp_path: Path, arguments: object) -> None:
    rows = lines(SAMPLES["bbq"])
    rows[1]["arguments"] = arguments
    found = read_log(written(tmp_path / SAMPLES["bbq"].name, rows))
    assert ["line 2" in one.name for one in found.unmapped] == [True]


# Bombs ----------------------------------------------------------------------------------------------------------------

HEADER = json.dumps({"eval": {"task": "inspect_evals/bbq"}})
SPACES = 200 * 2**20


@pytest.fixture
def limited_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Unpacked data must not stay in memory: tracemalloc measures the peak."""
    monkeypatch.delenv("BIASSAY_MAX_UNPACKED", raising=False)
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150 * 2**20


def bomb(path: Path, members: Mapping[str, int], *, claimed: int | None = None) -> Path:
    """Write an archive whose members unpack to this many spaces; their stated size may be wrong."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("header.json", HEADER)
        for name, size in members.items():
            with archive.open(name, "w") as member:
                member.write(b"[")
                for _ in range(size // 2**20):
                    member.write(b" " * 2**20)
                member.write(b"]")
        for info in archive.infolist()[1:]:
            info.file_size = info.file_size if claimed is None else claimed
    return path


def zstd_bomb(path: Path) -> Path:
    import zstandard

    packer = zstandard.ZstdCompressor().compressobj()
    content = b"".join([*(packer.compress(b" " * 2**20) for _ in range(SPACES // 2**20)), packer.flush()])
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", HEADER)
        archive.writestr("samples/1.json", content)
        archive.infolist()[1].compress_type = 93
    return path


@pytest.mark.usefixtures("limited_memory")
@pytest.mark.parametrize(
    "members",
    [{"samples/1.json": SPACES}, {f"samples/{i}.json": 20 * 2**20 for i in range(10)}],
    ids=["one member", "many members"],
)
def test_a_log_that_unpacks_to_too_much_is_refused(tmp_path: Path, members: dict[str, int]) -> None:
    path = bomb(tmp_path / "log.eval", members)
    assert path.stat().st_size < 2**20
    with pytest.raises(UsageError, match=r"log\.eval: larger than \d+ MiB once .* BIASSAY_MAX_UNPACKED"):
        read_log(path)


@pytest.mark.usefixtures("limited_memory")
def test_a_log_that_lies_about_its_sizes_is_refused(tmp_path: Path) -> None:
    for claimed in (10, 2**31):
        with pytest.raises(UsageError, match=r"not a whole log|larger than"):
            read_log(bomb(tmp_path / f"{claimed}.eval", {"samples/1.json": SPACES}, claimed=claimed))


@pytest.mark.extras
@pytest.mark.usefixtures("limited_memory")
def test_a_bomb_of_zstd_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="larger than"):
        read_log(zstd_bomb(tmp_path / "log.eval"))


def test_members_of_other_methods_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "log.eval", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("header.json", HEADER)
    with pytest.raises(UsageError, match="unknown method 14"):
        read_log(tmp_path / "log.eval")


@pytest.mark.usefixtures("limited_memory")
@pytest.mark.parametrize("name", ["Age.jsonl.gz", "Age.json.gz", "Age.csv.gz"])
def test_benchmark_files_that_unpack_to_too_much_are_refused(tmp_path: Path, name: str) -> None:
    with gzip.open(tmp_path / name, "wb", compresslevel=9) as file:
        for _ in range(SPACES // 2**20):
            file.write(b" " * 2**20)
    with pytest.raises(UsageError, match=r"Age.*: larger than \d+ MiB"):
        list(read_rows(tmp_path / name))


def test_the_user_may_allow_more_or_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gzip.open(tmp_path / "Age.jsonl.gz", "wb") as file:
        file.write(b'{"a": 1}\n' * 1000)
    for allowed, refused in (("9000", False), ("9KB", False), ("8000", True)):
        monkeypatch.setenv("BIASSAY_MAX_UNPACKED", allowed)
        with pytest.raises(UsageError, match="larger than") if refused else nullcontext():
            assert len(list(read_rows(tmp_path / "Age.jsonl.gz"))) == 1000
    monkeypatch.setenv("BIASSAY_MAX_UNPACKED", "much")
    with pytest.raises(UsageError, match="BIASSAY_MAX_UNPACKED must be a number of bytes such as 8G, got 'much'"):
        list(read_rows(tmp_path / "Age.jsonl.gz"))


@pytest.mark.extras
def test_damaged_logs_of_inspect(tmp_path: Path) -> None:
    whole = (LOGS / "bbq.eval").read_bytes()
    file = tmp_path / "bbq.eval"
    for content in (whole[:2000], whole[:20000] + b"\0" * 400 + whole[20400:], b""):
        file.write_bytes(content)
        with pytest.raises(UsageError, match="not a whole log"):
            read_log(file)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("_journal/start.json", "{}")
    with pytest.raises(UsageError, match=r"header\.json"):
        read_log(file)


def test_what_an_extra_reads_is_told_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError, match=r'pip install "biassay\[benchmarks\]"'):
        read_log(LOGS / "bbq.eval")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "Age.parquet").write_bytes(b"PAR1")
    with pytest.raises(MissingExtraError, match=r'pip install "biassay\[benchmarks\]"'):
        read_bbq(tmp_path)
