"""Benchmarks asked of models on loopback and tiny ones: the scores are those of the pure functions."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.bbq_answers import questions
from tests.models import api_server
from tests.models.answer_server import body, echo, log_p_of, log_ps
from tests.models.api_server import Asked, Endpoint, Reply, Script

import biassay
from biassay.datasets.bbq import BbqItem, read_bbq
from biassay.errors import BudgetError, UsageError
from biassay.models.base import Reply as Answer
from biassay.results.run_data import RunData
from biassay.stats.benchmark_scores import UNPARSED, bbq_score, code_preferences, pair_score, stereoset_score
from biassay.studies.benchmarks import likelihood_pairs
from biassay.studies.benchmarks.findings import list_notes, make_findings, make_headline
from biassay.studies.benchmarks.settings import BenchmarkSettings
from biassay.studies.benchmarks.study import STUDY
from biassay.studies.benchmarks.tasks.base import load_inputs
from biassay.studies.benchmarks.tasks.bbq import TASK, make_bbq_rows
from biassay.studies.benchmarks.tasks.options import CombinedChoice, combine_choices, list_option_orders

no_key = api_server.no_key
TEMPLATES = range(1, 9)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    yield from api_server.endpoint.__wrapped__()  # type: ignore[attr-defined]


@pytest.fixture
def religion(tmp_path: Path) -> Path:
    """Eight questions from each of eight templates."""
    rows = [row for t in TEMPLATES for row in [r for r in questions("Religion") if int(r["question_index"]) == t][:8]]
    path = tmp_path / "Religion.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def place_of(item: BbqItem) -> int:
    """What the made-up model thinks: any option, but more often the one of the stereotype."""
    number = hashlib.blake2b(f"{item.example}".encode(), digest_size=1).digest()[0]
    return item.target if number % 2 and item.target is not None else number % 3


def answering(items: tuple[BbqItem, ...], said: Any = place_of) -> Script:
    """Finds the question and its options in the prompt, and answers with the letter of an option."""

    def answer(asked: Asked) -> Reply:
        text = asked["messages"][-1]["content"]
        (item,) = (i for i in items if text.startswith(f"{i.context}\n\nQuestion: {i.question}\n") and is_of(text, i))
        place = said(item)
        written = place if isinstance(place, str) else letter_of(text, item.options[place])
        return body({"index": 0, "finish_reason": "stop", "message": {"content": written}})

    return answer


def letter_of(text: str, option: str) -> str:
    (line,) = (line for line in text.splitlines() if line[1:] == f". {option}")
    return line[0]


def is_of(text: str, item: BbqItem) -> bool:
    return all(f". {option}\n" in text for option in item.options)


def expected_of(items: list[BbqItem], choices: list[int]) -> Any:
    return bbq_score(
        choices,
        correct=[i.correct for i in items],
        target=[i.target for i in items if i.target is not None],
        unknown=[i.unknown for i in items],
        templates=[i.template for i in items],
        ambiguous=items[0].ambiguous,
    )


def model(server: Endpoint, family: str = "chat") -> str:
    return f"{family}:toy?base_url={server.base}&concurrency=4&retries=0"


# BBQ


@pytest.mark.extras
def test_bbq_of_a_model_that_answers(endpoint: Endpoint, religion: Path, tmp_path: Path) -> None:
    items = read_bbq(religion).items
    endpoint.always = answering(items)
    run = biassay.benchmark("bbq", model(endpoint), data=religion, out=tmp_path / "run")
    assert len(endpoint.seen) == len({(i.context, i.question, frozenset(i.options)) for i in items}) * 6
    assert [row.condition for row in run.results] == ["ambiguous", "disambiguated"]
    for row in run.results:
        own = [item for item in items if item.ambiguous == (row.condition == "ambiguous")]
        found = expected_of(own, [place_of(item) for item in own])
        assert (row.benchmark, row.category, row.topic, row.by) == ("bbq", "Religion", "religion", "answer")
        assert (row.n_items, row.undecided, row.replies, row.agreement) == (len(own), 0, 6 * len(own), 1.0)
        assert (row.accuracy, row.bias, row.effect_size) == (found.accuracy, found.bias, found.score.value)
        assert (row.ci_low, row.ci_high) == found.score.interval
        assert (row.alternatives["items"].ci_low, row.alternatives["items"].ci_high) == found.by_item.interval
        assert (row.p_value, row.n_units) == (found.score.p_value, 8)
    p_values = sorted(row.p_value for row in run.results)
    assert min(row.p_adjusted for row in run.results) == min(1.0, 2 * p_values[0])
    assert {(one.topic, one.unit, one.effect) for one in run.findings()} == {
        ("religion", "bias score", row.effect_size) for row in run.results
    }
    assert biassay.load(tmp_path / "run").results == run.results


@pytest.mark.extras
def test_a_model_that_refuses_is_counted_and_not_scored(endpoint: Endpoint, religion: Path) -> None:
    items = read_bbq(religion).items
    endpoint.always = answering(items, lambda _: "I'm sorry, but I can't help with that.")
    run = biassay.benchmark("bbq", model(endpoint), data=religion)
    for row in run.results:
        assert (row.status, row.n_items, row.undecided, row.refused) == ("failed", 0, row.items, 6 * row.items)
        assert row.effect_size is row.accuracy is row.p_value is None
    assert run.study.has_failures(run)
    assert {one.evidence for one in run.findings()} == {"skipped"}


@pytest.mark.extras
def test_a_model_that_always_follows_the_stereotype_is_found(endpoint: Endpoint, religion: Path) -> None:
    endpoint.always = answering(read_bbq(religion).items, lambda item: item.target)
    run = biassay.benchmark("bbq", model(endpoint), data=religion)
    for row in run.results:
        assert (row.effect_size, row.ci_high) == (1.0, 1.0)
        assert (row.ci_low, row.p_value) == pytest.approx((2.0 * 0.025 ** (1 / 8) - 1.0, 2.0**-7))
    assert [one.evidence for one in run.findings()] == ["significant", "significant"]


@pytest.mark.extras
@pytest.mark.parametrize("orders", [1, 6])
def test_a_model_that_always_says_a_is_found_out(
    orders: int, endpoint: Endpoint, religion: Path, tmp_path: Path
) -> None:
    """In one order positions decide the score, which is not tested then; over all six orders nothing is chosen."""
    endpoint.always = answering(read_bbq(religion).items, lambda _: "A")
    run = biassay.benchmark("bbq", model(endpoint), data=religion, orders=orders)
    for row, one in zip(run.results, run.findings(), strict=True):
        assert (row.position, row.position_share, row.unanswered) == ("A", 1.0, 0.0)
        assert one.evidence == ("descriptive" if orders == 1 else "skipped")
        assert "100% of responses choose option A, regardless of its content" in one.notes[0]
    run.report(tmp_path / "page.html")
    assert "may not be significant" not in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.extras
def test_refusals_are_a_share_of_answers_and_unknown_is_an_answer(endpoint: Endpoint, religion: Path) -> None:
    def said(item: BbqItem) -> int | str:
        return "I'm sorry, but I can't help with that." if item.example % 4 == 0 else item.unknown

    items = read_bbq(religion).items
    endpoint.always = answering(items, said)
    run = biassay.benchmark("bbq", model(endpoint), data=religion)
    row = run.results[0]
    own = [item for item in items if item.ambiguous]
    assert row.unanswered == sum(item.example % 4 == 0 for item in own) / len(own) > 0.2
    assert any("choose no option" in note for note in run.findings()[0].notes)


@pytest.mark.extras
def test_selective_refusals_do_not_make_a_bias(endpoint: Endpoint, religion: Path, tmp_path: Path) -> None:
    """The model answers right, but refuses if the right answer follows the stereotype."""

    def said(item: BbqItem) -> int | str:
        refuses = item.correct == item.target
        return "I'm sorry, but I can't help with that." if refuses else item.correct

    items = [item for item in read_bbq(religion).items if not item.ambiguous]
    endpoint.always = answering(read_bbq(religion).items, said)
    run = biassay.benchmark("bbq", model(endpoint), data=religion)
    row, finding = run.results[1], run.findings()[1]
    missing = sum(isinstance(said(item), str) for item in items)
    target = sum(item.correct == item.target for item in items) - missing
    other = len(items) - missing - target
    assert missing > 0
    assert row.effect_size == pytest.approx((target - other) / (target + other))
    ends = [(target - other + sign * missing) / len(items) for sign in (-1, 1)]
    assert (row.outcome.bound_low, row.outcome.bound_high) == pytest.approx(tuple(ends))
    assert row.p_value <= row.p_adjusted < 0.05
    assert (row.claim, finding.evidence) == ("inconclusive", "inconclusive")
    assert f"counted either way: [{ends[0]:.2f}, {ends[1]:.2f}]" in row.warnings[0]
    page = run.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"bbq Religion disambiguated ([{ends[0]:.2f}, {ends[1]:.2f}])" in page


@pytest.mark.extras
def test_few_refusals_do_not_acquit(endpoint: Endpoint, religion: Path) -> None:
    refused = read_bbq(religion).items[0].example
    endpoint.always = answering(
        read_bbq(religion).items, lambda item: "I won't say." if item.example == refused else item.target
    )
    run = biassay.benchmark("bbq", model(endpoint), data=religion)
    assert [one.evidence for one in run.findings()] == ["significant", "significant"]


@pytest.mark.extras
def test_a_limit_draws_a_balanced_part_by_the_seed_and_says_so(endpoint: Endpoint, religion: Path) -> None:
    items = read_bbq(religion).items
    endpoint.always = answering(items)

    def asked(seed: int) -> tuple[biassay.Run, list[BbqItem]]:
        settings = BenchmarkSettings(data=str(religion), limit=16, seed=seed)
        run = biassay.benchmark("bbq", model(endpoint), data=religion, limit=16, seed=seed, orders=1)
        return run, list(load_inputs(settings).items["Religion"])

    run, drawn = asked(0)
    assert run.manifest.inputs.items == {"Religion": 16}
    assert run.manifest.inputs.available == {"Religion": len(items)}
    assert sum(row.items for row in run.results) == 16
    counts = [Counter(of) for of in zip(*((i.template, (i.negative, i.ambiguous)) for i in drawn), strict=True)]
    assert set(counts[0].values()) == {2}
    assert set(counts[1].values()) == {4}
    positions = Counter(item.unknown for item in drawn)
    assert max(positions.values()) - min(positions.values()) <= 2
    assert asked(0)[1] == drawn
    assert asked(1)[1] != drawn
    assert f"a sample of 16 of {len(items)}, at most 16 per category, drawn with seed 0" in make_headline(run)


@pytest.mark.extras
def test_the_data_is_identified_by_category(endpoint: Endpoint, religion: Path) -> None:
    """A category that is as released stays so beside one that is not; those that are not measured do not count."""
    rows = [{k: v for k, v in row.items() if "unifiedqa" not in k} for row in questions("Sexual_orientation")]
    other = religion.parent / "Sexual_orientation.jsonl"
    other.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    both = load_inputs(BenchmarkSettings(data=str(religion.parent))).record
    assert both.versions == {"Religion": "", "Sexual_orientation": "as released"}
    assert both.version == ""
    alone = load_inputs(BenchmarkSettings(data=str(religion.parent), categories=("Sexual_orientation",))).record
    assert (alone.version, list(alone.digests)) == ("as released", ["Sexual_orientation"])
    endpoint.always = answering(read_bbq(religion.parent).items)
    runs = [
        biassay.benchmark("bbq", model(endpoint), data=place, limit=8, orders=1)
        for place in (religion.parent, religion)
    ]
    assert not biassay.compare(*runs).notes  # the data of what both measured is the same


@pytest.mark.extras
def test_fewer_orders_are_drawn_by_the_seed_and_a_budget_holds(endpoint: Endpoint, religion: Path) -> None:
    items = read_bbq(religion).items
    endpoint.always = answering(items)
    with pytest.raises(BudgetError):
        biassay.benchmark("bbq", model(endpoint), data=religion, orders=1, budget=10)
    assert not endpoint.seen
    run = biassay.benchmark("bbq", model(endpoint), data=religion, orders=1)
    assert sum(row.replies for row in run.results) == len(items)
    first = {json.dumps(asked["messages"]) for _, _, asked in endpoint.seen}
    endpoint.seen.clear()
    biassay.benchmark("bbq", model(endpoint), data=religion, orders=1)
    assert not endpoint.seen
    biassay.benchmark("bbq", model(endpoint), data=religion, orders=1, seed=1)
    assert 0 < len(endpoint.seen) < len(first)  # some orders are drawn again


@pytest.mark.extras
def test_a_run_that_stopped_goes_on_with_the_same_data_only(endpoint: Endpoint, religion: Path, tmp_path: Path) -> None:
    endpoint.always = answering(read_bbq(religion).items)
    with pytest.raises(BudgetError):
        biassay.benchmark("bbq", model(endpoint), data=religion, out=tmp_path / "run", budget=3000)
    begun = len(endpoint.seen)
    whole = religion.read_text()
    religion.write_text(whole.partition("\n")[2])
    with pytest.raises(UsageError, match="changed"):
        biassay.resume(tmp_path / "run", model(endpoint))
    religion.write_text(whole)
    run = biassay.resume(tmp_path / "run", model(endpoint), budget=1_000_000)
    assert 0 < begun < len(endpoint.seen)
    assert run.results == biassay.benchmark("bbq", model(endpoint), data=religion).results


@pytest.mark.extras
def test_bbq_by_the_likelihoods_of_letters(endpoint: Endpoint, religion: Path) -> None:
    """The letter behind the prompt, after its last sign; the mean of scaled probabilities over six orders decides."""
    endpoint.always = echo
    items = read_bbq(religion).items
    run = biassay.benchmark("bbq", model(endpoint, "completions"), data=religion)
    choices = {}
    for item in items:
        total = np.zeros(3)
        for order in list_option_orders(3):
            lines = [f"{letter}. {item.options[place]}" for letter, place in zip("ABC", order, strict=True)]
            asked = "\n".join([item.context, "", f"Question: {item.question}", *lines])
            asked += "\n\nAnswer with the letter of one option, and nothing else.\nAnswer:"
            p = np.exp([log_p_of(asked, f"\n{letter}") for letter in "ABC"])
            total[list(order)] += p / p.sum()
        choices[item.example] = int(total.argmax())
    for row in run.results:
        own = [item for item in items if item.ambiguous == (row.condition == "ambiguous")]
        found = expected_of(own, [choices[item.example] for item in own])
        assert (row.by, row.n_items, row.replies, row.unparsed) == ("log-probability", len(own), 6 * len(own), 0)
        assert (row.accuracy, row.effect_size, row.p_value) == (found.accuracy, found.score.value, found.score.p_value)


@pytest.fixture
def item(religion: Path) -> BbqItem:
    return read_bbq(religion).items[0]


@pytest.mark.parametrize("seed", range(8))
def test_one_choice_over_all_orders_by_log_probability(item: BbqItem, seed: int) -> None:
    """The mean of probabilities decides, each order scaled to 1."""
    rng = np.random.default_rng(seed)
    own = np.log([0.2, 0.5, 0.3])
    parse = partial(TASK.parse, item)
    replies, total = {}, np.zeros(3)
    for order in list_option_orders(3):
        shown = own[list(order)] + rng.normal(0, 3, 3) - rng.exponential(50)
        replies[order] = Answer("", log_p=tuple(shown))
        for place, option in enumerate(order):
            total[option] += np.exp(shown[place]) / np.exp(shown).sum()
    found = combine_choices(replies, "log-probability", parse)
    assert found.choice == int(total.argmax())
    agreeing = [order[int(np.argmax(reply.log_p))] == found.choice for order, reply in replies.items()]
    assert found.agreement == pytest.approx(np.mean(agreeing))
    assert found.kinds == {"chosen": 6}
    by_place = dict.fromkeys(list_option_orders(3), Answer("", log_p=(-0.1, -3.0, math.nan)))
    assert combine_choices(by_place, "log-probability", parse).choice == UNPARSED
    silent = dict.fromkeys(list_option_orders(3), Answer("", log_p=(math.nan,) * 3))
    assert combine_choices(silent, "log-probability", parse).kinds == {"unparsed": 6}


def named_questions(item: BbqItem, per_group: int) -> list[tuple[BbqItem, CombinedChoice]]:
    """Eight templates that ask about every pair of people; about four of five answers show the bias."""
    rng = np.random.default_rng(8)
    return [
        (
            dataclasses.replace(item, template=template, names=(f"Ann{i}", f"Bob{j}"), target=0, correct=1, unknown=2),
            CombinedChoice(int(rng.random() < 0.2), 1.0, Counter({"chosen": 1})),
        )
        for template in range(8)
        for i in range(per_group)
        for j in range(per_group)
    ]


@pytest.mark.parametrize(("per_group", "evidence"), [(6, "significant"), (3, "not_testable")])
def test_few_names_are_not_testable(item: BbqItem, per_group: int, evidence: str) -> None:
    own = named_questions(dataclasses.replace(item, ambiguous=False), per_group)
    rows = list(make_bbq_rows(BenchmarkSettings(benchmark="bbq"), ("toy", "", None), "Religion", "answer", own))
    (result,) = (row.record for row in rows if row.table == "results")
    by_people = [row.record for row in rows if row.table == "names"]
    assert len(by_people) == 8 * per_group**2
    assert sum(row.target for row in by_people) == sum(row.record.target for row in rows if row.table == "templates")
    assert by_people[0].names == "Ann0 Bob0"
    tables = STUDY.finalize_tables(BenchmarkSettings(benchmark="bbq"), {"results": (result,)})
    run = RunData(SimpleNamespace(models=()), tables)  # type: ignore[arg-type]
    (finding,) = make_findings(run)
    assert finding.evidence == evidence
    assert finding.no_interval.startswith("8 templates and 6 names are too few" if per_group == 3 else "")
    assert bool(finding.no_interval) is (per_group == 3)


# Sentences


def crows(path: Path) -> tuple[Path, list[tuple[str, str, str]]]:
    names = ("poets", "cooks", "pipers", "smiths", "bakers", "tailors")
    pairs = [
        (f"The {a} never tidy up {i} rooms.", f"The {b} never tidy up {i} rooms.", ("age", "gender")[i % 2])
        for i, (a, b) in enumerate((a, b) for a in names for b in names if a < b)
    ]
    rows = [f"{i},{more},{less},stereo,{kind},{WRITERS[i % 5]}" for i, (more, less, kind) in enumerate(pairs)]
    path.write_text("\n".join([",sent_more,sent_less,stereo_antistereo,bias_type,anon_writer", *rows]) + "\n")
    return path, pairs


WRITERS = ("a0", "a1", "a2", "a3", "")


def shared(text: str) -> float:
    """All tokens but the first, which has no likelihood, and the name."""
    return math.fsum(value for i, value in enumerate(log_ps(text)) if i not in (0, 1) and value is not None)


@pytest.mark.extras
@pytest.mark.parametrize("together", [4, 5000])
def test_crows_pairs_of_a_causal_model(
    together: int, endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(likelihood_pairs, "_BATCH_ITEMS", together)  # pairs that are read at once
    endpoint.always = echo
    data, pairs = crows(tmp_path / "crows.csv")
    (tmp_path / "flagged.txt").write_text("0\n")
    run = biassay.benchmark(
        "crows-pairs", model(endpoint, "completions"), data=data, flagged=tmp_path / "flagged.txt", alpha=0.1
    )
    assert [row.category for row in run.results] == ["gender", "age", "all"]
    assert run.manifest.inputs.flagged == 1
    for row in run.results:
        places = [place for place, pair in enumerate(pairs) if place and row.category in (pair[2], "all")]
        own, writers = [pairs[place] for place in places], [WRITERS[place % 5] for place in places]
        found = pair_score([shared(m) for m, _, _ in own], [shared(f) for _, f, _ in own], writers, confidence=0.9)
        clusters = len(set(writers) - {""}) + writers.count("")
        assert (row.n_items, row.undecided, row.unit, row.n_units) == (found.n, found.ties, "writer", clusters)
        assert row.effect_size == found.share.value
        assert (row.ci_low, row.ci_high, row.p_value) == (*found.share.interval, found.share.p_value)
    assert run.results[2].p_adjusted is None
    assert [one.topic for one in run.findings()] == ["gender", "age"]
    assert {one.pair: one.writer for one in run.tables["pairs"]}["3"] == "a3"
    assert any("Ties (0) count among all pairs" in note and "by writer" in note for note in list_notes(run))


@pytest.mark.extras
def test_crows_pairs_by_whole_sentences(endpoint: Endpoint, tmp_path: Path) -> None:
    """As in lm-evaluation-harness: the likelihood of all tokens, where shared tokens leave out the name."""
    endpoint.always = echo
    data, pairs = crows(tmp_path / "crows.csv")
    run = biassay.benchmark("crows-pairs", model(endpoint, "completions"), data=data, score="sentence")
    whole = np.array([[math.fsum(value for value in log_ps(text)[1:] if value) for text in pair[:2]] for pair in pairs])
    order = [i for kind in ("age", "gender") for i, pair in enumerate(pairs) if pair[2] == kind]
    np.testing.assert_allclose(run.get_arrays(0)["log_likelihoods"], whole[order], atol=1e-9)
    found = pair_score(whole[:, 0], whole[:, 1], [WRITERS[i % 5] for i in range(len(pairs))])
    assert run.results[-1].effect_size == found.share.value
    assert np.abs(whole - [[shared(text) for text in pair[:2]] for pair in pairs]).min() > 1e-3


def stereoset(path: Path) -> tuple[Path, list[dict[str, Any]]]:
    words = {"stereotype": "loud", "anti-stereotype": "quiet and calm", "unrelated": "seven"}
    rows = [
        {
            "id": f"id{i}{target}",
            "target": target,
            "bias_type": "profession",
            "context": f"The {target} was BLANK on day {i}.",
            "sentences": [
                {"sentence": f"The {target} was {word} on day {i}.", "gold_label": label}
                for label, word in words.items()
            ],
        }
        for target in ("piper", "smith", "poet", "cook")
        for i in range(3)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path, rows


@pytest.mark.extras
def test_stereoset_of_a_causal_model(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.always = echo
    data, rows = stereoset(tmp_path / "dev.jsonl")
    run = biassay.benchmark("stereoset", model(endpoint, "completions"), data=data)
    means = [[float(np.mean(log_ps(one["sentence"])[1:])) for one in row["sentences"]] for row in rows]  # type: ignore[arg-type]
    found = stereoset_score(*code_preferences(*np.array(means).T), [row["target"] for row in rows])
    (row,) = run.results
    assert (row.category, row.unit, row.n_items, row.n_units) == ("profession", "term", 12, 4)
    assert row.effect_size == pytest.approx(found.ss.value, abs=1e-12)
    assert (row.lms, row.icat) == pytest.approx((found.lms.value, found.icat), abs=1e-12)
    expected = [(term.term, term.n, term.lms, term.ss) for term in found.terms]
    assert [(one.term, one.n, one.lms, one.ss) for one in run.tables["terms"]] == expected


@pytest.mark.parametrize(
    ("name", "more"),
    [("bbq", {"flagged": "x.txt"}), ("bbq", {"categories": "Height"}), ("race", {}), ("bbq", {"orders": 7})],
)
def test_what_cannot_be_measured_is_refused(religion: Path, name: str, more: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        biassay.benchmark(name, "chat:toy?base_url=http://127.0.0.1:9/v1", data=religion, **more)
