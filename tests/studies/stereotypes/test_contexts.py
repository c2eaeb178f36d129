"""Group CEAT from a corpus to scores: against vectors taken one by one and loops over their cosines."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import biassay
from biassay.corpus.contexts import abc_words
from biassay.datasets.abc_model import AbcStimuli, load_abc, select_groups
from biassay.models.registry import open_model
from biassay.runs.contexts import find_contexts
from biassay.runs.run import Run
from biassay.studies.stereotypes.group_ceat import GroupContexts
from biassay.studies.stereotypes.results import ContextsRow
from biassay.studies.stereotypes.settings import StereotypeSettings

pytestmark = pytest.mark.extras

GROUPS = ("man", "Asian", "Democrat", "immigrant", "Amish")
COUNTS = {"man": 3, "men": 4, "Asian person": 1, "Asian people": 5, "Democrat": 6, "immigrants": 4, "Amish people": 1}
FILLERS = ("the", "old", "house", "near", "river", "was", "seen", "by", "everyone", "and", "nobody", "said", "much")
RARE = {"unconfident": 2, "low-status": 0}


def corpus_of(abc: AbcStimuli, path: Path) -> Path:
    """Five contexts of every adjective, but for the rare ones, and some of a few groups."""
    rng = random.Random(5)
    adjectives = {word for pair in abc.pairs for side in (pair.left_adjectives, pair.right_adjectives) for word in side}
    counts = dict.fromkeys(sorted(adjectives), 5) | RARE | COUNTS
    lines = [
        f"So {i} {' '.join(rng.choices(FILLERS, k=4))} {word} {' '.join(rng.choices(FILLERS, k=3))}."
        for word, count in counts.items()
        for i in range(count)
    ]
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def abc() -> AbcStimuli:
    return load_abc()


@pytest.fixture(scope="module")
def contexts(abc: AbcStimuli, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("abc")
    words = abc_words(abc, all_adjectives=True)
    find_contexts(corpus_of(abc, folder / "c.txt"), folder / "c.parquet", (), words=words, workers=1)
    return folder / "c.parquet"


def asked(abc: AbcStimuli, file: Path, **settings: Any) -> GroupContexts:
    given = StereotypeSettings(contexts=str(file), **({"min_contexts": 3} | settings))
    return GroupContexts.open(given, select_groups(abc, GROUPS), abc.pairs)


def measured(model: str, file: Path, cache: Path, **settings: Any) -> Run:
    given: dict[str, Any] = {
        "measures": "ceat",
        "groups": GROUPS,
        "contexts": file,
        "min_contexts": 3,
        "cache": cache,
    } | settings
    return biassay.stereotypes(model, **given)


def scores_of(run: Run) -> np.ndarray:
    rows = [[np.nan if score is None else score for score in row.scores] for row in run.tables["profiles"]]
    return np.array(rows)


def row_of(run: Run) -> ContextsRow:
    (row,) = run.tables["contexts"]
    assert isinstance(row, ContextsRow)
    return row


def vectors_of(model: str, given: GroupContexts, words: Sequence[str]) -> np.ndarray:
    """As unit vectors, straight from the encoder."""
    encoder = open_model(model, "words")
    encoder.prepare()
    rows = [given.contexts.get_rows(word) for word in words]
    texts = [text for part in rows for text in given.contexts.texts(part)]
    spans = [span for part in rows for span in given.contexts.spans(part)]
    vectors = encoder.encode_words(texts, spans).vectors.astype(np.float64)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_scores_are_those_of_all_cosines(abc: AbcStimuli, contexts: Path, tiny_model: str, tmp_path: Path) -> None:
    given = asked(abc, contexts)
    found = measured(tiny_model, contexts, tmp_path)
    scores, errors = scores_of(found), found.arrays["0/ceat/standard_errors"]
    assert scores.shape == errors.shape == (5, 16)
    forms = {"man": ("man", "men"), "Asian": ("Asian person", "Asian people"), "immigrant": ("immigrants",)}
    for name, words in forms.items():
        own = vectors_of(tiny_model, given, words)
        for column in (0, 5):
            pair = abc.pairs[column]
            left, right = (
                own @ vectors_of(tiny_model, given, [side[0]]).T
                for side in (pair.left_adjectives, pair.right_adjectives)
            )
            expected = (right.mean() - left.mean()) / np.concatenate([left, right], axis=1).std()
            # Vectors are kept as float32, and batches of other texts round otherwise.
            assert scores[GROUPS.index(name), column] == pytest.approx(expected, rel=1e-3, abs=1e-4)
    assert not np.isnan(errors[~np.isnan(scores)]).any()


def test_all_adjectives_stand_in_for_rare_ones_but_not_the_groups_own_word(
    abc: AbcStimuli, contexts: Path, tiny_model: str, tmp_path: Path
) -> None:
    given = asked(abc, contexts, all_adjectives=True)
    found = measured(tiny_model, contexts, tmp_path, all_adjectives=True)
    scores = scores_of(found)
    assert not np.isnan(scores[:4]).any()
    assert row_of(found).own_words == {"Democrat": ("Democrat",)}
    column = [pair.name for pair in abc.pairs].index("conservative-liberal")
    own = vectors_of(tiny_model, given, ["Democrat"])
    sides = (["conservative", "right-wing", "Republican"], ["liberal", "left-wing", "progressive"])
    left, right = (np.concatenate([own @ vectors_of(tiny_model, given, [w]).T for w in side], axis=1) for side in sides)
    expected = (right.mean() - left.mean()) / np.concatenate([left, right], axis=1).std()
    assert scores[2, column] == pytest.approx(expected, rel=1e-3, abs=1e-4)
