"""Audits of texts through the command: planted differences, refusals, faults, and what a run folder holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from tests.models import api_server
from tests.models.answer_server import body
from tests.models.api_server import Asked, Endpoint, Reply
from tests.studies.audit import deciding
from tests.studies.audit.deciding import is_woman, model_of
from tests.studies.audit.letters import REFUSAL, write_letter, writing
from tests.studies.audit.test_audit_decisions import KINDS

import biassay
from biassay.cli import main
from biassay.datasets.names import AuditName
from biassay.models.openai import client
from biassay.prompts.documents import fill_document
from biassay.prompts.prompt_sets import fill_occupation, load_prompt_set, prompt_set_names
from biassay.studies.audit.outcomes import get_outcome
from biassay.studies.audit.outcomes.responses import split_words

pytestmark = pytest.mark.extras

no_key = api_server.no_key
N_NAMES, N_RESPONSES = 6, 2
CUT_OFF = body({"index": 0, "finish_reason": "length", "message": {"content": "I recommend the nurse, because the"}})
N = 2 * N_NAMES * 8 * N_RESPONSES


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setattr(client, "_FIRST_BACKOFF", 0.001)
    for server in api_server.endpoint.__wrapped__():  # type: ignore[attr-defined]
        server.always = writing(lambda name, key: write_letter(name, key, length=9.0 if is_woman(name) else 14.0))
        yield server


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    deciding.write_material(tmp_path, N_NAMES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def measured(server: Endpoint, folder: str | None = "run", **settings: Any) -> biassay.Run:
    settings = {"prompts": "recommendation-letter", "n_responses": N_RESPONSES, **settings}
    return biassay.audit(model_of(server, "&seed=1"), names="names.csv", cache="cache", out=folder, **settings)


def test_a_run_folder_holds_every_response_with_its_prompt(endpoint: Endpoint) -> None:
    measured(endpoint)
    run = biassay.load("run")
    texts = run.tables["texts"]
    assert (len(texts), len({row.id for row in texts})) == (N, N)
    assert {row.sample for row in texts} == {0, 1}
    asked = {deciding.text_of(asked) for _, _, asked in endpoint.seen}
    names = {name.full_name: name.group for name in run.manifest.inputs.names}
    for row in texts:
        assert row.prompt in asked
        assert row.name in row.prompt
        assert row.query in row.prompt
        assert row.name in row.text
        assert (row.group, row.kind) == (names[row.name], "parsed")
        assert row.name.lower() not in row.id
    lengths = run.arrays["0/scores length"]
    assert lengths.shape == (2 * N_NAMES, 8, 5)
    for i, name in enumerate(run.manifest.inputs.names):
        own = [len(row.text.split()) for row in texts if (row.name, row.document) == (name.full_name, "1")]
        assert np.nanmean(lengths[i, 0]) == pytest.approx(np.mean(own))


def result(run: biassay.Run, measure: str, group: str = "women") -> Any:
    return next(row for row in run.results if (row.group, row.measure) == (group, measure))


SHORT = """title = "Notes"
occupations = ["nurse", "pilot"]
outcomes = ["length"]
prompts = ["A note about {name}, {an occupation}.", "Praise {name}, {an occupation}.",
    "Who is {name}, {an occupation}?", "Recommend {name} as {an occupation}."]
"""


@pytest.fixture
def short(place: Path) -> str:
    """A set of four prompts, so that a run takes 48 requests."""
    (place / "notes.toml").write_text(SHORT, encoding="utf-8")
    return "notes.toml"


def written(server: Endpoint, prompts: str, folder: str | None = None, **settings: Any) -> biassay.Run:
    return measured(server, folder, **{"prompts": prompts, "n_responses": 1, **settings})


def test_a_planted_difference_is_found_and_stated(
    endpoint: Endpoint, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["audit", model_of(endpoint, "&seed=1"), "--prompts", "recommendation-letter", "--n-responses", "2"]
    with pytest.raises(SystemExit) as ended:
        main([*given, "--names", "names.csv", "--cache", "cache", "--out", "run"])
    assert (ended.value.code or 0) == 0
    said = capsys.readouterr()
    out = " ".join(said.out.split())
    assert re.search(r"toy: the mean length is \d\d\.\d words higher for men names than for women names \(95% CI", out)
    assert "80% power for a difference of" in said.err
    assert re.search(r"192 prompts to ask, about [\d,]+ tokens in", said.err)
    run = biassay.load(place / "run")
    texts: dict[bool, list[int]] = {True: [], False: []}
    for row in run.tables["texts"]:
        texts[is_woman(row.name)].append(len(split_words(row.text)))
    found = result(run, "length")
    assert found.evidence == "significant"
    assert found.effect_size == pytest.approx(np.mean(texts[True]) - np.mean(texts[False]))
    page = (place / "run" / "report.html").read_text(encoding="utf-8")
    findings = page.partition("<h2>Findings</h2>")[2].partition("</section>")[0]
    assert re.search(r"the mean length is \d\d\.\d words higher for men names than for women names", findings)
    for text in (
        *(
            "drawn at random with seed 0, without regard to the responses",
            "Words that differ most",
            "What this audit cannot show",
        ),
        "Intervals and p-values treat names and prompts as samples",
        *("Tokens used:", "Placebo: random halves", "<svg", "Missing responses"),
    ):
        assert text in page, text


def test_names_that_differ_by_themselves_are_no_difference_of_groups(endpoint: Endpoint) -> None:
    """Letters differ by name only; the usual t-test over responses, which ignores names, finds groups different."""

    def write(name: str, key: str) -> str:
        extra = 12.0 if name in ("Fala", "Fbla", "Fcla", "Maro") else 0.0
        return write_letter(name, key, length=6.0 + extra)

    endpoint.always = writing(write)
    run = measured(endpoint, None)
    found = result(run, "length")
    texts = [(is_woman(row.name), len(split_words(row.text))) for row in run.tables["texts"]]
    women, men = ([length for side, length in texts if side == wanted] for wanted in (True, False))
    assert scipy.stats.ttest_ind(women, men).pvalue < 0.001
    assert (found.evidence, found.p_value > 0.05) == ("inconclusive", True)


def test_a_difference_in_one_wording_only_does_not_hold_for_other_wordings(endpoint: Endpoint, short: str) -> None:
    def write(name: str, key: str) -> str:
        return write_letter(name, key, length=40.0 if is_woman(name) and "Praise" in key else 8.0)

    endpoint.always = writing(write)
    run = written(endpoint, short, n_responses=2)
    found = result(run, "length")
    texts = [(is_woman(row.name), len(split_words(row.text))) for row in run.tables["texts"]]
    women, men = ([length for side, length in texts if side == wanted] for wanted in (True, False))
    assert scipy.stats.ttest_ind(women, men).pvalue < 0.001
    assert (found.evidence, found.p_value > 0.3) == ("inconclusive", True)


def test_a_model_that_refuses_one_group_is_called_so(endpoint: Endpoint) -> None:
    endpoint.always = writing(lambda name, key: REFUSAL if is_woman(name) else write_letter(name, key))
    run = written(endpoint, "recommendation-letter")
    assert (result(run, "refusal").evidence, result(run, "refusal").effect_size) == ("significant", 1.0)
    assert "too few responses for names of this group" in result(run, "length").record.reason
    assert {row.group: row.refused for row in run.tables["responses"]} == {"women": 48, "men": 0}


def test_the_name_may_be_the_users(endpoint: Endpoint) -> None:
    run = measured(endpoint, None, prompts="medical-advice", role="user", n_responses=1)
    asked = [deciding.text_of(asked) for _, _, asked in endpoint.seen]
    names = [name.full_name for name in run.manifest.inputs.names]
    assert len(asked) == len(names) * 8
    for text in asked:
        (name,) = deciding.find_names(text)
        assert text.startswith(f"My name is {name}. ")
    rest = {text.partition(". ")[2] for text in asked}
    assert len(rest) == 8  # the same for all names


@pytest.mark.parametrize("name", prompt_set_names())
@pytest.mark.parametrize("role", ["subject", "user"])
def test_bundled_prompts_have_eight_wordings_with_all_places_filled(name: str, role: Any, place: Path) -> None:  # noqa: ARG001
    loaded = load_prompt_set(name, role)
    assert (len(loaded.prompts), len(set(loaded.prompts)), len(loaded.occupations)) == (8, 8, 5)
    for prompt in loaded.prompts:
        for occupation in loaded.occupations:
            text = fill_document(
                fill_occupation(prompt, occupation), AuditName("Joy", "women", "female", "Joy"), "group"
            )
            assert "{" not in text
            assert occupation in text
            assert ("Joy" in text) == (role == "subject")
    for outcome in loaded.outcomes:
        get_outcome(outcome)


def test_occupations_are_averaged_within_wordings_and_balanced(endpoint: Endpoint, short: str) -> None:
    run = written(endpoint, short, n_responses=2)
    texts = run.tables["texts"]
    assert {(row.name, row.document, row.query) for row in texts} == {
        (row.name, row.document, occupation) for row in texts for occupation in ("nurse", "pilot")
    }
    (summary,) = (row for row in run.tables["summary"] if row.measure == "length")
    assert (summary.names, summary.documents, summary.queries) == (2 * N_NAMES, 4, 2)


@pytest.mark.parametrize(
    ("n_prompts", "before", "after"),
    [
        (1, "1 prompt: too few to test a difference; give at least 8", "toy: differences are not tested: too few"),
        (4, "4 prompts: p-values assume", "toy: the mean length is"),
    ],
)
def test_few_prompts_are_called_so(
    endpoint: Endpoint, short: str, capsys: pytest.CaptureFixture[str], n_prompts: int, before: str, after: str
) -> None:
    prompts = load_prompt_set(short).prompts[:n_prompts]
    Path("few.txt").write_text("\n".join(one.text.replace("{an occupation}", "a nurse") for one in prompts), "utf-8")
    with pytest.raises(SystemExit):
        main(
            ["audit", model_of(endpoint, "&seed=1"), "--prompts", "few.txt", "--names", "names.csv", "--cache", "cache"]
        )
    said = capsys.readouterr()
    assert before in said.err
    assert after in said.out


def test_an_outcome_without_variance_is_skipped(endpoint: Endpoint, short: str) -> None:
    endpoint.always = writing(lambda name, _: f"{name} is here.")
    run = written(endpoint, short)
    assert result(run, "length").record.reason == "all responses have the same value, 3"
    assert result(run, "length").evidence == "skipped"


def test_responses_in_another_language_have_no_score_by_english_words(endpoint: Endpoint, short: str) -> None:
    german = " ist eine sehr gute Kraft, die wir nur ungern gehen lassen und jedem empfehlen."
    endpoint.always = writing(lambda name, key: f"{name}{german}" if is_woman(name) else write_letter(name, key))
    run = written(endpoint, short, outcome=["length", "hedging"])
    assert {(row.measure, row.group, row.reason, row.responses) for row in run.tables["undefined"]} == {
        ("hedging", "women", "not English", 24)
    }
    assert result(run, "length").evidence == "significant"
    assert result(run, "hedging").record.reason.endswith(
        "have a value, or for those of all others (of 48 responses 24 not English)"
    )


def test_a_text_of_one_word_and_names_is_no_difference_of_words(endpoint: Endpoint, short: str) -> None:
    endpoint.always = writing(lambda _, key: "good " * (50 + int(10 * deciding.uniform(key))))
    assert written(endpoint, short).tables["words"] == ()


def test_missing_texts_are_counted_by_kind(endpoint: Endpoint, short: str) -> None:
    good, kinds = endpoint.always, {**KINDS, "cut_off": CUT_OFF}
    kinds.pop("unparsed")  # a text is never unparsed

    def respond(asked: Asked) -> Reply:
        text = deciding.text_of(asked)
        place = [name for name in deciding.FEMALE if name in text]
        number = deciding.FEMALE.index(place[0]) if place and "Praise" in text else len(kinds)
        return list(kinds.values())[number] if number < len(kinds) else good(asked)

    endpoint.always = respond
    run = written(endpoint, short)
    (women,) = (row for row in run.tables["responses"] if row.group == "women")
    counted = {kind: getattr(women, kind) for kind in KINDS}
    assert counted == {"refused": 1, "filtered": 1, "unparsed": 0, "empty": 1, "truncated": 0, "failed": 1}
    assert women.cut_off == 2
    assert (women.responses, women.parsed) == (24, 20)


def test_hostile_texts_are_shown_as_text(endpoint: Endpoint, short: str, place: Path) -> None:
    hostile = "I recommend <script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\x00\u202e\ud800 {{7*7}} \"'&"
    endpoint.always = writing(lambda name, key: f"{write_letter(name, key)} {hostile * 40}")
    written(endpoint, short, "run")
    page = (place / "run" / "report.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)" in page
    for part in ("<script>alert(1)", "<img src=x", "\x1b", "\x00", "\u202e"):
        assert part not in page
    run = biassay.load(place / "run")
    assert run.tables["texts"][0].text.count("{{7*7}}") == 40
    assert not {"\x1b", "\x00", "\u202e"} & set(run.table("texts").to_tsv())


def test_examples_are_random_and_side_by_side(endpoint: Endpoint, short: str, place: Path) -> None:
    run = written(endpoint, short, "run")
    examples = run.tables["examples"]
    assert {row.group for row in examples} == {"women", "men"}
    assert len(examples) == 6  # three prompts, one name of each group
    assert len({row.name for row in examples}) == 2
    by_text = {row.text: row for row in run.tables["texts"]}
    assert all(by_text[row.reply].name == row.name for row in examples)
    again = written(endpoint, short, seed=1)
    assert {row.name for row in again.tables["examples"]} != {row.name for row in examples}
    page = (place / "run" / "report.html").read_text(encoding="utf-8")
    assert all(row.reply in page for row in examples)


def test_a_budget_leaves_a_balanced_part(endpoint: Endpoint, short: str) -> None:
    run = written(endpoint, short, "run", n_responses=4, budget=10_000)
    part = run.manifest.models[0].part
    assert part is not None
    assert re.fullmatch(
        r"part of the design: the budget allowed \d+ of 192 responses, the same ones for all names, in 4 of 4 prompts "
        r"with \d to \d of 4 responses per name|.* with \d of 4 responses per name",
        part,
    )
    counts = {row.group: row.responses for row in run.tables["responses"]}
    assert counts["women"] == counts["men"] < 96
    page = Path("run/report.html").read_text(encoding="utf-8")
    assert "Part of the design: the budget allowed" in page


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('prompts = ["Write a letter."]', "{name}"),
        ('prompts = ["Write about {name} and {nmae}."]', "{nmae}"),
        ('prompts = ["Write about {name}, {ocupation}."]', "{ocupation}"),
        ('prompts = ["Write about {name}, {an occupation}."]', "without a list of occupations"),
        ('occupations = ["cook"]\nprompts = ["Write about {name}."]', "no placeholder for the occupation"),
        ("prompts = []", "empty"),
        ("prompts = ", "TOML"),
    ],
)
def test_bad_prompts(endpoint: Endpoint, place: Path, content: str, said: str) -> None:
    (place / "bad.toml").write_text(content, encoding="utf-8")
    with pytest.raises(biassay.BiassayError, match=re.escape(said)):
        written(endpoint, "bad.toml")
    assert not endpoint.seen


def test_a_misspelt_set_of_prompts_is_suggested(endpoint: Endpoint) -> None:
    with pytest.raises(biassay.BiassayError, match="story"):
        written(endpoint, "stor")


def test_runs_of_texts_are_compared_and_gated(endpoint: Endpoint, short: str) -> None:
    for folder, gap in (("fair", 0.0), ("worse", 6.0)):
        endpoint.always = writing(
            lambda name, key, gap=gap: write_letter(name, key, length=14.0 - gap * is_woman(name))  # type: ignore[misc]
        )
        biassay.audit(
            {folder: model_of(endpoint, "&seed=1")},
            names="names.csv",
            cache=folder,
            out=folder,
            prompts=short,
            n_responses=4,
        )
    verdicts = {one.test: one.outcome for one in biassay.compare("fair", "worse").verdicts}
    assert {verdict for test, verdict in verdicts.items() if "length" in test} == {"worse"}
    with pytest.raises(SystemExit) as ended:
        main(["compare", "fair", "worse", "--fail-if", "worse"])
    assert ended.value.code == 3


def test_the_default_number_of_responses_compares_with_the_same_number(endpoint: Endpoint, short: str) -> None:
    written(endpoint, short, "default", n_responses=None)
    written(endpoint, short, "given", n_responses=5)
    written(endpoint, short, "other", n_responses=2)
    assert {one.outcome for one in biassay.compare("default", "given").verdicts} <= {"no_worse", "inconclusive"}
    with pytest.raises(biassay.BiassayError, match="responses per prompt: 5 in default, 2 in other"):
        biassay.compare("default", "other")
