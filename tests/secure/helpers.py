"""Guards without stacks, on a wire that a stranger can read, hold and write."""

from collections.abc import Callable, Hashable
from random import Random

from inga.keys.authority import Authority
from inga.keys.identity import Identity
from inga.keys.secret import Secret
from inga.model.packet import Packet
from inga.model.view import Member, View
from inga.secure.credentials import Certified, Credentials, KnownSecret
from inga.secure.guard import GroupGuard
from inga.secure.sealing import AES
from inga.stack.native import Direct, Outsider
from inga.stack.stack import EVERYBODY, Address, Datagram, joined
from inga.wire.packet import encode, view_tag

SECRET, OTHER_SECRET = Secret(bytes(range(32))), Secret(bytes(range(1, 33)))
MOMENT = 1_800_000_000.0
DAY = 86_400.0
AUTHORITY = Authority.make("office", now=MOMENT)
IDENTITIES = {name: AUTHORITY.issue(name, now=MOMENT) for name in ("alice", "bob", "cathy", "mallory")}


def known(secret: Secret = SECRET) -> KnownSecret:
    return KnownSecret(secret)


def certified(name: str | Identity, moment: float = MOMENT) -> Certified:
    identity = name if isinstance(name, Identity) else IDENTITIES[name]
    return Certified(identity, lambda: moment)


def view_of(*names: str, number: int = 1, attempt: int = 0) -> View:
    return View(number, tuple(map(Member, names)), "causal", leader=1 if attempt else 0, attempt=attempt)


def tag(view: View) -> int:
    return view_tag("lunch", view)


def packet(view: View, source: int, body: bytes, *, lent: bool = False) -> bytes:
    """What a stack hands to its guard."""
    made = Packet(source, view.number, body)
    made.lent = lent
    return joined(encode(made, tag(view), covers="nothing"))


def word(body: bytes) -> bytes:
    """What belongs to no view."""
    return joined(encode(Packet(7, 0, body), 0, covers="nothing"))


class Wire:
    """Carries what guards say, each at an address; everything that was ever said is on the tape."""

    def __init__(self, seed: int = 1) -> None:
        self.entropy = Random(seed).randbytes
        self.now = 0.0
        self.guards: dict[str, GroupGuard] = {}
        self.heard: dict[str, list[bytes]] = {}
        self.tape: list[tuple[str, str, bytes]] = []  # from, to, octets
        self.passes: Callable[[str, str, bytes], bool] = lambda source, to, data: True
        self.views: dict[str, View] = {}

    def add(
        self, where: str, credentials: Credentials, name: str | None = None, *, group: str = "lunch"
    ) -> GroupGuard:
        guard = GroupGuard(group, name or where, credentials, entropy=self.entropy, kind=AES)
        self.guards[where] = guard
        self.heard[where] = []
        return guard

    def enter(self, view: View, *where: str) -> None:
        """These are in that view from now on."""
        for each in where:
            guard = self.guards[each]
            me = view.names.index(guard._name)
            guard.enter(tag(view), view, me, self.now)
            self.views[each] = view

    def run(self, *sends: tuple[str, Address, Datagram], seconds: float = 0.0) -> None:
        """Let guards say that, and whatever they say to each other then, for so long."""
        for where, to, datagram in sends:
            self._carry(where, self.guards[where].seal([(to, datagram)], self.now))
        end = self.now + seconds
        while True:
            while sum(self._carry(where, guard.seal([], self.now)) for where, guard in self.guards.items()):
                pass
            due = [guard.wake for guard in self.guards.values() if guard.wake is not None]
            if not due or min(due) > end:
                self.now = end
                return
            self.now = max(self.now, min(due))
            for guard in self.guards.values():
                if guard.wake is not None and guard.wake <= self.now:
                    guard.tick(self.now)

    def give(self, where: str, data: bytes, source: Hashable = "stranger") -> list[bytes]:
        """A stranger sends this; what the stack gets of it."""
        return [bytes(plain) for plain, _ in self.guards[where].open([(data, source)], self.now)]

    def answers(self, where: str) -> list[bytes]:
        """What that guard says of itself, which nobody hears."""
        return [joined(datagram) for _, datagram in self.guards[where].seal([], self.now)]

    def said(self, kind: int, source: str | None = None) -> list[bytes]:
        """Everything of a kind on the tape."""
        return [data for who, _, data in self.tape if data[3] == kind and source in (None, who)]

    def rejected(self, where: str) -> dict[str, int]:
        return dict(self.guards[where].rejected)

    def _carry(self, source: str, sends: list[tuple[Address, Datagram]]) -> bool:
        for to, datagram in sends:
            data = joined(datagram)
            for where in self._places(source, to):
                self.tape.append((source, where, data))
                if where in self.guards and self.passes(source, where, data):
                    self.heard[where] += self.give(where, data, source)
        return bool(sends)

    def _places(self, source: str, to: Address) -> list[str]:
        if to is EVERYBODY:
            return [where for where in self.guards if where != source]
        if isinstance(to, (Direct, Outsider)):
            return [str(to.address)]
        name = self.views[source].names[to]
        return [where for where, guard in self.guards.items() if guard._name == name and where != source]


def meet(wire: Wire, *where: str) -> None:
    """Let these find each other."""
    for each in where:
        wire.run((each, EVERYBODY, word(b"hello")))
        wire.now += 0.03
