"""The stamped unit that travels down one stack and up the others."""

from collections.abc import Hashable
from typing import Any, ClassVar, TypeAlias

from inga.model.compiled import mypyc_attr
from inga.model.receipt import Receipt
from inga.model.stamp import Cells, Deps, Stamp

Buffer: TypeAlias = bytes | bytearray | memoryview
Runs: TypeAlias = tuple[tuple[int, int], ...]
"""Half-open ranges of sequence numbers."""

DATA = 0
"""The `kind` of application data. Any other kind is the id of the layer whose message it is."""

HEADER_MAX = 96
"""Bytes of a data packet that are neither body nor a vector: a generous bound, see `wire.packet`."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Packet:
    """One packet. Each layer fills its own slots; `wire` writes only the sections in use.

    A body that came from the network is borrowed from the reader's buffer and valid until the stack
    returns: a layer that stores a packet for later calls `keep()`.
    """

    __slots__: ClassVar[tuple[str, ...]] = (
        # on the wire: who
        "src",  # index of the sender
        "dst",  # destinations as a bit set over the view; None = everybody else
        "view",  # number of the view it was sent in
        "kind",  # DATA, or the id of a layer
        # on the wire: the order layer's
        "seq",  # which of the sender's packets, from 1
        "stamp",  # the information by which it is ordered
        # on the wire: reliability and flow
        "lsn",  # which of the sender's datagram bodies, from 1; 0 = unnumbered
        "ack",  # per member, the lsn up to which the sender has everything
        "room",  # the same for what the sender has room for; None = as `ack`
        "runs",  # lsn ranges to be sent again
        "frag",  # (index, count) of a piece of a large packet
        # on the wire: others
        "trace",  # full vector for orders that carry none, while tracing
        "ext",  # bytes that only one layer interprets: an order's own section, a control message, a third party's data
        # On data packets; on a layer's own packets the same two flags are called `asks` and `denies`.
        "urgent",  # all receivers should acknowledge at once
        "partial",  # a bundle that left before it was full: acknowledge soon; of a second one, one member at once
        "bare",  # the body went to others; only the header is for us
        "lent",  # another member sends it in place of its sender, which is gone
        "count",  # application messages in the body
        "body",
        # never on the wire
        "at",  # when the application sent (the first message of) it; 0 = not sent by an application
        "to",  # the one member a datagram is for; None = as `dst` says
        "where",  # the address it came from, if the driver knows
        "payloads",  # the messages in the body, once split
        "size",  # bytes that they take in the application's queue
        "receipt",  # is notified of the levels that it reaches
        "is_cut",  # it left in pieces, which have numbers of their own
        "cells",  # `matrix`: its counts of sends to each member, as read from the body
        "hop",  # `relay`: (member, number) under which the relay sent it; `src` is its original sender
        "piece",  # MIOP: the header of the datagram
        "shares",  # each destination's part, if not all messages are for all destinations: see `wire.shares`
        "deps",  # full causal past, rebuilt by the order layer
        "known",  # if `concurrent`: the receiver's vector just before its application took it
        "concurrent",
        "branch",
        "merged",
        "encoded",  # wire form, made once: [full, bare]
    )

    src: int
    dst: int | None
    view: int
    kind: int
    seq: int
    stamp: Stamp | None
    lsn: int
    ack: tuple[int, ...] | None
    room: tuple[int, ...] | None
    runs: Runs | None
    frag: tuple[int, int] | None
    trace: Deps | None
    ext: bytes | bytearray | None
    urgent: bool
    partial: bool
    bare: bool
    lent: bool
    count: int
    body: Buffer
    at: float
    to: int | None
    where: Hashable
    payloads: list[Buffer] | None
    size: int
    receipt: Receipt | None
    is_cut: bool
    cells: Cells | None
    hop: tuple[int, int] | None
    piece: Any
    shares: dict[int, Any] | None
    deps: Deps | None
    known: Deps | None
    concurrent: bool
    branch: int
    merged: tuple[int, ...]
    encoded: list[Any] | None

    def __init__(
        self, src: int, view: int, body: Buffer = b"", dst: int | None = None, kind: int = DATA
    ) -> None:
        self.src = src
        self.dst = dst
        self.view = view
        self.kind = kind
        self.seq = 0
        self.stamp = None
        self.lsn = 0
        self.ack = None
        self.room = None
        self.runs = None
        self.frag = None
        self.trace = None
        self.ext = None
        self.urgent = False
        self.partial = False
        self.bare = False
        self.lent = False
        self.count = 1
        self.body = body
        self.at = 0.0
        self.to = None
        self.where = None
        self.payloads = None
        self.size = 0
        self.receipt = None
        self.is_cut = False
        self.cells = None
        self.hop = None
        self.piece = None
        self.shares = None
        self.deps = None
        self.known = None
        self.concurrent = False
        self.branch = 0
        self.merged = ()
        self.encoded = None

    # What the two flags mean on packets of a layer's own kind.

    @property
    def asks(self) -> bool:
        """Whether the receiver should answer: a heartbeat that says how much was sent, or a poll."""
        return self.urgent

    @asks.setter
    def asks(self, value: bool) -> None:
        self.urgent = value

    @property
    def denies(self) -> bool:
        """Whether it denies that there are more packets: a request named higher numbers than were sent."""
        return self.partial

    @denies.setter
    def denies(self, value: bool) -> None:
        self.partial = value

    def keep(self) -> None:
        """Copy a borrowed body, before the packet is stored."""
        if type(self.body) is memoryview:
            self.body = bytes(self.body)

    def is_for_others(self, me: int) -> bool:
        """Whether it names its destinations, and we are none of them."""
        return self.dst is not None and not self.dst >> me & 1

    def copy_to(self, member: int) -> "Packet":
        """The same packet for one member: it shares the encoded form, so it has the same bytes."""
        copy = Packet.__new__(Packet)
        for name in Packet.__slots__:
            setattr(copy, name, getattr(self, name))
        copy.to = member
        copy.receipt = None
        return copy

    def lent_to(self, member: int) -> "Packet":
        """The same packet for one member, sent by another member than its sender: without the sender's own counters."""
        copy = self.copy_to(member)
        copy.lent, copy.encoded = True, None
        copy.ack = copy.room = None
        return copy

    def __getstate__(self) -> dict[str, Any]:
        state = {name: getattr(self, name) for name in self.__slots__}
        state["encoded"] = None
        for name in ("body", "payloads"):
            value = state[name]
            if isinstance(value, memoryview):
                state[name] = bytes(value)
            elif isinstance(value, list):
                state[name] = [bytes(item) for item in value]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        what = "data" if self.kind == DATA else f"kind {self.kind}"
        return f"<Packet {what} src={self.src} seq={self.seq} lsn={self.lsn} {len(self.body)} B>"
