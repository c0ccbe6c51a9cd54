"""Plays scenarios of SCO: machines without a stack, every copy in the hands of the script.

    group 4 mode=csn k=4           new machines; any setting of SCO, mode=wait as printed, and the times k, T_ret, T_rtx, T_poll, T_probe
    send 1 p to 2 4                prints the message's fields
    rx 4 q p                       copies arrive, one after the other; prints what leaves or moves
    ctl 4 from 2 sqn 2 lsn 1       a confirmation arrives; `ack` and four numbers may follow
    ret 1 from 2 lsn 1 2           a request arrives for lsn from 1 up to, and without, 2
    time 5                         the clock of all machines
    show 4                         what waits at a member and what it knows
    order p q                      which precedes which, by csn and by ack

Members are numbered from 1 as in the papers. What machines send reaches nobody but by `rx`, `ctl` and `ret`.
"""

from dataclasses import replace
from math import inf

from inga.layers.sco.machine import ScoMachine
from inga.layers.sco.ordering import mask, precedes
from inga.layers.sco.parts import Control, Copies, Happened, ScoControlSent, ScoMessage, ScoNack, ScoSettings

from ..layers.sco_printed import variant
from ..layers.sco_world import clone
from .script import Script, answer, numbers

TIMES = {
    "k": "confirm_delay",
    "T_ret": "nack_again",
    "T_rtx": "resend_after",
    "T_poll": "poll_after",
    "T_probe": "probe_after",
}
PAPER = ScoSettings(
    confirm_delay=4.0,
    confirm_every=0,
    nack_delay=0.0,
    patience=inf,
    nack_again=1000.0,
    resend_after=1000.0,
    poll_after=1000.0,
    probe_after=1000.0,
    noted_max=0,
)
"""Long waits, so that in a scenario only what is asked for happens; and messages say nothing of others, as printed."""


class ScoScript(Script):
    """Machines that do what a scenario says."""

    def __init__(self, make: type[ScoMachine] = ScoMachine) -> None:
        self._make = make
        self._names: dict[tuple[int, int], str] = {}
        self._copies: dict[tuple[str, int], ScoMessage] = {}
        self._acks: dict[str, list[int]] = {}
        self._stamped: dict[str, ScoMessage] = {}
        self._moves: dict[int, list[str]] = {}
        self.now = 0.0

    def do_group(self, words: list[str]) -> list[str]:
        settings, make = PAPER, self._make
        for word in words[1:]:
            name, value = word.split("=")
            if name == "mode":
                make = variant(make, mode=value)
                continue
            field = TIMES.get(name, name)
            kind = type(getattr(PAPER, field))
            settings = replace(settings, **{field: value == "True" if kind is bool else kind(value)})
        n = int(words[0])
        self.machines = [make(member, n, settings) for member in range(n)]
        self._moves = {member: [] for member in range(n)}
        return []

    def do_send(self, words: list[str]) -> list[str]:
        member, name, _, *to = words
        machine = self.machines[int(member) - 1]
        before = (list(machine.lsn), self._row(machine), list(machine.clock))
        sent = machine.seq
        machine.request(mask(int(m) - 1 for m in to), name)
        self._names[machine.me, sent] = name
        machine.stages()
        if machine.seq == sent:
            return [f"{name} waits"]
        self._acks[name] = before[1]
        fields = " ".join(
            f"{field} {numbers(v)}" for field, v in zip(("lsn", "ack", "csn"), before, strict=True)
        )
        return [f"{name}: sqn {sent} {fields}", *self._said(machine)]

    def do_rx(self, words: list[str]) -> list[str]:
        machine = self.machines[int(words[0]) - 1]
        lines = []
        for name in words[1:]:
            refused = machine.receive(clone(self._copies[name, machine.me]))
            assert refused is None, refused
            machine.stages()
            lines += self._said(machine)
        return lines

    def do_ctl(self, words: list[str]) -> list[str]:
        machine = self.machines[int(words[0]) - 1]
        _, _, src, _, seq, _, lsn, *rest = words
        ack = tuple((j, int(v)) for j, v in enumerate(rest[1:]) if int(v) > 1)
        control = Control(int(src) - 1, int(seq), int(lsn), ack, machine.capacity, poll=False)
        refused = machine.control(control)
        if refused is not None:
            return [f"refused as {refused}"]
        machine.stages()
        return self._said(machine)

    def do_ret(self, words: list[str]) -> list[str]:
        machine = self.machines[int(words[0]) - 1]
        runs = ((int(words[4]), int(words[5])),)
        assert machine.asked(ScoNack(int(words[2]) - 1, runs, (), machine.capacity)) is None
        machine.stages()
        return self._said(machine)

    def do_time(self, words: list[str]) -> list[str]:
        self.now = float(words[0])
        lines = []
        for machine in self.machines:
            machine.tick(self.now)
            lines += self._said(machine)
        return lines

    def do_show(self, words: list[str]) -> list[str]:
        machine = self.machines[int(words[0]) - 1]
        n = len(self.machines)
        queues = [",".join(self._name(m) for m in machine.accepted.get(j, ())) or "-" for j in range(n)]
        early = [f"{j + 1}:{numbers(sorted(kept))}" for j, kept in sorted(machine.early.items()) if kept]
        owed = [j + 1 for j in sorted(machine.owed_since)]
        return [
            f"RRQ {' '.join(queues)}",
            f"moves {numbers(self._moves[machine.me])}",
            *([f"STASH {' '.join(early)}"] if early else []),
            f"COV {numbers(machine.covered)}",
            f"ACC {numbers(owed)}",
        ]

    def do_order(self, words: list[str]) -> list[str]:
        p, q = (self._stamped[name] for name in words)
        by_ack = p.seq < self._acks[words[1]][p.src]
        return [f"csn {answer(precedes(p, q))} ack {answer(by_ack)}"]

    def _said(self, machine: ScoMachine) -> list[str]:
        events, machine.events = machine.events, []
        lines: list[str] = []
        moved = []
        for event in events:
            match event:
                case Copies(copies, to, _, again):
                    for member, copy in zip(to, copies, strict=True):
                        self._copies[self._name(copy), member] = clone(copy)
                    if again:
                        lines.append(f"{machine.me + 1} sends {self._name(copies[0])} to {to[0] + 1} again")
                case Happened("accepted", message):
                    self._stamped[self._name(message)] = message
                case Happened("causal", message):
                    moved.append(self._name(message))
                case ScoControlSent(to, Control() as control):
                    poll = " poll" if control.poll else ""
                    lines.append(
                        f"{machine.me + 1} CTL to {to + 1} sqn {control.seq} lsn {control.lsn}{poll}"
                    )
                case ScoControlSent(to, ScoNack(_, runs)):
                    lines += [f"{machine.me + 1} RET to {to + 1} lo {lo} hi {hi}" for lo, hi in runs]
                case _:
                    pass
        self._moves[machine.me] += moved
        return [*([f"{machine.me + 1} moves {' '.join(moved)}"] if moved else []), *lines]

    def _name(self, message: ScoMessage) -> str:
        return self._names[message.src, message.seq]

    def _row(self, machine: ScoMachine) -> list[int]:
        return [machine.accepted_by(machine.me, j) for j in range(len(self.machines))]
