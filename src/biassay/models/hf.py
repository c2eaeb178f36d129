"""``hf:NAME``: any encoder or causal model of the Hugging Face library, its token states pooled to one vector."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from biassay.errors import ModelError, UsageError
from biassay.models.ahead import Ahead
from biassay.models.base import Encoded, Encoder, Identity, WordEncoder
from biassay.models.checkpoint import Checkpoint
from biassay.models.family import Family, ModelName
from biassay.models.hub import DEVICE_HELP, TRUST_HELP, Source
from biassay.models.pooling import POOLS, PoolName, check_texts, pool
from biassay.models.readings import Reading, own_reading
from biassay.models.sampling import SAMPLING_SETTINGS, check_not_sampled
from biassay.models.states import DTYPES, TokenStates, choice

if TYPE_CHECKING:
    from biassay.models.answering import Answerer, LikelihoodModel
    from biassay.models.lm import LanguageModel
    from biassay.models.states import Coming, Layers
    from biassay.models.tokenising import Tokenised

__all__ = ["FAMILY", "HfEncoder", "provide"]


def provide(model: ModelName) -> HfEncoder:
    return HfEncoder(model, Checkpoint(model))


class HfEncoder:
    """Token states of one layer or several, pooled over the tokens of a text."""

    def __init__(self, model: ModelName, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._states = TokenStates(model, checkpoint)
        self._pool = _pool_name(model, checkpoint)
        settings = {"pool": self._pool, **self._states.settings}
        self.identity = Identity(checkpoint.source.name, "hf", checkpoint.fingerprint, tuple(settings.items()))

        self._tokenised: Ahead[Sequence[str], Tokenised] = Ahead(lambda texts: checkpoint.tokeniser(texts))
        self._running: Ahead[tuple[Sequence[str], tuple[str, ...]], tuple[Tokenised, Coming]] = Ahead(self._start)

    @property
    def batch_size(self) -> int:
        return 512 if self._states.device == "cpu" else 16_384

    def prepare(self, texts: Sequence[str]) -> None:  # noqa: ARG002
        self._states.load()

    def prefetch(self, texts: Sequence[str], names: Sequence[str]) -> None:
        """Start on texts whose readings will be requested soon.

        A background thread tokenises them. On a GPU, a second one also starts the model on them, so that the GPU
        continues with the next batch while the previous one is copied back and cached.
        """
        self._tokenised.expect(texts)
        if self._states.is_asynchronous:
            self._running.expect((texts, tuple(names)))

    def cancel_prefetch(self) -> None:
        """Drop prefetched texts and wait until the background threads are idle."""
        self._running.cancel()
        self._tokenised.cancel()

    def _start(self, requested: tuple[Sequence[str], tuple[str, ...]]) -> tuple[Tokenised, Coming]:
        texts, names = requested
        tokenised = self._tokenised(texts)
        ways = [(layers, partial(pool, way)) for _, layers, way in map(self._offered.__getitem__, names)]
        return tokenised, self._states.begin(tokenised, ways, self._running.stopping)

    def encode(self, texts: Sequence[str]) -> Encoded:
        return self.encode_readings(texts, [self._own_name])[self._own_name]

    @cached_property
    def _own_name(self) -> str:
        return own_reading(self).name

    @property
    def readings(self) -> tuple[Reading, ...]:
        """Every layer, from the embedding to the top, with every pooling."""
        return tuple(reading for reading, *_ in self._offered.values())

    @cached_property
    def _offered(self) -> dict[str, tuple[Reading, Layers, PoolName]]:
        pools = [name for name in POOLS if name != "cls" or self._checkpoint.has_cls]
        found = {}
        for layers, name in itertools.product(self._states.each_layer, pools):
            own = self._states.settings_of(layers)
            identity = dataclasses.replace(self.identity, settings=tuple({"pool": name, **own}.items()))
            own.pop("dtype", None)  # that of all
            reading = Reading((*own.items(), ("pool", name)), identity)
            found[reading.name] = (reading, layers, name)
        return found

    def encode_readings(self, texts: Sequence[str], names: Sequence[str]) -> dict[str, Encoded]:
        tokenised, coming = self._running((texts, tuple(names)))
        found = zip(names, coming.vectors(), strict=True)
        return {name: Encoded.of(vectors, tokenised.unknown, tokenised.cut) for name, vectors in found}

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        return self._checkpoint.tokeniser.count(texts)


def _trained_pool(source: Source) -> str | None:
    """The pooling that a sentence-transformers folder was trained with, if it is one we have."""
    folder = Path(source.place)
    path = folder / "1_Pooling" / "config.json"
    if not path.is_file():
        listed = folder / "modules.json"
        if listed.is_file() and "1_Pooling" in listed.read_text(encoding="utf-8", errors="replace"):
            raise ModelError(
                f"model {source.name!r}: {listed} names 1_Pooling, which is not there; copy the whole folder, "
                "or choose how tokens become a vector, such as pool=mean"
            )
        return None
    modes = json.loads(path.read_text(encoding="utf-8"))
    names = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens", "max": "pooling_mode_max_tokens"}
    chosen = [name for name, key in names.items() if modes.get(key)]
    return chosen[0] if len(chosen) == 1 else None


def _pool_name(model: ModelName, checkpoint: Checkpoint) -> PoolName:
    """What the user asked for, or what the model was made for: [CLS] for BERT, the last token for GPT."""
    has_cls = checkpoint.has_cls
    default = "last" if checkpoint.ends_last else "cls" if has_cls else "mean"
    trained = None if "pool" in model.settings else _trained_pool(checkpoint.source)
    name = choice(model, "pool", trained or default, POOLS)
    if name == "cls" and not has_cls:
        raise UsageError(f"model {model.text!r} has no [CLS] token at the start of a text; use pool=mean or pool=last")
    return name  # type: ignore[return-value]


def _texts(model: ModelName) -> Encoder:
    check_texts(model)
    check_not_sampled(model, "vectors")
    return provide(model)


def _words(model: ModelName) -> WordEncoder:
    from biassay.models.hf_words import provide

    check_not_sampled(model, "vectors")
    return provide(model)


def _blanks(model: ModelName) -> LanguageModel:
    from biassay.models.lm import provide

    return provide(model)


def _replies(model: ModelName) -> Answerer:
    from biassay.models.hf_replies import HfReplies

    return HfReplies(model)


def _likelihoods(model: ModelName) -> LikelihoodModel:
    from biassay.models.hf_likelihoods import HfLikelihoods

    return HfLikelihoods(model)


@contextmanager
def _selftest(folder: Path) -> Iterator[str]:
    from biassay.models.tiny import write_bert

    yield f"hf:{write_bert(folder)}"


FAMILY = Family(
    name="hf",
    form="hf:NAME[@REVISION]",
    about="any Hugging Face encoder, masked or causal model, by name, folder or GGUF file",
    settings={
        "pool": f"texts: {', '.join(POOLS)}; by default what the model was made for",
        "word": "words in contexts: last (the default), first or mean of the tokens of a word",
        "layer": "0 for the embedding, -1 (the default) for the top; several with commas",
        "join": "of several layers: sum (the default) or concat",
        "dtype": f"{', '.join(DTYPES)}; the first is the default",
        "device": DEVICE_HELP,
        "trust_remote_code": TRUST_HELP,
        **{name: f"answers: {about}" for name, about in SAMPLING_SETTINGS.items()},
        "chat": "answers: true (the default) by the model's chat template, or false for plain text",
    },
    extra="hf",
    needs=("torch", "transformers"),
    packages=("torch", "transformers"),
    texts=_texts,
    words=_words,
    blanks=_blanks,
    replies=_replies,
    likelihoods=_likelihoods,
    selftest=_selftest,
    takes_bare_names=True,
)
