"""Name audits through the command: scores by model, tables, report, resume and bad input."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.studies.audit import scorers

import biassay
from biassay.errors import UsageError
from biassay.studies.audit.settings import AuditSettings
from biassay.studies.audit.study import STUDY, TYPICAL
from biassay.studies.settings import validate_settings

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "audit"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the scorers, 12 documents and a query."""
    shutil.copy(scorers.__file__, tmp_path / "own_scorers.py")
    sys.modules.pop("own_scorers", None)
    lines = [f"{{name}} wrote report {number}" for number in range(12)]
    (tmp_path / "reports.txt").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def audit(*arguments: str, status: int = 0) -> None:
    assert scorers.call("audit", *arguments) == status


def read_table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


OWN = ("python:own_scorers:score", "--documents", "reports.txt", "--names", "bertrand2004")


def test_glove_scores_are_cosines_and_the_statistics_those_of_name_audit(tmp_path: Path) -> None:
    run = biassay.audit("glove", EXAMPLES, names="weat6", out=tmp_path / "run", pairs="Female:male")
    inputs = run.manifest.inputs
    assert [len(part) for part in (inputs.names, inputs.documents, inputs.queries)] == [16, 24, 4]
    stored = run.arrays["0/scores"]
    encoder = biassay.open_encoder("glove")
    name = inputs.names[3]
    text = (EXAMPLES / "resumes" / "nurse-1.md").read_text(encoding="utf-8")
    pronouns = ("he", "He", "his", "him") if name.sex == "male" else ("she", "She", "her", "her")
    for place, filling in zip(("{they}", "{They}", "{their}", "{them}"), pronouns, strict=True):
        text = text.replace(place, filling)
    for place, filling in (
        ("{name}", name.name),
        ("{is}", "is"),
        ("{has}", "has"),
        ("{was}", "was"),
        ("{noise}", "4817"),
    ):
        text = text.replace(place, filling)
    query = (EXAMPLES / "queries" / "developer.txt").read_text(encoding="utf-8").strip()
    encoder.prepare([text, query])
    document, wanted = (
        vector / np.linalg.norm(vector) for vector in encoder.encode([text.rstrip(), query]).vectors.astype(float)
    )
    row, column = (
        [one.id for one in inputs.documents].index("nurse-1"),
        [one.id for one in inputs.queries].index("developer"),
    )
    assert stored[3, row, column] == pytest.approx(float(document @ wanted), abs=1e-6)

    groups, units = [one.group for one in inputs.names], [one.unit for one in inputs.names]
    expected = biassay.name_audit(stored, groups, units=units)
    for result in run.results:
        contrast = expected[result.group]
        for mine, theirs in (
            (result.effect_size, contrast.effect_size),
            (result.p_value, contrast.p_value),
            (result.p_adjusted, contrast.p_adjusted),
            (result.ci_low, contrast.ci_low),
            (result.standardized_effect_size, contrast.standardized),
            (result.fixed_documents_p_value, contrast.fixed_documents_p_value),
        ):
            assert mine == pytest.approx(theirs, rel=1e-9)
    (pair,) = run.tables["pairs"]
    assert pair.difference == pytest.approx(expected["female"].effect_size, rel=1e-9)
    for row_ in run.tables["selection"]:
        selection = expected.selection(float(row_.top))[row_.group]
        assert (row_.rate, row_.ratio, row_.impact_ratio) == (selection.rate, selection.ratio, selection.impact_ratio)
    by_query = [one for one in run.tables["queries"] if one.query == "developer"]
    alone = biassay.name_audit(stored[:, :, column], groups, units=units, top=())
    assert [one.difference for one in by_query] == pytest.approx([alone[one.group].effect_size for one in by_query])


def test_the_verdict_comes_first_and_the_report_says_what_an_audit_is_not(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    audit(*OWN, "--out", "fair")
    fair = capsys.readouterr()
    assert fair.out.partition("\n\n")[2].startswith(
        "score: no significant difference between 4 groups of names; the audit could detect"
    )
    assert len(fair.out.splitlines()) <= 30
    assert re.search(r"36 names in 4 groups, 12 documents: 80% power for a difference of 0\.\d\d SD", fair.err)
    audit("biased=python:own_scorers:biased", *OWN, "--out", "both")
    both = capsys.readouterr().out
    assert re.match(
        r"biased: the mean score is 0\.\d\d SD lower for Black female names than for others \(95% CI \[-",
        both.partition("\n\n")[2].replace("\n", " "),
    )
    assert len(both.splitlines()) <= 30
    audit("biased=python:own_scorers:biased", *OWN[:3], "--n-names", "6", "--out", "eight")
    assert len(capsys.readouterr().out.splitlines()) <= 30
    page = (place / "both" / "report.html").read_text(encoding="utf-8")
    for text in ("What this audit cannot show", "Test data in the shape of", "four fifths", "real applicants", "<svg"):
        assert text in page, text
    assert "Intervals and p-values treat names and documents as samples" in page
    assert "for these items and prompts only" not in page
    visible = re.sub(r"<details(?![^>]* open).*?</details>", "", page, flags=re.DOTALL)
    for text in ("biased: in the top 20%", "Test data in the shape of"):
        assert text in visible, text
    assert (
        "black female"
        not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
        .partition("Names and their")[0]
        .partition("Differences of groups")[0]
    )
    rows = read_table(place / "both" / "results.tsv")
    assert [row["group"] for row in rows if row["model"] == "biased"] == list(scorers.GROUPS)


def test_chosen_pairs_are_compared_first(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pairs may be named as the list or as the report names them; small cosines do not appear as 0.00."""
    given = ("glove", "--documents", str(EXAMPLES), "--n-names", "4")
    audit(*given, "--pairs", "Asian/Pacific female:white male", "--out", "run")
    said = " ".join(capsys.readouterr().out.split())
    assert re.search(
        r"highest.* Asian/Pacific female minus White male: [+-]0\.\d+ SD, 95% CI \[.*\], uncorrected p [=<] \.\d+\.",
        said,
    )
    (pair,) = biassay.load("run").tables["pairs"]
    assert (pair.first, pair.second) == ("api female", "white male")
    assert 0.0 < abs(pair.difference) < 0.001
    page = (place / "run" / "report.html").read_text(encoding="utf-8")
    assert f">{pair.difference:.2g}<" in page
    audit(*given, "--pairs", "white male:White male", status=2)
    assert "with two different groups" in capsys.readouterr().err


def test_a_scorer_of_pairs_gets_every_query(place: Path) -> None:
    run = biassay.audit(
        "python:own_scorers:pairs", place / "reports.txt", names="weat6", query=["a job", "another job"]
    )
    scores = run.arrays["0/scores"]
    assert scores.shape == (16, 12, 2)
    name = run.manifest.inputs.names[2].name
    expected = [scorers.hash_to_normal(f"{query}{name} wrote report 7") for query in ("a job", "another job")]
    assert scores[2, 7] == pytest.approx(expected, rel=1e-12)
    assert {row.query for row in run.tables["queries"]} == {"a job", "another job"}


def test_a_function_is_a_model_in_python(place: Path) -> None:
    run = biassay.audit(scorers.score, place / "reports.txt", names="weat6")
    assert [one.group for one in run.results] == ["female", "male"]
    with pytest.raises(UsageError, match="returns scores, not vectors"):
        biassay.run(scorers.score, "weat6")


def test_scorers_are_identified_by_their_own_source(place: Path) -> None:
    """Two modules in one process: each has the digest that another process finds."""
    for name, constant in (("one", 1), ("two", 2)):
        code = f"def score(texts):\n    return [{constant} * len(text) for text in texts]\nscore.revision = 'v1'\n"
        (place / f"scorer_{name}.py").write_text(code, encoding="utf-8")
    models = ["python:scorer_one:score", "python:scorer_two:score"]
    run = biassay.audit(models, place / "reports.txt", names="weat6", out=place / "run")
    for name, model in zip(("one", "two"), run.manifest.models, strict=True):
        content = hashlib.sha256((place / f"scorer_{name}.py").read_bytes()).hexdigest()
        assert model.revision == f"v1, source {hashlib.sha256(content.encode()).hexdigest()[:16]}"


def test_a_single_document_is_described_and_not_tested(place: Path) -> None:
    (place / "one.txt").write_text("{name} wrote report 1", encoding="utf-8")
    run = biassay.audit("python:own_scorers:score", place / "one.txt", names="weat6", out=place / "run")
    assert [one.p_value for one in run.results] == [None, None]
    assert "differences are not tested: too few documents" in (place / "run" / "report.html").read_text(
        encoding="utf-8"
    )


def test_few_documents_and_ties_are_reported(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "seven.txt").write_text("\n".join(f"{{name}} wrote report {n}" for n in range(7)), encoding="utf-8")
    audit(
        "python:own_scorers:yes_or_no", "--documents", "seven.txt", "--names", "weat6", "--top", "0.1", "--out", "run"
    )
    assert "7 documents: p-values assume" in capsys.readouterr().err
    run = biassay.load("run")
    selected = np.mean(run.arrays["0/scores"] > 0)
    notes = [row.reason for row in run.tables["selection"]]
    assert all(note.startswith(f"{selected:.0%} of pairs are selected, because scores tie") for note in notes)
    assert f"in the top 10% ({selected:.0%} of pairs are selected" in (place / "run" / "report.html").read_text("utf-8")


@pytest.mark.parametrize("model", ["python:own_scorers:pairs", "glove"])
def test_texts_are_requested_in_blocks(place: Path, monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    whole = biassay.audit(model, place / "reports.txt", names="weat6", query=["a job", "another job"])
    monkeypatch.setattr("biassay.studies.audit.measure._BLOCK", 7)
    run = biassay.audit(
        model, place / "reports.txt", names="weat6", query=["a job", "another job"], cache=place / "new"
    )
    assert run.arrays["0/scores"].tolist() == whole.arrays["0/scores"].tolist()
    assert run.manifest.models[0].texts == whole.manifest.models[0].texts
    assert run.manifest.models[0].encoded == run.manifest.models[0].texts


def test_a_meaningless_edit_is_a_second_placebo(place: Path) -> None:
    lines = [f"{{name}} wrote report {number} ({{noise}})" for number in range(6)]
    (place / "edited.txt").write_text("\n".join(lines), encoding="utf-8")
    summary = biassay.audit("python:own_scorers:score", place / "edited.txt", names="weat6").tables["summary"][0]
    assert summary.edit_low < 0.0 < summary.edit_high
    plain = biassay.audit("python:own_scorers:score", place / "reports.txt", names="weat6").tables["summary"][0]
    assert plain.edit_low is None


def test_a_run_that_was_killed_goes_on_where_it_stopped(place: Path) -> None:
    lines = [f"{{name}} wrote report {number}" for number in range(30)]
    (place / "many.txt").write_text("\n".join(lines), encoding="utf-8")
    model = "python:own_scorers:killed"
    command = [sys.executable, "-m", "biassay", "audit", model, "--documents", "many.txt", "--names", "bertrand2004"]
    ended = subprocess.run(
        [*command, "--out", "run", "--cache", "cache"], cwd=place, env=dict(os.environ), capture_output=True
    )
    assert ended.returncode == -9, ended.stderr.decode()
    (place / "again").touch()
    assert scorers.call("resume", "run", "--model", model, "--cache", "cache") == 0
    manifest = json.loads((place / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert 0 < manifest["models"][0]["encoded"] < manifest["models"][0]["texts"] == 36 * 30
    whole = biassay.audit("python:own_scorers:score", place / "many.txt", names="bertrand2004")
    assert [one.effect_size for one in biassay.load("run").results] == [one.effect_size for one in whole.results]


def write_scores(path: Path, rows: Sequence[Sequence[Any]], columns: str = "document,name,group,score") -> str:
    path.write_text("\n".join([columns, *(",".join(map(str, row)) for row in rows)]), encoding="utf-8")
    return str(path)


def log_scores(selected: bool = False) -> list[list[Any]]:
    rows: list[list[Any]] = []
    for document in range(8):
        for group in ("men", "women"):
            for name in range(6):
                score = scorers.hash_to_normal(f"{document}") + 0.2 * scorers.hash_to_normal(
                    f"{document} {group} {name}"
                )
                rows.append([f"d{document}", f"{group} {name}", group, score, *([int(score > 0)] if selected else [])])
    return rows


def test_logged_scores_need_no_model(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = log_scores(selected=True)
    file = write_scores(place / "ranking.csv", rows, "document,name,group,score,selected")
    audit("--scores", file, "--out", "run")
    said = capsys.readouterr().out
    assert said.partition("\n\n")[2].startswith("ranking.csv: no significant difference between 2 groups")
    run = biassay.load("run")
    table = np.array(
        [[row[3] for row in rows if row[1] == f"{group} {n}"] for group in ("men", "women") for n in range(6)]
    )
    expected = biassay.name_audit(table, ["men"] * 6 + ["women"] * 6)
    assert run.results[0].p_value == pytest.approx(expected["men"].p_value)
    assert run.results[0].p_adjusted == pytest.approx(expected["men"].p_adjusted)
    decided = {row.group: row.rate for row in run.tables["selection"] if row.top == "decisions"}
    assert decided["men"] == pytest.approx((table[:6] > 0).mean())
    again = biassay.audit(scores=file)
    assert again.results[0].effect_size == run.results[0].effect_size
    few = [[*row[:3], row[3] + int(row[1][-1]), 0] for row in rows if row[1][-1] in "012"]  # names differ
    audit("--scores", write_scores(place / "few.csv", few, "document,name,group,score,selected"))
    said = capsys.readouterr().out
    assert re.search(r"0\.0% +–\n", said)
    assert re.search(r"needs [\d,]+ names per group\.", said)  # no number of documents is enough


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[0].__setitem__(2, "mne"), "the name 'men 0' has the group 'men', but 'mne'"),
        (lambda rows: rows[3].__setitem__(3, ""), "expected a finite number, got"),
        (lambda rows: rows[3].__setitem__(3, "high"), "expected a finite number, got 'high'"),
        (lambda rows: rows.append(["d0", "Kim", "others", 1.0]), "the group 'others' has only one name, 'Kim'"),
        (lambda rows: rows.append(rows[0]), "is also in"),
    ],
)
def test_bad_logged_scores(place: Path, capsys: pytest.CaptureFixture[str], change: Any, message: str) -> None:
    rows = log_scores()
    change(rows)
    audit("--scores", write_scores(place / "bad.csv", rows), status=2)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("glove",),
            "no documents given; name a folder or file with --documents, prompts with --prompts, or logged scores with "
            "--scores",
        ),
        ((*OWN, "--top", "0"), "top must be above 0 and below 1, got 0; write 0.2 for the top 20%"),
        ((*OWN, "--top", "0.2,1"), "top must be above 0 and below 1, got 1; write 0.2"),
        ((*OWN[:3], "--names", "bertrand"), "unknown list of names 'bertrand'; did you mean 'bertrand2004'?"),
        (("python:own_scorers:skore", *OWN[1:]), "'skore'; did you mean 'score'?"),
        (
            (*OWN, "--pairs", "black female"),
            "a pair is written \"GROUP:GROUP\", with two different groups; got 'black female'",
        ),
        ((*OWN, "--pairs", "black female:white males"), "white males"),
        ((*OWN, "--by", "races"), "unknown column 'races'"),
        ((*OWN, "--n-names", "1"), "n_names must be at least 2, got 1"),
        ((*OWN, "--question", "Invite?"), "no placeholder for the document; write"),
        (("glove", "--documents", "reports.txt", "--names", "weat6"), "no query given; name a text or file"),
        (("glove", "--scores", "x.csv"), "leave out the models"),
        (("--scores", "missing.csv", "--query", "x"), "leave out --query"),
        (("--scores", "missing.csv", "--names", "weat6"), "leave out --names"),
        (("--scores", "missing.csv", "--n-names", "4"), "leave out --n-names"),
    ],
)
def test_bad_arguments(
    place: Path,  # noqa: ARG001
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    audit(*arguments, status=2)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("scorer", "message"),
    [
        ("nan", "; return a finite number for every text"),
        ("too_few", "score() returned an array of shape (7,) for 8 texts; return one number per text"),
        ("changing", "and then, in a smaller batch,"),
        ("centred", "or with the other texts of a batch: average random scores, or set their seed"),
        ("words", "did not return numbers: could not convert string to float: 'high'; return one number per text"),
        ("broken", "score() raised RuntimeError('no GPU left')"),
    ],
)
def test_bad_scorers(place: Path, capsys: pytest.CaptureFixture[str], scorer: str, message: str) -> None:  # noqa: ARG001
    audit(f"python:own_scorers:{scorer}", *OWN[1:], status=1)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"one.md": "{name} is here", "two.md": "no place"}, "two.md: no placeholder for a name; write {name}"),
        ({"docs.csv": "id,text\na,{name} is here\na,{name} is there"}, "'a'"),
        ({"one.md": "{name} met Emily", "two.md": "{name}"}, "draw other names (--seed): {name} met Emily"),
        ({"one.md": "{nmae} met {name}", "two.md": "{name}"}, "did you mean {name}? Use other brackets for a literal"),
        ({"one.txt": "{name} met us", "two.txt": "Ms Hall met us"}, "where the document names the person: Ms Hall met"),
    ],
)
def test_bad_documents(place: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], message: str) -> None:
    folder = place / "documents"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    target = folder / "docs.csv" if "docs.csv" in files else folder
    audit(OWN[0], "--documents", str(target), "--names", "bertrand2004", status=2)
    assert message in capsys.readouterr().err


def test_names_that_a_vectors_file_lacks_are_left_out(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    words = ["wrote", "report", "a", "job", *map(str, range(12)), "amy", "ann", "bob", "bill"]
    lines = [f"{word} {' '.join(f'{x:.4f}' for x in rng.normal(size=8))}" for word in words]
    (place / "small.txt").write_text("\n".join(lines), encoding="utf-8")
    names = "name,group\nAmy,women\nAnn,women\nZoe,women\nBob,men\nBill,men\nZed,men\n"
    (place / "names.csv").write_text(names, encoding="utf-8")
    given = ("vectors:small.txt?case=fold", "--documents", "reports.txt", "--query", "a job", "--names", "names.csv")
    audit(*given, "--out", "run")
    inputs = biassay.load("run").manifest.inputs
    assert (inputs.unknown_names, [one.name for one in inputs.names]) == (("Zed", "Zoe"), ["Bill", "Bob", "Amy", "Ann"])
    assert "Left out because they are out of vocabulary: 2 names" in (place / "run" / "report.html").read_text("utf-8")
    (place / "names.csv").write_text(names.replace("Bill", "Ulf").replace("Bob", "Ugo"), encoding="utf-8")
    audit(*given, status=2)
    message = "the model knows no name of the group 'men'; add names or use another model (unknown to the model: Ugo,"
    assert message in capsys.readouterr().err


def test_a_planted_difference_is_found_as_often_as_was_told_before(place: Path) -> None:
    """Scores are simulated with the typical components; the difference is the one that the notice speaks of."""
    (place / "wide.txt").write_text("\n".join(f"{{name}} {n}" for n in range(24)), encoding="utf-8")
    settings = validate_settings(AuditSettings(documents=str(place / "wide.txt"), names="bertrand2004"))
    (line,) = STUDY.preview(STUDY.load_inputs(settings))
    told = re.search(r"difference of (0\.\d\d) SD.*power for 0\.2 SD: (\d+)%", line)
    assert told is not None
    rng, found, runs = np.random.default_rng(1), 0, 300
    groups = [group for group in scorers.GROUPS for _ in range(9)]
    for _ in range(runs):
        documents = rng.normal(size=24) + np.sqrt(TYPICAL.documents * 4 / 3) * rng.normal(size=(4, 24)).repeat(
            9, axis=0
        )
        scores = documents + np.sqrt(TYPICAL.names) * rng.normal(size=(36, 1))
        scores += np.sqrt(TYPICAL.residual) * rng.normal(size=(36, 24))
        scores[:9] -= 0.2
        found += (biassay.name_audit(scores, groups, top=()).contrasts["black female"].p_adjusted or 1.0) <= 0.05
    assert found / runs == pytest.approx(int(told[2]) / 100, abs=0.08)


def test_tokens_are_matched_over_the_tokenizers_of_all_models(place: Path) -> None:  # noqa: ARG001
    class Counting:
        revision = "1"

        def __call__(self, texts: Sequence[str]) -> list[float]:
            return scorers.score(texts)

        def count_tokens(self, texts: Sequence[str]) -> list[int]:
            return [1 + (len(text) > 5) for text in texts]

    run = biassay.audit({"counting": Counting()}, "reports.txt", n_names=6)
    assert run.manifest.inputs.matched == ("frequency", "tokens")
    totals = {
        group: sum(name.tokens or 0 for name in run.manifest.inputs.names if name.group == group)
        for group in {name.group for name in run.manifest.inputs.names}
    }
    assert len(totals) == 8
    assert max(totals.values()) - min(totals.values()) <= 1
    both = biassay.audit({"counting": Counting(), "plain": scorers.score}, "reports.txt", n_names=6)
    assert both.manifest.inputs.matched == ("frequency",)


def test_equal_scores_are_no_audit(place: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001
    audit("python:own_scorers:constant", *OWN[1:], status=1)
    assert "all scores are 0.5; a constant cannot be audited; check the model's inputs" in capsys.readouterr().out


def test_a_query_in_another_language_is_noticed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001
    audit("glove", *OWN[1:], "--query", "Wir suchen in Teilzeit zuverlässige Lagerhilfskräfte")
    assert "most of its words are out of vocabulary; write it in the model's language" in capsys.readouterr().err
    audit("glove", *OWN[1:], "--query", "Lagerhilfskräfte", status=1)
    assert "all words of the query 'Lagerhilfskräfte' are out of vocabulary" in capsys.readouterr().err
