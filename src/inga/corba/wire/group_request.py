"""Requests to a group: the GIOP 1.2 messages that MIOP carries.

They are oneway operations, since a caller could not tell which member's reply counts; addressed by the group's profile,
since a group has no object key; and not in GIOP fragments, since MIOP fragments messages itself. Other messages are refused;
the reason is the counter to increment:

    bad_giop          no GIOP message: too short, other magic, other version
    bad_giop_size     the header announces another size than the message has
    unsupported_giop  in GIOP fragments, or no Request
    twoway_rejected   it expects a reply
    bad_target        not addressed to a group, or by a profile without the group's identity
    bad_cdr           anything else in it cannot be decoded
"""

from functools import lru_cache
from struct import Struct
from typing import NamedTuple

from inga.corba.wire import giop
from inga.corba.wire.cdr import Decoder
from inga.corba.wire.giop import Kind, ProfileAddr, Request, Tagged
from inga.corba.wire.reference import TAG_UIPMC, GroupIdentity, decode_uipmc
from inga.model.errors import WireError
from inga.model.packet import Buffer

PROFILE_KNOWN_MAX = 1 << 10
"""Octets of the largest profile that is cached: several times what one needs. Anybody can send larger ones, which would fill the memory."""


class GroupRequest(NamedTuple):
    """An operation for all members of a group to execute; `arguments` is a decoder at the first argument."""

    request_id: int
    group: GroupIdentity
    operation: str
    contexts: tuple[Tagged, ...]
    arguments: Decoder


def encode_request(
    request_id: int,
    profile: Tagged,
    operation: str,
    body: giop.BodyWriter | Buffer | None = None,
    *,
    contexts: tuple[Tagged, ...] = (),
    little: bool = False,
) -> bytes:
    """A oneway request to the group of a TAG_UIPMC profile."""
    request = Request(request_id, ProfileAddr(profile), operation, response_flags=0, contexts=contexts)
    return giop.encode(request, body, little=little)


def decode_request(message: Buffer) -> GroupRequest:
    """Decode a request to a group. Any other message raises WireError, whose reason is one of the counters above."""
    _check_header(message)
    try:
        _, request, arguments = giop.decode(message)
    except WireError as error:
        raise error if error.reason == "bad_target" else WireError("bad_cdr", str(error)) from None
    assert isinstance(request, Request)
    if request.response_flags:
        raise WireError("twoway_rejected", request.operation)
    group = _group(request.target)
    return GroupRequest(request.request_id, group, request.operation, request.contexts, arguments)


def _check_header(message: Buffer) -> None:
    try:
        header = giop.read_header(message)
    except WireError as error:
        # `malformed`: a kind of message that does not exist. All other reasons mean that this is no GIOP at all.
        reason = "unsupported_giop" if error.reason == "malformed" else "bad_giop"
        raise WireError(reason, str(error)) from None
    if header.total != len(message):
        raise WireError("bad_giop_size", f"{header.total} octets announced, {len(message)} there")
    if header.more or header.kind is not Kind.REQUEST:
        raise WireError("unsupported_giop", header.kind.name.lower())


def _group(target: giop.TargetAddress) -> GroupIdentity:
    if not isinstance(target, ProfileAddr) or target.profile.tag != TAG_UIPMC:
        raise WireError("bad_target", "not addressed to a group")
    profile = target.profile.data
    return _known_group_in(profile) if len(profile) <= PROFILE_KNOWN_MAX else _group_in(profile)


def _group_in(profile: bytes) -> GroupIdentity:
    try:
        group = decode_uipmc(profile).group
    except WireError as error:
        raise WireError("bad_target", str(error)) from None
    if group is None:
        raise WireError("bad_target", "a profile that does not say which group")
    return group


_known_group_in = lru_cache(maxsize=256)(_group_in)
"""Cached, since all requests of a sender contain the same profile."""


class Oneway:
    """Encodes and recognises the requests for one operation of one group whose only argument is octets.

    Besides the argument, such requests differ in three numbers only: the rest is encoded once, and compared without parsing it.
    """

    def __init__(self, profile: Tagged, operation: str, *, little: bool = False) -> None:
        sample = encode_request(0, profile, operation, lambda encoder: encoder.octets(b""), little=little)
        order = "<" if little else ">"
        self._numbers = Struct(order + "II")
        self._length = Struct(order + "I")
        self._begin = sample[:8]
        self._constant = sample[16:-4]
        self._size = len(sample)
        self._at = slice(16, self._size - 4)

    @property
    def overhead(self) -> int:
        """Octets of a message besides those of its argument."""
        return self._size

    def encode(self, request_id: int, octets: Buffer) -> bytes:
        """The request with this argument."""
        size = len(octets)
        numbers = self._numbers.pack(self._size - giop.HEADER_SIZE + size, request_id)
        return b"".join((self._begin, numbers, self._constant, self._length.pack(size), octets))

    def decode(self, message: Buffer) -> tuple[int, Buffer] | None:
        """Request id and argument of such a request; None for any other message."""
        whole = len(message)
        if whole < self._size or message[:8] != self._begin or message[self._at] != self._constant:
            return None
        announced, request_id = self._numbers.unpack_from(message, 8)
        size = self._length.unpack_from(message, self._size - 4)[0]
        if announced != whole - giop.HEADER_SIZE or size != whole - self._size:
            return None
        return request_id, memoryview(message)[self._size :]


def read_octets(arguments: Decoder) -> bytes:
    """The argument of a request that has one sequence of octets and nothing else."""
    try:
        octets = arguments.octets()
        arguments.finish()
    except WireError as error:
        raise WireError("bad_args", str(error)) from None
    return octets
