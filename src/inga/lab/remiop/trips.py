"""Round trips of a message of some size over one stack: what the experiment measures.

One of four members multicasts a message, which is one GIOP request; all of them answer by multicast over the same stack, itself
included. The round trip ends with the last of the four answers. Answers have one packet. With MIOP and ReMIOP a member gets its
own messages from its stack as it sends them, and ignores their copies from the network; with bare sockets they come back from the
network.
"""

from dataclasses import dataclass
from statistics import median

MEMBERS = ("one", "two", "three", "four")

REQUEST, ANSWER = b"Q", b"A"
ANSWER_BYTES = 16

SLOW_RATES = (10, 50, 100)
"""Rates in Kbit/s that are measured in virtual time: a real run would take an hour."""
FAST_RATES = (500, 1000)
"""Rates in Kbit/s that are measured with real sockets."""

DATAGRAM = 1472
PAYLOAD = 1440
ENVELOPE = 160
"""About how many octets a request has besides its message: GIOP, the group's profile, the header of our packet."""


@dataclass(frozen=True, slots=True)
class Setup:
    """A stack and a message size. `rmax`, in Kbit/s, is for ReMIOP only."""

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
        """Options of the recipe. The paper names no lower bound of the rate; ours is half the upper one."""
        if self.rmax is None:
            return {}
        return {"rmin": 500.0 * self.rmax, "rmax": 1000.0 * self.rmax}


@dataclass(frozen=True, slots=True)
class Trip:
    """The result of some round trips: their median, None if a message did not arrive; losses, NACKs and repairs are
    means per round trip. `best_ms` is the shortest round trip."""

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
    """Return the result of several consecutive round trips."""
    whole = [each for each in ms if each is not None]
    rounds = max(1, len(ms))
    middle = median(whole) if len(whole) == len(ms) else None
    return Trip(trial, middle, lost / rounds, nacks / rounds, repairs / rounds, min(whole, default=None))


def packets(size: int) -> int:
    """Return how many packets a message has."""
    return -(-(size + ENVELOPE) // PAYLOAD)


def pacing_ms(trial: Setup, rate: float) -> float:
    """Return the milliseconds from the first packet of a message to its last, at a rate in Kbit/s."""
    return (trial.packets - 1) * 8 * DATAGRAM / rate
