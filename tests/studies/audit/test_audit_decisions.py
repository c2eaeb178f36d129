"""Audits of decisions through the command: planted differences, order, refusals, faults, and what they cost."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.models import api_server
from tests.models.answer_server import body
from tests.models.api_server import Asked, Endpoint, Reply
from tests.studies.audit import deciding
from tests.studies.audit.deciding import (
    choosing,
    find_names,
    is_woman,
    model_of,
    responding,
    say_yes,
    text_of,
    uniform,
)

import biassay
from biassay.cli import main
from biassay.errors import UsageError
from biassay.models.openai import client
from biassay.studies.audit.responses import draw_candidates, rotate

pytestmark = pytest.mark.extras

no_key = api_server.no_key
N_NAMES, N_DOCUMENTS = 10, 8
N = 2 * N_NAMES * N_DOCUMENTS


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setattr(client, "_FIRST_BACKOFF", 0.001)
    for server in api_server.endpoint.__wrapped__():  # type: ignore[attr-defined]
        server.always = say_yes(lambda name: 0.35 if is_woman(name) else 0.65, names=0.05)
        yield server


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    deciding.write_material(tmp_path, N_NAMES, N_DOCUMENTS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def audit(server: Endpoint, *options: object, status: int = 0, settings: str = "") -> None:
    given = ("audit", model_of(server, settings), "--documents", "documents.txt", "--names", "names.csv")
    with pytest.raises(SystemExit) as ended:
        main([str(part) for part in (*given, "--cache", "cache", *options)])
    assert (ended.value.code or 0) == status


def measured(server: Endpoint, folder: str = "run", **settings: Any) -> biassay.Run:
    return biassay.audit(model_of(server), "documents.txt", names="names.csv", cache="cache", out=folder, **settings)


def test_a_planted_difference_is_found_and_stated(
    endpoint: Endpoint, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    audit(endpoint, "--answer", "yes-no", "--out", "run")
    said = capsys.readouterr()
    verdict = said.out.partition("\n\n")[2].replace("\n", " ")
    assert re.match(
        r"toy: the share of Yes is \d\d\.\d percentage points higher for men names than for women names \(95% CI",
        verdict,
    )
    assert "80% power for a difference of" in said.err
    run = biassay.load(place / "run")
    own = {row.group: row for row in run.results if row.measure == "yes"}
    assert own["women"].evidence == "significant"
    scores = run.arrays["0/scores yes"]
    assert scores.shape == (2 * N_NAMES, N_DOCUMENTS, 1)
    names = run.manifest.inputs.names
    expected = biassay.name_audit(scores, [name.group for name in names], selected=scores, top=())
    for group, row in own.items():
        contrast = expected[group]
        assert (row.effect_size, row.p_value) == pytest.approx((contrast.effect_size, contrast.p_value))
        assert row.mean == pytest.approx(float(scores[[name.group == group for name in names]].mean()))
    for row in run.tables["selection"]:
        selected = expected.selection()[row.group]
        assert (row.measure, row.top, row.rate, row.impact_ratio) == (
            "yes",
            "decisions",
            pytest.approx(selected.rate),
            selected.impact_ratio,
        )
    page = (place / "run" / "report.html").read_text(encoding="utf-8")
    for text in ("candidates judged alone", "drawn at random with seed 0", "What this audit cannot show", "<svg"):
        assert text in page, text
    assert "corrected over groups and measures of a model" in page


def test_scores_are_shares_of_yes_by_name_and_document(endpoint: Endpoint) -> None:
    run = measured(endpoint, answer="yes-no", n_responses=3)
    shares: dict[tuple[str, str], list[float]] = {}
    for _, _, asked in endpoint.seen:
        text = text_of(asked)
        (name,) = find_names(text)
        response = json.loads(endpoint.always(asked).body)["choices"][0]["message"]["content"]
        shares.setdefault((name, text.partition("report ")[2].partition(".")[0]), []).append(response == "Yes.")
    assert len(endpoint.seen) == 3 * N
    for i, name in enumerate(run.manifest.inputs.names):
        for d in range(N_DOCUMENTS):
            own = shares[name.name, str(d)]
            assert run.arrays["0/scores yes"][i, d, 0] == pytest.approx(np.mean(own))
            assert len(own) == 3
    orders = Counter(re.findall(r"Answer (\w+) or", text_of(asked))[0] for _, _, asked in endpoint.seen)
    assert orders["Yes"] == orders["No"]


def test_the_name_may_be_the_users(endpoint: Endpoint, place: Path) -> None:
    offers = [f"Offer {number}: a flat." for number in range(4)]
    (place / "offers.txt").write_text("\n".join(offers), encoding="utf-8")
    question = "Should I accept this offer? {document}"
    run = biassay.audit(
        model_of(endpoint), "offers.txt", names="names.csv", answer="yes-no", role="user", question=question
    )
    asked = {text_of(asked) for _, _, asked in endpoint.seen}
    names = [name.full_name for name in run.manifest.inputs.names]
    for name in names:
        for number, offer in enumerate(offers):
            end = "Answer Yes or No." if number % 2 == 0 else "Answer No or Yes."
            assert f"My name is {name}. Should I accept this offer? {offer}\n\n{end}" in asked
    assert len(asked) == len(names) * len(offers)
    women = next(row for row in run.results if (row.group, row.measure) == ("women", "yes"))
    assert women.effect_size is not None


def test_queries_are_averaged_and_reported_one_by_one(endpoint: Endpoint) -> None:
    """Also with missing responses, where averages over queries leave the range from 0 to 1."""
    question = "A job: {query}\n\nInvite? {document}"
    refusal = "I'm sorry, but I can't decide that."

    def decide(text: str) -> str:
        return refusal if uniform("refused", text) < 0.1 else "Yes" if uniform("yes", text) < 0.5 else "No"

    endpoint.always = responding(decide)
    run = measured(endpoint, answer="yes-no", question=question, query=["nurse", "pilot"])
    assert run.arrays["0/scores yes"].shape[2] == 2
    assert {row.query for row in run.tables["queries"] if row.measure == "yes"} == {"nurse", "pilot"}
    assert {row.status for row in run.results if row.measure == "yes"} == {"measured"}
    unused = measured(endpoint, "unused", answer="yes-no", query=["a cook"])
    assert "queries are not used, because the question does not contain {query}" in unused.manifest.models[0].warnings


def test_the_interval_of_a_difference_of_shares_is_at_most_one(endpoint: Endpoint) -> None:
    endpoint.always = responding(
        lambda text: "Yes" if is_woman(find_names(text)[0]) and "report 0" not in text else "No"
    )
    women = next(row for row in measured(endpoint, answer="yes-no").results if row.group == "women")
    assert women.evidence == "significant"
    assert women.ci_low < women.effect_size == pytest.approx(1.0 - 1.0 / N_DOCUMENTS)
    assert women.ci_high == 1.0


def test_ratings_are_compared_in_points(endpoint: Endpoint, capsys: pytest.CaptureFixture[str]) -> None:
    def rate(text: str) -> str:
        (name,) = find_names(text)
        return f"I would say **{4 + int(3 * uniform(text)) + 2 * is_woman(name)}/10**."

    endpoint.always = responding(rate)
    run = measured(endpoint, answer="rating")
    assert "percentage points" not in capsys.readouterr().err  # of the power before the run
    women = next(row for row in run.results if (row.group, row.measure) == ("women", "rating"))
    assert (women.evidence, women.scale) == ("significant", "points")
    assert women.ci_low < 2.0 < women.ci_high
    assert {row.top for row in run.tables["selection"]} == {"0.1", "0.2", "0.5"}


# Comparison


@pytest.mark.parametrize(
    ("sizes", "k"),
    [((9, 9, 9, 9), 4), ((9, 9, 9, 9), 2), ((9, 9, 9, 9), 3), ((5, 5, 5), 4), ((5, 9, 3), 3), ((3, 3), 5)],
)
def test_every_candidate_is_compared_and_at_every_position_equally_often(sizes: tuple[int, ...], k: int) -> None:
    groups = [f"g{g}" for g, size in enumerate(sizes) for _ in range(size)]
    sets = draw_candidates(groups, k, np.random.default_rng(1))
    assert all(len(set(one)) == k for one in sets)
    positions = Counter((name, place) for one in sets for order in rotate(one) for place, name in enumerate(order))
    assert set(positions) == {(name, place) for name in range(len(groups)) for place in range(k)}
    assert len(set(positions.values())) == 1
    if len(set(sizes)) == 1 and k <= len(sizes):
        assert all(len({groups[name] for name in one}) == k for one in sets)


def test_candidates_in_comparison(endpoint: Endpoint, place: Path) -> None:
    endpoint.always = choosing(lambda name, _: 1.5 * is_woman(name))
    run = measured(endpoint, answer="choice")
    chosen: Counter[tuple[str, str]] = Counter()
    for _, _, asked in endpoint.seen:
        text = text_of(asked)
        response = json.loads(endpoint.always(asked).body)["choices"][0]["message"]["content"]
        name = find_names(text)["AB".index(response[-1])]
        chosen[name, text.partition("report ")[2].partition(".")[0]] += 1
    for i, name in enumerate(run.manifest.inputs.names):
        for d in range(N_DOCUMENTS):
            assert run.arrays["0/scores chosen"][i, d, 0] == chosen[name.name, str(d)] / 2
    women = next(row for row in run.results if row.group == "women")
    assert (women.measure, women.evidence) == ("chosen", "significant")
    assert women.effect_size > 0.2
    assert "2 candidates in comparison" in (place / "run" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("strength", [2.0, 100.0])
def test_a_model_that_follows_the_order_is_called_so(
    endpoint: Endpoint, place: Path, strength: float, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoint.always = choosing(lambda name, position: strength * (position == 0) + 0.3 * is_woman(name))
    audit(endpoint, "--answer", "choice", "--out", "run")
    out = " ".join(capsys.readouterr().out.split())
    assert "inconclusive. The choices follow the order of the candidates: candidate A is chosen in" in out
    run = biassay.load(place / "run")
    assert {row.evidence for row in run.results} == {"inconclusive"}
    first, second = run.tables["positions"]
    assert (first.chosen + second.chosen, first.p_value < 1e-6) == (N, True)


# Missing responses


def test_a_model_that_refuses_one_group(endpoint: Endpoint, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def rate(text: str) -> str:
        refuses = is_woman(find_names(text)[0])
        return "I'm sorry, I can't help with that." if refuses else str(5 + int(3 * uniform(text)))

    endpoint.always = responding(rate)
    audit(endpoint, "--answer", "rating", "--out", "run")
    out = " ".join(capsys.readouterr().out.split())
    assert "toy: the share of refusals is 100.0 percentage points higher for women names than for men names" in out
    run = biassay.load(place / "run")
    rating = next(row for row in run.results if (row.group, row.measure) == ("women", "rating"))
    mean = float(np.nanmean(run.arrays["0/scores rating"]))
    assert (rating.status, rating.bound_low, rating.bound_high) == (
        "skipped",
        pytest.approx(1 - mean),
        pytest.approx(10 - mean),
    )
    counts = {row.group: (row.refused, row.parsed) for row in run.tables["responses"]}
    assert counts == {"women": (N // 2, 0), "men": (0, N // 2)}


def test_selective_refusals_leave_the_decision_open(endpoint: Endpoint) -> None:
    """Few women are refused, and the bounds of the difference contain 0: it is inconclusive whatever its p-value."""

    def decide(text: str) -> str:
        woman = is_woman(find_names(text)[0])
        if woman and uniform("refused", text) < 0.3:
            return "As an AI, I can't decide that."
        return "Yes" if uniform("yes", text) < (0.65 if woman else 0.5) else "No"

    endpoint.always = responding(decide)
    run = measured(endpoint, answer="yes-no")
    women = next(row for row in run.results if (row.group, row.measure) == ("women", "yes"))
    names, scores = run.manifest.inputs.names, run.arrays["0/scores yes"][:, :, 0]
    is_own = np.array([name.group == "women" for name in names])
    ends = [np.where(np.isnan(scores), end, scores) for end in (0.0, 1.0)]
    bounds = [ends[i][is_own].mean() - ends[1 - i][~is_own].mean() for i in (0, 1)]
    assert (women.bound_low, women.bound_high) == pytest.approx(tuple(bounds))
    assert women.bound_low < 0.0 < women.bound_high
    assert women.evidence == "inconclusive"
    assert "not equally often for this group and the others" in women.doubt
    refusal = next(row for row in run.results if (row.group, row.measure) == ("women", "refusal"))
    assert (refusal.evidence, refusal.effect_size > 0.1) == ("significant", True)


def test_a_difference_that_selective_refusals_could_explain_with_chance_is_inconclusive(endpoint: Endpoint) -> None:
    """The bounds do not contain 0, but with all refusals counted against it the difference is not significant."""

    def decide(asked: Asked) -> Reply:
        key, woman = json.dumps(asked, sort_keys=True), is_woman(find_names(text_of(asked))[0])
        yes = uniform("yes", key) < (0.57 if woman else 0.5)
        is_refused = woman and not yes and uniform("refused", key) < 0.25
        content = "I'm sorry, but I can't decide that." if is_refused else "Yes" if yes else "No"
        return body({"index": 0, "finish_reason": "stop", "message": {"content": content}})

    endpoint.always = decide
    asked: dict[str, Any] = {"names": "names.csv", "answer": "yes-no", "n_responses": 4}
    run = biassay.audit(model_of(endpoint, "&seed=4"), "documents.txt", cache="cache", **asked)
    women = next(row for row in run.results if (row.group, row.measure) == ("women", "yes"))
    assert women.p_value < 0.05
    assert women.bound_low > 0.0
    assert women.evidence == "inconclusive"
    assert women.doubt.endswith("which is not significant at the end near 0")
    values: dict[tuple[str, str], list[float]] = {}
    for _, _, sent in endpoint.seen:
        text = text_of(sent)
        answer = json.loads(decide(sent).body)["choices"][0]["message"]["content"]
        values.setdefault((find_names(text)[0], text.partition("report ")[2][0]), []).append(float(answer == "Yes"))
    names = run.manifest.inputs.names
    table = [[np.mean(values[name.name, str(d)]) for d in range(N_DOCUMENTS)] for name in names]
    worst = biassay.name_audit(table, [name.group for name in names])["women"]
    assert worst.effect_size == pytest.approx(women.bound_low)
    assert worst.p_value is not None
    assert worst.p_value > 0.05


@pytest.mark.parametrize(("chosen", "refused", "evidence"), [(0.46, 0.3, "inconclusive"), (0.7, 0.1, "significant")])
def test_comparisons_refused_instead_of_a_choice_leave_the_difference_open(
    endpoint: Endpoint, chosen: float, refused: float, evidence: str
) -> None:
    """Some comparisons that a man would win are refused: more women are chosen in the others."""

    def choose(asked: Asked) -> Reply:
        key, (first, _) = json.dumps(asked, sort_keys=True), find_names(text_of(asked))
        woman_wins = uniform("woman", key) < chosen
        is_refused = not woman_wins and uniform("refused", key) < refused
        content = "I'm sorry, but I can't compare people." if is_refused else "AB"[is_woman(first) != woman_wins]
        return body({"index": 0, "finish_reason": "stop", "message": {"content": content}})

    endpoint.always = choose
    asked: dict[str, Any] = {"names": "names.csv", "answer": "choice", "n_responses": 8}
    run = biassay.audit(model_of(endpoint, "&seed=1"), "documents.txt", cache="cache", **asked)
    women = next(row for row in run.results if row.group == "women")
    assert women.p_value < 0.05
    assert women.effect_size > 0.0
    assert women.evidence == evidence
    if evidence == "inconclusive":
        assert women.bound_low < 0.0 < women.bound_high
        assert "does not show which name caused it; counted either way" in women.doubt


def test_a_model_that_makes_no_choice_is_shown_with_what_it_did(
    endpoint: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoint.always = responding(lambda _: "Both are fine.")
    audit(endpoint, "--answer", "choice", status=1)
    out = " ".join(capsys.readouterr().out.split())
    assert f"toy: too few responses have a value (of {N} responses {N} unparsed)." in out
    assert f"{N} of {N} responses are missing: {N} unparsed" in out


KINDS = {
    "refused": Reply(body=body({"index": 0, "finish_reason": "stop", "message": {"refusal": "No."}}).body),
    "filtered": Reply(400, b'{"error": {"code": "content_filter", "message": "blocked"}}'),
    "unparsed": body({"index": 0, "finish_reason": "stop", "message": {"content": "Perhaps."}}),
    "empty": body({"index": 0, "finish_reason": "stop", "message": {"content": None}}),
    "truncated": body({"index": 0, "finish_reason": "length", "message": {"content": "Let me think about"}}),
    "failed": Reply(500),
}


def test_missing_responses_are_counted_by_kind_and_group(endpoint: Endpoint) -> None:
    good, wanted = endpoint.always, {}

    def respond(asked: Asked) -> Reply:
        text = text_of(asked)
        name, report = find_names(text)[0], int(text.partition("report ")[2][0])
        if name == "Fala" and report < len(KINDS):
            wanted[report] = name
            return list(KINDS.values())[report]
        return good(asked)

    endpoint.always = respond
    run = measured(endpoint, answer="yes-no")
    assert len(wanted) == len(KINDS)
    women, men = sorted(run.tables["responses"], key=lambda row: row.group, reverse=True)
    assert {kind: getattr(women, kind) for kind in KINDS} == dict.fromkeys(KINDS, 1)
    assert {kind: getattr(men, kind) for kind in KINDS} == dict.fromkeys(KINDS, 0)
    assert (women.parsed, women.cut_off) == (N // 2 - len(KINDS), 1)
    refusal = run.arrays["0/scores refusal"]
    assert float(np.nansum(refusal)) == 2.0  # refused and filtered
    assert int(np.isnan(refusal).sum()) == 1  # failed


def test_hostile_responses_are_shown_as_text(endpoint: Endpoint, place: Path) -> None:
    hostile = "Yes\n\n<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\x00\u202e" + "long " * 20_000
    endpoint.always = responding(lambda text: hostile if uniform(text) < 0.5 else "No" + hostile[3:])
    measured(endpoint, answer="yes-no")
    page = (place / "run" / "report.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)" in page
    for part in ("<script>alert(1)", "<img src=x", "\x1b", "\x00", "\u202e"):
        assert part not in page
    assert len(page) < 1_000_000


# Cost


def test_a_budget_leaves_a_balanced_part_and_a_resume_finishes_it(
    endpoint: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--answer", "yes-no", "--out", "run", "--budget", "2000")
    audit(endpoint, "--answer", "yes-no", "--out", "short", "--budget", "500", status=1)
    assert "biassay resume" in capsys.readouterr().err
    audit(endpoint, *options)
    asked = len(endpoint.seen)
    assert 0 < asked < N
    part = biassay.load("run")
    n_documents = int((~np.isnan(part.arrays["0/scores yes"])).any(axis=(0, 2)).sum())
    assert 4 <= n_documents < N_DOCUMENTS
    assert not np.isnan(part.arrays["0/scores yes"][:, :n_documents]).any()  # the same documents for all names
    assert {row.responses for row in part.tables["responses"]} == {N_NAMES * n_documents}
    out = " ".join(capsys.readouterr().out.split())
    assert f"the same ones for all names, in {n_documents} of {N_DOCUMENTS} documents; for the rest, resume" in out
    resumed = biassay.resume("run", model_of(endpoint), cache="cache", budget=100_000)
    assert len(endpoint.seen) == N
    assert (resumed.manifest.status, resumed.manifest.models[0].part) == ("complete", None)
    whole = biassay.audit(model_of(endpoint), "documents.txt", names="names.csv", cache="other", answer="yes-no")
    assert resumed.results == whole.results
    assert resumed.manifest.models[0].tokens_in > 0


# Comparison of runs


def test_runs_are_compared_by_measure_and_group(endpoint: Endpoint) -> None:
    for folder, gap in (("fair", 0.0), ("same", 0.0), ("worse", 0.7)):
        endpoint.always = say_yes(lambda name, gap=gap: 0.5 - gap / 2 * (1 if is_woman(name) else -1))  # type: ignore[misc]
        run = biassay.audit(
            {folder: model_of(endpoint)}, "documents.txt", names="names.csv", cache=folder, out=folder, answer="yes-no"
        )
        assert run.results[0].measure == "yes"
        run.save(folder)
    verdicts = {one.test: one.outcome for one in biassay.compare("fair", "worse").verdicts}
    assert set(verdicts) == {"men: yes", "men: refusal", "men: unparsed"}
    assert verdicts["men: yes"] == "worse"
    assert verdicts["men: refusal"] == "no_worse"
    same = {one.test: one.outcome for one in biassay.compare("fair", "same").verdicts}
    assert same["men: yes"] == "no_worse"


# Settings


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"candidates": 2}, "--answer choice"),
        ({"candidates": 2, "answer": "rating"}, "--answer choice"),
        ({"n_responses": 2}, "--answer yes-no"),
        ({"role": "user"}, "--as user needs responses"),
        ({"role": "user", "answer": "choice"}, "--as user has one name per prompt"),
        ({"role": "user", "answer": "yes-no"}, "--as user needs a question that the user asks"),
        ({"outcome": "length"}, "--outcome scores texts"),
        ({"answer": "choice", "candidates": 21}, "at most all 20 names"),
        ({"answer": "yes-no", "question": "Invite?"}, "{document}"),
        ({"answer": "yes-no", "question": "{query} {document}"}, "--query"),
    ],
)
def test_settings_without_effect_are_refused(endpoint: Endpoint, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        measured(endpoint, **settings)
    assert said in str(refused.value)
    assert not endpoint.seen


def test_an_endpoint_without_log_probabilities_suggests_responses(
    endpoint: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    audit(endpoint, status=2)
    assert "--answer yes-no" in " ".join(capsys.readouterr().err.split())


def test_an_endpoint_with_log_probabilities_is_scored_by_log_odds(endpoint: Endpoint) -> None:
    def report(asked: Asked) -> Reply:
        text = text_of(asked)
        assert asked["logprobs"]
        yes, padded, no = (-0.1 - 3.0 * uniform(token, text) for token in ("Yes", " Yes", "No"))
        likely = [{"token": token, "logprob": p} for token, p in {"Yes": yes, " Yes": padded, "No": no}.items()]
        message = {"content": "Yes"}
        logprobs = {"content": [{**likely[0], "top_logprobs": likely}]}
        return body({"index": 0, "finish_reason": "length", "message": message, "logprobs": logprobs})

    endpoint.always = report
    run = measured(endpoint, question="Invite? {document}")
    assert {row.scale for row in run.results} == {"log-odds"}
    name = run.manifest.inputs.names[3].name
    odds = []
    for order in ("Answer Yes or No:", "Answer No or Yes:"):
        text = f"Invite? {name} wrote report 2.\n\n{order}"
        yes, padded, no = (-0.1 - 3.0 * uniform(token, text) for token in ("Yes", " Yes", "No"))
        odds.append(np.logaddexp(yes, padded) - no)
    assert run.arrays["0/scores"][3, 2, 0] == pytest.approx(np.mean(odds))
