"""`biassay.benchmark`: published benchmarks of bias. Its keywords are the settings of the study."""

from __future__ import annotations

import os
from collections.abc import Sequence

from biassay.engines.base import Engine
from biassay.runs.keywords import absolute, measured_by, several
from biassay.runs.listener import Listener, PathLike
from biassay.runs.run import Run

__all__ = ["benchmark"]


def benchmark(
    benchmark: str,
    models: object,
    *,
    data: PathLike,
    flagged: PathLike | None = None,
    categories: str | Sequence[str] = (),
    by: str | None = None,
    score: str = "shared",
    limit: int | None = None,
    orders: int = 6,
    alpha: float = 0.05,
    seed: int = 0,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    engine: Engine | None = None,
    listener: Listener | None = None,
    budget: int | None = None,
) -> Run:
    """Scores of BBQ, CrowS-Pairs or StereoSet, with intervals for other templates, writers or target terms.

    Parameters
    ----------
    benchmark : {"bbq", "crows-pairs", "stereoset"}
    models : str, list of str, or dict from names
        For BBQ, chat or instruct models: ``chat:NAME``, ``completions:NAME``, ``hf:NAME``. For the other two,
        models that give likelihoods of texts: masked or causal ones, ``hf:NAME``, or ``completions:NAME``.
    data : path or str
        The benchmark as it was released: a file, a folder, or the name of an installed package that holds it.
    flagged : path, optional
        A list of ids of items to leave out of CrowS-Pairs or StereoSet.
    categories : str or list of str
        Categories of BBQ, or bias types; all by default.
    by : {"answer", "log-probability"}, optional
        How BBQ is answered. By default by log-probability where the model gives that of any text, else by answer.
    score : {"shared", "sentence"}
        What CrowS-Pairs compares: the tokens that both sentences share, as its authors do, or whole sentences, as
        lm-evaluation-harness does.
    limit : int, optional
        Draw at most this many items per category, balanced over templates (writers, terms), kinds of questions and
        positions of answers. Default: all.
    orders : int
        In how many of the six orders the options of a question are shown; its choice is over all of them.
    alpha : float
        Level of significance; intervals have the confidence 1 - alpha.
    seed : int
        Random seed for `limit`, and for orders where they are fewer than six.
    out, cache, engine, listener
        As in `biassay.run`.
    budget : int, optional
        The most tokens that endpoints may use. Before it is exceeded, the run stops and can be resumed.

    Returns
    -------
    Run

    References
    ----------
    .. [1] Parrish, A., et al. (2022). BBQ: A hand-built bias benchmark for question answering. Findings of ACL.
    .. [2] Nangia, N., Vania, C., Bhalerao, R., and Bowman, S. R. (2020). CrowS-Pairs: A challenge dataset for measuring
       social biases in masked language models. EMNLP.
    .. [3] Nadeem, M., Bethke, A., and Reddy, S. (2021). StereoSet: Measuring stereotypical bias in pretrained language
       models. ACL.
    """
    given = {
        "data": None if data is None else os.fspath(data),
        "flagged": absolute(flagged),
        "categories": several(categories),
    }
    return measured_by("benchmarks", models, locals(), given)
