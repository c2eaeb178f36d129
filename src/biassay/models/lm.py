"""Language models as they fill a blank: probabilities of tokens, and their distance in the sensitivity test.

A blank is asked about piece by piece. Questions with one sequence share one pass through the model; a causal model,
which does not look ahead, also answers for a sequence while it reads a longer one that begins so. The output layer is
applied at the places asked for only. It is the one that the model itself names, whatever its class; what it is given is
the hidden state of the sensitivity test.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from biassay.errors import ModelError, UsageError
from biassay.models.base import COLUMNS, Filled, Identity
from biassay.models.checkpoint import Checkpoint
from biassay.models.family import ModelName
from biassay.models.hub import check_device, choose_device, load_weights
from biassay.models.lm_questions import Question, Questions
from biassay.models.sampling import check_not_sampled
from biassay.models.states import DTYPES, choice
from biassay.models.tokenising import count_tokens, longest_text
from biassay.stats.sensitivity import SortedLogits
from biassay.texts.requests import Blank

if TYPE_CHECKING:
    import torch

__all__ = ["LanguageModel", "provide"]

_TOKENS_AT_ONCE = {"cpu": 4096, "cuda": 65_536}
_ROWS_AT_ONCE = {"cpu": 128, "cuda": 2048}
_QUESTIONS_AT_ONCE = {"cpu": 4096, "cuda": 65_536}
_INITIAL = ("Ġ", "▁")  # marks of a blank, in byte-level and in sentence-piece vocabularies


def provide(model: ModelName) -> LanguageModel:
    check_not_sampled(model, "blanks")
    return LanguageModel(model)


class LanguageModel:
    """A masked or causal language model.

    Attributes
    ----------
    kind : {"masked", "causal"}
    has_mask : bool
        Whether a group can be masked.
    has_output_layer : bool
        Whether it gives all `COLUMNS`.
    """

    has_output_layer = True

    def __init__(self, model: ModelName) -> None:
        for setting in ("pool", "word", "layer", "join"):
            if setting in model.settings:
                raise UsageError(f"model {model.head!r}: {setting}= is for vectors, not for predictions")
        self._name, self._checkpoint = model, Checkpoint(model)
        self._source = self._checkpoint.source
        kind = self._checkpoint.kind
        if kind is None:
            raise ModelError(f"model {self._source.name!r} is neither a masked nor a causal language model")
        self.kind: Literal["masked", "causal"] = kind
        self.has_mask = self.kind == "masked"
        self._dtype = choice(model, "dtype", "float32", DTYPES)
        check_device(model)
        settings = {"head": self.kind} | ({} if self._dtype == "float32" else {"dtype": self._dtype})
        self.identity = Identity(self._source.name, "hf", self._checkpoint.fingerprint, tuple(settings.items()))
        self._model: Any = None
        self._head: Any = None
        self._kinds: torch.Tensor | None = None

    @cached_property
    def device(self) -> str:
        return choose_device(self._name)

    @cached_property
    def tokenizer(self) -> Any:
        """Opened when something has to be asked: what was answered before needs none."""
        tokenizer = self._checkpoint.tokenizer
        if not getattr(tokenizer, "is_fast", False):
            raise ModelError(
                f"model {self._source.name!r}: its tokenizer has no fast version, which is needed to locate words"
            )
        if self.kind == "masked" and tokenizer.mask_token_id is None:
            raise ModelError(f"model {self._source.name!r} is a masked model, and its tokenizer has no mask token")
        return tokenizer

    @property
    def model(self) -> Any:
        """The loaded model of the library."""
        self.prepare()
        return self._model

    @property
    def limit(self) -> int:
        """The most tokens it reads."""
        return longest_text(self.tokenizer, self._checkpoint.config)

    @cached_property
    def _questions(self) -> Questions:
        return Questions(self.tokenizer, self.kind)

    def prepare(self, blanks: Sequence[Blank] = ()) -> None:  # noqa: ARG002  (whatever is asked, all is loaded)
        """Load tokenizer and weights; a head that the checkpoint lacks is an error."""
        if self._model is not None:
            return
        _ = self.tokenizer  # quicker than the weights, and it may be refused
        name = "AutoModelForMaskedLM" if self.kind == "masked" else "AutoModelForCausalLM"
        try:
            self._model = load_weights(self._source, name, self._dtype, self.device, unused=())
        except ModelError as error:
            error.add_note("a model without a language-model head can be measured by --measure ceat only")
            raise
        self._head = self._model.get_output_embeddings()
        if self._head is None:
            raise ModelError(f"model {self._source.name!r} has no output layer over its vocabulary")

    def batches(self, blanks: Sequence[Blank]) -> list[list[int]]:
        """What is asked together, by the places of all blanks."""
        return self._questions.plan(blanks, _QUESTIONS_AT_ONCE[self.device])

    def fill(self, blanks: Sequence[Blank]) -> list[Filled]:
        """Answers about the words of every blank; blanks asked together share passes."""
        self.prepare(blanks)
        asked = [self._questions.of(blank) for blank in blanks]
        distinct = dict.fromkeys(question for one in asked for question in one.questions)
        questions = sorted(distinct, key=lambda question: question.ids)
        answers = self._answers(questions)
        rows, hosts = {question: row for row, question in enumerate(questions)}, self._hosts(questions)
        filled, read = [], set[tuple[int, ...]]()
        for one in asked:
            own = {hosts[question.ids] for question in one.questions} - read
            read |= own
            filled.append(
                Filled(
                    lengths=np.array(one.lengths, dtype=np.int32),
                    pieces=np.array([question.target for question in one.questions], dtype=np.int32),
                    columns=answers[[rows[question] for question in one.questions]],
                    unknown=one.unknown,
                    passes=len(own),
                )
            )
        return filled

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        return count_tokens(self.tokenizer, texts)

    def log_p(self, questions: Sequence[Question]) -> NDArray[np.float32]:
        """Log-probabilities (n,) of the tokens asked about, and nothing else."""
        self.prepare()
        return self._answers(questions, names=COLUMNS[:1])[:, 0]

    def _answers(self, questions: Sequence[Question], names: Sequence[str] = COLUMNS) -> NDArray[np.float32]:
        """(n, len(names)): see `COLUMNS`."""
        self._check_lengths(questions)
        found = np.empty((len(questions), len(names)), dtype=np.float32)
        asked: dict[tuple[int, ...], dict[int, list[int]]] = {}
        hosts = self._hosts(questions)
        for number, question in enumerate(questions):
            asked.setdefault(hosts[question.ids], {}).setdefault(question.place, []).append(number)
        for batch in _batches(sorted(asked, key=len), self.device):
            places = [(row, place) for row, ids in enumerate(batch) for place in asked[ids]]
            numbers = [asked[batch[row]][place] for row, place in places]
            wanted = [(at, questions[n].target) for at, those in enumerate(numbers) for n in those]
            found[[n for those in numbers for n in those]] = self._answered(batch, places, wanted, names)
        return found

    def _check_lengths(self, questions: Sequence[Question]) -> None:
        limit = self.limit
        longest = max(questions, key=lambda question: len(question.ids), default=None)
        if longest is not None and len(longest.ids) > limit:
            text = self.tokenizer.decode(longest.ids)
            raise ModelError(
                f"model {self._source.name!r} reads at most {limit} tokens, and a text has {len(longest.ids)}: {text!r}"
            )

    def _hosts(self, questions: Sequence[Question]) -> dict[tuple[int, ...], tuple[int, ...]]:
        """The sequence that is read for every sequence asked about: itself, or one that it is the beginning of."""
        ordered = sorted({question.ids for question in questions})
        hosts = {ids: ids for ids in ordered}
        if self.kind == "causal":
            for ids, following in zip(ordered[-2::-1], ordered[:0:-1], strict=True):
                if following[: len(ids)] == ids:
                    hosts[ids] = hosts[following]
        return hosts

    def _answered(
        self,
        batch: Sequence[tuple[int, ...]],
        places: list[tuple[int, int]],
        wanted: list[tuple[int, int]],
        names: Sequence[str],
    ) -> NDArray[np.float32]:
        """Answers for (place, token) pairs; a place is the row of its sequence and where in it."""
        import torch

        with torch.inference_mode():
            logits, norms = self._forward(batch, places)
            at, tokens = torch.tensor(wanted, device=self.device).T
            logits = logits.float()
            if len(names) == 1:
                only: NDArray[np.float32] = (logits[at, tokens] - logits.logsumexp(dim=1)[at])[:, None].cpu().numpy()
                return only
            log_p = torch.log_softmax(logits, dim=1)
            masses = torch.log(torch.exp(log_p) @ self._word_tokens(logits.shape[1]))
            distance = SortedLogits(logits).distances(at, tokens, norms[at])
            columns = [log_p[at, tokens], masses[at, 0], masses[at, 1], distance.float()]
            answer: NDArray[np.float32] = torch.stack(columns, dim=1).cpu().numpy()
            return answer

    def _forward(
        self, batch: Sequence[tuple[int, ...]], places: list[tuple[int, int]]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits (n, V) at the places asked for, and squared lengths (n,) of what the output layer was given."""
        import torch

        longest = max(map(len, batch))
        padding = self.tokenizer.pad_token_id or 0
        ids = torch.tensor([[*row, *[padding] * (longest - len(row))] for row in batch], device=self.device)
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in batch], device=self.device)
        rows, columns = torch.tensor(places, device=self.device).T
        kept: dict[str, torch.Tensor] = {}

        def only_there(_: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
            kept["state"] = given[0].reshape(len(batch), longest, -1)[rows, columns]
            return kept["state"][:, None], *given[1:]

        def plain(_: Any, __: Any, made: torch.Tensor) -> None:
            kept["product"] = made

        handles = [self._head.register_forward_pre_hook(only_there), self._head.register_forward_hook(plain)]
        try:
            logits = self._model(input_ids=ids, attention_mask=mask).logits[:, 0]
        finally:
            for handle in handles:
                handle.remove()
        # A bias, in the layer or added behind it, is one more column, by which the state has one more entry: 1.
        biased = getattr(self._head, "bias", None) is not None or not torch.equal(kept["product"][:, 0], logits)
        return logits, kept["state"].double().square().sum(dim=1) + float(biased)

    def _word_tokens(self, size: int) -> torch.Tensor:
        """(V, 2): which tokens of the vocabulary begin a word, and which continue one."""
        import torch

        if self._kinds is None:
            tokens = self.tokenizer.convert_ids_to_tokens(range(len(self.tokenizer)))
            pieces = any(token.startswith("##") for token in tokens)
            begins = [not t.startswith("##") if pieces else t.startswith(_INITIAL) for t in tokens]
            begins += [False] * (size - len(begins))  # rows of the matrix that no token has
            initial = torch.tensor(begins[:size], device=self.device)
            self._kinds = torch.stack([initial, ~initial], dim=1).float()
        return self._kinds


def _batches(sequences: Sequence[tuple[int, ...]], device: str) -> Iterator[Sequence[tuple[int, ...]]]:
    """Some sequences at a time, the shortest first: as many as the memory of one pass is meant to hold."""
    at = 0
    while at < len(sequences):
        n = _ROWS_AT_ONCE[device]
        while n > 1 and n * len(sequences[min(at + n, len(sequences)) - 1]) > _TOKENS_AT_ONCE[device]:
            n //= 2
        yield sequences[at : at + n]
        at += n
