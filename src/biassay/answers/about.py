"""What a store of word vectors says of itself, and how a store of something else is refused."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from biassay.errors import RunFolderError, UsageError
from biassay.files import read_json

__all__ = ["ABOUT", "StoreAbout", "StoredType", "begin", "check_same", "describe"]

ABOUT = "about.json"
StoredType = Literal["float16", "float32"]
_FORMAT = 1


@dataclass(frozen=True)
class StoreAbout:
    """What the vectors of a store are of.

    Attributes
    ----------
    contexts : str
        Digest of the contexts file.
    rows : int
        How many contexts it has.
    model, family, revision, settings
        As in `Identity`.
    window : str
        How much of a context was given to the model.
    dtype : "float16" or "float32"
    shard_rows : int
        Most rows of a file.
    """

    contexts: str
    rows: int
    model: str
    family: str
    revision: str | None
    settings: tuple[tuple[str, str], ...]
    window: str
    dtype: StoredType
    shard_rows: int

    def __post_init__(self) -> None:
        if self.dtype not in get_args(StoredType):
            raise UsageError(f"vectors are stored as float16 or float32, got {self.dtype!r}")
        for name, value in (("rows", self.rows), ("shard_rows", self.shard_rows)):
            if value < 1:
                raise UsageError(f"a store of vectors needs {name} of at least 1, got {value}")


def _described(about: StoreAbout) -> dict[str, Any]:
    return {"format": _FORMAT, **asdict(about), "settings": dict(about.settings)}


def begin(folder: Path) -> None:
    """Refuse a folder that holds anything else than vectors."""
    names = sorted(path.name for path in folder.iterdir() if not path.name.endswith(".tmp"))
    if names:
        raise RunFolderError(
            f"{folder} is not a store of vectors and not empty (it holds {names[0]}); choose another folder"
        )


def describe(about: StoreAbout) -> bytes:
    """Return the content of about.json."""
    return json.dumps(_described(about), indent=1).encode()


def check_same(folder: Path, about: StoreAbout) -> None:
    try:
        was = read_json(folder / ABOUT)
    except RunFolderError as error:
        raise RunFolderError(f"{error}; choose another folder or remove it") from error
    if not isinstance(was, dict):
        raise RunFolderError(f"{folder / ABOUT} does not describe a store of vectors; choose another folder")
    asked = _described(about)
    del asked["model"]  # a copy of a model under another name is the same model
    differ = [f"{name} was {was.get(name)!r}, now {value!r}" for name, value in asked.items() if was.get(name) != value]
    if differ:
        raise RunFolderError(f"{folder} holds other vectors: {'; '.join(differ)}; choose another folder")
