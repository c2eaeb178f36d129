"""Language models as they fill a blank: probabilities of tokens, and their distance in the sensitivity test.

A blank is asked about piece by piece. Questions with one sequence share one pass through the model; a causal model,
which does not look ahead, also answers for a sequence while it reads a longer one that begins so. The output layer is
applied at the places asked for only. It is the one that the model itself names, whatever its class; what it is given is
the hidden state of the sensitivity test.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from biassay.errors import ModelError, UsageError
from biassay.models.ahead import Ahead, uncollected
from biassay.models.attention import without_plans
from biassay.models.base import COLUMNS, Filled, Identity
from biassay.models.checkpoint import Checkpoint
from biassay.models.family import ModelName
from biassay.models.hub import check_device, choose_device
from biassay.models.lm_passes import Batch, Passes
from biassay.models.lm_prefixes import Behind, Families, families_of
from biassay.models.lm_questions import InTokens, Question, Questions
from biassay.models.memory import in_halves
from biassay.models.sampling import check_not_sampled
from biassay.models.states import DTYPES, choice
from biassay.models.tokenising import count_tokens, longest_text
from biassay.models.weights import load_weights
from biassay.stats.sensitivity import SortedLogits
from biassay.texts.requests import Blank

if TYPE_CHECKING:
    import torch

__all__ = ["LanguageModel", "provide"]

_TOKENS_AT_ONCE = {"cpu": 4096, "cuda": 65_536}
_ROWS_AT_ONCE = {"cpu": 128, "cuda": 2048}
_QUESTIONS_AT_ONCE = {"cpu": 4096, "cuda": 16_384}
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
        self._biased: bool | None = None
        self._shares: bool | None = None
        self._asked = Ahead(self._in_tokens)

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
    def folds_case(self) -> bool:
        return self._checkpoint.folds_case

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
            spread = check_device(self._name) == "auto"
            self._model = load_weights(self._source, name, self._dtype, self.device, spread=spread, unused=())
        except ModelError as error:
            error.add_note("a model without a language-model head can be measured by --measure ceat only")
            raise
        self._head = self._model.get_output_embeddings()
        if self._head is None:
            raise ModelError(f"model {self._source.name!r} has no output layer over its vocabulary")

    @uncollected()
    def _in_tokens(self, blanks: Sequence[Blank]) -> tuple[list[InTokens], Passes]:
        asked = self._questions.of(blanks)
        return asked, Passes.of([question for one in asked for question in one.questions], self.kind)

    def expect(self, blanks: Sequence[Blank]) -> None:
        """Tokenise blanks that are asked about soon."""
        self._asked.expect(blanks)

    def batches(self, blanks: Sequence[Blank]) -> list[list[int]]:
        """What is asked together, by the places of all blanks."""
        return self._questions.plan(blanks, _QUESTIONS_AT_ONCE[self.device])

    def fill(self, blanks: Sequence[Blank]) -> list[Filled]:
        """Answers about the words of every blank; blanks asked together share passes."""
        self.prepare(blanks)
        asked, passes = self._asked(blanks)
        counts = np.array([len(one.questions) for one in asked])
        read = passes.first_asked(np.repeat(np.arange(len(asked)), counts), len(asked))
        answers = np.split(self._answers(passes), np.cumsum(counts)[:-1])
        targets = np.split(passes.targets.astype(np.int32), np.cumsum(counts)[:-1])
        return [
            Filled(np.array(one.lengths, dtype=np.int32), pieces, columns, one.unknown, number)
            for one, pieces, columns, number in zip(asked, targets, answers, read.tolist(), strict=True)
        ]

    def encoded(self, texts: Sequence[str], *, special: bool = True) -> list[Any]:
        """Tokens of texts, as the library behind the tokenizer has them, and with special ones where wanted."""
        return self._questions.encoded(list(texts), special=special)

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        return count_tokens(self.tokenizer, texts)

    def log_p(self, questions: Sequence[Question]) -> NDArray[np.float32]:
        """Log-probabilities (n,) of the tokens asked about, and nothing else."""
        self.prepare()
        return self._answers(Passes.of(questions, self.kind), names=COLUMNS[:1])[:, 0]

    def _answers(self, passes: Passes, names: Sequence[str] = COLUMNS) -> NDArray[np.float32]:
        """(n, len(names)): see `COLUMNS`. The device is not waited for before all is handed over to it."""
        import torch

        self._check_length(passes)
        places, found = [], []
        for batch, own in self._families(passes) or passes.batches(*_at_once(self.device)):
            places.append(own)
            found += in_halves(self._source.name, partial(self._said, names), batch, lambda part: part.halves())
        answers = np.empty((len(passes.targets), len(names)), dtype=np.float32)
        if found:
            answers[np.concatenate(places)] = torch.cat(found).cpu().numpy()
        return answers

    def _check_length(self, passes: Passes) -> None:
        limit, longest = self.limit, passes.sequences[-1] if passes.sequences else ()
        if len(longest) > limit:
            text = self.tokenizer.decode(longest)
            raise ModelError(
                f"model {self._source.name!r} reads at most {limit} tokens, and a text has {len(longest)}: {text!r}"
            )

    def _families(self, passes: Passes) -> list[tuple[Families, NDArray[np.intp]]]:
        """Sequences by what they share, if the model is one that can go on behind it; tried once."""
        found = (
            families_of(passes, *_at_once(self.device)) if self.kind == "causal" and self._shares is not False else []
        )
        if found and self._shares is None:
            self._shares = self._agrees(found[0][0])
        return found if self._shares else []

    def _agrees(self, families: Families) -> bool:
        """Are some answers the same, by what sequences share and by each as a whole?"""
        while len(families.prefixes) > 2:
            families = families.halves()[0]
        try:
            one, other = (self._said(COLUMNS[:1], part) for part in (families, families.whole))
        except Exception:  # whatever a model without such a cache, or with one of its own, says: it is read as a whole
            return False
        return bool(np.allclose(one.cpu(), other.cpu(), atol=1e-4 if self._dtype == "float32" else 0.2))

    def _said(self, names: Sequence[str], batch: Batch | Families) -> torch.Tensor:
        """Answers (n, len(names)) to the questions of a batch."""
        import torch

        with torch.inference_mode():
            if isinstance(batch, Batch):
                return self._answered(batch, names, Behind())
            shared = Behind(keep=True)
            first = self._answered(batch.first, names, shared)
            shared.choose(
                torch.from_numpy(batch.family).to(self.device), torch.from_numpy(batch.lengths).to(self.device)
            )
            second = self._answered(batch.second, names, shared)
            found = torch.empty((len(batch.rows), len(names)), device=first.device)
            in_prefix = torch.from_numpy(batch.in_prefix).to(first.device)
            found[in_prefix], found[~in_prefix] = first, second
            return found

    def _answered(self, batch: Batch, names: Sequence[str], behind: Behind) -> torch.Tensor:
        import torch

        logits, norms = self._forward(batch, behind)
        if not len(batch.targets):
            return torch.empty((0, len(names)), device=logits.device)
        at, tokens = (torch.from_numpy(numbers).to(self.device) for numbers in (batch.at, batch.targets))
        logits = logits.float()
        if len(names) == 1:
            return (logits[at, tokens] - logits.logsumexp(dim=1)[at])[:, None]
        log_p = torch.log_softmax(logits, dim=1)
        masses = torch.log(torch.exp(log_p) @ self._word_tokens(logits.shape[1]))
        distance = SortedLogits(logits).distances(at, tokens, norms[at])
        return torch.stack([log_p[at, tokens], masses[at, 0], masses[at, 1], distance.float()], dim=1)

    def _forward(self, batch: Batch, behind: Behind) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits (n, V) at the places asked for, and squared lengths (n,) of what the output layer was given."""
        import torch

        padded = batch.padded(self.tokenizer.pad_token_id or 0)
        ids, mask, rows, columns = (torch.from_numpy(a).to(self.device) for a in (*padded, batch.rows, batch.places))
        kept: dict[str, torch.Tensor] = {}

        def only_there(_: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
            there = given[0].device  # a layer of a model that is spread may have a device of its own
            kept["state"] = given[0].reshape(*ids.shape, -1)[rows.to(there), columns.to(there)]
            return kept["state"][:, None], *given[1:]

        def plain(_: Any, __: Any, made: torch.Tensor) -> None:
            kept["product"] = made

        handles = [self._head.register_forward_pre_hook(only_there), self._head.register_forward_hook(plain)]
        try:
            more = behind.given(mask) if self.kind == "causal" else {"attention_mask": mask}
            with without_plans(self.device, ids.shape[1]):
                output = self._model(input_ids=ids, **more)
            behind.take(output, mask)
            logits = output.logits[:, 0]
        finally:
            for handle in handles:
                handle.remove()
        if self._biased is None and len(logits):
            # A bias, in the layer or added behind it, is one more column, by which the state has one more entry: 1.
            own = getattr(self._head, "bias", None) is not None
            self._biased = own or not torch.equal(kept["product"][:, 0].to(logits.device), logits)
        return logits, kept["state"].to(logits.device).double().square().sum(dim=1) + float(bool(self._biased))

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


def _at_once(device: str) -> tuple[int, int]:
    """How many sequences one pass reads at most, and how many tokens."""
    return _ROWS_AT_ONCE[device], _TOKENS_AT_ONCE[device]
