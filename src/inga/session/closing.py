"""The end of a view, as each of its members goes through it.

A member that is told to close its view says what it has sent and what it has of the members that are gone, fetches
what it lacks of those from whoever has it, and says when everything that belongs to the view is here.
"""

from typing import NamedTuple, Self

from inga.model.compiled import mypyc_attr
from inga.model.errors import WireError
from inga.model.view import View
from inga.session.description import People, change_key
from inga.session.questions import Questions
from inga.stack.hooks import SPREAD_MAX, Holdings, MessageCounts
from inga.stack.layer import Layer
from inga.stack.stack import Stack
from inga.wire.told import Told

LENT_MAX = 64
"""Packets that are sent for one that is gone, for one request; and runs of numbers in it that are looked at."""


class Cut(NamedTuple):
    """What has to be here before the next view."""

    round: int  # 0: not everybody has sent everything; more: somebody had to say more, to answer what was under way
    sent: list[int]  # packets of the order that each member has sent to us
    counts: list[int]  # packets that carry them
    most: list[int]  # packets of the order that each member has sent at all
    dealt: dict[int, Holdings]  # of each member that is gone, what we lack, and who has it
    whole: list[int]  # messages that each member has sent to everybody
    missed: dict[
        int, list[list[int]]
    ]  # by member that was too slow: messages that each member has sent to it
    lack: People  # who lacks a state in the next view, and who gives one: see `transfer`
    give: People
    # Of each member that is gone, the highest number that anybody has released; empty: not known yet, or not asked for.
    released: list[int]
    secret: str = ""  # of the next view, in a secured group

    @classmethod
    def read(cls, told: Told, n: int) -> Self:
        """The cut in a leader's words, for a view of `n` members."""
        released = told.numbers("released")
        if len(released) not in (0, n):
            raise WireError("malformed", "what was released of others than the members")
        dealt, missed = told.tables("dealt", 3), told.tables("missed", n)
        for rows in dealt.values():
            _check_dealt(rows, n)
        if any(len(rows) != 1 for rows in missed.values()):
            raise WireError("malformed", "not one row of what one missed")
        return cls(
            told.number("round"),
            told.numbers("sent", n),
            told.numbers("counts", n),
            told.numbers("most", n),
            dealt,
            told.numbers("whole", n),
            missed,
            told.people("lack"),
            told.people("give"),
            released,
            told.text("secret", ""),
        )


def key_of(told: Told) -> dict[str, int]:
    """The fields by which members tell one change from others."""
    return {"number": told.number("number"), "attempt": told.number("attempt")}


@mypyc_attr(allow_interpreted_subclasses=True)
class ClosingView:
    """What a member knows of the end of its view, and does for it."""

    def __init__(
        self,
        stack: Stack,
        questions: Questions,
        leader: int,
        view: View,
        layers: list[Layer],
        gone: set[int],
        states: dict[str, str],
    ) -> None:
        """`view` comes next, with these `layers`; `gone` are members of the view in force that are not in it. `states`: what
        we say of those that we give and lack."""
        self._stack = stack
        self._questions = questions
        self.leader = leader
        self.view = view
        self.key = change_key(view)
        self.layers = layers
        self.gone = gone
        self._states = states
        self._sent: list[int] | None = None  # what we have sent, once all of it has left
        self.cut: Cut | None = None
        self._is_lent = False  # all that any member has of those that are gone has come
        self._forgone = False  # what waits for something that nobody has was let go
        self._conforms = False  # of those that are gone, we have released what any member has
        self.reached = False  # everything is here
        self.installing = False

    @property
    def rank(self) -> tuple[int, int]:
        """Which of two changes ends the other: a member that leads after another has outlived it, however many
        attempts that one made."""
        return self.leader, self.view.attempt

    def hear_cut(self, cut: Cut) -> None:
        """The leader says what has to be here."""
        if self.cut is not None and self.cut.round >= cut.round:
            return
        if not cut.dealt.keys() | cut.missed.keys() <= self.gone:
            raise WireError("malformed", "packets are dealt of one that is not gone, or it missed some")
        self.cut, self.reached = cut, False

    def work(self) -> None:
        """Say to the leader what it has to know by now."""
        stack, cut = self._stack, self.cut
        if self._sent is None and not stack.chain.waiting:
            self._sent = stack.chain.order.sent()
        if cut is None or not cut.round:
            self._report()
        if cut is not None and (self.reached or self._has_reached(cut)):
            self.reached = True
            released, holds = self._released()
            told = {"round": cut.round, "count": self._count(), "released": released, "holds": holds}
            self._questions.ask({self.leader}, "reached", **self.key, **told)

    def _report(self) -> None:
        """Say what we have of the members that are gone; and what we have sent, once all of it has left. It may have to
        wait for what others get from us."""
        n, lender, round_ = len(self._stack.view), self._stack.chain.lender, int(self._sent is not None)
        if not self._questions.is_first(self.leader, "flushed", self.view.attempt, round_):
            return
        report = {
            "round": round_,
            "sent": self._sent or [0] * n,
            "count": self._count(),
            "seen": [self._seen(m) if m in self.gone else 0 for m in range(n)],
            **self._tally()._asdict(),
            "held": {str(m): [] if lender is None else lender.holdings(m) for m in sorted(self.gone)},
            **self._states,
        }
        self._questions.tell(self.leader, "flushed", **self.key, **report)

    def _tally(self) -> MessageCounts:
        tally, n = self._stack.chain.hook("tally"), len(self._stack.view)
        found: MessageCounts = MessageCounts([0] * n, 0, [0] * n) if tally is None else tally()
        return found

    def _count(self) -> int:
        lender = self._stack.chain.lender
        count: int = 0 if lender is None else lender.count()
        return count

    def _seen(self, member: int) -> int:
        """The highest number of a member's that any layer has seen: a bound for all that will be delivered of it."""
        return max([seen(member) for seen in self._stack.chain.hooks("seen")], default=0)

    def _released(self) -> tuple[list[int], bool]:
        """The highest number of each member that is gone that was released here; whether we hold more of them."""
        chain, n = self._stack.chain, len(self._stack.view)
        released = chain.hook("released")
        if released is None:
            return [0] * n, False
        return [released(m) if m in self.gone else 0 for m in range(n)], chain.hook("holds")()

    def _has_reached(self, cut: Cut) -> bool:
        """Whether everything is here; what is not, we ask for."""
        chain = self._stack.chain
        lender = chain.lender
        if lender is not None:
            if not self._has_borrowed(cut):
                return False
            if not self._is_lent:
                self._is_lent = True
                for gone in sorted(cut.dealt):
                    lender.bereft(gone)
        if not cut.round:
            return False  # somebody has not sent everything yet
        if lender is not None and not lender.come(cut.counts):
            return False
        # If somebody else is gone meanwhile, its packets are not dealt yet: what waits for them waits for another attempt.
        if cut.dealt and not self._forgone and self._stack.left <= self.gone:
            self._forgone = True
            for forgo in chain.hooks("forgo"):
                forgo()
        if cut.released and not self._conforms:
            self._conforms = True
            for conform in chain.hooks("conform"):
                conform(cut.released)
        # What came last may have made us say more, as a relay does: that is counted once it has left, and no window keeps it.
        has: bool = chain.order.has(cut.sent) and not chain.waiting
        return has

    def _has_borrowed(self, cut: Cut) -> bool:
        """Whether all that was dealt to us has come; members that have the rest are asked for it."""
        has_all = True
        for gone, dealt in cut.dealt.items():
            for holder, runs in self._stack.chain.lender.lacking(gone, dealt).items():
                has_all = False
                here = {holder} & {*self._stack.peers}
                self._questions.ask(here, "want", src=gone, runs=[list(run) for run in runs])
        return has_all


def lend(stack: Stack, src: int, told: Told) -> None:
    """A member wants packets that we have, of one that is gone: send them as they came, marked as lent."""
    lender, gone = stack.chain.lender, told.number("src")
    runs = tuple(told.pairs("runs")[:LENT_MAX])  # each has a packet that we said we have, or more
    if lender is None or gone not in stack.left:
        return
    batch = [packet.lent_to(src) for packet in lender.lend(gone, runs, src)[:LENT_MAX]]
    for packet in batch:
        for restore in stack.chain.hooks("restore"):
            restore(packet)
    if batch:
        stack.counts["lent"] += len(batch)
        stack.emit(batch)


def _check_dealt(rows: Holdings, n: int) -> None:
    """What is dealt of one that is gone to one of `n` members: no holder lends more than it can have."""
    lent = [0] * n
    for holder, low, high in rows:
        if holder >= n or not 0 < low < high or high - low > SPREAD_MAX - lent[holder]:
            raise WireError("malformed", "packets are dealt that nobody can have")
        lent[holder] += high - low
