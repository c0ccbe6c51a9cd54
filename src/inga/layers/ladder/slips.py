"""The right rule with one slip: vector time and the standard test, but for a single mistake.

    released    stamps count what was released, read or not
    reset       a notice that somebody has joined puts its count back to 0, whenever it comes
    delta-only  stamps are deltas also across a join, where nobody has told the newcomer the rest
    contiguous  behind an open gate, stamps count only what came without a hole
    unstamped   a member that opens its gate stops stamping as well

They ship for the same reason as the rungs: so that each can be played and seen to break.
"""

from inga.layers.causal import Causal
from inga.model.packet import Packet
from inga.model.view import View


class Released(Causal):
    """One vector where two are needed: what is released counts as known."""

    name = "released"

    def _rebuild(self, out: list[Packet]) -> None:
        super()._rebuild(out)
        super().taken(out)

    def taken(self, packets: list[Packet]) -> None: ...


class Reset(Causal):
    """A count that exists is put back."""

    name = "reset"

    def extend(self, view: View) -> None:
        super().extend(view)
        self.inbox.vector[len(view) - 1] = 0


class DeltaOnly(Causal):
    """What the previous stamp named is not named again, although a newcomer never saw that stamp."""

    name = "delta-only"

    def extend(self, view: View) -> None:
        changed = self.clock.changed
        super().extend(view)
        self.clock.changed = changed


class Contiguous(Causal):
    """What passed the gate early is not named before all that was sent before it has come."""

    name = "contiguous"

    def taken(self, packets: list[Packet]) -> None:
        for packet in packets:
            if packet.deps is None:
                self._early[packet.src, packet.seq] = True
            else:
                super().taken([packet])


class Unstamped(Causal):
    """Off means off: neither a count nor a stamp, and whoever gets such a message delivers it."""

    name = "unstamped"

    def gate(self, is_open: bool) -> None:
        self._is_open = is_open

    def down(self, batch: list[Packet]) -> None:
        if self._is_open:
            for packet in batch:
                self._sent(packet)
            self.below(batch)
        else:
            super().down(batch)

    def up(self, batch: list[Packet]) -> None:
        for packet in batch:
            if packet.stamp is None:
                self._release([packet])
            else:
                super().up([packet])

    def taken(self, packets: list[Packet]) -> None:
        super().taken([packet for packet in packets if packet.stamp is not None])


SLIPS: tuple[type[Causal], ...] = (Released, Reset, DeltaOnly, Contiguous, Unstamped)
