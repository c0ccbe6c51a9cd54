"""The right layer but for one rule.

    released         stamps and flags from what was released, not from what was taken
    join-resets      a notice that somebody has joined puts its count back to 0
    join-delta       the first stamp after a join names only what changed, like any other
    gate-contiguous  with an open gate, stamps name only what was taken without holes
    gate-unstamped   while the gate is open, what is sent has no stamp and is not counted

Why each rule is needed: docs/protocols/causality.md and membership.md.
"""

from inga.layers.causal import Causal
from inga.model.packet import Packet
from inga.model.view import View


class ReleasedIsKnown(Causal):
    """One vector where two are needed: what is released counts as known."""

    name = "released"

    def _rebuild(self, out: list[Packet]) -> None:
        super()._rebuild(out)
        super().taken(out)

    def taken(self, packets: list[Packet]) -> None: ...


class JoinResets(Causal):
    """A late welcome forgets what the newcomer has said already."""

    name = "join-resets"

    def extend(self, view: View) -> None:
        super().extend(view)
        self.inbox.vector[len(view) - 1] = 0


class JoinDelta(Causal):
    """The newcomer has not delivered what a delta builds upon."""

    name = "join-delta"

    def extend(self, view: View) -> None:
        changed = set(self.clock.changed)
        super().extend(view)
        self.clock.changed = changed


class GateContiguous(Causal):
    """What was taken ahead of its turn is a cause, and not named as one."""

    name = "gate-contiguous"

    def taken(self, packets: list[Packet]) -> None:
        for packet in packets:
            if packet.deps is None:
                self._early[packet.src, packet.seq] = True
                self._took(packet)
            else:
                super().taken([packet])


class GateUnstamped(Causal):
    """Off means off: others cannot put in order what they cannot count."""

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
