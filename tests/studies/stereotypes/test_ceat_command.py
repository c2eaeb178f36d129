"""``biassay contexts --abc`` and ``biassay stereotypes --measures ceat`` as a user types them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from biassay.datasets.abc_model import load_abc

pytestmark = pytest.mark.extras

Cli = Callable[..., tuple[int, str, str]]
FILLERS = ("the", "old", "house", "near", "river", "was", "seen", "by", "everyone", "and", "nobody", "said", "much")
GROUPS = {"man": 6, "women": 7, "immigrant": 3, "immigrants": 3, "Black people": 5, "teenagers": 6, "veteran": 4}


def write_corpus(path: Path) -> Path:
    """Six contexts of the first adjectives, but for one that has two; one sentence with a name of a test."""
    rng = random.Random(1)
    sides = [side for pair in load_abc().pairs for side in (pair.left_adjectives, pair.right_adjectives)]
    counts = GROUPS | {side[0]: 6 for side in sides} | {"unconfident": 2, "Amy": 1}
    lines = [
        f"So {i} {' '.join(rng.choices(FILLERS, k=4))} {word} {' '.join(rng.choices(FILLERS, k=3))}."
        for word, count in counts.items()
        for i in range(count)
    ]
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """c.txt and, after the first scan, c.parquet."""
    folder = tmp_path_factory.mktemp("abc")
    write_corpus(folder / "c.txt")
    return folder


@pytest.fixture
def contexts(cli: Cli, folder: Path) -> Path:
    if not (folder / "c.parquet").exists():
        assert cli("contexts", folder / "c.txt", "--abc", "--out", folder / "c.parquet", "--quiet")[0] == 0
    return folder / "c.parquet"


@pytest.fixture
def human(tmp_path: Path) -> Path:
    """Means of four groups; Black people are a pilot group."""
    rng, abc = random.Random(2), load_abc()
    groups = ("men", "women", "immigrants", "Blacks/African Americans")
    content = {g: {f"{p.left} - {p.right}": round(rng.uniform(0, 100), 1) for p in abc.pairs} for g in groups}
    path = tmp_path / "human.json"
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
def measure(cli: Cli, contexts: Path, tmp_path: Path) -> Cli:
    """``biassay stereotypes MODEL --contexts c.parquet ...`` about a few groups."""

    def call(*args: object) -> tuple[int, str, str]:
        groups = ("--groups", "gender", "--groups", "immigrant", "--groups", "Black", "--groups", "veteran")
        return cli(
            "stereotypes", *args, *groups, "--contexts", contexts, "--cache", tmp_path / "cache", "--n-bootstrap", 20
        )

    return call


def cells(stdout: str) -> list[list[str]]:
    """The cells of all rows of the first table; a row may go over several lines."""
    rows: list[list[str]] = []
    for line in stdout.splitlines():
        if line.startswith("│"):
            parts = [part.strip() for part in line.strip("│").split("│")]
            if parts[0]:
                rows.append(parts)
            else:
                rows[-1] = [f"{old} {new}".strip() for old, new in zip(rows[-1], parts, strict=True)]
    return rows


def test_the_table_of_groups_and_pairs(cli: Cli, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "c.parquet"
    code, stdout, _ = cli("contexts", folder / "c.txt", "--abc", "--out", out)
    assert code == 0
    groups, pairs = cells(stdout)
    assert groups[:3] == ["groups", "5 of 53", "5 / 6 / 7"]
    assert "veteran 4" in groups[3]
    assert "Amish 0" in groups[3]
    assert pairs == ["pairs of traits", "15 of 16", "6 / 6 / 6", "unconfident-confident: unconfident 2"]
    assert stdout.splitlines()[-1] == (
        f"written to {out}; next: biassay stereotypes hf:NAME --measures ceat --contexts {out}"
    )


def test_tests_groups_of_ones_own_and_all_adjectives_together(cli: Cli, folder: Path, tmp_path: Path) -> None:
    own, out = tmp_path / "own.toml", tmp_path / "c.parquet"
    own.write_text('[groups]\nnobody = { domain = "age", singular = "nobody", plural = "everyone" }\n')
    args = ("contexts", folder / "c.txt", "--abc", "--files", own, "--all-adjectives", "--tests", "C6", "--out", out)
    code, stdout, _ = cli(*args)
    assert code == 0
    assert [row[0] for row in cells(stdout)] == ["C6", "groups", "pairs of traits"]
    assert "6 of 54" in stdout
    last = stdout.splitlines()[-1]
    assert f"biassay run hf:NAME --contexts {out} or biassay stereotypes" in last
    assert last.endswith(f"--contexts {out} --files {own} --all-adjectives")


def test_a_model_without_a_head_is_enough(measure: Cli, tiny_model: str, human: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    code, stdout, stderr = measure(tiny_model, "--measures", "ceat", "--human", human, "--out", out, "--json")
    assert code == 0, stderr
    found = json.loads(stdout)
    (row,), (record,), (alignment,) = found["contexts"], found["measures"], found["alignments"]
    assert row["few_groups"] == ["non-binary", "trans", "cis", "gay", "lesbian", "veteran"]
    assert (row["groups"]["veteran"], row["few_adjectives"]) == (4, ["unconfident"])
    assert record["undefined"] == 6 * 16 + 4
    assert record["chosen"] == record["templates"] == []
    assert -1.0 <= alignment["outcome"]["effect_size"] <= 1.0
    assert alignment["alternatives"]["pilot"]["effect_size"] is None
    judged = ["man", "woman", "immigrant", "Black"]
    assert [g["group"] for g in found["group_alignments"]] == judged
    assert [p["group"] for p in found["profiles"] if p["human"] is not None] == judged
    evidence = {one["item"]: (one["evidence"], one["reason"]) for one in found["findings"]}
    assert evidence["veteran"] == ("skipped", "the group has too few contexts")
    assert evidence["woman"] == ("descriptive", None)
    assert (out / "report.html").is_file()


def test_ceat_stands_beside_the_others(measure: Cli, causal_model: str, human: Path, tmp_path: Path) -> None:
    args = ("--measures", "ceat", "--measures", "ilps", "--templates", "are", "--human", human)
    code, stdout, stderr = measure(causal_model, *args, "--json", "--out", tmp_path / "run")
    assert code == 0, stderr
    found: dict[str, Any] = json.loads(stdout)
    assert found["manifest"]["inputs"]["measures"] == ["ilps", "ceat"]
    assert [m["measure"] for m in found["measures"]] == ["ilps", "ceat"]
    assert found["models"][0]["kind"] == "causal"
    assert "word=last" in found["contexts"][0]["words_options"]
    assert "word=last" not in found["contexts"][0]["options"]
    assert found["manifest"]["models"][0]["texts"] > found["models"][0]["num_questions"]
    alone = json.loads(measure(causal_model, "--measures", "ceat", "--human", human, "--json")[1])
    for table in ("profiles", "alignments", "group_alignments"):
        of_both = [row for row in found[table] if row["measure"] == "ceat"]
        for row in (*of_both, *alone[table]):
            del row["options"]  # those of the language model, and those of the encoder of words
            for name in ("p_adjusted", "family_size"):  # of the family of the run
                row.pop(name, None)
        assert of_both == alone[table]
    assert (tmp_path / "run" / "results.tsv").read_text().count("\tceat\t") == 160


def test_wrong_usage_is_named(cli: Cli, tiny_model: str, contexts: Path, tmp_path: Path) -> None:
    ceat = (tiny_model, "--measures", "ceat", "--contexts")
    for args, words in (
        ((*ceat, tmp_path / "none.parquet"), "none.parquet"),
        ((*ceat, contexts, "--min-contexts", 99), "99"),
        ((*ceat, contexts, "--all-adjectives"), "83 adj"),
        (("glove", *ceat[1:], contexts), "elmo:DIR"),
    ):
        code, stdout, stderr = cli("stereotypes", *args, "--out", tmp_path / "run")
        assert (code, stdout) == (2, ""), stderr
        assert words in " ".join(stderr.split())
        assert not (tmp_path / "run").exists()
