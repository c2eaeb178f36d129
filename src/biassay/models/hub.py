"""Opening Hugging Face models by hub name, folder or GGUF file. Weights are never initialised at random."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from biassay.errors import ModelError, UnknownNameError, UsageError
from biassay.files import content_digest, default_cache
from biassay.models.family import ModelName

__all__ = [
    "DEVICE_HELP",
    "TRUST_HELP",
    "Source",
    "check_device",
    "choose_device",
    "flag",
    "loading",
    "locate",
    "open_config",
    "open_tokenizer",
    "quiet_library",
    "refuse_missing",
]

DEVICE_HELP = "auto (the default: GPUs where there are any, and memory for what they lack), cpu or cuda"
TRUST_HELP = "true: run code that comes with the model; the default is false"
_DOCUMENTS = (".md", ".html", ".pdf", ".png", ".jpg", ".svg")  # beside a model, and no part of it
_DEVICES = ("auto", "cpu", "cuda")


@dataclass(frozen=True)
class Source:
    """The place of a model.

    Attributes
    ----------
    place : str
        A folder, or a name on the hub.
    revision : str or None
        On the hub: branch, tag or commit.
    name : str
        Its name in results.
    trusted : bool
        Whether the user allows code that comes with the model to run.
    """

    place: str
    revision: str | None
    name: str
    trusted: bool

    @property
    def is_folder(self) -> bool:
        return Path(self.place).is_dir()

    def has(self, file: str) -> bool:
        """Does the model come with a file? Not checked for models on the hub."""
        return not self.is_folder or (Path(self.place) / file).is_file()

    @property
    def options(self) -> dict[str, Any]:
        return {"revision": self.revision or "main", "trust_remote_code": self.trusted}

    def fingerprint(self) -> str:
        """The commit of a hub model; of a folder, what its files hold, wherever it lies."""
        if not self.is_folder:
            return f"{_commit(self)} {self.place}"
        digest = hashlib.blake2b(digest_size=16)
        with loading(self.name, "files"):
            for file in _parts(Path(self.place)):
                digest.update(f"{file.relative_to(self.place).as_posix()} {content_digest(file)}\n".encode())
        return digest.hexdigest()


def locate(model: ModelName) -> Source:
    """Find out whether a model string names a folder, a GGUF file or a hub model."""
    trusted = flag(model, "trust_remote_code")
    path = Path(model.name).expanduser()
    if path.suffix.lower() == ".gguf":
        return Source(str(_from_gguf(path, model)), None, f"{model.family}:{path.name}", trusted)
    if path.is_dir():
        named = "/".join(path.resolve().parts[-2:]).lstrip("/")  # folders are often called "model"
        return Source(str(path), None, f"{model.family}:{named}", trusted)
    name, _, revision = model.name.partition("@")
    if revision and Path(name).is_dir():
        raise ModelError(f"model {model.text!r}: {name!r} is a folder; @REVISION is only for names on the hub")
    if model.name.startswith(("/", ".", "~")):
        raise ModelError(f"model {model.text!r}: there is no folder {path}")
    return Source(name, revision or None, f"{model.family}:{model.name}", trusted)


def _commit(source: Source) -> str:
    """The commit that the name of a hub model stands for now; offline, the one that was downloaded."""
    hub: Any = import_module("huggingface_hub")
    try:
        file = hub.hf_hub_download(source.place, "config.json", revision=source.revision or "main")
    except Exception:  # whatever the hub has against it, the library says it as for everything else
        return str(getattr(open_config(source), "_commit_hash", None) or source.revision or "main")
    return Path(file).parent.name  # .../snapshots/COMMIT/config.json


def _parts(folder: Path) -> list[Path]:
    """The files that make up a model: those of the folder, of its sentence-transformers modules, and all code.

    Other subfolders (checkpoints, exports, runs) are not loaded with it.
    """
    named: list[Path] = []
    with suppress(OSError, ValueError, TypeError, KeyError):  # a list that is absent or damaged is noticed on loading
        named = [Path(part["path"]) for part in json.loads((folder / "modules.json").read_bytes())]
    outside = next((path for path in named if path.is_absolute() or ".." in path.parts), None)
    if outside is not None:
        raise ModelError(
            f"{folder / 'modules.json'} names a module outside of the model's folder, {str(outside)!r}; "
            "put the module into the folder and name it by its path there"
        )
    modules = [folder / path for path in (Path("1_Pooling"), *named) if path.parts]
    found = {*folder.iterdir(), *folder.rglob("*.py")}.union(*(module.rglob("*") for module in modules))
    return sorted(path for path in found if path.is_file() and _is_part(path.relative_to(folder)))


def _is_part(path: Path) -> bool:
    hidden = any(part.startswith((".", "__pycache__")) for part in path.parts)
    return not hidden and path.suffix.lower() not in _DOCUMENTS


def flag(model: ModelName, setting: str, default: str = "false") -> bool:
    """A setting that is true or false."""
    value = model.settings.get(setting, default).lower()
    if value not in ("true", "false", "1", "0"):
        raise UsageError(f"model {model.text!r}: {setting} is true or false, got {value!r}")
    return value in ("true", "1")


@contextmanager
def loading(name: str, what: str) -> Iterator[None]:
    """Turn errors of the library into one sentence."""
    try:
        yield
    except UsageError:
        raise
    except ImportError as error:
        raise ModelError(f"model {name!r}: its {what} needs a package that is not installed: {error}") from error
    except Exception as error:  # the library raises OSError, ValueError, KeyError, SafetensorError, ...
        text = " ".join(str(error).split())
        if "couldn't connect" in text:
            text = "there is no folder of that name here, and the hub cannot be reached or holds no such model"
        if "trust_remote_code" in text:
            raise ModelError(
                f"model {name!r} comes with code of its own, which would run on this machine; "
                "if you trust it, add ?trust_remote_code=true"
            ) from error
        raise ModelError(
            f"model {name!r}: its {what} cannot be loaded: {text[:300] or type(error).__name__}"
        ) from error


def quiet_library() -> Any:
    """The library, which then says nothing but errors."""
    import transformers

    library: Any = transformers
    library.utils.logging.set_verbosity_error()
    library.utils.logging.disable_progress_bar()
    return library


@contextmanager
def _without_bar() -> Iterator[None]:
    """The reader of GGUF files shows a progress bar whatever the settings of the library; here it does not."""
    module: Any = import_module("transformers.modeling_gguf_pytorch_utils")
    shown = getattr(module, "tqdm", None)
    if shown is None:
        yield
        return
    module.tqdm = partial(shown, disable=True)
    try:
        yield
    finally:
        module.tqdm = shown


def open_config(source: Source) -> Any:
    """The model's configuration; small, and enough to check most of what a user may ask for."""
    library = quiet_library()
    with loading(source.name, "configuration"):
        return library.AutoConfig.from_pretrained(source.place, **source.options)


def open_tokenizer(source: Source) -> Any:
    """The model's tokeniser; one without a vocabulary is no tokeniser."""
    library = quiet_library()
    with loading(source.name, "tokenizer"):
        tokenizer = library.AutoTokenizer.from_pretrained(source.place, **source.options)
        if len(tokenizer) <= len(tokenizer.all_special_ids):
            raise ModelError(f"model {source.name!r} has no tokenizer: neither tokenizer.json nor a vocabulary file")
        return tokenizer


def refuse_missing(name: str, info: Any, unused: tuple[str, ...]) -> None:
    """Refuse a checkpoint that lacks weights, but for those that are not used."""
    missing = sorted(key for key in info["missing_keys"] if not key.startswith(unused))
    wrong = sorted(str(key[0] if isinstance(key, tuple) else key) for key in info["mismatched_keys"])
    if missing or wrong:
        parts = ", ".join((missing + wrong)[:5])
        more = len(missing) + len(wrong) - 5
        raise ModelError(
            f"model {name!r}: the checkpoint lacks {parts}{f' and {more} more' if more > 0 else ''}; "
            "a model with randomly initialised weights is never run"
        )


def check_device(model: ModelName) -> str:
    """The device as it is asked for. Looking for a GPU would load torch, which is left until something is asked."""
    asked = model.settings.get("device", "auto")
    if asked not in _DEVICES:
        raise UnknownNameError("device", asked, _DEVICES, f"(one of {', '.join(_DEVICES)})")
    return asked


def choose_device(model: ModelName) -> str:
    """cpu or cuda; ``auto`` takes a GPU where there is one."""
    asked = check_device(model)
    if asked == "cpu":
        return "cpu"
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if asked == "cuda":
        raise UsageError(
            f"model {model.text!r}: CUDA was asked for, and this machine has no usable GPU; use device=cpu"
        )
    return "cpu"


def _from_gguf(path: Path, model: ModelName) -> Path:
    """The folder of a GGUF model, dequantised once and kept in the cache folder."""
    if not path.is_file():
        raise ModelError(f"model {model.text!r}: there is no file {path}")
    kept = default_cache() / "gguf" / content_digest(path)
    if kept.is_dir():
        return kept
    library = quiet_library()
    kept.parent.mkdir(parents=True, exist_ok=True)
    working = Path(tempfile.mkdtemp(prefix=".", dir=kept.parent))
    try:
        with loading(model.text, "GGUF file"), _without_bar():
            folder, file = str(path.parent), path.name
            dense = library.GgufConfig(dequantize=True)
            loaded, info = library.AutoModelForCausalLM.from_pretrained(
                folder, gguf_file=file, quantization_config=dense, output_loading_info=True
            )
            refuse_missing(model.text, info, ())
            loaded.save_pretrained(working)
            library.AutoTokenizer.from_pretrained(folder, gguf_file=file).save_pretrained(working)
        if not kept.is_dir():
            os.replace(working, kept)
    finally:
        shutil.rmtree(working, ignore_errors=True)
    return kept
