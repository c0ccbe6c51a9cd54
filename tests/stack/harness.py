"""Stacks without a simulator: every datagram and every moment is in the hands of the test.

`Net` joins whole stacks by a list of datagrams under way. `Probe` puts one layer between a top that
collects what comes up and a bottom that collects what goes down.
"""

from collections.abc import Callable, Iterable
from random import Random
from typing import Any, NamedTuple

from inga.model.delivery import Batch
from inga.model.errors import IngaError
from inga.model.packet import Packet
from inga.model.receipt import Receipt
from inga.model.view import View
from inga.recipes import Options, find
from inga.stack.layer import Layer
from inga.stack.stack import Address, Stack
from inga.wire.packet import INDEX_MAX, decode, tag_of

NAMES = ("alice", "bob", "cathy", "dave", "erin", "frank", "grace", "heidi")

RELIABLE, FLOW, SESSION = 1, 2, 3
"""Kinds of control packets."""

ROUNDS_MAX = 20_000


class in_any_view(dict[int, int]):
    """So many members, whatever the view."""

    def __init__(self, members: int) -> None:
        self.members = members

    def get(self, view: int, default: Any = None) -> Any:
        return self.members


class Flight(NamedTuple):
    """One copy on its way to one member."""

    source: int
    target: int
    data: bytes

    @property
    def kind(self) -> int:
        return self.data[3]

    def packet(self, group: int, members: int) -> Packet:
        """What is in it, for a test that wants to look."""
        found = decode(self.data, group, in_any_view(members), INDEX_MAX)
        assert found is not None
        return found


def joined(datagram: Any) -> bytes:
    return b"".join(datagram) if isinstance(datagram, list) else bytes(datagram)


class Net:
    """A group whose network does what the test says."""

    def __init__(
        self,
        members: int = 3,
        order: str = "vector",
        *,
        options: Options | None = None,
        build: Callable[[], list[Layer]] | None = None,
        takes: bool = True,
        group: str = "",
        traces: list[Any] | None = None,
        traced: bool = False,
        datagram_max: int = 60 * 1024,
        seed: int = 0,
    ) -> None:
        """`takes`: applications take at once what is delivered."""
        self.view = View.of(*NAMES[:members], recipe=order, traced=traced)
        self.rng = Random(seed)
        self.stacks = [
            Stack(
                build() if build is not None else find(order).build(options or Options()),
                me,
                self.view,
                rng=self.rng,
                group=group,
                trace=None if traces is None else traces[me],
                datagram_max=datagram_max,
                beneath=("reliable",) if options is not None and options.lossless else (),
            )
            for me in range(members)
        ]
        self.takes = takes
        self.now = 0.0
        self.under_way: list[Flight] = []
        self.log: list[Flight] = []  # all that was ever sent, one entry per copy
        self.batches: list[list[Batch]] = [[] for _ in range(members)]
        self.wake: list[float | None] = [None] * members
        self.errors: list[IngaError | None] = [None] * members
        self.notices: list[str] = []

    def send(self, member: int, *messages: bytes, to: int | None = None) -> Receipt:
        """One turn of one member."""
        for message in messages:
            receipt = self.stacks[member].send(message, to, now=self.now)
        self.turn(member)
        return receipt

    def turn(self, member: int) -> None:
        """End the member's turn, and collect what comes of it."""
        stack = self.stacks[member]
        while True:
            ready = stack.ready()
            self.wake[member] = ready.wake
            self.errors[member] = ready.error
            self.notices += ready.notices
            for address, datagram in ready.send:
                for target in self._reached(stack, address):
                    if target != member:
                        self.under_way.append(Flight(member, target, joined(datagram)))
                        self.log.append(self.under_way[-1])
            batches = [item for item in ready.deliver if isinstance(item, Batch)]
            self.batches[member] += batches
            if not (self.takes and batches):
                break
            for batch in batches:
                stack.taken([batch.packet], now=self.now)

    def _reached(self, stack: Stack, address: Address) -> Iterable[int]:
        """Whom a datagram goes to: a view may have other indices for members than the first one."""
        if address is None:
            return range(len(self.stacks))
        assert isinstance(address, int)
        return (stack.view.processes[address],)

    def take(self, member: int, *batches: Batch) -> None:
        self.stacks[member].taken([batch.packet for batch in batches], now=self.now)
        self.turn(member)

    def arrive(self, *flights: Flight) -> None:
        """Let these copies arrive, each in a turn of its own."""
        for flight in flights:
            if flight in self.under_way:
                self.under_way.remove(flight)
            self.inject(flight.target, flight.data)

    def inject(self, member: int, *datagrams: bytes) -> None:
        """Any bytes, in one batch."""
        self.stacks[member].receive([(data, None) for data in datagrams], now=self.now)
        self.turn(member)

    def lose(self, chosen: Callable[[Flight], bool]) -> list[Flight]:
        """Drop the copies under way that are so."""
        lost = [flight for flight in self.under_way if chosen(flight)]
        self.under_way = [flight for flight in self.under_way if not chosen(flight)]
        return lost

    def to(self, target: int, kind: int | None = None, source: int | None = None) -> list[Flight]:
        """Copies under way to a member."""
        return [
            flight
            for flight in self.under_way
            if flight.target == target
            and (kind is None or flight.kind == kind)
            and (source is None or flight.source == source)
        ]

    def settle(self) -> None:
        """Let all copies arrive, also those that this causes; time stands still."""
        for _ in range(ROUNDS_MAX):
            if not self.under_way:
                return
            self.arrive(self.under_way[0])
        raise AssertionError("copies without end")

    def wait(self, seconds: float, lose: Callable[[Flight], bool] = lambda flight: False) -> None:
        """Let time pass; copies arrive at once unless lost."""
        end = self.now + seconds
        for _ in range(ROUNDS_MAX):
            self.lose(lose)
            if self.under_way:
                self.arrive(self.under_way[0])
                continue
            due = [(wake, member) for member, wake in enumerate(self.wake) if wake is not None]
            if not due or min(due)[0] > end:
                self.now = end
                return
            self.now, member = max(self.now, min(due)[0]), min(due)[1]
            self.tick(member)
        raise AssertionError(f"not quiet within {seconds} s")

    def tick(self, member: int) -> None:
        self.stacks[member].tick(self.now)
        self.turn(member)

    def quiet(self, seconds: float = 1e6) -> None:
        """Run until nobody has anything to do, which must come to pass."""
        self.wait(seconds)
        assert not self.under_way
        assert self.wake == [None] * len(self.stacks)

    def texts(self, member: int) -> list[str]:
        return [bytes(data).decode() for batch in self.batches[member] for data in batch.payloads]

    def packets(self, flights: Iterable[Flight]) -> list[Packet]:
        """What is in these, of whichever view."""
        return [flight.packet(tag_of(flight.data), len(self.stacks)) for flight in flights]

    def names(self, member: int) -> tuple[str, ...]:
        """Who is here, as that member sees it: in the view in force and not gone."""
        stack = self.stacks[member]
        return tuple(name for at, name in enumerate(stack.view.names) if at not in stack.left)


class Top(Layer):
    """Where the application would be: sends packets as they are told, keeps what comes up."""

    name = "top"

    def __init__(self) -> None:
        self.got: list[Packet] = []

    def send(self, payloads: list[bytes], dst: int | None) -> Receipt:
        packet = Packet(self.stack.me, self.stack.view.number, b"".join(payloads), dst)
        packet.receipt = self.stack.receipt()
        self.below([packet])
        return packet.receipt

    def up(self, batch: list[Packet]) -> None:
        self.got += batch


class Bottom(Layer):
    """Where the network would be: keeps what goes down, claims every service."""

    name = "bottom"
    provides = frozenset({"reliable", "flow", "fifo", "causal"})

    def __init__(self) -> None:
        self.sent: list[Packet] = []

    def down(self, batch: list[Packet]) -> None:
        self.sent += batch


class Probe:
    """One layer under test."""

    def __init__(
        self, layer: Layer, *, me: int = 0, members: int = 3, traced: bool = False, **stack: Any
    ) -> None:
        self.layer = layer
        self.top, self.bottom = Top(), Bottom()
        view = View.of(*NAMES[:members], traced=traced)
        self.stack = Stack([self.top, layer, self.bottom], me, view, rng=Random(0), **stack)

    def feed(self, *packets: Packet) -> list[Packet]:
        """Give packets to the layer from below in one batch; what came out above."""
        before = len(self.top.got)
        self.layer.up(list(packets))
        return self.top.got[before:]
