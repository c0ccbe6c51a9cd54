"""Variants of the right layer, each wrong in one rule.

    released         stamps and flags are computed from released messages, not from taken ones
    join-resets      a late announcement of a newcomer resets its count to 0
    join-delta       the first stamp after a join names only what changed, like any other
    gate-contiguous  with an open gate, stamps name only the messages that were taken without a gap
    gate-unstamped   while the gate is open, messages are sent without a stamp and are not counted

Why each rule is needed: docs/protocols/causality.md and membership.md.
"""

from inga.layers.causal import Causal
from inga.model.packet import Packet
from inga.model.view import View


class ReleasedIsKnown(Causal):
    """One vector where two are needed: released messages count as known."""

    name = "released"

    def _rebuild(self, out: list[Packet]) -> None:
        super()._rebuild(out)
        super().taken(out)

    def taken(self, packets: list[Packet]) -> None: ...


class JoinResets(Causal):
    """A late announcement of a newcomer resets the count of messages that it has sent already."""

    name = "join-resets"

    def extend(self, view: View) -> None:
        super().extend(view)
        self.inbox.vector[len(view) - 1] = 0


class JoinDelta(Causal):
    """Deltas refer to earlier stamps, which the newcomer does not have."""

    name = "join-delta"

    def extend(self, view: View) -> None:
        changed = set(self.clock.changed)
        super().extend(view)
        self.clock.changed = changed


class GateContiguous(Causal):
    """A message that was taken before its turn is a cause, but stamps do not name it."""

    name = "gate-contiguous"

    def taken(self, packets: list[Packet]) -> None:
        for packet in packets:
            if packet.deps is None:
                self._early[packet.src, packet.seq] = True
                self._took(packet)
            else:
                super().taken([packet])


class GateUnstamped(Causal):
    """An open gate also stops the stamping of sends: others cannot order messages that they cannot count."""

    name = "gate-unstamped"

    def down(self, batch: list[Packet]) -> None:
        if self._is_open:
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


BENT: tuple[type[Causal], ...] = (ReleasedIsKnown, JoinResets, JoinDelta, GateContiguous, GateUnstamped)
