"""Association tests whose words come in clusters, such as he, him and his: declared and undeclared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biassay.stats.association import unit_rows
from biassay.stats.crossed import VarianceComponents, crossed_test
from biassay.studies.associations.weat import average_texts

from .associations import components
from .claim import Experiment, Level, Line, up_to
from .worlds import glove

__all__ = ["CLAIMS", "lines"]

CLAIMS = ()
Floats = NDArray[np.float64]
Members = Sequence[int]
"""Number of words of every cluster of a set."""
SET = 8  # clusters per set
PAIRS, TRIPLES, SINGLE = (2,) * SET, (3,) * SET, (1,) * SET
UNEQUAL = (1, 1, 1, 1, 2, 2, 3, 5)
REPETITIONS = 4000
_ALPHA = up_to(0.065)


def lines() -> list[Line]:
    designs: dict[str, tuple[tuple[Members, Members], float, Callable[..., Floats]]] = {
        "pairs, r = .8": ((PAIRS, PAIRS), 0.8, _normal),
        "pairs, r = .95": ((PAIRS, PAIRS), 0.95, _normal),
        "triples, r = .8": ((TRIPLES, TRIPLES), 0.8, _normal),
        "triples, r = .95": ((TRIPLES, TRIPLES), 0.95, _normal),
        "unequal clusters of 1 to 5 words, r = .9": ((UNEQUAL, UNEQUAL), 0.9, _normal),
        "triples among the targets only, r = .9": ((TRIPLES, SINGLE), 0.9, _normal),
        "triples, r = .9, skewed components": ((TRIPLES, TRIPLES), 0.9, _skewed),
        "triples, r = .9, t3 components": ((TRIPLES, TRIPLES), 0.9, _heavy),
    }
    found = []
    for name, ((targets, attributes), correlation, sample) in designs.items():
        draw = partial(_simulated, targets=targets, attributes=attributes, correlation=correlation, sample=sample)
        about = f"{SET} clusters per set, all redrawn: {name}"
        found += _both(Experiment(f"near-synonyms {name}", about, draw, REPETITIONS))
    about = f"GloVe: {SET} clusters per set, each a random frequent word and its two nearest neighbours"
    return found + _both(Experiment("near-synonyms glove triples", about, _glove_triples, REPETITIONS))


def _both(world: Experiment) -> list[Line]:
    return [
        Line("crossed p", world, Level("declared", _ALPHA), "clusters declared"),
        Line("crossed p", world, Level("undeclared"), "clusters not declared: its assumption fails"),
    ]


def _normal(rng: np.random.Generator, *shape: int) -> Floats:
    return rng.normal(size=shape)


def _skewed(rng: np.random.Generator, *shape: int) -> Floats:
    return rng.exponential(size=shape) - 1.0


def _heavy(rng: np.random.Generator, *shape: int) -> Floats:
    return rng.standard_t(3, size=shape) / np.sqrt(3.0)


def _simulated(
    rng: np.random.Generator,
    targets: Members,
    attributes: Members,
    correlation: float,
    sample: Callable[..., Floats],
) -> Mapping[str, Any]:
    """Draw components that the words of a cluster share, plus a small part per word."""
    parts = components((SET,) * 4)
    rows = np.repeat(np.arange(2 * SET), [*targets, *targets])
    columns = np.repeat(np.arange(2 * SET), [*attributes, *attributes])
    of_clusters = _table(rng, np.arange(2 * SET) // SET, np.arange(2 * SET) // SET, parts, sample)
    of_words = _table(rng, rows // SET, columns // SET, parts, sample)
    table = np.sqrt(correlation) * of_clusters[np.ix_(rows, columns)] + np.sqrt(1.0 - correlation) * of_words
    n, k = sum(targets), sum(attributes)
    labels = [list(map(str, of)) for of in (rows[:n], rows[n:], columns[:k], columns[k:])]
    return _p_values(table, labels)


def _table(
    rng: np.random.Generator,
    sides: NDArray[np.int64],
    poles: NDArray[np.int64],
    parts: VarianceComponents,
    sample: Callable[..., Floats],
) -> Floats:
    """Draw cosines without an association: random row and column effects, and a residual."""
    of_rows = sample(rng, len(sides), 2) * np.sqrt(max(parts.targets, 0.0) / 2.0)
    of_columns = sample(rng, 2, len(poles)) * np.sqrt(max(parts.attributes, 0.0) / 2.0)
    rest = sample(rng, len(sides), len(poles)) * np.sqrt(parts.residual)
    return np.asarray(of_rows[:, poles] + of_columns[sides] + rest)


@cache
def _triples() -> NDArray[np.intp]:
    """Return disjoint triples of GloVe rows: a frequent word and its two nearest neighbours."""
    _, rows = glove()
    unit = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    free = np.ones(len(unit), dtype=np.bool_)
    found = []
    for i in np.random.default_rng(0).permutation(len(unit)):
        if free[i] and free.sum() >= 3:
            free[i] = False
            near = np.where(free, unit @ unit[i], -2.0)
            others = np.argpartition(near, -2)[-2:]
            free[others] = False
            found.append([int(i), *map(int, others)])
        if len(found) == 1500:
            break
    return np.array(found)


def _glove_triples(rng: np.random.Generator) -> Mapping[str, Any]:
    _, rows = glove()
    triples = _triples()
    chosen = triples[rng.permutation(len(triples))[: 4 * SET]].reshape(4, SET * 3)
    label = [str(i) for i in range(SET) for _ in range(3)]
    units = [unit_rows(rows[of], "words") for of in chosen]
    return _p_values(np.concatenate(units[:2]) @ np.concatenate(units[2:]).T, [label] * 4)


def _p_values(table: Floats, labels: Sequence[list[str]]) -> Mapping[str, Any]:
    """Return crossed p-values with and without declared clusters, and skip the slow sentence-level p."""
    x, y, a, b = labels
    sizes = (len(x), len(y), len(a), len(b))
    averaged, counts = average_texts(table, sizes, (x, y, a, b))
    declared, undeclared = (crossed_test(of, n, k) for of, (n, _, k, _) in ((averaged, counts), (table, sizes)))
    return {"declared": declared.p_value, "undeclared": undeclared.p_value}
