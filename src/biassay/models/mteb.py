"""Encode texts with the models that mteb knows (`mteb:NAME`), with the prompts that mteb gives them."""

from __future__ import annotations

import importlib.metadata
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from biassay.errors import UnknownNameError, UsageError
from biassay.models.backend import ModelBackend, ModelName, read_bool_setting, read_choice_setting
from biassay.models.base import Identity, TextEmbeddings
from biassay.models.devices import DEVICE_HELP, check_device, choose_device
from biassay.models.transformers.batches import retry_in_halves, split_in_half
from biassay.models.transformers.checkpoint import translate_errors

DEFAULT_TASK = "STSBenchmark"
"""Semantic similarity in English: the task that is closest to comparing cosines of words."""


class MtebEncoder:
    """Encode texts as mteb does in one of its tasks: with its loader, and the prompt that it uses there."""

    batch_size = 512

    def __init__(self, model: ModelName) -> None:
        check_device(model)
        self._name, self._model = model, None
        task = model.settings.get("task", DEFAULT_TASK)
        prompt = read_choice_setting(model, "prompt", ("none", "query", "document"), "none")
        self._meta, self._task = _find_meta(model), _find_task(model, task)
        types: Any = import_module("mteb.types")
        self._prompt = None if prompt == "none" else types.PromptType(prompt)
        settings = {"task": task} | ({} if prompt == "none" else {"prompt": prompt})
        revision = self._meta.revision
        if revision is not None:  # prompts belong to the version of mteb
            revision = f"{self._meta.name} {revision}, mteb {importlib.metadata.version('mteb')}"
        self.identity = Identity(f"mteb:{self._meta.name}", "mteb", revision, tuple(settings.items()))

    @cached_property
    def _device(self) -> str:
        return choose_device(self._name)

    def prepare(self, texts: Sequence[str]) -> None:  # noqa: ARG002
        """Load the weights."""
        if self._model is None:
            with translate_errors(self._name.label, "weights"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # mteb warns that its prompts replace those of the model
                self._model = self._meta.load_model(device=self._device)

    def encode(self, texts: Sequence[str]) -> TextEmbeddings:
        """Return one vector per text."""
        self.prepare(texts)
        vectors = retry_in_halves(self._name.label, self._encode, list(texts), split_in_half)
        return TextEmbeddings.from_vectors(np.concatenate(vectors))

    def _encode(self, texts: Sequence[str]) -> Any:
        datasets: Any = import_module("datasets")
        data: Any = import_module("torch.utils.data")
        size = 64 if self._device == "cpu" else 1024
        batches = data.DataLoader(datasets.Dataset.from_dict({"text": list(texts)}), batch_size=size)
        model: Any = self._model
        vectors = model.encode(
            batches, task_metadata=self._task, hf_split="test", hf_subset="default", prompt_type=self._prompt,
            batch_size=size, show_progress_bar=False,
        )  # fmt: skip
        return np.asarray(vectors, dtype=np.float32)


def _find_meta(model: ModelName) -> Any:
    """Return mteb's record of a model. Raise an error if its loader may run code and the user did not allow it."""
    library: Any = import_module("mteb")
    try:
        meta = library.get_model_meta(model.name)
    except (KeyError, ValueError) as error:
        known = [meta.name for meta in library.get_model_metas() if meta.name]
        raise UnknownNameError(
            "model of mteb", model.name, known, "(open other models of the hub as st:NAME or hf:NAME)"
        ) from error
    plain: Any = import_module("mteb.models.sentence_transformer_wrapper").SentenceTransformerEncoderWrapper
    runs_code = meta.loader is not plain or bool(meta.loader_kwargs.get("trust_remote_code"))
    if runs_code and not read_bool_setting(model, "trust_remote_code"):
        raise UsageError(
            f"{model.label}: mteb opens it by a loader that may run code that comes with the model, or send texts to "
            f"an endpoint; if you trust it, type {model.name}?trust_remote_code=true"
        )
    return meta


def _find_task(model: ModelName, name: str) -> Any:
    library: Any = import_module("mteb")
    try:
        return library.get_task(name).metadata
    except KeyError as error:
        known = [task.metadata.name for task in library.get_tasks()]
        raise UnknownNameError(f"task of {model.label}:", name, known) from error


@contextmanager
def _selftest(folder: Path) -> Iterator[str]:
    from biassay.models.sentence_transformers import write_tiny_sentence_transformer

    write_tiny_sentence_transformer(folder)
    library: Any = import_module("mteb.models.sentence_transformer_wrapper")
    registry: dict[str, Any] = import_module("mteb.models.model_implementations").MODEL_REGISTRY
    name, known = "biassay/tiny", import_module("mteb").get_model_meta("sentence-transformers/all-MiniLM-L6-v2")
    registry[name] = known.model_copy(
        update={
            "name": name,
            "revision": "1",
            "loader": lambda _name, revision, **options: library.SentenceTransformerEncoderWrapper(  # noqa: ARG005
                str(folder), **options
            ),
        }
    )
    try:
        yield f"mteb:{name}?trust_remote_code=true"
    finally:
        del registry[name]


BACKEND = ModelBackend(
    name="mteb",
    syntax="mteb:NAME",
    description="model of mteb, own prompts",
    settings={
        "task": f"task of mteb whose prompt is used (default {DEFAULT_TASK})",
        "prompt": "none, query or document: kind of text, for models with a prompt for each (default none)",
        "device": DEVICE_HELP,
        "trust_remote_code": "true to use a loader that may run code of the model or send texts to an endpoint",
    },
    extra="mteb",
    needs=("torch", "sentence_transformers", "mteb", "datasets"),
    packages=("torch", "transformers", "sentence-transformers", "mteb"),
    texts=MtebEncoder,
    selftest=_selftest,
)
