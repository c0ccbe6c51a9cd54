"""Secrets: good ones only, never shown."""

import copy
import json
import os
import pickle
import traceback
from pathlib import Path

import pytest

from inga.keys.secret import Secret
from inga.model.errors import KeysError

TEXT = "inga-secret-aaaqeayeaudaocajbifqydiob4ibceqtcqkrmfyydenbwha5dyp6bwlv"


def shown(secret: Secret) -> list[str]:
    """All forms that a secret might be seen in."""
    return [secret.octets.hex(), secret.text(), secret.text().replace("-", ""), repr(secret.octets)[2:-1]]


def test_the_text_of_a_secret_is_always_the_same() -> None:
    secret = Secret(bytes(range(32)))
    assert secret.text().replace("-", "") == TEXT.replace("-", "")
    assert Secret.parse(TEXT) == secret


@pytest.mark.parametrize("size", [16, 17, 20, 32, 64])
def test_text_says_the_whole_secret(size: int) -> None:
    secret = Secret(os.urandom(size))
    again = Secret.parse(secret.text())
    assert again == secret and again.octets == secret.octets and again.bits == 8 * size
    assert Secret.parse(f"  {secret.text().upper().replace('-', ' - ')}\n") == secret


def test_each_is_another() -> None:
    first, second = Secret.make(), Secret.make()
    assert first != second and first.bits == 256
    assert first.fingerprint() != second.fingerprint()
    assert first != first.octets  # type: ignore[comparison-overlap]


def test_every_single_typing_error_is_found() -> None:
    secret = Secret(bytes(range(100, 132)))
    text = secret.text()
    start = len("inga-secret-")
    for place in range(start, len(text)):
        if text[place] != "-":
            wrong = "b" if text[place] != "b" else "c"
            with pytest.raises(KeysError) as raised:
                Secret.parse(text[:place] + wrong + text[place + 1 :])
            assert raised.value.reason == "mistyped"
    for cut in range(start, len(text) - 1):
        with pytest.raises(KeysError, match="mistyped"):
            Secret.parse(text[:cut])


@pytest.mark.parametrize(
    "text", ["", "swordfish", "correct horse battery staple " * 4, "a" * 64, "inga-secre-"]
)
def test_passphrases_are_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(KeysError, match="inga keys secret") as raised:
        Secret.parse(text)
    assert raised.value.reason == "weak"
    assert not text or text.strip() not in str(raised.value)


@pytest.mark.parametrize("octets", [b"", bytes(15), bytes(65), "text of 16 chars", bytearray(32)])
def test_octets_that_are_no_secret(octets: bytes) -> None:
    with pytest.raises(KeysError, match="inga keys secret"):
        Secret(octets)


def test_nothing_shows_it() -> None:
    secret = Secret(b"0123456789abcdefghijklmnopqrstuv")
    views = [repr(secret), str(secret), f"{secret}", f"{[secret]}", repr(KeysError("x", str(secret)))]
    try:
        Secret.parse(secret.text()[:-1] + "!")
    except KeysError as error:
        views += [repr(error), "".join(traceback.format_exception(error))]
    for view in views:
        for form in shown(secret):
            assert form not in view
    assert not hasattr(secret, "__dict__")
    with pytest.raises(TypeError):
        json.dumps(secret)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="not pickled"):
            pickle.dumps(secret, protocol)
    assert copy.copy(secret) is secret and copy.deepcopy([secret])[0] is secret


def test_files(tmp_path: Path) -> None:
    secret = Secret.make()
    path = secret.save(tmp_path / "lunch.secret")
    assert path.stat().st_mode & 0o777 == 0o600
    assert Secret.load(path) == secret
    with pytest.raises(KeysError, match="not written over"):
        Secret.make().save(path)
    assert Secret.load(path) == secret
    path.chmod(0o640)
    assert Secret.load(path) == secret
    path.chmod(0o644)
    with pytest.raises(KeysError, match="chmod 600") as raised:
        Secret.load(path)
    assert raised.value.reason == "exposed"
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "huge").write_bytes(bytes(2 << 20))
    for name in ("binary", "huge"):
        with pytest.raises(KeysError):
            Secret.load(tmp_path / name)


def test_what_is_wrong_with_a_file_names_it(tmp_path: Path) -> None:
    certificate, short = tmp_path / "alice.pem", tmp_path / "short.secret"
    certificate.write_text("-----BEGIN CERTIFICATE-----")
    short.write_text(Secret.make().text()[:-4])
    for path in (certificate, short):
        path.chmod(0o600)
    with pytest.raises(KeysError, match=r"alice.pem holds no secret"):
        Secret.load(certificate)
    with pytest.raises(KeysError, match=r"short.secret: this secret was mistyped"):
        Secret.load(short)
