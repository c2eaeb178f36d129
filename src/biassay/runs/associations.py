"""`biassay.run`: association tests. Its keywords are the settings of the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from biassay.engines.base import Engine
from biassay.runs.keywords import absolute, measured_by, several
from biassay.runs.listener import Listener, PathLike
from biassay.runs.run import Run

__all__ = ["run", "run_ceat"]


def run(
    models: object = ("use",),
    tests: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] = (),
    *,
    contexts: PathLike | None = None,
    metric: str = "cosine",
    protocol: str = "exact",
    alternative: str = "greater",
    alpha: float | None = None,
    family: str | Sequence[str] = "run",
    equivalence: float | None = None,
    random_sets: int = 1000,
    max_lost: float = 0.2,
    seed: int = 0,
    n_samples: int = 10_000,
    mode: str = "random",
    window: int | None = None,
    dtype: str = "float16",
    min_contexts: int = 5,
    vectors: PathLike | None = None,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    engine: Engine | None = None,
    listener: Listener | None = None,
) -> Run:
    """Run association tests on models: WEAT on words, SEAT on sentences, CEAT on words in contexts.

    Parameters
    ----------
    models : str, object, list of them, or dict
        Model strings (``use``, ``glove``, ``vectors:PATH``, ...) or objects with ``encode(texts) -> array``; the keys
        of a dict name them in all results. Over contexts: strings of families that encode words in contexts
        (``hf:NAME``, ``elmo:DIR``).
    tests : str, dict of words, or list of them
        Names, patterns, topics, collections or files; or words: ``{"X": [...], "Y": [...], "A": [...], "B": [...]}``,
        with ``name`` and ``title`` beside them if you like, or such dicts by the names of the tests. By default the
        tests of the main collections; over contexts those for which the contexts were collected.
    contexts : path, optional
        A file made by ``biassay contexts``: words are measured in these contexts.
    metric : str
        How vectors become associations: ``cosine``, or one that another package adds.
    protocol, alternative : str
        How p-values by text are found, see `biassay.weat`, and whether those and the p-values for these attribute
        words are one-sided; that of the crossed test is always two-sided.
    alpha : float, optional
        Level of significance, before and after Holm's correction: by default 0.05, and 0.01 under the papers'
        protocols. Intervals have the confidence 1 - alpha.
    family : str or list of str
        Questions to correct for: ``"run"`` for all social-bias questions of this run, per model, or tests declared
        beforehand: ``"default"``, names, patterns, topics, collections or files. Declared questions count whether or
        not they are run; tests outside the family are exploratory and never significant.
    equivalence : float, optional
        A difference of mean cosines, below 2, that would not matter: gives a p-value for D being smaller.
    random_sets : int
        Random attribute sets that an effect is compared with; 0: none.
    max_lost : float
        The largest share of a concept's words that a model may not know before the test is refused.
    seed : int
        For the protocols that sample, and for the draws of contexts.
    n_samples, mode, window, dtype, min_contexts, vectors
        Over contexts only. Samples of one context per word; whether every model draws its own contexts ("random") or
        all get the same ("fixed"); words kept around the word, by default the whole sentence; the type in which
        vectors are kept; the number of contexts below which a word is lost; a folder for the vectors, instead of the
        cache.
    out : path, optional
        A new folder to write the run to, as it goes.
    cache : path, optional
        Where answers are kept; by default the user's cache folder.
    engine : Engine, optional
        Where models run; by default here.
    listener : Listener, optional
        Gets progress and notices.

    Returns
    -------
    Run

    References
    ----------
    .. [1] Caliskan, A., Bryson, J. J., and Narayanan, A. (2017). Semantics derived automatically from language corpora
       contain human-like biases. Science, 356(6334), 183-186.
    .. [2] May, C., Wang, A., Bordia, S., Bowman, S. R., and Rudinger, R. (2019). On measuring social biases in sentence
       encoders. NAACL-HLT, 622-628.
    .. [3] Guo, W., and Caliskan, A. (2021). Detecting emergent intersectional biases: contextualized word embeddings
       contain a distribution of human-like biases. AIES, 122-133.

    Examples
    --------
    >>> import biassay
    >>> found = biassay.run("glove", "weat6")
    >>> round(found.results[0].effect_size, 2)
    1.72
    """
    given = {
        "tests": several(tests),
        "family": several(family),
        "contexts": absolute(contexts),
        "vectors": absolute(vectors),
    }
    return measured_by("associations", models, locals(), given)


def run_ceat(models: object, contexts: PathLike, tests: Any = (), **settings: Any) -> Run:
    """Run association tests over contexts: `biassay.run` with ``contexts``.

    Parameters
    ----------
    models, contexts, tests, **settings
        As in `biassay.run`.

    Returns
    -------
    Run
    """
    return run(models, tests, contexts=contexts, **settings)
