"""Stacks without a simulator: every datagram and every moment is in the hands of the test.

`ByHand` joins whole stacks by a list of datagrams under way; `Net` is a group of members that stay, by number, and
`Town` of the session tests one that changes, by name. `Probe` puts one layer between a top that collects what comes
up and a bottom that collects what goes down.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from math import inf
from random import Random
from typing import Any, NamedTuple
from zlib import crc32

from inga.model.delivery import Batch
from inga.model.packet import Packet
from inga.model.receipt import Receipt
from inga.model.view import View
from inga.recipes import Options, find
from inga.stack.layer import Layer
from inga.stack.stack import Address, Stack, joined
from inga.wire.packet import INDEX_MAX, decode, tag_of

NAMES = ("alice", "bob", "cathy", "dave", "erin", "frank", "grace", "heidi")

RELIABLE, FLOW, SESSION = 1, 2, 3
"""Kinds of control packets."""

ROUNDS_MAX = 50_000


class in_any_view(dict[int, int]):
    """So many members, whatever the view."""

    def __init__(self, members: int) -> None:
        self.members = members

    def get(self, view: int, default: Any = None) -> Any:
        return self.members


def resealed(data: bytes | bytearray) -> bytes:
    """A datagram that was changed on purpose, with the check that fits it now."""
    return bytes(data[:-4]) + crc32(data[:-4]).to_bytes(4, "little")


class Flight(NamedTuple):
    """One copy on its way to one place: a member's number, or the name of whoever is there."""

    source: Any
    target: Any
    data: bytes

    @property
    def kind(self) -> int:
        return self.data[3]

    def packet(self, members: int = INDEX_MAX) -> Packet:
        """What is in it, of whichever group and view, for a test that wants to look."""
        found = decode(self.data, tag_of(self.data), in_any_view(members), INDEX_MAX)
        assert found is not None
        return found


Lose = Callable[[Any], bool]
"""Whether a flight is lost."""


class ByHand:
    """Places, and the copies under way between them, which arrive when the test says so. Time passes only while none is
    under way. A subclass says where stacks are, what they reach, and what becomes of what they deliver."""

    flight: type[Flight] = Flight

    def __init__(self, *, takes: bool, seed: int) -> None:
        """`takes`: applications take at once what is delivered."""
        self.rng = Random(seed)
        self.takes = takes
        self.now = 0.0
        self.wake: Any = {}  # when each place wants to be woken
        self.under_way: list[Any] = []
        self.log: list[Any] = []  # all that was ever sent, one entry per copy
        self.notices: list[str] = []
        self.told: dict[Any, list[str]] = defaultdict(list)  # the same, by place
        self.errors: Any = {}

    def member(self, place: Any) -> Stack:
        raise NotImplementedError

    def reached(self, place: Any, address: Address) -> Iterable[Any]:
        """The places that a datagram goes to."""
        raise NotImplementedError

    def delivered(self, place: Any, items: list[Batch | View]) -> None:
        raise NotImplementedError

    def inject(self, place: Any, *datagrams: bytes, source: Any = None) -> None:
        """Any bytes, in one batch."""
        raise NotImplementedError

    def tick(self, place: Any) -> None:
        self.member(place).tick(self.now)
        self.turn(place)

    def wakes(self) -> Iterable[tuple[Any, float | None]]:
        return self.wake.items()

    def turn(self, place: Any) -> None:
        """End the turn of whoever is there, and collect what comes of it."""
        stack = self.member(place)
        while True:
            ready = stack.ready()
            self.wake[place] = ready.wake
            if ready.error is not None:
                self.errors[place] = ready.error
            self.notices += ready.notices
            self.told[place] += ready.notices
            for address, datagram in ready.send:
                self.post(place, self.reached(place, address), joined(datagram))
            self.delivered(place, ready.deliver)
            batches = [item for item in ready.deliver if isinstance(item, Batch)]
            if not (self.takes and batches):
                break
            for batch in batches:
                stack.taken([batch.packet], now=self.now)

    def post(self, source: Any, targets: Iterable[Any], data: bytes) -> None:
        for target in targets:
            if target != source:
                self.under_way.append(self.flight(source, target, data))
                self.log.append(self.under_way[-1])

    def arrive(self, *flights: Any) -> None:
        """Let these copies arrive, each in a turn of its own."""
        for flight in flights:
            if flight in self.under_way:
                self.under_way.remove(flight)
            self.inject(flight.target, flight.data, source=flight.source)

    def lose(self, chosen: Lose) -> list[Any]:
        """Drop the copies under way that are so."""
        lost = [flight for flight in self.under_way if chosen(flight)]
        self.under_way = [flight for flight in self.under_way if not chosen(flight)]
        return lost

    def settle(self) -> None:
        """Let all copies arrive, also those that this causes; time stands still."""
        for _ in range(ROUNDS_MAX):
            if not self.under_way:
                return
            self.arrive(self.under_way[0])
        raise AssertionError("copies without end")

    def wait(
        self, seconds: float, lose: Lose = lambda flight: False, until: Callable[[], bool] = lambda: False
    ) -> None:
        """Let time pass; copies arrive at once, in the order they were sent, unless lost."""
        end = self.now + seconds
        for _ in range(ROUNDS_MAX):
            if until():
                return
            if self.under_way:
                flight = self.under_way.pop(0)
                if not lose(flight):
                    self.inject(flight.target, flight.data, source=flight.source)
            elif not self.wake_next(end):
                self.now = end
                return
        raise AssertionError(f"not quiet within {seconds} s")

    def wake_next(self, end: float = inf) -> bool:
        """Wake whoever wants to be woken first, if that is before the end."""
        due = [(wake, place) for place, wake in self.wakes() if wake is not None]
        if not due or min(due)[0] > end:
            return False
        self.now = max(self.now, min(due)[0])
        self.tick(min(due)[1])
        return True

    def quiet(self, seconds: float = 1e6) -> None:
        """Run until nobody has anything to do, which must come to pass."""
        self.wait(seconds)
        assert not self.under_way and all(wake is None for _, wake in self.wakes())


class Net(ByHand):
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
        super().__init__(takes=takes, seed=seed)
        names = [*NAMES[:members], *(f"member{i}" for i in range(len(NAMES), members))]
        self.view = View.of(*names, recipe=order, traced=traced)
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
        self.batches: list[list[Batch]] = [[] for _ in range(members)]
        self.wake = [None] * members
        self.errors = [None] * members

    def member(self, place: int) -> Stack:
        return self.stacks[place]

    def wakes(self) -> Iterable[tuple[int, float | None]]:
        return enumerate(self.wake)

    def reached(self, place: int, address: Address) -> Iterable[int]:
        """A view may have other indices for members than the first one."""
        if address is None:
            return range(len(self.stacks))
        assert isinstance(address, int)
        return (self.stacks[place].view.processes[address],)

    def delivered(self, place: int, items: list[Batch | View]) -> None:
        self.batches[place] += [item for item in items if isinstance(item, Batch)]

    def send(self, member: int, *messages: bytes, to: int | None = None) -> Receipt:
        """One turn of one member."""
        for message in messages:
            receipt = self.stacks[member].send(message, to, now=self.now)
        self.turn(member)
        return receipt

    def take(self, member: int, *batches: Batch) -> None:
        self.stacks[member].taken([batch.packet for batch in batches], now=self.now)
        self.turn(member)

    def inject(self, place: int, *datagrams: bytes, source: Any = None) -> None:
        self.stacks[place].receive([(data, None) for data in datagrams], now=self.now)
        self.turn(place)

    def to(self, target: int, kind: int | None = None, source: int | None = None) -> list[Flight]:
        """Copies under way to a member."""
        return [
            flight
            for flight in self.under_way
            if flight.target == target
            and (kind is None or flight.kind == kind)
            and (source is None or flight.source == source)
        ]

    def texts(self, member: int) -> list[str]:
        return [bytes(data).decode() for batch in self.batches[member] for data in batch.payloads]

    def packets(self, flights: Iterable[Flight]) -> list[Packet]:
        """What is in these, of whichever view."""
        return [flight.packet(len(self.stacks)) for flight in flights]

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
