"""In-memory object storage with injected failures, under ``flaky://``."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

import fsspec
from fsspec.implementations.memory import MemoryFileSystem

__all__ = ["FlakyStorage", "register"]


class FlakyStorage(MemoryFileSystem):  # type: ignore[misc]
    """``fail`` says how often each operation fails from now on, ``cut`` how many bytes of an object arrive.

    Besides, each takes ``slow`` seconds and fails when ``by_chance`` says so.
    """

    protocol = "flaky"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    fail: ClassVar[dict[str, int]] = {}
    done: ClassVar[list[str]] = []
    cut: ClassVar[int | None] = None
    slow: ClassVar[float] = 0.0
    by_chance: ClassVar[Callable[[], bool] | None] = None
    _lock: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def _count(cls, name: str) -> None:
        with cls._lock:
            cls.done.append(name)
            if cls.fail.get(name, 0) > 0:
                cls.fail[name] -= 1
                raise ConnectionError(f"{name} was interrupted")
            if cls.by_chance is not None and cls.by_chance():
                raise TimeoutError(f"{name} took too long")
        time.sleep(cls.slow)

    def info(self, path: str, **kwargs: Any) -> Any:
        self._count("info")
        return super().info(path, **kwargs)

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> Any:
        self._count("ls")
        return super().ls(path, detail, **kwargs)

    def cat_file(self, path: str, start: Any = None, end: Any = None, **kwargs: Any) -> Any:
        self._count("cat")
        return super().cat_file(path, start, end, **kwargs)[: self.cut]

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> Any:
        self._count("put")
        return super().pipe_file(path, value, mode, **kwargs)

    def _open(self, path: str, mode: str = "rb", *args: Any, **kwargs: Any) -> Any:
        if mode == "rb":
            self._count("open")
        return super()._open(path, mode, *args, **kwargs)


def register() -> type[FlakyStorage]:
    fsspec.register_implementation("flaky", FlakyStorage, clobber=True)
    FlakyStorage.store.clear()
    FlakyStorage.pseudo_dirs[:] = [""]
    FlakyStorage.fail.clear()
    FlakyStorage.done.clear()
    FlakyStorage.cut, FlakyStorage.slow, FlakyStorage.by_chance = None, 0.0, None
    return FlakyStorage
