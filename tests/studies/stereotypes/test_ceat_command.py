"""``biassay contexts --abc`` and ``biassay stereotypes --measures ceat`` as a user types them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

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


def test_the_table_of_groups_and_pairs(cli: Cli, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "c.parquet"
    code, stdout, _ = cli("contexts", folder / "c.txt", "--abc", "--out", out)
    assert code == 0
    table = " ".join(stdout.split())
    assert "groups 5 of 53 5 / 6 / 7 non-binary 0, " in table
    assert "pairs of traits 15 of 16 6 / 6 / 6 unconfident-confident: unconfident 2" in table
    assert stdout.splitlines()[-1] == (
        f"written to {out}; next: biassay stereotypes hf:NAME --measures ceat --contexts {out}"
    )


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
