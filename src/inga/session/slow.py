"""What becomes of a member that holds up the others: what `slow` says.

    wait       everybody waits for it; notices name it: `pressure`
    expel      it is excluded, and told why
    skip       the same, and it comes back once its application has read what it has; then it is told what it missed

    slow       to all: nothing could be sent for so long because of these
    reading    to all, of one that is named: our application reads, so somebody else is to blame
    owed       to all, if one is named that lacks a state: it waits for our application to draw that, so we are to blame

Who cannot send does not always know why: the member that it waits for may wait for another. So whoever is accused may
deny it, and only a member that does not is excluded, if that lasts; by the one who leads without it.

An application that waits for a state, or for one that gets its state, reads as long as that moves. Once it stands still
the one to blame is the one that gives it, if its application does not draw what may be asked for; else who lacks it.

Rejected: to exclude on the word of the one that waits. With windows and confirmations that depend on each other it is often
wrong about the culprit, and it may be the culprit itself.
"""

from collections import Counter
from typing import TYPE_CHECKING

from inga.model.compiled import mypyc_attr
from inga.model.errors import UsageError
from inga.model.event import Missed
from inga.model.view import Member
from inga.session.alarms import NEVER
from inga.session.closing import Cut
from inga.stack.hooks import MessageCounts
from inga.wire.told import Told

if TYPE_CHECKING:
    from inga.session.session import Session

POLICIES = ("wait", "expel", "skip")
"""What `slow` can be."""

PATIENCE = 10.0
"""Seconds for which one member may hold up the others."""

AGAIN = 1.0
"""Seconds between two complaints."""

DENY_WITHIN = 2.5
"""Seconds of complaints after which one that is accused and does not deny it is excluded: some may be lost."""


MISSED_MAX = 64
"""Members that were too slow and are not back, of whom it is known what they missed."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Slow:
    """Complains of slow members and has them excluded; part of the session."""

    def __init__(self, session: "Session", policy: str, patience: float) -> None:
        """`patience`: seconds for which a member may hold us up."""
        check_policy(policy)
        self._session = session
        self.policy = policy
        self._patience = patience
        self._accused: dict[int, tuple[float, float]] = {}  # since when, and when last
        self.expelled: set[int] = set()  # members of the view in force
        self._missed: dict[str, Counter[str]] = {}  # by name of one that was too slow: messages, by sender
        self._read_at = 0.0  # when our application had read everything, or began to read something
        self._taken = 0  # packets that it had begun by then

    @property
    def why(self) -> str:
        """What one is told that was excluded for it."""
        return f"too slow: the others could not send for {self._patience:g} s because of it"

    def view(self) -> None:
        self._accused.clear()
        self.expelled.clear()

    def be_patient(self) -> None:
        """We were cut off: who was accused before could not be heard to deny it."""
        self._accused.clear()

    def turn(self) -> None:
        """See whether our application reads."""
        stack = self._session.stack
        if not stack.queued or stack.taken_count != self._taken:
            self._taken, self._read_at = stack.taken_count, stack.now

    def complain(self, members: set[int], since: float) -> float:
        """Sending has waited for these since then: say so if that is too long, and when to look again."""
        now = self._session.stack.now
        if self.policy == "wait" or self._session.stack.views.is_cut_off:
            return NEVER  # who is cut off looks again once it is not
        if now < since + self._patience:
            return since + self._patience
        members = members - self._session.transfer.undrawn
        if members and self._is_reading:
            self._say("slow", members)
            self._accuse(members)
        return now + AGAIN

    def on_slow(self, src: int, told: Told) -> None:
        """Another member cannot send because of these."""
        if self.policy != "wait":
            self._hear(set(told.numbers("members")))

    def on_owed(self, src: int, told: Told) -> None:
        """These lack a state, and wait for the application of that member."""
        if self.policy != "wait":
            for member in told.numbers("members"):
                self._accused.pop(member, None)
            self._hear({src})

    def count(self, cut: Cut) -> None:
        """A view ends: those who were too slow, in it or before, have missed what was sent in it."""
        names = self._session.stack.view.names
        self._missed = {name: counts for name, counts in self._missed.items() if name not in names}
        for counts in self._missed.values():
            counts.update(dict(zip(names, cut.whole, strict=True)))
        for member, (row,) in cut.missed.items():
            self._missed[names[member]] = Counter(dict(zip(names, row, strict=True)))
        self._missed = dict(list(self._missed.items())[-MISSED_MAX:])

    def missed_by(self, person: Member) -> dict[str, int]:
        """Messages that were sent since the view began in which one was too slow that comes back, by sender."""
        return {name: count for name, count in self._missed.get(person.name, {}).items() if count}

    def say_missed(self, counts: dict[str, int]) -> None:
        """We come back. So many messages there were of each member; some of them we have."""
        stack = self._session.stack
        tally: MessageCounts = stack.chain.hook("tally")()
        heard = dict(zip(stack.view.names, tally.heard, strict=True))
        missed = {
            name: count - heard.get(name, 0) for name, count in counts.items() if name != stack.member.name
        }
        stack.to_deliver.append(Missed({name: count for name, count in missed.items() if count > 0}))

    def on_reading(self, src: int) -> None:
        self._accused.pop(src, None)

    @property
    def _is_reading(self) -> bool:
        self.turn()
        since = max(self._read_at, self._session.transfer.moved_at)
        return self._session.stack.now - since < self._patience / 2

    def _hear(self, members: set[int]) -> None:
        """These are accused: deny it if that is us and we are not to blame, and say who is."""
        stack, transfer = self._session.stack, self._session.transfer
        owed = members & transfer.undrawn
        if owed:
            self._say("owed", owed)
        if stack.me in members or owed:
            unasked = set() if self._is_reading or transfer.undrawn else transfer.unasked
            if unasked:
                self._say("slow", unasked)
            if unasked or self._is_reading:
                self._session.say(None, stack.view.number, "reading", {})
            members = members | unasked
        self._accuse((members - owed) & {*stack.peers})

    def _say(self, do: str, members: set[int]) -> None:
        self._session.say(None, self._session.stack.view.number, do, {"members": sorted(members)})

    def _accuse(self, members: set[int]) -> None:
        now = self._session.stack.now
        for member in members:
            since, last = self._accused.get(member, (now, now))
            self._accused[member] = (now if now - last > DENY_WITHIN else since, now)
        self._conclude()

    def _conclude(self) -> None:
        """Exclude those who did not deny it, if it is for us to begin."""
        stack, session = self._session.stack, self._session
        if stack.views.is_cut_off:
            return
        accused = {
            member: span
            for member, span in self._accused.items()
            if member in stack.peers
            and stack.now - span[1] <= DENY_WITHIN  # else it holds up nobody any more
        }
        slow = {member for member, (since, last) in accused.items() if last - since >= DENY_WITHIN}
        leads = all(member in slow | stack.left for member in range(stack.me))
        if slow and leads and stack.views.follow and session.quorum.is_enough(slow | session.silence.overdue):
            stack.notice("member.slow", f"{stack.view.listed(slow)}: {self.why}")
            self.expelled |= slow
            session.exclude(slow)


def check_policy(policy: str) -> None:
    if policy not in POLICIES:
        raise UsageError(f"slow is {', '.join(POLICIES[:-1])} or {POLICIES[-1]}, not {policy!r}")
