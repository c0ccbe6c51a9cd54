"""Whole stacks of every reliable recipe in one small world, and what may be left in them when all is done.

A `Case` is a recipe as users name it, with windows that are soon full. `Group` is the `Net` of the stack tests with
members that leave, links that are cut, and a look into everybody's memory: `weigh` walks through the layers and counts
what every container holds. What a group may keep is not listed: it is what a group keeps that has only ever sent a
message each. The few things that are kept longer on purpose are in KEPT, each with its bound.
"""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from inga.corba.multicast import fragments as miop
from inga.corba.multicast import reported
from inga.model.compiled import state_of
from inga.model.receipt import Receipt
from inga.recipes import Options
from inga.session.hearing import SOURCES_MAX
from inga.stack.stack import Stack

from ..stack.harness import Flight, Net

A, B, C = range(3)


@dataclass(frozen=True)
class Case:
    """One recipe as it is asked for, and what is special about it."""

    order: str
    protocol: dict[str, Any] = field(default_factory=dict)
    small: dict[str, Any] = field(default_factory=dict)  # further options for a window that is soon full
    window: int = 0  # the small window, if it has one: in bytes for `flow`, else an option of the protocol
    matrix: bool = False
    stretch: float = 1.5  # how much longer it waits after answers were slow: its waits follow them up to here
    steady: bool = False  # its heartbeats come at one pace while anybody has use for them

    @property
    def name(self) -> str:
        more = [f"{key}={value}" for key, value in self.protocol.items()] + ["matrix"] * self.matrix
        return " ".join([self.order, *more])

    def options(self, *, small: bool = False, **reliable: Any) -> Options:
        protocol = {**self.protocol, **(self.small if small else {})}
        flow = {"window": self.window} if small and self.window else {}
        return Options(protocol=protocol, flow=flow, reliable=reliable, matrix=self.matrix)


DATAGRAM, PAGE = 1472, 1000
"""Bytes of a datagram, and of a message that does not share one with another."""

LADEN = 8 << 10
"""A window of `flow` that a few pages fill."""

CASES = [
    Case("none", window=LADEN),
    Case("fifo", window=LADEN),
    Case("vector", window=LADEN),
    Case("vector", window=LADEN, matrix=True),
    Case("relay", window=LADEN),
    Case("co", small={"window": 2}, stretch=8),
    Case("sco", small={"window": 2}, stretch=4.5),
    Case("miop+acks", small={"size": 4}),
    Case("remiop", small={"size": 4}),
    Case("remiop+vector", small={"size": 4}),
    Case("remiop+co", small={"window": 2}, stretch=8),
    # Here a last packet that was lost shows with the next heartbeat, whenever that is within delta.
    Case("remiop+object", small={"size": 4}, stretch=2),
    Case("remiop+total", small={"size": 4}, stretch=2),
    Case("object", window=LADEN, steady=True),
    Case("total", window=LADEN, steady=True),
    Case("object", {"over": "datagrams"}, steady=True),
]
"""Every way to be reliable."""

KEPT = {
    "_own": "size",  # what ReMIOP and its like may be asked to repair
    "buffer": "size",
    "_done": "ring",  # messages whose late packets are known as such
    "_sources": "sources",  # addresses from which something came that belongs to no view, for a while
}
"""What is kept after it was needed, by the attribute's name, and the bound that holds for each of them."""

TABLES = frozenset("changed _risen _due _waits _behind _lacking_since _asked_below counts".split())
"""What depends on who spoke last or on what has ever happened: a number for each pair of members at most."""

Lose = Callable[[Flight], bool]


class Group(Net):
    """A group of one case."""

    def __init__(self, case: Case, members: int = 3, *, small: bool = False, **more: Any) -> None:
        self.case, self.is_small = case, small
        options = case.options(small=small, **more)
        super().__init__(members, case.order, options=options, datagram_max=DATAGRAM)
        self.away: set[int] = set()  # members whose program has ended
        self.said: list[str] = []
        self.heard: list[tuple[float, Flight]] = []  # all that was sent, with its time

    # What people do

    def say(self, member: int, *texts: str, to: int | None = None) -> Receipt:
        self.said += texts
        return self.send(member, *[text.encode() for text in texts], to=to)

    def chatter(self, *members: int, rounds: int = 1) -> None:
        """Everybody says something, and it arrives."""
        for _ in range(rounds):
            for member in members or self.present:
                self.say(member, f"{member} says {len(self.said)}")
                self.settle()

    def fill(self, member: int, most: int = 40) -> list[Receipt]:
        """Say pages until no more may be sent."""
        receipts = []
        while self.stacks[member].writable and len(receipts) < most:
            receipts.append(self.say(member, f"{member} fills {len(self.said)} ".ljust(PAGE, ".")))
        return receipts

    def leave(self, member: int, seconds: float = 5.0, lose: Lose = lambda flight: False) -> None:
        """It says goodbye until everybody knows, and its program ends."""
        self.stacks[member].goodbye(now=self.now)
        self.turn(member)
        self.wait(seconds, lose)
        assert self.stacks[member].has_left
        self.end(member)

    def end(self, member: int) -> None:
        """Its program ends."""
        self.away.add(member)
        self.wake[member] = None

    # What the network does

    @property
    def present(self) -> list[int]:
        return [member for member in range(len(self.stacks)) if member not in self.away]

    def turn(self, member: int) -> None:
        sent = len(self.log)
        super().turn(member)
        self.heard += [(self.now, flight) for flight in self.log[sent:]]

    def wait(self, seconds: float, lose: Lose = lambda flight: False) -> None:
        super().wait(seconds, lambda flight: flight.target in self.away or lose(flight))

    def settle(self) -> None:
        self.lose(lambda flight: flight.target in self.away)
        super().settle()

    def heal(self) -> None:
        """Nothing is lost any more: in the end nobody has anything to do, and no layer wants to be woken."""
        self.quiet()
        for member in self.present:
            stack = self.stacks[member]
            assert [layer.name for layer in stack.layers if layer.wake is not None] == []
            assert stack.ready(now=self.now).wake is None

    # What can be seen

    def confirms(self) -> bool:
        return "confirmed" in self.stacks[A].chain.levels

    def times(self, source: int, target: int, since: float = 0.0) -> list[float]:
        """When anything was sent on a link, each moment once."""
        found = {at for at, flight in self.heard if (flight.source, flight.target) == (source, target)}
        return sorted(at for at in found if at >= since)

    def check_complete(self, *members: int) -> None:
        """Everybody has everything that was said by others, once."""
        for member in members or self.present:
            texts = self.texts(member)
            own = self.stacks[member].chain.order.echo  # they hear themselves
            wanted = [text for text in self.said if own or not text.startswith(f"{member} ")]
            assert sorted(texts) == sorted(wanted), f"what {member} has"

    def check_working(self) -> None:
        """Those who are here can go on: sending, delivery, receipts."""
        for member in self.present:
            stack = self.stacks[member]
            assert stack.writable and stack.settled, f"member {member}: {stack.writable=} {stack.settled=}"
            assert not stack.held and not stack.chain.waiting, (
                f"member {member}: {stack.held=} {stack.chain.waiting=}"
            )
            receipt = self.say(member, f"{member} goes on after {len(self.said)}")
            self.heal()
            assert receipt.has("confirmed") or not self.confirms()

    def check_memory(self, twin: "Group") -> None:
        """Nobody keeps more than in a group that has only ever sent a message each."""
        for member in self.present:
            kept, usual = weigh(self.stacks[member]), weigh(twin.stacks[member])
            sizes = (self.case if self.is_small else replace(self.case, small={}), len(self.stacks))
            more = {path: count for path, count in kept.items() if count > limit(path, usual, *sizes)}
            assert not more, f"member {member} keeps {more}"


def cut(*links: tuple[int, int]) -> Lose:
    """These links, from source to target, lose everything."""
    return lambda flight: (flight.source, flight.target) in links


def apart(member: int) -> Lose:
    """Nothing reaches a member, and nothing comes from it."""
    return lambda flight: member in (flight.source, flight.target)


def carries(flight: Flight, text: str) -> bool:
    """Whether a message is in a datagram, on whichever wire."""
    return text.encode() in flight.data


def weigh(stack: Stack) -> Counter[str]:
    """What every container in the layers of a stack holds, by where it is."""
    found: Counter[str] = Counter()
    seen: set[int] = {id(stack), id(stack.view), id(stack.rng)}
    for layer in stack.layers:
        _weigh(layer, layer.name, seen, found)
    _weigh(stack.wire.ahead, "ahead", seen, found)
    _weigh(stack.views, "views", seen, found)
    return found


def limit(path: str, usual: Counter[str], case: Case, members: int) -> int:
    """How much there may be in a container, or in all of those that are at one place."""
    name = path.rsplit(".", 1)[-1].rstrip("[]")
    if name in KEPT:
        bounds = {"size": case.small.get("size", reported.SIZE), "ring": miop.RING, "sources": SOURCES_MAX}
        return bounds[KEPT[name]] * (members - 1 if "[]" in path else 1)
    return max(usual[path], members**2 * (name in TABLES))


def _weigh(thing: Any, path: str, seen: set[int], found: Counter[str]) -> None:
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, (dict, list, set, deque)):
        found[path] += len(thing)
        for each in thing.values() if isinstance(thing, dict) else thing:
            _weigh(each, f"{path}[]", seen, found)
    elif type(thing).__module__.startswith("inga."):
        for name, value in state_of(thing).items():
            _weigh(value, f"{path}.{name}", seen, found)
