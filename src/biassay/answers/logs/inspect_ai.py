"""Logs of Inspect: .eval (a ZIP file with one JSON file for each sample) and .json (one file)."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from biassay.answers.logs.records import Log, LoggedChoice, LoggedFilling, Unmapped
from biassay.errors import MissingExtraError, StimulusError, UsageError
from biassay.files import content_digest
from biassay.stimuli.benchmarks.bbq import UNKNOWN_PHRASES, bbq_item
from biassay.stimuli.benchmarks.rows import Row
from biassay.stimuli.benchmarks.stereoset import GOLD_LABELS, STEREOSET_BIAS_TYPES
from biassay.texts.choices import read_choice
from biassay.unpacking import UnpackedTooLargeError, UnpackLimit

__all__ = ["read_inspect"]

_ZSTD = 93  # the method of recent logs, which Python's zipfile knows from 3.14 on
_WINDOW = 2**27  # bytes
_LETTERS = "ABCDEFGHIJ"


def read_inspect(path: Path) -> Log:
    """Read a log of inspect_evals/bbq or of the intrasentence task of inspect_evals/stereoset; others are refused."""
    try:
        header, samples = _zipped(path) if zipfile.is_zipfile(path) else _plain(path)
    except (MissingExtraError, UnpackedTooLargeError):
        raise
    except (OSError, ValueError, KeyError, EOFError, RecursionError, zipfile.BadZipFile, zlib.error) as error:
        raise UsageError(f"{path}: not a whole log of Inspect: {error}") from error
    about = header["eval"]
    task = str(about.get("task") or "")
    benchmark = task.rpartition("/")[2]
    if benchmark not in ("bbq", "stereoset"):
        raise UsageError(f"{path}: a log of the task {task!r}; of Inspect, logs of bbq and stereoset are read")
    if _shuffled(header):
        raise UsageError(f"{path}: its options were shuffled (multiple_choice(shuffle=True)), so letters tell nothing")
    answers: list[Any] = []
    unmapped = []
    for row in samples:
        try:
            answers.append(_choice(row) if benchmark == "bbq" else _filling(row))
        except StimulusError as error:
            unmapped.append(Unmapped(row.place, str(error).removeprefix(f"{path}: {row.place}: ")))
    if not answers:
        first = unmapped[0].reason if unmapped else "there is none (a log without samples?)"
        raise UsageError(f"{path}: none of its {len(unmapped)} samples can be used; the first: {first}")
    return Log(
        path=path,
        digest=content_digest(path),
        tool="Inspect",
        version=str(_object(about.get("packages")).get("inspect_ai", "")),
        benchmark="bbq" if benchmark == "bbq" else "stereoset",
        task=task,
        model=str(about.get("model") or ""),
        method="answer",
        answers=tuple(answers),
        unmapped=tuple(unmapped),
    )


def _plain(path: Path) -> tuple[dict[str, Any], Sequence[Row]]:
    root = _checked_header(json.loads(path.read_text(encoding="utf-8")))
    samples = root.get("samples") or []
    if not isinstance(samples, list):
        raise ValueError("'samples' is not a list")
    return root, [_row(path, sample) for sample in samples]


def _checked_header(header: object) -> dict[str, Any]:
    if not isinstance(header, dict) or not isinstance(header.get("eval"), dict):
        raise ValueError("no object 'eval' in it")
    return header


def _zipped(path: Path) -> tuple[dict[str, Any], Sequence[Row]]:
    limit = UnpackLimit(path)
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if "header.json" not in names:
            raise ValueError("no header.json in it: was the run ended before its log was written?")
        header = _checked_header(json.loads(_member(archive, "header.json", limit)))
        inside = [name for name in names if name.startswith("samples/") and name.endswith(".json")]
        return header, [_row(path, json.loads(_member(archive, name, limit))) for name in inside]


def _member(archive: zipfile.ZipFile, name: str, limit: UnpackLimit) -> bytes:
    """Return the content of a member. Do not trust the size that the archive states."""
    info = archive.getinfo(name)
    if info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with archive.open(info) as member:
            return limit.read_all(member)
    if info.compress_type != _ZSTD:
        raise ValueError(f"{name}: compressed by the unknown method {info.compress_type}")
    try:
        import zstandard
    except ModuleNotFoundError:
        raise MissingExtraError("a log of Inspect in this format", "benchmarks") from None
    file = archive.fp
    assert file is not None
    file.seek(info.header_offset + 26)  # the lengths of the name and of what is extra end a head of 30 bytes
    skipped = sum(struct.unpack("<HH", file.read(4)))
    file.seek(skipped, 1)
    packed = io.BytesIO(file.read(info.compress_size))
    try:
        content = limit.read_all(zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(packed))
    except zstandard.ZstdError as error:
        raise ValueError(f"{name}: {error}") from error
    if zlib.crc32(content) != info.CRC:
        raise ValueError(f"{name}: its checksum is wrong")
    return content


def _row(path: Path, sample: Any) -> Row:
    values = sample if isinstance(sample, dict) else {}
    return Row(path, f"sample {values.get('id', '?')}, epoch {values.get('epoch', 1)}", values)


def _shuffled(header: dict[str, Any]) -> bool:
    steps = _object(header.get("plan")).get("steps")
    args = _object(header["eval"].get("task_args")).get("shuffle_choices")
    params = [_object(_object(step).get("params")) for step in steps] if isinstance(steps, list) else []
    return bool(args) or any(one.get("shuffle") for one in params)


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _choice(row: Row) -> LoggedChoice:
    item = bbq_item(Row(row.path, row.place, dict(_bbq_fields(row))))
    choice = read_choice(
        _reply(row), item.options, letters=_LETTERS[:3], unknown=item.unknown, unknown_phrases=UNKNOWN_PHRASES
    )
    return LoggedChoice(item, choice, row.whole("epoch"))


def _bbq_fields(row: Row) -> Iterator[tuple[str, Any]]:
    """A sample as a row of BBQ."""
    metadata = _object(row.value("metadata"))
    yield from metadata.items()
    options = row.texts("choices")
    yield from ((f"ans{place}", option) for place, option in enumerate(options))
    target = row.value("target")
    letter = target[0] if isinstance(target, list) and target else target
    if isinstance(letter, str) and letter and letter in _LETTERS[: len(options)]:
        yield "label", _LETTERS.index(letter)
    yield "example_id", metadata.get("source_id", str(row.value("id")).rpartition("_")[2])
    context, mark, question = row.text("input").partition("\n\nQuestion: ")
    if mark and context.startswith("Context: "):
        yield from (("context", context.removeprefix("Context: ")), ("question", question))


def _filling(row: Row) -> LoggedFilling:
    if row.value("metadata.task_type") != "intrasentence":
        row.fail("metadata.task_type", "only the intrasentence task is read")
    labels = row.texts("metadata.gold_labels")
    if sorted(labels) != sorted(GOLD_LABELS):
        row.fail("metadata.gold_labels", f"expected {', '.join(GOLD_LABELS)}, got {', '.join(labels)}")
    choice = read_choice(_reply(row), row.texts("choices"), letters=_LETTERS[: len(labels)])
    about = Row(row.path, row.place, _object(row.value("metadata")))
    return LoggedFilling(
        id=str(row.value("id")),
        target=about.text("target"),
        bias_type=about.choice("bias_type", STEREOSET_BIAS_TYPES),
        choice=choice,
        label=None if choice.option is None else labels[choice.option],
        epoch=row.whole("epoch"),
    )


def _reply(row: Row) -> str:
    """What the model answered; a sample that failed has no answer, which is not an empty one."""
    if row.has("error"):
        row.fail("error", f"the sample failed: {str(row.values['error'])[:80]}")
    given = row.value("output.choices")
    if not isinstance(given, list) or not given:
        row.fail("output.choices", "the model gave no answer")
    content = _object(_object(given[0]).get("message")).get("content", "")
    if isinstance(content, list):  # reasoning, text, ... of which the text is the answer
        texts = [part.get("text") for part in map(_object, content) if part.get("type") == "text"]
        content = "\n".join(text for text in texts if isinstance(text, str))
    return str(content)
