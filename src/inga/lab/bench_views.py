"""The duration of view changes, their effect on later throughput and memory, and the cost of failure detection: processes on loopback.

A change is timed from the call that causes it (join, leave, use, or SIGKILL) until the last member has
the new view. The baseline of each row is the goal, or the same measurement before the changes or without detection.
"""

import os
import signal
import socket
from itertools import cycle
from statistics import median
from time import monotonic
from typing import Any

from inga.lab.bench import BenchRow, SayProgress
from inga.lab.bench_net import FAST, SECONDS_MAX, play
from inga.net.options import DEFAULTS
from inga.runs.cluster import Cluster
from inga.runs.live import free_ports

DETECT = DEFAULTS["detect"]
"""Seconds of silence after which a member is suspected, by default."""

QUICKER = 0.5
"""The same in the measurements of kills."""

CHANGING, LOADED, IDLE = 8, 4, 4
"""Members of a group whose view changes, of a group under load, and of an idle group."""

SIZE = 1024
"""Bytes of a message."""

SOAK_STEP = 10.0
"""Seconds after which a soak reports its progress."""


def run(progress: SayProgress, *, quick: bool = False) -> list[BenchRow]:
    """Run all cases."""
    return [
        starts(progress, rounds=4 if quick else 20),
        *_changes(progress, rounds=4 if quick else 20),
        *_kills(progress, groups=1 if quick else 4),
        *_under_load(progress, changes=40 if quick else 200, seconds=2.0 if quick else 6.0),
        _idle(progress, seconds=4.0 if quick else 15.0),
        _detection(progress, pairs=1 if quick else 21),
    ]


def soak(progress: SayProgress, seconds: float, *, members: int = LOADED) -> BenchRow:
    """Count members that are excluded though they are only busy: all send as fast as they can for so long."""
    excluded, left = 0, seconds
    with Members(members, detect=DETECT) as group:
        group.all("join", late=False)
        group.all("send", size=SIZE)
        while left > 0:
            progress(f"{members} members at full load, {excluded} excluded, {left:.0f} s to go")
            ends = group.all("measure", seconds=min(left, SOAK_STEP))
            excluded, left = max(end["view"] for end in ends) - 1, left - SOAK_STEP
    case = f"exclusions in {seconds:g} s of full load, {members} members, detect={DETECT:g}"
    return BenchRow(case, 0, excluded, "views", "goal")


def starts(progress: SayProgress, rounds: int, *, members: int = CHANGING) -> BenchRow:
    """Measure how long it takes until processes that start at once, and know of no others, are all in one view."""
    progress(f"{members} processes that start at once")
    times = []
    with Members(members, detect=DETECT) as group:
        for round_ in range(rounds):
            moments = group.all("start", group=f"bench {round_}", members=members)
            times.append(max(each["at"] for each in moments) - min(each["began"] for each in moments))
            group.all("leave")
    what = f"{members} processes start at once and are one view, worst of {rounds}"
    return BenchRow(what, 2000, 1000 * max(times), "ms", "goal: at most")


class Members:
    """Processes that execute commands, and the number of the view that they are in."""

    def __init__(self, members: int, *, founders: int | None = None, detect: float | None = None) -> None:
        names = [f"member{index}" for index in range(members)]
        common = {
            "members": names[: founders or members],
            "via": f"udp://239.7.7.10:{free_ports(1, socket.SOCK_DGRAM)[0]}",
            "order": "causal",
            "detect": detect,
        }
        self._cluster = Cluster("inga.lab.jobs_views:views", [{**common, "name": name} for name in names])
        self.here = set(range(founders or members))
        self._number = 1

    def __enter__(self) -> "Members":
        self._cluster.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._cluster.tell("close")
        self._cluster.__exit__(*error)

    def all(self, what: str, **how: Any) -> list[dict[str, Any]]:
        """Send a command to all present members, and wait for their answers."""
        for member in self.here:
            self._cluster.tell("do", member, do=what, **how)
        without = frozenset(range(len(self._cluster.processes))) - self.here
        answers = self._cluster.gather(what, timeout=SECONDS_MAX, without=without)
        return [answers[member] for member in sorted(self.here)]

    def one(self, member: int, what: str, **how: Any) -> dict[str, Any]:
        self._cluster.tell("do", member, do=what, **how)
        without = frozenset(range(len(self._cluster.processes))) - {member}
        return self._cluster.gather(what, timeout=SECONDS_MAX, without=without)[member]

    def join(self, member: int) -> float:
        began: float = self.one(member, "join", late=True)["began"]
        self.here.add(member)
        return self._changed() - began

    def leave(self, member: int) -> float:
        self.here.discard(member)
        self._cluster.tell("do", member, do="leave")
        changed = self._changed()
        without = frozenset(range(len(self._cluster.processes))) - {member}
        began: float = self._cluster.gather("leave", timeout=SECONDS_MAX, without=without)[member]["began"]
        return changed - began

    def use(self, member: int, order: str) -> float:
        began: float = self.one(member, "use", order=order)["began"]
        return self._changed() - began

    def kill(self, member: int) -> float:
        self.here.discard(member)
        began = monotonic()
        os.kill(self._cluster.processes[member], signal.SIGKILL)
        return self._changed() - began

    def _changed(self) -> float:
        """Wait for the next view, and return when the last present member had it."""
        self._number += 1
        moments: list[float] = [answer["at"] for answer in self.all("view", number=self._number)]
        return max(moments)


def _changes(progress: SayProgress, rounds: int) -> list[BenchRow]:
    progress(f"joins, leaves and other orders of {CHANGING} members")
    times: dict[str, list[float]] = {"leave": [], "join": [], "use": []}
    orders = cycle(("fifo", "causal"))
    with Members(CHANGING, detect=DETECT) as group:
        group.all("join", late=False)
        for round_ in range(rounds):
            member = round_ % CHANGING  # the leader, too
            times["leave"].append(group.leave(member))
            times["join"].append(group.join(member))
            times["use"].append(group.use((member + 1) % CHANGING, next(orders)))
    return [
        BenchRow(
            f"{what}, {CHANGING} members, median of {rounds}", 100, 1000 * median(each), "ms", "goal: at most"
        )
        for what, each in times.items()
    ]


def _kills(progress: SayProgress, groups: int) -> list[BenchRow]:
    times = []
    for number in range(groups):
        progress(f"SIGKILL of members, detect={QUICKER:g} ({number + 1}/{groups})")
        with Members(CHANGING, detect=QUICKER) as group:
            group.all("join", late=False)
            times += [group.kill(member) for member in (5, 0, 3)]  # the leader, too
    case = f"SIGKILL of one of {CHANGING}, detect={QUICKER:g}, until all have the view without it"
    return [
        BenchRow(f"{case}, median of {len(times)}", 1000, 1000 * median(times), "ms", "goal: at most"),
        BenchRow(f"{case}, longest", 1000, 1000 * max(times), "ms", "goal: at most"),
    ]


def _under_load(progress: SayProgress, changes: int, seconds: float) -> list[BenchRow]:
    """Measure the same members before and after changes, in which one more member joins and leaves again and again. Some changes come
    before the first measurement: when senders continue after a change there are bursts, and the memory for these is allocated once."""
    with Members(LOADED + 1, founders=LOADED, detect=DETECT) as group:

        def change(times: int) -> None:
            for _ in range(times // 2):
                group.join(LOADED)
                group.leave(LOADED)

        group.all("join", late=False)
        group.all("send", size=SIZE)
        progress(f"{LOADED} members under load, before the changes")
        change(changes // 5)
        before = group.all("measure", seconds=seconds)
        progress(f"{changes} changes of their view")
        change(changes)
        progress("after the changes")
        after = group.all("measure", seconds=seconds)
    what = f"after {changes} changes under load"

    def row(case: str, unit: str, key: str, per: str | None = None) -> BenchRow:
        def value(ends: list[dict[str, Any]]) -> float:
            found: list[float] = [end[key] / (end[per] if per else 1) for end in ends]
            return median(found)

        return BenchRow(f"{case} {what}", value(before), value(after), unit, "before")

    return [
        row("throughput", "messages/s and receiver", "delivered", "seconds"),
        row("CPU of a delivery", "s", "cpu", "delivered"),
        row("memory", "MB a member", "resident"),
    ]


def _idle(progress: SayProgress, seconds: float) -> BenchRow:
    progress(f"{IDLE} idle members")
    with Members(IDLE, detect=DETECT) as group:
        group.all("join", late=False)
        group.all("measure", seconds=1.0)
        ends = group.all("measure", seconds=seconds)
    sent = max(end["datagrams"] / end["seconds"] for end in ends)
    return BenchRow(
        f"idle, {IDLE} members, detect={DETECT:g}", 10, sent, "datagrams/s and member", "goal: at most"
    )


def _detection(progress: SayProgress, pairs: int) -> BenchRow:
    """Measure the CPU of a delivery with and without failure detection, alternately, and return the median of the ratios."""
    ratios = []
    for pair in range(pairs):
        progress(f"full load with and without detection ({pair + 1}/{pairs})")
        cost = {}
        for detect in (DETECT, None) if pair % 2 else (None, DETECT):
            ends = play(FAST, LOADED, SIZE, detect=detect)
            cost[detect] = sum(end["cpu"] for end in ends)
        ratios.append(cost[DETECT] / cost[None])
    case = f"detection at full load, {LOADED} x {SIZE} B, median of {pairs} pairs"
    return BenchRow(case, 1.0, median(ratios), "times the CPU", "detect=None")
