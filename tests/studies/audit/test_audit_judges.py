"""Texts that a second model judges: planted differences, bias of the judge, human labels, faults."""

from __future__ import annotations

import dataclasses
import html
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.models import api_server
from tests.models.api_server import Endpoint
from tests.studies.audit import deciding
from tests.studies.audit.deciding import find_names, is_woman, model_of, text_of, uniform
from tests.studies.audit.judging import count_praise, format_judge, rate_by, serve, write_gendered
from tests.studies.audit.letters import REFUSAL
from tests.survey import people
from tests.survey.people import Person, fill

import biassay
from biassay.cli import main
from biassay.cli.survey import open_store
from biassay.errors import UsageError
from biassay.models.openai import client
from biassay.survey.app import make_app
from biassay.survey.database import participants_table
from biassay.survey.study import read_study

pytestmark = pytest.mark.extras

no_key = api_server.no_key
N_NAMES, N_RESPONSES = 8, 2
N = 2 * N_NAMES * 8 * N_RESPONSES


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setattr(client, "_FIRST_BACKOFF", 0.001)
    for server in api_server.endpoint.__wrapped__():  # type: ignore[attr-defined]
        serve(server, write_gendered, rate_by(count_praise))
        yield server


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    deciding.write_material(tmp_path, N_NAMES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def measured(server: Endpoint, folder: str | None = "run", outcome: Any = "judge:warmth", **settings: Any) -> Any:
    settings = {
        "prompts": "recommendation-letter",
        "n_responses": N_RESPONSES,
        "judge": format_judge(server),
        "outcome": outcome,
        **settings,
    }
    return biassay.audit(model_of(server, "&seed=1"), names="names.csv", cache="cache", out=folder, **settings)


def command(*arguments: str, status: int = 0) -> None:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert (ended.value.code or 0) == status


def result(run: biassay.Run, measure: str = "judge:warmth", group: str = "women") -> Any:
    return next(row for row in run.results if (row.group, row.measure) == (group, measure))


def list_judge_prompts(server: Endpoint) -> list[str]:
    return [text_of(asked) for _, _, asked in server.seen if asked["model"] == "judge"]


def test_a_judge_rates_every_text_without_names(endpoint: Endpoint) -> None:
    serve(endpoint, lambda name, key: write_gendered(name, key, women=2.0), rate_by(count_praise))
    run = measured(endpoint)
    prompts = list_judge_prompts(endpoint)
    assert len(prompts) == len(set(prompts)) == N
    assert not any(find_names(prompt) for prompt in prompts)
    ratings: dict[str, list[int]] = {}
    for row in run.tables["texts"]:
        ratings.setdefault(row.name, []).append(count_praise(row.text))
    women, men = ([np.mean(own) for name, own in ratings.items() if is_woman(name) == side] for side in (True, False))
    found = result(run)
    assert found.effect_size == pytest.approx(np.mean(women) - np.mean(men))
    assert (found.evidence, found.scale) == ("significant", "points")
    assert "judged by chat:judge, not checked against human ratings" in found.warnings
    counts = {row.group: (row.judgements, row.scored, row.n_labels) for row in run.tables["judges"]}
    assert counts == dict.fromkeys(("women", "men"), (N // 2, N // 2, 0))
    page = Path("run/report.html").read_text(encoding="utf-8")
    assert "not checked against human ratings" in page


def test_judgements_are_cached_like_responses(endpoint: Endpoint) -> None:
    measured(endpoint)
    endpoint.seen.clear()
    measured(endpoint, "again", outcome=["judge:warmth", "length"])
    assert not endpoint.seen
    measured(endpoint, "other", outcome="judge:competence")
    assert len(list_judge_prompts(endpoint)) == len(endpoint.seen) == N


def test_pairs_are_compared_in_both_orders(endpoint: Endpoint) -> None:
    serve(endpoint, lambda name, key: write_gendered(name, key, women=2.0), rate_by(count_praise))
    run = measured(endpoint, outcome="compare:warmth")
    prompts = list_judge_prompts(endpoint)
    bodies = [tuple(prompt.partition("\n</text A>")[::2]) for prompt in prompts]
    pairs = [
        (first.partition("<text A>\n")[2], rest.partition("<text B>\n")[2].partition("\n</text B>")[0])
        for first, rest in bodies
    ]
    assert len(prompts) == N
    assert {pair[::-1] for pair in pairs} == set(pairs)
    assert all(("She is" in first) != ("She is" in second) for first, second in pairs)
    found = result(run, "compare:warmth")
    assert (found.evidence, found.scale) == ("significant", "share")
    assert found.effect_size < -0.1
    means = [result(run, "compare:warmth", group).mean for group in ("women", "men")]
    assert sum(means) == pytest.approx(1.0)


def test_a_judge_that_follows_the_order_decides_nothing(endpoint: Endpoint) -> None:
    serve(endpoint, lambda name, key: write_gendered(name, key, women=1.0), lambda _: "A")
    found = result(measured(endpoint, None, "compare:warmth", n_responses=1), "compare:warmth")
    assert found.evidence == "inconclusive"
    assert found.effect_size == 0.0
    assert found.doubt == "the judge follows the order of the texts: one position is chosen in 100% of comparisons"


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (lambda _: "I'm sorry, but I can't rate people.", "refused"),
        (lambda prompt: prompt, "repeated"),
        (lambda _: "It is rather warm.", "unreadable"),
    ],
)
def test_a_judge_without_a_score_is_counted_and_not_guessed(endpoint: Endpoint, response: Any, kind: str) -> None:
    serve(
        endpoint, write_gendered, lambda prompt: response(prompt) if "She" in prompt else rate_by(count_praise)(prompt)
    )
    run = measured(endpoint, None, n_responses=1)
    women, men = (next(row for row in run.tables["judges"] if row.group == group) for group in ("women", "men"))
    assert (women.scored, getattr(women, kind)) == (0, N // 4)
    assert (men.scored, getattr(men, kind)) == (N // 4, 0)
    found = result(run)
    assert found.effect_size is None
    assert "too few responses" in found.record.reason


def rate_as_people(run: biassay.Run, folder: Path, per_name: int = 6, seed: int = 0) -> Path:
    """Label random responses of every name as the toy's people do, and write them as a survey exports them."""
    rng = np.random.default_rng(seed)
    by_name: dict[str, list[Any]] = {}
    for row in run.tables["texts"]:
        by_name.setdefault(row.name, []).append(row)
    chosen = [rows[i] for rows in by_name.values() for i in rng.choice(len(rows), per_name, replace=False)]
    labels = {row.id: {"cold - warm": f"{100 * (count_praise(row.text) - 1) / 6}"} for row in chosen}
    path = folder / "ratings.json"
    path.write_text(json.dumps({"annotator0": labels}), encoding="utf-8")
    return path


def biased(text: str) -> int:
    """Judge letters about women one point lower than people do."""
    return max(count_praise(text) - ("She is" in text), 1)


def test_labels_correct_a_biased_judge(endpoint: Endpoint, place: Path) -> None:
    serve(endpoint, write_gendered, rate_by(biased))
    run = measured(endpoint)
    assert result(run).evidence == "significant"
    run = measured(endpoint, "checked", human=rate_as_people(run, place))
    found = result(run)
    assert found.evidence == "inconclusive"
    assert found.uncorrected_effect_size == pytest.approx(result(biassay.load("run")).effect_size)
    assert found.ci_low < 0.0 < found.ci_high
    assert not any("not checked" in one for one in found.warnings)
    texts = run.tables["texts"]
    names = [name.full_name for name in run.manifest.inputs.names]
    judge, human = np.full((2, len(names), 8, N_RESPONSES), np.nan)
    labels = json.loads((place / "ratings.json").read_text())["annotator0"]
    for row in texts:
        where = names.index(row.name), int(row.document) - 1, row.sample
        judge[where] = biased(row.text)
        if row.id in labels:
            human[where] = 1 + 6 * float(labels[row.id]["cold - warm"]) / 100
    expected = biassay.judged_audit(judge, human, [name.group for name in run.manifest.inputs.names])
    contrast = expected.corrected["women"]
    assert (found.effect_size, found.ci_low) == pytest.approx((contrast.effect_size, contrast.ci_low))
    for row in run.tables["judges"]:
        agreement = expected.agreement[row.group]
        assert (row.n_labels, row.judge_mean, row.tau) == pytest.approx((48, agreement.judge_mean, agreement.tau))
    page = (place / "checked" / "report.html").read_text(encoding="utf-8")
    assert "corrected by 96 human labels" in page


def rate_by_reading(store: Any) -> Any:
    """Rate the text of a page as the toy's people do."""
    return lambda id, _: [round(100 * (count_praise(store.study.responses[id]) - 1) / 6)] * len(store.study.pairs)


def test_people_rate_a_blind_random_sample_and_correct_the_judge(endpoint: Endpoint, place: Path) -> None:
    serve(
        endpoint,
        lambda name, key: f'{write_gendered(name, key)} <b>{name}</b> & "{name}".\u202e\x1b[1m',
        rate_by(biased),
    )
    run = measured(endpoint)
    command("survey", "new", "study.toml", "--responses", "run", "--labels", "100")
    content = (place / "study.toml").read_text(encoding="utf-8")
    assert not find_names(content)
    study = read_study(place / "study.toml")
    owners = {row.id: row.name for row in run.tables["texts"]}
    assert Counter(owners[id] for id in study.responses) == dict.fromkeys(owners.values(), 6)
    assert study.pairs == (("cold", "warm"),)
    store = open_store("study.toml", None, new=True)
    fill(store, Person(said=rate_by_reading(store)))
    (first, *_) = people.rows(store, participants_table)
    reader = dataclasses.replace(store.find(first["id"]), step=1)
    page = make_app(store, token=None).state.site.pages.step(reader, store.steps, "").body.decode()
    assert html.escape(study.responses[reader.asked[0]], quote=False).replace('"', "&#34;") in page
    assert not any(part in page for part in ("<b>", "\u202e", "\x1b"))
    assert reader.asked[0] not in page
    command("survey", "check", "study.toml")
    command("survey", "export", "study.toml", "--out", "labels")
    found = result(measured(endpoint, "checked", human="labels/ratings.json"))
    assert found.ci_low < 0.0 < found.ci_high
    assert found.uncorrected_ci_high < 0.0
    assert sum(row.n_labels for row in biassay.load("checked").tables["judges"]) == 96


def test_a_name_with_few_texts_leaves_the_sample_of_the_others(endpoint: Endpoint, place: Path) -> None:
    def write(name: str, key: str) -> str:
        refuses = name == "Fala" or (name == "Maro" and uniform("refuse", key) < 0.8)
        return REFUSAL if refuses else write_gendered(name, key)

    serve(endpoint, write, rate_by(count_praise))
    run = measured(endpoint)
    command("survey", "new", "study.toml", "--responses", "run", "--labels", "96")
    owners = {row.id: row.name for row in run.tables["texts"]}
    drawn = Counter(owners[id] for id in read_study(place / "study.toml").responses)
    few = sum(row.name == "Maro" and row.kind == "parsed" for row in run.tables["texts"])
    assert 0 < few < 6
    assert drawn == Counter({**dict.fromkeys(owners.values(), 6), "Maro": few, "Fala": 0})


def test_labels_of_other_responses_are_an_error(endpoint: Endpoint, place: Path) -> None:
    labels = rate_as_people(measured(endpoint), place)
    content = json.loads(labels.read_text())
    content["annotator0"]["0123456789ab"] = {"cold - warm": "50"}
    labels.write_text(json.dumps(content))
    with pytest.raises(UsageError, match="1 of 97 labelled responses are not in this run, such as 0123456789ab"):
        measured(endpoint, "checked", human=labels)


def leave_out_labels(path: Path, run: biassay.Run, n: int) -> set[str]:
    """Remove the labels of n names from a file, and return their responses."""
    names = list(dict.fromkeys(row.name for row in run.tables["texts"]))[:n]
    without = {row.id for row in run.tables["texts"] if row.name in names}
    content = json.loads(path.read_text())
    content["annotator0"] = {id: row for id, row in content["annotator0"].items() if id not in without}
    path.write_text(json.dumps(content))
    return without


def test_a_name_without_labels_is_left_out(endpoint: Endpoint, place: Path) -> None:
    serve(endpoint, write_gendered, rate_by(biased))
    run = measured(endpoint)
    labels = rate_as_people(run, place)
    without = leave_out_labels(labels, run, 1)
    found = measured(endpoint, "checked", human=labels)
    assert f"of {N} responses {len(without)} name without labels" in result(found).warnings
    known = json.loads(labels.read_text())["annotator0"]
    names = [name for name in found.manifest.inputs.names if name.full_name != run.tables["texts"][0].name]
    judge, human = np.full((2, len(names), 8, N_RESPONSES), np.nan)
    for row in found.tables["texts"]:
        if row.id not in without:
            where = [name.full_name for name in names].index(row.name), int(row.document) - 1, row.sample
            judge[where] = biased(row.text)
            human[where] = 1 + 6 * float(known[row.id]["cold - warm"]) / 100 if row.id in known else np.nan
    expected = biassay.judged_audit(judge, human, [name.group for name in names]).corrected["women"]
    assert (result(found).effect_size, result(found).ci_low) == pytest.approx((expected.effect_size, expected.ci_low))


def test_many_names_without_labels_are_an_error(endpoint: Endpoint, place: Path) -> None:
    run = measured(endpoint)
    labels = rate_as_people(run, place)
    leave_out_labels(labels, run, 4)
    first = run.tables["texts"][0].name
    with pytest.raises(UsageError, match=rf"4 of 16 names have no labelled .*, such as {first}; label at least one"):
        measured(endpoint, "checked", human=labels)


def test_labels_of_another_rubric_are_an_error(endpoint: Endpoint, place: Path) -> None:
    labels = rate_as_people(measured(endpoint), place)
    with pytest.raises(biassay.BiassayError, match="cold - warm"):
        measured(endpoint, "checked", human=labels, outcome="judge:competence")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"judge": None}, "--outcome judge:warmth needs a model that judges texts; name it with --judge MODEL"),
        ({"outcome": "length"}, "--judge scores no outcome"),
        ({"outcome": "compare:warmth", "human": "names.csv"}, "--human corrects the ratings of a judge"),
        ({"outcome": "judge:warmht"}, "did you mean 'warmth'"),
        ({"judge": "chatt:x"}, "chatt"),
    ],
)
def test_settings_of_judges_that_cannot_work(endpoint: Endpoint, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(biassay.BiassayError, match=said):
        measured(endpoint, None, **settings)
    assert not endpoint.seen


def test_a_budget_that_ends_while_judging_leaves_a_balanced_part(endpoint: Endpoint) -> None:
    settings: dict[str, Any] = {"outcome": ["judge:warmth", "judge:competence"], "n_responses": 1}
    run = measured(endpoint, budget=75_000, **settings)
    n_judged = len(list_judge_prompts(endpoint))
    assert N // 2 < n_judged < N
    texts = run.tables["texts"]
    by_name = Counter(row.name for row in texts)
    (n_prompts,) = set(by_name.values())
    assert len(by_name) == 2 * N_NAMES
    assert 4 <= n_prompts < 8
    assert n_prompts == n_judged // (2 * 2 * N_NAMES)  # a prompt is judged by both rubrics before the next one
    assert len({row.document for row in texts}) == n_prompts
    assert {row.judgements for row in run.tables["judges"]} == {n_prompts * N_NAMES}
    part = f"the budget allowed {len(texts)} of {N // 2} judged responses, the same ones for all names"
    assert part in " ".join(Path("run/report.html").read_text(encoding="utf-8").split())
    models = [model_of(endpoint, "&seed=1"), format_judge(endpoint)]
    whole = biassay.resume("run", models, cache="cache", budget=10**7)
    assert len(whole.tables["texts"]) == N // 2
    assert len(list_judge_prompts(endpoint)) == N


def test_a_judge_is_never_taken_from_a_run_folder(endpoint: Endpoint, capsys: pytest.CaptureFixture[str]) -> None:
    model, judge = model_of(endpoint, "&seed=1"), format_judge(endpoint)
    given = ["audit", model, "--prompts", "recommendation-letter", "--names", "names.csv", "--n-responses", "1"]
    given += ["--outcome", "judge:warmth", "--judge", judge, "--cache", "cache"]
    command(*given, "--out", "run", "--budget", "40000", status=1)
    assert f"--model '{judge}'" in capsys.readouterr().err
    asked = len(endpoint.seen)
    assert N // 2 < asked < N  # all letters, and some judgements
    command("resume", "run", "--model", model, "--cache", "cache", "--budget", "1000000", status=2)
    said = " ".join(capsys.readouterr().err.split())
    assert "This is never taken from a run folder. To allow it, add the judge to the models: --model" in said
    assert len(endpoint.seen) == asked
    command("resume", "run", "--model", model, "--model", judge, "--cache", "cache", "--budget", "1000000")
    assert len(endpoint.seen) == N
    assert {row.measure: row.status for row in biassay.load("run").results}["judge:warmth"] == "measured"


@pytest.mark.slow
def test_killed_while_judging_no_more_is_asked_twice_than_was_under_way(endpoint: Endpoint) -> None:
    endpoint.hold = 0.005
    model, judge = model_of(endpoint, "&seed=1"), format_judge(endpoint)
    given = ["audit", model, "--prompts", "recommendation-letter", "--names", "names.csv", "--n-responses", "1"]
    given += ["--outcome", "judge:warmth", "--judge", judge, "--cache", "cache", "--quiet"]
    process = subprocess.Popen(
        [sys.executable, "-m", "biassay", *given, "--out", "run"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=dict(os.environ),
    )
    while process.poll() is None and len(list_judge_prompts(endpoint)) < N // 6:
        time.sleep(0.0005)
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    while endpoint.active:
        time.sleep(0.005)
    command(*given, "--out", "again")
    times = Counter(json.dumps(asked, sort_keys=True) for _, _, asked in endpoint.seen)
    assert len(times) == N  # letters and judgements
    assert times.total() - N <= 8  # connections


def test_comparisons_without_an_answer_are_counted_once_and_called_inconclusive(
    endpoint: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    serve(
        endpoint,
        lambda name, key: REFUSAL if uniform("refuse", key) < 0.1 else write_gendered(name, key),
        lambda _: "Both are fine.",
    )
    given = ["--prompts", "recommendation-letter", "--names", "names.csv", "--n-responses", "1", "--cache", "cache"]
    command("audit", model_of(endpoint), *given, "--outcome", "compare:warmth", "--judge", format_judge(endpoint))
    out = " ".join(capsys.readouterr().out.split())
    assert "toy: inconclusive. Compare:warmth: too few responses" in out
    assert "; the judge is not checked against human ratings." in out
    n = len(list_judge_prompts(endpoint))
    assert f"{n} judgements: {n} unreadable." in out
