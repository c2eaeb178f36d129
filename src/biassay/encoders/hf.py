"""``hf:NAME``: any encoder or causal model of the Hugging Face library, its token states pooled to one vector."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from biassay.encoders.base import Encoded, Identity
from biassay.encoders.hub import Source, choose_device, load_weights, locate, open_config, open_tokenizer
from biassay.encoders.pooling import POOLS, PoolName, pool
from biassay.encoders.registry import ModelName
from biassay.encoders.tokenising import Tokenised, Tokeniser
from biassay.errors import ModelError, UnknownNameError, UsageError

if TYPE_CHECKING:
    import torch

__all__ = ["HfEncoder", "provide"]

_DTYPES = ("float32", "bfloat16", "float16")
_JOINS = ("sum", "concat")
_TOKENS_AT_ONCE = {"cpu": 4096, "cuda": 131_072}


def provide(model: ModelName) -> HfEncoder:
    source = locate(model)
    config = open_config(source)
    tokeniser = Tokeniser(open_tokenizer(source), config, source.name)
    return HfEncoder(model, source, config, tokeniser)


class HfEncoder:
    """Token states of one layer or several, pooled over the tokens of a text."""

    def __init__(self, model: ModelName, source: Source, config: Any, tokeniser: Tokeniser) -> None:
        self._source, self._config, self._tokeniser = source, config, tokeniser
        self._pool = _pool_name(model, source, config, tokeniser)
        self._layers = _layers(model, config)
        self._join = _choice(model, "join", "sum", _JOINS)
        self._dtype = _choice(model, "dtype", "float32", _DTYPES)
        self._device = choose_device(model)
        self._model: Any = None
        settings = {"pool": self._pool, "layer": ",".join(map(str, self._layers))}
        if len(self._layers) > 1:
            settings["join"] = self._join
        if self._dtype != "float32":
            settings["dtype"] = self._dtype
        self.identity = Identity(source.name, "hf", source.fingerprint(config), tuple(settings.items()))
        self.batch_size = 512 if self._device == "cpu" else 16_384

    def prepare(self, texts: Sequence[str]) -> None:  # noqa: ARG002
        if self._model is None:
            loaded = load_weights(self._source, "AutoModel", self._dtype, self._device)
            self._model = loaded.get_encoder() if self._config.is_encoder_decoder else loaded

    def encode(self, texts: Sequence[str]) -> Encoded:
        tokenised = self._tokeniser(texts)
        order = np.argsort(tokenised.lengths, kind="stable")
        vectors: NDArray[np.float32] | None = None
        for rows in _by_size(order, tokenised, _TOKENS_AT_ONCE[self._device]):
            found = self._pooled(tokenised, rows)
            if vectors is None:
                vectors = np.empty((len(texts), found.shape[1]), dtype=np.float32)
            vectors[rows] = found
        assert vectors is not None  # an encoder is never asked about no text at all
        return Encoded.of(vectors, tokenised.unknown, tokenised.cut)

    def _pooled(self, tokenised: Tokenised, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """Vectors of some texts; if they do not fit into the GPU's memory, of each half in turn."""
        import torch

        try:
            with torch.inference_mode():
                return self._forward(tokenised, rows)
        except torch.OutOfMemoryError as error:
            if len(rows) == 1:
                raise ModelError(
                    f"model {self.identity.name!r}: one text does not fit into the GPU's memory"
                ) from error
        torch.cuda.empty_cache()
        middle = len(rows) // 2
        return np.concatenate([self._pooled(tokenised, rows[:middle]), self._pooled(tokenised, rows[middle:])])

    def _forward(self, tokenised: Tokenised, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        import torch

        ids, mask, words = (torch.from_numpy(a).to(self._device) for a in tokenised.padded(rows))
        top_only = self._layers == (-1,)
        output = self._model(input_ids=ids, attention_mask=mask, output_hidden_states=not top_only)
        states = [output.last_hidden_state] if top_only else [output.hidden_states[i] for i in self._layers]
        pooled = [pool(self._pool, state, mask, words).float() for state in states]
        joined: torch.Tensor = torch.cat(pooled, dim=1) if self._join == "concat" else torch.stack(pooled).sum(dim=0)
        return np.asarray(joined.cpu().numpy(), dtype=np.float32)


def _by_size(order: NDArray[np.intp], tokenised: Tokenised, most: int) -> Iterator[NDArray[np.intp]]:
    """Texts of like length together, as many as the number of padded tokens allows."""
    start = 0
    for end in range(1, len(order) + 1):
        if end < len(order) and (end - start + 1) * tokenised.lengths[order[end]] <= most:
            continue
        yield order[start:end]
        start = end


def _choice(model: ModelName, setting: str, default: str, allowed: tuple[str, ...]) -> str:
    value = model.settings.get(setting, default)
    if value not in allowed:
        raise UnknownNameError(f"{setting} of model {model.text!r}:", value, allowed, f"(one of {', '.join(allowed)})")
    return value


def _trained_pool(source: Source) -> str | None:
    """The pooling that a sentence-transformers folder was trained with, if it is one we have."""
    path = Path(source.place) / "1_Pooling" / "config.json"
    if not path.is_file():
        return None
    modes = json.loads(path.read_text(encoding="utf-8"))
    names = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens", "max": "pooling_mode_max_tokens"}
    chosen = [name for name, key in names.items() if modes.get(key)]
    return chosen[0] if len(chosen) == 1 else None


def _pool_name(model: ModelName, source: Source, config: Any, tokeniser: Tokeniser) -> PoolName:
    """What the user asked for, or what the model was made for: [CLS] for BERT, the last token for GPT."""
    from transformers.models.auto import modeling_auto as known

    kind = config.model_type
    if kind in known.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and kind not in known.MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        default = "last"
    else:
        default = "cls" if tokeniser.has_cls else "mean"
    name = _choice(model, "pool", _trained_pool(source) or default, POOLS)
    if name == "cls" and not tokeniser.has_cls:
        raise UsageError(f"model {model.text!r} has no [CLS] token at the start of a text; use pool=mean or pool=last")
    return name  # type: ignore[return-value]


def _layers(model: ModelName, config: Any) -> tuple[int, ...]:
    depth = getattr(config.get_text_config(), "num_hidden_layers", None)
    try:
        layers = tuple(int(part) for part in model.settings.get("layer", "-1").split(","))
    except ValueError as error:
        raise UsageError(f"model {model.text!r}: layer is a number or several with commas between them") from error
    for layer in layers:
        if depth is not None and not -depth - 1 <= layer <= depth:
            raise UsageError(
                f"model {model.text!r} has no layer {layer}: 0 is the embedding, 1 to {depth} the layers, -1 the top"
            )
    return layers
