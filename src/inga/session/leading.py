"""A view change, as the leader runs it: the first of the members that stay."""

from typing import Any, NamedTuple, Self

from inga.model.compiled import mypyc_attr
from inga.model.errors import WireError
from inga.model.view import View
from inga.session.description import People, change_key, described
from inga.session.questions import PAUSE_MAX, Questions
from inga.stack.hooks import Holdings, MessageCounts
from inga.stack.stack import Stack
from inga.wire.told import Told

LOOKS_WITHIN = 2 * PAUSE_MAX
"""Seconds between two calls of `Leading.work`, at most, unless this process was stopped or the machine is very busy."""


class FlushReport(NamedTuple):
    """The report of a member that has closed its view (`flushed`)."""

    is_all: bool  # it has sent everything
    sent: list[int]  # packets of the order that it has sent to each member
    packets: int  # the packets that carry those
    seen: list[int]  # of each departed member, the highest number of the order that has arrived
    held: dict[int, Holdings]  # of each departed member, the packets that it has
    tally: MessageCounts
    lacks: str  # the kind of state that it lacks, and the kind that it gives: see `transfer`
    gives: str

    @classmethod
    def read(cls, told: Told, n: int) -> Self:
        """Read the report of a member, in a view of `n` members."""
        return cls(
            told.number("round") > 0,
            told.numbers("sent", n),
            told.number("count"),
            told.numbers("seen", n),
            told.tables("held", 3),
            MessageCounts(told.numbers("said", n), told.number("whole"), told.numbers("heard", n)),
            told.text("lacks"),
            told.text("gives"),
        )


@mypyc_attr(allow_interpreted_subclasses=True)
class Leading:
    """One view change, at its leader."""

    def __init__(
        self,
        stack: Stack,
        questions: Questions,
        view: View,
        host: tuple[str, int] | None,
        wants: People,
        slow: set[int],
    ) -> None:
        """`view` comes next. With a `host` nobody installs it: all members ask that leader of another part for admission. `wants`: the
        newcomers, and the kinds of state that they lack. `slow`: the members that were excluded because they held up the others."""
        self._stack = stack
        self._questions = questions
        self.view = view
        self.key = change_key(view)
        self.host = host
        self._wants = wants
        self._gone = set(stack.left)
        self._slow = sorted(slow & stack.left)
        # Of the next view, in a secured group: for its members.
        self._secret = None if stack.guard is None else stack.guard.fresh()
        self.flush = {**described(view), "gone": sorted(self._gone), "slow": self._slow}
        self._reports: dict[int, FlushReport] = {}
        self._dealt: dict[int, dict[int, Holdings]] | None = None
        self._reached: set[int] = set()
        self._round = 0  # 0 until all packets of every member have left
        # Of each departed member, the highest number that any member has released; whether a member holds more of its packets.
        self._released = [0] * len(stack.view)
        self._is_held = False
        self._agreed: list[int] = []  # the numbers released, as all were told them, if a member holds more
        self._waited = 0.0  # seconds for which we have waited for answers while this process ran
        self._looked = stack.now

    def work(self) -> set[int]:
        """Ask the members whose answers are missing, and return them; none are missing when all have reached the cut."""
        everybody = {self._stack.me, *self._stack.peers}
        # The time for which this process was stopped does not count: it asked nobody meanwhile.
        self._waited += min(self._stack.now - self._looked, LOOKS_WITHIN)
        self._looked = self._stack.now
        if missing := everybody - self._reports.keys():
            self._questions.ask(missing, "flush", **self.flush)
            return missing
        if everybody <= self._reached and self._is_held and not self._agreed:
            self._agreed = self._released
            self._ask_again()
        missing = everybody - self._reached
        if missing and self._dealt is None:
            self._deal()
        if missing and self._dealt is not None:
            if not self._round and all(report.is_all for report in self._reports.values()):
                self._round = 1
            for member in sorted(missing):
                if not self._questions.is_first(member, "cut", self.view.attempt, self._round):
                    continue
                secret = self._secret_for(member)
                if secret is not None:  # else there is no channel to it yet that can carry the secret
                    cut = self._cut_for(member, self._dealt)
                    self._questions.tell(member, "cut", **self.key, **cut, secret=secret)
        return missing

    def out_of_reach(self, patience: float) -> set[int]:
        """Return the members that have not answered for `patience` seconds: they do not hear us, or we do not hear them, although others may."""
        stack = self._stack
        if self._waited < patience:
            return set()
        silent = {member for member in stack.peers if stack.now - stack.heard[member] >= patience}
        return {*stack.peers} - self._reports.keys() | (silent - self._reached)

    def on_flushed(self, src: int, report: FlushReport) -> None:
        """A member has closed its view, or all its packets have left by now."""
        if report.held.keys() != self._gone:
            return
        before = self._reports.get(src)
        if before is None:
            self._reports[src] = report
        elif report.is_all and not before.is_all:  # what it has was dealt from its first report
            self._reports[src] = before._replace(is_all=True, sent=report.sent, packets=report.packets)

    def on_reached(self, src: int, count: int, round_: int, released: list[int], *, holds: bool) -> None:
        """A member has all packets of the view. It has sent `count` packets in it, has released the packets of departed members up
        to `released`, and may hold more of them that wait for packets which nobody has."""
        if round_ != self._round or src not in self._reports:
            return
        if self._reports[src].packets < count:
            # It had to send more meanwhile, in answer to which others may send more.
            self._reports[src] = self._reports[src]._replace(packets=count)
            self._ask_again()
        else:
            self._reached.add(src)
            self._released = list(map(max, self._released, released))
            self._is_held = self._is_held or holds

    def _ask_again(self) -> None:
        self._round += 1
        self._reached.clear()
        self._questions.renew()

    def _deal(self) -> None:
        """Find out, for each departed member, who lacks which packets and who has them. If the reports are impossible, all members are
        asked again."""
        lender, reports = self._stack.chain.lender, self._reports
        try:
            self._dealt = {
                gone: lender.deal({member: report.held[gone] for member, report in reports.items()})
                for gone in sorted(self._gone if lender is not None else ())
            }
        except WireError as error:
            self._stack.reject(error.reason)
            reports.clear()

    def _cut_for(self, member: int, dealt: dict[int, dict[int, Holdings]]) -> dict[str, Any]:
        n, reports = len(self._stack.view), self._reports
        return {
            "round": self._round,
            "sent": [reports[k].sent[member] if k in reports else 0 for k in range(n)],
            "counts": [reports[k].packets if k in reports else 0 for k in range(n)],
            "most": [
                max(reports[k].sent if k in reports else [r.seen[k] for r in reports.values()])
                for k in range(n)
            ],
            "dealt": {str(gone): rows[member] for gone, rows in dealt.items()},
            "whole": [self._said_by(k, None) for k in range(n)],
            "missed": {str(slow): [[self._said_by(k, slow) for k in range(n)]] for slow in self._slow},
            "released": self._agreed,
            **self._states(),
        }

    def _secret_for(self, member: int) -> str | None:
        guard = self._stack.guard
        if guard is None or self._secret is None:
            return ""
        return guard.wrap(self._stack.view.names[member], self._secret)

    def _said_by(self, member: int, to: int | None) -> int:
        """How many messages a member has sent to another, or to all; for a departed member, the most that were delivered at any member."""
        if member not in self._reports:
            return max(report.tally.heard[member] for report in self._reports.values())
        tally = self._reports[member].tally
        return tally.whole if to is None else tally.said[to]

    def _states(self) -> dict[str, list[list[Any]]]:
        """Return who lacks a state in the next view, and who can give one; newcomers come last, as in the view."""
        members = self._stack.view.members
        people = [(members[member].identity, self._reports[member]) for member in sorted(self._reports)]
        lack = [[*who, report.lacks] for who, report in people] + [list(each) for each in self._wants]
        give = [[*who, report.gives] for who, report in people]
        return {"lack": [each for each in lack if each[2]], "give": [each for each in give if each[2]]}
