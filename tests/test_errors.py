"""Errors: what they suggest to type next."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from biassay import errors


def install_from(monkeypatch: pytest.MonkeyPatch, origin: object) -> None:
    text = None if origin is None else json.dumps(origin)
    monkeypatch.undo()
    monkeypatch.setattr(metadata, "distribution", lambda _: SimpleNamespace(read_text=lambda _: text))


def test_a_release_is_installed_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    install_from(monkeypatch, None)
    assert errors.format_install_command("hf", "api") == 'pip install "biassay[hf,api]"'
    install_from(monkeypatch, {"url": "https://example.org/biassay.whl", "archive_info": {}})
    assert errors.format_install_command("hf") == 'pip install "biassay[hf]"'


@pytest.mark.parametrize(("editable", "options"), [(False, ""), (True, "-e ")])
def test_a_clone_is_installed_from_its_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, editable: bool, options: str
) -> None:
    clone = tmp_path / "my clone"
    clone.mkdir()
    install_from(monkeypatch, {"url": clone.as_uri(), "dir_info": {"editable": editable}})
    monkeypatch.chdir(clone)
    assert errors.format_install_command("hf") == f'pip install {options}".[hf]"'
    monkeypatch.chdir(tmp_path)
    assert errors.format_install_command("hf") == f'pip install {options}"{clone}[hf]"'


def test_many_words_are_counted() -> None:
    words = [f"word{number}" for number in range(20_000)]
    assert errors.format_examples(words, 2) == "word0, word1 and 19,998 more"
    assert len(errors.format_examples(words)) < 100
    assert errors.format_examples(words[:2]) == "word0, word1"
