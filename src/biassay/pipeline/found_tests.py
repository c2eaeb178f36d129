"""From discovery to measurement: the words found of two groups become a test."""

from __future__ import annotations

from biassay.errors import MeasurementError, UsageError
from biassay.results.discovery import DUAL_USE, Discovery
from biassay.stimuli.groups import Grouping
from biassay.stimuli.model import Concept, Source, Test

__all__ = ["CIRCULAR", "against_of", "check_size", "found_tests"]

CIRCULAR = (
    "The words were chosen because they lean to these names in this model: on the same model and names the test "
    "confirms the choice and measures nothing. Use it on other models, or over contexts."
)


def against_of(grouping: Grouping, group: str, asked: str | None) -> str:
    """The group whose names and words stand on the other side of a test."""
    chosen = asked or grouping.against
    if chosen is None:
        names = ", ".join(other.name for other in grouping.groups if other.name != group)
        raise UsageError(f"a test needs a second group: name it with --against (one of {names})")
    if grouping.group(chosen).name == grouping.group(group).name:
        raise UsageError(f"a test compares two groups, and both are {group!r}; name another with --against")
    return chosen


def found_tests(discovery: Discovery, group: str, against: str, size: int) -> tuple[Test, ...]:
    """Tests of the names of two groups by words found of each: those associated, and where there are those emergent.

    At most ``size`` words a side: found of a group, and with a score above its threshold against the other of the two,
    by which they are ranked. A word found of both is left out.
    """
    check_size(size)
    manifest = discovery.manifest
    theirs = _words(discovery, against, group, emergent=False)
    source = Source(
        name=f"found-{group}",
        citation=f"words found by IBD and EIBD in {manifest.models[0].text} ({manifest.models[0].revision}); "
        f"groups: {manifest.citation}",
        licence="the words: facts about the model; names: " + manifest.licence,
        version="1",
        note=f"{DUAL_USE} {CIRCULAR}",
    )
    tests: list[Test] = []
    for kind, emergent in (("associated", False), ("emergent", True)):
        own = _words(discovery, group, against, emergent=emergent)
        A = [word for word in own if word not in theirs][:size]
        B = [word for word in theirs if word not in own][:size]
        if min(len(A), len(B)) < 2:
            if emergent:
                continue
            raise MeasurementError(
                f"a test needs at least two words a side that lean to one of the two groups rather than the other: "
                f"{len(A)} were found of {group} and {len(B)} of {against}; {_more_permutations(discovery)}"
                "search other words (--words), keep more (--keep), allow more false findings (--alpha) or lower the "
                "threshold (--threshold)"
            )
        if emergent and tests and set(A) == set(tests[0].A.words):
            continue  # the same test again
        X, Y = (Concept(name, manifest.labels[name], manifest.groups[name]) for name in (group, against))
        tests.append(
            Test(
                name=f"{group}-{kind}",
                title=f"{X.label} or {Y.label}, {kind} words of the first or words of the second",
                X=X,
                Y=Y,
                A=Concept(f"{group}-{kind}-words", f"Words found of {X.label} ({kind})", tuple(A)),
                B=Concept(f"{against}-words-against-{kind}", f"Words found of {Y.label}", tuple(B)),
                source=source,
            )
        )
    return tuple(tests)


def _more_permutations(discovery: Discovery) -> str:
    wanted = max((discovery.permutations_wanted(found) or 0 for found in discovery.results), default=0)
    return f"take more permutations (--permutations {wanted} or more), " if wanted else ""


def check_size(size: int) -> None:
    """Refuse a test that cannot be."""
    if size < 2:
        raise UsageError(f"a test needs at least two words a side, got {size}")


def _words(discovery: Discovery, group: str, against: str, *, emergent: bool) -> list[str]:
    """Words found of a group that tell it from the other one, best first; those that a file cannot hold are left."""
    found = discovery.of(group)
    place = found.other_groups.index(against)
    threshold = found.threshold_emergent if emergent else found.threshold
    scores = {
        word.word: score
        for word in found.words
        if (score := word.scores[place]) is not None
        and (word.emergent if emergent else word.associated)
        and word.word.isprintable()
        and word.word == word.word.strip()
    }
    return sorted((word for word, score in scores.items() if score > threshold), key=lambda word: -scores[word])
