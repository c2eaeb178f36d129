"""What must be known of a Hugging Face model before it is asked.

Its identity comes from its files. The little that only the library can tell, such as whether a model is masked or
causal, is found once and kept in the cache folder for the content of the files: where all answers are kept, neither the
library nor torch is imported.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from importlib import metadata
from typing import Any, Literal

from biassay.errors import RunFolderError
from biassay.files import check_digest, default_cache, json_with_digest, read_json, write_atomically
from biassay.models.family import ModelName
from biassay.models.hub import Source, locate, open_config, open_tokenizer
from biassay.models.tokenising import Tokeniser

__all__ = ["Checkpoint"]

_FORMAT = 2  # of what is kept: another format is another file
_OF_TOKENIZER = ("has_cls", "folds_case")


class Checkpoint:
    """A model of the library, its weights apart. The configuration and the tokenizer are opened when they are needed.

    Attributes
    ----------
    source : Source
    fingerprint : str
        What stands for the content of its files.
    """

    def __init__(self, model: ModelName) -> None:
        self.source: Source = locate(model)
        self.fingerprint = self.source.fingerprint()

    @cached_property
    def config(self) -> Any:
        return open_config(self.source)

    @cached_property
    def tokenizer(self) -> Any:
        return open_tokenizer(self.source)

    @cached_property
    def tokeniser(self) -> Tokeniser:
        return Tokeniser(self.tokenizer, self.config, self.source.name)

    @property
    def kind(self) -> Literal["masked", "causal"] | None:
        """Of language model; None: it is none."""
        kind: Literal["masked", "causal"] | None = self._of_config["kind"]
        return kind

    @property
    def depth(self) -> int | None:
        """How many layers it has."""
        depth: int | None = self._of_config["depth"]
        return depth

    @property
    def ends_last(self) -> bool:
        """Is the last token of a text the one that has seen all others?"""
        return bool(self._of_config["ends_last"])

    @property
    def has_cls(self) -> bool:
        """Is a [CLS] token put in front of every text?"""
        return bool(self._of_tokenizer["has_cls"])

    @property
    def folds_case(self) -> bool:
        """Does its tokenizer write capitals small?"""
        return bool(self._of_tokenizer["folds_case"])

    def check_tokenizer(self) -> None:
        """Refuse a model without a usable tokenizer."""
        _ = self._of_tokenizer

    @cached_property
    def _of_config(self) -> dict[str, Any]:
        return self._known("config", lambda: _of_config(self.config))

    @cached_property
    def _of_tokenizer(self) -> dict[str, Any]:
        return self._known(
            "tokenizer", lambda: {"has_cls": self.tokeniser.has_cls, "folds_case": self.tokeniser.folds_case}
        )

    def _known(self, what: str, find: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What was found before for the same files and the same version of the library, or is found now."""
        of = [_FORMAT, what, self.fingerprint, self.source.trusted, metadata.version("transformers")]
        key = hashlib.blake2b(json.dumps(of).encode(), digest_size=16).hexdigest()
        path = default_cache() / "models" / f"{key}.json"
        with suppress(RunFolderError):
            kept = read_json(path)
            if isinstance(kept, dict) and check_digest(kept):
                return kept
        found = find()
        with suppress(OSError):  # a cache that cannot be written only costs time
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json_with_digest(found).encode())
        return found


def _of_config(config: Any) -> dict[str, Any]:
    from transformers.models.auto import modeling_auto

    known: Any = modeling_auto
    kind = "masked" if type(config) in known.MODEL_FOR_MASKED_LM_MAPPING else None
    if kind is None and type(config) in known.MODEL_FOR_CAUSAL_LM_MAPPING:
        kind = "causal"
    named = config.model_type
    causal = named in known.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and named not in known.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    depth = getattr(config.get_text_config(), "num_hidden_layers", None)
    return {"kind": kind, "depth": depth, "ends_last": causal}
