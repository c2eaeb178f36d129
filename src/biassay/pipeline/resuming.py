"""An interrupted run goes on, whatever kind it is of."""

from __future__ import annotations

from pathlib import Path

from biassay.engines.base import Engine
from biassay.errors import UsageError
from biassay.pipeline import associations, contextual
from biassay.pipeline.common import Listener, PathLike
from biassay.results.run import Run, read_manifest

__all__ = ["resume"]


def resume(
    folder: PathLike,
    models: object = None,
    *,
    cache: PathLike | None = None,
    vectors: PathLike | None = None,
    engine: Engine | None = None,
    listener: Listener | None = None,
) -> Run:
    """Go on with a run that was interrupted; what it has measured is kept.

    Parameters
    ----------
    folder : path
        The folder of the run.
    models : str, object, list of them, or dict from names, optional
        Models of the run, given again: objects, and strings that run code (``python:``, ``trust_remote_code``) or send
        texts away (``api:``). Those are never taken from the folder.
    cache, listener
        As in `biassay.run`.
    vectors, engine
        As in `biassay.run_ceat`, for a run over contexts. A folder of vectors that the run had is given again.
    """
    if read_manifest(Path(folder)).contexts is not None:
        return contextual.resume_ceat(folder, models, cache=cache, vectors=vectors, engine=engine, listener=listener)
    if vectors is not None or engine is not None:
        raise UsageError(f"{folder} is not a run over contexts, so it takes neither a folder of vectors nor an engine")
    return associations.resume(folder, models, cache=cache, listener=listener)
