"""Old pickles: their tensors are read and no code in them runs. Also the word splitting of old encoders."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import struct
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from biassay.errors import ModelError
from biassay.models.recurrent.pickled_checkpoints import BidirectionalRnn, load_tensors, load_vocabulary
from biassay.models.recurrent.treebank import find_sentences, tokenize_treebank

pytestmark = pytest.mark.extras


class Runs:
    """Unpickled without care, it makes a folder."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


class Storage:
    """Placeholder for a storage while a checkpoint is pickled."""

    def __init__(self, key: str, values: Any) -> None:
        self.key, self.values = key, values


class OldPickler(pickle.Pickler):
    """PyTorch 0.2's way: `_rebuild_tensor`, and storages by reference, on the GPU they were trained on."""

    def persistent_id(self, obj: Any) -> Any:
        if not isinstance(obj, Storage):
            return None
        return "storage", torch.FloatStorage, obj.key, "cuda:0", obj.values.numel(), None

    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, torch.Tensor):
            return NotImplemented
        storage = Storage(str(id(obj)), obj.flatten())
        return torch._utils._rebuild_tensor, (storage, 0, tuple(obj.shape), obj.stride())


def as_python_2(pickled: bytes) -> bytes:
    """The same pickle with byte strings where Python 3 writes text."""
    places: list[Any] = [(at, code.name, argument) for code, argument, at in pickletools.genops(pickled)]
    out = io.BytesIO()
    for (at, name, argument), end in zip(places, [*(p[0] for p in places[1:]), len(pickled)], strict=True):
        short = name == "BINUNICODE"
        out.write(b"U" + bytes([len(argument)]) + argument.encode() if short else pickled[at:end])
    return out.getvalue()


def write_as_in_2017(path: Path, tensors: dict[str, Any]) -> None:
    """A checkpoint as PyTorch 0.2 under Python 2 wrote it on a GPU machine."""
    stream = io.BytesIO()
    OldPickler(stream, protocol=2).dump(OrderedDict(tensors))
    keys = [str(id(value)) for value in tensors.values()]
    parts = [0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}]
    content = b"".join(pickle.dumps(part, protocol=2) for part in parts) + as_python_2(stream.getvalue())
    content += as_python_2(pickle.dumps(keys, protocol=2))
    for value in tensors.values():
        content += struct.pack("<q", value.numel()) + value.numpy().tobytes()
    path.write_bytes(content)


@pytest.mark.parametrize("zipped", [False, True])
def test_tensors_of_a_state_dict_come_out_as_they_are(tmp_path: Path, zipped: bool) -> None:
    state = torch.nn.GRU(3, 2).state_dict()
    torch.save(state, tmp_path / "a.model", _use_new_zipfile_serialization=zipped)
    loaded = load_tensors(tmp_path / "a.model")
    assert list(loaded) == list(state)
    assert all(torch.equal(loaded[name], state[name]) for name in state)


def test_checkpoint_of_python_2_and_a_gpu_is_read_on_the_cpu(tmp_path: Path) -> None:
    state = {"a.weight": torch.arange(6.0).reshape(2, 3), "a.bias": torch.tensor([0.5, -1.0])}
    write_as_in_2017(tmp_path / "old.model", state)
    loaded = load_tensors(tmp_path / "old.model")
    assert {name: value.tolist() for name, value in loaded.items()} == {n: v.tolist() for n, v in state.items()}
    assert {value.device.type for value in loaded.values()} == {"cpu"}


@pytest.mark.parametrize("way", ["old", "zip", "plain"])
@pytest.mark.parametrize(("function", "named"), [(os.mkdir, "posix.mkdir"), (eval, "eval")])
def test_a_checkpoint_that_would_run_something_is_refused_and_does_not(
    tmp_path: Path, way: str, function: Any, named: str
) -> None:
    made = tmp_path / "made"
    evil = Runs(function, str(made) if function is os.mkdir else f"__import__('os').mkdir({str(made)!r})")
    path = tmp_path / "evil.pkl"
    if way == "plain":
        path.write_bytes(pickle.dumps(evil, protocol=2))
    else:
        torch.save({"a": torch.zeros(2), "b": evil}, path, _use_new_zipfile_serialization=way == "zip")
    with pytest.raises(ModelError, match=f"evil.pkl.*contains code that would run.*'{named}'"):
        load_tensors(path)
    assert not made.exists()


def test_a_pickled_module_is_refused_with_what_to_do(tmp_path: Path) -> None:
    torch.save(torch.nn.LSTM(2, 2), tmp_path / "infersent.allnli.pickle")
    with pytest.raises(ModelError, match=r"torch\.nn\.modules\.rnn\.LSTM.*Convert .* to a state dict.*state_dict\(\)"):
        load_tensors(tmp_path / "infersent.allnli.pickle")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1, 2], "expected a state dict of named tensors, got list"),
        ({}, "expected a state dict of named tensors"),
        ({"a": 1}, "got int under 'a'"),
        ({"a": torch.zeros(2).to_sparse()}, "'a' is sparse"),
        ({"a": torch.zeros(2, device="meta")}, "'a' is sparse, quantised or has no values"),
    ],
)
def test_a_checkpoint_of_other_things_than_tensors_is_told(tmp_path: Path, content: Any, message: str) -> None:
    torch.save(content, tmp_path / "a.pt")
    with pytest.raises(ModelError, match=message):
        load_tensors(tmp_path / "a.pt")


WORDS = {"<s>": 0, "café": 1, "n't": 2, "日本": 3}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("kind", [str, bytes])
def test_vocabularies_of_every_protocol_are_read_as_utf_8(tmp_path: Path, protocol: int, kind: type) -> None:
    """Bytes under protocols 0 to 2 need ``_codecs.encode``."""
    words = {word.encode() if kind is bytes else word: number for word, number in WORDS.items()}
    content = {
        "word2id": words,
        "id2word": {number: word for word, number in words.items()},
        "more": [1.5, (None, True)],
    }
    (tmp_path / "v.pkl").write_bytes(pickle.dumps(content, protocol=protocol))
    assert load_vocabulary(tmp_path / "v.pkl") == WORDS


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_vocabulary_that_would_run_something_is_refused_and_does_not(tmp_path: Path, protocol: int) -> None:
    made = tmp_path / "made"
    calls = {
        r"(posix|os)\.system": Runs(os.system, f"mkdir {made}"),
        r"(__builtin__|builtins)\.eval": Runs(eval, f"__import__('os').mkdir({str(made)!r})"),
        r"numpy": np.arange(3),
        r"numpy.*scalar": np.int64(3),
        r"collections\.OrderedDict": OrderedDict(a=1),
        r"getattr": Runs(getattr, "", "join"),
    }
    for named, evil in calls.items():
        path = tmp_path / "v.pkl"
        path.write_bytes(pickle.dumps({"word2id": {"a": 1}, "other": evil}, protocol=protocol))
        with pytest.raises(ModelError, match=rf"v\.pkl.*contains '.*{named}.*could run code"):
            load_vocabulary(path)
    assert not made.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nothing",
        pickle.dumps({"word2id": {"a": 1}})[:-4],
        b"c_codecs\nencode\n(Vabc\nVzip\ntR.",  # another codec than the one bytes need
        b"c_codecs\nencode\n(N(dV__call__\nI1\nstb.",  # an attribute set on what stands in for encode
        b"Pos.system\n.",  # a reference to something outside
        b"\x80\x02\x82\x01.",  # a registered extension
        b"]" * 100 + b"a" * 99,
    ],
)
def test_a_damaged_or_crafted_vocabulary_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "v.pkl").write_bytes(content)
    with pytest.raises(ModelError, match=r"v\.pkl: not a pickled vocabulary, or a damaged one"):
        load_vocabulary(tmp_path / "v.pkl")


def layers(**changes: Any) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(1)
    state = torch.nn.GRU(3, 2, num_layers=2, bidirectional=True).state_dict()
    made = {f"e.{name}": torch.randn(value.shape, generator=generator) for name, value in state.items()}
    return {name: value for name, value in {**made, **changes}.items() if value is not None}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"e.bias_hh_l1_reverse": None}, "lacks the tensor 'e.bias_hh_l1_reverse'"),
        ({"e.weight_ih_l0": None}, "lacks the tensor 'e.weight_ih_l0'; it has e.bias"),
        ({"e.weight_ih_l1": torch.zeros(6, 5)}, r"'e.weight_ih_l1' has the shape \(6, 5\); expected \(6, 4\)"),
        ({"e.weight_hh_l0": torch.zeros(6)}, r"'e.weight_hh_l0' has the shape \(6,\); expected \(6, 2\)"),
        ({"e.weight_hh_l0": torch.zeros(6, 0)}, r"'e.weight_hh_l0' has the shape \(6, 0\)"),
        ({"e.bias_ih_l0": torch.full((6,), torch.nan)}, "'e.bias_ih_l0'.*not finite"),
        ({"e.bias_ih_l0": torch.zeros(6, dtype=torch.int64)}, "'e.bias_ih_l0' .torch.int64.*not finite real"),
        ({"e.weight_ih_l2": torch.zeros(6, 4)}, "lacks the tensor 'e.weight_hh_l2'"),
        ({"decoder.weight": torch.zeros(2)}, "unexpected tensors: decoder.weight"),
    ],
)
def test_a_missing_or_wrong_tensor_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        BidirectionalRnn(Path("a.model"), layers(**changes), "GRU", "e", "cpu")


def test_many_long_sequences_are_split_and_put_back_in_order() -> None:
    """5,000 tokens with padding are more than are run at once."""
    rng = np.random.default_rng(0)
    made = BidirectionalRnn(Path("a.model"), layers(), "GRU", "e", "cpu")
    sequences = [rng.normal(size=(n, 3)).astype(np.float32) for n in rng.integers(1, 900, size=12)]
    alone = np.concatenate([made.pool([sequence], "max") for sequence in sequences])
    np.testing.assert_allclose(made.pool(sequences, "max"), alone, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two.", ["One.", "Two."]),
        ("one. two", ["one.", "two"]),
        ("He left (at last!)  She stayed.", ["He left (at last!)", "She stayed."]),
        ('"Go." He went.', ['"Go."', "He went."]),
        ("Dr. J. Doe of the U.S. Navy, e.g. he.", ["Dr. J. Doe of the U.S. Navy, e.g. he."]),
        ("Well... so it is. 3.5 is a number.", ["Well... so it is.", "3.5 is a number."]),
        ("a . b", ["a .", "b"]),
        ("", []),
        (" \n", []),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert [text[start:end] for start, end in find_sentences(text)] == sentences


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("He left.  She didn't.", ["He", "left", ".", "She", "did", "n't", "."]),
        ("\"Mr. X\" said: ``no'' (twice)", ["``", "Mr.", "X", "''", "said", ":", "``", "no", "''", "(", "twice", ")"]),
        ('Go.\n"Why?"', ["Go", ".", "``", "Why", "?", "''"]),
        ("John's $5, cannot", ["John", "'s", "$", "5", ",", "can", "not"]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert [word for word, _ in tokenize_treebank(text)] == words


@given(st.text(alphabet="aS nt.,!?'\"`()[]{}<>-:;“”’«»é\u00a0\n\u0085%3", max_size=30) | st.text(max_size=30))
def test_words_cover_every_letter_once_in_order_and_stand_where_they_say(text: str) -> None:
    at = 0
    for word, (start, end) in tokenize_treebank(text):
        assert not text[at:start].strip()
        assert text[start:end] == word or (text[start:end] in ('"', "''") and word in ("``", "''"))
        at = end
    assert not text[at:].strip()


def test_a_missing_checkpoint_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="No such file"):
        load_tensors(tmp_path / "a.pt")
    with pytest.raises(ModelError, match="No such file"):
        load_vocabulary(tmp_path / "a_vocab.pkl")


def test_a_vocabulary_of_python_2_is_read_as_utf_8(tmp_path: Path) -> None:
    (tmp_path / "v.pkl").write_bytes(b"(dp0\nS'word2id'\np1\n(dp2\nS'caf\\xc3\\xa9'\np3\nI7\nsS'\\xc3'\np4\nI8\nss.")
    assert load_vocabulary(tmp_path / "v.pkl") == {"café": 7}  # the other is half a letter
