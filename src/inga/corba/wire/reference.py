"""References to objects and to groups of them: IOR, their profiles and components, and corbaloc URLs.

A reference is a type and a list of profiles, each of which says how to reach the object by one protocol. Two kinds
are decoded here, all others are kept as they are:

    TAG_INTERNET_IOP  IIOP: version, host, port, object key, components (from version 1.1)
    TAG_UIPMC         MIOP: version, multicast address, port, components

A group has no object key. Its identity is a component of its profiles, TAG_GROUP: domain, number and version of
the group. A second component, TAG_GROUP_IIOP, names an object that answers requests which need a reply, since a group
cannot, and an additional IIOP profile names a gateway for clients that cannot multicast. Each profile and component is an
encapsulation, so each has a byte order of its own.

As text a reference is `IOR:` and the encapsulation in hexadecimal, or a URL:

    corbaloc:miop:1.0@1.0-DOMAIN-GROUP[-VERSION]/ADDRESS:PORT[;iiop:HOST:PORT/KEY][,iiop:HOST:PORT/KEY]
    corbaloc:iiop:1.2@HOST:PORT/KEY
    corbaloc:ssliop:1.2@HOST:PORT/KEY             over TLS

The TLS port of an object is in a component, TAG_SSL_SEC_TRANS; the port in the profile is 0 if the object is reached by TLS only.
A component of inga's own names the member whose certificate the server has.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Any, NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

from inga.corba.wire.cdr import Decoder, Encoder
from inga.corba.wire.giop import HEADER_TEXT, Tagged, get_tagged, put_tagged
from inga.model.errors import UsageError, WireError
from inga.model.packet import Buffer

TAG_INTERNET_IOP = 0
TAG_UIPMC = 3
TAG_SSL_SEC_TRANS = 20
TAG_GROUP = 39
TAG_GROUP_IIOP = 40
JACORB_GROUP_IIOP = 0
"""The number that JacORB uses in place of TAG_GROUP_IIOP."""

MEMBER = 0x696E6702
"""inga's own component: the name of the member whose certificate the server has. Other ORBs ignore it."""

MIOP_VERSION = (1, 0)
IIOP_VERSION = (1, 2)
GROUP_VERSION = (1, 0)
CORBALOC_PORT = 2809
"""The port of an IIOP address that names none."""
GROUP_ID_MAX = (1 << 64) - 1
REF_VERSION_MAX = (1 << 32) - 1

Version = tuple[int, int]


class SecureTransport(NamedTuple):
    """How to reach an object by TLS: the port, and what the server supports and requires (Security::AssociationOptions)."""

    port: int
    supports: int = 0x66
    """Integrity, confidentiality, trust in the server and in the client."""
    requires: int = 0x66


class GroupIdentity(NamedTuple):
    """The identity of a group: requests are dispatched by all of it but `component_version`."""

    domain: str
    group_id: int
    ref_version: int = 0
    component_version: Version = GROUP_VERSION


@dataclass(frozen=True, slots=True)
class Iiop:
    """How to reach an object by IIOP."""

    host: str
    port: int
    key: bytes
    version: Version = IIOP_VERSION
    components: tuple[Tagged, ...] = ()

    @property
    def group(self) -> GroupIdentity | None:
        """The group for which this is a gateway."""
        return _group_of(self.components)

    @property
    def secure(self) -> SecureTransport | None:
        """How to reach the object by TLS, if it can be."""
        return next((decode_secure(data) for tag, data in self.components if tag == TAG_SSL_SEC_TRANS), None)

    @property
    def member(self) -> str | None:
        """The member whose certificate the server has."""
        return next((decode_member(data) for tag, data in self.components if tag == MEMBER), None)


@dataclass(frozen=True, slots=True)
class Uipmc:
    """How to reach a group by MIOP."""

    address: str
    port: int
    components: tuple[Tagged, ...] = ()
    version: Version = MIOP_VERSION

    @property
    def group(self) -> GroupIdentity | None:
        """The group at that address; None if the profile does not name it."""
        return _group_of(self.components)

    @property
    def group_iiop(self) -> Iiop | None:
        """The object that serves requests which need a reply."""
        for tag, data in self.components:
            if tag == TAG_GROUP_IIOP:
                return decode_group_iiop(data)
        for tag, data in self.components:
            if tag == JACORB_GROUP_IIOP:
                try:
                    return decode_group_iiop(data)
                except WireError:
                    continue  # Other ORBs use this number for another component.
        return None


@dataclass(frozen=True, slots=True)
class Reference:
    """A type and the ways to an object. Profiles are kept as they came, known or not."""

    type_id: str
    profiles: tuple[Tagged, ...]

    @property
    def is_nil(self) -> bool:
        """A reference to nothing."""
        return not self.profiles

    def multicast(self) -> Iterator[Uipmc]:
        """The ways to a group."""
        return (decode_uipmc(data) for tag, data in self.profiles if tag == TAG_UIPMC)

    def iiop(self) -> Iterator[Iiop]:
        """The ways to an object, or to the gateway of a group."""
        return (decode_iiop(data) for tag, data in self.profiles if tag == TAG_INTERNET_IOP)


# Components


def encode_secure(way: SecureTransport, *, little: bool = False) -> Tagged:
    """The component that says where and how an object is reached by TLS."""
    encoder = Encoder.encapsulation(little=little)
    encoder.ushort(way.supports)
    encoder.ushort(way.requires)
    encoder.ushort(way.port)
    return Tagged(TAG_SSL_SEC_TRANS, encoder.data())


def decode_secure(data: Buffer) -> SecureTransport:
    """Decode a TAG_SSL_SEC_TRANS component."""
    decoder = Decoder.encapsulation(data)
    supports, requires, port = decoder.ushort(), decoder.ushort(), decoder.ushort()
    return SecureTransport(port, supports, requires)


def encode_member(name: str) -> Tagged:
    """The component that names the member whose certificate the server has."""
    return Tagged(MEMBER, name.encode())


def decode_member(data: Buffer) -> str:
    """The name in a `MEMBER` component."""
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        raise WireError("malformed", "the name of a member that is no UTF-8") from None


def encode_group(group: GroupIdentity, *, little: bool = False) -> Tagged:
    """The component that identifies a group."""
    encoder = _begin(group.component_version, little)
    encoder.string(group.domain)
    encoder.ulonglong(group.group_id)
    encoder.ulong(group.ref_version)
    return Tagged(TAG_GROUP, encoder.data())


def decode_group(data: Buffer) -> GroupIdentity:
    """The group in a TAG_GROUP component; its version is 0 if absent."""
    decoder = Decoder.encapsulation(data, text=HEADER_TEXT)
    version = _version(decoder)
    domain, group_id = decoder.string(), decoder.ulonglong()
    return GroupIdentity(domain, group_id, decoder.ulong() if decoder.remaining else 0, version)


def encode_group_iiop(body: Iiop, *, little: bool = False) -> Tagged:
    """The component that names the object that answers for a group: the profile body as octets in an encapsulation."""
    encoder = Encoder.encapsulation(little=little)
    encoder.octets(encode_iiop(body, little=little).data)
    return Tagged(TAG_GROUP_IIOP, encoder.data())


def decode_group_iiop(data: Buffer) -> Iiop:
    """Decode a TAG_GROUP_IIOP component, also in the form of ORBs that put the profile body there directly."""
    decoder = Decoder.encapsulation(data)
    try:
        inner = decoder.octets()
    except WireError:
        return decode_iiop(data)
    return decode_iiop(data) if decoder.remaining else decode_iiop(inner)


def _group_of(components: tuple[Tagged, ...]) -> GroupIdentity | None:
    return next((decode_group(data) for tag, data in components if tag == TAG_GROUP), None)


# Profiles


def encode_uipmc(profile: Uipmc, *, little: bool = False) -> Tagged:
    """The profile of a group."""
    encoder = _begin(profile.version, little)
    encoder.string(profile.address)
    encoder.ushort(profile.port)
    put_tagged(encoder, profile.components)
    return Tagged(TAG_UIPMC, encoder.data())


def decode_uipmc(data: Buffer) -> Uipmc:
    """The way to a group in a TAG_UIPMC profile."""
    decoder = Decoder.encapsulation(data, text=HEADER_TEXT)
    version = _version(decoder)
    return Uipmc(decoder.string(), decoder.ushort(), get_tagged(decoder), version)


def encode_iiop(profile: Iiop, *, little: bool = False) -> Tagged:
    """The profile of an object that is reached by IIOP."""
    encoder = _begin(profile.version, little)
    encoder.string(profile.host)
    encoder.ushort(profile.port)
    encoder.octets(profile.key)
    if profile.version >= (1, 1):
        put_tagged(encoder, profile.components)
    elif profile.components:
        raise UsageError("A profile of IIOP 1.0 has no components; take 1.1 or 1.2.")
    return Tagged(TAG_INTERNET_IOP, encoder.data())


def decode_iiop(data: Buffer) -> Iiop:
    """The way to an object in a TAG_INTERNET_IOP profile."""
    decoder = Decoder.encapsulation(data, text=HEADER_TEXT)
    version = _version(decoder)
    host, port, key = decoder.string(), decoder.ushort(), decoder.octets()
    return Iiop(host, port, key, version, get_tagged(decoder) if version >= (1, 1) else ())


def _begin(version: Version, little: bool) -> Encoder:
    encoder = Encoder.encapsulation(little=little, text=HEADER_TEXT)
    encoder.raw(bytes(version))
    return encoder


def _version(decoder: Decoder) -> Version:
    version = decoder.octet(), decoder.octet()
    if version[0] != 1:
        raise WireError("malformed", f"a profile or component of version {version[0]}.{version[1]}")
    return version


# References


def group_reference(
    type_id: str,
    group: GroupIdentity,
    address: str,
    port: int,
    *,
    group_iiop: Iiop | None = None,
    gateway: Iiop | None = None,
) -> Reference:
    """The reference to a group, with an object that answers for it and a gateway, if given."""
    named = encode_group(group)
    components = (named,) if group_iiop is None else (named, encode_group_iiop(group_iiop))
    profiles = [encode_uipmc(Uipmc(address, port, components))]
    if gateway is not None:
        profiles.append(encode_iiop(replace(gateway, components=(*gateway.components, named))))
    return Reference(type_id, tuple(profiles))


def put_reference(encoder: Encoder, reference: Reference) -> None:
    """Write a reference inside another CDR value: type and profiles."""
    text, encoder.text = encoder.text, HEADER_TEXT
    encoder.string(reference.type_id)
    encoder.text = text
    put_tagged(encoder, reference.profiles)


def get_reference(decoder: Decoder) -> Reference:
    """Read a reference inside another CDR value."""
    text, decoder.text = decoder.text, HEADER_TEXT
    type_id = decoder.string()
    decoder.text = text
    return Reference(type_id, get_tagged(decoder))


def to_ior(reference: Reference, *, little: bool = False) -> str:
    """A reference as text that every ORB reads."""
    encoder = Encoder.encapsulation(little=little)
    put_reference(encoder, reference)
    return "IOR:" + encoder.data().hex()


def read(text: str) -> Reference:
    """Parse an IOR or a corbaloc URL; a UsageError says what is wrong with it."""
    text = text.strip()
    if text[:4].lower() == "ior:":
        return _read_ior(text[4:])
    if text[:9].lower() == "corbaloc:":
        return _read_corbaloc(text[9:])
    raise UsageError(f"{_short(text)} is no reference: it begins with neither IOR: nor corbaloc:.")


def _read_ior(digits: str) -> Reference:
    if len(digits) % 2:
        raise UsageError(f"This IOR has {len(digits)} hexadecimal digits: one is missing, or one too many.")
    try:
        data = bytes.fromhex(digits) if digits.isalnum() else b""
    except ValueError:
        data = b""
    if not data:
        raise UsageError("This IOR is not hexadecimal digits only.")
    try:
        decoder = Decoder.encapsulation(data)
        reference = get_reference(decoder)
        decoder.finish()
        for _ in (*reference.multicast(), *reference.iiop()):
            pass
    except WireError as error:
        raise UsageError(f"This IOR is damaged: {error}.") from None
    return reference


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


# corbaloc

_ADDRESS = re.compile(r",(?=miop:|iiop:|ssliop:|:)")
"""The comma between two addresses; others may be part of an object key."""
_VERSION = re.compile(r"(?:([0-9])\.([0-9])@)?(.*)", re.DOTALL)
_MIOP = re.compile(
    r"([0-9])\.([0-9])-([^-/,;]+)-([0-9]{1,20})(?:-([0-9]{1,10}))?"
    r"/(?:\[([^\]]*)\]|([^:/]*)):([0-9]{1,5})",
    re.ASCII,
)
_IIOP = re.compile(r"(?:\[([^\]]*)\]|([^:/]+))(?::([0-9]{1,5}))?(?:/(.*))?", re.DOTALL | re.ASCII)
_SAFE = "/:?@&=+$-_.!~*'()"
"""Octets of an object key that need no escape; commas and semicolons separate addresses."""


def _read_corbaloc(addresses: str) -> Reference:
    profiles: list[Tagged] = []
    group: GroupIdentity | None = None
    keyless: list[Iiop] = []
    for address in _ADDRESS.split(addresses):
        protocol, _, rest = address.partition(":")
        if not address:
            raise UsageError("corbaloc: no address; one is written miop:... or iiop:HOST:PORT/KEY.")
        if protocol == "miop":
            profile = _read_miop(rest)
            group = profile.group
            profiles.append(encode_uipmc(profile))
        elif protocol in ("iiop", "ssliop", ""):
            body = _read_iiop(rest, group)
            if protocol == "ssliop":
                body = _by_tls(body)
            if body.key:  # Addresses may share a key, which only the last of them then has.
                profiles += (encode_iiop(replace(each, key=body.key)) for each in (*keyless, body))
                keyless = []
            else:
                keyless.append(body)
        else:
            raise UsageError(f"corbaloc: {_short(address)} is neither miop: nor iiop: nor ssliop:.")
    if keyless:
        raise UsageError("corbaloc: an iiop address ends with / and the key of the object.")
    return Reference("", tuple(profiles))


def _read_miop(text: str) -> Uipmc:
    where, also, iiop = text.partition(";iiop:")
    version, rest = _split_version(where, MIOP_VERSION)
    if version != MIOP_VERSION:
        raise UsageError(f"corbaloc: MIOP {version[0]}.{version[1]} is not known, only 1.0.")
    if not (match := _MIOP.fullmatch(rest)):
        raise UsageError(
            f"corbaloc: {_short(where)} is no group; one is written 1.0@1.0-DOMAIN-GROUP/ADDRESS:PORT."
        )
    major, minor, domain, group_id, ref_version, ipv6, ipv4, port = match.groups()
    group = GroupIdentity(domain, int(group_id), int(ref_version or 0), (int(major), int(minor)))
    if major != "1":
        raise UsageError(f"corbaloc: group component {major}.{minor} is not known, only 1.x.")
    if group.group_id > GROUP_ID_MAX or group.ref_version > REF_VERSION_MAX:
        raise UsageError("corbaloc: the number of a group has 64 bits, its version 32.")
    components = [encode_group(group)]
    if also:
        components.append(encode_group_iiop(_read_group_iiop(iiop)))
    return Uipmc(_multicast(ipv6, ipv4), _port(port), tuple(components))


def _read_group_iiop(text: str) -> Iiop:
    body = _read_iiop(text, None)
    if not body.key:
        raise UsageError("corbaloc: an iiop address ends with / and the key of the object.")
    return body


def _read_iiop(text: str, group: GroupIdentity | None) -> Iiop:
    version, rest = _split_version(text, IIOP_VERSION)
    if version not in ((1, 0), (1, 1), (1, 2)):
        raise UsageError(f"corbaloc: IIOP {version[0]}.{version[1]} is not known, only 1.0 to 1.2.")
    if not (match := _IIOP.fullmatch(rest)):
        raise UsageError(f"corbaloc: {_short(text)} is no address; one is written HOST:PORT/KEY.")
    ipv6, host, port, key = match.groups()
    if group is not None and version == (1, 0):
        raise UsageError("corbaloc: the gateway of a group speaks IIOP 1.1 or newer.")
    components = () if group is None else (encode_group(group),)
    return Iiop(ipv6 or host, _port(port or str(CORBALOC_PORT)), _object_key(key or ""), version, components)


def _object_key(text: str) -> bytes:
    try:
        return unquote_to_bytes(text)
    except UnicodeEncodeError:  # a command-line argument that is not valid text
        raise UsageError(f"corbaloc: {_short(text)} is no text; write its octets as %XX.") from None


def _by_tls(body: Iiop) -> Iiop:
    if body.version == (1, 0):
        raise UsageError("corbaloc: ssliop is IIOP 1.1 or newer.")
    secure = encode_secure(SecureTransport(body.port))
    return replace(body, port=0, components=(*body.components, secure))


def _split_version(text: str, default: Version) -> tuple[Version, str]:
    match = _VERSION.fullmatch(text)
    assert match is not None
    major, minor, rest = match.groups()
    return (default if major is None else (int(major), int(minor))), rest


def _port(text: str) -> int:
    if not 0 < (port := int(text)) < 1 << 16:
        raise UsageError(f"corbaloc: port {port} is not between 1 and 65535.")
    return port


def _multicast(ipv6: str | None, ipv4: str | None) -> str:
    text = ipv6 or ipv4 or ""
    try:
        address = IPv4Address(text) if ipv6 is None else IPv6Address(text)
    except AddressValueError:
        raise UsageError(f"corbaloc: {_short(text)} is no IP address.") from None
    if not address.is_multicast:
        raise UsageError(f"corbaloc: {text} is no multicast address.")
    return text


def to_corbaloc(reference: Reference) -> str:
    """The shortest URL that most parsers accept; a UsageError if no URL can express the reference."""
    addresses = [_miop_url(each) for each in reference.multicast()]
    addresses += [_iiop_url(each) for each in reference.iiop()]
    if not addresses:
        raise UsageError("This reference has no profile that a corbaloc URL can name: write it as an IOR.")
    url = "corbaloc:" + ",".join(addresses)
    if _named(read(url)) != _named(reference):  # other ORBs: any octets as host, any number as port
        raise UsageError(f"{_short(url)} would not name the same: a corbaloc URL cannot say this reference.")
    return url


def _named(reference: Reference) -> tuple[list[Any], list[Any]]:
    """The parts of a reference that a URL expresses."""

    def where(body: Iiop | None) -> Any:
        return body and (body.host, body.port, body.key, body.version)

    groups = [(each.address, each.port, each.group, where(each.group_iiop)) for each in reference.multicast()]
    return groups, [where(each) for each in reference.iiop()]


def _miop_url(profile: Uipmc) -> str:
    if (group := profile.group) is None:
        raise UsageError("This profile does not say which group it is for.")
    if not group.domain or any(letter in group.domain for letter in "-/,;"):
        raise UsageError(f"The domain {group.domain!r} cannot stand in a corbaloc URL.")
    major, minor = group.component_version
    version = f"-{group.ref_version}" if group.ref_version else ""
    where = address_text(profile.address, profile.port)
    url = f"miop:1.0@{major}.{minor}-{group.domain}-{group.group_id}{version}/{where}"
    return url if (body := profile.group_iiop) is None else f"{url};{_iiop_url(body)}"


def _iiop_url(body: Iiop) -> str:
    key = quote_from_bytes(body.key, safe=_SAFE)
    protocol, port = "iiop", body.port
    if not port and (secure := body.secure) is not None:
        protocol, port = "ssliop", secure.port
    return f"{protocol}:{body.version[0]}.{body.version[1]}@{address_text(body.host, port)}/{key}"


def address_text(host: str, port: int) -> str:
    """Host and port as text. An IPv6 address is put in brackets, since it contains colons."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
