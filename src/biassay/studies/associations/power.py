"""Power of an association test before a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from biassay.datasets.catalogue import select_tests
from biassay.datasets.schema import ROLES, Test
from biassay.datasets.variance_priors import typical_components
from biassay.errors import UsageError
from biassay.results.outcomes import Result
from biassay.stats.crossed import VarianceComponents
from biassay.stats.power import ALPHA, POWER, CrossedDesign, Sizes, Sought, largest_d, words_needed
from biassay.studies.associations.results import AssociationRecord


@dataclass(frozen=True)
class Power:
    """Power of an association test.

    Attributes
    ----------
    sizes : (int, int, int, int)
        Words of X, Y, A and B.
    alpha, wanted : float
        Level of the test, two-sided, and the power that is wanted.
    components : Components
        How associations vary from word to word.
    smallest_d, smallest_D : float or None
        Smallest effect with the wanted power: d over words, and D in the units of the components, which are cosine
        units for those of a result. None if there are too few words for a p-value.
    largest_d : float
        Largest possible d with these numbers of target words.
    effect : float or None
        True d over words.
    power : float or None
        Power for this effect with these sizes. None if no effect was given.
    words : int or None
        Words per set, the same in all four, that give the wanted power. None if 10,000 are not enough.
    targets, attributes : int or None
        Words per target set with these attributes, and words per attribute set with these targets. None if the other
        side has too few words.
    """

    sizes: Sizes
    alpha: float
    wanted: float
    components: VarianceComponents
    smallest_d: float | None
    smallest_D: float | None  # noqa: N815
    largest_d: float
    effect: float | None = None
    power: float | None = None
    words: int | None = None
    targets: int | None = None
    attributes: int | None = None


def power(
    sizes: tuple[int, int, int, int] | str | Mapping[str, Any],
    effect: float | None = None,
    *,
    components: object = None,
    alpha: float = ALPHA,
    power: float = POWER,
) -> Power:
    """Compute the power of an association test, and how many words an effect needs.

    Parameters
    ----------
    sizes : (int, int, int, int), or str or dict of words
        Numbers of words of X, Y, A and B; or a test, as in `biassay.run`.
    effect : float, optional
        True effect, as d over words, whose power and needed words are computed.
    components : Components, or a result that has them, optional
        How associations vary from word to word: those of a result (``biassay.weat(...).crossed``, or a row of
        ``biassay.run(...).results``) plan the next test on the same model, and D is in cosine units then. By default
        the typical components of the test or, for sizes alone, of word tests.
    alpha : float
        Level of the test, two-sided.
    power : float
        Wanted power.

    Returns
    -------
    Power

    Notes
    -----
    The power is that of the crossed test, which treats target words and attribute words as samples: more targets alone
    do not help if attributes are few, nor the reverse. It holds for normal components. Typical components are medians
    over three models, in units of the variance of associations within target sets, and differ for other models. With
    more attributes the same effect gives a larger d, because chance averages out.

    Examples
    --------
    >>> import biassay
    >>> found = biassay.power((8, 8, 8, 8), effect=0.5)
    >>> round(found.smallest_d, 1), round(found.power, 1), found.targets
    (1.4, 0.1, None)
    """
    test = _find_test(sizes) if isinstance(sizes, str | Mapping) else None
    numbers: Any = sizes if test is None else count_clusters(test)
    chosen = typical_components(test) if components is None else _parse_components(components)
    design = CrossedDesign(chosen, tuple(numbers) if isinstance(numbers, list) else numbers)
    D = design.smallest_difference(alpha, power)
    smallest_d = None if D is None else design.d_from_D(D)
    found = Power(design.sizes, alpha, power, design.components, smallest_d, D, largest_d(*design.sizes[:2]))
    if effect is None:
        return found
    D = design.D_from_d(effect)
    found = replace(found, effect=effect, power=design.power(D, alpha))
    all_four, targets, attributes = (
        words_needed(design.components, D, design.sizes, sought, alpha, power) for sought in get_args(Sought)
    )
    return replace(found, words=all_four, targets=targets, attributes=attributes)


def _find_test(given: str | Mapping[str, Any]) -> Test:
    chosen = select_tests(given)
    if len(chosen) != 1:
        raise UsageError(f"{given!r} matches {len(chosen)} tests; name one")
    return chosen[0]


def count_clusters(test: Test) -> Sizes:
    """Return the clusters of words of X, Y, A and B; an error where the words are not known."""
    if any(text.word is None for role in ROLES for text in test.concept(role).given):
        raise UsageError(f"test {test.name!r}: its file does not say which words its texts are made from")
    n, m, k, l = (len(set(test.concept(role).cluster_labels.values())) for role in ROLES)  # noqa: E741
    return n, m, k, l


def _parse_components(given: object) -> VarianceComponents:
    """Read variance components from a mapping, a crossed test, an association or a result of a run."""
    if isinstance(given, AssociationRecord | Result):
        parts = [part for part in (given.var_targets, given.var_attributes, given.var_residual) if part is not None]
        given = VarianceComponents(*parts) if len(parts) == 3 else None
    for name in ("crossed", "components"):
        given = getattr(given, name, given)
    if not isinstance(given, VarianceComponents):
        raise UsageError(
            f"components must be Components or a result that has them, got {type(given).__name__}"
            + ("; there are none if a set has one word, or if the words are unknown" if given is None else "")
        )
    return given
