"""Sees that far more comes to a member than is of any use, and says what its kernel is to keep out.

What a stranger sends costs a member little, but not nothing: to read a datagram and see that it is none of the group's takes
some three microseconds, and one core can send a hundred thousand small ones a second to every member at once. In a flood the
kernel looks at what comes before it wakes us (see `sieve`), and the one that sends pays for that.

A flood is noticed by what has come, and its end by the few of its datagrams that are let in on purpose.

Rejected: to be strict always. Then nobody would be told that somebody speaks in the group without its secret, and a member that
comes from another address would be let in late.
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
"""Seconds between two looks."""

USELESS_A_SECOND = 2000
"""Datagrams of no use that come from elsewhere than members; more are a flood."""

NOISY_A_SECOND = 1000
"""The same from one place, where somebody speaks who has proven who it is and is no member: one that wants to be let in says
less."""

WORDS_A_SECOND = 2000
"""Words of handshakes, from anywhere. Of each kind a member works on a tenth of that."""

STRICT_FOR = 2.0
"""Seconds for which a flood is not over."""

NOISY_MAX = 64
"""Such places; what comes from others is let in."""

FADES = 0.95
"""What is left of a look after the next one: after 3.4 seconds of looks, new ones outweigh all that came before."""

CANDIDATES_MAX = 8
"""Places from which one member may have been heard; of more, those that were seen most."""

REMEMBERED_FOR, REMEMBERED_MAX = 60.0, 256
"""Seconds for which a place counts as a member's after another one does, and how many such places there are at most."""


class PlainSenders:
    """Of a group without keys: who is a member shows by where packets come from that layers have accepted.

    Whoever repeats what members send has some of it accepted, where the kernel had no room for the original. So a member's place
    is the one that was seen most often of late, not the last one; and a place that was one is let in for a while after that.
    """

    words_begin: bytes | None = None
    visitors: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.places: frozenset[HostPort] = frozenset()  # of members
        self._seen: dict[
            int, dict[HostPort, float]
        ] = {}  # of each member: how often it was where, as of late
        self._recent: dict[
            HostPort, float
        ] = {}  # places of members, and when they last were; the latest stands last
        self._elsewhere = 0

    @property
    def members(self) -> frozenset[str]:
        return frozenset(map(as_text, self.places))

    def renumber(self) -> None:
        """Members have other numbers now."""
        self._seen = {}

    def locate(self, addresses: Mapping[int, Hashable], now: float) -> None:
        """A look at where members are, by their numbers, as far as that is known."""
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
        """So many came from elsewhere."""
        self._elsewhere += count

    def useless(self) -> Useless:
        count, self._elsewhere = self._elsewhere, 0
        return Useless({}, count, 0)


class FloodWatch:
    """Of one member. Told the time whenever something has come."""

    def __init__(self, senders: Senders) -> None:
        self._senders = senders
        self.next_look = self._since = 0.0
        self._ends = self._words_end = 0.0  # of the flood
        self._noisy: dict[str, float] = {}  # places, and until when they are
        self._told = False
        self.strict: StrictRules | None = None  # what the kernel is to go by

    def look(self, now: float) -> bool:
        """Whether the kernel is to go by something else from now on."""
        if now < self.next_look:
            return False
        seconds = min(now - self._since, 1.0)
        self._since, self.next_look = now, now + EVERY
        useless, was = self._senders.useless(), self.strict
        members, visitors = self._senders.members, self._senders.visitors
        if not members:  # no group to protect, and everybody is a stranger
            self.strict = None
            return was is not None
        self._judge(useless, members, visitors, now, seconds)
        # One that was let in may say as much as it likes.
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
        """Whether that is a flood, of what, and where from. What the kernel samples stands for more."""
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
