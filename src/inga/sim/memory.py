"""Memory leaks: what members still hold when a run has settled.

Nothing here knows a layer. The search walks through all objects that a stack consists of and examines every container that can
grow: none may keep a packet, a payload or a receipt, and none may have many more entries than the group has members, since state
that is kept for ever is kept per member. Exceptions are in `ALLOWED`, with their reasons.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sized
from typing import Any, NamedTuple

from inga.model.compiled import state_of
from inga.model.packet import Packet
from inga.model.receipt import Receipt
from inga.stack.stack import Stack


class Allowance(NamedTuple):
    """The most entries, of any kind, that a container may have, given the size of the group, and the reason."""

    most: Callable[[int], int]
    why: str


ALLOWED: Mapping[str, Allowance] = {
    "ReMiop._own": Allowance(
        lambda n: 512, "our newest packets, as many as `size`: others may ask for them late"
    ),
    "Acknowledged._own": Allowance(lambda n: 512, "the same"),
    "Stream.buffer": Allowance(lambda n: 512, "the newest packets of a sender, as many: anybody may repair"),
    "Reassembly._done": Allowance(lambda n: 4096, "the ring of recent ids, by which copies are known"),
    "Reliable._kept": Allowance(
        lambda n: 8192, "packets of others, until their next word says that everybody has them"
    ),
    "Hop._kept": Allowance(lambda n: 8192, "the same"),
    "Changes.cuts": Allowance(
        lambda n: 4096,
        "of each that ever was a member of a traced group, a number: as many as each row of its trace has, so that a trace "
        "gets too large long before; a newcomer is told all of them in one datagram, which has room for some thousands",
    ),
    "Hosted.ended": Allowance(
        lambda n: 4096, "the memory of calls that have ended, by which late messages about them are known"
    ),
    "Hosted.seen": Allowance(lambda n: 4096, "the same"),
    "Hosted.disowned": Allowance(lambda n: 4096, "the same"),
    "Hosted.cancelled": Allowance(lambda n: 4096, "the same"),
    "Hosted.early": Allowance(lambda n: 4096, "the same, of calls that have not come"),
    "Door._former": Allowance(lambda n: 256, "who was a member: an incarnation never is again"),
    "Matrix._changed": Allowance(lambda n: n * n, "each cell that changed since it was last told"),
    "Peer.kept": Allowance(
        lambda n: n, "what a sender told last, until it says with its next that all have it"
    ),
    "Causal._latest": Allowance(
        lambda n: n, "the newest packet of each sender, which an error may have to name"
    ),
}
"""Containers that may keep more than others, by class and attribute."""

PLACED = (
    "Roster.relations",
    "Roster.object_of",
    "Roster.member_of",
    "Roster.is_replicated",
    "Roster.places",
    "Processes.of",
    "Processes.names",
    "Links.received",
    "Precedence.past",
)
"""Containers with an entry for each place: each client, mailbox and copy of an object."""

PLACES = Allowance(
    lambda n: 8 + 6 * n, "each member is a client, has a mailbox, and copies of four objects at most"
)

PAYLOADS = Packet | Receipt | bytes | bytearray | memoryview

GROWING = (list, dict, set, deque)

SCAFFOLD = frozenset({"stack", "above", "below", "trace"})
"""Attributes by which a layer is bound to others: not searched."""


def usual(members: int) -> int:
    """Return the most entries of a container that keeps a few numbers for each member."""
    return 8 + 3 * members


def leaks(stack: Stack) -> Iterator[tuple[str, str]]:
    """Yield each container that keeps too much: its class and attribute, and its contents in words."""
    for name in ("held", "queued"):
        if getattr(stack, name):
            yield f"Stack.{name}", f"{getattr(stack, name)} bytes"
    waiting: dict[str, Sized] = {
        "NativeWire.ahead": stack.wire.ahead,
        "Views.retired": stack.views.retired,
        "Stack.to_send": stack.to_send,
        "Stack.to_deliver": stack.to_deliver,
    }
    for place, entries in waiting.items():
        if entries:
            yield place, f"{len(entries)} entries"
    walk = _Walk(len(stack.view), {id(stack)})
    for layer in stack.layers:
        yield from walk.through(layer)


class _Walk:
    """A walk through all objects of our own classes that can be reached, each once."""

    def __init__(self, members: int, seen: set[int]) -> None:
        self._members = members
        self._seen = seen

    def through(self, thing: Any) -> Iterator[tuple[str, str]]:
        if id(thing) in self._seen:
            return
        self._seen.add(id(thing))
        for name, value in _attributes(thing):
            yield from self._look(f"{type(thing).__name__}.{name}", value)

    def _look(self, place: str, value: Any) -> Iterator[tuple[str, str]]:
        if isinstance(value, GROWING):
            if id(value) in self._seen:
                return
            self._seen.add(id(value))
            allowance = PLACES if place in PLACED else ALLOWED.get(place)
            inside = list(value.values() if isinstance(value, dict) else value)
            most = usual(self._members) if allowance is None else allowance.most(self._members)
            if len(value) > most or (allowance is None and any(map(_is_payload, inside))):
                yield place, f"{len(value)} entries, such as {inside[0]!r:.80}"
                return
            for each in inside:
                yield from self._look(place, each)
        elif isinstance(value, tuple):
            for each in value:
                yield from self._look(place, each)
        elif type(value).__module__.startswith("inga.") and not isinstance(value, type | PAYLOADS | Stack):
            yield from self.through(value)


def _is_payload(entry: Any) -> bool:
    """Whether an entry is a packet, a receipt or bytes, or a tuple that contains one."""
    return isinstance(entry, PAYLOADS) or (isinstance(entry, tuple) and any(map(_is_payload, entry)))


def _attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in state_of(thing).items() if name not in SCAFFOLD)
