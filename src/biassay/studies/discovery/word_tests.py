"""Make association tests from discovered words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from biassay.datasets.catalogue import load_first_names
from biassay.datasets.groups import Grouping
from biassay.datasets.schema import Concept, Fingerprint, Source, Test
from biassay.errors import MeasurementError, UsageError
from biassay.models.base import Encoder, weights_digest
from biassay.results.run_data import RunData
from biassay.stats.association import unit_rows
from biassay.studies.discovery.measure import find_known_rows
from biassay.studies.discovery.results import DUAL_USE, find_needed_permutations, get_group_view

CIRCULAR = (
    "The words were chosen because they are close to these names in this model. On this model, its copies and models "
    "fine-tuned from it, the test only confirms the choice, and its results are descriptive. Run it on unrelated "
    "models."
)
_MAX_WORDS = 12  # words per set of a fingerprint
_DECIMALS = 3


def choose_opposing_group(grouping: Grouping, group: str, asked: str | None) -> str:
    """Return the group whose names and words are on the other side of a test.

    Parameters
    ----------
    grouping : Grouping
    group : str
    asked : str or None
        Name that the user gave.
    """
    chosen = asked or grouping.against
    if chosen is None:
        names = ", ".join(other.name for other in grouping.groups if other.name != group)
        raise UsageError(f"a test needs a second group: name it with --against (one of {names})")
    if grouping.group(chosen).name == grouping.group(group).name:
        raise UsageError(f"a test compares two groups, and both are {group!r}; name another with --against")
    return chosen


def make_tests(run: RunData, group: str, against: str, size: int) -> tuple[Test, ...]:
    """Make tests of the names of two groups by associated words and, if there are any, by emergent words.

    Words are associated with one group, and score above its threshold against the other one. They are ranked by that
    score. Words associated with both groups and first names are left out. Words are those of the run's first model,
    whose digest the tests hold.

    Parameters
    ----------
    run : RunData
    group, against : str
        Names of both groups.
    size : int
        Largest number of words per set.
    """
    check_size(size)
    groups = run.manifest.inputs.groups.values()
    names = {name.casefold() for names in groups for name in names} | load_first_names()
    theirs = _select_test_words(run, against, group, emergent=False)
    tests: list[Test] = []
    for kind, emergent in (("associated", False), ("emergent", True)):
        own = _select_test_words(run, group, against, emergent=emergent)
        A = [word for word in own if word not in theirs and word.casefold() not in names][:size]
        B = [word for word in theirs if word not in own and word.casefold() not in names][:size]
        if min(len(A), len(B)) >= 2:
            if not (tests and set(A) == set(tests[0].A.words)):  # the same test again
                tests.append(_make_test(run, (group, against), kind, (A, B)))
        elif not emergent:
            raise MeasurementError(
                f"a test needs at least two words per set that are closer to one of the two groups than to the other; "
                f"{len(A)} are associated with {group} and {len(B)} with {against}: {_suggest_permutations(run)}"
                "search other words (--words), keep more (--keep), allow more false findings (--alpha) or lower the "
                "threshold (--threshold)"
            )
    return tuple(tests)


def add_fingerprint(tests: Sequence[Test], encoder: Encoder) -> tuple[Test, ...]:
    """Store cosines of the searched model with the tests, so that its relatives are recognized.

    Parameters
    ----------
    tests : sequence of Test
        As `make_tests` returns them, with one source.
    encoder : Encoder
        The searched model.

    Returns
    -------
    tuple of Test
        The same tests, whose source holds the cosines of at most 24 targets with at most 24 attributes.
    """
    first = tests[0]
    sides = [
        [*one.words[:_MAX_WORDS], *other.words[:_MAX_WORDS]] for one, other in ((first.X, first.Y), (first.A, first.B))
    ]
    encoder.prepare([*sides[0], *sides[1]])
    known: list[tuple[str, ...]] = []
    directions = []
    for words in sides:
        embeddings = encoder.encode(words)
        there = find_known_rows(embeddings)
        known.append(tuple(np.array(words, dtype=object)[there]))
        directions.append(unit_rows(embeddings.vectors[there], "fingerprint"))
    targets, attributes = directions
    cosines = np.clip(targets @ attributes.T, -1.0, 1.0).round(_DECIMALS).tolist()
    fingerprint = Fingerprint(known[0], known[1], tuple(map(tuple, cosines)))
    source = replace(first.source, fingerprints=(fingerprint,))
    return tuple(replace(test, source=source) for test in tests)


def _make_test(run: RunData, groups: tuple[str, str], kind: str, words: tuple[list[str], list[str]]) -> Test:
    inputs, (group, against) = run.manifest.inputs, groups
    X, Y = (
        Concept(name, inputs.labels[name], inputs.groups[name], clusters=inputs.clusters.get(name, ()))
        for name in groups
    )
    return Test(
        name=f"{group}-{kind}",
        title=f"{X.label} or {Y.label}, {kind} words of the first or words of the second",
        X=X,
        Y=Y,
        A=Concept(f"{group}-{kind}-words", f"Words found of {X.label} ({kind})", tuple(words[0])),
        B=Concept(f"{against}-words-against-{kind}", f"Words found of {Y.label}", tuple(words[1])),
        source=_make_source(run, group),
    )


def _make_source(run: RunData, group: str) -> Source:
    model, inputs = run.manifest.models[0], run.manifest.inputs
    return Source(
        name=f"found-{group}",
        citation=f"words found by IBD and EIBD in {model.text} ({model.revision}); groups: {inputs.citation}",
        licence="the words: facts about the model; names: " + inputs.licence,
        version="1",
        language=inputs.language,
        note=f"{DUAL_USE} {CIRCULAR}",
        searched_models=(weights_digest(model.backend, model.name, model.revision),),
    )


def _suggest_permutations(run: RunData) -> str:
    rows = run.tables.get("groups", ())
    wanted = max((find_needed_permutations(row, run.manifest.settings) or 0 for row in rows), default=0)
    return f"take more permutations (--n-permutations {wanted} or more), " if wanted else ""


def check_size(size: int) -> None:
    """Raise UsageError if a set has too few words for a test."""
    if size < 2:
        raise UsageError(f"a test needs at least two words per set, got {size}")


def _select_test_words(run: RunData, group: str, against: str, *, emergent: bool) -> list[str]:
    """Select the words of a group that distinguish it from the other one, best first, and that a file can hold."""
    found = get_group_view(run, group)
    threshold = found.row.threshold_emergent if emergent else found.row.threshold
    scores = {
        word.word: score
        for word in found.words
        if (score := word.scores[against]) is not None
        and (word.emergent if emergent else word.associated)
        and word.word.isprintable()
        and word.word == word.word.strip()
    }
    return sorted((word for word, score in scores.items() if score > threshold), key=lambda word: -scores[word])
