"""How a group came through what befell it, for a person: what happened, which views there were, how long it took.

A mishap is over when everybody who is there, in each part of the network that is whole, has entered one view of
exactly these. Whoever drives a trial says what happens and which views members enter; times are in seconds since the members
began to talk.
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
"""What has happened, and how it ends, in words."""


GOES = ("crash", "pause", "stall")
"""After these the others go on without it."""


@dataclass(slots=True)
class Course:
    """`settled` has for each mishap, in words, the seconds until everybody agreed again who is there."""

    views: int = 1
    settled: dict[str, float] = field(default_factory=dict)
    stopped: dict[str, float] = field(default_factory=dict)  # longest time that nothing came to a survivor
    unsettled: list[str] = field(default_factory=list)  # mishaps after which they never agreed
    merged: dict[str, list[list[list[str]]]] = field(
        default_factory=dict
    )  # live: by member, what `on_merge` was given: each time the parts that came together
    states: int = 1  # live: different states of applications in the end, if these give theirs to newcomers

    @property
    def longest_stop(self) -> float:
        return max(self.stopped.values(), default=0.0)

    @property
    def summary(self) -> list[str]:
        """For a person."""
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
    """A mishap that they have not got over: how it ends, in words, since when, whom it befell, and whether they are to go on
    without that one."""

    ends: str
    since: float
    name: str
    goes: bool


class Chronicle:
    """Keeps the course of one run."""

    def __init__(
        self, people: Iterable[str], say: TellStory = lambda text: None, *, is_primary: bool = False
    ) -> None:
        """`say` is told each line of the story as it happens. `is_primary`: of a network that is cut only the part with a
        majority goes on, and nothing is expected of the others."""
        self._is_primary = is_primary
        self.course = Course()
        self.victims: set[str] = set()  # who was not there all the time
        self._people = list(people)
        self._present = set(self._people)
        self._excluded: set[str] = set()  # who was told so, and does not come back
        self._say = say
        self._in: dict[str, str] = {}  # the view that each member is in
        self._members: dict[str, frozenset[str]] = {}  # of each view
        self._parts: tuple[frozenset[str], ...] = ()  # while the network is cut
        self._open: dict[str, _Open] = {}  # mishaps after which they do not agree yet

    def befalls(self, mishap: Mishap, at: float) -> None:
        """It happens now."""
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
        """A member is in a view from now on; `view` tells it from all others."""
        if view not in self._members:
            self._members[view] = frozenset(members)
            self.course.views = len(self._members)
            if number > 1:
                self._say(f"{at:.1f} s: view {number}: {' '.join(members)}")
        self._in[name] = view
        self.look(at)

    def excluded(self, name: str, at: float) -> None:
        """A member was told that it is none any more, and stays out."""
        self._excluded.add(name)
        self._present.discard(name)
        for what, each in self._open.items():
            if each.name == name and not each.goes:
                self._open[what] = each._replace(ends=f"{name} told that it is excluded")
        self.look(at)

    def missed(self, name: str, messages: Mapping[str, int], at: float) -> None:
        """A member that comes back was told how many messages it does not get, by sender."""
        counts = ", ".join(f"{count} of {sender}" for sender, count in messages.items())
        self._say(f"{at:.1f} s: {name} is told what it missed: {counts or 'nothing'}")

    def merges(self, name: str, parts: list[list[str]], at: float) -> None:
        """The application of a member was told that these parts of the group have come together."""
        if not any(parts in told for told in self.course.merged.values()):
            self._say(f"{at:.1f} s: parts come together: {' / '.join(' '.join(part) for part in parts)}")
        self.course.merged.setdefault(name, []).append(parts)

    def look(self, at: float) -> None:
        """Do they agree?"""
        is_whole = self.is_whole
        for what, (ends, since, name, goes) in list(self._open.items()):
            if is_whole or (goes and self._are_without(name)):
                self.course.settled[what] = round(max(at - since, 0.0), 3)
                self._say(f"{at:.1f} s: {ends} after {self.course.settled[what]:.2f} s")
                del self._open[what]

    def _are_without(self, name: str) -> bool:
        """Whether all that are there have gone on without that one."""
        those = [self._in[each] for each in self._present if each in self._in]
        return bool(those) and not any(name in self._members[view] for view in those)

    @property
    def is_whole(self) -> bool:
        """Whether everybody that is there is in one view with all others, in each part of the network."""
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
        """The run is over. `stopped`: by member the longest time that nothing came to it."""
        self.course.stopped = {
            name: round(seconds, 3) for name, seconds in stopped.items() if name not in self.victims
        }
        self.course.unsettled = list(self._open)
        return self.course
