"""Methods that erase a concept, by their defining properties, and models with the setting ``erase=``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import biassay
from biassay.errors import InsufficientVocabularyError, MissingExtraError, UnknownNameError, UsageError
from biassay.models import erasure
from biassay.models.base import TextEmbeddings
from biassay.models.erasure import Eraser, Erasure, FittingWords, get_erasure_method
from biassay.stats.probe import fit_linear_probe

CORE = ("mean-projection", "hard", "inlp")
LEACE = pytest.param("leace", marks=pytest.mark.extras)
Floats = np.ndarray


def make_words(n: int = 40, d: int = 12, classes: int = 2, seed: int = 0) -> FittingWords:
    """Draw correlated vectors whose classes differ in mean and, along another direction, in spread."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n * classes) % classes
    vectors = rng.normal(size=(n * classes, d)) @ rng.normal(size=(d, d))
    vectors += rng.normal(size=(classes, d))[labels] * 3.0
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = np.arange(10 * classes).reshape(10, classes)
    return FittingWords(tuple(f"w{i}" for i in range(len(labels))), vectors, labels, pairs)


def erase(eraser: Eraser, vectors: Floats, words: tuple[str, ...] = ()) -> Floats:
    return eraser.erase(words or ("",) * len(vectors), vectors).astype(np.float64)


def cross_covariance(vectors: Floats, labels: Floats) -> Floats:
    classes = np.eye(labels.max() + 1)[labels]
    return (vectors - vectors.mean(axis=0)).T @ (classes - classes.mean(axis=0)) / len(labels)


@pytest.mark.parametrize("classes", [2, 4])
def test_mean_projection_leaves_no_difference_of_means(classes: int) -> None:
    given = make_words(classes=classes)
    eraser = get_erasure_method("mean-projection").fit(given)
    erased = erase(eraser, given.vectors)
    means = [erased[given.labels == label].mean(axis=0) for label in range(classes)]
    assert np.ptp(means, axis=0) == pytest.approx(0.0, abs=1e-7)
    assert eraser.left.shape[1] == classes - 1
    difference = given.vectors[given.labels == 0].mean(axis=0) - given.vectors[given.labels == 1].mean(axis=0)
    if classes == 2:  # by hand: the component along the difference of means is removed
        unit = difference / np.linalg.norm(difference)
        assert erased == pytest.approx(given.vectors - np.outer(given.vectors @ unit, unit), abs=1e-6)


def test_hard_debiasing_neutralizes_and_equalizes() -> None:
    given = make_words()
    eraser = get_erasure_method("hard").fit(given)
    pairs = given.vectors[given.pairs]
    differences = (pairs - pairs.mean(axis=1, keepdims=True)).reshape(-1, 12)
    direction = np.linalg.eigh(differences.T @ differences)[1][:, -1]
    others = np.random.default_rng(1).normal(size=(30, 12))
    neutral = erase(eraser, others)
    assert neutral @ direction == pytest.approx(0.0, abs=1e-6)
    paired = given.pairs.ravel()
    equalized = erase(eraser, given.vectors[paired], tuple(given.words[row] for row in paired)).reshape(10, 2, 12)
    assert np.linalg.norm(equalized, axis=2) == pytest.approx(1.0, abs=1e-6)
    cosines = equalized @ neutral.T
    assert cosines[:, 0] == pytest.approx(cosines[:, 1], abs=1e-6)  # both words of a pair are as far from any other
    assert equalized[:, 0] @ direction == pytest.approx(-(equalized[:, 1] @ direction), abs=1e-6)
    assert np.abs(equalized @ direction).min() > 0.01


@pytest.mark.parametrize("classes", [2, 3])
def test_inlp_projects_onto_the_null_space_of_every_probe(classes: int) -> None:
    given = make_words(d=60, classes=classes)
    basis = get_erasure_method("inlp").fit(given).right
    assert basis.shape[0] == 10 * (classes - 1)
    assert basis @ basis.T == pytest.approx(np.eye(len(basis)), abs=1e-9)
    projection = np.eye(60) - basis.T @ basis
    assert projection @ projection == pytest.approx(projection, abs=1e-9)
    remaining = np.eye(60)
    for _ in range(10):  # round by round, by projection matrices
        weights = fit_linear_probe(given.vectors @ remaining, given.labels)
        assert weights @ projection == pytest.approx(0.0, abs=1e-7 * np.abs(weights).max() + 1e-12)
        spanned = np.linalg.svd(weights)[2][: classes - 1]
        remaining = remaining @ (np.eye(60) - spanned.T @ spanned)


@pytest.mark.extras
@pytest.mark.parametrize("classes", [2, 4])
def test_leace_leaves_no_covariance_with_classes_and_agrees_with_its_closed_form(classes: int) -> None:
    given = make_words(n=200, classes=classes)
    erased = erase(get_erasure_method("leace").fit(given), given.vectors)
    assert np.abs(cross_covariance(given.vectors, given.labels)).max() > 1e-3
    assert cross_covariance(erased, given.labels) == pytest.approx(0.0, abs=1e-7)
    assert fit_linear_probe(erased, given.labels) == pytest.approx(0.0, abs=1e-5)  # chance: the constant is best
    assert erased.mean(axis=0) == pytest.approx(given.vectors.mean(axis=0), abs=1e-7)

    from concept_erasure.shrinkage import optimal_linear_shrinkage
    from torch import from_numpy, tensor

    centred = given.vectors - given.vectors.mean(axis=0)
    covariance = optimal_linear_shrinkage(from_numpy(centred.T @ centred / len(centred)), tensor(len(centred))).numpy()
    values, axes = np.linalg.eigh(covariance)
    whiten, colour = (axes @ np.diag(values**power) @ axes.T for power in (-0.5, 0.5))
    spanned = np.linalg.svd(whiten @ cross_covariance(given.vectors, given.labels))[0][:, : classes - 1]
    expected = given.vectors - centred @ (colour @ spanned @ spanned.T @ whiten).T
    assert erased == pytest.approx(expected, abs=1e-6)


@pytest.mark.extras
def test_leace_is_that_of_the_package() -> None:
    given = make_words(n=100)
    erased = erase(get_erasure_method("leace").fit(given), given.vectors)

    from concept_erasure import LeaceEraser
    from torch import from_numpy
    from torch.nn.functional import one_hot

    vectors = from_numpy(given.vectors)
    released = LeaceEraser.fit(vectors, one_hot(from_numpy(given.labels)).double(), constrain_cov_trace=False)
    assert erased == pytest.approx(released(vectors).numpy(), abs=1e-6)


@pytest.mark.parametrize("method", [*CORE, LEACE])
def test_glove_without_gender_keeps_its_words_and_loses_the_classes(method: str) -> None:
    encoder = biassay.open_encoder(f"glove?erase={method}:gender")
    base = biassay.open_encoder("glove")
    texts = ["doctor", "nurse", "qqqq", "the old house"]
    encoder.prepare(texts)
    base.prepare(texts)
    erased, plain = encoder.encode(texts), base.encode(texts)
    assert erased.unknown == plain.unknown
    assert not erased.vectors[2].any()  # an unknown text stays without a direction
    units = plain.vectors[[0, 1, 3]] / np.linalg.norm(plain.vectors[[0, 1, 3]], axis=1, keepdims=True)
    cosines = (units * erased.vectors[[0, 1, 3]]).sum(axis=1)
    assert (cosines > 0.8).all()
    assert (np.abs(erased.vectors[[0, 1, 3]] - units).max(axis=1) > 1e-3).all()
    settings = dict(encoder.identity.settings)
    assert settings["erase"].startswith(f"{method}:gender@")
    assert encoder.identity.key != base.identity.key
    assert encoder.identity.weights == base.identity.weights


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("glove?erase=inpl:gender", "did you mean 'inlp'?"),
        ("glove?erase=inlp:gendre", "did you mean 'gender'?"),
        ("glove?erase=inlp", "METHOD:CONCEPT"),
        ("glove?erase=hard:age", "Hard debiasing needs pairs of words, and the concept 'age' has none; use another"),
        ("glove?eras=inlp:gender", "did you mean 'erase'?"),
    ],
)
def test_a_wrong_erasure_is_refused_with_advice(model: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        biassay.open_encoder(model)
    assert said in str(refused.value)


def test_a_model_without_vectors_of_texts_cannot_be_erased() -> None:
    with pytest.raises(UnknownNameError, match="setting of model 'chat:x'"):
        biassay.ask("chat:x?base_url=http://127.0.0.1:1&erase=inlp:gender")


def test_a_missing_package_comes_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasure, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"LEACE uses concept_erasure .*biassay\[debias\]"):
        biassay.open_encoder("glove?erase=leace:gender")


def test_too_few_words_are_refused() -> None:
    one = Erasure.make("mean-projection", "race")
    vectors = np.random.default_rng(0).normal(size=(len(one.words), 8)).astype(np.float32)
    unknown: list[Any] = [() if i % 40 < 9 or i >= 40 else ((0, 1),) for i in range(len(one.words))]
    with pytest.raises(InsufficientVocabularyError, match=r"9 words of the class 'white'.*at least 10"):
        one.fit(TextEmbeddings.from_vectors(vectors, unknown), "tiny")


def test_hard_debiasing_needs_five_known_pairs() -> None:
    one = Erasure.make("hard", "gender")
    vectors = np.random.default_rng(0).normal(size=(len(one.words), 8)).astype(np.float32)
    unknown: list[Any] = [((0, 1),) if 8 <= i < 44 else () for i in range(len(one.words))]
    with pytest.raises(InsufficientVocabularyError, match="knows 4 pairs of the concept, and at least 5"):
        one.fit(TextEmbeddings.from_vectors(vectors, unknown), "tiny")
