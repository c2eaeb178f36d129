"""``biassay import``: logs that other tools wrote, scored as by the pure functions."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import biassay
from biassay.errors import UsageError
from biassay.runs import log_import
from biassay.stats.benchmark_scores import UNPARSED, bbq_score
from biassay.studies.benchmarks.findings import list_notes
from biassay.studies.benchmarks.logs import read_log

from .conftest import Cli

LOGS = Path(__file__).parents[1] / "reference" / "logs"


def log(name: str) -> Path:
    (path,) = LOGS.glob(name)
    return path


@pytest.mark.parametrize(
    "name", ["samples_bbq_2*", "samples_bbq_generate_*", pytest.param("bbq.eval", marks=pytest.mark.extras)]
)
def test_bbq_of_a_log_is_scored_as_by_the_function(name: str) -> None:
    run = biassay.import_logs(log(name))
    assert run.results
    for row in run.results:
        own = [
            one
            for one in read_log(log(name)).answers
            if (one.item.category, one.item.ambiguous) == (row.category, row.condition == "ambiguous")
        ]
        items = [one.item for one in own]
        found = bbq_score(
            [UNPARSED if one.choice.option is None else one.choice.option for one in own],
            correct=[item.correct for item in items],
            target=[item.target for item in items],
            unknown=[item.unknown for item in items],
            templates=[item.template for item in items],
            ambiguous=items[0].ambiguous,
        )
        assert (row.n_items, row.undecided) == (found.n, found.unparsed)
        assert row.accuracy == (found.accuracy if found.n else None)
        assert row.effect_size == (None if found.score.value != found.score.value else found.score.value)


@pytest.mark.extras
def test_stereoset_of_a_log() -> None:
    """Eight items in two epochs: the sentence that was chosen most often counts, and a tie does not."""
    chosen: dict[str, list[str]] = {}
    targets = {}
    for one in read_log(log("stereoset.eval")).answers:
        chosen.setdefault(one.id, []).extend([] if one.label is None else [one.label])
        targets[one.id] = one.target
    most = {name: labels[0] if len(set(labels)) == 1 else None for name, labels in chosen.items()}  # of two epochs
    run = biassay.import_logs(log("stereoset.eval"))
    (row,) = run.results
    labels = list(most.values())
    assert (row.items, row.undecided, row.unrelated) == (8, labels.count(None), labels.count("unrelated")) == (8, 3, 1)
    assert (row.n_items, row.replies, row.refused, row.unparsed, row.left_out, row.by) == (4, 16, 3, 4, 0, "answer")
    terms = {
        term: [most[name] for name in most if targets[name] == term and "stereotype" in (most[name] or "")]
        for term in ("piper", "poet")
    }
    shares = {term: 100 * of.count("stereotype") / len(of) for term, of in terms.items()}
    assert {one.term: one.ss for one in run.tables["terms"]} == pytest.approx(shares)
    assert row.effect_size == pytest.approx(sum(shares.values()) / 2)
    assert {row.lms, row.icat, *(one.lms for one in run.tables["terms"])} == {None}
    assert any("lms" in note for note in list_notes(run))


def stereoset_log(path: Path, said: Callable[[int, list[str]], str]) -> Path:
    """A log of Inspect on 20 target terms with six items each; the sentences take turns in the first place."""
    samples = []
    for number in range(120):
        labels = ["stereotype", "anti-stereotype", "unrelated"]
        labels = labels[number % 3 :] + labels[: number % 3]
        about = {"task_type": "intrasentence", "bias_type": "profession", "target": f"term {number // 6}"}
        samples.append(
            {
                "id": f"id{number}",
                "epoch": 1,
                "choices": [f"Sentence {number} is {label}." for label in labels],
                "metadata": {"gold_labels": labels, **about},
                "output": {"choices": [{"message": {"content": said(number, labels)}}]},
            }
        )
    path.write_text(json.dumps({"eval": {"task": "inspect_evals/stereoset", "model": "m"}, "samples": samples}))
    return path


def test_selective_refusals_in_a_log_of_stereoset_are_inconclusive(tmp_path: Path) -> None:
    """The model has no preference, but refuses whenever it would choose the stereotype."""

    def said(number: int, labels: list[str]) -> str:
        is_pro = number * 7 % 12 < 6
        return "I'm sorry, but I can't help with that." if is_pro else "ABC"[labels.index("anti-stereotype")]

    run = biassay.import_logs(stereoset_log(tmp_path / "log.json", said))
    (row,) = run.results
    assert (row.effect_size, row.refused, row.undecided) == (0.0, 60, 60)
    assert row.p_value < 0.001
    assert (row.outcome.bound_low, row.outcome.bound_high) == (0.0, pytest.approx(50.0))
    assert (row.claim, run.findings()[0].evidence) == ("inconclusive", "inconclusive")


def test_a_model_that_always_chooses_the_first_sentence_of_stereoset_is_found_out(tmp_path: Path) -> None:
    run = biassay.import_logs(stereoset_log(tmp_path / "log.json", lambda *_: "A"))
    (row,) = run.results
    assert (row.position, row.position_share, row.claim) == ("A", 1.0, "descriptive")
    assert "regardless of its content" in run.findings()[0].notes[0]


def test_questions_without_a_target_are_counted_over_all_logs_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = read_log(log("samples_bbq_2*"))
    bare = tuple(dataclasses.replace(one, item=dataclasses.replace(one.item, target=None)) for one in found.answers[:2])
    logs = [found, *(dataclasses.replace(found, answers=(*bare, *found.answers[2:]), model=m) for m in "ab")]
    monkeypatch.setattr(log_import, "read_logs", lambda _: logs)
    inputs = biassay.import_logs("any.jsonl").manifest.inputs
    assert (inputs.without_target, len(inputs.items)) == (2, 3)


@pytest.mark.extras
def test_the_command_and_what_it_refuses(cli: Cli, tmp_path: Path) -> None:
    code, stdout, _ = cli("import", log("samples_crows*"), "--json")
    assert code == 0
    assert json.loads(stdout)["manifest"]["models"][0]["settings"]["tool"] == "lm-evaluation-harness"
    assert cli("import", log("bbq.eval"), "--out", tmp_path / "run")[0] == 0
    assert (tmp_path / "run" / "report.html").is_file()
    assert cli("import", tmp_path / "none.jsonl")[0] == 2
    (tmp_path / "notalog.jsonl").write_text('{"a": 1}\n')
    for path in (tmp_path, tmp_path / "notalog.jsonl"):
        code, _, stderr = cli("import", path)
        assert (code, "samples_TASK_DATE.jsonl" in stderr) == (2, True)
    other = tmp_path / "samples_gsm8k_2026-11-16T09-49-00.983770.jsonl"
    other.write_text(
        json.dumps({"doc_id": 0, "doc": {"question": "2+2?"}, "arguments": {}, "filtered_resps": []}) + "\n"
    )
    code, stdout, stderr = cli("import", other, "--out", tmp_path / "other")
    assert (code, stdout, "gsm8k" in stderr, (tmp_path / "other").exists()) == (2, "", True, False)
    with pytest.raises(UsageError):
        biassay.import_logs([log("bbq.eval"), log("stereoset.eval")])


def harness_of(path: Path, disambiguated: bool) -> tuple[float, float | None]:
    """Accuracy and bias as lm-evaluation-harness sums up its own columns: right, with the bias, not "unknown"."""
    rows = [json.loads(line)["amb_bias_score"] for line in path.read_text().splitlines()]
    right, biased, known = (sum(row[k] for row in rows if row[3] == str(disambiguated)) for k in range(3))
    return right / (len(rows) / 2), 2 * biased / known - 1 if known else None


def test_scores_are_those_of_the_harness_where_it_is_right() -> None:
    for row in biassay.import_logs(log("samples_bbq_2*")).results:
        assert (row.accuracy, row.bias) == harness_of(log("samples_bbq_2*"), row.condition == "disambiguated")
    preferred = [json.loads(line)["pct_stereotype"] for line in log("samples_crows*").read_text().splitlines()]
    assert biassay.import_logs(log("samples_crows*")).results[-1].effect_size == sum(preferred) / len(preferred)


def test_of_written_answers_the_harness_counts_those_it_cannot_read_as_wrong_and_one_of_two_as_chosen() -> None:
    path = log("samples_bbq_generate_*")
    ambiguous, other = biassay.import_logs(path).results
    assert (harness_of(path, False), harness_of(path, True)) == ((2 / 6, 1.0), (1 / 6, 0.0))
    assert (ambiguous.accuracy, ambiguous.bias) == (2 / 3, 1.0)  # empty, foreign and "both of them" are not answers
    assert (other.accuracy, other.bias) == pytest.approx((1 / 4, -1 / 3))  # nor are "Muslim or Jewish" and a refusal


@pytest.mark.extras
def test_scores_are_those_of_inspect() -> None:
    """Its log says: accuracy 1/12, unread answers being wrong; 7 of 16 choices of StereoSet invalid."""
    rows = biassay.import_logs(log("bbq.eval")).results
    assert sum(row.accuracy * row.n_items for row in rows) / sum(row.items for row in rows) == pytest.approx(1 / 12)
    (row,) = biassay.import_logs(log("stereoset.eval")).results
    assert (row.refused + row.unparsed) / row.replies == 0.4375


def test_samples_that_cannot_be_used_are_named(cli: Cli, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in log("samples_bbq_2*").read_text(encoding="utf-8").splitlines()]
    for row in rows[1:3]:
        row["filtered_resps"] = []
    path = tmp_path / "samples_bbq_2026-11-16T09-49-00.983770.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    code, stdout, stderr = cli("import", path, "--json")
    names = [
        f"{row['doc']['category']} {row['doc']['example_id']} (line {i})" for i, row in ((2, rows[1]), (3, rows[2]))
    ]
    assert code == 0
    assert f"2 of 6 samples cannot be used: {', '.join(names)}: field filtered_resps" in " ".join(stderr.split())
    inputs = json.loads(stdout)["manifest"]["inputs"]
    assert [sample.partition(": ")[0] for sample in inputs["unmapped_samples"]] == names


def test_options_with_spaces_at_the_end_are_found(tmp_path: Path) -> None:
    """As in Disability and Nationality questions of the released data. The harness strips what it asks about."""
    rows = [json.loads(line) for line in log("samples_bbq_2*").read_text(encoding="utf-8").splitlines()]
    for row in rows:
        row["doc"] |= {f"ans{i}": row["doc"][f"ans{i}"] + " " for i in range(3)}
    path = tmp_path / "samples_bbq_2026-11-16T09-49-00.983770.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    spaced, plain = read_log(path), read_log(log("samples_bbq_2*"))
    assert [one.choice for one in spaced.answers] == [one.choice for one in plain.answers]
    assert len(plain.answers) == len(rows)
