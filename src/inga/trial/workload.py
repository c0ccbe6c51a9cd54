"""The messages that members send in a trial: when, to which members, and which of them are answers.

A share of the sends answer a message that was just taken, or there would be few causal relations to test. The same
plan serves the simulator, which keeps its times, and live members, which keep them on request and otherwise send without pause.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from inga.model.errors import UsageError
from inga.stack.stack import Rng

HEADER = 4
"""Bytes at the beginning of each message of a trial: its number, by which the oracle knows it."""

RATE = 100.0
"""Sends per second and member, by default."""

ANSWERS = 0.3
"""The share of sends that answer a message just taken."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The options of `inga sim` and `inga live` that determine which messages are sent."""

    members: int
    messages: int  # per member
    size: int = 64  # bytes each
    rate: float = RATE  # sends per second and member, where times are kept
    subset: int | None = None  # each message goes to so many others

    def __post_init__(self) -> None:
        if self.members < 1:
            raise UsageError(f"a group of {self.members} members")
        if self.messages < 0:
            raise UsageError(f"{self.messages} messages per member")
        if self.size < HEADER:
            raise UsageError(f"messages of a trial carry a number, so --size is at least {HEADER}")
        if self.rate <= 0:
            raise UsageError(f"the rate is a number of messages a second above 0, not {self.rate:g}")
        if self.subset is not None and not 1 <= self.subset < self.members:
            raise UsageError(f"--subset {self.subset}: there are {self.members - 1} others to choose from")

    @property
    def longest_gap(self) -> float:
        """A bound in seconds of the gap between two sends of a member; less than one gap in 10^8 is longer."""
        return 20.0 / self.rate

    def destinations(self, rng: Rng, me: int) -> int | None:
        """The destinations of one message as a bit set, or None for all other members."""
        if self.subset is None:
            return None
        others = [m for m in range(self.members) if m != me]
        chosen = 0
        for _ in range(self.subset):
            chosen |= 1 << others.pop(int(rng.random() * len(others)))
        return chosen

    def payload(self, number: int) -> bytes:
        """The body of message `number`, of the size wanted."""
        return number.to_bytes(HEADER, "big").ljust(self.size, b".")

    def plan(self, rng: Rng) -> Iterator[tuple[float, bool]]:
        """Yield for each send of one member the gap before it in seconds, and whether it is an answer."""
        for _ in range(self.messages):
            # Exponential gaps, from rng.random() alone, so that they are the same everywhere.
            yield exponential(rng) / self.rate, rng.random() < ANSWERS


def number_of(payload: bytes | bytearray | memoryview) -> int:
    """The number of the message with this body."""
    return int.from_bytes(payload[:HEADER], "big")


def exponential(rng: Rng) -> float:
    """A random number from the exponential distribution of mean 1, like the time between independent events."""
    from math import log

    return -log(1.0 - rng.random())
