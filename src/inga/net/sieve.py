"""What the kernel lets into a socket, so that the rest neither fills its buffer nor costs us anything. Linux; elsewhere all comes in.

    our own multicasts     are kept out: nobody needs to hear itself
    small datagrams        come in from anywhere: with these processes prove who they are
    large datagrams        of a secured group come in from where somebody speaks who has proven who it is
    in a flood             see `StrictRules`

A stranger that sends large datagrams as quickly as it can would fill the buffers of members, and what members send would be lost.
It is a classic packet filter, which looks at each datagram's length, source address and source port; it is replaced at once by
another when somebody proves who it is, or is forgotten.
"""

import ctypes
import socket
import struct
import sys
from collections.abc import Iterable
from typing import NamedTuple

from inga.net.address import HostPort
from inga.net.log import report
from inga.secure.handshake import CONFIRM, KIND_AT
from inga.wire.packet import HEAD, MAGIC, OUTSIDE, VIEW_AT

LARGE = 4096
"""Octets of the largest datagram that comes in from anywhere; whoever has not proven who it is needs no larger ones."""

ADMITTED_MAX = 512
"""Addresses that one filter knows, as the kernel has room for. Of more, large datagrams come in from anywhere."""

SO_ATTACH_FILTER, SO_DETACH_FILTER, SO_MEMINFO = 26, 27, 55
MEMINFO = struct.Struct("9I")  # the last: datagrams that were dropped

SAMPLE, WORDS_SAMPLE = 32, 4
"""In a flood one of so many comes in all the same: of what is of no use, and of words of handshakes if it is these that come."""

LENGTH, HALF, OCTET, WORD, STORE, LOAD, AND = 0x80, 0x28, 0x30, 0x20, 0x02, 0x60, 0x54
EQUAL, GREATER, RETURN = 0x15, 0x25, 0x06
CHANCE = 0xFFFFFFFF - 0x1000 + 1 + 56  # where the kernel has a random number
HOST, PORT = 0, 1  # where they are stored
UDP_HEAD = 8
SOURCE_PORT = 0  # counted from the UDP header
SOURCE_ADDRESS = 0xFFFFFFFF - 0x100000 + 1 + 12  # counted from the IP header, which the kernel finds there
ALL, NOTHING = 0xFFFFFFFF, 0

Instruction = tuple[int, int, int, int]
"""What to do, how many to skip if a comparison holds and if it does not, and with which number."""


class StrictRules(NamedTuple):
    """What comes in during a flood: all that members send, and others who have proven who they are; words of handshakes; and a
    sample of the rest, so that its end is noticed, and people are told of one that has no secret. In a group without keys: what
    members send, and samples; larger ones of what belongs to no view, with which newcomers ask to be let in."""

    members: frozenset[str]  # where they are, as `host:port`
    noisy: frozenset[
        str
    ]  # where somebody is who has proven who it is, and abuses that: a sample of what it sends
    samples_words: bool
    words_begin: bytes | None  # those of this group; what kind of word it is stands at KIND_AT


def attach(
    sock: socket.socket,
    own: HostPort | None,
    admitted: Iterable[str] | None,
    strict: StrictRules | None = None,
) -> None:
    """From now on, let nothing in that comes from `own`, nor large datagrams from elsewhere than `admitted`, each as
    `host:port`; None: from anywhere. In a flood also what `strict` says."""
    if sys.platform != "linux":
        return
    try:
        _attach(sock, program(own, admitted, strict))
    except OSError as error:  # too long for this kernel; and what is attached keeps out who came since
        report("kernel.unfiltered", "no filter of large datagrams: %s", error)
        try:
            sock.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
            _attach(sock, program(own, None))
        except OSError as another:
            report("kernel.unfiltered", "no filter for our own multicasts: %s", another)


def dropped(sock: socket.socket) -> int:
    """Datagrams that the kernel has kept from us, because of a filter or since there was no room; 0 where it does not say."""
    if sys.platform != "linux":
        return 0
    try:
        *_, drops = MEMINFO.unpack(sock.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, MEMINFO.size))
    except (OSError, struct.error):
        return 0
    return int(drops)


def program(
    own: HostPort | None, admitted: Iterable[str] | None, strict: StrictRules | None = None
) -> list[Instruction]:
    """The filter, as the kernel reads it."""
    lines = [
        (HALF, 0, 0, SOURCE_PORT),
        (STORE, 0, 0, PORT),
        (WORD, 0, 0, SOURCE_ADDRESS),
        (STORE, 0, 0, HOST),
    ]
    if own is not None:
        lines += [*_if_from(own), (RETURN, 0, 0, NOTHING)]
    if admitted is None and strict is not None:
        admitted = strict.members
    places = None if admitted is None else _places(admitted)
    if places is None or len(places) > ADMITTED_MAX:
        return [*lines, (RETURN, 0, 0, ALL)]
    if strict is not None:
        noisy = _places(strict.noisy)
        for place in noisy:
            lines += [*_if_from(place, len(NOISY)), *NOISY]
        for place in places:
            if place not in noisy:
                lines += [*_if_from(place), (RETURN, 0, 0, ALL)]
        return lines + _few(strict)
    lines += [(LENGTH, 0, 0, 0), (GREATER, 1, 0, UDP_HEAD + LARGE), (RETURN, 0, 0, ALL)]
    for place in places:
        lines += [*_if_from(place), (RETURN, 0, 0, ALL)]
    return [*lines, (RETURN, 0, 0, NOTHING)]


def _few(strict: StrictRules) -> list[Instruction]:
    """What comes in of those who are not known. No part of a datagram is looked at that it does not have: the kernel would
    drop it."""
    begin, sample = strict.words_begin, _sample(SAMPLE)
    if begin is None:
        return [
            (LENGTH, 0, 0, 0),
            (GREATER, len(sample), 0, UDP_HEAD + HEAD.size),
            *sample,
            (HALF, 0, 0, UDP_HEAD),
            (EQUAL, len(sample), 0, MAGIC),
            *sample,
            (WORD, 0, 0, UDP_HEAD + VIEW_AT),
            (EQUAL, len(sample), 0, OUTSIDE),
            *sample,
            *_sample(WORDS_SAMPLE),
        ]
    return [
        (LENGTH, 0, 0, 0),
        (GREATER, 0, 1, UDP_HEAD + LARGE),
        (RETURN, 0, 0, NOTHING),
        (GREATER, len(sample), 0, UDP_HEAD + len(begin)),
        *sample,
        (HALF, 0, 0, UDP_HEAD),
        (EQUAL, len(sample), 0, int.from_bytes(begin[:2])),
        *sample,
        (OCTET, 0, 0, UDP_HEAD + KIND_AT),
        (GREATER, 0, len(sample), CONFIRM),  # sealed, by somebody that we do not know there
        *sample,
        (WORD, 0, 0, UDP_HEAD + KIND_AT + 1),
        (EQUAL, len(sample), 0, int.from_bytes(begin[KIND_AT + 1 : KIND_AT + 5])),
        *sample,
        *(_sample(WORDS_SAMPLE) if strict.samples_words else [(RETURN, 0, 0, ALL)]),
    ]


def _sample(of: int) -> list[Instruction]:
    """Let one of so many in, a power of two."""
    return [
        (WORD, 0, 0, CHANCE),
        (AND, 0, 0, of - 1),
        (EQUAL, 0, 1, 0),
        (RETURN, 0, 0, ALL),
        (RETURN, 0, 0, NOTHING),
    ]


def _if_from(place: HostPort, follow: int = 1) -> list[Instruction]:
    """Skip the instructions that follow, so many, unless the datagram is from there."""
    host, port = place
    return [
        (LOAD, 0, 0, PORT),
        (EQUAL, 0, 2 + follow, port),
        (LOAD, 0, 0, HOST),
        (EQUAL, 0, follow, int.from_bytes(socket.inet_aton(host))),
    ]


NOISY = [
    (LENGTH, 0, 0, 0),
    (GREATER, 0, 5, UDP_HEAD + LARGE),
    *_sample(SAMPLE),
    *_sample(WORDS_SAMPLE),
]
"""What comes in of one that abuses that it is known. Small ones are more: another part of the group is such a one while it has much
to say, and it is with small ones that the two find each other."""


def _places(texts: Iterable[str]) -> list[HostPort]:
    return [place for place in map(_place, texts) if place is not None]


def _place(text: str) -> HostPort | None:
    """Where that is; None if it is no address of IPv4: what another has handed on comes from nowhere. No name is looked up
    here: that would stop the reading of datagrams."""
    host, _, port = text.rpartition(":")
    try:
        socket.inet_aton(host)
        return host, int(port)
    except (OSError, ValueError):
        return None


def _attach(sock: socket.socket, lines: list[Instruction]) -> None:
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    sock.setsockopt(
        socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", len(lines), ctypes.addressof(code))
    )
