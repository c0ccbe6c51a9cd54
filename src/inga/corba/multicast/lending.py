"""What ReMIOP has of members that are gone: the others hand it round by repairing it, bit for bit as it was sent.

Members count a sender's packets from 1 here, wherever its numbers begin. What comes of one that is gone is taken only if
it was dealt to us: otherwise one of us would deliver what another has just said that it does not have.
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
        # Of senders that are gone: what we lack and another has, counted from 1.
        self._dealt: dict[int, Runs] = {}
        super().view(view)

    def gone(self, member: int) -> None:
        """Where a view without it follows, what anybody has of it is handed round before."""
        stream = self._streams.get(self.miop.senders[member])
        if not self.stack.views.follow:
            super().gone(member)
            return
        if stream is not None:
            self._stop_asking(stream)
        self._settle()
        self._pump()

    def closed(self) -> None:
        """Everybody who stays has everything."""
        for _, receipt in self._receipts:
            receipt.reach("confirmed")
        self._receipts.clear()

    def count(self) -> int:
        return self._last_data - self.first + 1

    def holdings(self, member: int) -> Holdings:
        """What is dealt after this is all that we may still take of it."""
        self._dealt.pop(self.miop.senders[member], None)
        return super().holdings(member)

    def come(self, counts: list[int]) -> bool:
        """Whether so many of each have come; what has not is missing from now on."""
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
        """Nothing to do: what others lack of it is still lent."""

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
        """Whether that packet of a member that is gone is one that we lack and another has."""
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
        return super()._take_in(stream, packet)

    def _stop_asking(self, stream: Stream) -> None:
        """What is missing of a sender is not asked for any more."""
        stream.missing.clear()

    def _spare(self, packet: Packet | None) -> None:
        """It was repaired just now."""
        raise NotImplementedError
