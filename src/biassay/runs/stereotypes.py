"""`biassay.stereotypes`: language models and social groups. Its keywords are the settings of the study."""

from __future__ import annotations

import os
from collections.abc import Sequence

from biassay.engines.base import Engine
from biassay.runs.keywords import absolute, measured_by, several
from biassay.runs.listener import Listener, PathLike
from biassay.runs.run import Run
from biassay.studies.stereotypes.word_associations import MEASURES

__all__ = ["stereotypes"]


def stereotypes(
    models: object,
    *,
    measures: str | Sequence[str] = MEASURES,
    groups: str | Sequence[str] = (),
    templates: str | Sequence[str] = (),
    files: PathLike | Sequence[PathLike] = (),
    contexts: PathLike | None = None,
    min_contexts: int = 5,
    human: PathLike | None = None,
    annotators: Sequence[tuple[str, str]] = (),
    prior: str = "mask",
    variant: str = "paper",
    all_adjectives: bool = False,
    intersections: bool = False,
    n_bootstrap: int = 1000,
    seed: int = 0,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    engine: Engine | None = None,
    listener: Listener | None = None,
    budget: int | None = None,
) -> Run:
    """What language models associate with social groups along agency, beliefs and communion, and whether people agree.

    Parameters
    ----------
    models : str, list of str, or dict from names
        Masked or causal language models, ``hf:NAME``; for ``ilps`` and ``ilps-star`` also ``completions:NAME``, where
        the endpoint gives log-probabilities of texts; for ``ceat`` alone any model of words in contexts
        (``elmo:DIR``).
    measures : str or list of str
        Of ``ilps``, ``ilps-star``, ``set`` and ``ceat``; the first three by default.
    groups, templates : list of str
        Names, patterns, domains or kinds; all by default.
    files : list of path
        TOML files that add groups, traits or templates.
    contexts : path, optional
        For ``ceat``: a file made by ``biassay contexts --abc``.
    min_contexts : int
        For ``ceat``: a group or an adjective with fewer contexts is left out.
    human : path, optional
        Human judgements: means, or the ratings of annotators.
    annotators : list of (field, value)
        Further alignments with annotators of one kind only, where the file says what they are.
    prior : {"mask", "word"}
        What a group is compared with: the group masked, or "person" and "people". Causal models have no mask.
    variant : {"paper", "cao2022-code"}
        Form of the measures: the paper's, or that of the code released with it.
    all_adjectives : bool
        Whether a trait is the median over all its adjectives, instead of its own only.
    intersections : bool
        If True, also ask about pairs of the chosen groups, such as Asian teenagers; if all are of one domain, about
        their pairs with all other groups.
    n_bootstrap : int
        Samples of the bootstrap and of the split halves.
    seed : int
        Of these, and of the pilot's annotators.
    out, cache, engine, listener
        As in `biassay.run`.
    budget : int, optional
        The most tokens that endpoints may use. Before it is exceeded, the run stops and can be resumed.

    Returns
    -------
    Run

    References
    ----------
    .. [1] Cao, Y. T., Sotnikova, A., Daumé III, H., Rudinger, R., and Zou, L. (2022). Theory-grounded measurement of
       U.S. social stereotypes in English language models. NAACL, 1276-1295.
    """
    given = {
        "measures": several(measures),
        "groups": several(groups),
        "templates": several(templates),
        "files": tuple(map(absolute, (files,) if isinstance(files, str | os.PathLike) else files)),
        "contexts": absolute(contexts),
        "human": absolute(human),
        "annotators": tuple((str(field), str(value)) for field, value in annotators),
    }
    return measured_by("stereotypes", models, locals(), given)
