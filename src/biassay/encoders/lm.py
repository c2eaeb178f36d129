"""Language models as they fill a blank: probabilities of tokens, and how firmly the output layer holds them.

A question is a sequence of tokens, a place in it and a token wanted there. Questions with one sequence and place share
one pass through the model, and the output layer is applied at that place only. The output layer is the one that the
model itself names, whatever its class; what it is given is the hidden state of the sensitivity test.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from biassay.encoders.base import Identity
from biassay.encoders.hf import choice
from biassay.encoders.hub import choose_device, load_weights, locate, open_config, open_tokenizer
from biassay.encoders.registry import FAMILIES, ModelName, parse_model
from biassay.errors import ModelError, UsageError
from biassay.stats.sensitivity import SortedLogits

if TYPE_CHECKING:
    import torch

__all__ = ["COLUMNS", "LanguageModel", "Question", "open_language_model"]

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


def open_language_model(model: str | ModelName) -> LanguageModel:
    """The language model that a model string names: masked or causal, of the family hf."""
    parsed = parse_model(model) if isinstance(model, str) else model
    if parsed.family != "hf":
        forms = ", ".join(f.form for name, f in FAMILIES.items() if name == "hf")
        raise UsageError(f"model {parsed.text.partition('?')[0]!r} predicts no words; language models are {forms}")
    for setting in ("pool", "word", "layer", "join"):
        if setting in parsed.settings:
            raise UsageError(f"model {parsed.text.partition('?')[0]!r}: {setting}= is for vectors, not for predictions")
    return LanguageModel(parsed)


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
        self._device = choose_device(model)
        settings = {"head": self.kind} | ({} if self._dtype == "float32" else {"dtype": self._dtype})
        revision = self._source.fingerprint(self._config)
        self.identity = Identity(self._source.name, "hf", revision, tuple(settings.items()))
        self._model: Any = None
        self._head: Any = None

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
        self._model = load_weights(self._source, name, self._dtype, self._device, unused=())
        self._head = self._model.get_output_embeddings()
        if self._head is None:
            raise ModelError(f"model {self._source.name!r} has no output layer over its vocabulary")

    # Texts to questions

    def pieces(self, text: str, word: str) -> tuple[int, ...] | None:
        """Tokens of a word where the text has ``{trait}``; None if the model does not know it."""
        ids, span = self._with_word(text, word)
        found = tuple(ids[slice(*span)])
        return None if not found or self._tokenizer.unk_token_id in found else found

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
        found = np.empty((len(questions), len(COLUMNS)), dtype=np.float32)
        contexts: dict[tuple[tuple[int, ...], int], list[int]] = {}
        for number, question in enumerate(questions):
            contexts.setdefault((question.ids, question.place), []).append(number)
        for batch in _batches(sorted(contexts, key=lambda context: len(context[0])), self._device):
            rows = [row for row, context in enumerate(batch) for _ in contexts[context]]
            numbers = [number for context in batch for number in contexts[context]]
            targets = [questions[number].target for number in numbers]
            found[numbers] = self._answered(batch, rows, targets)
        return found

    def _answered(
        self, batch: Sequence[tuple[tuple[int, ...], int]], rows: list[int], targets: list[int]
    ) -> NDArray[np.float32]:
        import torch

        with torch.inference_mode():
            logits, norms = self._forward(batch)
            at = torch.tensor(rows, device=self._device)
            wanted = torch.tensor(targets, device=self._device)
            logits = logits.float()
            log_p = torch.log_softmax(logits, dim=1)
            masses = torch.stack([_log_mass(log_p, tokens) for tokens in self._word_tokens(logits.shape[1])])
            distance = SortedLogits(logits).distances(at, wanted, norms.double()[at])
            columns = [log_p[at, wanted], masses[0][at], masses[1][at], distance.float()]
            answer: NDArray[np.float32] = torch.stack(columns, dim=1).cpu().numpy()
            return answer

    def _forward(self, batch: Sequence[tuple[tuple[int, ...], int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits (b, V) at the places asked for, and squared lengths (b,) of what the output layer was given."""
        import torch

        longest = max(len(ids) for ids, _ in batch)
        padding = self._tokenizer.pad_token_id or 0
        ids = torch.tensor([[*row, *[padding] * (longest - len(row))] for row, _ in batch], device=self._device)
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row, _ in batch], device=self._device)
        places = torch.tensor([place for _, place in batch], device=self._device)
        kept: dict[str, torch.Tensor] = {}

        def only_there(_: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
            states = given[0].reshape(len(batch), longest, -1)
            kept["state"] = states[torch.arange(len(batch), device=self._device), places]
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

    def _word_tokens(self, size: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Which tokens of the vocabulary begin a word, and which continue one."""
        import torch

        if not hasattr(self, "_initial"):
            tokens = self._tokenizer.convert_ids_to_tokens(range(len(self._tokenizer)))
            pieces = any(token.startswith("##") for token in tokens)
            begins = [not t.startswith("##") if pieces else t.startswith(_INITIAL) for t in tokens]
            begins += [False] * (size - len(begins))  # rows of the matrix that no token has
            self._initial = torch.tensor(begins[:size], device=self._device)
        return self._initial, ~self._initial


def _log_mass(log_p: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    import torch

    return torch.logsumexp(log_p.masked_fill(~tokens, -torch.inf), dim=1)


def _batches(
    contexts: Sequence[tuple[tuple[int, ...], int]], device: str
) -> Iterator[Sequence[tuple[tuple[int, ...], int]]]:
    """Some contexts at a time, the shortest first: as many as the memory of one pass is meant to hold."""
    at = 0
    while at < len(contexts):
        n = _ROWS_AT_ONCE[device]
        while n > 1 and n * len(contexts[min(at + n, len(contexts)) - 1][0]) > _TOKENS_AT_ONCE[device]:
            n //= 2
        yield contexts[at : at + n]
        at += n
