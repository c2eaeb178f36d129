"""Language models as they fill a blank: probabilities of tokens, and how firmly the output layer holds them.

A question is a sequence of tokens, a place in it and a token wanted there. Questions with one sequence share one pass
through the model; a causal model, which does not look ahead, also answers for a sequence while it reads a longer one
that begins so. The output layer is applied at the places asked for only. It is the one that the
model itself names, whatever its class; what it is given is the hidden state of the sensitivity test.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from biassay.encoders.base import Identity
from biassay.encoders.family import ModelName
from biassay.encoders.hf import choice
from biassay.encoders.hub import choose_device, load_weights, locate, open_config, open_tokenizer
from biassay.encoders.tokenising import longest_text
from biassay.errors import ModelError, UsageError
from biassay.stats.sensitivity import SortedLogits

if TYPE_CHECKING:
    import torch

__all__ = ["COLUMNS", "LanguageModel", "Question", "provide"]

COLUMNS = ("log_p", "log_initial", "log_continuing", "distance")
"""Of an answer: the logarithm of the token's probability, those of the mass of tokens that begin a word and of those
that continue one, and the distance of the sensitivity test."""
_DTYPES = ("float32", "bfloat16", "float16")
_TOKENS_AT_ONCE = {"cpu": 4096, "cuda": 65_536}
_ROWS_AT_ONCE = {"cpu": 128, "cuda": 2048}
_INITIAL = ("Ġ", "▁")  # marks of a blank, in byte-level and in sentence-piece vocabularies


@dataclass(frozen=True)
class Question:
    """How likely is the token ``target`` at a place of a sequence? For causal models the place is that before it."""

    ids: tuple[int, ...]
    place: int
    target: int


def provide(model: ModelName) -> LanguageModel:
    for setting in ("pool", "word", "layer", "join"):
        if setting in model.settings:
            raise UsageError(f"model {model.head!r}: {setting}= is for vectors, not for predictions")
    return LanguageModel(model)


class LanguageModel:
    """A masked or causal language model.

    Attributes
    ----------
    kind : {"masked", "causal"}
    has_mask : bool
        Whether a group can be masked.
    """

    def __init__(self, model: ModelName) -> None:
        self._source = locate(model)
        self._config = open_config(self._source)
        self._tokenizer = open_tokenizer(self._source)
        if not getattr(self._tokenizer, "is_fast", False):
            raise ModelError(
                f"model {self._source.name!r}: its tokenizer has no fast form, which tells where a token stands"
            )
        self.kind: Literal["masked", "causal"] = self._kind()
        self.has_mask = self.kind == "masked"
        self._dtype = choice(model, "dtype", "float32", _DTYPES)
        self.device = choose_device(model)
        settings = {"head": self.kind} | ({} if self._dtype == "float32" else {"dtype": self._dtype})
        revision = self._source.fingerprint(self._config)
        self.identity = Identity(self._source.name, "hf", revision, tuple(settings.items()))
        self._model: Any = None
        self._head: Any = None
        self._kinds: torch.Tensor | None = None

    def _kind(self) -> Literal["masked", "causal"]:
        import transformers

        library: Any = transformers
        kind = type(self._config)
        if kind in library.MODEL_FOR_MASKED_LM_MAPPING and self._tokenizer.mask_token_id is not None:
            return "masked"
        if kind in library.MODEL_FOR_CAUSAL_LM_MAPPING and kind not in library.MODEL_FOR_MASKED_LM_MAPPING:
            return "causal"
        if kind in library.MODEL_FOR_MASKED_LM_MAPPING:
            raise ModelError(f"model {self._source.name!r} is a masked model, and its tokenizer has no mask token")
        raise ModelError(f"model {self._source.name!r} is neither a masked nor a causal language model")

    def prepare(self) -> None:
        """Load the weights; a head that the checkpoint lacks is an error."""
        if self._model is not None:
            return
        name = "AutoModelForMaskedLM" if self.kind == "masked" else "AutoModelForCausalLM"
        try:
            self._model = load_weights(self._source, name, self._dtype, self.device, unused=())
        except ModelError as error:
            error.add_note("a model without a language-model head can be measured by --measure ceat only")
            raise
        self._head = self._model.get_output_embeddings()
        if self._head is None:
            raise ModelError(f"model {self._source.name!r} has no output layer over its vocabulary")

    # Texts to questions

    def pieces(self, text: str, word: str) -> tuple[int, ...] | None:
        """Tokens of a word where the text has ``{trait}``; None if the model does not know it."""
        ids, span = self._with_word(text, word)
        found = tuple(ids[slice(*span)])
        return None if not found or self._tokenizer.unk_token_id in found else found

    def unknown_tokens(self, text: str) -> int:
        """How many parts of a text, but for the trait, the tokenizer does not know."""
        before, after = self._halves(text)
        ids: list[int] = self._tokenizer(before + after)["input_ids"]
        return ids.count(self._tokenizer.unk_token_id)

    def _with_word(self, text: str, word: str) -> tuple[list[int], tuple[int, int]]:
        """Tokens of a text with a word put in, and which of them stand for the word."""
        before, after = self._halves(text)
        encoded = self._tokenizer(before + word + after, return_offsets_mapping=True)
        inside = [
            place
            for place, (start, end) in enumerate(encoded["offset_mapping"])
            if start < end and start < len(before) + len(word) and end > len(before)
        ]
        return encoded["input_ids"], (inside[0], inside[-1] + 1) if inside else (0, 0)

    def _halves(self, text: str) -> tuple[str, str]:
        before, _, after = text.replace("{mask}", self._tokenizer.mask_token or "").partition("{trait}")
        return before, after

    def questions(self, text: str, pieces: Sequence[int], word: str) -> tuple[Question, ...]:
        """One question a piece, the pieces before it put in place."""
        if self.kind == "causal":
            ids, (start, _) = self._with_word(text, word)
            whole = (*ids[:start], *pieces)
            return tuple(Question(whole[: start + i], start + i - 1, piece) for i, piece in enumerate(pieces))
        filled, places = self._masked(text, len(pieces))
        asked = []
        for place, piece in zip(places, pieces, strict=True):
            asked.append(Question(tuple(filled), place, piece))
            filled[place] = piece
        return tuple(asked)

    def _masked(self, text: str, n: int) -> tuple[list[int], list[int]]:
        """Tokens of a text with n masks for the trait, and the places of these."""
        mask = self._tokenizer.mask_token
        ids = list(self._tokenizer(text.replace("{mask}", mask).replace("{trait}", " ".join([mask] * n)))["input_ids"])
        places = [place for place, token in enumerate(ids) if token == self._tokenizer.mask_token_id]
        group = text.find("{mask}")
        if group < 0:
            return ids, places
        return ids, places[1:] if group < text.find("{trait}") else places[:-1]

    # Questions to answers

    def answers(self, questions: Sequence[Question]) -> NDArray[np.float32]:
        """(n, 4): see `COLUMNS`."""
        self.prepare()
        self._check_lengths(questions)
        found = np.empty((len(questions), len(COLUMNS)), dtype=np.float32)
        asked: dict[tuple[int, ...], dict[int, list[int]]] = {}
        hosts = self._hosts(questions)
        for number, question in enumerate(questions):
            asked.setdefault(hosts[question.ids], {}).setdefault(question.place, []).append(number)
        for batch in _batches(sorted(asked, key=len), self.device):
            places = [(row, place) for row, ids in enumerate(batch) for place in asked[ids]]
            numbers = [asked[batch[row]][place] for row, place in places]
            wanted = [(at, questions[n].target) for at, those in enumerate(numbers) for n in those]
            found[[n for those in numbers for n in those]] = self._answered(batch, places, wanted)
        return found

    def _check_lengths(self, questions: Sequence[Question]) -> None:
        limit = longest_text(self._tokenizer, self._config)
        longest = max(questions, key=lambda question: len(question.ids), default=None)
        if limit is not None and longest is not None and len(longest.ids) > limit:
            text = self._tokenizer.decode(longest.ids)
            raise ModelError(
                f"model {self._source.name!r} reads at most {limit} tokens, and a text has {len(longest.ids)}: {text!r}"
            )

    def passes(self, questions: Sequence[Question]) -> int:
        """How many sequences the model has to read to answer."""
        return len(set(self._hosts(questions).values()))

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
        self, batch: Sequence[tuple[int, ...]], places: list[tuple[int, int]], wanted: list[tuple[int, int]]
    ) -> NDArray[np.float32]:
        """Answers for (place, token) pairs; a place is the row of its sequence and where in it."""
        import torch

        with torch.inference_mode():
            logits, norms = self._forward(batch, places)
            at, tokens = torch.tensor(wanted, device=self.device).T
            logits = logits.float()
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
        padding = self._tokenizer.pad_token_id or 0
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
            tokens = self._tokenizer.convert_ids_to_tokens(range(len(self._tokenizer)))
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
