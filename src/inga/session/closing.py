"""The end of a view, as each of its members carries it out.

A member that is asked to close its view reports what it has sent and which packets of departed members it has, fetches
the ones it lacks from the members that have them, and reports when all packets of the view have arrived.
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
"""The most packets of a departed member that one request can fetch, and the most runs of sequence numbers in it that are read."""


class Cut(NamedTuple):
    """The packets that a member must have before the next view."""

    # 0: packets of some members have not left yet; above 1: a member had to send more, in answer to a call in progress.
    round: int
    sent: list[int]  # packets of the order that each member has sent to us
    counts: list[int]  # the packets that carry those
    most: list[int]  # packets of the order that each member has sent in all
    dealt: dict[int, Holdings]  # of each departed member, the packets that we lack, and who has them
    whole: list[int]  # messages that each member has sent to all
    missed: dict[
        int, list[list[int]]
    ]  # for each member that was too slow: messages that each member has sent to it
    lack: People  # who lacks a state in the next view, and who can give one: see `transfer`
    give: People
    # Of each departed member, the highest number that any member has released; empty: not known yet, or not needed.
    released: list[int]
    secret: str = ""  # of the next view, in a secured group

    @classmethod
    def read(cls, told: Told, n: int) -> Self:
        """Read the cut that a leader has announced, for a view of `n` members."""
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
    """Return the fields by which members tell one change from others."""
    return {"number": told.number("number"), "attempt": told.number("attempt")}


@mypyc_attr(allow_interpreted_subclasses=True)
class ClosingView:
    """One view change, at a member that takes part in it."""

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
        """`view` comes next, with these `layers`; `gone` are members of the view in force that are not in it. `states`: the kinds of state
        that we can give, and lack."""
        self._stack = stack
        self._questions = questions
        self.leader = leader
        self.view = view
        self.key = change_key(view)
        self.layers = layers
        self.gone = gone
        self._states = states
        self._sent: list[int] | None = None  # how much we have sent, once all of it has left
        self.cut: Cut | None = None
        self._is_lent = False  # all packets of departed members that any member has have arrived
        self._forgone = False  # the layers were told to go on without packets that no survivor has
        # The layers were told to release as much of departed members as any member has.
        self._conforms = False
        self.reached = False  # all packets of the cut have arrived
        self.installing = False

    @property
    def rank(self) -> tuple[int, int]:
        """The change of higher rank ends the other: a member that leads after another one has outlived it, however many
        attempts that one made."""
        return self.leader, self.view.attempt

    def hear_cut(self, cut: Cut) -> None:
        """The leader has announced the cut: the packets each member must have before the next view."""
        if self.cut is not None and self.cut.round >= cut.round:
            return
        if not cut.dealt.keys() | cut.missed.keys() <= self.gone:
            raise WireError("malformed", "packets are dealt of one that is not gone, or it missed some")
        self.cut, self.reached = cut, False

    def work(self) -> None:
        """Report our progress to the leader."""
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
        """Report what we have of departed members, and how much we have sent, once all of it has left. That may have to wait
        until other members have got packets of departed members from us, so the first report does not wait for it."""
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
        """Return the highest number of a member that any layer here has seen; the highest of all members bounds what will be delivered of it."""
        return max([seen(member) for seen in self._stack.chain.hooks("seen")], default=0)

    def _released(self) -> tuple[list[int], bool]:
        """Return the highest number of each departed member that was released here, and whether we hold more of their packets."""
        chain, n = self._stack.chain, len(self._stack.view)
        released = chain.hook("released")
        if released is None:
            return [0] * n, False
        return [released(m) if m in self.gone else 0 for m in range(n)], chain.hook("holds")()

    def _has_reached(self, cut: Cut) -> bool:
        """Whether all packets of the cut have arrived; ask for the missing ones of departed members."""
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
            return False  # packets of some members have not left yet
        if lender is not None and not lender.come(cut.counts):
            return False
        # If another member is gone meanwhile, its packets are not dealt yet: packets that wait for them wait for the next attempt.
        if cut.dealt and not self._forgone and self._stack.left <= self.gone:
            self._forgone = True
            for forgo in chain.hooks("forgo"):
                forgo()
        if cut.released and not self._conforms:
            self._conforms = True
            for conform in chain.hooks("conform"):
                conform(cut.released)
        # The last packets may have made us send more, as a relay does: those are counted once they have left, and no window holds them.
        has: bool = chain.order.has(cut.sent) and not chain.waiting
        return has

    def _has_borrowed(self, cut: Cut) -> bool:
        """Whether all packets dealt to us have arrived; ask the members that have the rest for it."""
        has_all = True
        for gone, dealt in cut.dealt.items():
            for holder, runs in self._stack.chain.lender.lacking(gone, dealt).items():
                has_all = False
                here = {holder} & {*self._stack.peers}
                self._questions.ask(here, "want", src=gone, runs=[list(run) for run in runs])
        return has_all


def lend(stack: Stack, src: int, told: Told) -> None:
    """Send a member packets of a departed member that we have: unchanged, and marked as lent."""
    lender, gone = stack.chain.lender, told.number("src")
    runs = tuple(told.pairs("runs")[:LENT_MAX])  # each run has at least one packet that we reported to have
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
    """Validate what is dealt of a departed member to one of `n` members: no holder lends more than it can have."""
    lent = [0] * n
    for holder, low, high in rows:
        if holder >= n or not 0 < low < high or high - low > SPREAD_MAX - lent[holder]:
            raise WireError("malformed", "packets are dealt that nobody can have")
        lent[holder] += high - low
