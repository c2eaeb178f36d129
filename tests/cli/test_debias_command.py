"""``biassay debias`` and ``MODEL?erase=METHOD:CONCEPT``: four numbers, the verdict, refusals, cache and resume."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy

import biassay
from biassay.cli import main
from biassay.datasets.catalogue import select_tests
from biassay.datasets.concepts import load_concept
from biassay.engines.local import LocalExecutor
from biassay.errors import InsufficientVocabularyError, UsageError
from biassay.models.erasure import Erasure, erasure_method_names
from biassay.runs.fetch import RequestFetcher, RunOptions
from biassay.runs.models import open_models, parse_model_specs
from biassay.runs.run import Run
from biassay.studies.debiasing import measure
from biassay.studies.debiasing.results import DebiasingResult, draw_conclusion
from biassay.studies.debiasing.settings import DebiasingSettings
from biassay.studies.debiasing.study import load_inputs
from biassay.studies.study import Requests

from .conftest import Cli

TESTS = "weat6,weat7b"
WORDS = ("bus", "road", "tree", "music", "paper", "water", "house", "money", "light", "table", "river", "stone")
QUICK = ("--tests", TESTS, "--n-names", "6")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Debias GloVe by two methods, and return the run folder."""
    folder = tmp_path_factory.mktemp("debiased") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BIASSAY_CACHE", str(folder.parent / "cache"))
        with pytest.raises(SystemExit) as stop:
            main(["debias", "glove", "--method", "hard,mean-projection", *QUICK, "--out", str(folder)])
    assert stop.value.code == 0
    return folder


@pytest.fixture
def run(done: Path) -> Run:
    return biassay.load(done)


def get_row(run: Run, item: str) -> Any:
    (row,) = run[item].results
    return row


def write_concept(path: Path, **classes: list[str]) -> Path:
    """Write a concept that is fitted on these words, and probes with others."""
    held_out = [f"held{i}" for i in range(2)]
    lines = ['title = "Own"', 'weakness = "none"', 'tests = ["weat6"]', 'audit_by = ["sex"]', "[words]"]
    lines += [f"{label} = {json.dumps(words)}" for label, words in classes.items()]
    lines += ["[held_out]", *(f"{label} = [{word!r}]" for label, word in zip(classes, held_out, strict=True))]
    lines += ["[source]", *(f'{field} = "own"' for field in ("name", "citation", "licence", "version"))]
    path.write_text("\n".join(lines))
    return path


def test_associations_are_those_of_both_models_and_of_their_comparison(run: Run) -> None:
    both = biassay.run(["glove", "glove?erase=hard:gender"], TESTS.split(","), random_sets=0)
    compared = {row.test: row for row in both.compare().tables["associations"]}
    calibrated = {(row.options != "", row.test): row.calibrated_difference for row in both.results}
    for test in TESTS.split(","):
        row = get_row(run, f"hard {test}")
        assert row.before_effect_size == pytest.approx(calibrated[False, test])
        assert row.after_effect_size == pytest.approx(calibrated[True, test])
        assert row.effect_size == pytest.approx(row.after_effect_size - row.before_effect_size)
        found = compared[test]
        assert (row.ci_low, row.ci_high) == pytest.approx((found.interval_low, found.interval_high))


def test_the_audit_is_that_of_both_models_and_draws_no_name_it_was_fitted_on(run: Run) -> None:
    inputs = run.manifest.inputs
    fitted = {word.casefold() for word, _ in load_concept("gender").fitting_words}
    drawn = {name.name for name in inputs.audit.names}
    assert len(drawn) == 12
    assert not {name.casefold() for name in drawn} & fitted
    folder = Path(load_inputs(DebiasingSettings(method=("hard",))).audit.settings.documents or "")
    models = ["glove", "glove?erase=hard:gender"]
    audited = biassay.audit(models, documents=folder, query=[folder.parent / "jobs.csv"], by="sex", n_names=6)
    assert {name.name for name in audited.manifest.inputs.names} == drawn
    old, new = (one for one in audited.results if one.group == "female")
    row = get_row(run, "hard names: female")
    assert row.before_effect_size == pytest.approx(old.standardized_effect_size)
    assert row.after_effect_size == pytest.approx(new.standardized_effect_size)
    assert row.effect_size == pytest.approx(row.after_effect_size - row.before_effect_size)
    assert row.ci_low < row.effect_size < row.ci_high


def test_the_probe_finds_less_but_more_than_chance_after_hard_debiasing(run: Run) -> None:
    hard, mean = (get_row(run, f"{method} probe") for method in ("hard", "mean-projection"))
    assert hard.before_effect_size == mean.before_effect_size > 0.8
    assert hard.before_effect_size > hard.after_effect_size > mean.after_effect_size
    assert hard.chance == pytest.approx(0.5, abs=0.02)
    assert hard.after_p_value < 0.05
    assert hard.ci_low < hard.effect_size < hard.ci_high < 0.0


def test_loss_is_counted_by_hand(run: Run) -> None:
    pairs = load_inputs(DebiasingSettings(method=("hard",))).similarity
    encoders = biassay.open_encoder("glove"), biassay.open_encoder("glove?erase=hard:gender")
    words = [word for pair in pairs for word in pair.words]
    row = get_row(run, "hard similarity")
    for encoder, found in zip(encoders, (row.before_effect_size, row.after_effect_size), strict=True):
        encoder.prepare(words)
        vectors = encoder.encode(words).vectors.astype(float).reshape(len(pairs), 2, -1)
        vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
        cosines = (vectors[:, 0] * vectors[:, 1]).sum(axis=1)
        assert found == pytest.approx(scipy.stats.spearmanr(cosines, [pair.similarity for pair in pairs]).statistic)
    neighbours = get_row(run, "hard neighbours")
    assert neighbours.before_effect_size == 1.0
    assert 0.9 < neighbours.after_effect_size < 1.0
    assert neighbours.effect_size == pytest.approx(neighbours.after_effect_size - 1.0)


def test_neighbours_of_equal_and_of_reversed_cosines_are_all_or_few() -> None:
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(40)]
    rows = {word: i for i, word in enumerate(words)}
    table = rng.normal(size=(40, 40))
    table += table.T
    one, reverse = measure._WordCosines(rows, table), measure._WordCosines(rows, -table)
    assert one.share_neighbours(one, words).tolist() == [1.0] * 40
    assert one.share_neighbours(reverse, words).max() == 0.0


def test_the_folder_has_the_fitted_erasers(run: Run) -> None:
    left, right, centre = (run.arrays[f"0/hard/{name}"] for name in ("left", "right", "centre"))
    encoder = biassay.open_encoder("glove?erase=hard:gender")
    base = biassay.open_encoder("glove")
    for one in (encoder, base):
        one.prepare(["doctor"])
    unit = base.encode(["doctor"]).vectors[0] / np.linalg.norm(base.encode(["doctor"]).vectors[0])
    assert encoder.encode(["doctor"]).vectors[0] == pytest.approx(unit - left @ (right @ (unit - centre)), abs=1e-6)


def test_the_bundled_vectors_know_enough_words_of_age_for_all_four_numbers(cli: Cli) -> None:
    code, stdout, _ = cli("debias", "glove", "--concept", "age", "--method", "inlp", "--n-names", "6", "--json")
    assert code == 0
    assert {row["part"]: row["status"] for row in json.loads(stdout)["results"]} == dict.fromkeys(
        ("association", "probe", "audit", "similarity", "neighbours"), "measured"
    )


def test_the_terminal_shows_the_verdict_before_the_numbers(cli: Cli) -> None:
    code, stdout, _ = cli("debias", "glove", "--method", "hard", *QUICK)
    assert code == 0
    said = " ".join(stdout.split())
    assert "The association is no longer detected in weat7b" in said or "still detected in weat6" in said
    assert "a probe recovers it from" in said
    assert said.index("still there") < said.index("weat6 1.67")
    assert "(chance 50%)" in said


@pytest.mark.parametrize(
    ("before", "after", "probe", "said"),
    [
        (0.01, 0.2, 0.01, "The association is no longer detected in weat6. But own is still there: a probe recovers"),
        (0.01, 0.02, 0.01, "The association is still detected in weat6. Own is still there: a probe recovers"),
        (0.01, 0.2, 0.6, "do not detect own, which does not show that it is gone."),
        (0.3, 0.2, 0.6, "No test detects an association before erasure."),
    ],
)
def test_the_verdict_says_what_is_left(before: float, after: float, probe: float, said: str) -> None:
    from biassay.results.outcomes import Outcome

    def make(part: Any, name: str, *p_values: float) -> DebiasingResult:
        both = {
            when: Outcome(effect_size=0.7, p_value=p) for when, p in zip(("before", "after"), p_values, strict=True)
        }
        who: dict[str, Any] = {"model": "m", "options": "", "method": "hard", "concept": "Own"}
        return DebiasingResult(**who, part=part, name=name, outcome=Outcome(effect_size=0.1), alternatives=both)

    rows = [make("association", "weat6", before, after), make("probe", "probe", 0.01, probe)]
    assert said in draw_conclusion(rows, 0.05)[1]


def test_weat6_by_a_concept_of_its_own_words_is_refused(cli: Cli, tmp_path: Path) -> None:
    (test,) = select_tests("weat6")
    path = write_concept(tmp_path / "own.toml", male=list(test.X.words), female=list(test.Y.words))
    out = tmp_path / "run"
    refused = [
        cli("debias", "glove", "--concept", path, "--method", "mean-projection", "--out", out),
        cli("run", f"glove?erase=mean-projection:{path}", "--tests", "weat6", "--out", out),
        cli("robustness", f"glove?erase=mean-projection:{path}", "--tests", "weat6", "--out", out),
    ]
    for code, stdout, stderr in refused:
        assert (code, stdout) == (2, "")
        assert "mean-projection:own is fitted on words of weat6: John, Paul, Mike, Kevin" in stderr
        assert "--tests" in stderr
        assert not out.exists()


def test_plurals_pronouns_and_words_in_sentences_are_the_same_words(cli: Cli, tmp_path: Path) -> None:
    words = {"male": ["Kings", "himself", "monks"], "female": ["Queens", "wives", "women"]}
    path = write_concept(tmp_path / "forms.toml", **words)
    sets = {"targ1": ["king", "he"], "targ2": ["queen", "woman"], "attr1": ["wife", "sun"], "attr2": ["moon", "star"]}
    own = tmp_path / "own.json"
    for texts in (lambda word: word, lambda word: f"This is the {word}."):
        made = {name: {"category": name, "examples": [*map(texts, of)]} for name, of in sets.items()}
        own.write_text(json.dumps(made))
        code, _, stderr = cli("run", f"glove?erase=mean-projection:{path}", "--tests", own)
        assert code == 2
        assert "is fitted on words of own: king, he, queen, woman" in stderr


@pytest.mark.extras
def test_weat6_by_leace_fitted_on_its_own_words_is_refused(tmp_path: Path) -> None:
    (test,) = select_tests("weat6")
    path = write_concept(tmp_path / "own.toml", male=list(test.X.words), female=list(test.Y.words))
    with pytest.raises(UsageError, match="leace:own is fitted on words of weat6: John"):
        biassay.run(f"glove?erase=leace:{path}", "weat6")
    erased = biassay.run(["glove", "glove?erase=leace:gender"], "weat6")
    assert [row.calibrated_difference > 0.5 for row in erased.results] == [True, True]
    assert erased.results[1].effect_size < erased.results[0].effect_size


def test_too_few_words_make_the_model_fail_with_advice(cli: Cli, tmp_path: Path) -> None:
    words = {"male": ["king", "duke", "monk"], "female": ["queen", "duchess", "nun"]}
    path = write_concept(tmp_path / "few.toml", **words)
    code, _, stderr = cli("debias", "glove", "--concept", path, "--method", "mean-projection")
    assert code == 1
    assert "it knows 3 words of the class 'male' of the concept, and at least 10 of each class are needed" in stderr
    with pytest.raises(InsufficientVocabularyError, match="cannot be fitted to glove"):
        biassay.run("glove?erase=mean-projection:race", "weat6")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("glove", "--method", "haard"), "did you mean 'hard'?"),
        (("glove", "--concept", "gendre"), "did you mean 'gender'?"),
        (("glove", "--concept", "age", "--method", "hard"), "needs pairs of words"),
        (("glove?erase=hard:gender", "--method", "inlp"), "give it without erase="),
        (("chat:x?base_url=http://127.0.0.1:1", "--method", "inlp"), "model 'chat:x' cannot encode texts"),
        (("glove", "--method", "inlp", "--tests", "gate"), "inlp:gender is fitted on words of gate-gender-science"),
        ((), "biassay debias MODEL --concept gender --method leace"),
    ],
)
def test_a_wrong_command_is_refused_with_advice(cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    code, stdout, stderr = cli("debias", *arguments)
    assert (code, stdout) == (2, "")
    assert said in stderr
    assert "Traceback" not in stderr


def test_similarities_of_the_user_are_used_and_checked(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("word_1,word_2,similarity\n" + "".join(f"car,{w},{i}\n" for i, w in enumerate(WORDS)))
    code, stdout, _ = cli("debias", "glove", "--method", "hard", *QUICK, "--similarity", path, "--json")
    assert code == 0
    rows = json.loads(stdout)["results"]
    (row,) = [row for row in rows if row["part"] == "similarity"]
    assert row["status"] == "measured"
    path.write_text("word_1,word_2,similarity\ncar,bus,9\ncar,qqqq,1\n")
    code, stdout, _ = cli("debias", "glove", "--method", "hard", *QUICK, "--similarity", path)
    assert code == 0
    assert "similarity: 1 of the word pairs are in the vocabulary; 10 are needed" in " ".join(stdout.split())
    path.write_text("word_1,word_2,similarity\ncar,bus,much\n")
    code, _, stderr = cli("debias", "glove", "--method", "hard", "--similarity", path)
    assert code == 2
    assert "similarity" in stderr
    assert "expected a number" in stderr


def test_an_interrupted_run_resumes_to_the_same_numbers(
    cli: Cli, done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, probe, calls = tmp_path / "run", measure._measure_probe, []

    def stop(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return probe(*arguments)

    monkeypatch.setattr(measure, "_measure_probe", stop)
    models = ("glove", "again=glove")
    assert cli("debias", *models, "--method", "hard,mean-projection", *QUICK, "--out", out)[0] == 1
    assert len({row.model for row in biassay.load(out).results}) == 1
    assert cli("resume", out)[0] == 0
    assert len(calls) == 3
    resumed, expected = biassay.load(out).results, biassay.load(done).results
    assert [row.effect_size for row in resumed] == [row.effect_size for row in expected] * 2


@pytest.mark.usefixtures("measured_once")
def test_erased_and_plain_models_share_vectors_and_no_measurement(cli: Cli) -> None:
    first = cli("run", "glove", "--tests", "weat6")
    second = cli("run", "glove?erase=inlp:gender", "--tests", "weat6")
    third = cli("run", "glove?erase=hard:gender", "--tests", "weat6")
    assert "encoding 98 texts" in second[2]  # those it is fitted on; the texts of the test are cached
    assert "encoding" not in third[2]
    assert len({one[1].partition("s\n")[2] for one in (first, second, third)}) == 3
    again = cli("run", "glove?erase=inlp:gender", "--tests", "weat6")
    assert "using the cached measurement" in again[2] or "measuring" not in again[2]


def test_vocabularies_and_every_representation_are_erased(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    concept = load_concept("gender")
    words = [word for word, _ in concept.fitting_words] + [f"word{i}" for i in range(30)]
    path = tmp_path / "vectors.txt"
    lines = (
        " ".join([word, *map(str, row)]) for word, row in zip(words, rng.normal(size=(len(words), 20)), strict=True)
    )
    path.write_text("\n".join(lines) + "\n")
    options = RunOptions()
    (opened,) = open_models(
        parse_model_specs(f"vectors:{path}?erase=mean-projection:gender"), ("texts",), options.listener
    )
    outputs, _, _ = RequestFetcher(options).fetch(opened, Requests(texts=words))
    vectors = outputs.texts(words).vectors
    assert np.concatenate([block.vectors for block in outputs.vocabulary()]) == pytest.approx(vectors)
    assert outputs.read_texts(words).vectors == pytest.approx(vectors)
    labels = np.array([label for _, label in concept.fitting_words])
    means = [vectors[: len(labels)][labels == label].mean(axis=0) for label in (0, 1)]
    assert means[0] == pytest.approx(means[1], abs=1e-6)


def test_a_report_and_a_comparison_can_be_written(cli: Cli, done: Path, tmp_path: Path) -> None:
    page = (done / "report.html").read_text("utf-8")
    assert "Gender is still there" in page or "But gender is still there" in page
    assert "Belrose" not in page
    assert re.search(r"<details open><summary><h2>Before and after", page)
    cells = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.partition("Before and after")[2]))
    row = get_row(biassay.load(done), "hard weat6")
    assert f"weat6 {row.before_effect_size:.2f} [" in cells
    with (done / "results.tsv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert {row["part"] for row in rows} == {"association", "probe", "audit", "similarity", "neighbours"}
    assert cli("report", done, "--publish", tmp_path / "paper")[0] == 0
    assert "Bolukbasi" in "".join(path.read_text("utf-8") for path in (tmp_path / "paper").rglob("*.md"))


def test_methods_and_concepts_are_listed_and_described(cli: Cli) -> None:
    code, stdout, _ = cli("erasure")
    assert code == 0
    for name in (*erasure_method_names(), "gender", "race", "age"):
        assert f"\n{name} " in stdout
    shown = " ".join(cli("erasure", "hard")[1].split())
    assert "Bolukbasi et al. 2016" in shown
    assert "weakness Words that share a stereotype" in shown
    shown = " ".join(cli("erasure", "gender")[1].split())
    assert "husband, king" in shown
    assert "licence Apache-2.0" in shown
    described = json.loads(cli("erasure", "--json")[1])
    assert [one["method"] for one in described["methods"]] == [*erasure_method_names()]
    assert "did you mean 'leace' or 'race'?" in cli("erasure", "lace")[2]
    assert json.loads(cli("erasure", "gender", "--json")[1])["fitted, male"][:2] == ["husband", "king"]


def test_an_interrupted_run_of_an_erased_model_resumes(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = ("glove", "glove?erase=inlp:gender")
    assert cli("run", *models, "--tests", "weat6", "--out", tmp_path / "whole")[0] == 0
    with monkeypatch.context() as patch:
        patch.setattr(Erasure, "fit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert cli("run", *models, "--tests", "weat6", "--out", tmp_path / "run")[0] == 1
    assert len(biassay.load(tmp_path / "run").results) == 1
    assert cli("resume", tmp_path / "run")[0] == 0
    whole, resumed = (biassay.load(tmp_path / name).results for name in ("whole", "run"))
    assert [(row.options, row.effect_size) for row in resumed] == [(row.options, row.effect_size) for row in whole]
    assert resumed[1].options.startswith("erase=inlp:gender@")


def test_other_words_of_a_concept_are_another_model_and_stop_a_resumed_run(cli: Cli, tmp_path: Path) -> None:
    male, female = (
        [word for word, own in load_concept("gender").fitting_words if own == label][:12] for label in (0, 1)
    )
    path = write_concept(tmp_path / "own.toml", male=male, female=female)
    out = tmp_path / "run"
    models = ("glove", f"glove?erase=inlp:{path}", "broken=vectors:none.txt")
    assert cli("run", *models, "--tests", "weat6", "--out", out)[0] == 1
    write_concept(path, male=male[1:], female=female[1:])
    code, _, stderr = cli("resume", out)
    assert code == 2
    assert "has changed since the run began" in stderr


def test_workers_and_comparisons_get_erased_models(tmp_path: Path) -> None:
    model = "glove?erase=inlp:gender"
    alone = biassay.run(model, "weat6", random_sets=0)
    spread = biassay.run(model, "weat6", random_sets=0, engine=LocalExecutor(), cache=tmp_path / "other")
    assert spread.results[0].effect_size == alone.results[0].effect_size
    (verdict,) = biassay.compare("glove", model, tests="weat6").verdicts
    assert verdict.outcome == "better"
