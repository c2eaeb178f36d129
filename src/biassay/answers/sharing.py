"""Kept answers in object storage, behind a folder of this machine: what is there is fetched, what is new is put there.

Files are named by the hash of their content. So nothing is ever changed there, several machines may write at a time,
and what arrives damaged is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from biassay.answers.writing import write_to_cache
from biassay.errors import StorageError
from biassay.files import open_file
from biassay.remote import RemoteFolder

__all__ = ["Beyond", "Shared"]

_TOGETHER = 16  # files fetched at once
IsWhole = Callable[[str, bytes], bool]


@dataclass
class Beyond:
    """The folder in object storage for all kept answers, and who is told if nothing can be put there."""

    remote: RemoteFolder
    tell: Callable[[str], None]
    _told: bool = field(default=False, init=False)

    def of(self, folder: Path, is_whole: IsWhole, ending: str) -> Shared:
        """The folder there with the same name as one here."""
        return Shared(self, self.remote / folder.name, folder, is_whole, ending)

    def cannot(self, error: StorageError) -> None:
        if not self._told:
            self.tell(f"{error}; new answers are kept on this machine only, and put there when they are next used")
            self._told = True


class Shared:
    """A folder there and a folder here. ``is_whole`` says whether content is what the name of its file says.

    Of files whose names differ only behind a dash, which hold the same in other bits, one is enough.
    """

    def __init__(self, beyond: Beyond, remote: RemoteFolder, folder: Path, is_whole: IsWhole, ending: str) -> None:
        self._beyond, self._remote, self._folder = beyond, remote, folder
        self._is_whole, self._ending = is_whole, ending

    def meet(self) -> None:
        """Fetch what is there only, and put there what is here only."""
        here, there = self._here(), self._there()
        self.fetch([there[key] for key in sorted(there.keys() - here.keys())])
        self._put_all([here[key] for key in sorted(here.keys() - there.keys())])

    def offer(self) -> None:
        """Put there what is here only. That it cannot be done is told: it never fails."""
        try:
            there = self._there()
        except StorageError as error:
            self._beyond.cannot(error)
            return
        self._put_all([name for key, name in sorted(self._here().items()) if key not in there])

    def _here(self) -> dict[str, str]:
        return {_key(file.name): file.name for file in self._folder.glob(f"*{self._ending}")}

    def _there(self) -> dict[str, str]:
        names = (name for name in self._remote.names() if name.endswith(self._ending) and not name.startswith("."))
        return {_key(name): name for name in names}

    def _put_all(self, names: Sequence[str]) -> None:
        for name in names:
            try:
                with open_file(self._folder / name) as file:
                    content = file.read()
            except OSError:  # another process found it damaged, or merged it
                continue
            if self._is_whole(name, content) and not self.put(name, content):
                return

    def fetch(self, names: Sequence[str]) -> list[str]:
        """Bring some files here; returns those that arrived whole."""
        found = []
        for start in range(0, len(names), _TOGETHER):
            some = names[start : start + _TOGETHER]
            for name, content in self._remote.read(some).items():
                if self._is_whole(name, content):
                    write_to_cache(self._folder / name, content)
                    found.append(name)
        return found

    def put(self, name: str, content: bytes) -> bool:
        """Put a file there; False if that cannot be done, which is told."""
        try:
            self._remote.write(name, content)
        except StorageError as error:
            self._beyond.cannot(error)
            return False
        return True


def _key(name: str) -> str:
    return name.partition("-")[0]
