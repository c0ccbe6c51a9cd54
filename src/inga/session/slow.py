"""What is done about a member that holds up the others, according to the option `slow`.

    wait       all members wait for it; notices name it: `pressure`
    expel      it is excluded, and told why
    skip       the same, and it comes back once its application has read what was delivered; then it is told what it missed

    slow       to all: nothing could be sent for `patience` seconds because of these members
    reading    to all, by a member that is named: our application reads, so another member is to blame
    owed       to all, if a member is named that lacks a state: it waits for our application to draw that, so we are to blame

A member that cannot send does not always know why: the member that it waits for may wait for another. So an accused member may
deny it, and only one that does not deny it for a while is excluded, by the member that leads without it.

An application that waits for a state, or for a newcomer that gets its state, counts as reading while the transfer makes progress. If the transfer
stands still, the giver is to blame if its application does not draw what may be requested; otherwise the member that lacks the state.

Rejected: to exclude a member on the word of the one that waits. Windows and confirmations depend on each other, so the waiting member is often
wrong about the culprit, and may be the culprit itself.
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
"""The values of `slow`."""

PATIENCE = 10.0
"""Seconds for which one member may hold up the others."""

AGAIN = 1.0
"""Seconds between two complaints."""

DENY_WITHIN = 2.5
"""Seconds of complaints after which an accused member that does not deny them is excluded: single messages may be lost."""


MISSED_MAX = 64
"""Members that were too slow and are not back, for which we remember what they missed."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Slow:
    """Accuses slow members and has them excluded; part of the session."""

    def __init__(self, session: "Session", policy: str, patience: float) -> None:
        """`patience`: seconds for which a member may hold us up."""
        check_policy(policy)
        self._session = session
        self.policy = policy
        self._patience = patience
        # Since when each member is accused, and when it last was.
        self._accused: dict[int, tuple[float, float]] = {}
        self.expelled: set[int] = set()  # members of the view in force that were excluded for it
        # By the name of a slow member: the number of messages that it missed, by sender.
        self._missed: dict[str, Counter[str]] = {}
        self._read_at = 0.0  # when our application last had nothing to read, or read something
        self._taken = 0  # packets that it had taken by then

    @property
    def why(self) -> str:
        """The reason that an excluded member is given."""
        return f"too slow: the others could not send for {self._patience:g} s because of it"

    def view(self) -> None:
        self._accused.clear()
        self.expelled.clear()

    def be_patient(self) -> None:
        """We were cut off: drop all accusations, since we could not hear the accused deny them."""
        self._accused.clear()

    def turn(self) -> None:
        """Check whether our application reads."""
        stack = self._session.stack
        if not stack.queued or stack.taken_count != self._taken:
            self._taken, self._read_at = stack.taken_count, stack.now

    def complain(self, members: set[int], since: float) -> float:
        """Accuse these members if sending has waited for them for too long; return when to look again."""
        now = self._session.stack.now
        if self.policy == "wait" or self._session.stack.views.is_cut_off:
            return NEVER  # a member that is cut off looks again when it goes on
        if now < since + self._patience:
            return since + self._patience
        members = members - self._session.transfer.undrawn
        if members and self._is_reading:
            self._say("slow", members)
            self._accuse(members)
        return now + AGAIN

    def on_slow(self, src: int, told: Told) -> None:
        """Another member cannot send because of these members."""
        if self.policy != "wait":
            self._hear(set(told.numbers("members")))

    def on_owed(self, src: int, told: Told) -> None:
        """These members lack a state, and wait for the application of the sender."""
        if self.policy != "wait":
            for member in told.numbers("members"):
                self._accused.pop(member, None)
            self._hear({src})

    def count(self, cut: Cut) -> None:
        """A view ends: count its messages as missed by members that were too slow, in it or before."""
        names = self._session.stack.view.names
        self._missed = {name: counts for name, counts in self._missed.items() if name not in names}
        for counts in self._missed.values():
            counts.update(dict(zip(names, cut.whole, strict=True)))
        for member, (row,) in cut.missed.items():
            self._missed[names[member]] = Counter(dict(zip(names, row, strict=True)))
        self._missed = dict(list(self._missed.items())[-MISSED_MAX:])

    def missed_by(self, person: Member) -> dict[str, int]:
        """Return how many messages each sender has sent since the view began in which this returning member was too slow."""
        return {name: count for name, count in self._missed.get(person.name, {}).items() if count}

    def say_missed(self, counts: dict[str, int]) -> None:
        """We come back: tell the application how many messages of each member it missed. `counts` includes those that were delivered here."""
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
        """These members are accused: if we are one of them and not to blame, deny it, and accuse the member that is."""
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
        """Exclude the accused that did not deny it, if we lead without them."""
        stack, session = self._session.stack, self._session
        if stack.views.is_cut_off:
            return
        accused = {
            member: span
            for member, span in self._accused.items()
            if member in stack.peers
            and stack.now - span[1] <= DENY_WITHIN  # otherwise it holds up no member any more
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
