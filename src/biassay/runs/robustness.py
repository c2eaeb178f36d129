"""`biassay.robustness`: what associations survive. Its keywords are the settings of the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from biassay.engines.base import Engine
from biassay.runs.keywords import measured_by, several
from biassay.runs.listener import Listener, PathLike
from biassay.runs.run import Run
from biassay.stats.similarities import SIMILARITIES

__all__ = ["robustness"]


def robustness(
    models: object = ("use",),
    tests: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] = (),
    *,
    readings: str | Sequence[str] = (),
    similarities: str | Sequence[str] = tuple(SIMILARITIES),
    n_subsets: int = 20,
    alpha: float = 0.05,
    max_lost: float = 0.2,
    seed: int = 0,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    engine: Engine | None = None,
    listener: Listener | None = None,
) -> Run:
    """Measure association tests in many ways: which findings do not hang on one of them?

    Parameters
    ----------
    models, tests
        As in `biassay.run`.
    readings : list of str
        Layers and poolings, such as ``layer=3&pool=mean``; by default up to 8 layers, and every pooling of the model's
        own layer. One pass through the model gives them all.
    similarities : list of str
        Of ``cosine``, ``centred`` (without the mean of frequent words), ``components`` (also without their three
        principal components) and ``rank`` (Spearman's correlation). The first specification is always by cosine.
    n_subsets : int
        Random halves of the words.
    alpha : float
        Level of significance; intervals have the confidence 1 - alpha.
    max_lost, seed, out, cache, engine, listener
        As in `biassay.run`.

    Returns
    -------
    Run
        ``results`` say of every test what `biassay.run` says of it (d, its interval and the crossed p-value), how many
        choices agree with that, and one joint p-value, which speaks of these attribute words. The table
        ``specifications`` holds every choice.

    References
    ----------
    .. [1] Simonsohn, U., Simmons, J. P., and Nelson, L. D. (2020). Specification curve analysis. Nature Human
       Behaviour, 4, 1208-1214.

    Examples
    --------
    >>> import biassay
    >>> found = biassay.robustness("glove", "weat6").results[0]
    >>> found.choices, found.same_sign, found.p_value_crossed < 0.001, found.p_joint < 0.001
    (4, 4, True, True)
    """
    given = {"tests": several(tests), "readings": several(readings), "similarities": several(similarities)}
    return measured_by("robustness", models, locals(), given)
