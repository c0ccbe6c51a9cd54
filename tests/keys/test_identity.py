"""Authorities, certificates and who is believed."""

import copy
import datetime
import os
import pickle
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("cryptography")

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from inga.keys.authority import Authority
from inga.keys.certificates import CERTIFICATE_MAX, check_certificate, facts, read_pem
from inga.keys.identity import Identity
from inga.model.errors import KeysError

NOW = 1_800_000_000.0
DAY = 86_400.0
AUTHORITY = Authority.make("lunch", days=100, now=NOW)
ALICE = AUTHORITY.issue("alice", hosts=["alice.example.org", "192.0.2.7", "::1"], days=10, now=NOW)


def reason(certificate: bytes, name: str | None = "alice", now: float = NOW, *trusted: bytes) -> str:
    """Why a certificate is refused."""
    with pytest.raises(KeysError) as raised:
        check_certificate(certificate, trusted or (AUTHORITY.certificate,), name, now)
    return raised.value.reason


def forged(key: Any = None, issuer: x509.Certificate | None = None, **changes: Any) -> bytes:
    """Alice's certificate with something else in it, signed by the authority all the same."""
    real = x509.load_der_x509_certificate(ALICE.certificate)
    builder = x509.CertificateBuilder(
        subject_name=real.subject,
        issuer_name=real.issuer,
        public_key=changes.get("public_key", real.public_key()),
        serial_number=real.serial_number,
        not_valid_before=real.not_valid_before_utc,
        not_valid_after=real.not_valid_after_utc,
    )
    for each in real.extensions:
        value = changes.get(type(each.value).__name__, each.value)
        if value is not None:
            builder = builder.add_extension(value, each.critical)
    if "more" in changes:
        builder = builder.add_extension(changes["more"], critical=True)
    made = builder.sign(AUTHORITY._key if key is None else key, None)
    return made.public_bytes(serialization.Encoding.DER)


def test_a_member_is_believed_what_it_signed_and_nothing_else() -> None:
    verifier = check_certificate(ALICE.certificate, [AUTHORITY.certificate], "alice", NOW)
    assert verifier.name == "alice" and verifier.ends == NOW + 10 * DAY
    signature = ALICE.sign(b"hello")
    verifier.verify(signature, b"hello")
    bob = AUTHORITY.issue("bob", now=NOW)
    for wrong, data in [
        (signature, b"hullo"),
        (signature[:-1] + bytes([signature[-1] ^ 1]), b"hello"),
        (signature[:-1], b"hello"),
        (b"", b"hello"),
        (bob.sign(b"hello"), b"hello"),
        (ALICE._key.sign(b"hello"), b"hello"),  # made for another purpose
    ]:
        with pytest.raises(KeysError) as raised:
            verifier.verify(wrong, data)
        assert raised.value.reason == "signature"


def test_who_is_refused_and_why() -> None:
    assert reason(ALICE.certificate, "bob") == "wrong_name"
    assert reason(ALICE.certificate, "Alice") == "wrong_name"
    assert reason(ALICE.certificate, "alice", NOW + 10 * DAY + 1) == "expired"
    assert reason(ALICE.certificate, "alice", NOW - 301) == "not_yet_valid"
    assert reason(AUTHORITY.certificate, "lunch") == "not_a_member"
    other = Authority.make("lunch", now=NOW)  # the same name, another key
    assert reason(ALICE.certificate, "alice", NOW, other.certificate) == "unknown_authority"
    assert reason(ALICE.certificate, "alice", NOW, ALICE.certificate) == "unknown_authority"
    with pytest.raises(KeysError, match="not trusted"):
        check_certificate(ALICE.certificate, [], "alice", NOW)
    check_certificate(ALICE.certificate, [other.certificate, AUTHORITY.certificate], None, NOW)


def test_a_member_is_no_authority() -> None:
    """Whoever has a certificate cannot issue any, for itself or others."""
    bob = AUTHORITY.issue("bob", now=NOW)
    assert reason(forged(key=bob._key)) == "unknown_authority"
    assert (
        reason(forged(key=bob._key), "alice", NOW, AUTHORITY.certificate, bob.certificate)
        == "unknown_authority"
    )


def test_certificates_of_an_authority_that_are_no_members() -> None:
    names = x509.UniformResourceIdentifier
    cases: list[tuple[str, dict[str, Any]]] = [
        ("not_a_member", {"BasicConstraints": x509.BasicConstraints(True, None)}),
        ("not_a_member", {"KeyUsage": None}),
        ("key_type", {"public_key": ec.generate_private_key(ec.SECP256R1()).public_key()}),
        ("wrong_name", {"SubjectAlternativeName": None}),
        ("wrong_name", {"SubjectAlternativeName": x509.SubjectAlternativeName([names("urn:inga:member:bob")])}),
        ("wrong_name", {"SubjectAlternativeName": x509.SubjectAlternativeName(
            [names("urn:inga:member:alice"), names("urn:inga:member:bob")])}),
        ("malformed", {"SubjectAlternativeName": x509.SubjectAlternativeName([names("urn:inga:member:%ff")])}),
        ("malformed", {"more": x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3"), b"x")}),
    ]  # fmt: skip
    assert facts(forged()) and check_certificate(forged(), [AUTHORITY.certificate], "alice", NOW)
    for why, changes in cases:
        assert reason(forged(**changes)) == why, changes


def test_an_authority_that_has_expired_vouches_for_nobody() -> None:
    short = Authority.make("short", days=1, now=NOW)
    member = short.issue("alice", days=365, now=NOW)
    assert facts(member.certificate).ends.timestamp() == NOW + DAY
    assert reason(member.certificate, "alice", NOW + DAY + 1, short.certificate) == "expired"
    with pytest.raises(KeysError, match="expired"):
        short.issue("alice", now=NOW + DAY)


@pytest.mark.parametrize("name", ["a", "ありす", "a/b c%2F\n\x00", "🐈" * 255, "urn:inga:member:bob", "*.x"])
def test_any_name_of_a_member_fits(name: str) -> None:
    member = AUTHORITY.issue(name, now=NOW)
    assert member.name == facts(member.certificate).name == name
    check_certificate(member.certificate, member.trusted, name, NOW)


@pytest.mark.parametrize("name", ["", "x" * 256, "\ud800"])
def test_names_that_no_member_has(name: str) -> None:
    with pytest.raises(KeysError) as raised:
        AUTHORITY.issue(name, now=NOW)
    assert raised.value.reason == "wrong_name"


def test_hosts() -> None:
    assert facts(ALICE.certificate).hosts == ("alice.example.org", "192.0.2.7", "::1")
    assert facts(AUTHORITY.issue("b", hosts=["münchen.example"], now=NOW).certificate).hosts == (
        "xn--mnchen-3ya.example",
    )
    for host in ("", "a b", "a/b", "*", "x" * 64):
        with pytest.raises(KeysError, match="neither a host name nor an address"):
            AUTHORITY.issue("b", hosts=[host], now=NOW)
    with pytest.raises(KeysError, match="fewer hosts"):
        AUTHORITY.issue("b", hosts=[f"host-{i}.example.org" for i in range(400)], now=NOW)
    for days in (0, -1, 1e9):
        with pytest.raises(KeysError, match="days"):
            AUTHORITY.issue("b", days=days, now=NOW)


def test_octets_that_are_no_certificate() -> None:
    random = Random(1)
    for octets in (b"", b"x", bytes(CERTIFICATE_MAX), bytes(CERTIFICATE_MAX + 1), ALICE.certificate[:-1]):
        assert reason(octets) == "malformed"
    for bit in range(8):  # of those that are left over in a signature, none
        changed = bytearray(ALICE.certificate)
        changed[-65] ^= 1 << bit
        assert reason(bytes(changed)) == "malformed"
    for _ in range(2000):
        changed = bytearray(ALICE.certificate)
        for _ in range(random.randint(1, 3)):
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
        assert bytes(changed) == ALICE.certificate or reason(bytes(changed)) in (
            "malformed",
            "unknown_authority",
        )


def test_a_key_that_confuses_the_package() -> None:
    """Found by `inga fuzz`: the package raises an error of its own for it, which is no ValueError."""
    head, tail = "-----BEGIN PRIVATE ", "-----END PRIVATE "
    text = "MC4CAQAwBQYDK2VvBCIEIA" + "0" * 23 + "A" * 19
    with pytest.raises(KeysError, match="cannot be read"):
        read_pem(f"{head}KEY-----{text}{tail}KEY-----".encode(), "here")


def test_files(tmp_path: Path) -> None:
    folder = AUTHORITY.save(tmp_path / "lunch")
    assert (folder / "authority.key").stat().st_mode & 0o777 == 0o600
    assert b"PRIVATE" not in (folder / "authority.pem").read_bytes()
    again = Authority.load(folder)
    assert again.name == "lunch" and again.certificate == AUTHORITY.certificate
    bob = again.issue("bob", now=NOW)
    path = bob.save(tmp_path / "bob.pem")
    assert path.stat().st_mode & 0o777 == 0o600
    loaded = Identity.load(path)
    assert (loaded.name, loaded.certificate, loaded.trusted) == ("bob", bob.certificate, bob.trusted)
    loaded.check(NOW).verify(loaded.sign(b"x"), b"x")
    for write in (lambda: bob.save(path), lambda: AUTHORITY.save(folder)):
        with pytest.raises(KeysError, match="not written over"):
            write()
    path.chmod(0o604)
    with pytest.raises(KeysError, match="chmod 600"):
        Identity.load(path)


def test_one_file_each(tmp_path: Path) -> None:
    private, own, authority = tmp_path / "key", tmp_path / "certificate", tmp_path / "authority"
    ALICE.save(tmp_path / "all")
    parts = (tmp_path / "all").read_bytes().split(b"-----BEGIN CERTIFICATE")
    for path, part in zip((private, own, authority), parts, strict=True):
        path.write_bytes(part if path is private else b"-----BEGIN CERTIFICATE" + part)
    private.chmod(0o600)
    assert Identity.load(own, private, authority).name == "alice"
    for paths, why in [
        ((own, private), "no certificate of an authority"),
        ((own,), "no private key"),
        ((authority, private), "no certificate of the private key"),
    ]:
        with pytest.raises(KeysError, match=why):
            Identity.load(*paths)
    with pytest.raises(KeysError, match="authority"):
        Identity(AUTHORITY.certificate, AUTHORITY._key, ())
    with pytest.raises(KeysError, match="member alice"):
        Authority(ALICE.certificate, ALICE._key)
    with pytest.raises(KeysError, match="private key"):
        Identity(ALICE.certificate, AUTHORITY._key, ())
    with pytest.raises(FileNotFoundError):
        Identity.load(tmp_path / "none")


@pytest.mark.parametrize("kind", ["garbage", "P-256", "password"])
def test_files_that_hold_no_key_of_ours(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "key"
    how: Any = serialization.NoEncryption()
    key: Any = Ed25519PrivateKey.generate()
    if kind == "P-256":
        key = ec.generate_private_key(ec.SECP256R1())
    if kind == "password":
        how = serialization.BestAvailableEncryption(b"x")
    content = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how)
    path.write_bytes(content.replace(b"M", b"\x00") if kind == "garbage" else content)
    path.chmod(0o600)
    with pytest.raises(KeysError, match="cannot be read as keys" if kind == "garbage" else "Ed25519"):
        Identity.load(path)


def test_nothing_shows_a_private_key() -> None:
    raw = ALICE._key.private_bytes_raw()
    for holder in (ALICE, AUTHORITY):
        assert raw.hex() not in repr(holder) and "Ed25519" not in repr(holder)
        assert not hasattr(holder, "__dict__")
        assert copy.deepcopy([holder])[0] is holder and copy.copy(holder) is holder
        with pytest.raises(TypeError, match="not pickled"):
            pickle.dumps(holder)
    assert repr(AUTHORITY.issue("a\nb", now=NOW)) == r"<Identity of a\nb>"
    assert b"ENCRYPTED" in ALICE.private_pem(b"password")


def test_the_clock_is_asked_unless_a_time_is_given() -> None:
    known = facts(Authority.make("now", days=1).certificate)
    now = datetime.datetime.now(datetime.UTC)
    assert known.begins < now < known.ends < now + datetime.timedelta(days=1, seconds=1)


def test_without_the_package_an_error_says_how_to_get_it() -> None:
    program = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from inga import Authority, Identity, Secret\n"
        "Secret.parse(Secret.make().text())\n"
        "try: Authority.make('x')\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    path = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert (
        done.stdout == "KeysError certificates need the package `cryptography`: pip install 'inga[secure]'\n"
    )
