"""Trials of eight live members with mishaps: what happens, what is promised then, and whether the promise was kept.

Members under `total` and `object` call replicated objects. Those under the other orders send messages and get their own, too: the
messages that they got are the state of their application, which they give to newcomers. In the end all have the same state.
"""

from typing import NamedTuple

from inga.lab.experiments import HOLDS, NOT_REPRODUCED, Claim
from inga.lab.members.start import MEMBERS
from inga.recipes import find
from inga.trial.calls import CallResult
from inga.trial.course import Course
from inga.trial.mishaps import Mishap, NetworkCut
from inga.trial.people import member_names
from inga.trial.result import Result
from inga.trial.trial import Trial

ORDERS = ("causal", "co", "sco", "total", "object")
RATE, CALL_RATE = 20.0, 5.0
"""Sends, and calls, per second and member: load enough to notice that deliveries stop. A call is executed at eight copies, and as
many calls as messages would alone keep two cores busy."""

DETECT = 1.0
STOP_BESIDES = 1.0
"""The most seconds beyond `detect` for which nothing is delivered at a survivor."""

PEOPLE = member_names(MEMBERS)
SPLIT = f"{','.join(PEOPLE[:5])}/{','.join(PEOPLE[5:])}"
COLUMNS = ["order", "what", "views", "stopped", "agreed", "delivered", "violations", "check"]

GOES_ON = {
    "primary": "the five go on, and the three come back with their state",
    "all": "both parts go on, and on_merge is given both at all members when they come together",
}
"""By policy, the promise for a network that is cut."""


class Trouble(NamedTuple):
    """One kind of trial: its mishaps, and the promise. `seconds`: how long it lasts, including the time that the group needs
    afterwards."""

    name: str
    mishaps: tuple[Mishap, ...]
    seconds: float
    promise: str
    policy: str | None = None  # of partitions

    @property
    def parts(self) -> list[list[str]]:
        """The parts of the network, if it is cut."""
        return [list(part) for each in self.mishaps for part in each.parts]

    @property
    def kills(self) -> bool:
        return any(each.do == "crash" for each in self.mishaps)


def troubles(*, long: bool) -> list[Trouble]:
    """Return the kinds of trials. The first member leads."""
    leader, other, third = PEOPLE[0], PEOPLE[4], PEOPLE[2]
    killed = (
        Mishap(2.0, "crash", leader),
        Mishap(2.3, "crash", other),
        Mishap(4.5, "return", leader),
        Mishap(4.8, "return", other),
    )
    stopped = (Mishap(2.0, "pause", third), Mishap(7.0, "resume", third))
    found = [
        Trouble("two killed, both return", killed, 10.0, "both come back with the state of the others"),
        Trouble("stopped for 5 s", stopped, 10.0, "it comes back with the state of the others"),
    ]
    for seconds in (3.0, 70.0) if long else (3.0,):
        cut = NetworkCut.parse(f"{SPLIT}@2+{seconds:g}", PEOPLE)
        split = (Mishap(cut.at, "cut", parts=cut.parts), Mishap(cut.ends, "heal"))
        for policy, promise in GOES_ON.items():
            name = f"split 5/3 for {seconds:g} s, {policy}"
            found.append(Trouble(name, split, cut.ends + 5.0, promise, policy))
    return found


def trial_of(order: str, trouble: Trouble, detect: float) -> Trial:
    """Return the trial, in which all members send or call until its mishaps are over and the group has recovered."""
    calls = find(order).objects
    rate = CALL_RATE if calls else RATE
    return Trial(
        order,
        MEMBERS,
        int((trouble.seconds + 2 * (detect - DETECT)) * rate),
        rate=rate,
        echo=not calls,
        objects=2 if calls else None,
        detect=detect,
        rejoin=True,
        policy=trouble.policy,
    )


class LiveTrial(NamedTuple):
    """A trial that was run."""

    order: str
    trouble: Trouble
    detect: float
    result: Result | None  # None if a member failed that should not have
    verdict: str  # of `inga check`, or why there is no result

    @property
    def name(self) -> str:
        return name_of(self.order, self.trouble)

    @property
    def course(self) -> Course:
        assert self.result is not None and self.result.course is not None
        return self.result.course

    def row(self) -> list[object]:
        if self.result is None:
            return [self.order, self.trouble.name, "-", "-", "-", "-", "-", self.verdict]
        course, result = self.course, self.result
        agreed = "never" if course.unsettled else max(course.settled.values(), default=0.0)
        stopped, what = round(course.longest_stop, 2), self.trouble.name
        counts = [self._delivered, result.violations]
        return [self.order, what, course.views, stopped, agreed, *counts, self.verdict]

    def claim(self) -> Claim:
        stop_max = self.detect + STOP_BESIDES
        return Claim(
            id=self.name,
            statement=f"{self.name}: survivors stop for at most {stop_max:g} s, and agree; {self.trouble.promise}",
            published=f"at most {stop_max:g} s, no violation, one view and one state in the end",
            measured=self._measured,
            verdict=NOT_REPRODUCED if self.faults() else HOLDS,
        )

    def faults(self) -> list[str]:
        """Return the promises that were not kept."""
        if self.result is None:
            return [self.verdict]
        course, result, stop_max = self.course, self.result, self.detect + STOP_BESIDES
        # A killed process loses its last rows, without which some checks answer *unknown*.
        certified = ("pass", "unknown") if self.trouble.kills else ("pass",)
        found = {
            f"check: {self.verdict}": self.verdict not in certified,
            f"{result.violations} violations: {'; '.join(result.witnesses[:2])}": result.violations > 0,
            f"stopped for more than {stop_max:g} s": course.longest_stop > stop_max,
            f"never agreed: {', '.join(course.unsettled)}": bool(course.unsettled),
            f"{course.states} states in the end": course.states > 1,
            f"on_merge was given {course.merged}": not self._are_merged,
        }
        return [what for what, is_so in found.items() if is_so]

    @property
    def _are_merged(self) -> bool:
        """Whether every application was given both parts by `on_merge`, if both went on."""
        if self.trouble.policy != "all":
            return True
        parts = sorted(map(sorted, self.trouble.parts))
        told = {
            name: [sorted(map(sorted, each)) for each in times] for name, times in self.course.merged.items()
        }
        return all(parts in told.get(name, ()) for name in PEOPLE)

    @property
    def _delivered(self) -> int:
        """The number of messages delivered, or of calls committed."""
        assert self.result is not None
        return self.result.committed if isinstance(self.result, CallResult) else self.result.delivered

    @property
    def _measured(self) -> str:
        if self.result is None:
            return self.verdict
        course = self.course
        what = "calls committed" if isinstance(self.result, CallResult) else "delivered"
        took = "; ".join(f"{what}: {seconds:.2f} s" for what, seconds in course.settled.items())
        return (
            f"stopped for {course.longest_stop:.2f} s, {course.views} views, {self._delivered:,} {what}, "
            f"{self.result.violations} violations, check: {self.verdict}; {took}"
            + "".join(f"; NOT KEPT: {each}" for each in self.faults())
        )


def name_of(order: str, trouble: Trouble) -> str:
    return f"{order}: {trouble.name}"
