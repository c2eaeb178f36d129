"""`biassay.discover`: words that a model associates with groups. Its keywords are the settings of the study."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from biassay.engines.base import Engine
from biassay.runs.keywords import absolute, file_or_name, measured_by, several
from biassay.runs.listener import Listener, PathLike
from biassay.runs.run import Run

__all__ = ["discover"]


def discover(
    models: object = ("glove",),
    group: str | Sequence[str] = (),
    *,
    groups: PathLike = "guo2021-groups",
    words: PathLike | Iterable[str] | None = None,
    threshold: float | None = None,
    rule: str = "any",
    compare: str = "any",
    positive_only: bool = True,
    n_permutations: int = 99_999,
    alpha: float = 0.05,
    max_lost: float = 0.34,
    keep: int = 1000,
    seed: int = 0,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    engine: Engine | None = None,
    listener: Listener | None = None,
) -> Run:
    """Find the words that models associate with intersectional groups (IBD), and with no category of them (EIBD).

    Parameters
    ----------
    models : str, object, list of them, or dict
        As in `biassay.run`.
    group : str or list of str
        The groups to look at; each is compared with all others of its grouping.
    groups : str or path
        The grouping: a name of the catalogue or a TOML file with ``[groups.NAME]``.
    words : path or list of str, optional
        The words to search, one a line in a file. By default the whole vocabulary of word vectors; of other models
        the 20,000 words that the embedded vectors have as most frequent.
    threshold : float, optional
        Scores above it count. By default the one that fits the validated words of the group best, or 0.8 where there
        are none.
    rule : {"any", "all"}
        Whether a word is emergent only if no constituent score is above the threshold, or unless all are.
    compare : {"any", "every"}
        Whether a word must score above the threshold against at least one other group, which is IBD, or against every
        other group.
    positive_only : bool
        Whether only positive thresholds are chosen from, as the paper says.
    n_permutations : int
        How often names are permuted between the groups, at most; the smallest p-value is 1 / (n_permutations + 1).
    alpha : float
        The share of false findings that is accepted among those reported, over the whole vocabulary.
    max_lost : float
        The largest share of a group's names that a model may not know.
    keep : int
        How many of the words that rank highest are kept, of each list.
    seed : int
        Of the permutations.
    out, cache, engine, listener
        As in `biassay.run`.

    Returns
    -------
    Run

    Notes
    -----
    p-values permute names among the groups and are corrected by Benjamini and Hochberg over all words.

    References
    ----------
    .. [1] Guo, W., and Caliskan, A. (2021). Detecting emergent intersectional biases: contextualized word embeddings
       contain a distribution of human-like biases. AIES, 122-133.

    Examples
    --------
    >>> import biassay
    >>> words = ["sassy", "loud", "engineer"]
    >>> found = biassay.discover("glove", "african-american-females", words=words, n_permutations=99)
    >>> [row.word for row in found.results]
    ['sassy', 'loud', 'engineer']
    """
    a_file = words is None or isinstance(words, str | os.PathLike)
    given = {
        "group": several(group),
        "groups": file_or_name(groups),
        "words": absolute(words) if a_file else None,  # type: ignore[arg-type]
        "own_words": None if a_file else tuple(map(str, words)),  # type: ignore[arg-type]
    }
    return measured_by("discovery", models, locals(), given)
