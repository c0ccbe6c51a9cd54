"""Mishaps: failures of members and of the network during a trial. A trial draws them once, from its seed; `inga sim` plays them
in virtual time, `inga live` with signals to processes and with network namespaces.

    crash   a member stops in the middle of its work, and no other is notified (live: SIGKILL)
    return  a member that crashed starts again, under the same name
    pause   a member is suspended for a while (live: SIGSTOP)
    resume  a suspended member continues as if nothing had happened (live: SIGCONT)
    stall   the application of a member stops reading, until all others wait for it
    read    the application reads again
    cut     from now on no packet passes between these parts of the network
    heal    all packets pass again
"""

from collections.abc import Sequence
from math import isfinite
from random import Random
from typing import NamedTuple

from inga.model.errors import UsageError
from inga.model.text import suggest

STALLS_AT = 1.0
"""Seconds after the start at which an application that is to stall stops reading."""

BACK_AFTER = 1.0
"""The shortest time in seconds after which a crashed member returns; the longest is twice as much."""


class Mishap(NamedTuple):
    """One mishap. `at`: seconds after the members began to send. `parts`: the names in each part, of a cut."""

    at: float
    do: str
    name: str = ""
    parts: tuple[tuple[str, ...], ...] = ()


class NetworkCut(NamedTuple):
    """A network that is partitioned for a while, and then whole again. Members that are not named are in the first part."""

    parts: tuple[tuple[str, ...], ...]
    at: float
    seconds: float

    @classmethod
    def parse(cls, text: str, people: Sequence[str]) -> "NetworkCut":
        """Parse a text such as `A,B/C,D@2+3`: the parts A, B and C, D, from second 2 on, for 3 seconds."""
        said, _, times = text.partition("@")
        begins, plus, lasts = times.partition("+")
        try:
            at, seconds = float(begins), float(lasts)
        except ValueError:
            at = seconds = -1.0
        if not plus or not isfinite(at + seconds) or at < 0 or seconds <= 0:
            raise UsageError(f"--partition is A,B/C,D@2+3, cut at second 2 for 3 seconds, not {text!r}")
        parts = tuple(tuple(name for name in part.split(",") if name) for part in said.split("/"))
        if len(parts) < 2 or not all(parts):
            raise UsageError(
                f"--partition {text}: two parts at least, with a member in each, as in A,B/C,D@2+3"
            )
        named = [name for part in parts for name in part]
        if unknown := [name for name in named if name not in people]:
            raise UsageError(f"--partition: no member {unknown[0]!r}{suggest(unknown[0], people)}")
        if twice := [name for name in people if named.count(name) > 1]:
            raise UsageError(f"--partition: {twice[0]} is in two parts")
        rest = tuple(name for name in people if name not in named)
        return cls((parts[0] + rest, *parts[1:]), at, seconds)

    @property
    def ends(self) -> float:
        return self.at + self.seconds


def draw_mishaps(
    people: Sequence[str],
    seed: int,
    *,
    length: float,
    crash: int = 0,
    back: int = 0,
    pause: int = 0,
    pause_for: float = 0.0,
    cut: NetworkCut | None = None,
    slow: str | None = None,
    stall_for: float = 0.0,
) -> list[Mishap]:
    """Draw the mishaps of members that send for `length` seconds, in the order in which they happen. `slow` is a member whose
    application stalls; it is neither crashed nor paused."""
    rng = Random(f"{seed}/mishaps")
    victims = rng.sample([name for name in people if name != slow], crash + pause)
    found: list[Mishap] = []
    for place, name in enumerate(victims[:crash]):
        at = length * (0.3 + 0.4 * rng.random())
        found.append(Mishap(at, "crash", name))
        if place < back:
            found.append(Mishap(at + BACK_AFTER * (1 + rng.random()), "return", name))
    for name in victims[crash:]:
        at = length * (0.2 + 0.2 * rng.random())
        found += [Mishap(at, "pause", name), Mishap(at + pause_for, "resume", name)]
    if slow is not None:
        found += [Mishap(STALLS_AT, "stall", slow), Mishap(STALLS_AT + stall_for, "read", slow)]
    if cut is not None:
        found += [Mishap(cut.at, "cut", parts=cut.parts), Mishap(cut.ends, "heal")]
    return sorted(found)
