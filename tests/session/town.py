"""A group that changes while a test watches: members and newcomers, and every copy in the test's hands."""

import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, NamedTuple

from inga.model.delivery import Batch
from inga.model.packet import Packet
from inga.model.receipt import Receipt
from inga.model.view import Member, View
from inga.recipes import Options, find
from inga.session.changes import Changes
from inga.session.newcomer import Newcomer
from inga.session.session import Session
from inga.stack.native import Outsider
from inga.stack.stack import Stack
from inga.wire.packet import decode
from inga.wire.told import said

from ..stack.harness import NAMES, in_any_view, joined

ROUNDS_MAX = 50_000


class Copy(NamedTuple):
    """One datagram on its way to one place."""

    source: str
    target: str
    data: bytes

    @property
    def packet(self) -> Packet:
        found = decode(self.data, 0, in_any_view(1 << 16), 1 << 16)
        assert found is not None
        return found

    @property
    def do(self) -> str:
        """What is told in words, if it is."""
        if self.data[3] != Session.id:
            return ""
        import json

        return str(json.loads(self.packet.ext or b"{}")["do"])


class Town:
    """Places by name: where a member or a newcomer is."""

    def __init__(
        self,
        members: int = 3,
        order: str = "vector",
        *,
        options: Options | None = None,
        each: dict[str, Options] | None = None,
        datagram_max: int = 60 * 1024,
        takes: bool = True,
        seed: int = 0,
    ) -> None:
        self.rng = Random(seed)
        self.options = defaultdict(lambda: options or Options(), each or {})
        self.datagram_max = datagram_max
        self.takes = takes
        self.now = 0.0
        self.at: dict[str, Stack | Newcomer] = {}
        self.wake: dict[str, float | None] = {}
        self.items: dict[str, list[Batch | View]] = defaultdict(list)
        self.untaken: dict[str, list[Batch]] = defaultdict(list)
        self.under_way: list[Copy] = []
        self.log: list[Copy] = []
        self.sent: dict[str, list[bytes]] = defaultdict(list)  # by those who should get it
        self.notices: list[str] = []
        view = View.of(*NAMES[:members], recipe=order)
        for name in view.names:
            self._settle_in(name, view, view.names.index(name))
            self.member(name).begin()

    def _settle_in(self, name: str, view: View, me: int, sizes: dict[int, int] | None = None) -> None:
        layers = find(view.recipe).build(self.options[name])
        self.at[name] = Stack(
            layers, me, view, rng=self.rng, datagram_max=self.datagram_max, now=self.now, sizes=sizes
        )
        self.wake[name] = None

    def member(self, name: str) -> Stack:
        found = self.at[name]
        assert isinstance(found, Stack)
        return found

    def changes(self, name: str) -> Changes:
        found = self.member(name).layer("session")
        assert isinstance(found, Session)
        return found.changes

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

    def knock(self, name: str, incarnation: int = 7, place: str | None = None) -> Newcomer:
        """`place` is where it is, if another of that name is there."""
        newcomer = Newcomer("", Member(name, incarnation), now=self.now)
        self.at[place or name] = newcomer
        self.wake[place or name] = self.now
        return newcomer

    def leave(self, name: str) -> None:
        self.member(name).goodbye(now=self.now)
        self.turn(name)
        del self.at[name], self.wake[name]

    def revive(self) -> None:
        """Everybody through a pickle."""
        self.at, self.rng = pickle.loads(pickle.dumps((self.at, self.rng)))

    # What the network does

    def turn(self, name: str) -> None:
        stack = self.member(name)
        while True:
            ready = stack.ready()
            self.wake[name] = ready.wake
            assert ready.error is None
            self.notices += ready.notices
            for address, datagram in ready.send:
                if isinstance(address, Outsider):
                    names: Iterable[str] = [str(address.address)]
                elif address is None or address not in stack.addresses:
                    names = self.at  # as a multicast: who was never heard has no address of its own
                else:
                    names = [stack.view.names[address]]
                self._post(name, names, joined(datagram))
            self.items[name] += ready.deliver
            batches = [item for item in ready.deliver if isinstance(item, Batch)]
            self.untaken[name] += batches
            if not (self.takes and batches):
                break
            self.take(name)

    def take(self, name: str) -> None:
        batches, self.untaken[name] = self.untaken[name], []
        for batch in batches:
            self.member(name).taken([batch.packet], now=self.now)

    def _post(self, source: str, targets: Iterable[str], data: bytes) -> None:
        for target in targets:
            if target != source and target in self.at:
                self.under_way.append(Copy(source, target, data))
                self.log.append(self.under_way[-1])

    def arrive(self, copy: Copy) -> None:
        if copy in self.under_way:
            self.under_way.remove(copy)
        self.inject(copy.target, copy.data, source=copy.source)

    def inject(self, name: str, *datagrams: bytes, source: str | None = None) -> None:
        found = self.at.get(name)
        if found is None:
            return
        found.receive([(data, source) for data in datagrams], now=self.now)
        if isinstance(found, Stack):
            self.turn(name)
        elif found.bases is not None:
            assert found.view is not None
            self._settle_in(name, found.view, found.me, found.sizes)
            self.member(name).begin(found.bases)
            self.items[name].append(found.view)
            self.inject(name, *(data for data, _ in found.backlog))
        else:
            self.wake[name] = None if found.refused is not None else found.wake

    def tick(self, name: str) -> None:
        found = self.at[name]
        if isinstance(found, Stack):
            found.tick(self.now)
            self.turn(name)
        else:
            for _, datagram in found.tick(self.now):
                self._post(name, self.at, joined(datagram))
            self.wake[name] = found.wake

    def wait(
        self,
        seconds: float,
        lose: Callable[[Copy], bool] = lambda copy: False,
        until: Callable[[], bool] = lambda: False,
    ) -> None:
        """Let time pass; copies arrive at once, in the order they were sent, unless lost."""
        end = self.now + seconds
        for _ in range(ROUNDS_MAX):
            if until():
                return
            if self.under_way:
                copy = self.under_way.pop(0)
                if not lose(copy):
                    self.arrive(copy)
                continue
            due = [(wake, name) for name, wake in self.wake.items() if wake is not None]
            if not due or min(due)[0] > end:
                self.now = end
                return
            self.now = max(self.now, min(due)[0])
            self.tick(min(due)[1])
        raise AssertionError(f"not quiet within {seconds} s")

    def quiet(self) -> None:
        """Until nobody has anything to do, which must come to pass."""
        self.wait(1e6)
        assert not self.under_way and not any(wake is not None for wake in self.wake.values())

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
            due = [(wake, name) for name, wake in self.wake.items() if wake is not None]
            if not due:
                if not self.under_way:
                    break
                continue
            self.now = max(self.now, min(due)[0])
            self.tick(min(due)[1])

    # What must be so in the end

    def texts(self, name: str) -> list[bytes]:
        batches = [item for item in self.items[name] if isinstance(item, Batch)]
        return [bytes(data) for batch in batches for data in batch.payloads]

    def check(self, order: str, *names: str) -> None:
        """All are in one view and have all that was sent to them, once; and they can go on."""
        for name in names:
            self.send(name, f"the end, says {name}".encode())
        self.quiet()
        views = {(s.view.number, s.view.names, s.view.recipe) for s in map(self.member, names)}
        assert len(views) == 1 and views.pop()[1:] == (names, order)
        for name in names:
            stack = self.member(name)
            assert stack.writable and stack.settled and not stack.closing
            assert not stack.rejected
            assert sorted(self.texts(name)) == sorted(self.sent[name])


def worded(source: int, view: int, do: str, **what: Any) -> bytes:
    """A packet of membership as somebody might forge it."""
    return of_session(source, view, said(do, **what))


def of_session(source: int, view: int, content: bytes) -> bytes:
    from inga.wire.packet import encode

    packet = Packet(source, view, kind=Session.id)
    packet.ext = content
    return joined(encode(packet, 0))
