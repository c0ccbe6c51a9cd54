"""Filters for sockets: the kernel drops useless datagrams, which then neither fill a buffer nor cost us time. On Linux only; other
systems let everything in.

    our own multicasts     are dropped: we need not receive our own datagrams
    small datagrams        come in from all addresses: processes authenticate themselves with these
    large datagrams        of a secured group come in from the addresses of authenticated processes
    in a flood             see `StrictRules`

Without this, a stranger that sends large datagrams as fast as it can would fill the buffers of members, and members' datagrams would be
lost. The filter is a classic BPF program, which checks each datagram's length, source address and source port; it is replaced
at once when a process authenticates itself, or is forgotten.
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
"""Octets of the largest datagram that comes in from all addresses; authentication needs no larger ones."""

ADMITTED_MAX = 512
"""The most addresses in one filter, for which the kernel has room. If there are more, large datagrams come in from all addresses."""

SO_ATTACH_FILTER, SO_DETACH_FILTER, SO_MEMINFO = 26, 27, 55
MEMINFO = struct.Struct("9I")  # the last number: datagrams dropped

SAMPLE, WORDS_SAMPLE = 32, 4
"""Sampling rates in a flood: one of so many datagrams is let in. The first is for useless ones; the second for handshake messages if
the flood consists of these, for small datagrams from noisy addresses, and in a group without keys for packets that belong to no view."""

LENGTH, HALF, OCTET, WORD, STORE, LOAD, AND = 0x80, 0x28, 0x30, 0x20, 0x02, 0x60, 0x54
EQUAL, GREATER, RETURN = 0x15, 0x25, 0x06
CHANCE = 0xFFFFFFFF - 0x1000 + 1 + 56  # the offset at which the kernel provides a random number
HOST, PORT = 0, 1  # scratch memory
UDP_HEAD = 8
SOURCE_PORT = 0  # counted from the UDP header
SOURCE_ADDRESS = 0xFFFFFFFF - 0x100000 + 1 + 12  # the kernel's base of the IP header, and the offset in it
ALL, NOTHING = 0xFFFFFFFF, 0

Instruction = tuple[int, int, int, int]
"""Operation code, instructions to skip if a comparison holds and if it does not, and operand."""


class StrictRules(NamedTuple):
    """The datagrams that come in during a flood: all from members and other authenticated processes; handshake messages; and a
    sample of the rest, so that the end of the flood is noticed, and notices name processes without the secret. In a group without keys:
    all from members, and samples of the rest, larger ones of packets that belong to no view, with which newcomers ask for admission."""

    members: frozenset[str]  # addresses of members, as `host:port`
    noisy: frozenset[
        str
    ]  # addresses of authenticated processes outside the view that send too much: only a sample comes in
    samples_words: bool
    words_begin: bytes | None  # first bytes of this group's handshake messages; their kind is at KIND_AT


def attach(
    sock: socket.socket,
    own: HostPort | None,
    admitted: Iterable[str] | None,
    strict: StrictRules | None = None,
) -> None:
    """Attach a filter that drops all datagrams from `own`, and large datagrams unless they come from `admitted`, each as
    `host:port`; None: from all addresses. In a flood `strict` applies, too."""
    if sys.platform != "linux":
        return
    try:
        _attach(sock, program(own, admitted, strict))
    except OSError as error:  # too long for this kernel; and the old filter would drop new addresses
        report("kernel.unfiltered", "no filter of large datagrams: %s", error)
        try:
            sock.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
            _attach(sock, program(own, None))
        except OSError as another:
            report("kernel.unfiltered", "no filter for our own multicasts: %s", another)


def dropped(sock: socket.socket) -> int:
    """The number of datagrams that the kernel has dropped, because of a filter or since there was no room; 0 if it does not tell."""
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
    """The instructions of the filter."""
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
    """The instructions for datagrams of unknown senders. They check the length before they read a part of a datagram: the kernel drops
    a datagram that is too short for a read."""
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
        (GREATER, 0, len(sample), CONFIRM),  # sealed, but from an unknown address
        *sample,
        (WORD, 0, 0, UDP_HEAD + KIND_AT + 1),
        (EQUAL, len(sample), 0, int.from_bytes(begin[KIND_AT + 1 : KIND_AT + 5])),
        *sample,
        *(_sample(WORDS_SAMPLE) if strict.samples_words else [(RETURN, 0, 0, ALL)]),
    ]


def _sample(of: int) -> list[Instruction]:
    """Let one of `of` datagrams in, a power of two."""
    return [
        (WORD, 0, 0, CHANCE),
        (AND, 0, 0, of - 1),
        (EQUAL, 0, 1, 0),
        (RETURN, 0, 0, ALL),
        (RETURN, 0, 0, NOTHING),
    ]


def _if_from(place: HostPort, follow: int = 1) -> list[Instruction]:
    """Skip the next `follow` instructions unless the datagram comes from that address."""
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
"""The instructions for datagrams of a noisy address. More of the small ones come in: another part of the group is noisy while it sends
much, and the two find each other by small datagrams."""


def _places(texts: Iterable[str]) -> list[HostPort]:
    return [place for place in map(_place, texts) if place is not None]


def _place(text: str) -> HostPort | None:
    """The parsed address; None if it is not an IPv4 address, such as that of a process whose messages another one forwards. No name is
    resolved here, since that would block the event loop."""
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
