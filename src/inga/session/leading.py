"""A change of the view, as the member leads it that is first among those who stay."""

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
"""Seconds between two looks at a change, at most, unless this process was stopped or the machine is very busy."""


class FlushReport(NamedTuple):
    """What a member said when the view was closed for it."""

    is_all: bool  # it has sent everything
    sent: list[int]  # packets of the order, to each member
    packets: int  # that carry them
    seen: list[int]  # of each member that is gone, the highest number of the order that has come
    held: dict[int, Holdings]  # of each member that is gone, what it has
    tally: MessageCounts
    lacks: str  # the kind of state that it lacks, and that it gives: see `transfer`
    gives: str

    @classmethod
    def read(cls, told: Told, n: int) -> Self:
        """The report in a member's words, in a view of `n` members."""
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
    """What a leader knows of the change it leads, and asks for."""

    def __init__(
        self,
        stack: Stack,
        questions: Questions,
        view: View,
        host: tuple[str, int] | None,
        wants: People,
        slow: set[int],
    ) -> None:
        """`view` comes next. With a `host` nobody goes on to it: all ask that leader of another part to be let in. `wants`: the
        newcomers, and what state they lack. `slow`: of those who are gone, members that held up the others."""
        self._stack = stack
        self._questions = questions
        self.view = view
        self.key = change_key(view)
        self.host = host
        self._wants = wants
        self._gone = set(stack.left)
        self._slow = sorted(slow & stack.left)
        # What members are told at the beginning.
        # Of the next view, in a secured group: for those who will be in it.
        self._secret = None if stack.guard is None else stack.guard.fresh()
        self.flush = {**described(view), "gone": sorted(self._gone), "slow": self._slow}
        self._reports: dict[int, FlushReport] = {}
        self._dealt: dict[int, dict[int, Holdings]] | None = None
        self._reached: set[int] = set()
        self._round = 0  # until everybody has sent everything
        # Of each member that is gone, the highest number that anybody has released; whether somebody holds any of them.
        self._released = [0] * len(stack.view)
        self._is_held = False
        self._agreed: list[int] = []  # the same, as everybody was told, since somebody does
        self._waited = 0.0  # seconds in which we were there to ask
        self._looked = stack.now

    def work(self) -> set[int]:
        """Ask the members whose answers are missing, and return them; nobody is missing when all have reached the cut."""
        everybody = {self._stack.me, *self._stack.peers}
        # A process that was stopped for a while has not asked anybody meanwhile.
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
                if secret is not None:  # else it is not known yet how to tell it in private
                    cut = self._cut_for(member, self._dealt)
                    self._questions.tell(member, "cut", **self.key, **cut, secret=secret)
        return missing

    def out_of_reach(self, patience: float) -> set[int]:
        """Members that have not answered for so long: they do not hear us, or we do not hear them, whoever else may."""
        stack = self._stack
        if self._waited < patience:
            return set()
        silent = {member for member in stack.peers if stack.now - stack.heard[member] >= patience}
        return {*stack.peers} - self._reports.keys() | (silent - self._reached)

    def on_flushed(self, src: int, report: FlushReport) -> None:
        """A member has closed its view, or has sent everything by now."""
        if report.held.keys() != self._gone:
            return
        before = self._reports.get(src)
        if before is None:
            self._reports[src] = report
        elif report.is_all and not before.is_all:  # what it has is dealt already
            self._reports[src] = before._replace(is_all=True, sent=report.sent, packets=report.packets)

    def on_reached(self, src: int, count: int, round_: int, released: list[int], *, holds: bool) -> None:
        """A member has everything of the view. It has sent so many packets in it, has released so much of members that are
        gone, and may hold more of them, for want of what nobody has."""
        if round_ != self._round or src not in self._reports:
            return
        if self._reports[src].packets < count:
            # It had to say more meanwhile, which may make others say more.
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
        """Of each member that is gone: who lacks what, and who has it. If what they say of that cannot be, all are asked
        again."""
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
        """Messages of a member to another, or to everybody; of one that is gone, as many as have come anywhere."""
        if member not in self._reports:
            return max(report.tally.heard[member] for report in self._reports.values())
        tally = self._reports[member].tally
        return tally.whole if to is None else tally.said[to]

    def _states(self) -> dict[str, list[list[Any]]]:
        """Who lacks a state in the next view, and who gives one; newcomers come last, as in the view."""
        members = self._stack.view.members
        people = [(members[member].identity, self._reports[member]) for member in sorted(self._reports)]
        lack = [[*who, report.lacks] for who, report in people] + [list(each) for each in self._wants]
        give = [[*who, report.gives] for who, report in people]
        return {"lack": [each for each in lack if each[2]], "give": [each for each in give if each[2]]}
