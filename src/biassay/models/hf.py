"""``hf:NAME``: any encoder or causal model of the Hugging Face library, its token states pooled to one vector."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from biassay.errors import ModelError, UnknownNameError, UsageError
from biassay.models.base import Encoded, Encoder, Identity, WordEncoder
from biassay.models.family import Family, ModelName
from biassay.models.hub import (
    DEVICE_HELP,
    TRUST_HELP,
    Source,
    choose_device,
    load_weights,
    locate,
    open_config,
    open_tokenizer,
)
from biassay.models.pooling import POOLS, PoolName, check_texts, pool

if TYPE_CHECKING:
    import torch

    from biassay.models.lm import LanguageModel
    from biassay.models.tokenising import Tokenised, Tokeniser

    Pooling = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]  # states, mask, words

__all__ = ["FAMILY", "HfEncoder", "TokenStates", "choice", "opened", "provide"]

_DTYPES = ("float32", "bfloat16", "float16")
_JOINS = ("sum", "concat")
_TOKENS_AT_ONCE = {"cpu": 4096, "cuda": 131_072}


def provide(model: ModelName) -> HfEncoder:
    source, config, tokeniser = opened(model)
    return HfEncoder(model, source, config, tokeniser)


def opened(model: ModelName) -> tuple[Source, Any, Tokeniser]:
    """Where a model lies, its configuration and its tokeniser; the weights are left for later."""
    from biassay.models.tokenising import Tokeniser

    source = locate(model)
    config = open_config(source)
    return source, config, Tokeniser(open_tokenizer(source), config, source.name)


class HfEncoder:
    """Token states of one layer or several, pooled over the tokens of a text."""

    def __init__(self, model: ModelName, source: Source, config: Any, tokeniser: Tokeniser) -> None:
        self._tokeniser = tokeniser
        self._states = TokenStates(model, source, config)
        name = _pool_name(model, source, config, tokeniser)
        self._pool = partial(pool, name)
        settings = {"pool": name, **self._states.settings}
        self.identity = Identity(source.name, "hf", source.fingerprint(config), tuple(settings.items()))
        self.batch_size = 512 if self._states.device == "cpu" else 16_384

    def prepare(self, texts: Sequence[str]) -> None:  # noqa: ARG002
        self._states.load()

    def encode(self, texts: Sequence[str]) -> Encoded:
        tokenised = self._tokeniser(texts)
        return Encoded.of(self._states.vectors(tokenised, self._pool), tokenised.unknown, tokenised.cut)


class TokenStates:
    """A model and the layers asked for: from the tokens of texts to one vector for each.

    Attributes
    ----------
    settings : dict
        Those that change the vectors.
    """

    def __init__(self, model: ModelName, source: Source, config: Any) -> None:
        self._source, self._config = source, config
        self._layers = _layers(model, config)
        self._join = choice(model, "join", "sum", _JOINS)
        self._dtype = choice(model, "dtype", "float32", _DTYPES)
        self.device = choose_device(model)
        self._model: Any = None
        self.settings = {"layer": ",".join(map(str, self._layers))}
        if len(self._layers) > 1:
            self.settings["join"] = self._join
        if self._dtype != "float32":
            self.settings["dtype"] = self._dtype

    def load(self) -> None:
        if self._model is None:
            loaded = load_weights(self._source, "AutoModel", self._dtype, self.device)
            self._model = loaded.get_encoder() if self._config.is_encoder_decoder else loaded

    def vectors(self, tokenised: Tokenised, pooling: Pooling) -> NDArray[np.float32]:
        """Vectors (texts, d)."""
        self.load()
        vectors: NDArray[np.float32] | None = None
        for rows in self.pieces(tokenised):
            found = self._pooled(tokenised, rows, pooling)
            if vectors is None:
                vectors = np.empty((len(tokenised.lengths), found.shape[1]), dtype=np.float32)
            vectors[rows] = found
        assert vectors is not None  # an encoder is never asked about no text at all
        return vectors

    def pieces(self, tokenised: Tokenised) -> Iterator[NDArray[np.intp]]:
        """Rows of the texts that go through the model together."""
        order = np.argsort(tokenised.lengths, kind="stable")
        return _by_size(order, tokenised, _TOKENS_AT_ONCE[self.device])

    def _pooled(self, tokenised: Tokenised, rows: NDArray[np.intp], pooling: Pooling) -> NDArray[np.float32]:
        """Vectors of some texts; if they do not fit into the GPU's memory, of each half in turn."""
        import torch

        try:
            with torch.inference_mode():
                return self._forward(tokenised, rows, pooling)
        except torch.OutOfMemoryError as error:
            if len(rows) == 1:
                raise ModelError(f"model {self._source.name!r}: one text does not fit into the GPU's memory") from error
        torch.cuda.empty_cache()
        middle = len(rows) // 2
        return np.concatenate([self._pooled(tokenised, half, pooling) for half in (rows[:middle], rows[middle:])])

    def _forward(self, tokenised: Tokenised, rows: NDArray[np.intp], pooling: Pooling) -> NDArray[np.float32]:
        import torch

        ids, mask, words = (torch.from_numpy(a).to(self.device) for a in tokenised.padded(rows))
        states = [pooling(state, mask, words).float() for state in self.run(ids, mask)]
        joined: torch.Tensor = torch.cat(states, dim=1) if self._join == "concat" else torch.stack(states).sum(dim=0)
        return np.asarray(joined.cpu().numpy(), dtype=np.float32)

    def run(self, ids: torch.Tensor, mask: torch.Tensor) -> list[torch.Tensor]:
        """States (texts, tokens, d) of every layer asked for."""
        top_only = self._layers == (-1,)
        output = self._model(input_ids=ids, attention_mask=mask, output_hidden_states=not top_only)
        return [output.last_hidden_state] if top_only else [output.hidden_states[i] for i in self._layers]


def _by_size(order: NDArray[np.intp], tokenised: Tokenised, most: int) -> Iterator[NDArray[np.intp]]:
    """Texts of like length together, as many as the number of padded tokens allows."""
    start = 0
    for end in range(1, len(order) + 1):
        if end < len(order) and (end - start + 1) * tokenised.lengths[order[end]] <= most:
            continue
        yield order[start:end]
        start = end


def choice(model: ModelName, setting: str, default: str, allowed: tuple[str, ...]) -> str:
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
    name = choice(model, "pool", _trained_pool(source) or default, POOLS)
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


def _texts(model: ModelName) -> Encoder:
    check_texts(model)
    return provide(model)


def _words(model: ModelName) -> WordEncoder:
    from biassay.models.hf_words import provide

    return provide(model)


def _blanks(model: ModelName) -> LanguageModel:
    from biassay.models.lm import provide

    return provide(model)


@contextmanager
def _selftest(folder: Path) -> Iterator[str]:
    from biassay.models.tiny import write_bert

    yield f"hf:{write_bert(folder)}"


FAMILY = Family(
    name="hf",
    form="hf:NAME[@REVISION]",
    about="any Hugging Face encoder or causal model, by name, folder or GGUF file",
    settings={
        "pool": f"texts: {', '.join(POOLS)}; by default what the model was made for",
        "word": "words in contexts: last (the default), first or mean of the tokens of a word",
        "layer": "0 for the embedding, -1 (the default) for the top; several with commas",
        "join": "of several layers: sum (the default) or concat",
        "dtype": f"{', '.join(_DTYPES)}; the first is the default",
        "device": DEVICE_HELP,
        "trust_remote_code": TRUST_HELP,
    },
    extra="hf",
    needs=("torch", "transformers"),
    packages=("torch", "transformers"),
    texts=_texts,
    words=_words,
    blanks=_blanks,
    selftest=_selftest,
    takes_bare_names=True,
)
