"""What befalls members on the way. A trial draws it once, from its seed, and whoever plays the trial lets it happen:
`inga sim` in virtual time, `inga live` with signals to processes and with network namespaces.

    crash   it stops in the middle of whatever it does, and nobody is told (live: SIGKILL)
    return  one that crashed starts again, under its name
    pause   it stands still for a while, then goes on as if nothing had happened (live: SIGSTOP)
    resume  which it does now (live: SIGCONT)
    stall   its application reads nothing any more, until all others wait for it
    read    it reads again
    cut     from now on nothing passes between these parts of the network
    heal    everything passes again
"""

from collections.abc import Sequence
from math import isfinite
from random import Random
from typing import NamedTuple

from inga.model.errors import UsageError
from inga.model.text import suggest

STALLS_AT = 1.0
"""Seconds after which an application stops to read that will."""

BACK_AFTER = 1.0
"""Seconds after which one that crashed comes back, at least; twice as many at most."""


class Mishap(NamedTuple):
    """`at`: seconds after the members began to talk. `parts` are those of a cut: names."""

    at: float
    do: str
    name: str = ""
    parts: tuple[tuple[str, ...], ...] = ()


class NetworkCut(NamedTuple):
    """A network that falls into parts for a while, and is one again. Whoever is not named stays with the first part."""

    parts: tuple[tuple[str, ...], ...]
    at: float
    seconds: float

    @classmethod
    def parse(cls, text: str, people: Sequence[str]) -> "NetworkCut":
        """`A,B/C,D@2+3`: the parts A, B and C, D, from second 2 on, for 3 seconds."""
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
    """What befalls whom, in the order in which it happens, to members that talk for `length` seconds. `slow` is one whose
    application stops to read, and to which nothing else happens."""
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
