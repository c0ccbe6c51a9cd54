"""The judge: explicit sets of known messages, never stamps.

It is told what each application sent and took, in the order in which that site did it. From this
alone follows what caused what: whatever a site had sent or taken, with all its causes, when it sent.
Sets are bit sets in plain integers, one bit a message.

    integrity  each message is taken where it was addressed, once, and only if it was sent
    complete   each message is taken everywhere it was addressed
    fifo       messages of one sender are taken in the order they were sent
    causal     no message is taken before one that caused it and is addressed here

A late message counts where it is taken, once, so causal contains fifo.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

GUARANTEES = ("integrity", "complete", "fifo", "causal")
WITNESSES_MAX = 20
"""Violations described in words; all are counted."""


class Oracle:
    """Watches one run of `members` sites."""

    def __init__(self, members: int) -> None:
        self.members = members
        self.violations: Counter[str] = Counter()
        self.witnesses: list[str] = []
        self.sent = 0
        self.taken = 0
        self.expected = 0
        self.related = 0  # pairs of which one caused the other
        self._sender: dict[int, int] = {}
        self._causes: dict[int, int] = {}  # of each message, all that caused it
        self._known = [0] * members  # sent or taken at the site, and all that caused that
        self._addressed = [0] * members  # messages the site should take
        self._taken = [0] * members
        self._needed = [0] * members  # what caused anything taken at the site
        self._own = [0] * members  # sent by the site

    def send(self, site: int, message: int, dst: int | None = None) -> None:
        """`site` sent a new message, to all others or to those in the bit set."""
        bit = 1 << message
        assert message not in self._sender, f"message {message} sent twice"
        self.sent += 1
        self._sender[message] = site
        self._causes[message] = self._known[site]
        self.related += self._known[site].bit_count()
        self._known[site] |= bit
        self._own[site] |= bit
        for member in range(self.members):
            if member != site if dst is None else dst >> member & 1:
                self._addressed[member] |= bit
                self.expected += 1

    def take(self, site: int, message: int) -> bool:
        """The application at `site` got it. Returns whether it is concurrent with something known."""
        bit = 1 << message
        sender = self._sender.get(message)
        if sender is None:
            self.blame("integrity", f"site {site} took message {message}, which nobody sent")
            return False
        self.taken += 1
        if self._taken[site] & bit:
            self.blame("integrity", f"site {site} took message {message} twice")
            return False
        if not self._addressed[site] & bit:
            self.blame("integrity", f"site {site} took message {message}, which is not for it")
        known, causes = self._known[site], self._causes[message]
        self._judge(site, message, bit, sender)
        self._taken[site] |= bit
        self._needed[site] |= causes
        self._known[site] |= bit | causes
        # What is known only as a cause of something was never seen here.
        seen = known & (self._taken[site] | self._own[site]) & ~bit
        return site != sender and bool(seen & ~causes)

    def finish(self) -> None:
        """Nothing will be taken any more: whatever is missing is lost."""
        for site in range(self.members):
            missing = self._addressed[site] & ~self._taken[site]
            for message in _members(missing):
                self.blame("complete", f"site {site} never took message {message}")

    def count(self, guarantees: Iterable[str]) -> int:
        """Violations of these."""
        return sum(self.violations[name] for name in guarantees)

    def _judge(self, site: int, message: int, bit: int, sender: int) -> None:
        if self._needed[site] & bit:
            effect = next(m for m in _members(self._taken[site]) if self._causes[m] & bit and m != message)
            self.blame("causal", f"site {site} took message {effect} before its cause {message}")
        later = self._taken[site] & self._own[sender] & ~(2 * bit - 1)
        later = later and next((m for m in _members(later) if self._causes[m] & bit), 0)
        if later:
            self.blame("fifo", f"site {site} took {later} before {message} of the same sender")

    def blame(self, guarantee: str, witness: str) -> None:
        self.violations[guarantee] += 1
        if len(self.witnesses) < WITNESSES_MAX:
            self.witnesses.append(f"{guarantee}: {witness}")


def _members(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
