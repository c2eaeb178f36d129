"""Match spellings of trait pairs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from biassay.errors import UsageError, find_nearest_names

Pair = tuple[str, str]
"""Left and right trait."""
_DASH = re.compile(r"[-\u2013\u2014]")
_SPACED_DASH = re.compile(r"\s+[-\u2013\u2014]\s+")


class TraitPairIndex:
    """Find trait pairs by their spellings in a file.

    Parameters
    ----------
    pairs : sequence of (str, str) or None
        Known pairs. If None, every new spelling adds a pair.
    aliases : mapping
        Traits by their other spellings.

    Attributes
    ----------
    pairs : list of (str, str)
        All pairs.
    spellings : dict
        First spelling of each pair, by index.
    reversed : Counter
        How often each spelling reverses its pair.
    """

    def __init__(self, pairs: Sequence[Pair] | None, aliases: Mapping[str, str]) -> None:
        self._fixed = pairs is not None
        self._aliases = {_fold_trait(alias): trait for alias, trait in aliases.items()}
        self.pairs = [(left, right) for left, right in pairs or ()]
        self._indices = {(_fold_trait(left), _fold_trait(right)): i for i, (left, right) in enumerate(self.pairs)}
        self.spellings: dict[int, str] = {}
        self.reversed: Counter[str] = Counter()

    def find(self, spelling: str) -> tuple[int, bool]:
        """Return the index of a pair and whether it is reversed. Raise UsageError if it is unknown."""
        splits = _split_candidates(spelling)
        candidates = [(self._get_trait(left), self._get_trait(right)) for left, right in splits]
        keys = [(_fold_trait(left), _fold_trait(right)) for left, right in candidates]
        for left, right in keys:
            for key, is_reversed in (((left, right), False), ((right, left), True)):
                if key in self._indices:
                    self.spellings.setdefault(self._indices[key], spelling)
                    self.reversed[spelling] += is_reversed
                    return self._indices[key], is_reversed
        if not keys or any(left == right for left, right in keys):
            raise UsageError("not a pair of traits; write 'left - right'")
        if self._fixed:
            known = [" - ".join(pair) for pair in self.pairs]
            similar = find_nearest_names(" - ".join(candidates[0]), known)
            hint = f"did you mean {similar[0]!r}?" if similar else f"known: {', '.join(known)}"
            raise UsageError(f"unknown pair; {hint}")
        if len(keys) > 1:
            raise UsageError("unclear where the left trait ends; write 'left - right', with spaces")
        index = self._indices[keys[0]] = len(self.pairs)
        self.pairs.append(candidates[0])
        self.spellings[index] = spelling
        return index, False

    def _get_trait(self, spelling: str) -> str:
        return self._aliases.get(_fold_trait(spelling), spelling)


def _split_candidates(spelling: str) -> list[Pair]:
    """Split a pair at a dash between spaces if there is one, otherwise at any dash."""
    dashes = list(_SPACED_DASH.finditer(spelling)) or list(_DASH.finditer(spelling))
    halves = [(spelling[: dash.start()].strip(), spelling[dash.end() :].strip()) for dash in dashes]
    return [(left, right) for left, right in halves if left and right]


def _fold_trait(trait: str) -> str:
    return " ".join(trait.casefold().split())
