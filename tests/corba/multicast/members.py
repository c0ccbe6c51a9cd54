"""Members with ReMIOP whose network, clock and chance are in the hands of a test."""

from collections.abc import Iterable
from typing import Any

from inga.corba.multicast.fragments import MiopFragments, MiopPackets, quad_of
from inga.corba.multicast.remiop import ReMiop
from inga.corba.multicast.reported import Reported
from inga.corba.wire import miop
from inga.trace.memory import MemoryTrace

from ...stack.harness import Flight, Net, Top


class Fixed:
    """Chance that is told what to be: a share of every limit."""

    def __init__(self, *shares: float) -> None:
        self.shares = list(shares)

    def random(self) -> float:
        return self.shares.pop(0) if len(self.shares) > 1 else self.shares[0]


class Members(Net):
    """Plain messages over ReMIOP, among members who know each other."""

    def __init__(
        self,
        members: int = 3,
        chance: float = 0.5,
        datagram: int = 1472,
        strategy: type[Reported] = ReMiop,
        **options: Any,
    ) -> None:
        def build() -> list[Any]:
            fragments = MiopFragments(datagram=datagram, first=options.get("first", 1))
            return [Top(), fragments, strategy(**options), MiopPackets()]

        traces = [MemoryTrace(member, members) for member in range(members)]
        super().__init__(members, build=build, traces=traces)
        self.traces = traces
        for stack in self.stacks:
            stack.rng = Fixed(chance)
        self.senders = [quad_of(0, member) for member in range(members)]

    def strategy(self, member: int) -> ReMiop:
        layer = self.stacks[member].layer("remiop")
        assert isinstance(layer, ReMiop)
        return layer

    def got(self, member: int) -> list[bytes]:
        top = self.stacks[member].layers[0]
        assert isinstance(top, Top)
        return [bytes(packet.body) for packet in top.got]

    def controls(self, kind: int, source: int | None = None) -> list[miop.ControlPacket]:
        """Said so far, each once."""
        last = len(self.stacks) - 1
        found = []
        for flight in self.log:
            other = last if flight.source != last else last - 1
            if flight.target == other and source in (None, flight.source) and is_control(flight):
                control = miop.decode_control(miop.decode(flight.data))
                if control.kind == kind:
                    found.append(control)
        return found

    def asked(self, member: int | None = None) -> list[list[int]]:
        return [[number for _, number in control.entries] for control in self.controls(miop.NACK, member)]

    def rows(self, member: int, step: str) -> list[tuple[int | None, int | None]]:
        return [(row.peer, row.n) for row in self.traces[member].rows if row.step == step]

    def say(self, member: int, *messages: bytes, but: Iterable[int] = (), to: Iterable[int] = ()) -> None:
        """Send, and let it arrive, but not at those."""
        for message in messages:
            self.send(member, message)
            self.lose(lambda flight: flight.source == member and flight.target in but)
            self.settle()


def is_control(flight: Flight) -> bool:
    return miop.decode(flight.data).is_control


def number(flight: Flight) -> int:
    fragment = miop.decode(flight.data)
    return (miop.read_id(fragment.unique_id) or (0, 0))[1] + fragment.number
