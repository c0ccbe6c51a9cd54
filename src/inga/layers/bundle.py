"""Bundles: several application messages share a packet, and so its stamp.

All messages sent between two takes at a member have the same causal past, so they can share a packet. A bundle
closes when it is full, when the application takes a message (what is sent next has another past), or at
the end of the turn. But if two earlier partial bundles are still in flight, it waits for more messages, until the first of
these is acknowledged, which happens at once. There is no timer. If the packet would have to wait in a layer below
anyway (`stack.passable` is false), the bundle waits for more messages, too.

A message to other members than the one before closes the bundle, unless the order below can give each destination a
share of its own (`mixes`): then one bundle contains messages for several sets, in the order in which they were sent.

From docs/architecture.md, "Bundles".
"""

from collections import defaultdict
from functools import reduce
from operator import or_

from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError, WireError
from inga.model.packet import Packet
from inga.model.receipt import Receipt
from inga.model.view import View
from inga.stack.figures import Figures
from inga.stack.hooks import MessageCounts
from inga.stack.layer import Layer
from inga.wire import bundle as wire
from inga.wire import shares

MESSAGES_MAX = 8192
"""The most messages in a bundle: enough to fill a datagram with the smallest ones."""

HEAD, LENGTH = 5, 4
"""Bytes reckoned for a bundle's head, and for the length field of each message."""

MESSAGE_BYTES_MAX = 64 * 1024 * 1024
"""The largest single message. A larger one belongs in a file."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Bundle(Layer):
    """Gathers messages of the application into packets, and splits packets of other members into their messages."""

    name = "bundle"

    def __init__(self, *, gather: bool = True, coarse: bool = False, mixes: bool = False) -> None:
        """`gather`: a bundle that is not full waits for further messages, as described above. `coarse`: it stays open when
        the application takes a message. `mixes`: it stays open for messages to other members."""
        self.gather = gather
        self.coarse = coarse
        self.mixes = mixes
        self._each = LENGTH + shares.EACH * mixes  # bytes reckoned for a message besides its payload
        self._open: list[bytes] = []
        self._dst: int | None = None
        # With `mixes`, earlier runs of messages in the open bundle: their destinations, and the number of messages up to their end.
        self._runs: list[tuple[int | None, int]] = []
        self._sets: set[int | None] = set()
        self._size = 0
        self._size_max = 0
        self._since = 0.0  # when the open bundle was opened
        self._receipt: Receipt | None = None
        # The last bundle that left before it was full, and the one before that.
        self._partial: Packet | None = None
        self._earlier: Packet | None = None
        self._acknowledged = 0  # the lsn up to which some other member has all our packets

    def view(self, view: View) -> None:
        self._size_max = self.stack.wire.payload_max - HEAD
        if self.mixes:
            self._size_max -= shares.HEAD.size + shares.set_size(len(view))
        self._partial = self._earlier = None
        self._acknowledged = 0
        self._said: defaultdict[int, int] = defaultdict(int)  # messages to subsets, by destination
        self._whole = 0  # messages to all members
        self._some = 0  # messages to subsets
        self._heard: defaultdict[int, int] = defaultdict(int)  # messages that arrived, by sender

    def tally(self) -> MessageCounts:
        members = range(len(self.stack.view))
        said = [self._said[member] + self._whole for member in members]
        return MessageCounts(said, self._whole, [self._heard[member] for member in members])

    def account(self, figures: Figures) -> None:
        figures.sent += self._whole + self._some
        for member, count in self._heard.items():
            figures.delivered[member] += count

    def send(self, payloads: list[bytes], dst: int | None) -> Receipt:
        if not self._open:
            self._since = self.stack.now
        elif dst != self._dst:
            self._turn_to(dst)
        self._dst = dst
        if len(payloads) == 1 and len(self._open) < MESSAGES_MAX:
            size = self._size + len(payloads[0]) + self._each
            if size <= self._size_max:
                self._open += payloads
                self._size = size
                return self._receipt or self._new_receipt()
        sizes = list(map(len, payloads))
        smallest, largest = min(sizes), max(sizes)
        if largest > MESSAGE_BYTES_MAX:
            raise UsageError(f"a message of {largest} bytes: at most {MESSAGE_BYTES_MAX} can be sent")
        if smallest == largest:
            self._fill_equal(payloads, largest + self._each)
        else:
            self._fill(payloads, sizes)
        return self._receipt or self._new_receipt()

    def _turn_to(self, dst: int | None) -> None:
        """Prepare the open bundle for messages to other members: begin another run in it, or close it."""
        if not self.mixes:
            self._close(full=False)
            return
        self._sets.add(self._dst)
        if len(self._sets) == shares.SETS_MAX:
            self._close(full=True)
            return
        self._runs.append((self._dst, len(self._open)))
        self._size += shares.set_size(len(self.stack.view))

    def _fill_equal(self, payloads: list[bytes], each: int) -> None:
        """Add messages of one length, as many at a time as fit into a bundle."""
        start = 0
        while True:
            room = min((self._size_max - self._size) // each, MESSAGES_MAX - len(self._open))
            if room <= 0:  # below 0 if the open bundle exceeds a datagram, or one more set does not fit
                room = 0 if self._open else 1  # larger than a datagram: alone, to be cut into fragments
            part = payloads[start : start + room]
            self._open += part
            self._size += each * len(part)
            start += len(part)
            if start == len(payloads):
                return
            self._close(full=True)

    def _fill(self, payloads: list[bytes], sizes: list[int]) -> None:
        """Add messages of any lengths: close bundles that are full, leave the last one open."""
        start = 0
        for at, size in enumerate(sizes):
            size += self._each
            if self._size + size > self._size_max or len(self._open) + at - start >= MESSAGES_MAX:
                self._open += payloads[start:at]
                start = at
                if self._open:
                    self._close(full=True)
            self._size += size
        self._open += payloads[start:]

    def _new_receipt(self) -> Receipt:
        self._receipt = self.stack.receipt()
        return self._receipt

    def up(self, batch: list[Packet]) -> None:
        out = []
        for packet in batch:
            try:
                if packet.payloads is None:
                    _take_apart(packet)
            except WireError as error:
                self.stack.reject(error.reason, packet)
                continue
            self._heard[packet.src] += packet.count
            out.append(packet)
        if out:
            self.above(out)

    def store(self, packet: Packet) -> None:
        """Prepare a packet for being kept: copy its messages one by one now, instead of the whole body now and each message later."""
        try:
            if packet.frag is None:
                _take_apart(packet)
        except WireError:
            pass  # an invalid bundle is rejected when the packet comes up
        packet.keep()

    def restore(self, packet: Packet) -> None:
        """Give the packet its body again, as it arrived."""
        if packet.payloads is not None:
            packet.body = wire.join([bytes(payload) for payload in packet.payloads])

    def taken(self, packets: list[Packet]) -> None:
        if self._open and not self.coarse:
            self._close(full=False)

    def turn(self) -> None:
        if self._open and self._may_leave():
            self._close(full=False)

    def acknowledged(self, lsn: int) -> None:
        self._acknowledged = lsn
        if self._earlier is not None and self._has_arrived(self._earlier):
            self._earlier = None  # it need not be kept: no bundle waits for it any more
        if self._open and self._may_leave():
            self._close(full=False)

    def flush(self) -> None:
        if self._open:
            self._close(full=False)

    def _may_leave(self) -> bool:
        if not self.stack.passable:
            return False
        return not self.gather or self._earlier is None or self._has_arrived(self._earlier)

    def _has_arrived(self, packet: Packet) -> bool:
        """Whether any other member has the packet. One that was cut into fragments counts as arrived, since it never gets an lsn of
        its own that could be acknowledged."""
        return packet.is_cut or 0 < packet.lsn <= self._acknowledged

    def _close(self, *, full: bool) -> None:
        stack = self.stack
        packet = Packet(stack.me, stack.view.number, wire.join(self._open), self._dst)
        packet.count = len(self._open)
        if self._runs:
            self._share_out(packet)
        else:
            self._count_said(packet.dst, packet.count)
        packet.at, self._since = self._since, stack.now
        packet.receipt = self._receipt  # None unless a sender asked for a receipt
        if self.gather and not full:
            packet.partial = True
            self._earlier, self._partial = self._partial, packet
        self._open = []
        self._size = 0
        self._receipt = None
        self.below([packet])

    def _count_said(self, dst: int | None, count: int) -> None:
        if dst is None:
            self._whole += count
            return
        self._some += count
        for member in range(len(self.stack.view)):
            self._said[member] += count * (dst >> member & 1)

    def _share_out(self, packet: Packet) -> None:
        """Address the packet to all destinations of its messages and, if these have different destinations, give
        each member its share."""
        members = len(self.stack.view)
        others = (1 << members) - 1 & ~(1 << self.stack.me)
        sets: list[int] = []
        for dst, end in (*self._runs, (self._dst, len(self._open))):
            if end > len(sets):
                packet.dst = dst
                self._count_said(dst, end - len(sets))
                sets += [others if dst is None else dst] * (end - len(sets))
        if len(named := set(sets)) > 1:
            packet.dst = reduce(or_, named)
            packet.shares = dict(shares.share_out(self._open, sets, members))
        self._runs.clear()
        self._sets.clear()


def _take_apart(packet: Packet) -> None:
    body = packet.body
    if len(body) >= wire.VIEW_FROM and body[0] == 0:
        packet.keep()
        body = packet.body
    payloads = wire.split(body)
    if len(payloads) != packet.count:
        raise WireError("malformed", f"{len(payloads)} messages, announced {packet.count}")
    packet.payloads = payloads
    packet.size = len(body)
    packet.body = b""
