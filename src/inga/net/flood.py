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

MOVED_AFTER = 5.0
"""Seconds without a datagram from a member's address after which another one, from which it was heard, takes its place."""

REMEMBERED_FOR, REMEMBERED_MAX = 60.0, 256
"""Seconds for which an address counts as a member's after the member has moved, and the most such addresses."""


class PlainSenders:
    """The members' addresses in a group without keys: those from which layers have accepted packets.

    Some of what a stranger repeats is accepted, where the kernel had no room for the original. So another address replaces a member's
    only after nothing has arrived from the first for a while, as in a secured group, and the first one is remembered for longer.
    """

    words_begin: bytes | None = None
    visitors: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self._places: dict[int, HostPort] = {}  # of each member
        # When each address was last a member's; the latest stands last.
        self._recent: dict[HostPort, float] = {}
        self._heard: dict[HostPort, float] = {}  # when a datagram last came from it
        self._elsewhere = 0

    @property
    def members(self) -> frozenset[str]:
        return frozenset(map(as_text, self._recent))

    def renumber(self) -> None:
        """Another view is installed, in which members have other numbers."""
        self._places = {}

    def note(self, place: HostPort, count: int, now: float) -> None:
        """So many datagrams have arrived, the first of them from there. It stands for all: in a flood, chance makes that even."""
        if place in self._heard:
            self._heard[place] = now
        else:
            self._elsewhere += count

    def locate(self, addresses: Mapping[int, Hashable], now: float) -> None:
        """Look at the addresses from which packets of members were last accepted, by the members' numbers."""
        places, recent, heard = self._places, self._recent, self._heard
        for member, address in addresses.items():
            before = places.get(member)
            if before is None or (before != address and now - heard[before] >= MOVED_AFTER):
                places[member] = cast(HostPort, address)
        for place in places.values():
            recent.pop(place, None)
            recent[place] = now
            heard.setdefault(place, now)
        for place in list(recent):
            if now - recent[place] < REMEMBERED_FOR and len(recent) <= len(places) + REMEMBERED_MAX:
                break
            del recent[place], heard[place]

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
