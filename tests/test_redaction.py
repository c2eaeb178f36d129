"""Redaction: the forms in which a secret comes back, and texts that must stay as they are."""

from __future__ import annotations

import html
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from biassay import redaction
from biassay.cli import main
from biassay.errors import UsageError
from biassay.object_storage import is_url
from biassay.redaction import has_password, protect, redact, redact_url

KEY = "sk-proj-Ab3/d9+Zz_7Qwertyuiop%41&x"

FORMS = {
    "as it is": KEY,
    "JSON": json.dumps(KEY),
    "HTML": html.escape(KEY),
    "query": quote(KEY, safe=""),
    "the first half": KEY[: len(KEY) // 2 + 3],
    "the second half": KEY[len(KEY) // 2 - 3 :],
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_of_a_secret_is_redacted(form: str) -> None:
    shown = redact(f"Your key is {form} and so on.", KEY)
    assert "[key]" in shown
    assert shown.startswith("Your key is ")
    assert shown.endswith(" and so on.")
    assert shown[12:-11].strip('"') == "[key]"


@given(st.text(), st.text(alphabet=st.characters(codec="ascii"), min_size=1))
def test_the_rest_of_a_text_stays(text: str, secret: str) -> None:
    shown = redact(f"{text}{secret}", secret)
    assert secret not in shown or secret in "[key]" * 2 or not secret.strip()
    assert redact(text) == text


@pytest.mark.parametrize("placeholder", ["none", "EMPTY", "x", "password", "not-needed", "123456789"])
def test_a_placeholder_is_left_in_replies_and_hidden_in_errors(
    placeholder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redaction, "_protected", set())
    protect(placeholder)
    said = f"The answer is {placeholder}."
    assert redact(said) == said
    assert redact(said, placeholder) != said


def test_a_protected_secret_is_redacted_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_protected", set())
    protect(KEY)
    protect("gsk_another1")
    assert redact(f"{KEY}, gsk_another1") == "[key], [key]"


PASSWORDS = [
    "s3://AKIA123:se/cr+et@bucket/dir",
    "s3:/AKIA123:secret@bucket",
    "s3:AKIA123:secret@bucket",
    "gs://user:secret@bucket",
    "https://user:se@cret@host/x",
    "postgresql+psycopg://u:secret@h:port/db",
    "s3://AKIA123%3Asecret@bucket/dir",
    "s3://AKIA123secret@bucket/dir",
    "https://secret@host/x.jsonl",
    "s3://bucket/dir?access_key=AKIA123&secret_key=secret",
    "gs://bucket?token=secret",
    "https://host/x.jsonl?X-Amz-Date=1&X-Amz-Signature=secret",
    "https://account.blob.host/x?se=2026&sig=secret",
]


@pytest.mark.parametrize("address", PASSWORDS)
def test_a_url_with_a_password_is_refused_and_not_shown(address: str) -> None:
    assert has_password(address)
    with pytest.raises(UsageError, match="must not contain a key or a password") as caught:
        is_url(address)
    for text in (str(caught.value), redact_url(f"cannot open {address!r}")):
        assert "cr" not in text.replace("[secret]", "").replace("secret_key=", "")
        assert "AKIA" not in text


@pytest.mark.parametrize(
    "address",
    ["s3://AKIA123:secret@bucket", "s3:/AKIA123:secret@bucket", "s3://bucket/dir?access_key=AKIA123&secret_key=x"],
)
def test_a_cache_with_a_secret_in_its_url_is_refused_and_not_shown(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["run", "glove", "--tests", "weat6", "--cache", address])
    assert stopped.value.code == 2
    shown = capsys.readouterr().err
    assert "AWS_SECRET_ACCESS_KEY" in shown
    assert "AKIA123" not in shown


@pytest.mark.parametrize(
    "address",
    [
        "s3://bucket/a@b",
        "hf://datasets/o/n@refs/x",
        "sftp://host:22/a@b",
        "gs://anonymous@bucket/x",
        "sftp://me@h/x",
        "abfs://container@account.host/x",
        "s3://bucket?region=eu",
    ],
)
def test_other_urls_are_used(address: str) -> None:
    assert is_url(address)
    assert not has_password(address)


def test_secrets_among_parameters_are_not_shown() -> None:
    shown = redact_url("https://h/x?X-Amz-Signature=abc&part=1&access_token=abc: 403")
    assert shown == "https://h/x?X-Amz-Signature=[secret]&part=1&access_token=[secret] 403"
