"""What is measured: round trips of a message of some size by one stack.

One of four members multicasts a message, which is one GIOP request; all of them answer by multicast over the same stack, itself included. The
round trip ends with the last of the four answers. Answers are of one packet. By MIOP and ReMIOP a member has its own messages when it hands them to its
stack, which does not hear them again; by bare sockets they come back from the network.
"""

from dataclasses import dataclass
from statistics import median

MEMBERS = ("one", "two", "three", "four")

REQUEST, ANSWER = b"Q", b"A"
ANSWER_BYTES = 16

SLOW_RATES = (10, 50, 100)
"""Kbit/s that are measured in virtual time: a real run would take an hour."""
FAST_RATES = (500, 1000)
"""Kbit/s that are measured with real sockets."""

DATAGRAM = 1472
PAYLOAD = 1440
ENVELOPE = 160
"""Octets of a request around a message, roughly: GIOP, the group's profile, a packet of ours."""


@dataclass(frozen=True, slots=True)
class Setup:
    """A stack and a size of message. `rmax` in Kbit/s is of ReMIOP only."""

    stack: str
    bytes: int
    rmax: int | None = None

    @property
    def name(self) -> str:
        return self.stack if self.rmax is None else f"{self.stack} {self.rmax}"

    @property
    def packets(self) -> int:
        return packets(self.bytes)

    @property
    def protocol(self) -> dict[str, float]:
        """Options of the recipe. The paper gives no lower bound of the rate; ours is half the upper one."""
        if self.rmax is None:
            return {}
        return {"rmin": 500.0 * self.rmax, "rmax": 1000.0 * self.rmax}


@dataclass(frozen=True, slots=True)
class Trip:
    """What some round trips of a trial took: the median, None if a message did not arrive; losses and the rest are
    means of one round trip. `best_ms` is the shortest."""

    trial: Setup
    ms: float | None
    lost: float
    nacks: float
    repairs: float
    best_ms: float | None = None

    def row(self) -> list[object]:
        trial = self.trial
        ms = None if self.ms is None else round(self.ms, 3)
        counts = (round(each, 1) for each in (self.lost, self.nacks, self.repairs))
        return [trial.stack, trial.rmax, trial.bytes, ms, *counts]


def summed_up(trial: Setup, ms: list[float | None], lost: int, nacks: int, repairs: int) -> Trip:
    """Of several round trips one after the other."""
    whole = [each for each in ms if each is not None]
    rounds = max(1, len(ms))
    middle = median(whole) if len(whole) == len(ms) else None
    return Trip(trial, middle, lost / rounds, nacks / rounds, repairs / rounds, min(whole, default=None))


def packets(size: int) -> int:
    """Packets of a message."""
    return -(-(size + ENVELOPE) // PAYLOAD)


def pacing_ms(trial: Setup, rate: float) -> float:
    """Milliseconds from the first packet of a message to its last at a rate in Kbit/s."""
    return (trial.packets - 1) * 8 * DATAGRAM / rate
