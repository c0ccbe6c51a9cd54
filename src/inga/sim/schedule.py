"""The language of schedules: which site sends, which copy arrives where, which message is taken when.

    A!1      A sends message 1 to all others          A!1:BC  only to B and C
    1>B      the copy of message 1 reaches B          1>>B    a duplicate of it does
    B?1      the application of B takes message 1; a message without any ? is taken when released
    B.       the timer of B fires: what it held or delayed for a time goes on
    J+       J joins: it waits for its bases      B=      B installs the view that includes J
    A-       A crashes: copies of its messages that have not arrived are lost; then B= installs the view without A
    B|open   the gate of B opens                  B|shut  and closes again

A base is the number at which the newcomer's count of a member's messages starts. Sites are single capital letters, from A on, newcomers
after the founders; messages are numbers. A schedule that ends early is completed: all remaining copies arrive and all timers fire.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

from inga.model.errors import UsageError

_SEND = re.compile(r"([A-Z])!(\d+)(?::([A-Z]+))?")
_ARRIVE = re.compile(r"(\d+)(>>?)([A-Z])")
_TAKE = re.compile(r"([A-Z])\?(\d+)")
_WAIT = re.compile(r"([A-Z])\.")
_JOIN = re.compile(r"([A-Z])\+")
_INSTALL = re.compile(r"([A-Z])=")
_GATE = re.compile(r"([A-Z])\|(open|shut)")
_LEAVE = re.compile(r"([A-Z])-")


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


class Join(NamedTuple):
    site: int

    def __str__(self) -> str:
        return f"{letter(self.site)}+"


class Leave(NamedTuple):
    site: int

    def __str__(self) -> str:
        return f"{letter(self.site)}-"


class Install(NamedTuple):
    site: int

    def __str__(self) -> str:
        return f"{letter(self.site)}="


class Gate(NamedTuple):
    site: int
    is_open: bool

    def __str__(self) -> str:
        return f"{letter(self.site)}|{'open' if self.is_open else 'shut'}"


Event = Send | Arrive | Take | Wait | Join | Leave | Install | Gate


@dataclass(frozen=True, slots=True)
class Schedule:
    """A sequence of events at named sites."""

    events: tuple[Event, ...]

    @classmethod
    def parse(cls, text: str) -> "Schedule":
        """Parse the language that the module's docstring describes."""
        words = text.split()
        index = _numbering(words)
        events: list[Event] = []
        sent: set[int] = set()
        for word in words:
            event = _event(word, index)
            if isinstance(event, Send):
                if event.message in sent:
                    raise UsageError(f"{word!r}: message {event.message} is sent twice")
                sent.add(event.message)
            events.append(event)
        return cls(tuple(events))

    @property
    def sites(self) -> int:
        """The number of sites that are present from the start: all up to the last one named, without those that join."""
        named = [event.site for event in self.events]
        named += [
            event.dst.bit_length() - 1 for event in self.events if isinstance(event, Send) and event.dst
        ]
        joined = [event.site for event in self.events if isinstance(event, Join)]
        return max(named, default=-1) + 1 - len(joined)

    def __str__(self) -> str:
        return " ".join(map(str, self.events))


def letter(site: int) -> str:
    return chr(ord("A") + site)


def _numbering(words: list[str]) -> dict[str, int]:
    """Return the index of each letter: newcomers come after the founders, in the order in which they join."""
    late = [found[1] for word in words if (found := _JOIN.fullmatch(word))]
    # `letter` would do as the name here, but for CPython 3.12.1, which takes it for the function of that name below.
    used = {site for word in words for site in re.findall(r"[A-Z]", word)} - set(late)
    founders = [letter(index) for index in range(ord(max(used, default="A")) - ord("A") + 1)]
    order = [name for name in founders if name not in late]
    if len(set(late)) < len(late):
        raise UsageError(f"nobody joins twice in a schedule: {', '.join(late)}")
    return {name: index for index, name in enumerate([*order, *late])}


def _event(word: str, index: dict[str, int]) -> Event:
    if found := _SEND.fullmatch(word):
        dst = sum(1 << index[c] for c in set(found[3])) if found[3] else None
        return Send(index[found[1]], int(found[2]), dst)
    if found := _ARRIVE.fullmatch(word):
        return Arrive(int(found[1]), index[found[3]], found[2] == ">>")
    if found := _TAKE.fullmatch(word):
        return Take(index[found[1]], int(found[2]))
    if found := _WAIT.fullmatch(word):
        return Wait(index[found[1]])
    if found := _JOIN.fullmatch(word):
        return Join(index[found[1]])
    if found := _INSTALL.fullmatch(word):
        return Install(index[found[1]])
    if found := _GATE.fullmatch(word):
        return Gate(index[found[1]], found[2] == "open")
    if found := _LEAVE.fullmatch(word):
        return Leave(index[found[1]])
    raise UsageError(f"{word!r} is no event of a schedule such as 'A!1 1>B B?1 B!2:AC 2>C'")
