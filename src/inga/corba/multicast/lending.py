"""Lending under ReMIOP: packets of a departed member are repaired by the others, bit for bit as they were sent.

Members count a sender's packets from 1 here, wherever its numbers begin. A packet of a departed member is taken only if
it was dealt to us: otherwise one member would deliver a packet that another has just reported to lack.

A member must be able to lend all packets that it reports to have. So it drops no packet that some member has not reported. That
needs no additional room as long as the sender waits for all of us; a sender that has excluded some of us does not, and its packets,
or its STATE that it has sent them, would push packets that others of us lack out of the buffer. So packets that are more than
two buffers ahead of the slowest of us are not taken: one is the sender's window, the other is for reports that reached the sender and
not us.

Rejected: to report of a sender only the packets that can still be lent. A packet that was delivered at one member and not at another is
then missing at the other for ever, and the two cannot go on to the same view.
"""

from collections.abc import Collection, Mapping

from inga.corba.multicast.fragments import Piece
from inga.corba.multicast.reported import Reported, Said, Stream, start_of
from inga.layers.lending import NumberedLender
from inga.model.compiled import mypyc_attr
from inga.model.packet import DATA, Packet, Runs
from inga.model.view import View
from inga.session.closing import LENT_MAX
from inga.stack.hooks import Holdings


@mypyc_attr(allow_interpreted_subclasses=True)
class StreamLender(Reported[Said], NumberedLender):
    """The lender's part of a strategy that keeps the packets of others."""

    def view(self, view: View) -> None:
        # By departed sender: the packets dealt to us, which we lack and another member has, counted from 1.
        self._dealt: dict[int, Runs] = {}
        super().view(view)

    def gone(self, member: int) -> None:
        """If a view without the departed member follows, the others first lend each other the packets that any of them has of it."""
        stream = self._streams.get(self.miop.senders[member])
        if not self.stack.views.follow:
            super().gone(member)
            return
        if stream is not None:
            self._stop_asking(stream)
        self._settle()
        self._pump()

    def closed(self) -> None:
        """All members that stay have all packets: confirm all receipts."""
        for _, receipt in self._receipts:
            receipt.reach("confirmed")
        self._receipts.clear()

    def count(self) -> int:
        return self._last_data - self.first + 1

    def holdings(self, member: int) -> Holdings:
        """What we have of a departed member. From now on, we only take packets of it that are dealt to us."""
        self._dealt.pop(self.miop.senders[member], None)
        return super().holdings(member)

    def come(self, counts: list[int]) -> bool:
        """Whether so many packets of each member have arrived; the others count as missing from now on."""
        for member in self.stack.peers:
            stream = self._streams.get(self.miop.senders[member])
            if stream is not None and stream.known < stream.baseline + counts[member] - 1:
                self._learn(stream, stream.baseline + counts[member] - 1, came=0)
        return super().come(counts)

    def lacking(self, member: int, dealt: Holdings) -> dict[int, Runs]:
        wanted = super().lacking(member, dealt)
        runs = self._dealt[self.miop.senders[member]] = tuple(run for lent in wanted.values() for run in lent)
        if runs:
            self.stack.row("gap", member, n=sum(high - low for low, high in runs))
        return wanted

    def lend(self, member: int, runs: Runs, to: int) -> list[Packet]:
        now = self.stack.now
        batch: list[Packet] = []
        for number, packet in self._kept_of(member).items():
            is_wanted = any(low <= number < high for low, high in runs)
            if is_wanted and packet.piece.spared_until <= now and len(batch) < LENT_MAX:
                self._spare(packet)
                packet.kind = DATA
                batch.append(packet)
                self.stack.row("repair", member, n=packet.lsn)
        self.stack.counts["lent"] += len(batch)
        if batch:
            self.below(batch)
        return []

    def bereft(self, member: int) -> None:
        """Do nothing: packets of it that others lack are still lent."""

    def _came(self, member: int) -> tuple[int, Collection[int]]:
        stream = self._streams.get(self.miop.senders[member])
        if stream is None:
            return 1, ()
        before = stream.baseline - 1
        return stream.arrived.expected - before, [number - before for number in stream.arrived.early]

    def _kept_of(self, member: int) -> Mapping[int, Packet]:
        stream = self._streams.get(self.miop.senders[member])
        if stream is None:
            return {}
        return {number - stream.baseline + 1: packet for number, packet in stream.buffer.items()}

    def _is_dealt(self, sender: int, number: int) -> bool:
        """Whether that packet of a departed member was dealt to us: we lack it, and another member has it."""
        stream = self._streams.get(sender)
        first = start_of(number) if stream is None else stream.baseline
        return any(low <= number - first + 1 < high for low, high in self._dealt.get(sender, ()))

    def _stream_of(self, packet: Packet, piece: Piece) -> Stream | None:
        is_known = piece.sender in self._streams
        if packet.src in self.stack.left and not is_known and self._is_dealt(piece.sender, packet.lsn):
            return self._new_stream(piece.sender, packet.src, start_of(packet.lsn))
        return super()._stream_of(packet, piece)

    def _take_in(self, stream: Stream, packet: Packet) -> bool:
        is_gone = stream.member in self.stack.left and self.stack.views.follow
        if is_gone and not self._is_dealt(stream.sender, packet.lsn):
            self.stack.counts["late"] += 1
            return False
        if not is_gone and not self._can_keep(stream, packet.lsn):
            self.stack.counts["ahead"] += 1
            return False
        return super()._take_in(stream, packet)

    def _told_of(self, stream: Stream, sender: int, number: int) -> None:
        """A member has reported all packets of another sender up to `number`."""
        if sender in self.miop.members and number > stream.has_of_it.get(sender, 0):
            stream.has_of_it[sender] = number
            if len(stream.buffer) > self.size:
                limit = stream.known - self.size
                self._keep_for_others(stream, limit)
                stream.drop(limit, self.size)

    def _can_keep(self, stream: Stream, number: int) -> bool:
        """Whether we can take that packet of a present member and still keep all packets that some member may lack."""
        return self._are_everywhere(stream, number - 2 * self.size)

    def _learn(self, stream: Stream, number: int, came: int = 1) -> None:
        self._keep_for_others(stream, number - self.size)
        super()._learn(stream, number, came)

    def _keep_for_others(self, stream: Stream, limit: int) -> None:
        """Call before packets up to `limit` are dropped: exempts those that some member has not reported."""
        stream.droppable = limit if self._are_everywhere(stream, limit) else stream.everywhere

    def _are_everywhere(self, stream: Stream, number: int) -> bool:
        """Whether all other present members have reported a sender's packets up to `number`. True if no view follows: then
        nothing is lent."""
        if number <= stream.everywhere or not self.stack.views.follow:
            return True
        senders, reported = self.miop.senders, stream.has_of_it
        peers = [senders[member] for member in self.stack.peers if member != stream.member]
        stream.everywhere = min(
            [reported.get(sender, stream.baseline - 1) for sender in peers], default=number
        )
        return number <= stream.everywhere

    def _stop_asking(self, stream: Stream) -> None:
        """Stop requesting the missing packets of a sender."""
        stream.missing.clear()

    def _spare(self, packet: Packet | None) -> None:
        """Note that the packet was repaired just now."""
        raise NotImplementedError
