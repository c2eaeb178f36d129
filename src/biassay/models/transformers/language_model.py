"""Score words in blanks and the tokens of texts with a language model.

Every token of a word is one query. Queries on the same sequence share a forward pass; a causal model also scores a
sequence while it reads a longer one that starts with it. The output layer is applied only at the queried positions; its
input is the hidden state of the sensitivity test.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from biassay.errors import ModelError
from biassay.models.backend import ModelName, read_choice_setting
from biassay.models.base import (
    BLANK_COLUMNS,
    SAMPLING_SETTINGS,
    BlankScores,
    Identity,
    TokenLikelihoods,
    reject_settings,
)
from biassay.models.transformers.batches import BatchPrefetcher, avoid_cudnn_attention, retry_in_halves
from biassay.models.transformers.checkpoint import DTYPES, find_checkpoint, load_weights
from biassay.models.transformers.forward_plan import (
    BlankTokenizer,
    ForwardPlan,
    PrefixCache,
    PrefixGroups,
    TokenizedBlank,
    TokenQuery,
    group_by_prefix,
)
from biassay.prompts.requests import Blank, LikelihoodRequest
from biassay.stats.sensitivity import SortedLogits

if TYPE_CHECKING:
    import torch


_MAX_BATCH_TOKENS = {"cpu": 4096, "cuda": 65_536}
_MAX_BATCH_SEQUENCES = {"cpu": 128, "cuda": 2048}
_MAX_BATCH_QUERIES = {"cpu": 4096, "cuda": 16_384}
_WORD_START_MARKS = ("Ġ", "▁")  # a space, in byte-level and SentencePiece vocabularies


def open_language_model(model: ModelName) -> LanguageModel:
    """Open ``hf:NAME`` to fill blanks."""
    reject_settings(model, *SAMPLING_SETTINGS)
    return LanguageModel(model)


class LanguageModel:
    """Score tokens with a masked or causal language model.

    Attributes
    ----------
    kind : {"masked", "causal"}
        Kind of model.
    has_mask : bool
        True if other words of a text can be masked.
    has_output_layer : bool
        True if all `BLANK_COLUMNS` are available.
    """

    has_output_layer = True

    def __init__(self, model: ModelName) -> None:
        reject_settings(model, "pool", "word", "layer", "join")
        self._checkpoint = find_checkpoint(model)
        kind = self._checkpoint.kind
        if kind is None:
            raise ModelError(
                f"{self._checkpoint.label} is neither a masked nor a causal language model; choose another"
            )
        self.kind: Literal["masked", "causal"] = kind
        self.has_mask = self.kind == "masked"
        self._dtype = read_choice_setting(model, "dtype", DTYPES, "float32")
        settings = {"head": self.kind} | ({} if self._dtype == "float32" else {"dtype": self._dtype})
        self.identity = Identity(self._checkpoint.name, "hf", self._checkpoint.fingerprint, tuple(settings.items()))
        self._model: Any = None
        self._head: Any = None
        self._word_starts: torch.Tensor | None = None
        self._biased: bool | None = None
        self._can_share_prefixes: bool | None = None
        self._prefetcher = BatchPrefetcher(self._tokenize)

    @property
    def device(self) -> str:
        """Device of the model, "cpu" or "cuda"."""
        return self._checkpoint.device

    @cached_property
    def tokenizer(self) -> Any:
        """Tokenizer of the library, loaded when a request is not in the cache."""
        tokenizer = self._checkpoint.tokenizer
        _ = self._checkpoint.text_tokenizer  # checks that there is a fast version, and switches truncation off
        if self.kind == "masked" and tokenizer.mask_token_id is None:
            raise ModelError(f"{self._checkpoint.label} is a masked model, but its tokenizer has no mask token")
        return tokenizer

    @property
    def model(self) -> Any:
        """Loaded model of the library."""
        self.prepare()
        return self._model

    @property
    def folds_case(self) -> bool:
        """True if the tokenizer lower-cases texts."""
        return self._checkpoint.folds_case

    @property
    def limit(self) -> int:
        """Maximum number of tokens per sequence."""
        return self._checkpoint.text_tokenizer.limit

    @cached_property
    def _blank_tokenizer(self) -> BlankTokenizer:
        return BlankTokenizer(self.tokenizer, self.kind)

    def prepare(self, blanks: Sequence[Blank] = ()) -> None:  # noqa: ARG002
        """Load tokenizer and weights; raise ModelError if there is no language-model head."""
        if self._model is not None:
            return
        _ = self.tokenizer  # faster than the weights, and may fail
        name = "AutoModelForMaskedLM" if self.kind == "masked" else "AutoModelForCausalLM"
        try:
            self._model = load_weights(self._checkpoint, name, self._dtype)
        except ModelError as error:
            error.add_note("a model without a language-model head works only with --measures ceat")
            raise
        self._head = self._model.get_output_embeddings()
        if self._head is None:
            raise ModelError(f"{self._checkpoint.label} has no output layer over its vocabulary")

    def _tokenize(self, blanks: Sequence[Blank]) -> tuple[list[TokenizedBlank], ForwardPlan]:
        tokenized = self._blank_tokenizer.tokenize(blanks)
        return tokenized, ForwardPlan.from_queries([query for blank in tokenized for query in blank.queries], self.kind)

    def prefetch(self, blanks: Sequence[Blank]) -> None:
        """Tokenize blanks of a later batch in the background."""
        self._prefetcher.prefetch(blanks)

    def batches(self, blanks: Sequence[Blank]) -> list[list[int]]:
        """Group the indices of all blanks into batches of similar texts."""
        return self._blank_tokenizer.plan(blanks, _MAX_BATCH_QUERIES[self.device])

    def fill(self, blanks: Sequence[Blank]) -> list[BlankScores]:
        """Score the words of each blank; blanks of one batch share forward passes."""
        self.prepare(blanks)
        tokenized, plan = self._prefetcher(blanks)
        counts = np.array([len(blank.queries) for blank in tokenized])
        passes = plan.count_first_reads(np.repeat(np.arange(len(tokenized)), counts), len(tokenized))
        scores = np.split(self._score(plan), np.cumsum(counts)[:-1])
        targets = np.split(plan.targets.astype(np.int32), np.cumsum(counts)[:-1])
        return [
            BlankScores(np.array(blank.lengths, dtype=np.int32), pieces, columns, blank.unknown, n_passes)
            for blank, pieces, columns, n_passes in zip(tokenized, targets, scores, passes.tolist(), strict=True)
        ]

    def encode(self, texts: Sequence[str], *, special: bool = True) -> list[Any]:
        """Tokenize texts; return encodings of the tokenizers library, by default with special tokens."""
        return self._blank_tokenizer.encode(list(texts), special=special)

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of tokens per text, without special tokens."""
        return self._checkpoint.text_tokenizer.count(texts)

    def log_p(self, queries: Sequence[TokenQuery]) -> NDArray[np.float32]:
        """Return the log-probability of each queried token."""
        self.prepare()
        return self._score(ForwardPlan.from_queries(queries, self.kind), names=BLANK_COLUMNS[:1])[:, 0]

    def _score(self, plan: ForwardPlan, names: Sequence[str] = BLANK_COLUMNS) -> NDArray[np.float32]:
        """Return scores (queries, len(names)); wait for the device only after the last batch."""
        import torch

        self._check_length(plan)
        indices, parts = [], []
        for batch, batch_indices in self._group_sequences(plan) or plan.batches(*_get_batch_limits(self.device)):
            indices.append(batch_indices)
            parts += retry_in_halves(
                self._checkpoint.label, partial(self._score_batch, names), batch, lambda part: part.halves()
            )
        scores = np.empty((len(plan.targets), len(names)), dtype=np.float32)
        if parts:
            scores[np.concatenate(indices)] = torch.cat(parts).cpu().numpy()
        return scores

    def _check_length(self, plan: ForwardPlan) -> None:
        limit, longest = self.limit, plan.sequences[-1] if plan.sequences else ()
        if len(longest) > limit:
            text = self.tokenizer.decode(longest)
            raise ModelError(
                f"{self._checkpoint.label} reads at most {limit} tokens, but a text has {len(longest)}: {text!r}"
            )

    def _group_sequences(self, plan: ForwardPlan) -> list[tuple[PrefixGroups, NDArray[np.intp]]]:
        """Group sequences by shared prefixes; empty if the model cannot continue after a cached prefix."""
        if self.kind != "causal" or self._can_share_prefixes is False:
            return []
        groups = group_by_prefix(plan, *_get_batch_limits(self.device))
        if groups and self._can_share_prefixes is None:
            self._can_share_prefixes = self._prefixes_agree(groups[0][0])
        return groups if self._can_share_prefixes else []

    def _prefixes_agree(self, groups: PrefixGroups) -> bool:
        """Return True if scores with shared prefixes equal those of whole sequences."""
        while groups.groups[-1] - groups.groups[0] > 1:
            groups = groups.halves()[0]
        try:
            shared, full = (self._score_batch(BLANK_COLUMNS[:1], part) for part in (groups, groups.whole))
        except Exception:  # models without a usable cache raise various errors
            return False
        return bool(np.allclose(shared.cpu(), full.cpu(), atol=1e-4 if self._dtype == "float32" else 0.2))

    def _score_batch(self, names: Sequence[str], batch: ForwardPlan | PrefixGroups) -> torch.Tensor:
        """Return scores (queries, len(names)) of a batch."""
        import torch

        with torch.inference_mode():
            if isinstance(batch, ForwardPlan):
                return self._score_sequences(batch, names, PrefixCache())
            shared = PrefixCache(keep=True)
            prefix_scores = self._score_sequences(batch.prefix_batch, names, shared)
            shared.select(*(torch.from_numpy(a).to(self.device) for a in (batch.prefix_rows[1], batch.lengths)))
            suffix_scores = self._score_sequences(batch.suffix_batch, names, shared)
            scores = torch.empty((len(batch.whole.rows), len(names)), device=prefix_scores.device)
            in_prefix = torch.from_numpy(batch.in_prefix).to(prefix_scores.device)
            scores[in_prefix], scores[~in_prefix] = prefix_scores, suffix_scores
            return scores

    def _score_sequences(self, batch: ForwardPlan, names: Sequence[str], prefixes: PrefixCache) -> torch.Tensor:
        import torch

        rows, positions, indices = batch.distinct_positions()
        logits, norms = self._forward(batch, rows, positions, prefixes)
        if not len(batch.targets):
            return torch.empty((0, len(names)), device=logits.device)
        at, tokens = (torch.from_numpy(numbers).to(self.device) for numbers in (indices, batch.targets))
        logits = logits.float()
        if len(names) == 1:
            return (logits[at, tokens] - logits.logsumexp(dim=1)[at])[:, None]
        log_p = torch.log_softmax(logits, dim=1)
        masses = torch.log(torch.exp(log_p) @ self._mark_word_starts(logits.shape[1]))
        distance = SortedLogits(logits).distances(at, tokens, norms[at])
        return torch.stack([log_p[at, tokens], masses[at, 0], masses[at, 1], distance.float()], dim=1)

    def _forward(
        self, batch: ForwardPlan, rows: NDArray[np.int64], positions: NDArray[np.int64], prefixes: PrefixCache
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the logits (n, V) at the given positions, and the squared norms (n,) of the output layer's inputs."""
        import torch

        padded = batch.padded(self.tokenizer.pad_token_id or 0)
        ids, mask, row, column = (torch.from_numpy(a).to(self.device) for a in (*padded, rows, positions))
        captured: dict[str, torch.Tensor] = {}

        def select_positions(_: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
            device = inputs[0].device  # layers of one model may be on several devices
            captured["state"] = inputs[0].reshape(*ids.shape, -1)[row.to(device), column.to(device)]
            return captured["state"][:, None], *inputs[1:]

        def capture_product(_: Any, __: Any, product: torch.Tensor) -> None:
            captured["product"] = product

        hooks = (
            self._head.register_forward_pre_hook(select_positions),
            self._head.register_forward_hook(capture_product),
        )
        try:
            arguments = prefixes.model_arguments(mask) if self.kind == "causal" else {"attention_mask": mask}
            with avoid_cudnn_attention(self.device, ids.shape[1]):
                output = self._model(input_ids=ids, **arguments)
            prefixes.store(output, mask)
            logits = output.logits[:, 0]
        finally:
            for hook in hooks:
                hook.remove()
        if self._biased is None and len(logits):
            # A bias, inside the layer or added after it, is one more column, for which the state has an entry of 1.
            has_bias = getattr(self._head, "bias", None) is not None
            self._biased = has_bias or not torch.equal(captured["product"][:, 0].to(logits.device), logits)
        return logits, captured["state"].to(logits.device).double().square().sum(dim=1) + float(bool(self._biased))

    def _mark_word_starts(self, size: int) -> torch.Tensor:
        """Return an indicator (V, 2) of tokens that start a word and tokens that continue one."""
        import torch

        if self._word_starts is None:
            tokens = self.tokenizer.convert_ids_to_tokens(range(len(self.tokenizer)))
            is_wordpiece = any(token.startswith("##") for token in tokens)
            starts = [not t.startswith("##") if is_wordpiece else t.startswith(_WORD_START_MARKS) for t in tokens]
            starts += [False] * (size - len(starts))  # the matrix may have more rows than there are tokens
            is_start = torch.tensor(starts[:size], device=self.device)
            self._word_starts = torch.stack([is_start, ~is_start], dim=1).float()
        return self._word_starts


def _get_batch_limits(device: str) -> tuple[int, int]:
    """Return the maximum number of sequences and of tokens per pass."""
    return _MAX_BATCH_SEQUENCES[device], _MAX_BATCH_TOKENS[device]


_MAX_BATCH_TEXTS = {"cpu": 128, "cuda": 4096}
_TextQueries = tuple[list[TokenQuery | None], list[tuple[int, int]], list[int]]
_END_TOKENS = ("<|endoftext|>", "<|end_of_text|>")  # used as start tokens by models without another one
_CHAT_TOKENS = re.compile(r"im_start|im_end|turn|header|eot|user|assistant|system", re.IGNORECASE)


class HfLikelihoods:
    """Compute the log-probability of every token of a text.

    A causal model conditions on the preceding tokens, a masked model on all others; within a filled blank, a masked
    model conditions on the preceding tokens of the blank and on the text around it.

    A causal model reads a text after a start token: that of its tokenizer, or else the end-of-text token. A chat marker
    such as ``<|im_start|>`` is not a start token. Without any, the first token has no likelihood. Unknown tokens have
    none either.
    """

    def __init__(self, model: ModelName) -> None:
        reject_settings(model, *SAMPLING_SETTINGS)
        self._model = LanguageModel(model)
        self.identity, self.kind = self._model.identity, self._model.kind
        self._prefetcher = BatchPrefetcher(self._tokenize)

    def prepare(self, texts: Sequence[LikelihoodRequest]) -> None:  # noqa: ARG002
        """Load the weights."""
        self._model.prepare()

    def batches(self, texts: Sequence[LikelihoodRequest]) -> list[list[int]]:
        """Group texts of similar length, to avoid padding."""
        order, size = sorted(range(len(texts)), key=lambda i: len(texts[i].text)), _MAX_BATCH_TEXTS[self._model.device]
        return [order[start : start + size] for start in range(0, len(order), size)]

    def prefetch(self, texts: Sequence[LikelihoodRequest]) -> None:
        """Tokenize texts of a later batch in the background."""
        self._prefetcher.prefetch(texts)

    def likelihoods(self, texts: Sequence[LikelihoodRequest]) -> list[TokenLikelihoods]:
        """Return the log-probabilities of the tokens of each text."""
        self._model.prepare()
        tokenized = self._prefetcher(texts)
        log_p = iter(self._model.log_p([q for queries, _, _ in tokenized for q in queries if q is not None]).tolist())
        return [
            TokenLikelihoods(
                np.array([np.nan if query is None else next(log_p) for query in queries], dtype=np.float64),
                np.array(spans, dtype=np.int32).reshape(-1, 2),
                np.array(tokens, dtype=np.int64),
            )
            for queries, spans, tokens in tokenized
        ]

    @property
    def folds_case(self) -> bool:
        """True if the tokenizer lower-cases texts."""
        return self._model.folds_case

    def _tokenize(self, texts: Sequence[LikelihoodRequest]) -> list[_TextQueries]:
        encodings = self._model.encode([request.text for request in texts])
        return [self._make_queries(request, encoding) for request, encoding in zip(texts, encodings, strict=True)]

    def _make_queries(self, request: LikelihoodRequest, encoding: Any) -> _TextQueries:
        """Return queries, spans and ids of the tokens that cover characters; None for unknown tokens."""
        ids, spans = encoding.ids, encoding.offsets
        bare: list[int] | None = None
        if self.kind == "causal" and spans and spans[0][0] < spans[0][1] and self._start is not None:
            bare = ids if request.start_before == "first" else None
            ids, spans = [self._start, *ids], [(0, 0), *spans]
        positions = [i for i, (start, end) in enumerate(spans) if start < end]
        resume = {i: i + 1 for i in positions}  # position where a masked model continues after the token
        if self.kind == "masked" and request.filled:
            resume = {}
            for start, end in request.filled:
                inside = [i for i in positions if spans[i][0] < end and spans[i][1] > start]
                resume |= dict.fromkeys(inside, inside[-1] + 1)
        queries = [
            self._make_query(ids, i, after) if bare is None or i == 1 else self._make_query(bare, i - 1, after - 1)
            for i, after in resume.items()
        ]
        return queries, [spans[i] for i in resume], [ids[i] for i in resume]

    @cached_property
    def _start(self) -> int | None:
        """Id of the start token."""
        tokenizer = self._model.tokenizer
        vocabulary = tokenizer.get_vocab()
        names = (tokenizer.bos_token, *(name for name in _END_TOKENS if name in vocabulary), tokenizer.eos_token)
        start = next((name for name in names if name is not None and not _CHAT_TOKENS.search(str(name))), None)
        return None if start is None else int(tokenizer.convert_tokens_to_ids(str(start)))

    def _make_query(self, ids: list[int], position: int, resume: int) -> TokenQuery | None:
        """Query one token; a masked model continues to read at `resume`."""
        tokenizer, token = self._model.tokenizer, ids[position]
        if token == tokenizer.unk_token_id and token != tokenizer.eos_token_id:
            return None
        if self.kind == "causal":
            return TokenQuery(tuple(ids), position - 1, token) if position else None
        return TokenQuery((*ids[:position], tokenizer.mask_token_id, *ids[resume:]), position, token)
