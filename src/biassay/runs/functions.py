"""What users call for runs of any study: measure models, and go on with an interrupted run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from biassay.engines.base import Engine
from biassay.errors import UnknownNameError
from biassay.models.spending import Spending
from biassay.runs.engine import How, start
from biassay.runs.listener import Listener, PathLike, own_listener
from biassay.runs.resuming import go_on
from biassay.runs.run import Run
from biassay.studies.registry import study_named

__all__ = ["measure", "resume"]


def measure(
    study: str,
    models: object,
    settings: Mapping[str, Any] | None = None,
    *,
    out: PathLike | None = None,
    cache: PathLike | None = None,
    vectors: PathLike | None = None,
    engine: Engine | None = None,
    listener: Listener | None = None,
    budget: int | None = None,
) -> Run:
    """Measure models by any study, also of another package.

    Parameters
    ----------
    study : str
        Its name.
    models : str, object, list of them, or dict
        As in `biassay.run`.
    settings : mapping, optional
        Settings of the study.
    out, cache, vectors, engine, listener
        As in `biassay.run`.
    budget : int, optional
        The most tokens that endpoints may use to answer. Before it is exceeded, the run stops and can be resumed.

    Returns
    -------
    Run

    Examples
    --------
    >>> import biassay
    >>> biassay.measure("associations", "glove", {"tests": ("weat6",)})["weat6"].results[0].test
    'weat6'
    """
    chosen, given = study_named(study), settings or {}
    known = [field.name for field in dataclasses.fields(chosen.types.settings)]
    for name in given:
        if name not in known:
            raise UnknownNameError(f"setting of {study}:", name, known, f"(settings: {', '.join(known)})")
    how = How(out, cache, vectors, engine, listener or own_listener(), Spending(budget))
    return Run.of(start(chosen, chosen.types.settings(**given), models, how))


def resume(
    folder: PathLike,
    models: object = None,
    *,
    cache: PathLike | None = None,
    vectors: PathLike | None = None,
    engine: Engine | None = None,
    listener: Listener | None = None,
    budget: int | None = None,
) -> Run:
    """Go on with an interrupted run of any study; what it has measured is kept.

    Parameters
    ----------
    folder : path
        The folder of the run.
    models : str, object, list of them, or dict from names, optional
        Models of the run, given again: objects, and strings that run code (``python:``, ``trust_remote_code``) or send
        texts away (``api:``, ``chat:``, ``completions:``). Those are never taken from the folder.
    cache, engine, listener
        As in `biassay.run`.
    vectors : path, optional
        The folder of vectors, where the run had one.
    budget : int, optional
        The most tokens that endpoints may use over the whole run, earlier processes included. By default, the run
        keeps the budget that it was started with.

    Returns
    -------
    Run

    Examples
    --------
    >>> import biassay
    >>> _ = biassay.run("glove", "weat6", out="a-run")
    >>> round(biassay.resume("a-run").results[0].effect_size, 2)  # complete: nothing is left to measure
    1.72
    """
    how = How(None, cache, vectors, engine, listener or own_listener(), Spending(budget))
    return Run.of(go_on(Path(folder), models, how))
