"""Scheme D1 run by the protocol itself: SCO machines under the load of the model.

Nothing is modelled here. Data, confirmations and polls are those of the machines; every one of them is a PDU,
and a destination knows that all have a message when its machine reports it as confirmed.
"""

from typing import Any

from inga.lab.sco.schemes import ROUND, SchemeLoad, Sending
from inga.layers.sco.machine import ScoMachine
from inga.layers.sco.ordering import mask
from inga.layers.sco.parts import Control, Copies, Happened, ScoControlSent, ScoMessage, ScoSettings

NEVER = 1e9


class Protocol(Sending):
    """A group of SCO machines."""

    def __init__(self, load: SchemeLoad) -> None:
        super().__init__(load)
        k = load.delay
        settings = ScoSettings(
            window=1 << 20,
            quota=1 << 20,
            confirm_delay=k,
            confirm_every=0,
            nack_delay=0.0,
            nack_again=2 * ROUND,
            resend_after=NEVER,  # nothing is lost, and confirmations may be owed for long
            poll_after=2 * ROUND + 2 * k,
            probe_after=k,
            noted_max=0,  # as printed: a message does not list messages in flight to others
        )
        self.machines = [ScoMachine(m, load.members, settings) for m in range(load.members)]
        self._sent_at: dict[tuple[int, int], float] = {}
        self._armed: dict[int, float] = {}
        self.controls = 0

    def send(self, member: int, to: list[int]) -> None:
        machine = self.machines[member]
        machine.now = self.now
        machine.request(mask(to), None)
        self._run(machine)

    def _arrive(self, me: int, what: Any) -> None:
        machine = self.machines[me]
        machine.now = self.now
        if isinstance(what, ScoMessage):
            machine.receive(what)
        elif isinstance(what, Control):
            machine.control(what)
        else:
            machine.asked(what)
        self._run(machine)

    def _tick(self, me: int, due: float) -> None:
        if self._armed.get(me) == due:
            del self._armed[me]
            machine = self.machines[me]
            machine.tick(self.now)
            self._run(machine)

    def _run(self, machine: ScoMachine) -> None:
        machine.stages()
        events, machine.events = machine.events, []
        me = machine.me
        for event in events:
            match event:
                case Copies(copies, to):
                    if self.counts:
                        self._sent_at[me, copies[0].seq] = self.now
                    for member, copy in zip(to, copies, strict=True):
                        self.count_pdu(me, member)
                        self.at(self.now + ROUND, self._arrive, member, _as_received(copy))
                case ScoControlSent(to, what):
                    self.count_pdu(me, to)
                    self.controls += self.counts
                    self.at(self.now + ROUND, self._arrive, to, what)
                case Happened("confirmed", message):
                    sent = self._sent_at.get((message.src, message.seq))
                    if sent is not None:
                        self.knowing.append(self.now - sent)
                case _:
                    pass
        wake = machine.wake
        if wake is not None and wake < self._armed.get(me, NEVER):
            self._armed[me] = wake
            self.at(max(wake, self.now), self._tick, me, wake)


def _as_received(copy: ScoMessage) -> ScoMessage:
    return ScoMessage(
        copy.src, copy.dst, copy.seq, copy.lsn, copy.delta, ack=copy.ack, buf=copy.buf, have=copy.have
    )
