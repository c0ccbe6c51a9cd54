"""Certificates: X.509 with Ed25519 keys, so that one certificate serves both the handshake of a group and TLS.

A member's name stands in its certificate as a URI (`urn:inga:member:alice`, escaped: any name fits); hosts under which it is reached by
TLS stand beside it. There are two kinds of certificates, and an authority signs its members' directly:

    authority  its key signs certificates, nothing else; self-signed
    member     its key signs data of the member, nothing else; signed by an authority

This is the only module of the room that needs the package `cryptography`. The others import it when they first need it.
"""

import datetime
import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote, unquote

from inga.model.errors import KeysError
from inga.model.text import printable

try:
    from cryptography import x509
    from cryptography.exceptions import InternalError, InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError:
    raise KeysError(
        "missing", "certificates need the package `cryptography`: pip install 'inga[secure]'"
    ) from None

Extension = TypeVar("Extension", bound=x509.ExtensionType)

MEMBER_URI = "urn:inga:member:"
LABEL = b"inga: said by a member of a group, and not a part of TLS nor of a certificate\0"
"""The prefix of all data that a member signs: a signature made for one purpose is not valid for another."""
NAME_MAX = 255
"""Characters of a member's name."""
COMMON_NAME_MAX = 64
"""Octets of the name that X.509 has room for; it is shown to people and never compared."""
CERTIFICATE_MAX = 8192
"""Octets; ours have 500 and a little for each host."""
SIGNATURE = b"\x03\x41\x00"
"""What precedes a signature of 64 octets in DER: the type and length of a bit string, and that it has no unused bits."""
SKEW = datetime.timedelta(minutes=5)
"""A certificate is valid from so long before it was made, since clocks differ."""
KNOWN = {x509.BasicConstraints, x509.KeyUsage, x509.ExtendedKeyUsage, x509.SubjectAlternativeName}
"""Extensions that we act upon. A certificate in which another one is critical is refused."""
UNREADABLE = (ValueError, TypeError, InternalError, UnsupportedAlgorithm, x509.DuplicateExtension,
              x509.InvalidVersion, x509.UnsupportedGeneralNameType, Warning)  # fmt: skip
"""What the package raises for octets that are no certificate; Warning, if Python is told to raise warnings as errors."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The contents of a certificate, to show to people."""

    name: str
    is_authority: bool
    issuer: str
    hosts: tuple[str, ...]
    begins: datetime.datetime
    ends: datetime.datetime
    fingerprint: str
    """SHA-256 of the certificate."""


class Verifier:
    """Verifies the signatures of one member. Made by `check_certificate`."""

    __slots__ = ("name", "ends", "_key")

    def __init__(self, name: str, ends: float, key: Ed25519PublicKey) -> None:
        self.name = name
        self.ends = ends
        """Until when the certificate is valid, in seconds since 1970."""
        self._key = key

    def verify(self, signature: bytes, data: bytes) -> None:
        """Raise KeysError unless the member signed this data."""
        try:
            self._key.verify(signature, LABEL + data)
        except InvalidSignature:
            raise KeysError("signature", f"this was not signed by {printable(self.name)}") from None


def check_certificate(
    certificate: bytes, authorities: Iterable[bytes], name: str | None, now: float
) -> Verifier:
    """Check that this is the certificate of the member `name` (None: of any) by one of the authorities, all in DER, and valid now.

    `now` is in seconds since 1970. A KeysError says what is wrong. Nothing in the certificate is believed before the
    signature of an authority is verified.
    """
    leaf = _parsed(certificate)
    if not certificate.endswith(SIGNATURE + leaf.signature):  # the only octets that no signature covers
        raise KeysError("malformed", "the certificate does not end with an Ed25519 signature")
    issuer = _issuer(leaf, authorities)
    try:
        _check_leaf(leaf)
        _check_time(leaf, "the certificate", now)
        _check_time(issuer, "the authority's certificate", now)
        found = _member_name(leaf)
        key = leaf.public_key()
    except UNREADABLE as error:
        raise KeysError("malformed", f"this certificate cannot be read: {error}") from None
    if name is not None and found != name:
        raise KeysError(
            "wrong_name", f"the certificate is that of {printable(found)}, not of {printable(name)}"
        )
    if not isinstance(key, Ed25519PublicKey):
        raise KeysError("key_type", "the certificate is not for an Ed25519 key")
    return Verifier(found, leaf.not_valid_after_utc.timestamp(), key)


def _issuer(leaf: x509.Certificate, authorities: Iterable[bytes]) -> x509.Certificate:
    for authority in map(_parsed, authorities):
        try:
            if _is_authority(authority) and isinstance(authority.public_key(), Ed25519PublicKey):
                leaf.verify_directly_issued_by(authority)
                return authority
        except (InvalidSignature, *UNREADABLE):
            continue
    raise KeysError("unknown_authority", "the certificate is by an authority that is not trusted here")


def _check_leaf(leaf: x509.Certificate) -> None:
    if any(each.critical and type(each.value) not in KNOWN for each in leaf.extensions):
        raise KeysError("malformed", "the certificate has a critical extension that is not known")
    usage = _extension(leaf, x509.KeyUsage)
    if _is_authority(leaf) or usage is None or usage.key_cert_sign or not usage.digital_signature:
        raise KeysError("not_a_member", "the certificate is not a member's, but perhaps an authority's")


def _is_authority(certificate: x509.Certificate) -> bool:
    constraints = _extension(certificate, x509.BasicConstraints)
    return constraints is not None and constraints.ca


def _extension(certificate: x509.Certificate, kind: type[Extension]) -> Extension | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def _check_time(certificate: x509.Certificate, what: str, now: float) -> None:
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < begins.timestamp():
        raise KeysError("not_yet_valid", f"{what} is not valid before {begins:%Y-%m-%d %H:%M} UTC")
    if now > ends.timestamp():
        raise KeysError("expired", f"{what} has expired on {ends:%Y-%m-%d %H:%M} UTC")


def _member_name(leaf: x509.Certificate) -> str:
    uris = _others(leaf).get_values_for_type(x509.UniformResourceIdentifier)
    found = [uri for uri in uris if uri.startswith(MEMBER_URI)]
    if len(found) != 1:
        how_many = "no" if not found else "more than one"
        raise KeysError("wrong_name", f"the certificate names {how_many} member of a group")
    return unquote(found[0].removeprefix(MEMBER_URI), errors="strict")


def _hosts(certificate: x509.Certificate) -> tuple[str, ...]:
    names = _others(certificate)
    return (*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress)))


def _others(certificate: x509.Certificate) -> x509.SubjectAlternativeName:
    return _extension(certificate, x509.SubjectAlternativeName) or x509.SubjectAlternativeName([])


def _parsed(certificate: bytes) -> x509.Certificate:
    if len(certificate) > CERTIFICATE_MAX:
        raise KeysError("malformed", f"a certificate has at most {CERTIFICATE_MAX} octets")
    try:
        return x509.load_der_x509_certificate(certificate)
    except UNREADABLE as error:
        raise KeysError("malformed", f"this certificate cannot be read: {error}") from None


def facts(certificate: bytes) -> Facts:
    """The contents of a certificate, none of which is verified."""
    parsed = _parsed(certificate)
    try:
        is_authority = _is_authority(parsed)
        name = _common_name(parsed.subject) if is_authority else _member_name(parsed)
        return Facts(
            name,
            is_authority,
            _common_name(parsed.issuer),
            _hosts(parsed),
            parsed.not_valid_before_utc,
            parsed.not_valid_after_utc,
            parsed.fingerprint(hashes.SHA256()).hex(),
        )
    except UNREADABLE as error:
        raise KeysError("malformed", f"this certificate cannot be read: {error}") from None


def _common_name(name: x509.Name) -> str:
    return next((str(each.value) for each in name.get_attributes_for_oid(NameOID.COMMON_NAME)), "")


# Making certificates


def make_authority(key: Ed25519PrivateKey, name: str, days: float, now: datetime.datetime) -> bytes:
    """The certificate of an authority, signed by itself."""
    if not 0 < len(name.encode()) <= COMMON_NAME_MAX:
        raise KeysError("wrong_name", f"an authority needs a name, of at most {COMMON_NAME_MAX} octets")
    subject = _subject(name)
    builder = _builder(subject, subject, key.public_key(), key, now, now + _days(days))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(certificates=True), critical=True)
    return _signed(builder, key)


def make_member(
    authority: bytes, key: Ed25519PrivateKey, member: Ed25519PublicKey, name: str, hosts: Sequence[str],
    days: float, now: datetime.datetime,
) -> bytes:  # fmt: skip
    """The certificate of a member, signed by the authority that has this certificate and key."""
    if not 0 < len(name) <= NAME_MAX:
        raise KeysError("wrong_name", f"a member needs a name, of at most {NAME_MAX} characters")
    issuer = _parsed(authority)
    ends = min(now + _days(days), issuer.not_valid_after_utc)
    if ends <= now:
        raise KeysError("expired", "the authority's certificate has expired; make a new authority")
    try:
        uri = MEMBER_URI + quote(name, safe="")
        names = [x509.UniformResourceIdentifier(uri), *map(_host, hosts)]
    except UnicodeEncodeError:
        raise KeysError("wrong_name", f"{printable(name)} is no text that can be written") from None
    builder = _builder(_subject(name), issuer.subject, member, key, now, ends)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(certificates=False), critical=True)
    both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = builder.add_extension(x509.ExtendedKeyUsage(both), critical=False)
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    certificate = _signed(builder, key)
    if len(certificate) > CERTIFICATE_MAX:
        raise KeysError("malformed", f"a certificate has at most {CERTIFICATE_MAX} octets: name fewer hosts")
    return certificate


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: Ed25519PublicKey,
    signer: Ed25519PrivateKey,
    now: datetime.datetime,
    ends: datetime.datetime,
) -> x509.CertificateBuilder:
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    return (
        x509.CertificateBuilder(subject_name=subject, issuer_name=issuer, public_key=key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(identifier, critical=False)
    )


def _signed(builder: x509.CertificateBuilder, key: Ed25519PrivateKey) -> bytes:
    return builder.sign(key, None).public_bytes(serialization.Encoding.DER)


def _subject(name: str) -> x509.Name:
    """The name as an X.509 subject, truncated to what there is room for."""
    short = name.encode(errors="replace")[:COMMON_NAME_MAX].decode(errors="ignore")
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, short)])


def _usage(*, certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not certificates,
        key_cert_sign=certificates,
        crl_sign=certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        name = host.encode("idna").decode()
    except UnicodeError:
        name = ""
    if not name or not all(each.isalnum() or each in "-." for each in name):
        raise KeysError("wrong_name", f"{printable(host)} is neither a host name nor an address")
    return x509.DNSName(name)


def _days(days: float) -> datetime.timedelta:
    if not 0 < days <= 36_500:
        raise KeysError("malformed", f"a certificate is valid for some days, up to 36500, not for {days:g}")
    return datetime.timedelta(days=days)


# Keys and PEM


def make_key() -> Ed25519PrivateKey:
    """A new private key."""
    return Ed25519PrivateKey.generate()


def sign(key: Ed25519PrivateKey, data: bytes) -> bytes:
    """The signature of this data for `Verifier.verify`."""
    return key.sign(LABEL + data)


def private_pem(key: Ed25519PrivateKey, password: bytes | None = None) -> bytes:
    """A private key as PEM text; it is encrypted only with a password."""
    how = (
        serialization.NoEncryption() if password is None else serialization.BestAvailableEncryption(password)
    )
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how)


def certificate_pem(certificate: bytes) -> bytes:
    """A certificate as PEM text."""
    return _parsed(certificate).public_bytes(serialization.Encoding.PEM)


def is_of_key(certificate: bytes, key: Ed25519PrivateKey) -> bool:
    """Whether a certificate is for this key."""
    return _parsed(certificate).public_key() == key.public_key()


def read_pem(content: bytes, where: str) -> tuple[list[bytes], Ed25519PrivateKey | None]:
    """The certificates, in DER, and the private key in a file."""
    try:
        certificates = (
            x509.load_pem_x509_certificates(content) if b"-----BEGIN CERTIFICATE" in content else []
        )
        begin = content.find(b"-----BEGIN PRIVATE KEY")
        if begin < 0 and b" PRIVATE KEY-----" in content:
            raise KeysError("key_type", f"{where}: the private key is not Ed25519, or needs a password")
        key = serialization.load_pem_private_key(content[begin:], None) if begin >= 0 else None
    except UNREADABLE:
        raise KeysError("malformed", f"{where} cannot be read as keys and certificates (PEM)") from None
    if key is not None and not isinstance(key, Ed25519PrivateKey):
        raise KeysError("key_type", f"{where}: the private key is not Ed25519")
    return [each.public_bytes(serialization.Encoding.DER) for each in certificates], key
