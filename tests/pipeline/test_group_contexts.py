"""Group CEAT from a corpus to scores: against vectors taken one by one and loops over their cosines."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biassay.encoders.registry import open_as
from biassay.engines.local import LocalEngine
from biassay.errors import UsageError
from biassay.runs.corpus import find_contexts
from biassay.pipeline.group_contexts import GroupContexts, measure_groups
from biassay.pipeline.stereotypes import stereotypes
from biassay.results.stereotypes import Stereotypes
from biassay.stimuli.abc import Abc, groups_named, load_abc
from biassay.texts.group_coverage import abc_words

from .conftest import FILLERS

pytestmark = pytest.mark.extras

GROUPS = ("man", "Asian", "Democrat", "immigrant", "Amish")
COUNTS = {"man": 3, "men": 4, "Asian person": 1, "Asian people": 5, "Democrat": 6, "immigrants": 4, "Amish people": 1}
RARE = {"unconfident": 2, "low-status": 0}


class Counting:
    """An engine that notes how many tasks it was given."""

    def __init__(self) -> None:
        self.tasks = 0

    def run(self, make: Any, tasks: Sequence[Any], **_: Any) -> Iterator[Any]:
        self.tasks += len(tasks)
        return LocalEngine().run(make, tasks, model=True)


def corpus_of(abc: Abc, path: Path) -> Path:
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
def abc() -> Abc:
    return load_abc()


@pytest.fixture(scope="module")
def contexts(abc: Abc, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("abc")
    words = abc_words(abc, all_adjectives=True)
    find_contexts(corpus_of(abc, folder / "c.txt"), folder / "c.parquet", (), words=words, workers=1)
    return folder / "c.parquet"


def asked(abc: Abc, file: Path, **settings: Any) -> GroupContexts:
    return GroupContexts.open(file, groups_named(abc, GROUPS), abc.pairs, **({"min_contexts": 3} | settings))


def vectors_of(model: str, given: GroupContexts, words: Sequence[str]) -> np.ndarray:
    """As unit vectors, straight from the encoder."""
    encoder = open_as(model, "words")
    encoder.prepare()
    rows = [given.contexts.of(word) for word in words]
    texts = [text for part in rows for text in given.contexts.texts(part)]
    spans = [span for part in rows for span in given.contexts.spans(part)]
    vectors = encoder.encode_words(texts, spans).vectors.astype(np.float64)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_scores_are_those_of_all_cosines(abc: Abc, contexts: Path, tiny_model: str, tmp_path: Path) -> None:
    given = asked(abc, contexts)
    found = measure_groups(tiny_model, given, cache=tmp_path)
    assert found.scores.shape == found.standard_errors.shape == (5, 16)
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
            assert found.scores[GROUPS.index(name), column] == pytest.approx(expected, rel=1e-3, abs=1e-4)
    assert not np.isnan(found.standard_errors[~np.isnan(found.scores)]).any()


def test_what_has_too_few_contexts_is_named_and_not_measured(
    abc: Abc, contexts: Path, tiny_model: str, tmp_path: Path
) -> None:
    found = measure_groups(tiny_model, asked(abc, contexts), cache=tmp_path)
    record = found.record
    assert record.groups == {"man": 7, "Asian": 6, "Democrat": 6, "immigrant": 4, "Amish": 1}
    assert record.few_groups == ("Amish",)
    assert set(record.few_adjectives) == {"low-status", "unconfident"}
    assert (record.adjectives["unconfident"], record.adjectives["poor"]) == (2, 5)
    lacking = {
        pair.name for pair, empty in zip(abc.pairs, np.isnan(found.scores[:4]).all(axis=0), strict=True) if empty
    }
    assert lacking == {"low status-high status", "unconfident-confident"}
    assert np.isnan(found.scores).sum() == 16 + 4 * 2
    assert record.own_words == {}


def test_all_adjectives_stand_in_for_rare_ones_but_not_the_groups_own_word(
    abc: Abc, contexts: Path, tiny_model: str, tmp_path: Path
) -> None:
    given = asked(abc, contexts, all_adjectives=True)
    found = measure_groups(tiny_model, given, cache=tmp_path)
    assert not np.isnan(found.scores[:4]).any()
    assert found.record.own_words == {"Democrat": ("Democrat",)}
    column = [pair.name for pair in abc.pairs].index("conservative-liberal")
    own = vectors_of(tiny_model, given, ["Democrat"])
    sides = (["conservative", "right-wing", "Republican"], ["liberal", "left-wing", "progressive"])
    left, right = (np.concatenate([own @ vectors_of(tiny_model, given, [w]).T for w in side], axis=1) for side in sides)
    expected = (right.mean() - left.mean()) / np.concatenate([left, right], axis=1).std()
    assert found.scores[2, column] == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_only_what_is_needed_is_encoded_and_nothing_twice(
    abc: Abc, contexts: Path, tiny_model: str, tmp_path: Path
) -> None:
    engine = Counting()
    given = asked(abc, contexts)
    first = measure_groups(tiny_model, given, cache=tmp_path, engine=engine)
    words = 6 + 2 * 14  # words of four groups that occur, adjectives of 14 pairs; each has a shard of its own
    assert engine.tasks == words
    assert first.encoded == first.texts == 3 + 4 + 1 + 5 + 6 + 4 + 28 * 5
    again = measure_groups(tiny_model, given, cache=tmp_path, engine=engine)
    assert (engine.tasks, again.encoded) == (words, 0)
    np.testing.assert_array_equal(again.scores, first.scores)


def test_words_that_were_not_sought_are_an_error_that_says_what_to_do(abc: Abc, contexts: Path, tmp_path: Path) -> None:
    first = tmp_path / "first.parquet"
    find_contexts(contexts.with_name("c.txt"), first, (), words=abc_words(abc), workers=1)
    with pytest.raises(
        UsageError, match=r"not collected for 83 adjective\(s\): weak, helpless.*--abc --all-adjectives"
    ):
        asked(abc, first, all_adjectives=True)
    other = tmp_path / "other.parquet"
    find_contexts(contexts.with_name("c.txt"), other, (), words=("man", "poor"), workers=1)
    with pytest.raises(
        UsageError, match=r"not collected for 4 group\(s\): Asian, Democrat, immigrant, Amish; .* --abc"
    ):
        asked(abc, other)
    with pytest.raises(UsageError, match="no group of 5 has 50 contexts"):
        asked(abc, first, min_contexts=50)
    with pytest.raises(UsageError, match="min_contexts must be at least 1"):
        asked(abc, first, min_contexts=0)


def test_a_run_is_kept_with_everything_and_read_back(abc: Abc, contexts: Path, tiny_model: str, tmp_path: Path) -> None:
    found = stereotypes(
        tiny_model,
        measures="ceat",
        groups=GROUPS,
        contexts=contexts,
        min_contexts=3,
        cache=tmp_path / "cache",
        out=tmp_path / "run",
    )
    assert Stereotypes.load(tmp_path / "run") == found
    (result,) = found.results
    (record,) = result.measures
    assert (result.kind, record.measure, record.templates, record.chosen) == ("encoder", "ceat", (), ())
    scores = measure_groups(tiny_model, asked(abc, contexts), cache=tmp_path / "cache").scores
    kept = [[np.nan if score is None else score for score in profile.scores] for profile in record.profiles]
    np.testing.assert_array_equal(kept, scores)
    assert record.undefined == np.isnan(scores).sum()
    assert found.manifest.templates == {}
    assert found.manifest.measures == ("ceat",)
    assert found.manifest.contexts is not None
    assert (found.manifest.contexts.file, found.manifest.contexts.min_contexts) == (str(contexts), 3)
    header, *rows = (tmp_path / "run" / "results.tsv").read_text().splitlines()
    assert header.split("\t")[2:] == ["measure", "template", "chosen", "group", "pair", "score"]
    assert len(rows) == 5 * 16
    assert rows[0].split("\t")[2:7] == ["ceat", "", "", "man", "powerless-powerful"]
    assert float(rows[0].split("\t")[7]) == scores[0, 0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"measures": "ceat"}, "the measure ceat needs --contexts FILE"),
        ({"measures": "ilps", "contexts": "c.parquet"}, "--contexts is for the measure ceat; asked for: ilps"),
        ({"measures": "ceat", "contexts": "c.parquet", "templates": ["are"]}, "templates are for ilps, ilps-star, set"),
        ({"measures": "ceat", "contexts": "c.parquet", "intersections": True}, "intersections are for ilps"),
        ({"measures": "caet"}, "ceat"),
    ],
)
def test_what_does_not_go_together_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        stereotypes("hf:none", **settings)
