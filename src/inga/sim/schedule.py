"""The language of schedules: who sends, which copy arrives where, who takes what.

    A!1      A sends message 1 to all others          A!1:BC  only to B and C
    1>B      the copy of message 1 reaches B          1>>B    a duplicate of it does
    B?1      the application of B takes message 1; a message without any ? is taken when released
    B.       the waiting time of B ends: what it held or delayed for a time goes on

Sites are single capital letters, A the first; messages are numbers. A schedule that ends early is
completed by letting all remaining copies arrive and all waiting times end.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

from inga.model.errors import UsageError

_SEND = re.compile(r"([A-Z])!(\d+)(?::([A-Z]+))?")
_ARRIVE = re.compile(r"(\d+)(>>?)([A-Z])")
_TAKE = re.compile(r"([A-Z])\?(\d+)")
_WAIT = re.compile(r"([A-Z])\.")
_LATER = re.compile(r"[A-Z](\+|-|=|\|open|\|shut)")


class Send(NamedTuple):
    site: int
    message: int
    dst: int | None

    def __str__(self) -> str:
        to = "" if self.dst is None else ":" + "".join(letter(m) for m in range(26) if self.dst >> m & 1)
        return f"{letter(self.site)}!{self.message}{to}"


class Arrive(NamedTuple):
    message: int
    site: int
    duplicate: bool

    def __str__(self) -> str:
        return f"{self.message}{'>>' if self.duplicate else '>'}{letter(self.site)}"


class Take(NamedTuple):
    site: int
    message: int

    def __str__(self) -> str:
        return f"{letter(self.site)}?{self.message}"


class Wait(NamedTuple):
    site: int

    def __str__(self) -> str:
        return f"{letter(self.site)}."


Event = Send | Arrive | Take | Wait


@dataclass(frozen=True, slots=True)
class Schedule:
    """A sequence of events at named sites."""

    events: tuple[Event, ...]

    @classmethod
    def parse(cls, text: str) -> "Schedule":
        events: list[Event] = []
        sent: set[int] = set()
        for word in text.split():
            if found := _SEND.fullmatch(word):
                dst = sum(1 << _index(c) for c in set(found[3])) if found[3] else None
                send = Send(_index(found[1]), int(found[2]), dst)
                if send.message in sent:
                    raise UsageError(f"{word!r}: message {send.message} is sent twice")
                sent.add(send.message)
                events.append(send)
            elif found := _ARRIVE.fullmatch(word):
                events.append(Arrive(int(found[1]), _index(found[3]), found[2] == ">>"))
            elif found := _TAKE.fullmatch(word):
                events.append(Take(_index(found[1]), int(found[2])))
            elif found := _WAIT.fullmatch(word):
                events.append(Wait(_index(found[1])))
            elif _LATER.fullmatch(word):
                raise UsageError(f"{word!r}: joins, leaves and gates cannot be replayed yet")
            else:
                raise UsageError(f"{word!r} is no event of a schedule such as 'A!1 1>B B?1 B!2:AC 2>C'")
        return cls(tuple(events))

    @property
    def sites(self) -> int:
        """As many as are named."""
        named = [event.site for event in self.events]
        named += [
            event.dst.bit_length() - 1 for event in self.events if isinstance(event, Send) and event.dst
        ]
        return max(named, default=-1) + 1

    def __str__(self) -> str:
        return " ".join(map(str, self.events))


def letter(site: int) -> str:
    return chr(ord("A") + site)


def _index(name: str) -> int:
    return ord(name) - ord("A")
