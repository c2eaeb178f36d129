"""Make the prompts of an audit, and read the responses and decisions of one model."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import scipy
from numpy.typing import NDArray

from biassay.cache.outputs import ModelOutputs
from biassay.errors import BudgetError, UsageError
from biassay.models.base import Identity, Reply
from biassay.prompts.choices import parse_choice
from biassay.prompts.decisions import parse_rating, parse_yes_no
from biassay.prompts.documents import DocumentTemplate, Query, fill_document
from biassay.prompts.prompt_sets import fill_occupation
from biassay.prompts.requests import Prompt
from biassay.prompts.responses import is_writing_refusal
from biassay.stats.name_audit import LEAST_DOCUMENTS
from biassay.studies.audit.inputs import NO_QUERY, AuditInputs
from biassay.studies.audit.outcomes.responses import Responses, has_words
from biassay.studies.audit.settings import RATING_SCALE
from biassay.studies.study import derive_seed

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
ResponseKind = Literal["parsed", "refused", "filtered", "unparsed", "empty", "truncated", "failed"]
RESPONSE_KINDS: tuple[ResponseKind, ...] = get_args(ResponseKind)
_ENDED: dict[str, ResponseKind] = {"filter": "filtered", "failed": "failed", "length": "truncated"}
_ORDERS = ("Answer Yes or No.", "Answer No or Yes.")
_CANDIDATE = re.compile(r"\b[Cc]andidate\s+[(\[]?([A-Z])[)\]]?(?!\w)")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MOST_FOLLOWED = 0.5
"""Share of choices that the position decides, from which on choices are said to follow it."""


@dataclass(frozen=True)
class AuditPrompt:
    """A prompt and what it is about.

    Attributes
    ----------
    prompt : Prompt
    names : tuple of int
        Index of the name, or of every candidate in the order of the prompt.
    document, query : int
        Indices of the document and the query.
    """

    prompt: Prompt
    names: tuple[int, ...]
    document: int
    query: int


@dataclass(frozen=True)
class ResponseDesign:
    """All prompts of an audit of decisions, or of texts.

    Attributes
    ----------
    inputs : AuditInputs
    part : tuple of AuditPrompt or None
        Prompts that are used, if not all.
    """

    inputs: AuditInputs
    part: tuple[AuditPrompt, ...] | None = None

    @cached_property
    def n_candidates(self) -> int:
        """Candidates per prompt; 1 if they are judged alone."""
        return self.inputs.settings.count_candidates(self.inputs.record.n_groups)

    @cached_property
    def queries(self) -> tuple[Query, ...]:
        """Queries or occupations that are used: an empty one if there is no placeholder for them."""
        if self.inputs.settings.writes:
            return self.inputs.queries or (NO_QUERY,)
        if "{query}" not in self.inputs.settings.question_or_default:
            return (NO_QUERY,)
        if not self.inputs.queries:
            raise UsageError("the question contains {query}; name a text or file with --query")
        return self.inputs.queries

    @cached_property
    def prompts(self) -> tuple[AuditPrompt, ...]:
        """All prompts, document by document, so that an interrupted run has whole documents.

        Prompts for texts come response by response, and document by document within.
        """
        if self.part is not None:
            return self.part
        return tuple(self._write() if self.inputs.settings.writes else self._ask())

    @property
    def n_documents(self) -> int:
        """Number of documents in the prompts."""
        return len({prompt.document for prompt in self.prompts})

    def select_answered(self, answered: Sequence[bool], identity: Identity) -> ResponseDesign:
        """Return the design, or its balanced part if the budget did not allow all prompts.

        The part consists of the blocks whose prompts were all answered. A block has the same prompts for all names: the
        prompts of one document and, if models write texts, of one repetition.

        Parameters
        ----------
        answered : sequence of bool
            True for each prompt that has a response, with its judgements.
        identity : Identity
            Identity of the model.

        Raises
        ------
        BudgetError
            If the part has too few documents to test a difference.
        """
        if all(answered):
            return self
        blocks = [self._find_block(prompt) for prompt in self.prompts]
        incomplete = {block for block, is_answered in zip(blocks, answered, strict=True) if not is_answered}
        kept = (prompt for prompt, block in zip(self.prompts, blocks, strict=True) if block not in incomplete)
        part = ResponseDesign(self.inputs, tuple(kept))
        least = min(LEAST_DOCUMENTS, self.n_documents)
        if part.n_documents < least:
            raise BudgetError(
                f"{identity.name}: the budget allowed {sum(answered):,} of {len(answered):,} responses, too few to "
                f"compare all names in {least} documents or prompts; responses are cached: give a larger --budget and "
                "resume the run"
            )
        return part

    def _find_block(self, prompt: AuditPrompt) -> tuple[int, int]:
        return prompt.document, prompt.prompt.sample if self.inputs.settings.writes else 0

    def describe_part(self) -> str:
        """Describe the part of the prompts that is used. Return an empty string if all are."""
        if self.part is None:
            return ""
        whole = ResponseDesign(self.inputs)
        what = "responses" if self.inputs.settings.judge is None else "judged responses"
        said = (
            f"part of the design: the budget allowed {len(self.prompts):,} of {len(whole.prompts):,} {what}, the "
            f"same ones for all names, in {self.n_documents} of {whole.n_documents} "
        )
        if not self.inputs.settings.writes:
            return f"{said}documents"
        rounds = Counter(document for document, _ in {self._find_block(prompt) for prompt in self.prompts}).values()
        per_name = f"{min(rounds)}" if min(rounds) == max(rounds) else f"{min(rounds)} to {max(rounds)}"
        return f"{said}prompts with {per_name} of {self.inputs.settings.responses_per_prompt} responses per name"

    def _write(self) -> Iterator[AuditPrompt]:
        """Yield prompts for texts; each response to a wording is about the next occupation, the same for all names."""
        for sample in range(self.inputs.settings.responses_per_prompt):
            for d, document in enumerate(self.inputs.documents):
                q = (d + sample) % len(self.queries)
                wording = fill_occupation(document, self.queries[q].text)
                for i, text in enumerate(self._fill(wording)):
                    yield AuditPrompt(Prompt(self._introduce(i) + text, sample=sample), (i,), d, q)

    def _ask(self) -> Iterator[AuditPrompt]:
        """Yield prompts for decisions about single names, or about candidates in every rotation of their order."""
        question = self.inputs.settings.question_or_default
        for d, document in enumerate(self.inputs.documents):
            shown = list(self._show_candidates(document))
            for q, query in enumerate(self.queries):
                for names, text in shown:
                    asked = question.replace("{query}", query.text).replace("{document}", text)
                    for sample in range(self.inputs.settings.responses_per_prompt):
                        end = self._end_question(d + sample)
                        prompt = Prompt(f"{self._introduce(names[0])}{asked}\n\n{end}", sample=sample)
                        yield AuditPrompt(prompt, names, d, q)

    def _show_candidates(self, document: DocumentTemplate) -> Iterator[tuple[tuple[int, ...], str]]:
        """Yield the names and the filled document of each prompt."""
        texts = self._fill(document)
        if self.n_candidates == 1:
            yield from (((i,), text) for i, text in enumerate(texts))
            return
        rng = np.random.default_rng(derive_seed(self.inputs.settings.seed, "audit candidates", document.id))
        for candidates in draw_candidates([name.group for name in self.inputs.names], self.n_candidates, rng):
            for order in rotate(candidates):
                listed = (f"Candidate {letter}:\n{texts[i]}" for letter, i in zip(LETTERS, order, strict=False))
                yield order, "\n\n".join(listed)

    def _end_question(self, number: int) -> str:
        if self.inputs.settings.answer == "yes-no":
            return _ORDERS[number % len(_ORDERS)]  # the same one for all names of a document
        if self.inputs.settings.answer == "rating":
            low, high = RATING_SCALE
            return f"Answer with a number from {low} (lowest) to {high} (highest)."
        *letters, last = list(LETTERS[: self.n_candidates])
        return f"Answer with the letter of one candidate: {', '.join(letters)} or {last}."

    def _introduce(self, name: int) -> str:
        """Return the sentence that introduces the user, if the name is the user's."""
        is_user = self.inputs.settings.role == "user"
        return f"My name is {self.inputs.names[name].full_name}. " if is_user else ""

    def _fill(self, document: DocumentTemplate) -> list[str]:
        pronouns: Any = self.inputs.settings.pronouns
        return [fill_document(document, name, pronouns) for name in self.inputs.names]

    @cached_property
    def observations(self) -> Observations:
        """Name, document and query of every value: one value per response, or one per candidate of it."""
        rows = [
            (i, prompt.document, prompt.query, number, position)
            for number, prompt in enumerate(self.prompts)
            for position, i in enumerate(prompt.names)
        ]
        names, documents, queries, responses, positions = np.array(rows, dtype=np.intp).T
        shape = len(self.inputs.names), len(self.inputs.documents), len(self.queries)
        return Observations(names, documents, queries, responses, positions, shape)


def draw_candidates(groups: Sequence[str], k: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Draw sets of k names so that every name is in equally many sets.

    Names are drawn at random and groups alternate, so that a set holds as many groups as possible. If k does not divide
    the number of names, every name is in several sets.

    Parameters
    ----------
    groups : sequence of str
        Group of every name.
    k : int
        Names per set.
    rng : numpy.random.Generator

    Returns
    -------
    list of tuple of int
        Indices of names.
    """
    n = len(groups)
    if not 2 <= k <= n:
        raise UsageError(f"a prompt compares at least 2 and at most all {n} names, got {k}")
    unique = list(dict.fromkeys(groups))
    members = [rng.permutation([i for i, group in enumerate(groups) if group == label]).tolist() for label in unique]
    sizes = {len(indices) for indices in members}
    is_even = len(sizes) == 1 and len(unique) % k == 0
    offsets = rng.random((len(unique), max(sizes) if is_even else 1))  # new ones per round, or the same in all rounds
    places = [
        ((j + offsets[g, j if is_even else 0]) / len(indices), name)
        for g, indices in enumerate(members)
        for j, name in enumerate(indices)
    ]
    order = [name for _, name in sorted(places)] * (k // math.gcd(n, k))
    return [tuple(order[start : start + k]) for start in range(0, len(order), k)]


def rotate(candidates: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield all rotations of a set, in which every candidate is at every position once."""
    for start in range(len(candidates)):
        yield (*candidates[start:], *candidates[:start])


@dataclass(frozen=True)
class PositionTest:
    """Number of times that the candidate at each position is chosen.

    Attributes
    ----------
    counts : tuple of int
    p_value : float
        Of equal shares: chi-square, exact with fewer than five choices expected per position and two positions. It is
        conservative, because a model that looks at the candidates only chooses every position equally often.
    followed : float
        Share of choices that the favoured position decides: 0 if positions do not matter, 1 if nothing else does.
    """

    counts: tuple[int, ...]
    p_value: float
    followed: float

    def follows(self, alpha: float) -> bool:
        """Return whether the position decides at least half of the choices."""
        return self.p_value <= alpha and self.followed >= MOST_FOLLOWED

    def describe(self) -> str:
        """Return the share of the favoured position in words."""
        favoured = int(np.argmax(self.counts))
        return f"candidate {LETTERS[favoured]} is chosen in {self.counts[favoured] / sum(self.counts):.0%} of prompts"


def check_positions(positions: Sequence[int], k: int) -> PositionTest | None:
    """Test whether choices follow the position; None without choices.

    Parameters
    ----------
    positions : sequence of int
        Position of every chosen candidate.
    k : int
        Candidates per prompt.
    """
    counts: NDArray[np.int64] = np.bincount(np.asarray(positions, dtype=np.intp), minlength=k)
    total = int(counts.sum())
    if not total:
        return None
    if k == 2 and total < 10:
        p_value = float(scipy.stats.binomtest(int(counts[0]), total).pvalue)
    else:
        p_value = float(scipy.stats.chisquare(counts).pvalue)
    share = float(counts.max()) / total
    return PositionTest(tuple(counts.tolist()), p_value, max((share - 1.0 / k) / (1.0 - 1.0 / k), 0.0))


@dataclass(frozen=True, eq=False)
class ModelResponses:
    """Responses of one model.

    Attributes
    ----------
    design : ResponseDesign
        The prompts that were answered.
    identity : Identity
    replies : sequence of Reply
        One per prompt.
    """

    design: ResponseDesign
    identity: Identity
    replies: Sequence[Reply]

    @classmethod
    def read(cls, inputs: AuditInputs, model: ModelOutputs) -> ModelResponses:
        """Read the responses of a model, or of a balanced part of the design if the budget did not allow all."""
        whole = ResponseDesign(inputs)
        return cls._read_part(whole, model.find_answered([prompt.prompt for prompt in whole.prompts]), model)

    @classmethod
    def _read_part(cls, whole: ResponseDesign, answered: Sequence[bool], model: ModelOutputs) -> ModelResponses:
        design = whole.select_answered(answered, model.identity)
        return cls(design, model.identity, model.replies([prompt.prompt for prompt in design.prompts]))

    def select_judged(self, judged: Sequence[bool], model: ModelOutputs) -> ModelResponses:
        """Return the responses, or their balanced part if the budget did not allow all judgements.

        Parameters
        ----------
        judged : sequence of bool
            True for each response whose judgements are complete.
        model : ModelOutputs
        """
        return self if all(judged) else self._read_part(self.design, judged, model)

    @property
    def inputs(self) -> AuditInputs:
        """Inputs of the audit."""
        return self.design.inputs

    @cached_property
    def groups(self) -> list[str]:
        """Group of the name in every prompt; an empty string if the prompt compares candidates."""
        names, alone = self.inputs.names, self.design.n_candidates == 1
        return [names[prompt.names[0]].group if alone else "" for prompt in self.design.prompts]

    @cached_property
    def kinds(self) -> tuple[ResponseKind, ...]:
        """Kind of every response."""
        return tuple(kind for kind, _ in self._parsed)

    @cached_property
    def decisions(self) -> Floats:
        """Decision in every response: 1 for Yes, a rating, or the position of the choice; NaN if missing."""
        return np.array([np.nan if value is None else value for _, value in self._parsed])

    @cached_property
    def _parsed(self) -> list[tuple[ResponseKind, float | None]]:
        return [self._parse(prompt, reply) for prompt, reply in zip(self.design.prompts, self.replies, strict=True)]

    def _parse(self, prompt: AuditPrompt, reply: Reply) -> tuple[ResponseKind, float | None]:
        if reply.finish_reason == "refusal":
            return "refused", None
        kind, value = self._parse_text(prompt, reply.text)
        if kind in ("parsed", "refused"):
            return kind, value
        return _ENDED.get(reply.finish_reason or "", kind), None  # the endpoint may state why nothing was read

    def _parse_text(self, prompt: AuditPrompt, text: str) -> tuple[ResponseKind, float | None]:
        answer = self.inputs.settings.answer
        if self.inputs.settings.writes:
            return ("refused" if is_writing_refusal(text) else "parsed") if has_words(text) else "empty", None
        if answer == "choice":
            names = [self.inputs.names[i].full_name for i in prompt.names]
            choice = parse_choice(_CANDIDATE.sub(r"option \1:", text), names, letters=LETTERS[: len(names)])
            kind, value = str(choice.kind), None if choice.option is None else float(choice.option)
        else:
            parsed = parse_rating(text, *RATING_SCALE) if answer == "rating" else parse_yes_no(text)
            kind, value = parsed.kind, parsed.value
        if value is not None:
            return "parsed", value
        return ("refused" if kind == "refused" else "empty" if kind == "empty" else "unparsed"), None

    @cached_property
    def written(self) -> list[int]:
        """Numbers of the responses that are texts."""
        return [number for number, kind in enumerate(self.kinds) if kind == "parsed"]

    @cached_property
    def texts(self) -> Responses:
        """Responses that are texts, for outcomes to score."""
        names = [self.inputs.names[self.design.prompts[number].names[0]] for number in self.written]
        return Responses([self.replies[number].text for number in self.written], names)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Identifier of every response: a digest of the prompt, the name's group and the text."""
        return tuple(
            hashlib.blake2b(
                f"{group}\n{prompt.prompt.key}\n{reply.text}".encode(errors="replace"), digest_size=6
            ).hexdigest()
            for group, prompt, reply in zip(self.groups, self.design.prompts, self.replies, strict=True)
        )


@dataclass(frozen=True, eq=False)
class Observations:
    """Which name, document and query every value belongs to.

    Attributes
    ----------
    names, documents, queries : (n,) int
    responses : (n,) int
        Index of the response.
    positions : (n,) int
        Position of the name among the candidates of the prompt.
    shape : (int, int, int)
        Numbers of names, documents and queries.
    """

    names: Indices
    documents: Indices
    queries: Indices
    responses: Indices
    positions: Indices
    shape: tuple[int, int, int]

    def average(self, values: Floats) -> Floats:
        """Average values by (name, document, query), over those that are not NaN; NaN without any."""
        present = ~np.isnan(values)
        cells = np.ravel_multi_index((self.names, self.documents, self.queries), self.shape)
        size = int(np.prod(self.shape))
        sums = np.bincount(cells[present], values[present], size)
        counts = np.bincount(cells[present], minlength=size)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((sums / counts).reshape(self.shape))


def name_array(measure: str) -> str:
    """Return the name of the array with the scores (names, documents, queries) of a measure."""
    return f"scores {measure.replace('/', '_')}" if measure else "scores"


def average_queries(scores: Floats, groups: Sequence[str]) -> Floats:
    """Average scores (names, documents, queries) over queries to (names, documents).

    Where scores are missing for some queries, they are compared with the mean of that document and query over groups,
    so that a name does not score higher because it lacks a query with low scores. NaN if all are missing.
    """
    if not np.isnan(scores).any():
        return np.asarray(scores.mean(axis=2))
    labels = np.array(groups)
    by_group = np.stack([_nan_mean(scores[labels == group], axis=0) for group in dict.fromkeys(groups)])
    means = _nan_mean(by_group, axis=0)
    return np.asarray(_nan_mean(scores - means, axis=2) + _nan_mean(means, axis=1))


def _nan_mean(values: Floats, axis: int) -> Floats:
    present = ~np.isnan(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(present, values, 0.0).sum(axis=axis) / present.sum(axis=axis))
