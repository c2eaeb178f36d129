"""Opening Hugging Face models by hub name, folder or GGUF file. Weights are never initialised at random."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from biassay.cache_usage import record_use
from biassay.errors import ModelError, RunFolderError, UnknownNameError, UsageError
from biassay.files import content_digest, default_cache, read_json, write_atomically
from biassay.models.family import ModelName
from biassay.models.model_files import changed_files, digest_of, file_digests, named_elsewhere

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

    @cached_property
    def snapshot(self) -> Path | None:
        """Folder of a hub model's files, named by its commit; offline the one that was downloaded. None: not found."""
        hub: Any = import_module("huggingface_hub")
        try:
            file = hub.hf_hub_download(self.place, "config.json", revision=self.revision or "main")
        except Exception:  # transformers reports it in its own words when it opens the configuration
            return None
        return Path(file).parent

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of ``from_pretrained``. The commit is fixed, so that a branch that moves mixes no two models."""
        snapshot = None if self.is_folder else self.snapshot
        revision = (self.revision or "main") if snapshot is None else snapshot.name
        return {"revision": revision, "trust_remote_code": self.trusted}

    def fingerprint(self) -> str:
        """Identify the model by the content of its files, wherever they are, and by whether its own code may run.

        A hub model is its commit, as long as the downloaded files are those of the commit.
        """
        files, elsewhere = self._first_state
        if self.is_folder:
            return digest_of(files, elsewhere, self.trusted)
        more = [f"changed {digest_of(files)}"] * bool(files)
        more += [f"with {digest_of(elsewhere)}"] * bool(elsewhere)
        more += ["trust_remote_code"] * self.trusted
        return " ".join([self.options["revision"], self.place, *more])

    def check_unchanged(self) -> None:
        """Raise an error if files changed since the fingerprint was taken: what was loaded may be another model."""
        before, now = ({**files, **elsewhere} for files, elsewhere in (self._first_state, self._state()))
        names = before.keys() | now.keys() if self.is_folder else before.keys() & now.keys()
        changed = next((name for name in sorted(names) if before.get(name) != now.get(name)), None)
        if changed is not None:
            raise ModelError(
                f"model {self.name!r}: {changed} changed while the model was loaded; wait until nothing writes to "
                "the model's folder, then run again"
            )

    @cached_property
    def _first_state(self) -> tuple[dict[str, str], dict[str, str]]:
        return self._state()

    def _state(self) -> tuple[dict[str, str], dict[str, str]]:
        """Digests of the files (of a hub model: the changed ones) and of what its configuration names elsewhere."""
        if not self.is_folder and self.snapshot is None:
            open_config(self)
            raise ModelError(f"model {self.name!r}: the hub has no config.json for it; name a folder of model files")
        with loading(self.name, "files"):
            if self.is_folder:
                folder = Path(self.place)
                files = file_digests(folder)
                configs = list(files)
            else:
                folder = self.snapshot or Path()
                files = self._checked_snapshot(folder, self.place)
                configs = ["config.json"]  # other files may still have to be downloaded
            names = named_elsewhere(folder, configs, code=self.trusted)
            return files, {f"[{name}]": self._digest_elsewhere(name) for name in names if name != self.place}

    def _digest_elsewhere(self, name: str) -> str:
        """Digest of another model, a tokenizer or code; of what cannot be found, nothing but its name counts."""
        if os.path.isfile(name):
            return content_digest(Path(name))
        if os.path.isdir(name):
            return digest_of(file_digests(Path(name)))
        hub: Any = import_module("huggingface_hub")
        try:
            snapshot = Path(hub.snapshot_download(name, allow_patterns=["*.py", "config.json"]))
        except Exception:
            return ""
        return digest_of(snapshot.name, self._checked_snapshot(snapshot, name))

    def _checked_snapshot(self, snapshot: Path, name: str) -> dict[str, str]:
        changed = changed_files(snapshot)
        code = next((file for file in changed if file.endswith(".py")), None)
        if code is not None and self.trusted:
            raise ModelError(
                f"model {self.name!r}: {snapshot / code} is not the file of {name}'s commit, and transformers would "
                "run its own earlier copy; copy the snapshot to a folder of your own and name that folder"
            )
        return changed


def locate(model: ModelName) -> Source:
    """Find out whether a model string names a folder, a GGUF file or a hub model."""
    trusted = flag(model, "trust_remote_code")
    path = Path(model.name).expanduser()
    if path.suffix.lower() == ".gguf":
        name = f"{model.family}:{path.name}"
        return Source(str(_from_gguf(path, model, name)), None, name, trusted)
    if path.is_dir():
        # Two parts, because folders are often called "model"; links keep the name that the user gave them.
        named = "/".join(Path(os.path.abspath(path)).parts[-2:]).lstrip("/")
        return Source(str(path), None, f"{model.family}:{named}", trusted)
    name, _, revision = model.name.partition("@")
    if revision and Path(name).is_dir():
        raise ModelError(f"model {model.text!r}: {name!r} is a folder; @REVISION is only for names on the hub")
    if model.name.startswith(("/", ".", "~")):
        raise ModelError(f"model {model.text!r}: there is no folder {path}")
    return Source(name, revision or None, f"{model.family}:{model.name}", trusted)


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
        source.check_unchanged()
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


def _from_gguf(path: Path, model: ModelName, name: str) -> Path:
    """Return the folder of a GGUF model, which is dequantised once and cached."""
    if not path.is_file():
        raise ModelError(f"model {model.text!r}: there is no file {path}")
    kept = default_cache() / "gguf" / content_digest(path)
    about = default_cache() / "models" / f"gguf-{kept.name}.json"
    if not _is_intact(kept, about):
        _dequantise(path, model, kept, about)
    record_use(about, name, {"file": str(path.resolve())})
    return kept


def _is_intact(kept: Path, about: Path) -> bool:
    """Whether a dequantised model has exactly the files that biassay wrote."""
    if not kept.is_dir():
        return False
    with suppress(RunFolderError):
        content = read_json(about)
        return isinstance(content, dict) and content.get("files") == file_digests(kept)
    return False


def _dequantise(path: Path, model: ModelName, kept: Path, about: Path) -> None:
    library = quiet_library()
    for parent in (kept.parent, about.parent):
        parent.mkdir(parents=True, exist_ok=True)
    working = Path(tempfile.mkdtemp(prefix=".", dir=kept.parent))
    source, target = working / "source", working / "target"
    try:
        # The library also reads files next to the GGUF file, such as tokenizer_config.json. They are not part of the
        # cache key, so the file is converted in a folder of its own.
        source.mkdir()
        _link(path.resolve(), source / "model.gguf")
        with loading(model.text, "GGUF file"), _without_bar():
            dense = library.GgufConfig(dequantize=True)
            loaded, info = library.AutoModelForCausalLM.from_pretrained(
                str(source), gguf_file="model.gguf", quantization_config=dense, output_loading_info=True
            )
            refuse_missing(model.text, info, ())
            loaded.save_pretrained(target)
            library.AutoTokenizer.from_pretrained(str(source), gguf_file="model.gguf").save_pretrained(target)
        digests = file_digests(target)
        if kept.is_dir() and not _is_intact(kept, about):
            shutil.rmtree(kept)
        if not kept.is_dir():
            write_atomically(about, json.dumps({"files": digests}, indent=1).encode())
            os.replace(target, kept)
    finally:
        shutil.rmtree(working, ignore_errors=True)


def _link(path: Path, link: Path) -> None:
    try:
        link.symlink_to(path)
    except OSError:  # Windows allows it to few users
        shutil.copyfile(path, link)
