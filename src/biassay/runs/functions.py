"""The functions that users call to measure models. Their keywords are the settings of the studies."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from biassay.engines.base import Engine
from biassay.errors import UnknownNameError
from biassay.runs.engine import How, start
from biassay.runs.listener import Listener, PathLike, Silent
from biassay.runs.resuming import go_on
from biassay.runs.run import Run
from biassay.studies.registry import study_named

__all__ = ["measure", "resume", "run", "run_ceat"]


def run(
    models: object = ("use",),
    tests: str | Sequence[str] = (),
    *,
    contexts: PathLike | None = None,
    metric: str = "cosine",
    protocol: str = "exact",
    alternative: str = "greater",
    alpha: float = 0.01,
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
    tests : str or list of str
        Names, patterns, collections or files. By default the tests of the main collections; over contexts those for
        which the contexts were collected.
    contexts : path, optional
        A file made by ``biassay contexts``: words are measured in these contexts.
    metric : str
        How vectors become associations: ``cosine``, or one that another package adds.
    protocol, alternative : str
        How p-values are found, see `biassay.weat`.
    alpha : float
        Level of significance, before and after Holm's correction over all rows.
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

    Examples
    --------
    >>> import biassay
    >>> found = biassay.run("glove", "weat6")
    >>> round(found.results[0].effect_size, 2)
    1.72
    """
    given = {"tests": _several(tests), "contexts": _path(contexts), "vectors": _path(vectors)}
    return _measured("associations", models, locals(), given)


def run_ceat(models: object, contexts: PathLike, tests: str | Sequence[str] = (), **settings: Any) -> Run:
    """Run association tests over contexts: `biassay.run` with ``contexts``."""
    return run(models, tests, contexts=contexts, **settings)


def measure(study: str, models: object, settings: Mapping[str, Any] | None = None, **how: Any) -> Run:
    """Measure models by any study, also of another package.

    Parameters
    ----------
    study : str
        Its name.
    models : str, object, list of them, or dict
        As in `biassay.run`.
    settings : mapping, optional
        Settings of the study.
    **how
        ``out``, ``cache``, ``vectors``, ``engine`` and ``listener``, as in `biassay.run`.
    """
    chosen, given = study_named(study), settings or {}
    known = [field.name for field in dataclasses.fields(chosen.types.settings)]
    for name in given:
        if name not in known:
            raise UnknownNameError(f"setting of {study}:", name, known, f"(settings: {', '.join(known)})")
    return Run.of(start(chosen, chosen.types.settings(**given), models, How(**how)))


def resume(
    folder: PathLike,
    models: object = None,
    *,
    cache: PathLike | None = None,
    vectors: PathLike | None = None,
    engine: Engine | None = None,
    listener: Listener | None = None,
) -> Run:
    """Go on with an interrupted run of any study; what it has measured is kept.

    Parameters
    ----------
    folder : path
        The folder of the run.
    models : str, object, list of them, or dict from names, optional
        Models of the run, given again: objects, and strings that run code (``python:``, ``trust_remote_code``) or send
        texts away (``api:``). Those are never taken from the folder.
    cache, engine, listener
        As in `biassay.run`.
    vectors : path, optional
        The folder of vectors, where the run had one.
    """
    return Run.of(go_on(Path(folder), models, How(None, cache, vectors, engine, listener or Silent())))


def _measured(name: str, models: object, keywords: Mapping[str, Any], given: Mapping[str, Any]) -> Run:
    """A run by the keywords of a function; ``given`` are those that are not stored as they come."""
    study = study_named(name)
    names = [field.name for field in dataclasses.fields(study.types.settings)]
    settings = study.types.settings(**{n: {**keywords, **given}[n] for n in names if n in keywords or n in given})
    vectors = keywords.get("vectors")
    how = How(keywords["out"], keywords["cache"], vectors, keywords["engine"], keywords["listener"] or Silent())
    return Run.of(start(study, settings, models, how))


def _several(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _path(given: PathLike | None) -> str | None:
    """A path that is the same wherever a run goes on."""
    return None if given is None else str(Path(os.fspath(given)).resolve())
