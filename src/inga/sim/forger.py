"""An attacker in the simulator: it reads all datagrams, can send any datagram from any address, and has no keys.

It replays datagrams, at once or much later, to their receivers or back to their senders; flips bits; sends well-formed packets
without a seal (goodbyes and other control messages, data of the next view, data far ahead); and asks for admission with a wrong secret.
After a member is gone the attacker has that member's keys, too. With these it sends in the name of any member of the views that
the former member was in, under the tags of those views and of the next one; and over the channels of the former member it claims
that others are gone.

Its actions are drawn from a seed of their own, so that the rest of the run is drawn as it is without the attacker.
"""

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from inga.keys.secret import Secret
from inga.model.packet import DATA, Packet
from inga.secure.credentials import KnownSecret
from inga.secure.guard import GroupGuard
from inga.secure.sealing import AES, SendingKey
from inga.secure.views import ViewKeys
from inga.session.session import Session
from inga.sim.site import Site
from inga.stack.stack import Datagram, joined
from inga.trial import forging
from inga.wire.packet import OUTSIDE, encode, group_id
from inga.wire.told import said

if TYPE_CHECKING:
    from inga.sim.simulator import Sim

HEARD_MAX = 400
"""The most datagrams that it remembers; beyond that each new one replaces a random one."""

EVERY = 0.005
"""Seconds of virtual time between two of its datagrams, on average."""


FAR = 1 << 20
"""Added to the counters of sealed datagrams: more datagrams than any member sends in one run."""


SECRET, NO_SECRET = Secret(bytes(range(32))), Secret(bytes(range(1, 33)))
"""The secret of a secured group, and the wrong one that the attacker uses."""


def guards(secret: Secret, seed: int) -> Callable[[str], GroupGuard]:
    """Return what makes guards for members that know a secret; all their randomness comes from a seed."""
    rng = Random(f"guards {seed}")
    return lambda name: GroupGuard("", name, KnownSecret(secret), entropy=rng.randbytes, kind=AES)


class Forger:
    """The attacker: sends `count` forged datagrams between now and `until`, to any member."""

    def __init__(
        self, sim: "Sim", seed: int, count: int, until: float, stranger: Callable[[str], GroupGuard]
    ) -> None:
        """`stranger` makes a guard with a wrong secret."""
        self._sim = sim
        self._rng = Random(f"forger {seed}")
        self._more = Random(
            f"forger with keys {seed}"
        )  # a generator of its own, so that old seeds still forge the same datagrams, and these besides
        self._heard: list[tuple[bytes, Site, Site]] = []
        self._left = count
        self._said = 0  # datagrams sealed with keys of former members
        self._until = until
        self._stranger = stranger("mallory")
        self._former: dict[str, GroupGuard] = {}  # guards of members that are gone, by name
        sim.network.listeners.append(self._hear)
        self._plan_next()

    def _hear(self, source: Site, target: Site, data: bytes) -> None:
        if len(self._heard) < HEARD_MAX:
            self._heard.append((data, source, target))
        else:
            self._heard[self._rng.randrange(HEARD_MAX)] = (data, source, target)

    def _plan_next(self) -> None:
        at = self._sim.now + self._rng.expovariate(1 / EVERY)
        if self._left > 0 and at < self._until:
            self._left -= 1
            self._sim.at(at, self._sim.sites[0], self._act)

    def _act(self) -> None:
        rng, sim = self._rng, self._sim
        if any(_is_alone(site) for site in sim.sites):
            self._plan_next()  # a process that has found no member yet gives up if it hears forged datagrams: unavoidable
            return
        for site in sim.sites:
            if site.has_left and site.newcomer is None and isinstance(site.stack.guard, GroupGuard):
                self._former[site.name] = site.stack.guard
        forge = rng.choice(
            (
                self._noise,
                self._repeated,
                self._reflected,
                self._flipped,
                self._plain,
                self._foreign,
                self._old,
            )
        )
        forged = forge()
        if forged is not None:
            data, target = forged
            target = target or rng.choice(sim.sites)
            source = rng.choice(sim.sites)
            sim.timeline.push(sim.now, Site.arrive, target, (data, source.name))
        for also in (self._next_tag, self._live):
            if self._former and self._more.random() < 0.5 and (kept := also()) is not None:
                sim.timeline.push(sim.now, Site.arrive, kept[1], (kept[0], self._more.choice(sim.sites).name))
        self._plan_next()

    def _noise(self) -> tuple[bytes, Site | None]:
        return self._rng.randbytes(self._rng.choice((0, 1, 19, 20, 36, 200))), None

    def _repeated(self) -> tuple[bytes, Site | None] | None:
        if not self._heard:
            return None
        data, _, target = self._rng.choice(self._heard)
        return data, target if self._rng.random() < 0.7 else None

    def _reflected(self) -> tuple[bytes, Site | None] | None:
        if not self._heard:
            return None
        data, source, _ = self._rng.choice(self._heard)
        return data, source

    def _flipped(self) -> tuple[bytes, Site | None] | None:
        if not self._heard:
            return None
        data, _, target = self._rng.choice(self._heard)
        changed = bytearray(data)
        for _ in range(self._rng.choice((1, 1, 2, 8))):
            if changed:
                changed[self._rng.randrange(len(changed))] ^= 1 << self._rng.randrange(8)
        return bytes(changed), target

    def _plain(self) -> tuple[bytes, Site | None]:
        """Return a packet without a seal, which would harm a group that is not secured."""
        return joined(self._forged_packet()), None

    def _foreign(self) -> tuple[bytes, Site | None] | None:
        """Return a handshake message of a process that has another secret."""
        words = self._stranger.seal([(None, joined(self._word("hello")))], self._sim.now)
        return (joined(words[-1][1]), None) if words else None

    def _old(self) -> tuple[bytes, Site | None] | None:
        """Return a packet that a former member can seal: in the name of any member of the views that it was in."""
        keys = self._old_keys()
        if not keys:
            return None
        known = self._rng.choice(keys)
        member = 0 if known.is_first else self._rng.randrange(len(known.view))
        return self._sealed(known, member, joined(self._forged_packet())), None

    def _old_keys(self) -> list[ViewKeys]:
        """Return the keys that former members have of views that are over."""
        in_force = {site.stack.wire.tag for site in self._sim.sites if site.is_member}
        memory = [each for guard in self._former.values() for each in (guard._keys, *guard._past)]
        return [each for each in memory if each is not None and each.tag not in in_force]

    def _sealed(self, known: ViewKeys, member: int, packet: bytes) -> bytes:
        secret = known.sending.secret if known.is_first else known.secret_of(member)
        sending = SendingKey(secret, self._sim.now, AES)
        sending._counter = FAR + self._said  # higher than any counter so far, so that it is no replay
        self._said += 1
        return joined(sending.seal(packet, self._sim.now))

    def _next_tag(self) -> tuple[bytes, Site] | None:
        """Return a packet under the tag of the view that a change leads to, sealed with old keys, which do not fit that view."""
        keys = self._old_keys()
        changing = [
            site for site in self._sim.sites if site.is_member and site.stack.wire.next_tag is not None
        ]
        if not keys or not changing:
            return None
        known, site = self._more.choice(keys), self._more.choice(changing)
        member, tag = self._more.randrange(len(known.view)), site.stack.wire.next_tag
        assert tag is not None
        packet = Packet(known.me if known.is_first else member, known.view.number, b"next", kind=DATA)
        packet.seq = 1
        return self._sealed(known, member, joined(encode(packet, tag, covers="nothing"))), site

    def _live(self) -> tuple[bytes, Site] | None:
        """Return a control message about some member, sealed over a channel between a former member and a member that outlived
        the view. Former members whose name a member has now are left out."""
        sites = {
            site.stack.guard._handshake.id: site
            for site in self._sim.sites
            if site.is_member and isinstance(site.stack.guard, GroupGuard)
        }
        members = {name for site in sites.values() for name in site.stack.view.names}
        channels = [
            (channel, sites[process])
            for name, guard in self._former.items()
            if name not in members
            for process, channel in guard._channels.items()
            if process in sites
        ]
        if not channels:
            return None
        channel, site = self._more.choice(channels)
        other = self._more.choice(sorted(members))
        about = next((each.stack.member for each in sites.values() if each.name == other), site.stack.member)
        packet = Packet(0, OUTSIDE, kind=Session.id)
        packet.ext = said(
            self._more.choice(("goodbye", "excluded", "double", "farewell", "here")), name=about.name,
            incarnation=about.incarnation, group=f"{group_id(''):08x}", view=site.stack.view.number, itself=True,
            bound=False, spoken_in=site.stack.wire.tag, leader=[], slow=False, birth=0, size=99, address="",
        )  # fmt: skip
        datagram = joined(encode(packet, group_id(""), covers="nothing"))
        return joined(channel.sending.seal(datagram, self._sim.now)), site

    def _forged_packet(self) -> Datagram:
        rng, sim = self._rng, self._sim
        site = rng.choice(sim.sites)
        if site.newcomer is not None:
            return self._word("hello")
        view, tag = site.stack.view.number, site.stack.wire.tag
        src = rng.randrange(len(site.stack.view))
        return forging.anything(rng, src, view, tag, site.stack.counts["data"] + 1, self._word)

    def _word(self, do: str) -> Datagram:
        site = self._rng.choice(self._sim.sites)
        known = site.newcomer is None
        view = site.stack.view.number if known else 1
        who = site.stack.member if known else site.newcomer.member  # type: ignore[union-attr]
        return forging.outside_word(do, who.name, who.incarnation, "", view)


def _is_alone(site: Site) -> bool:
    """Whether a newcomer looks for a group and has found nobody yet."""
    newcomer = site.newcomer
    return newcomer is not None and not (
        site.has_left or (newcomer.guard is not None and newcomer.guard.has_company)
    )
