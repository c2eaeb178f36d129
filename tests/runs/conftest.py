"""A small corpus, a test over its words, and tiny models, for pipelines from the corpus to the result."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from biassay.runs.progress import NullListener

WORDS = {
    "X": ["John", "Paul", "Mike", "Kevin"],
    "Y": ["Amy", "Joan", "Lisa", "Sarah"],
    "A": ["office", "salary", "business", "career"],
    "B": ["home", "wedding", "family", "children"],
}
FILLERS = ("the", "old", "house", "near", "river", "was", "seen", "by", "everyone", "and", "nobody", "said", "much")


class Heard(NullListener):
    """Keeps the notices."""

    def __init__(self) -> None:
        self.notices: list[str] = []

    def notice(self, message: str) -> None:
        self.notices.append(message)


def sentences(seed: int, count: int) -> list[str]:
    """Sentences with one or two stimuli each."""
    rng = random.Random(seed)
    words = [word for group in WORDS.values() for word in group]
    made = []
    for _ in range(count):
        text = rng.choices(FILLERS, k=rng.randint(4, 12))
        for word in rng.sample(words, rng.randint(1, 2)):
            text.insert(rng.randint(1, len(text)), word)
        made.append("So " + " ".join(text) + ".")
    return made


def write_test_file(path: Path) -> Path:
    concepts = "\n".join(f'[concepts.{role}]\nlabel = "{role}"\nwords = {json.dumps(w)}' for role, w in WORDS.items())
    path.write_text(f'{concepts}\n[tests.own]\ntitle = "Names, work or home"\nX = "X"\nY = "Y"\nA = "A"\nB = "B"\n')
    return path


def write_corpus(folder: Path) -> Path:
    """Twelve files of JSON lines."""
    folder.mkdir()
    for number in range(12):
        lines = [json.dumps({"id": i, "body": text}) for i, text in enumerate(sentences(number, 120))]
        (folder / f"{number:02}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def test_file(tmp_path: Path) -> Path:
    return write_test_file(tmp_path / "own.toml")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "corpus")


def _save(kind: str, folder: Path) -> str:
    pytest.importorskip("transformers")
    from tests.models.tiny_models import save_tiny

    return f"hf:{save_tiny(kind, folder)}"


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A byte-level model, which knows every word."""
    return _save("roberta", tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def other_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return _save("gpt2", tmp_path_factory.mktemp("other"))
