"""GIOP 1.0 to 1.2: the messages that carry requests to CORBA objects and their replies.

    0   4  "GIOP"
    4   2  version            1, 0 to 1, 2
    6   1  flags              bit 0: little endian; bit 1, from 1.1: more fragments follow
    7   1  kind               the eight messages of `Kind`
    8   4  size               of what follows the header
    12     head of the message, then its body: arguments, results or an exception

A head is CDR that counts from octet 0 of the header. In 1.2 the body of a Request or Reply begins at the next
multiple of 8 (without body: no padding); before, it follows the head at once and its alignment goes on from
there. So a body is written by a function that is given the encoder, and read from a decoder that is positioned at its
first octet: neither has to know the version.

Service contexts are carried as they are, known or not.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, NamedTuple, TypeAlias

from inga.corba.wire.cdr import Decoder, Encoder
from inga.model.errors import UsageError, WireError
from inga.model.packet import Buffer

MAGIC = b"GIOP"
HEADER_SIZE = 12
MINOR_MAX = 2
LITTLE = 1 << 0
MORE = 1 << 1
FRAGMENT_HEAD = HEADER_SIZE + 4
"""Octets of the header of a Fragment of GIOP 1.2, with its request id."""

HEADER_TEXT = "latin-1"
"""The code set of operation names and type ids: legal ones are ASCII, and in Latin-1 no octet fails to decode."""

CODE_SETS = 1
"""The number of the service context, and of the profile component, by which code sets are negotiated."""


class Kind(IntEnum):
    """The messages of GIOP, by their number on the wire."""

    REQUEST = 0
    REPLY = 1
    CANCEL_REQUEST = 2
    LOCATE_REQUEST = 3
    LOCATE_REPLY = 4
    CLOSE_CONNECTION = 5
    MESSAGE_ERROR = 6
    FRAGMENT = 7


class Status(IntEnum):
    """What the body of a Reply contains."""

    NO_EXCEPTION = 0
    USER_EXCEPTION = 1
    SYSTEM_EXCEPTION = 2
    LOCATION_FORWARD = 3
    LOCATION_FORWARD_PERM = 4
    NEEDS_ADDRESSING_MODE = 5


class LocateStatus(IntEnum):
    """The result in a LocateReply."""

    UNKNOWN_OBJECT = 0
    OBJECT_HERE = 1
    OBJECT_FORWARD = 2
    OBJECT_FORWARD_PERM = 3
    SYSTEM_EXCEPTION = 4
    NEEDS_ADDRESSING_MODE = 5


class Addressing(IntEnum):
    """The forms in which GIOP 1.2 names a target."""

    KEY = 0
    PROFILE = 1
    REFERENCE = 2


class Tagged(NamedTuple):
    """Octets under a number that says what they are: a profile, a component, a service context."""

    tag: int
    data: bytes


@dataclass(frozen=True, slots=True)
class KeyAddr:
    """A target named by the object's key, as its server made it: the only form before GIOP 1.2."""

    key: bytes


@dataclass(frozen=True, slots=True)
class ProfileAddr:
    """A target named by one profile of a reference. Requests to a group have this form, since a group has no key."""

    profile: Tagged


@dataclass(frozen=True, slots=True)
class ReferenceAddr:
    """A target named by a whole reference, and the index of the profile that was chosen."""

    selected: int
    type_id: str
    profiles: tuple[Tagged, ...]


TargetAddress: TypeAlias = KeyAddr | ProfileAddr | ReferenceAddr


@dataclass(frozen=True, slots=True)
class Request:
    """Asks for an operation to be executed.

    `response_flags`: 0 for a oneway operation, 3 if a reply is expected, 1 if only a confirmation that the request has
    reached the server. Before GIOP 1.2 there is only "no" (0) and "yes" (read as 3). `principal` exists only there.
    """

    request_id: int
    target: TargetAddress
    operation: str
    response_flags: int = 3
    contexts: tuple[Tagged, ...] = ()
    principal: bytes = b""

    @property
    def expects_reply(self) -> bool:
        """Whether the client waits for a reply."""
        return bool(self.response_flags & 1)


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a Request. `status` determines what its body is."""

    request_id: int
    status: Status = Status.NO_EXCEPTION
    contexts: tuple[Tagged, ...] = ()


@dataclass(frozen=True, slots=True)
class LocateRequest:
    """Asks whether an object is at this server."""

    request_id: int
    target: TargetAddress


@dataclass(frozen=True, slots=True)
class LocateReply:
    """The answer to a LocateRequest."""

    request_id: int
    status: LocateStatus = LocateStatus.OBJECT_HERE


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """The client does not wait for the reply any longer."""

    request_id: int


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """The server ends the connection in good order: requests without a reply were not begun."""


@dataclass(frozen=True, slots=True)
class MessageError:
    """The peer received a message that is not GIOP, or of a version that it does not know."""


@dataclass(frozen=True, slots=True)
class GiopFragment:
    """The continuation of a message. `request_id` is None in 1.1, which allows one such message at a time."""

    request_id: int | None


GiopMessage: TypeAlias = (
    Request
    | Reply
    | LocateRequest
    | LocateReply
    | CancelRequest
    | CloseConnection
    | MessageError
    | GiopFragment
)

BodyWriter: TypeAlias = Callable[[Encoder], None]


@dataclass(frozen=True, slots=True)
class Header:
    """The first 12 octets of every message."""

    kind: Kind
    size: int
    minor: int = MINOR_MAX
    little: bool = False
    more: bool = False

    @property
    def total(self) -> int:
        """The octets of the whole message, this header included."""
        return HEADER_SIZE + self.size


class Decoded(NamedTuple):
    """A message, and a decoder at the beginning of its body."""

    header: Header
    message: GiopMessage
    body: Decoder


class SystemFailure(NamedTuple):
    """The body of a Reply with a system exception. `completed`: 0 yes, 1 no, 2 maybe."""

    exception_id: str
    minor: int = 0
    completed: int = 2


def read_header(data: Buffer) -> Header:
    """Decode the header at the start of `data`; the rest of the message need not be there."""
    if len(data) < HEADER_SIZE:
        raise WireError("truncated", f"a GIOP header of {len(data)} octets")
    if bytes(data[:4]) != MAGIC:
        raise WireError("bad_magic", f"{bytes(data[:4])!r} instead of {MAGIC!r}")
    major, minor, flags, number = data[4], data[5], data[6], data[7]
    if major != 1 or minor > MINOR_MAX:
        raise WireError("bad_version", f"GIOP {major}.{minor}")
    if number > Kind.FRAGMENT or (number == Kind.FRAGMENT and minor == 0):
        raise WireError("malformed", f"message {number} in GIOP 1.{minor}")
    little = bool(flags & LITTLE)
    size = int.from_bytes(data[8:12], _order(little))
    return Header(_BY_NUMBER[number], size, minor, little, minor > 0 and bool(flags & MORE))


def encode(
    message: GiopMessage,
    body: BodyWriter | Buffer | None = None,
    *,
    minor: int = MINOR_MAX,
    little: bool = False,
    more: bool = False,
    text: str = "utf-8",
) -> bytes:
    """Encode a whole message. `body` writes what follows the head; in GIOP 1.2 it may also be encoded octets.

    `text` is the code set of strings in the body.
    """
    if not 0 <= minor <= MINOR_MAX:
        raise UsageError(f"GIOP 1.{minor} cannot be written, only 1.0 to 1.{MINOR_MAX}.")
    kind = _KINDS[type(message)]
    if kind is Kind.FRAGMENT and minor == 0:
        raise UsageError("GIOP 1.0 has no fragments: use 1.1 or 1.2.")
    encoder = Encoder(little=little, text=HEADER_TEXT)
    encoder.raw(MAGIC)
    encoder.raw(bytes((1, minor, int(little) | (MORE if more else 0), kind, 0, 0, 0, 0)))
    _put_head(encoder, message, minor)
    encoder.text = text
    if body is not None:
        _put_body(encoder, kind, body, minor)
    out = encoder.out
    out[8:12] = (len(out) - HEADER_SIZE).to_bytes(4, _order(little))
    return bytes(out)


def decode(data: Buffer, *, text: str = "utf-8") -> Decoded:
    """Decode a whole message. If it was sent in fragments, they have to be joined before: see `join_fragments`."""
    header = read_header(data)
    if header.total != len(data):
        raise WireError("bad_length", f"{header.total} octets announced, {len(data)} there")
    decoder = Decoder(data, little=header.little, at=HEADER_SIZE, text=HEADER_TEXT)
    message = _READERS[header.kind](decoder, header.minor)
    if header.minor >= 2 and header.kind in _ALIGNED:
        decoder.align_if_more(8)
    decoder.text = text
    return Decoded(header, message, decoder)


def fragment_id(data: Buffer, header: Header) -> int | None:
    """The request id of a fragmented message or a fragment; None in GIOP 1.1, where only one message can be incomplete."""
    if header.minor < 2:
        return None
    if len(data) < FRAGMENT_HEAD:
        raise WireError("truncated", "a piece without the number of its request")
    return int.from_bytes(data[HEADER_SIZE:FRAGMENT_HEAD], _order(header.little))


def join_fragments(pieces: Sequence[Buffer]) -> bytes:
    """Join a fragmented message: its beginning, then its fragments in their order."""
    first = pieces[0]
    header = read_header(first)
    skipped = FRAGMENT_HEAD if header.minor >= 2 else HEADER_SIZE
    whole = bytearray(first)
    for piece in pieces[1:]:
        whole.extend(piece[skipped:])
    whole[6] &= ~MORE & 0xFF
    whole[8:12] = (len(whole) - HEADER_SIZE).to_bytes(4, _order(header.little))
    return bytes(whole)


def fragments(data: bytes, size_max: int) -> list[bytes]:
    """Cut a message of GIOP 1.2 into pieces of at most `size_max` octets each; one piece if it is no larger."""
    if size_max < 2 * FRAGMENT_HEAD:
        raise UsageError(f"A fragment has at least {2 * FRAGMENT_HEAD} octets, not {size_max}.")
    size_max &= ~7  # All pieces but the last are a multiple of 8 long, which preserves alignment.
    if len(data) <= size_max:
        return [data]
    header = read_header(data)
    request_id = fragment_id(data, header)
    if request_id is None or header.kind in _UNDIVIDED:
        raise UsageError(f"A {header.kind.name} of GIOP 1.{header.minor} is not sent in pieces.")
    begin = bytearray(data[:size_max])
    begin[6] |= MORE
    begin[8:12] = (size_max - HEADER_SIZE).to_bytes(4, _order(header.little))
    pieces = [bytes(begin)]
    step = size_max - FRAGMENT_HEAD
    for at in range(size_max, len(data), step):
        more = at + step < len(data)
        pieces.append(
            encode(GiopFragment(request_id), data[at : at + step], minor=2, little=header.little, more=more)
        )
    return pieces


def put_failure(encoder: Encoder, failure: SystemFailure) -> None:
    """Write the body of a Reply with a system exception."""
    encoder.string(failure.exception_id)
    encoder.ulong(failure.minor)
    encoder.ulong(failure.completed)


def get_failure(decoder: Decoder) -> SystemFailure:
    """Read the system exception in the body of a Reply."""
    failure = SystemFailure(decoder.string(), decoder.ulong(), decoder.ulong())
    if failure.completed > 2:
        raise WireError("malformed", f"completion status {failure.completed}")
    return failure


def put_tagged(encoder: Encoder, items: Sequence[Tagged]) -> None:
    """Write a sequence of (number, octets): profiles, components, service contexts."""
    encoder.ulong(len(items))
    for tag, data in items:
        encoder.ulong(tag)
        encoder.octets(data)


def get_tagged(decoder: Decoder) -> tuple[Tagged, ...]:
    """Read a sequence of (number, octets)."""
    return tuple(Tagged(decoder.ulong(), decoder.octets()) for _ in range(decoder.count(8)))


def _order(little: bool) -> Literal["little", "big"]:
    return "little" if little else "big"


def _put_head(encoder: Encoder, message: GiopMessage, minor: int) -> None:
    match message:
        case Request():
            _put_request(encoder, message, minor)
        case Reply():
            _put_reply(encoder, message, minor)
        case LocateRequest():
            encoder.ulong(message.request_id)
            _put_target(encoder, message.target, minor)
        case LocateReply():
            encoder.ulong(message.request_id)
            encoder.ulong(message.status)
        case CancelRequest():
            encoder.ulong(message.request_id)
        case GiopFragment():
            if (message.request_id is None) == (minor >= 2):
                raise UsageError(
                    "A fragment names its request in GIOP 1.2, and only there: leave it out in others."
                )
            if message.request_id is not None:
                encoder.ulong(message.request_id)
        case _:
            pass  # The message is its header.


def _put_body(encoder: Encoder, kind: Kind, body: BodyWriter | Buffer, minor: int) -> None:
    aligned = minor >= 2 and kind in _ALIGNED
    if isinstance(body, bytes | bytearray | memoryview):
        if not aligned and kind is not Kind.FRAGMENT:
            raise UsageError("Only GIOP 1.2 aligns bodies, so that octets already made can be one.")
        if aligned and len(body):
            encoder.align(8)
        encoder.raw(body)
        return
    start = len(encoder)
    if aligned:
        encoder.align(8)
    before = len(encoder)
    body(encoder)
    if len(encoder) == before:  # Nothing was written: then there is no padding either.
        del encoder.out[start:]


def _put_target(encoder: Encoder, target: TargetAddress, minor: int) -> None:
    if minor < 2:
        if not isinstance(target, KeyAddr):
            raise UsageError(f"GIOP 1.{minor} names objects by their key only.")
        encoder.octets(target.key)
    elif isinstance(target, KeyAddr):
        encoder.short(Addressing.KEY)
        encoder.octets(target.key)
    elif isinstance(target, ProfileAddr):
        encoder.short(Addressing.PROFILE)
        encoder.ulong(target.profile.tag)
        encoder.octets(target.profile.data)
    else:
        encoder.short(Addressing.REFERENCE)
        encoder.ulong(target.selected)
        encoder.string(target.type_id)
        put_tagged(encoder, target.profiles)


def _get_target(decoder: Decoder, minor: int) -> TargetAddress:
    if minor < 2:
        return KeyAddr(decoder.octets())
    how = decoder.short()
    if how == Addressing.KEY:
        return KeyAddr(decoder.octets())
    if how == Addressing.PROFILE:
        return ProfileAddr(Tagged(decoder.ulong(), decoder.octets()))
    if how == Addressing.REFERENCE:
        target = ReferenceAddr(decoder.ulong(), decoder.string(), get_tagged(decoder))
        if target.selected >= len(target.profiles):
            raise WireError("malformed", f"profile {target.selected} of {len(target.profiles)}")
        return target
    raise WireError("bad_target", f"a target of kind {how}")


def _put_request(encoder: Encoder, message: Request, minor: int) -> None:
    if minor >= 2:
        encoder.ulong(message.request_id)
        encoder.octet(message.response_flags)
        encoder.raw(bytes(3))
        _put_target(encoder, message.target, minor)
        encoder.string(message.operation)
        put_tagged(encoder, message.contexts)
        return
    put_tagged(encoder, message.contexts)
    encoder.ulong(message.request_id)
    encoder.boolean(message.expects_reply)
    if minor == 1:
        encoder.raw(bytes(3))
    _put_target(encoder, message.target, minor)
    encoder.string(message.operation)
    encoder.octets(message.principal)


def _get_request(decoder: Decoder, minor: int) -> Request:
    if minor >= 2:
        request_id = decoder.ulong()
        flags = decoder.octet()
        decoder.raw(3)
        target = _get_target(decoder, minor)
        operation = decoder.string()
        return Request(request_id, target, operation, flags, get_tagged(decoder))
    contexts = get_tagged(decoder)
    request_id = decoder.ulong()
    flags = 3 if decoder.boolean() else 0
    if minor == 1:
        decoder.raw(3)
    target = _get_target(decoder, minor)
    operation = decoder.string()
    return Request(request_id, target, operation, flags, contexts, decoder.octets())


def _put_reply(encoder: Encoder, message: Reply, minor: int) -> None:
    if minor < 2:
        put_tagged(encoder, message.contexts)
    encoder.ulong(message.request_id)
    encoder.ulong(message.status)
    if minor >= 2:
        put_tagged(encoder, message.contexts)


def _get_reply(decoder: Decoder, minor: int) -> Reply:
    contexts = get_tagged(decoder) if minor < 2 else ()
    request_id, number = decoder.ulong(), decoder.ulong()
    if number > (Status.NEEDS_ADDRESSING_MODE if minor >= 2 else Status.LOCATION_FORWARD):
        raise WireError("malformed", f"a reply of status {number}")
    return Reply(request_id, Status(number), get_tagged(decoder) if minor >= 2 else contexts)


def _get_locate_reply(decoder: Decoder, minor: int) -> LocateReply:
    request_id, number = decoder.ulong(), decoder.ulong()
    if number > (LocateStatus.NEEDS_ADDRESSING_MODE if minor >= 2 else LocateStatus.OBJECT_FORWARD):
        raise WireError("malformed", f"a location of status {number}")
    return LocateReply(request_id, LocateStatus(number))


_BY_NUMBER = tuple(Kind)
_ALIGNED = frozenset((Kind.REQUEST, Kind.REPLY))
_UNDIVIDED = frozenset((Kind.CANCEL_REQUEST, Kind.CLOSE_CONNECTION, Kind.MESSAGE_ERROR, Kind.FRAGMENT))
_KINDS: dict[type[GiopMessage], Kind] = {
    Request: Kind.REQUEST,
    Reply: Kind.REPLY,
    CancelRequest: Kind.CANCEL_REQUEST,
    LocateRequest: Kind.LOCATE_REQUEST,
    LocateReply: Kind.LOCATE_REPLY,
    CloseConnection: Kind.CLOSE_CONNECTION,
    MessageError: Kind.MESSAGE_ERROR,
    GiopFragment: Kind.FRAGMENT,
}
_READERS: dict[Kind, Callable[[Decoder, int], GiopMessage]] = {
    Kind.REQUEST: _get_request,
    Kind.REPLY: _get_reply,
    Kind.CANCEL_REQUEST: lambda decoder, minor: CancelRequest(decoder.ulong()),
    Kind.LOCATE_REQUEST: lambda decoder, minor: LocateRequest(decoder.ulong(), _get_target(decoder, minor)),
    Kind.LOCATE_REPLY: _get_locate_reply,
    Kind.CLOSE_CONNECTION: lambda decoder, minor: CloseConnection(),
    Kind.MESSAGE_ERROR: lambda decoder, minor: MessageError(),
    Kind.FRAGMENT: lambda decoder, minor: GiopFragment(decoder.ulong() if minor >= 2 else None),
}
