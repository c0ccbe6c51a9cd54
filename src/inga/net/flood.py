"""Detects floods: far more datagrams arrive at a member than are useful. Then it tells the kernel which ones to drop.

A stranger's datagrams cost a member little, but not nothing: to read one and find that it is not of the group takes
some three microseconds, and one core can send a hundred thousand small ones a second to every member at once. In a flood the
kernel filters datagrams before it wakes us (see `sieve`), and the sending machine bears that cost.

The beginning of a flood shows in the datagrams that arrive, its end in a sample of datagrams that is let in on purpose.

Rejected: to be strict always. Then no log would say that a process sends in the group without its secret, and a member that
moves to another address would be let in late.
"""

import logging
from collections.abc import Hashable, Mapping
from typing import cast

from inga.net.address import HostPort
from inga.net.log import report
from inga.net.sieve import SAMPLE, WORDS_SAMPLE, StrictRules
from inga.secure.whereabouts import as_text
from inga.stack.guard import Senders, Useless

EVERY = 0.25
"""Seconds between two looks at the counts."""

USELESS_A_SECOND = 2000
"""Useless datagrams a second from other addresses than members'; so many are a flood."""

NOISY_A_SECOND = 1000
"""Useless datagrams a second from one address, of an authenticated process that is not a member; so many make it noisy. A process that
asks for admission sends fewer."""

WORDS_A_SECOND = 2000
"""Handshake messages a second, from all addresses; so many are a flood. A member processes a tenth of that of each kind."""

STRICT_FOR = 2.0
"""Seconds for which a flood is taken to last after it was last seen."""

NOISY_MAX = 64
"""The most noisy addresses that are filtered; datagrams from further ones are let in."""

FADES = 0.95
"""The factor by which the weight of a look decreases with each later one: after 3.4 seconds, new looks outweigh all older ones."""

CANDIDATES_MAX = 8
"""The most addresses that are counted for one member; if there are more, the least frequent makes room."""

REMEMBERED_FOR, REMEMBERED_MAX = 60.0, 256
"""Seconds for which an address counts as a member's after the member has moved, and the most such addresses."""


class PlainSenders:
    """The senders of a group without keys: the addresses of members are those from which layers have accepted packets.

    Some packets that an attacker replays are accepted, where the kernel had no room for the original. So a member's address
    is the one that was seen most often lately, not the latest; and an earlier address of a member is let in for a while.
    """

    words_begin: bytes | None = None
    visitors: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.places: frozenset[HostPort] = frozenset()  # of members
        self._seen: dict[
            int, dict[HostPort, float]
        ] = {}  # for each member: how often it was seen lately at which address
        self._recent: dict[
            HostPort, float
        ] = {}  # addresses of members, and when they last counted as such; the latest is last
        self._elsewhere = 0

    @property
    def members(self) -> frozenset[str]:
        return frozenset(map(as_text, self.places))

    def renumber(self) -> None:
        """A view is installed, in which members have other indices."""
        self._seen = {}

    def locate(self, addresses: Mapping[int, Hashable], now: float) -> None:
        """Take a look at the known addresses of members, by index, and decide which count as members'."""
        recent = self._recent
        for member, address in addresses.items():
            place = cast(HostPort, address)
            seen = {each: FADES * often for each, often in self._seen.get(member, {}).items()}
            if place not in seen and len(seen) == CANDIDATES_MAX:
                del seen[min(seen, key=seen.__getitem__)]
            seen[place] = seen.get(place, 0.0) + 1.0
            self._seen[member] = seen
            settled = max(seen, key=seen.__getitem__)
            recent.pop(settled, None)
            recent[settled] = now
        for place in list(recent):
            if now - recent[place] < REMEMBERED_FOR and len(recent) <= REMEMBERED_MAX:
                break
            del recent[place]
        self.places = frozenset(recent)

    def note(self, count: int) -> None:
        """Note `count` datagrams from other addresses than members'."""
        self._elsewhere += count

    def useless(self) -> Useless:
        count, self._elsewhere = self._elsewhere, 0
        return Useless({}, count, 0)


class FloodWatch:
    """Detects floods for one member. Its carrier calls `look` with the time after it has read datagrams."""

    def __init__(self, senders: Senders) -> None:
        self._senders = senders
        self.next_look = self._since = 0.0
        self._ends = self._words_end = 0.0  # when the flood ends, unless it is seen again
        self._noisy: dict[str, float] = {}  # noisy addresses, and until when they count as such
        self._told = False
        self.strict: StrictRules | None = None  # the rules for the kernel

    def look(self, now: float) -> bool:
        """Judge what has arrived since the last look; return whether the rules for the kernel have changed."""
        if now < self.next_look:
            return False
        seconds = min(now - self._since, 1.0)
        self._since, self.next_look = now, now + EVERY
        useless, was = self._senders.useless(), self.strict
        members, visitors = self._senders.members, self._senders.visitors
        if not members:  # there is no group to protect, and every process is a stranger
            self.strict = None
            return was is not None
        self._judge(useless, members, visitors, now, seconds)
        # A process that has been admitted is noisy no more, however much it sends.
        self._noisy = {place: end for place, end in self._noisy.items() if now < end and place in visitors}
        if now < max(self._ends, self._words_end) or self._noisy:
            noisy = frozenset(list(self._noisy)[-NOISY_MAX:])
            self.strict = StrictRules(members, noisy, now < self._words_end, self._senders.words_begin)
        else:
            self.strict = None
        if was is None and self.strict is not None:
            level = logging.DEBUG if self._told else None
            report("kernel.flooded", "a flood of datagrams: most are kept out by the kernel", level=level)
            self._told = True
        return self.strict != was

    def _judge(
        self, useless: Useless, members: frozenset[str], visitors: frozenset[str], now: float, seconds: float
    ) -> None:
        """Decide whether there is a flood, of which datagrams and from which addresses. A sampled datagram counts as many."""
        was = self.strict
        share = 1 if was is None else SAMPLE
        others = {
            place: count
            for place, count in ((as_text(each), count) for each, count in useless.by_place.items())
            if place not in members
        }
        if share * (sum(others.values()) + useless.elsewhere) >= USELESS_A_SECOND * seconds:
            self._ends = now + STRICT_FOR
        share_of_words = WORDS_SAMPLE if was is not None and was.samples_words else 1
        if share_of_words * useless.words >= WORDS_A_SECOND * seconds:
            self._words_end = now + STRICT_FOR
        for place, count in others.items():
            share_of_place = SAMPLE if place in self._noisy else 1
            if place in visitors and share_of_place * count >= NOISY_A_SECOND * seconds:
                self._noisy[place] = now + STRICT_FOR
