"""A group that changes while a test watches: members and newcomers, and every copy in the test's hands."""

import json
import pickle
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import permutations
from typing import Any

from inga.model.delivery import Batch
from inga.model.packet import Packet
from inga.model.receipt import Receipt
from inga.model.view import Member, View
from inga.recipes import Options, find
from inga.session.alarms import NEVER
from inga.session.changes import Changes
from inga.session.newcomer import Newcomer
from inga.session.session import Session
from inga.stack.native import Outsider
from inga.stack.stack import Address, Stack, joined
from inga.wire.packet import HEAD, LENT, encode
from inga.wire.told import said

from ..stack.harness import NAMES, ByHand, Flight

LONG = 20.0
"""Seconds in which everything that is lost is repaired."""


class Copy(Flight):
    """One datagram on its way to one place."""

    @property
    def is_lent(self) -> bool:
        """Whether it is sent for one that is gone."""
        return bool(HEAD.unpack_from(self.data)[4] & LENT)

    @property
    def do(self) -> str:
        """What is told in words, if it is."""
        return str(self.told["do"]) if self.data[3] == Session.id else ""

    @property
    def told(self) -> dict[str, Any]:
        """All of it."""
        found: dict[str, Any] = json.loads(self.packet().ext or b"")
        return found


class Town(ByHand):
    """Places by name: where a member or a newcomer is."""

    flight = Copy

    def __init__(
        self,
        members: int = 3,
        order: str = "vector",
        *,
        options: Options | None = None,
        each: dict[str, Options] | None = None,
        datagram_max: int = 60 * 1024,
        takes: bool = True,
        traced: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(takes=takes, seed=seed)
        self.options = defaultdict(lambda: options or Options(), each or {})
        self.datagram_max = datagram_max
        self.at: dict[str, Stack | Newcomer] = {}
        self.items: dict[str, list[Batch | View]] = defaultdict(list)
        self.untaken: dict[str, list[Batch]] = defaultdict(list)
        self.sent: dict[str, list[bytes]] = defaultdict(list)  # by those who should get it
        view = View.of(*NAMES[:members], recipe=order, traced=traced)
        for name in view.names:
            self._settle_in(name, view, view.names.index(name))

    def _settle_in(self, place: str, view: View, me: int, cuts: Sequence[int] = ()) -> None:
        layers = find(view.recipe).build(self.options[view.names[me]])
        stack = Stack(layers, me, view, rng=self.rng, datagram_max=self.datagram_max, now=self.now)
        stack.begin(cuts=cuts)
        self.at[place] = stack
        self.wake[place] = stack.ready().wake

    def member(self, name: str) -> Stack:
        found = self.at[name]
        assert isinstance(found, Stack)
        return found

    def session(self, name: str) -> Session:
        found = self.member(name).layer("session")
        assert isinstance(found, Session)
        return found

    def changes(self, name: str) -> Changes:
        return self.session(name).changes

    def names(self, name: str) -> tuple[str, ...]:
        """Who is in the view in force there."""
        return self.member(name).view.names

    def views(self, name: str) -> list[View]:
        """The views that were installed there, after the first."""
        return [item for item in self.items[name] if isinstance(item, View)]

    @property
    def members(self) -> list[str]:
        return [name for name, found in self.at.items() if isinstance(found, Stack)]

    # What people do

    def send(self, name: str, data: bytes) -> Receipt:
        stack = self.member(name)
        for other in stack.view.names:
            if other != name:
                self.sent[other].append(data)
        receipt = stack.send(data, now=self.now)
        self.turn(name)
        return receipt

    def use(self, name: str, order: str) -> list[str | None]:
        """How it ends, once it does."""
        outcome: list[str | None] = []
        self.member(name).propose(order, outcome.append, now=self.now)
        self.turn(name)
        return outcome

    def knock(
        self, name: str, incarnation: int = 7, place: str | None = None, *, wants: str = ""
    ) -> Newcomer:
        """`place` is where it is, if it is not called as whoever is there; `wants`: the kind of state that it takes."""
        newcomer = Newcomer("", Member(name, incarnation), now=self.now, wants=wants)
        self.items[place or name], self.sent[name] = [], []  # it has not heard of what was before
        self.at[place or name] = newcomer
        self.wake[place or name] = self.now
        return newcomer

    def leave(self, name: str) -> None:
        self.member(name).goodbye(now=self.now)
        self.turn(name)
        self.crash(name)

    def crash(self, *names: str) -> None:
        """What they have sent is on its way; they are gone, and nobody is told."""
        for name in names:
            del self.at[name], self.wake[name]

    def revive(self) -> None:
        """Everybody through a pickle."""
        self.at, self.rng = pickle.loads(pickle.dumps((self.at, self.rng)))

    # What the network does

    def reached(self, place: str, address: Address) -> Iterable[str]:
        if isinstance(address, Outsider):
            return [str(address.address)]
        stack = self.member(place)
        if address is None or address not in stack.addresses:
            return self.at  # as a multicast: who was never heard has no address of its own
        return [str(stack.addresses[address])]

    def delivered(self, place: str, items: list[Batch | View]) -> None:
        self.items[place] += items
        if not self.takes:
            self.untaken[place] += [item for item in items if isinstance(item, Batch)]

    def take(self, name: str) -> None:
        batches, self.untaken[name] = self.untaken[name], []
        for batch in batches:
            self.member(name).taken([batch.packet], now=self.now)

    def post(self, source: str, targets: Iterable[str], data: bytes) -> None:
        super().post(source, [target for target in targets if target in self.at], data)

    def inject(self, name: str, *datagrams: bytes, source: str | None = None) -> None:
        found = self.at.get(name)
        if found is None:
            return
        found.receive([(data, source) for data in datagrams], now=self.now)
        if isinstance(found, Stack):
            self.turn(name)
        else:
            self._look_at(name, found)

    def _look_at(self, name: str, newcomer: Newcomer) -> None:
        """It is a member by now, or asks on unless it was refused."""
        if newcomer.view is not None:
            self._settle_in(name, newcomer.view, newcomer.me, newcomer.cuts)
            self.items[name].append(newcomer.view)
            self.member(name).receive(newcomer.backlog, now=self.now)
            self.turn(name)
        else:
            self.wake[name] = None if newcomer.refused is not None else newcomer.wake

    def tick(self, name: str) -> None:
        found = self.at[name]
        if isinstance(found, Stack):
            super().tick(name)
        else:
            for _, datagram in found.tick(self.now):
                self.post(name, self.at, joined(datagram))
            self._look_at(name, found)

    def quiet(self, seconds: float = 1e6) -> None:
        """Until nobody has anything to do, which must come to pass; where somebody listens for silence, or looks for one
        that is lost, so long that nothing else is left to do."""
        if any(self._never_rests(self.session(name)) for name in self.members):
            self.wait(LONG)
        else:
            super().quiet()

    def _never_rests(self, session: Session) -> bool:
        return session.silence.wake != NEVER or session.parts.wake != NEVER

    def storm(self, loss: float, doubled: float, turns: int = 4000) -> None:
        """Copies arrive in any order, some not at all and some again later; then the weather clears."""
        rng = self.rng
        seen: list[Copy] = []
        for _ in range(turns):
            if self.under_way and rng.random() < 0.8:
                copy = self.under_way.pop(rng.randrange(len(self.under_way)))
                if rng.random() < loss:
                    continue
                seen.append(copy)
                self.arrive(copy)
                if rng.random() < doubled:
                    self.arrive(rng.choice(seen))
                continue
            if not self.wake_next() and not self.under_way:
                break

    # What must be so in the end

    def texts(self, name: str) -> list[bytes]:
        return [text for _, _, text in self.heard(name)]

    def heard(self, name: str) -> list[tuple[int, str, bytes]]:
        """What was delivered there: in which view, of whom, and what."""
        batches = [item for item in self.items[name] if isinstance(item, Batch)]
        return [(batch.view, batch.sender, bytes(data)) for batch in batches for data in batch.payloads]

    def check(self, order: str, *names: str) -> None:
        """All are in one view and have all that was sent to them, once; and they can go on."""
        self.check_together(order, *names)
        for name in names:
            assert sorted(self.texts(name)) == sorted(self.sent[name])

    def check_together(self, order: str, *names: str) -> None:
        """All are in one view and can go on; what any of them has of one that is gone all have who were there."""
        for name in names:
            self.send(name, f"the end, says {name}".encode())
        self.quiet()
        (view,) = {self.member(name).view for name in names}
        assert (view.names, view.recipe) == (names, order)
        for name in names:
            stack = self.member(name)
            assert stack.writable and stack.settled and not stack.closing and not stack.left
            # To a newcomer, what was under way in views before its own is of another group.
            assert stack.rejected.keys() <= ({"group"} if self.first_view(name) > 1 else set())
            assert {f"the end, says {other}".encode() for other in names} - {*self.texts(name)} <= {
                f"the end, says {name}".encode()
            }
        for one, other in permutations(names, 2):
            since = self.first_view(other)
            of_the_gone = [each for each in self.heard(one) if each[1] not in names and each[0] >= since]
            assert {*of_the_gone} <= {*self.heard(other)}

    def first_view(self, name: str) -> int:
        """The number of the first view that somebody was in."""
        views = [item.number for item in self.items[name] if isinstance(item, View) and name in item.joined]
        return min(views, default=1)


def worded(source: int, view: int, do: str, /, **what: Any) -> bytes:
    """A packet of membership as somebody might forge it."""
    return of_session(source, view, said(do, **what))


def of_session(source: int, view: int, content: bytes) -> bytes:
    packet = Packet(source, view, kind=Session.id)
    packet.ext = content
    return joined(encode(packet, 0))
