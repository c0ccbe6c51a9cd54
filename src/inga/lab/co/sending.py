"""When a member that has nothing to send confirms what it has received: by the paper's rule, by ours, and at every receipt.

    each receipt       every message is confirmed at once, which the paper warns of
    printed            when a message of every other member has arrived since the member last sent something, or some time after it did
    ours               some time after it accepted something, unless data has confirmed it by then; at once after half a window of one sender

The paper's rule is about all messages, with or without data; here data leaves when the application has some, and the rules decide on
confirmations. Everything else is the protocol itself.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from inga.lab.co.played import PlayedFigures, PlayedGroup, R, Task
from inga.lab.experiments import Table
from inga.layers.co.machine import CONFIRM, CoMachine
from inga.layers.machine import ALL

SENT = 6
"""Messages of each member that sends."""
APART = {"one talks": 8 * R, "all talk": R / 2}
"""Seconds between two messages of a member: enough for everything that a message causes; so few that confirmations can always be
piggybacked on data."""
CONFIRM_DELAY = R


class ConfirmsAtOnce(CoMachine):
    """Confirms whenever something arrives that it has not confirmed."""

    def confirm_now(self) -> None:
        if self.dirty:
            self._confirm(None)
            self.stages()


class ConfirmsAll(CoMachine):
    """Confirms when it has received from all others since it last sent, or some time after it did."""

    def confirm_now(self) -> None:
        if self.dirty and all(self.accepted_since.get(other) for other in self.others):
            self._confirm(None)
            self.stages()

    def stages(self) -> None:
        super().stages()
        if self.dirty:
            self._alarms.set((CONFIRM, ALL), max(self.now, self._spoke_at + self.settings.confirm_delay))

    def _on_confirm(self, _: int) -> None:
        if self.dirty:
            self._confirm(None)


RULES: dict[str, type[CoMachine]] = {
    "each receipt": ConfirmsAtOnce,
    "printed": ConfirmsAll,
    "ours": CoMachine,
}


class TalkingGroup(PlayedGroup):
    """The first `talkers` members send, each with its own phase; the others only receive."""

    def __init__(self, members: int, talkers: int, apart: float, **protocol: Any) -> None:
        super().__init__(members, confirm_delay=CONFIRM_DELAY, **protocol)
        self._due = [
            [apart * (k + member / members) for k in range(SENT)] if member < talkers else []
            for member in range(members)
        ]
        for member, times in enumerate(self._due):
            for at in times:
                self.at(at, self.turn, member)

    def wants_to_send(self, member: int) -> bool:
        if self._due[member] and self._due[member][0] <= self.now:
            del self._due[member][0]
            return True
        return False


def simulate_sending(task: Task) -> PlayedFigures:
    """Measure packets per message, data and confirmations, and the mean time until others have acknowledged it, in units of R."""
    talkers = 1 if task.delays == "one talks" else task.members
    group = TalkingGroup(task.members, talkers, APART[task.delays], machine=RULES[task.rule])
    group.run()
    sent: dict[tuple[int | None, int | None], int] = {
        (row.src, row.seq): row.time
        for trace in group.traces
        for row in trace.rows
        if row.step == "accept" and row.src == trace.process
    }
    late = [
        (row.time - sent[row.src, row.seq]) / 1e9 / R
        for trace in group.traces
        for row in trace.rows
        if row.step == "acknowledge" and row.src != trace.process
    ]
    messages = SENT * talkers
    assert len(late) == messages * (task.members - 1)
    return {"packets": sum(group.pdus.values()) / messages, "delay": fmean(late)}


def sending_tasks(sizes: Sequence[int]) -> list[Task]:
    return [Task("sending", n, delays=load, rule=rule) for load in APART for rule in RULES for n in sizes]


def sending_table(found: dict[Task, PlayedFigures]) -> Table:
    rows = [
        [task.delays, task.rule, task.members, round(each["packets"], 2), round(each["delay"], 2)]
        for task, each in found.items()
        if task.what == "sending"
    ]
    return Table(["load", "rule", "n", "packets", "delay_R"], rows)
