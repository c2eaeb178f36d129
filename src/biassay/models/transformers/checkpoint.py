"""Locate Hugging Face checkpoints, identify them by their files, and load them."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Literal

from biassay.cache_usage import record_use
from biassay.errors import ModelError, RunFolderError, UsageError, format_examples
from biassay.io import check_digest, content_digest, default_cache, dump_json_with_digest, read_json, write_atomically
from biassay.models.backend import ModelName, read_bool_setting
from biassay.models.devices import check_device, choose_device
from biassay.models.transformers.model_files import hash_files, hash_json, list_external_references
from biassay.models.transformers.tokenizer import TextTokenizer

_FORMAT = 2  # part of the key of cached facts
DTYPES = ("float32", "bfloat16", "float16")
TRUST_HELP = "true to run code that comes with the model (default false)"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A model on disk or on the hub. Its configuration and tokenizer are loaded on demand.

    Facts that only the library knows, such as whether a model is masked or causal, are cached per fingerprint, so that
    a run whose outputs are all cached imports neither transformers nor torch.

    Attributes
    ----------
    model : ModelName
        Parsed model string.
    location : str
        Folder or hub name.
    revision : str or None
        Branch, tag or commit on the hub.
    name : str
        Name in results.
    """

    model: ModelName
    location: str
    revision: str | None
    name: str

    @property
    def label(self) -> str:
        """Name of the model in error messages."""
        return self.model.label

    @cached_property
    def trusted(self) -> bool:
        """True if code that comes with the model may run."""
        return read_bool_setting(self.model, "trust_remote_code")

    @cached_property
    def device(self) -> str:
        """Device of the model, "cpu" or "cuda"."""
        return choose_device(self.model)

    @property
    def is_folder(self) -> bool:
        """True if the model is a local folder."""
        return Path(self.location).is_dir()

    def has(self, file: str) -> bool:
        """Return True if the folder has a file; always True for hub models, which are not checked."""
        return not self.is_folder or (Path(self.location) / file).is_file()

    @cached_property
    def snapshot(self) -> Path | None:
        """Downloaded folder of a hub model, named by its commit; None if it cannot be found."""
        hub: Any = import_module("huggingface_hub")
        try:
            file = hub.hf_hub_download(self.location, "config.json", revision=self.revision or "main")
        except Exception:  # transformers reports the error when it opens the configuration
            return None
        return Path(file).parent

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of ``from_pretrained``, with a fixed commit, because a branch may move between two calls."""
        snapshot = None if self.is_folder else self.snapshot
        revision = (self.revision or "main") if snapshot is None else snapshot.name
        return {"revision": revision, "trust_remote_code": self.trusted}

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the files, or commit on the hub, and whether the model's code may run."""
        files, elsewhere = self._first_state
        if self.is_folder:
            return hash_json(files, elsewhere, self.trusted)
        more = [f"with {hash_json(elsewhere)}"] * bool(elsewhere)
        more += ["trust_remote_code"] * self.trusted
        return " ".join([self.options["revision"], self.location, *more])

    def check_unchanged(self) -> None:
        """Raise ModelError if files changed since the fingerprint was taken."""
        before, now = ({**files, **elsewhere} for files, elsewhere in (self._first_state, self._state()))
        changed = next((name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)), None)
        if changed is not None:
            raise ModelError(
                f"{self.label}: {changed} changed while the model was loaded; wait until nothing writes to "
                "the model's folder, then run again"
            )

    @cached_property
    def _first_state(self) -> tuple[dict[str, str], dict[str, str]]:
        return self._state()

    def _state(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return digests of the files in a folder, and of external references."""
        if not self.is_folder and self.snapshot is None:
            _ = self.config
            raise ModelError(f"{self.label}: no config.json on the hub; give a folder with the model's files")
        with translate_errors(self.label, "files"):
            folder = Path(self.location) if self.is_folder else self.snapshot or Path()
            files = hash_files(folder) if self.is_folder else {}
            configs = list(files) or ["config.json"]  # other files may still have to be downloaded
            names = list_external_references(folder, configs, code=self.trusted)
            return files, {f"[{name}]": self._hash_reference(name) for name in names if name != self.location}

    def _hash_reference(self, name: str) -> str:
        """Identify another model, tokenizer or code repository; return "" if it cannot be found."""
        if os.path.isfile(name):
            return content_digest(Path(name))
        if os.path.isdir(name):
            return hash_json(hash_files(Path(name)))
        hub: Any = import_module("huggingface_hub")
        try:
            return Path(hub.snapshot_download(name, allow_patterns=["*.py", "config.json"])).name
        except Exception:  # not found, offline or private
            return ""

    @cached_property
    def config(self) -> Any:
        """Configuration of the library."""
        with translate_errors(self.label, "configuration"):
            return import_transformers().AutoConfig.from_pretrained(self.location, **self.options)

    @cached_property
    def tokenizer(self) -> Any:
        """Tokenizer of the library; a model without a vocabulary raises ModelError."""
        with translate_errors(self.label, "tokenizer"):
            tokenizer = import_transformers().AutoTokenizer.from_pretrained(self.location, **self.options)
            if len(tokenizer) <= len(tokenizer.all_special_ids):
                raise ModelError(
                    f"{self.label} has no tokenizer; add tokenizer.json or a vocabulary file to its folder"
                )
            self.check_unchanged()
            return tokenizer

    @cached_property
    def text_tokenizer(self) -> TextTokenizer:
        """Tokenizer that reports unknown and truncated parts."""
        return TextTokenizer(self.tokenizer, self.config, self.label)

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
        key = hash_json(_FORMAT, topic, self.fingerprint, self.trusted, metadata.version("transformers"))
        path = default_cache() / "models" / f"{key}.json"
        with suppress(RunFolderError):
            content = read_json(path)
            if isinstance(content, dict) and check_digest(content):
                return content
        facts = compute()
        with suppress(OSError):  # a cache that cannot be written only costs time
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, dump_json_with_digest(facts).encode())
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


def find_checkpoint(model: ModelName) -> Checkpoint:
    """Resolve a model string to a folder, a GGUF file or a hub model."""
    check_device(model)
    read_bool_setting(model, "trust_remote_code")
    path = Path(model.name).expanduser()
    if path.suffix.lower() == ".gguf":
        name = f"{model.backend}:{path.name}"
        return Checkpoint(model, str(_convert_gguf(path, model, name)), None, name)
    if path.is_dir():
        # Two parts, because folders are often called "model"; links keep the name that the user gave them.
        name = "/".join(Path(os.path.abspath(path)).parts[-2:]).lstrip("/")
        return Checkpoint(model, str(path), None, f"{model.backend}:{name}")
    name, _, revision = model.name.partition("@")
    if revision and Path(name).is_dir():
        raise ModelError(f"{model.label}: {name!r} is a folder; leave out @REVISION, which is for models on the hub")
    if model.name.startswith(("/", ".", "~")):
        raise ModelError(f"{model.label}: there is no folder {model.name}; check the path, or name a model on the hub")
    return Checkpoint(model, name, revision or None, f"{model.backend}:{model.name}")


@contextmanager
def translate_errors(label: str, what: str) -> Iterator[None]:
    """Turn any error of the library into a ModelError of one sentence; `what` is being loaded."""
    try:
        yield
    except UsageError:
        raise
    except ImportError as error:
        raise ModelError(f"{label}: its {what} needs a package that is not installed: {error}") from error
    except Exception as error:  # the library raises OSError, ValueError, KeyError, SafetensorError, ...
        text = " ".join(str(error).split())
        if "couldn't connect" in text:
            text = (
                "there is no such folder, and the hub cannot be reached or has no such model; check the name, or write "
                "./ in front of a folder"
            )
        if "trust_remote_code" in text:
            raise ModelError(
                f"{label} comes with code that would run on this machine; if you trust it, add ?trust_remote_code=true"
            ) from error
        raise ModelError(f"{label}: its {what} cannot be loaded: {text[:300] or type(error).__name__}") from error


def import_transformers() -> Any:
    """Import transformers and silence everything except errors."""
    import transformers

    library: Any = transformers
    library.utils.logging.set_verbosity_error()
    library.utils.logging.disable_progress_bar()
    return library


def check_complete(label: str, info: Any, unused: tuple[str, ...]) -> None:
    """Raise ModelError if a checkpoint lacks weights.

    Parameters
    ----------
    label : str
        The model, for the error message.
    info : dict
        Loading info of ``from_pretrained``.
    unused : tuple of str
        Prefixes of weights that may be missing because they are not used.
    """
    missing = sorted(key for key in info["missing_keys"] if not key.startswith(unused))
    wrong = sorted(str(key[0] if isinstance(key, tuple) else key) for key in info["mismatched_keys"])
    if missing or wrong:
        raise ModelError(
            f"{label}: the checkpoint lacks {format_examples(missing + wrong, 5)}; biassay never runs a model "
            "with randomly initialized weights"
        )


def _convert_gguf(path: Path, model: ModelName, name: str) -> Path:
    """Return the folder of a GGUF model, which is dequantised once and cached."""
    if not path.is_file():
        raise ModelError(f"{model.label}: there is no file {path}; check the path")
    folder = default_cache() / "gguf" / content_digest(path)
    metadata = default_cache() / "models" / f"gguf-{folder.name}.json"
    if not _is_intact(folder, metadata):
        _dequantise(path, model, folder, metadata)
    record_use(metadata, name, {"file": str(path.resolve())})
    return folder


def _is_intact(folder: Path, metadata: Path) -> bool:
    """Return True if a dequantised model has exactly the files that biassay wrote."""
    if not folder.is_dir():
        return False
    with suppress(RunFolderError):
        content = read_json(metadata)
        return isinstance(content, dict) and content.get("files") == hash_files(folder)
    return False


def _dequantise(path: Path, model: ModelName, folder: Path, metadata: Path) -> None:
    library = import_transformers()
    for parent in (folder.parent, metadata.parent):
        parent.mkdir(parents=True, exist_ok=True)
    working = Path(tempfile.mkdtemp(prefix=".", dir=folder.parent))
    source, target = working / "source", working / "target"
    try:
        # The library also reads files next to the GGUF file, such as tokenizer_config.json. They are not part of the
        # cache key, so the file is converted in a separate folder.
        source.mkdir()
        _link(path.resolve(), source / "model.gguf")
        with translate_errors(model.label, "GGUF file"):
            dense = library.GgufConfig(dequantize=True)
            loaded, info = library.AutoModelForCausalLM.from_pretrained(
                str(source), gguf_file="model.gguf", quantization_config=dense, output_loading_info=True
            )
            check_complete(model.label, info, ())
            loaded.save_pretrained(target)
            library.AutoTokenizer.from_pretrained(str(source), gguf_file="model.gguf").save_pretrained(target)
        digests = hash_files(target)
        if folder.is_dir() and not _is_intact(folder, metadata):
            shutil.rmtree(folder)
        if not folder.is_dir():
            write_atomically(metadata, json.dumps({"files": digests}, indent=1).encode())
            os.replace(target, folder)
    finally:
        shutil.rmtree(working, ignore_errors=True)


def _link(path: Path, link: Path) -> None:
    try:
        link.symlink_to(path)
    except OSError:  # most Windows users may not create links
        shutil.copyfile(path, link)


TRIAL_SCRIPT = """
import torch
for dtype in (torch.bfloat16, torch.float16):
    for size in (32, 256):
        a = torch.ones(1, 1, size, size, dtype=dtype)
        torch.nn.functional.linear(a, a[0, 0])
        torch.nn.functional.scaled_dot_product_attention(a, a, a)
"""


def check_half_precision(label: str, model: Any) -> None:
    """Raise ModelError if half precision on this CPU would kill the process.

    Some virtual machines report AMX instructions that they cannot execute. torch uses them, and the first
    half-precision matrix product ends Python with "Illegal instruction".
    """
    import torch

    halves = (torch.bfloat16, torch.float16)
    if not any(weights.dtype in halves and weights.device.type == "cpu" for weights in model.parameters()):
        return
    reports_amx = getattr(torch.cpu, "_is_amx_tile_supported", lambda: True)  # not in every release of torch
    if reports_amx() and (code := _run_trial(sys.executable)) != 0:
        raise ModelError(
            f"{label}: this CPU cannot run half precision, although it reports support (a trial ended with code "
            f"{code}); use hf: with dtype=float32, or set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 before Python starts"
        )


@cache
def _run_trial(python: str) -> int:
    """Return the exit code of the trial script; negative if a signal ended it."""
    import subprocess

    command = [python, "-P", "-c", TRIAL_SCRIPT]  # -P: import nothing from the working folder
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode


_MEMORY_FACTOR = 1.2  # GPU memory needed, relative to the weights


def load_weights(checkpoint: Checkpoint, auto_class: str, dtype: str, *, unused: tuple[str, ...] = ()) -> Any:
    """Load a model in evaluation mode; raise ModelError if the checkpoint lacks weights.

    With ``device=auto``, a model that is too large for one GPU is spread over all GPUs, CPU memory and disk.

    Parameters
    ----------
    checkpoint : Checkpoint
        Location of the model.
    auto_class : str
        Class of transformers, such as ``AutoModel``.
    dtype : str
        Precision. A quantised model keeps its own unless another one than float32 is requested.
    unused : tuple of str
        Prefixes of weights that the checkpoint may lack, because they are not used.

    Returns
    -------
    PreTrainedModel
        The model, ready to run.
    """
    import torch

    quantised = getattr(checkpoint.config, "quantization_config", None) is not None
    device = checkpoint.device
    spread = check_device(checkpoint.model) == "auto" and _is_too_large(checkpoint, auto_class, dtype)
    placement: dict[str, Any] = {"device_map": {"": device}} if quantised else {}
    if spread:
        placement = {"device_map": "auto", "offload_folder": tempfile.mkdtemp(), "max_memory": _get_memory_limits()}
    with translate_errors(checkpoint.label, "weights"):
        loaded, info = getattr(import_transformers(), auto_class).from_pretrained(
            checkpoint.location,
            dtype="auto" if quantised and dtype == "float32" else getattr(torch, dtype),
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # check_complete names them
            **placement,
            **checkpoint.options,
        )
    checkpoint.check_unchanged()
    check_complete(checkpoint.label, info, unused)
    loaded = loaded.eval() if placement else loaded.to(device).eval()
    if spread:
        weakref.finalize(loaded, shutil.rmtree, placement["offload_folder"], ignore_errors=True)
    check_half_precision(checkpoint.label, loaded)
    return loaded


def _is_too_large(checkpoint: Checkpoint, auto_class: str, dtype: str) -> bool:
    """Return True if a model does not fit on one GPU, judged by its configuration."""
    import torch

    if checkpoint.device != "cuda":
        return False
    with translate_errors(checkpoint.label, "configuration"), torch.device("meta"):
        empty = getattr(import_transformers(), auto_class).from_config(checkpoint.config)
    n_parameters = sum(weights.numel() for weights in empty.parameters())
    free, _ = torch.cuda.mem_get_info()
    return bool(_MEMORY_FACTOR * n_parameters * getattr(torch, dtype).itemsize > free)


def _get_memory_limits() -> dict[Any, Any] | None:
    """Return the memory to use per device; None for all. Tests replace it."""
    return None
