"""Read benchmark responses from logs of other tools, and score them."""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from biassay.datasets.bbq import UNKNOWN_PHRASES, BbqItem, parse_bbq_item
from biassay.datasets.crows_pairs import CrowsPair, parse_crows_pair
from biassay.datasets.data_rows import DataRow, read_rows
from biassay.datasets.fields import describe_type
from biassay.datasets.stereoset import GOLD_LABELS, STEREOSET_BIAS_TYPES
from biassay.decompression import UnpackedTooLargeError, UnpackLimit
from biassay.errors import MissingExtraError, StimulusError, UsageError
from biassay.grouping import group_pairs
from biassay.io import content_digest
from biassay.prompts.choices import ChoiceKind, ParsedChoice, parse_choice, parse_choice_as_bbq
from biassay.stats.benchmark_scores import UNPARSED, stereoset_score
from biassay.studies.benchmarks.likelihood_pairs import make_crows_rows, make_stereoset_rows
from biassay.studies.benchmarks.results import (
    ALL_CATEGORIES,
    ModelId,
    TermRow,
    add_bounds,
    complete_row,
    count_kinds,
)
from biassay.studies.benchmarks.settings import BenchmarkSettings, By
from biassay.studies.benchmarks.tasks.bbq import make_bbq_rows
from biassay.studies.benchmarks.tasks.options import CombinedChoice, find_favoured_position
from biassay.studies.study import Row

LOG_FORMATS = (
    "samples_TASK_DATE.jsonl of lm-evaluation-harness, a log of Inspect (.eval, .json), or answers released with BBQ "
    "(preds_CATEGORY.jsonl)"
)
"""What logs are read."""


@dataclass(frozen=True)
class LoggedChoice:
    """A BBQ question and the chosen option."""

    item: BbqItem
    choice: ParsedChoice


@dataclass(frozen=True)
class LoggedPair:
    """A pair of CrowS-Pairs and the log-likelihoods of its sentences, whole."""

    pair: CrowsPair
    more: float
    less: float


@dataclass(frozen=True)
class LoggedStereoSetItem:
    """An item of StereoSet and the sentence chosen: ``label`` is its gold label, None if none was chosen."""

    id: str
    target: str
    bias_type: str
    choice: ParsedChoice
    label: str | None


@dataclass(frozen=True)
class SkippedSample:
    """A sample that was skipped, named by its location in the log, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class EvaluationLog:
    """Everything of one log.

    Attributes
    ----------
    path : Path
    digest : str
        Of the file.
    tool, version : str
        lm-evaluation-harness or Inspect; empty if the log has no version.
    benchmark : "bbq", "crows-pairs" or "stereoset"
    task, model : str
        As the log calls them; empty where it does not.
    by_likelihood : bool
        If True, options were compared by their likelihood; otherwise the model wrote an answer.
    answers : tuple of LoggedChoice, LoggedPair or LoggedStereoSetItem
    unmapped : tuple of SkippedSample
    """

    path: Path
    digest: str
    tool: str
    version: str = ""
    benchmark: str
    task: str
    model: str
    by_likelihood: bool = False
    answers: tuple[Any, ...]
    unmapped: tuple[SkippedSample, ...]


def _make_log(
    path: Path,
    rows: Iterable[DataRow],
    parse: Callable[[DataRow], Any],
    name_item: Callable[[DataRow], str] = lambda _: "",
    **fields: Any,
) -> EvaluationLog:
    """Make a log from its samples. Skip samples that cannot be parsed; raise UsageError if none can."""
    answers, unmapped = [], []
    for row in rows:
        try:
            answers.append(parse(row))
        except StimulusError as error:
            reason = str(error).removeprefix(f"{row.path}: {row.location}: ")
            item = name_item(row)
            unmapped.append(SkippedSample(f"{item} ({row.location})" if item else row.location, reason))
    if not answers:
        first = unmapped[0].reason if unmapped else "there is none (a log without samples?)"
        raise UsageError(f"{path}: none of its {len(unmapped)} samples can be used; the first: {first}")
    digest = fields.pop("digest", None) or content_digest(path)
    return EvaluationLog(path=path, digest=digest, answers=tuple(answers), unmapped=tuple(unmapped), **fields)


_RELEASE_FILE = re.compile(r"preds_.+\.jsonl(\.gz)?")
_RELEASE_FIELD = re.compile(r"(?P<model>.+)_pred_(?P<format>[a-z]+)")
_NO_CONTEXT_FORMAT = "qonly"


def read_bbq_release(paths: Sequence[Path]) -> tuple[EvaluationLog, ...]:
    """Read the answers of all files, one log for each model and format.

    Answers are read by the authors' rules. If questions were shown without the context (format qonly), only ambiguous
    contexts count, because the others cannot be answered.
    """
    rows = [row for path in paths for row in read_rows(path)]
    fields = {name: named for row in rows for name in row.values if (named := _RELEASE_FIELD.fullmatch(name))}
    if not fields:
        raise UsageError(f"{paths[0]}: no released answers to BBQ: no line has a field MODEL_pred_FORMAT")
    digests = sorted(content_digest(path) for path in paths)
    return tuple(
        _make_log(
            paths[0] if len(paths) == 1 else paths[0].parent,
            rows,
            partial(_parse_release_answer, field, parts["format"] == _NO_CONTEXT_FORMAT),
            digest=digests[0] if len(paths) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest(),
            tool="answers released with BBQ",
            benchmark="bbq",
            task=parts["format"],
            model=parts["model"],
        )
        for field, parts in fields.items()
    )


def _parse_release_answer(field: str, alone: bool, row: DataRow) -> LoggedChoice:
    item, reply = parse_bbq_item(row), row.value(field)
    if not isinstance(reply, str):
        row.fail(field, f"expected a text, got {describe_type(reply)}")
    if alone and not item.ambiguous:
        raise StimulusError("the question was shown without the context that answers it")
    option = parse_choice_as_bbq(reply, item.options, item.info)
    kind: ChoiceKind = "chosen" if option is not None else "unparsed" if reply.strip() else "empty"
    return LoggedChoice(item, ParsedChoice(kind, option))


_ZSTD = 93  # the method of recent logs, which Python's zipfile knows from 3.14 on
_MAX_ZSTD_WINDOW = 2**27  # bytes
_OPTION_LETTERS = "ABCDEFGHIJ"


def read_inspect(path: Path) -> EvaluationLog:
    """Read a log of inspect_evals/bbq or of the intrasentence task of inspect_evals/stereoset; others are refused."""
    try:
        header, samples = _read_eval_log(path) if zipfile.is_zipfile(path) else _read_json_log(path)
    except (MissingExtraError, UnpackedTooLargeError):
        raise
    except (OSError, ValueError, KeyError, EOFError, RecursionError, zipfile.BadZipFile, zlib.error) as error:
        raise UsageError(f"{path}: not a whole log of Inspect: {error}") from error
    about = header["eval"]
    task = str(about.get("task") or "")
    benchmark = task.rpartition("/")[2]
    if benchmark not in ("bbq", "stereoset"):
        raise UsageError(f"{path}: a log of the task {task!r}; biassay reads logs of bbq and stereoset from Inspect")
    if _is_shuffled(header):
        raise UsageError(
            f"{path}: its options were shuffled (multiple_choice(shuffle=True)), so letters do not identify options"
        )
    return _make_log(
        path,
        samples,
        _parse_inspect_choice if benchmark == "bbq" else _parse_stereoset_item,
        tool="Inspect",
        version=str(_as_dict(about.get("packages")).get("inspect_ai", "")),
        benchmark=benchmark,
        task=task,
        model=str(about.get("model") or ""),
    )


def _read_json_log(path: Path) -> tuple[dict[str, Any], Sequence[DataRow]]:
    root = _check_header(json.loads(path.read_text(encoding="utf-8")))
    samples = root.get("samples") or []
    if not isinstance(samples, list):
        raise ValueError("'samples' is not a list")
    return root, [_make_row(path, sample) for sample in samples]


def _check_header(header: object) -> dict[str, Any]:
    if not isinstance(header, dict) or not isinstance(header.get("eval"), dict):
        raise ValueError("no object 'eval' in it")
    return header


def _read_eval_log(path: Path) -> tuple[dict[str, Any], Sequence[DataRow]]:
    limit = UnpackLimit(path)
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if "header.json" not in names:
            raise ValueError("no header.json in it: was the run ended before its log was written?")
        header = _check_header(json.loads(_read_member(archive, "header.json", limit)))
        inside = [name for name in names if name.startswith("samples/") and name.endswith(".json")]
        return header, [_make_row(path, json.loads(_read_member(archive, name, limit))) for name in inside]


def _read_member(archive: zipfile.ZipFile, name: str, limit: UnpackLimit) -> bytes:
    """Return the content of a member. Do not trust the size that the archive states."""
    info = archive.getinfo(name)
    if info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with archive.open(info) as member:
            return limit.wrap(member).read()
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
        content = limit.wrap(zstandard.ZstdDecompressor(max_window_size=_MAX_ZSTD_WINDOW).stream_reader(packed)).read()
    except zstandard.ZstdError as error:
        raise ValueError(f"{name}: {error}") from error
    if zlib.crc32(content) != info.CRC:
        raise ValueError(f"{name}: its checksum is wrong")
    return content


def _make_row(path: Path, sample: Any) -> DataRow:
    values = sample if isinstance(sample, dict) else {}
    return DataRow(path, f"sample {values.get('id', '?')}, epoch {values.get('epoch', 1)}", values)


def _is_shuffled(header: dict[str, Any]) -> bool:
    steps = _as_dict(header.get("plan")).get("steps")
    args = _as_dict(header["eval"].get("task_args")).get("shuffle_choices")
    params = [_as_dict(_as_dict(step).get("params")) for step in steps] if isinstance(steps, list) else []
    return bool(args) or any(param.get("shuffle") for param in params)


def _as_dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _parse_inspect_choice(row: DataRow) -> LoggedChoice:
    item = parse_bbq_item(DataRow(row.path, row.location, dict(_iter_bbq_fields(row))))
    choice = _parse_inspect_reply(row, item.options, unknown=item.unknown, unknown_phrases=UNKNOWN_PHRASES)
    return LoggedChoice(item, choice)


def _iter_bbq_fields(row: DataRow) -> Iterator[tuple[str, Any]]:
    """Convert a sample to a row of BBQ."""
    metadata = _as_dict(row.value("metadata"))
    yield from metadata.items()
    options = row.texts("choices")
    yield from ((f"ans{place}", option) for place, option in enumerate(options))
    target = row.value("target")
    letter = target[0] if isinstance(target, list) and target else target
    if isinstance(letter, str) and letter and letter in _OPTION_LETTERS[: len(options)]:
        yield "label", _OPTION_LETTERS.index(letter)
    yield "example_id", metadata.get("source_id", str(row.value("id")).rpartition("_")[2])
    context, mark, question = row.text("input").partition("\n\nQuestion: ")
    if mark and context.startswith("Context: "):
        yield from (("context", context.removeprefix("Context: ")), ("question", question))


def _parse_stereoset_item(row: DataRow) -> LoggedStereoSetItem:
    if row.value("metadata.task_type") != "intrasentence":
        row.fail("metadata.task_type", "only the intrasentence task is read")
    labels = row.texts("metadata.gold_labels")
    if sorted(labels) != sorted(GOLD_LABELS):
        row.fail("metadata.gold_labels", f"expected {', '.join(GOLD_LABELS)}, got {', '.join(labels)}")
    choice = _parse_inspect_reply(row, row.texts("choices"))
    about = DataRow(row.path, row.location, _as_dict(row.value("metadata")))
    return LoggedStereoSetItem(
        id=str(row.value("id")),
        target=about.text("target"),
        bias_type=about.choice("bias_type", STEREOSET_BIAS_TYPES),
        choice=choice,
        label=None if choice.option is None else labels[choice.option],
    )


def _parse_inspect_reply(row: DataRow, options: Sequence[str], **rules: Any) -> ParsedChoice:
    """Parse the response of the model. A sample that failed counts as a response that chooses nothing."""
    given = _as_dict(row.values.get("output")).get("choices")
    if row.has("error") or not isinstance(given, list) or not given:
        return ParsedChoice("failed")
    content = _as_dict(_as_dict(given[0]).get("message")).get("content", "")
    if isinstance(content, list):  # reasoning, text, ... of which the text is the answer
        texts = [part.get("text") for part in map(_as_dict, content) if part.get("type") == "text"]
        content = "\n".join(text for text in texts if isinstance(text, str))
    return parse_choice(str(content), options, letters=_OPTION_LETTERS[: len(options)], **rules)


_SAMPLES_FILE = re.compile(r"samples_(?P<task>.+?)_(?P<date>\d{4}-\d\d-\d\dT[\d.:-]+)")
_TIE = 1e-9


def read_lm_eval(path: Path) -> EvaluationLog:
    """Read a sample log of BBQ or CrowS-Pairs. A log of another task is refused."""
    rows = list(read_rows(path))
    named = _SAMPLES_FILE.fullmatch(path.stem)
    task = named["task"] if named else ""
    benchmark = _detect_benchmark(rows, path, task)
    model, version = _read_model_and_version(path, named["date"] if named else "")
    return _make_log(
        path,
        [
            row for row in rows if row.values.get("filter") == rows[0].values.get("filter")
        ],  # each filter repeats all responses
        _parse_lm_eval_choice if benchmark == "bbq" else _parse_pair,
        _get_item_name,
        tool="lm-evaluation-harness",
        version=version,
        benchmark=benchmark,
        task=task,
        model=model,
        by_likelihood=benchmark == "crows-pairs" or _has_likelihoods(rows[0]),
    )


def _detect_benchmark(rows: Sequence[DataRow], path: Path, task: str) -> str:
    docs = [row.values["doc"] for row in rows if isinstance(row.values.get("doc"), dict)]
    if not docs:
        raise UsageError(f"{path}: no sample log: no line has a field 'doc'; expected {LOG_FORMATS}")
    for name, fields in (("bbq", {"answer_info", "example_id"}), ("crows-pairs", {"sent_more", "sent_less"})):
        if fields <= docs[0].keys():
            return name
    what = f"the task {task}" if task else f"another task (fields: {', '.join(docs[0])[:100]})"
    raise UsageError(f"{path}: a log of {what}; biassay reads logs of bbq and crows_pairs from lm-evaluation-harness")


def _get_item_name(row: DataRow) -> str:
    """Return the name of a question or pair in the data, if the log holds it."""
    doc = row.values.get("doc")
    values = doc if isinstance(doc, dict) else {}
    names = (values.get("category") or values.get("bias_type"), values.get("example_id", row.values.get("doc_id")))
    return " ".join(str(name) for name in names if name is not None)


def _parse_lm_eval_choice(row: DataRow) -> LoggedChoice:
    item = parse_bbq_item(_get_doc(row))
    return LoggedChoice(
        item, _choose_likeliest(row, item) if _has_likelihoods(row) else _parse_written_choice(row, item)
    )


def _parse_pair(row: DataRow) -> LoggedPair:
    pair = parse_crows_pair(_get_doc(row), row.whole_number("doc_id"))
    found = dict(_iter_likelihoods(row))
    if found.keys() != {pair.more.strip(), pair.less.strip()}:
        row.fail("arguments", "the sentences asked about are not those of the item")
    return LoggedPair(pair, found[pair.more.strip()], found[pair.less.strip()])


def _get_doc(row: DataRow) -> DataRow:
    doc = row.value("doc")
    return DataRow(row.path, row.location, doc if isinstance(doc, dict) else {})


def _has_likelihoods(row: DataRow) -> bool:
    return len(_get_arguments(row)) > 1


def _get_arguments(row: DataRow) -> list[Any]:
    """Return the last part of every request: a continuation, or the settings of the generation."""
    given = row.value("arguments")
    parts = list(given.values()) if isinstance(given, dict) else given
    if not isinstance(parts, list) or not parts:
        row.fail("arguments", "no request in it")
    requests = [list(part.values()) if isinstance(part, dict) else part for part in parts]
    if not all(isinstance(request, list) and request for request in requests):
        row.fail("arguments", "a request that is not a list of its parts")
    return [request[-1] for request in requests]


def _iter_likelihoods(row: DataRow) -> Iterator[tuple[str, float]]:
    """List the log-likelihood of every continuation."""
    continuations, given = _get_arguments(row), row.value("filtered_resps")
    if not isinstance(given, list) or len(given) != len(continuations):
        row.fail("filtered_resps", f"expected one answer for each of {len(continuations)} continuations")
    for continuation, answer in zip(continuations, given, strict=True):
        value = answer[0] if isinstance(answer, list) and answer else answer
        number = math.nan
        with suppress(TypeError, ValueError):
            number = float(value)
        if math.isnan(number):
            row.fail("filtered_resps", f"expected a log-likelihood, got {str(value)[:40]!r}")
        yield str(continuation).strip(), number


def _choose_likeliest(row: DataRow, item: BbqItem) -> ParsedChoice:
    """Return the likeliest continuation, as scored in the log. All wordings of "unknown" are one option."""
    best: dict[int, float] = {}
    options = [option.strip() for option in item.options]
    for text, value in _iter_likelihoods(row):
        option = options.index(text) if text in options else item.unknown if text in UNKNOWN_PHRASES else None
        if option is None:
            row.fail("arguments", f"the option {text[:60]!r} is not an option of the item")
        best[option] = max(value, best.get(option, -math.inf))
    if len(best) != 3:
        row.fail("arguments", f"{len(best)} of 3 options were asked about")
    first, second = sorted(best, key=lambda option: -best[option])[:2]
    return ParsedChoice("several") if best[first] - best[second] <= _TIE else ParsedChoice("chosen", first)


def _parse_written_choice(row: DataRow, item: BbqItem) -> ParsedChoice:
    given = row.value("filtered_resps")
    reply = given[0] if isinstance(given, list) and given else given
    if not isinstance(reply, str):
        row.fail("filtered_resps", "expected a written answer")
    return parse_choice(reply, item.options, unknown=item.unknown, unknown_phrases=UNKNOWN_PHRASES)


def _read_model_and_version(path: Path, date: str) -> tuple[str, str]:
    """Read model and version from results_DATE.json beside the log, if it exists."""
    with suppress(OSError, ValueError):
        found = json.loads((path.parent / f"results_{date}.json").read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return str(found.get("model_name") or ""), str(found.get("lm_eval_version") or "")
    return "", ""


def read_logs(paths: Sequence[Path]) -> list[EvaluationLog]:
    """Read logs, in their order; the files of answers released with BBQ (preds_CATEGORY.jsonl) are read together."""
    released = [path for path in paths if path.is_file() and _RELEASE_FILE.fullmatch(path.name)]
    others = [read_log(path) for path in paths if path not in released]
    return [*(read_bbq_release(released) if released else ()), *others]


def read_log(path: Path | str) -> EvaluationLog:
    """Read answers to BBQ, CrowS-Pairs or StereoSet from a log of lm-evaluation-harness or Inspect.

    Parameters
    ----------
    path : Path
        A sample log (samples_TASK_DATE.jsonl), or a log of Inspect (.eval or .json). Neither package is needed.

    Returns
    -------
    Log
        Responses, and unusable samples with the reason.
    """
    path = Path(path)
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name its logs one by one: {LOG_FORMATS}")
    if not path.is_file():
        raise UsageError(f"{path}: no such file; expected {LOG_FORMATS}")
    if path.suffix.lower() == ".jsonl":
        return read_lm_eval(path)
    if path.suffix.lower() in (".eval", ".json"):
        if path.name.startswith("results_"):
            raise UsageError(f"{path}: holds scores, no answers; give the file samples_TASK_DATE.jsonl beside it")
        return read_inspect(path)
    raise UsageError(f"{path}: unknown kind of log; expected {LOG_FORMATS}")


def make_log_rows(log: EvaluationLog, settings: BenchmarkSettings, named: ModelId) -> Iterator[Row]:
    """Yield the rows of one log. A question that was answered several times counts with its most frequent answer.

    Parameters
    ----------
    log : EvaluationLog
    settings : BenchmarkSettings
    named : ModelId
        The log as a model.
    """
    by_category: dict[str, list[Any]]
    if log.benchmark == "bbq":
        yield from _make_bbq_log_rows(log, settings, named)
    elif log.benchmark == "crows-pairs":
        by_category = group_pairs((answer.pair.bias_type, answer) for answer in log.answers)
        for category, pairs in _add_all(by_category, log.answers):
            values = np.array([(pair.more, pair.less) for pair in pairs])
            yield from make_crows_rows(settings, named, category, [pair.pair for pair in pairs], values)
    else:
        by_category = group_pairs((answer.bias_type, answer) for answer in log.answers)
        for category, samples in _add_all(by_category, log.answers):
            yield from _make_stereoset_log_rows(settings, named, category, samples)


def _add_all(by_category: Mapping[str, Sequence[Any]], answers: Sequence[Any]) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the answers by category, and all of them if there are several categories."""
    yield from by_category.items()
    if len(by_category) > 1:
        yield ALL_CATEGORIES, answers


def _make_bbq_log_rows(log: EvaluationLog, settings: BenchmarkSettings, named: ModelId) -> Iterator[Row]:
    by: By = "log-probability" if log.by_likelihood else "answer"
    scored: list[LoggedChoice] = [answer for answer in log.answers if answer.item.target is not None]
    by_question = group_pairs(((answer.item.category, answer.item.example), answer) for answer in scored)
    questions = [
        (same[-1].item, _combine_epochs([answer.choice for answer in same], shown=by == "answer"))
        for same in by_question.values()
    ]
    cells = group_pairs(((item.category, not item.ambiguous), (item, chosen)) for item, chosen in questions)
    for category, clear in sorted(cells):
        yield from make_bbq_rows(settings, named, category, by, cells[category, clear])


def _combine_epochs(choices: Sequence[ParsedChoice], *, shown: bool) -> CombinedChoice:
    """Return the choice over all epochs. If `shown`, the model read the options in their order in the data."""
    kinds = Counter[str](choice.kind for choice in choices)
    places = Counter(choice.option for choice in choices if choice.option is not None)
    counts = places.most_common()
    positions = places if shown else Counter[int]()
    if not counts or (len(counts) > 1 and counts[0][1] == counts[1][1]):
        return CombinedChoice(UNPARSED, math.nan, kinds, positions)
    return CombinedChoice(counts[0][0], counts[0][1] / places.total(), kinds, positions)


def _make_stereoset_log_rows(
    settings: BenchmarkSettings, model_id: ModelId, category: str, samples: Sequence[LoggedStereoSetItem]
) -> Iterator[Row]:
    """Yield the rows of a bias type from choices of one sentence out of three.

    A random choice of three is meaningful 67% of the time, and lms compares two sentences, so there is neither lms
    nor icat.
    """
    items = group_pairs(((sample.bias_type, sample.id), sample) for sample in samples)
    labels = [_find_majority_label(same) for same in items.values()]
    decided = [(same[0].target, label) for same, label in zip(items.values(), labels, strict=True) if label]
    pro = np.array([math.nan if label == "unrelated" else float(label == "stereotype") for _, label in decided])
    counts: dict[str, Any] = count_kinds(Counter(sample.choice.kind for sample in samples))
    counts |= find_favoured_position(
        Counter(sample.choice.option for sample in samples if sample.choice.option is not None)
    )
    missing = [same[0].target for same in items.values() if all(answer.label is None for answer in same)]
    for row in make_stereoset_rows(settings, model_id, category, [term for term, _ in decided], (pro, 0.0 * pro), 0):
        if isinstance(row.record, TermRow):
            yield Row(row.table, replace(row.record, lms=None))
            continue
        fields = {"items": len(items), "undecided": labels.count(None), "unrelated": labels.count("unrelated")}
        alternatives = {name: alternative for name, alternative in row.record.alternatives.items() if name == "items"}
        record = complete_row(replace(row.record, by="answer", alternatives=alternatives, **counts, **fields))
        if missing and decided:
            terms = [term for term, _ in decided] + missing
            filled = [np.append(pro, [end] * len(missing)) for end in (0.0, 1.0)]
            low, high = (
                stereoset_score(sample, 0.0 * sample, terms, confidence=1.0 - settings.alpha).ss for sample in filled
            )
            record = add_bounds(record, low, high, len(missing))
        yield Row(row.table, record)


def _find_majority_label(samples: Sequence[LoggedStereoSetItem]) -> str | None:
    """Return the label chosen most often, or None in case of a tie or without a choice."""
    counts = Counter(sample.label for sample in samples if sample.label is not None).most_common(2)
    return None if not counts or (len(counts) > 1 and counts[0][1] == counts[1][1]) else counts[0][0]
