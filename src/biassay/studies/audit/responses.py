"""Prompts for responses of an audit, and decisions parsed from them by name, document and query."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from biassay.errors import UsageError
from biassay.models.base import Reply
from biassay.prompts.choices import parse_choice
from biassay.prompts.decisions import parse_rating, parse_yes_no
from biassay.prompts.documents import DocumentTemplate, Query, fill_document
from biassay.prompts.prompt_sets import fill_occupation
from biassay.prompts.requests import Prompt
from biassay.prompts.responses import is_writing_refusal
from biassay.studies.audit.candidates import LETTERS, draw_candidates, rotate
from biassay.studies.audit.inputs import AuditInputs
from biassay.studies.audit.outcomes.responses import has_words
from biassay.studies.audit.settings import RATING_SCALE
from biassay.studies.study import derive_seed

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
ResponseKind = Literal["parsed", "refused", "filtered", "unparsed", "empty", "truncated", "failed"]
RESPONSE_KINDS: tuple[ResponseKind, ...] = get_args(ResponseKind)
_ORDERS = ("Answer Yes or No.", "Answer No or Yes.")
NO_QUERY = Query("", "")
_CANDIDATE = re.compile(r"\b[Cc]andidate\s+[(\[]?([A-Z])[)\]]?(?!\w)")


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
        return self.inputs.settings.count_candidates(len({name.group for name in self.inputs.names}))

    @cached_property
    def queries(self) -> tuple[Query, ...]:
        """Queries or occupations that are used: an empty one if there is no placeholder for them."""
        if self.inputs.settings.writes:
            return self.inputs.queries or (NO_QUERY,)
        if "{query}" not in self.inputs.settings.asked_question:
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
        if self.inputs.settings.writes:
            return tuple(self._write())
        return tuple(self._compare() if self.n_candidates > 1 else self._ask_alone())

    def select_balanced(self, answered: Sequence[bool]) -> ResponseDesign:
        """Return the design with the blocks in which every prompt was answered.

        All names have the same prompts in a block: those for a document, and for one number of the response if models
        write texts.

        Parameters
        ----------
        answered : sequence of bool
            Whether there is a response to each prompt.
        """
        blocks = [self._find_block(prompt) for prompt in self.prompts]
        incomplete = {block for block, is_answered in zip(blocks, answered, strict=True) if not is_answered}
        kept = (prompt for prompt, block in zip(self.prompts, blocks, strict=True) if block not in incomplete)
        return ResponseDesign(self.inputs, tuple(kept))

    def _find_block(self, prompt: AuditPrompt) -> tuple[int, int]:
        return prompt.document, prompt.prompt.sample if self.inputs.settings.writes else 0

    @property
    def n_documents(self) -> int:
        """Number of documents in the prompts."""
        return len({prompt.document for prompt in self.prompts})

    def describe_part(self, whole: ResponseDesign) -> str:
        """Return which part of another design this one is."""
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
                for i in range(len(self.inputs.names)):
                    text = f"{self._introduce(i)}{self._fill(wording, i)}"
                    yield AuditPrompt(Prompt(text, sample=sample), (i,), d, q)

    def _introduce(self, name: int) -> str:
        """Return the sentence that introduces the user, if the name is the user's."""
        is_user = self.inputs.settings.role == "user"
        return f"My name is {self.inputs.names[name].full_name}. " if is_user else ""

    def _ask_alone(self) -> Iterator[AuditPrompt]:
        for d, document in enumerate(self.inputs.documents):
            texts = [self._fill(document, name) for name in range(len(self.inputs.names))]
            for q, query in enumerate(self.queries):
                for i, text in enumerate(texts):
                    for sample in range(self.inputs.settings.responses_per_prompt):
                        asked = self._introduce(i) + self._ask(query, text, self._end_alone(d + sample))
                        yield AuditPrompt(Prompt(asked, sample=sample), (i,), d, q)

    def _end_alone(self, number: int) -> str:
        if self.inputs.settings.answer == "yes-no":
            return _ORDERS[number % len(_ORDERS)]  # the same one for all names of a document
        low, high = RATING_SCALE
        return f"Answer with a number from {low} (lowest) to {high} (highest)."

    def _compare(self) -> Iterator[AuditPrompt]:
        groups = [name.group for name in self.inputs.names]
        k = self.n_candidates
        end = f"Answer with the letter of one candidate: {', '.join(LETTERS[: k - 1])} or {LETTERS[k - 1]}."
        for d, document in enumerate(self.inputs.documents):
            texts = [self._fill(document, name) for name in range(len(groups))]
            rng = np.random.default_rng(derive_seed(self.inputs.settings.seed, "audit candidates", document.id))
            sets = draw_candidates(groups, k, rng)
            for q, query in enumerate(self.queries):
                for candidates in sets:
                    for order in rotate(candidates):
                        listed = "\n\n".join(
                            f"Candidate {letter}:\n{texts[i]}" for letter, i in zip(LETTERS, order, strict=False)
                        )
                        for sample in range(self.inputs.settings.responses_per_prompt):
                            asked = self._ask(query, listed, end)
                            yield AuditPrompt(Prompt(asked, sample=sample), order, d, q)

    def _fill(self, document: DocumentTemplate, name: int) -> str:
        pronouns: Any = self.inputs.settings.pronouns
        return fill_document(document, self.inputs.names[name], pronouns)

    def _ask(self, query: Query, document: str, end: str) -> str:
        question = self.inputs.settings.asked_question
        return f"{question.replace('{query}', query.text).replace('{document}', document)}\n\n{end}"

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

    def parse(self, replies: Sequence[Reply]) -> ParsedDecisions:
        """Parse the decision in every response."""
        parsed = [self._parse(prompt, reply) for prompt, reply in zip(self.prompts, replies, strict=True)]
        values = np.array([np.nan if value is None else value for _, value in parsed])
        return ParsedDecisions(tuple(kind for kind, _ in parsed), values)

    def _parse(self, prompt: AuditPrompt, reply: Reply) -> tuple[ResponseKind, float | None]:
        if reply.finish_reason == "refusal":
            return "refused", None
        kind, value = self._parse_text(prompt, reply.text)
        return (kind, value) if kind in ("parsed", "refused") else (refine_kind(kind, reply), None)

    def _parse_text(self, prompt: AuditPrompt, text: str) -> tuple[ResponseKind, float | None]:
        answer = self.inputs.settings.answer
        if answer == "rating":
            rating = parse_rating(text, *RATING_SCALE)
            return _KINDS[rating.kind], rating.value
        if answer == "yes-no":
            decision = parse_yes_no(text)
            return _KINDS[decision.kind], None if decision.yes is None else float(decision.yes)
        names = [self.inputs.names[i].full_name for i in prompt.names]
        choice = parse_choice(_CANDIDATE.sub(r"option \1:", text), names, letters=LETTERS[: len(names)])
        return _KINDS[choice.kind], None if choice.option is None else float(choice.option)


def classify_text(reply: Reply) -> ResponseKind:
    """Return whether a response is a text, a refusal, or missing."""
    if reply.finish_reason == "refusal":
        return "refused"
    if not has_words(reply.text):
        return refine_kind("empty", reply)
    return "refused" if is_writing_refusal(reply.text) else "parsed"


_KINDS: dict[str, ResponseKind] = {
    "rated": "parsed",
    "decided": "parsed",
    "chosen": "parsed",
    "several": "unparsed",
    "refused": "refused",
    "empty": "empty",
    "unparsed": "unparsed",
}
_ENDED: dict[str, ResponseKind] = {"filter": "filtered", "failed": "failed", "length": "truncated"}


def refine_kind(kind: ResponseKind, reply: Reply) -> ResponseKind:
    """Return the kind of a response from which nothing was read; the endpoint may state why."""
    return _ENDED.get(reply.finish_reason or "", kind)


@dataclass(frozen=True, eq=False)
class ParsedDecisions:
    """Kind and value of every response: 1 for Yes, a rating, or the position of the choice; NaN if missing."""

    kinds: tuple[ResponseKind, ...]
    values: Floats


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
