"""How a group recovered from mishaps, for a person: what happened, which views there were, how long recovery took.

A mishap is over when in each part of the network all members that are present have entered one view of
exactly these members; if the others have to go on without a member, also as soon as they are in views without it. The driver of
a trial reports mishaps and the views that members enter; times are in seconds since the members began to send.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from inga.trial.mishaps import Mishap

TellStory = Callable[[str], None]

DONE = {
    "crash": ("{} killed", "gone from the view"),
    "return": ("{} starts again", "back"),
    "pause": ("{} stopped", "gone from the view"),
    "resume": ("{} goes on", "back"),
    "stall": ("{} reads nothing", "gone from the view"),
    "read": ("{} reads again", "back"),
    "join": ("{} comes", "a member"),
    "cut": ("the network is cut: {}", "one view in each part"),
    "heal": ("the network is whole again", "one view"),
}
"""For each kind of mishap: what has happened, and how it ends, in words."""


GOES = ("crash", "pause", "stall")
"""Mishaps after which the others go on without the member."""


@dataclass(slots=True)
class Course:
    """The course of a run. `settled` has for each mishap, in words, the seconds until all members agreed on the view again."""

    views: int = 1
    settled: dict[str, float] = field(default_factory=dict)
    stopped: dict[str, float] = field(default_factory=dict)  # longest time without a delivery, by survivor
    unsettled: list[str] = field(default_factory=list)  # mishaps after which members never agreed again
    merged: dict[str, list[list[list[str]]]] = field(
        default_factory=dict
    )  # live: by member, the arguments of `on_merge`: for each merge the parts that came together
    states: int = 1  # live: how many different states applications have in the end, if newcomers get states

    @property
    def longest_stop(self) -> float:
        return max(self.stopped.values(), default=0.0)

    @property
    def summary(self) -> list[str]:
        """The course in words."""
        lines = [f"{self.views} views"]
        if self.stopped:
            slowest = max(self.stopped, key=self.stopped.__getitem__)
            lines[0] += (
                f"; whoever was there all the time waited {self.longest_stop:.2f} s at most ({slowest})"
            )
        lines += [f"  {what}: one view {seconds:.2f} s later" for what, seconds in self.settled.items()]
        lines += [f"  {what}: they never agreed again who is there" for what in self.unsettled]
        return lines

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class _Open(NamedTuple):
    """A mishap that is not over: how it ends, in words; when it happened; which member it concerns; and whether the others are
    to go on without that member."""

    ends: str
    since: float
    name: str
    goes: bool


class Chronicle:
    """Records the course of one run."""

    def __init__(
        self, people: Iterable[str], say: TellStory = lambda text: None, *, is_primary: bool = False
    ) -> None:
        """`say` is called with each event in words as it happens. `is_primary`: while the network is cut, only the part with a
        majority goes on, and nothing is expected of the others."""
        self._is_primary = is_primary
        self.course = Course()
        self.victims: set[str] = set()  # members that were not present throughout
        self._people = list(people)
        self._present = set(self._people)
        self._excluded: set[str] = set()  # members that know they are excluded, and do not return
        self._say = say
        self._in: dict[str, str] = {}  # the current view of each member
        self._members: dict[str, frozenset[str]] = {}  # the members of each view
        self._parts: tuple[frozenset[str], ...] = ()  # of the network, while it is cut
        self._open: dict[str, _Open] = {}  # mishaps that are not over

    def befalls(self, mishap: Mishap, at: float) -> None:
        """Record a mishap that happens now."""
        name = mishap.name
        if mishap.do in ("resume", "read") and name in self._excluded:
            return
        self._excluded.discard(name)
        if mishap.do in GOES:
            self._present.discard(name)
            self.victims.add(name)
        elif name:
            self._present.add(name)
            self.victims.add(name)
        if mishap.do == "join":
            self._people.append(name)
        self._parts = tuple(map(frozenset, mishap.parts)) if mishap.do == "cut" else self._parts
        if mishap.do == "heal":
            self._parts = ()
        self.victims.update(*(part for part in self._parts if self._pauses(part)))
        if mishap.do in ("crash", "return"):
            self._in.pop(name, None)
        happened, ends = DONE[mishap.do]
        what = happened.format(name or " / ".join(" ".join(part) for part in mishap.parts))
        self._say(f"{at:.1f} s: {what}")
        self._open[what] = _Open(f"{name} {ends}".strip(), at, name, mishap.do in GOES)

    def enters(self, name: str, number: int, view: str, members: Iterable[str], at: float) -> None:
        """Record that a member enters a view. `view` identifies it uniquely, which `number` need not do."""
        if view not in self._members:
            self._members[view] = frozenset(members)
            self.course.views = len(self._members)
            if number > 1:
                self._say(f"{at:.1f} s: view {number}: {' '.join(members)}")
        self._in[name] = view
        self.look(at)

    def excluded(self, name: str, at: float) -> None:
        """Record that a member was notified of its exclusion and does not rejoin."""
        self._excluded.add(name)
        self._present.discard(name)
        for what, each in self._open.items():
            if each.name == name and not each.goes:
                self._open[what] = each._replace(ends=f"{name} told that it is excluded")
        self.look(at)

    def missed(self, name: str, messages: Mapping[str, int], at: float) -> None:
        """Record that a returning member was told how many messages of each sender it missed."""
        counts = ", ".join(f"{count} of {sender}" for sender, count in messages.items())
        self._say(f"{at:.1f} s: {name} is told what it missed: {counts or 'nothing'}")

    def merges(self, name: str, parts: list[list[str]], at: float) -> None:
        """Record that the application of a member was notified of a merge of these parts of the group."""
        if not any(parts in told for told in self.course.merged.values()):
            self._say(f"{at:.1f} s: parts come together: {' / '.join(' '.join(part) for part in parts)}")
        self.course.merged.setdefault(name, []).append(parts)

    def look(self, at: float) -> None:
        """Find the mishaps that are over now, and record how long each took."""
        is_whole = self.is_whole
        for what, (ends, since, name, goes) in list(self._open.items()):
            if is_whole or (goes and self._are_without(name)):
                self.course.settled[what] = round(max(at - since, 0.0), 3)
                self._say(f"{at:.1f} s: {ends} after {self.course.settled[what]:.2f} s")
                del self._open[what]

    def _are_without(self, name: str) -> bool:
        """Whether the views of all members that are present are without that member."""
        those = [self._in[each] for each in self._present if each in self._in]
        return bool(those) and not any(name in self._members[view] for view in those)

    @property
    def is_whole(self) -> bool:
        """Whether in each part of the network all members that are present are in one view of exactly these."""
        for part in self._parts or (frozenset(self._people),):
            if self._parts and self._pauses(part):
                continue
            there = part & self._present
            views = {self._in.get(name, "") for name in there}
            if there and (len(views) > 1 or self._members.get(views.pop()) != there):
                return False
        return True

    def _pauses(self, part: frozenset[str]) -> bool:
        return self._is_primary and 2 * len(part) <= len(self._people)

    def finish(self, stopped: Mapping[str, float]) -> Course:
        """End the course. `stopped` is by member the longest time without a delivery to it."""
        self.course.stopped = {
            name: round(seconds, 3) for name, seconds in stopped.items() if name not in self.victims
        }
        self.course.unsettled = list(self._open)
        return self.course
