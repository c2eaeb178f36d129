"""Options of a run that do not change its results: output, cache, execution and progress."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from biassay.cache.remote import RemoteCache
from biassay.cache_usage import lock_cache
from biassay.engines.base import Executor
from biassay.errors import UsageError
from biassay.io import default_cache
from biassay.models.token_budget import TokenBudget
from biassay.object_storage import RemoteFolder, is_url
from biassay.runs.fetch import RequestFetcher
from biassay.runs.progress import Listener, NullListener, PathLike, SynchronizedListener


@dataclass(frozen=True)
class RunOptions:
    """Where and how a study runs.

    Attributes
    ----------
    out : path, optional
        Run folder. If None, nothing is saved.
    cache : path or URL, optional
        Cache directory; by default the user's. If it is a URL in object storage, that is a remote cache
        which is synchronised with the user's directory.
    vectors : path, optional
        Folder for the vectors of words in context, instead of the cache.
    engine : Executor, optional
        Where models run; by default in this process.
    listener : Listener
        Receives progress and warnings.
    token_budget : TokenBudget
        Limits and counts the tokens of endpoints.
    remote_cache : RemoteCache or None
        Follows from `cache`.
    """

    out: PathLike | None = None
    cache: PathLike | None = None
    vectors: PathLike | None = None
    engine: Executor | None = None
    listener: Listener = field(default_factory=NullListener)
    token_budget: TokenBudget = field(default_factory=TokenBudget)
    remote_cache: RemoteCache | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "listener", SynchronizedListener(self.listener))
        if self.cache is not None and not str(self.cache):
            raise UsageError("the name of the cache is empty; leave out --cache to use the default")
        if is_url(self.cache) and self.remote_cache is None:
            remote = RemoteFolder(str(self.cache))
            remote.list_names()  # fail before the run starts if the storage is unreachable
            object.__setattr__(self, "remote_cache", RemoteCache(remote, self.listener.notice))

    @property
    def folder(self) -> Path | None:
        """Run folder, or None."""
        return None if self.out is None else Path(self.out)

    @property
    def fetcher(self) -> RequestFetcher:
        """Fetcher of model outputs with these options."""
        cache = default_cache() if self.cache is None or self.remote_cache is not None else Path(self.cache)
        vectors = None if self.vectors is None else Path(self.vectors)
        return RequestFetcher(cache, vectors, self.engine, self.listener, self.token_budget, self.remote_cache)

    @contextmanager
    def lock_caches(self) -> Iterator[None]:
        """Keep `biassay cache prune` from removing files that this run uses, converted models included."""
        folders = {self.fetcher.cache}
        with suppress(UsageError):  # $BIASSAY_CACHE is not a folder
            folders.add(default_cache())
        with ExitStack() as stack:
            for folder in sorted(folders):
                stack.enter_context(lock_cache(folder))
            yield
