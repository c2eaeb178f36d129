"""Read facts about a Hugging Face model without importing transformers if possible.

The identity of a model comes from its files. Facts that only the library knows, such as whether a model is masked or
causal, are cached per fingerprint, so that a run whose outputs are all cached imports neither transformers nor torch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from importlib import metadata
from typing import Any, Literal

from biassay.models.backend import ModelName
from biassay.models.transformers.hub import CheckpointRef, find_checkpoint, open_config, open_tokenizer
from biassay.models.transformers.model_files import hash_json, read_facts, write_facts
from biassay.models.transformers.tokenizer import TextTokenizer

_FORMAT = 2  # part of the cache key


class Checkpoint:
    """A model without its weights; configuration and tokenizer are loaded on demand.

    Attributes
    ----------
    source : CheckpointRef
        Location of the files.
    fingerprint : str
        Digest of the files, or commit on the hub.
    """

    def __init__(self, model: ModelName) -> None:
        self.source: CheckpointRef = find_checkpoint(model)
        self.fingerprint = self.source.fingerprint()

    @cached_property
    def config(self) -> Any:
        """Configuration of the library."""
        return open_config(self.source)

    @cached_property
    def tokenizer(self) -> Any:
        """Tokenizer of the library."""
        return open_tokenizer(self.source)

    @cached_property
    def text_tokenizer(self) -> TextTokenizer:
        """Tokenizer that reports unknown and truncated parts."""
        return TextTokenizer(self.tokenizer, self.config, self.source.typed)

    @property
    def kind(self) -> Literal["masked", "causal"] | None:
        """Kind of language model; None if it is not one."""
        kind: Literal["masked", "causal"] | None = self._config_facts["kind"]
        return kind

    @property
    def depth(self) -> int | None:
        """Number of layers; None if the configuration does not state it."""
        depth: int | None = self._config_facts["depth"]
        return depth

    @property
    def ends_last(self) -> bool:
        """True if only the last token sees all others."""
        return bool(self._config_facts["ends_last"])

    @property
    def has_cls(self) -> bool:
        """True if every text starts with a [CLS] token."""
        return bool(self._tokenizer_facts["has_cls"])

    @property
    def folds_case(self) -> bool:
        """True if the tokenizer lower-cases texts."""
        return bool(self._tokenizer_facts["folds_case"])

    def check_tokenizer(self) -> None:
        """Raise ModelError if there is no usable tokenizer."""
        _ = self._tokenizer_facts

    @cached_property
    def _config_facts(self) -> dict[str, Any]:
        return self._read_or_compute("config", lambda: _read_config_facts(self.config))

    @cached_property
    def _tokenizer_facts(self) -> dict[str, Any]:
        return self._read_or_compute(
            "tokenizer", lambda: {"has_cls": self.text_tokenizer.has_cls, "folds_case": self.text_tokenizer.folds_case}
        )

    def _read_or_compute(self, topic: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return cached facts for the same files and version of the library, or compute and cache them."""
        key = hash_json(_FORMAT, topic, self.fingerprint, self.source.trusted, metadata.version("transformers"))
        facts = read_facts(key)
        if facts is None:
            facts = compute()
            write_facts(key, facts)
        return facts


def _read_config_facts(config: Any) -> dict[str, Any]:
    from transformers.models.auto import modeling_auto

    auto: Any = modeling_auto
    kind = "masked" if type(config) in auto.MODEL_FOR_MASKED_LM_MAPPING else None
    if kind is None and type(config) in auto.MODEL_FOR_CAUSAL_LM_MAPPING:
        kind = "causal"
    name = config.model_type
    is_causal = name in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and name not in auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    depth = getattr(config.get_text_config(), "num_hidden_layers", None)
    return {"kind": kind, "depth": depth, "ends_last": is_causal}
