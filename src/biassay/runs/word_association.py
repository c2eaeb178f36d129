"""`biassay.ask`: word association tests of chat or instruct models. Its keywords are the settings of the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from biassay.engines.base import Engine
from biassay.runs.keywords import file_or_name, measured_by, several
from biassay.runs.listener import Listener, PathLike
from biassay.runs.run import Run
from biassay.stimuli.mappings import plain
from biassay.texts.association_prompts import ANSWERS

__all__ = ["ask"]


def ask(
    models: object,
    tests: PathLike | Mapping[str, Any] | Sequence[PathLike | Mapping[str, Any]] = (),
    *,
    n_answers: int = ANSWERS,
    wordings: str | Sequence[str] = (),
    read: str = "auto",
    decisions: bool = False,
    alpha: float = 0.05,
    seed: int = 0,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    engine: Engine | None = None,
    listener: Listener | None = None,
    budget: int | None = None,
) -> Run:
    """Ask chat or instruct models which of two group words goes with each of many words.

    Parameters
    ----------
    models : str, list of str, or dict from names
        Models that answer prompts: ``chat:NAME``, ``completions:NAME``, ``hf:NAME``.
    tests : str, dict of words, or list of them
        As in `select_tests`, and the published data sets: ``wat-racism``, ``wat-*``, ``all``. A dict has X, Y, A and B,
        or ``default``, ``stigmatised``, ``positive`` and ``negative``. Default: the published data sets that can be
        significant at `alpha`; the others, with too few pairs of group words, are descriptive.
    n_answers : int
        Answers to each test, half of them with either order of the group words.
    wordings : list of str
        Of the prompts; all by default.
    read : {"auto", "replies", "log-odds"}
        Words, or how likely either group word is. By default log-odds where a model gives them for whole words.
    decisions : bool
        Whether it is also asked who of two people gets which of two tasks.
    alpha : float
        Level of significance; intervals have the confidence 1 - alpha.
    seed : int
        Of the orders of words and pairs.
    out, cache, engine, listener
        As in `biassay.run`.
    budget : int, optional
        The most tokens that endpoints may use. Before it is exceeded, the run stops and can be resumed.

    Returns
    -------
    Run
        ``results`` hold the difference between negative and positive words in what is given to the stigmatised group,
        and the published score D. p-values and intervals allow for missing responses (refused, filtered,
        failed, unparsed, left out); ``bound_low`` and ``bound_high`` count them against and for the stereotype, and
        ``evidence`` sums up each test.
        The table ``replies`` counts replies by kind, the table ``missing`` missing responses by pole and prompt.

    See Also
    --------
    score_responses : Score responses that were collected elsewhere.

    References
    ----------
    .. [1] Bai, X., Wang, A., Sucholutsky, I., and Griffiths, T. L. (2025). Explicitly unbiased large language models
       still form biased associations. PNAS 122(8), e2416228122.
    """
    named = (tests,) if not isinstance(tests, Sequence) or isinstance(tests, str) else tests
    given = {
        "tests": tuple(plain(one) if isinstance(one, Mapping) else file_or_name(one) for one in named),
        "wordings": several(wordings),
    }
    return measured_by("word_association", models, locals(), given)
