"""Pairs of opposite traits, however a file spells them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from biassay.errors import UsageError, nearest_names

__all__ = ["Pair", "PairNames"]

Pair = tuple[str, str]
"""The left and the right trait."""
_DASH = re.compile(r"[-\u2013\u2014]")
_SPACED_DASH = re.compile(r"\s+[-\u2013\u2014]\s+")


class PairNames:
    """Finds the pair that a spelling means; without a list of pairs, the file makes its own."""

    def __init__(self, pairs: Sequence[Pair] | None, aliases: Mapping[str, str]) -> None:
        self._fixed = pairs is not None
        self._aliases = {_folded(spelt): wanted for spelt, wanted in aliases.items()}
        self.pairs = [(left, right) for left, right in pairs or ()]
        self._places = {(_folded(left), _folded(right)): i for i, (left, right) in enumerate(self.pairs)}
        self.spellings: dict[int, str] = {}
        self.turned: Counter[str] = Counter()

    def find(self, spelt: str) -> tuple[int, bool]:
        """Place of the pair and whether it stands in reverse; a UsageError says what is wrong with it."""
        options = [(self._trait(left), self._trait(right)) for left, right in _splits(spelt)]
        for left, right in options:
            for key, turned in (((_folded(left), _folded(right)), False), ((_folded(right), _folded(left)), True)):
                if key in self._places:
                    self.spellings.setdefault(self._places[key], spelt)
                    self.turned[spelt] += turned
                    return self._places[key], turned
        if not options or any(_folded(left) == _folded(right) for left, right in options):
            raise UsageError("not a pair of traits, 'left - right'")
        if self._fixed:
            known = [" - ".join(pair) for pair in self.pairs]
            near = nearest_names(" - ".join(options[0]), known)
            raise UsageError(f"unknown pair; {f'did you mean {near[0]!r}?' if near else 'known: ' + ', '.join(known)}")
        if len(options) > 1:
            raise UsageError("it is not clear where the left trait ends; write 'left - right', with spaces")
        place = self._places[_folded(options[0][0]), _folded(options[0][1])] = len(self.pairs)
        self.pairs.append(options[0])
        self.spellings[place] = spelt
        return place, False

    def _trait(self, spelt: str) -> str:
        return self._aliases.get(_folded(spelt), spelt)


def _splits(spelt: str) -> list[Pair]:
    """Where a pair may be split: at a dash between spaces if there is one, else at any dash."""
    dashes = list(_SPACED_DASH.finditer(spelt)) or list(_DASH.finditer(spelt))
    halves = [(spelt[: dash.start()].strip(), spelt[dash.end() :].strip()) for dash in dashes]
    return [(left, right) for left, right in halves if left and right]


def _folded(trait: str) -> str:
    return " ".join(trait.casefold().split())
