"""Which pairs of requests an order orders, observed from outside: a destination gets both requests, once in either order.

A pair is *ordered* if its requests start in the same order whichever of the two arrives first; it *waits* if one of the two does
not start before the other has arrived. More pairs wait than are ordered: a request that conflicts with any method waits until all
messages sent before it have arrived, also for those with which it is compatible.

The destination is an engine of the product without a past, which gets the two messages as they were sent in the run. All other
members show it a clock beyond both of them. All pairs would take too long, so some are drawn.
"""

from collections.abc import Sequence
from itertools import combinations
from random import Random
from typing import NamedTuple

from inga.model.invocation import Heartbeat, Message, Spoken
from inga.objects.actions import Run
from inga.objects.engine import Engine
from inga.objects.options import EngineOptions
from inga.objects.roster import Roster

LATER = 1 << 20
"""A clock beyond those of all messages in a run."""


class SeenPair(NamedTuple):
    """The behaviour of a destination with a pair."""

    is_ordered: bool
    waits: bool


class Destination:
    """One member with its object, which receives a pair of messages."""

    def __init__(self, roster: Roster, me: int, pair: Sequence[Message]) -> None:
        self._roster = roster
        self._me = me
        self._engine = Engine(me, roster, EngineOptions(announce=False))
        self._missing = sorted(pair, key=lambda message: message.ts)
        self._numbers: dict[int, int] = dict.fromkeys(roster.members, 0)
        self._sq = {}
        for message in self._missing:
            sender = roster.member_of[message.src]
            self._numbers[sender] += 1
            self._sq[message.id] = self._numbers[sender]
        self.started: list[Message] = []

    def get(self, message: Message) -> None:
        """Receive a message, and then the clocks of all members: first the highest that they can show while a message of theirs
        is missing, then the final ones. These do not count before the missing message has arrived, but then at once, so that both
        messages can become clear at the same moment."""
        self._missing.remove(message)
        self._receive(message._replace(sq=((self._me, self._sq[message.id]),)))
        for member in self._roster.members:
            if member != self._me:
                missing = [each for each in self._missing if self._roster.member_of[each.src] == member]
                for each in missing[:1]:
                    self._receive(self._clock(member, each.ts - 1, self._sq[each.id] - 1))
                self._receive(self._clock(member, LATER, self._numbers[member]))

    def _clock(self, member: int, ts: int, sent: int) -> Heartbeat:
        return Heartbeat(member, ts, sent, 0, (LATER,) * len(self._roster.at[member]), 0)

    def _receive(self, packet: Spoken) -> None:
        actions = self._engine.receive(0.0, packet)
        while actions:
            for action in actions:
                if isinstance(action, Run):
                    assert action.instance.request is not None
                    self.started.append(action.instance.request)
                    self._engine.endings.finish(action.instance, None)
            actions = self._engine.actions(0.0)


def see(roster: Roster, me: int, one: Message, other: Message) -> SeenPair:
    """Let a pair arrive at a member, in both orders."""
    orders, waits = [], False
    for pair in ((one, other), (other, one)):
        destination = Destination(roster, me, pair)
        destination.get(pair[0])
        waits |= not destination.started
        destination.get(pair[1])
        assert len(destination.started) == 2, "both start once everything is here"
        orders.append(destination.started[0].id)
    return SeenPair(orders[0] == orders[1], waits)


def see_some(roster: Roster, messages: Sequence[Message], count: int, seed: str) -> list[SeenPair]:
    """Observe so many pairs, drawn from those that have a common destination which sent neither of them."""
    pairs = list(combinations(messages, 2))
    Random(seed).shuffle(pairs)
    seen: list[SeenPair] = []
    for one, other in pairs:
        if len(seen) == count:
            break
        if (me := _common(roster, one, other)) is not None:
            seen.append(see(roster, me, one, other))
    return seen


def _common(roster: Roster, one: Message, other: Message) -> int | None:
    senders = {roster.member_of[one.src], roster.member_of[other.src]}
    members = {roster.member_of[place] for place in one.dst if place in other.dst}
    return min(members - senders, default=None)
