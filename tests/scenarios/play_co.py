"""Plays scenarios of CO: members without timers, every copy in the hands of the script.

    group 3                        new members; `gate=off` leaves out the rule that acceptance waits for what precedes
    send 1 a                       prints the message's fields
    rx 2 a b                       copies arrive, one after the other; prints what is accepted, asked for, confirmed ...
    ret 2                          the last request arrives at member 2
    show 1 2 3                     what members know, once if it is the same at all of them
    order p q                      whether p precedes q, by their vectors
    insert q p r                   places messages in a log that keeps causal order, one after the other

Members are numbered from 1 as in the paper. What members send reaches nobody but by `rx` and `ret`.
"""

from random import Random
from typing import Any

from inga.lab.co.printed import PrintedCo
from inga.layers.co.layer import Co
from inga.layers.co.machine import CoMachine
from inga.layers.co.ordering import insert_causally, precedes
from inga.layers.co.parts import CoMessage
from inga.model.packet import DATA, Packet
from inga.model.view import View
from inga.stack.stack import Stack, joined
from inga.trace.memory import MemoryTrace
from inga.wire.co import unpack
from inga.wire.packet import decode

from ..stack.harness import NAMES, Top
from .script import Script, answer, numbers

STEPS = {"accept": "accepts", "confirm": "confirms", "acknowledge": "acknowledges"}


class Observed(PrintedCo):
    """Remembers in which order messages were confirmed; the log has them in causal order."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.inserted: list[CoMessage] = []

    def _confirmed(self, message: CoMessage, *rest: Any) -> None:
        self.inserted.append(message)
        super()._confirmed(message, *rest)


class WithoutGate(Observed):
    """A message is accepted as soon as it is the next of its sender."""

    def _is_acceptable(self, claims: object) -> bool:
        return True


class CoScript(Script):
    """Members that do what a scenario says. Messages have names."""

    def do_group(self, words: list[str]) -> list[str]:
        n, machine = int(words[0]), WithoutGate if "gate=off" in words else Observed
        options: dict[str, Any] = {"machine": machine, "nack_delay": 0, "confirm_every": 0, "window": 8}
        self._rows: list[Any] = []
        self._stacks = [
            Stack(
                [Top(), Co(**options)],
                me,
                View.of(*NAMES[:n]),
                rng=Random(0),
                trace=MemoryTrace(me, n, rows=self._rows),
            )
            for me in range(n)
        ]
        self._names: dict[tuple[int, int], str] = {}
        self._messages: dict[str, CoMessage] = {}
        self._data: dict[str, bytes] = {}
        self._request = b""
        self._told = 0  # rows so far
        return []

    def do_send(self, words: list[str]) -> list[str]:
        member, name = int(words[0]), words[1]
        machine = self._machine(member)
        seq = machine.expected[member - 1]
        self._names[member - 1, seq] = name
        self._stacks[member - 1].send(b"\0" + name.encode(), now=0.0)
        message = self._messages[name] = machine.unreleased[seq]
        fields = f"{name}: SEQ {seq} ACK {numbers(count + 1 for count in message.deps)}"
        return [fields, *self._said(member, name)]

    def do_rx(self, words: list[str]) -> list[str]:
        member, *names = words
        return [line for name in names for line in self._receive(int(member), self._data[name])]

    def do_ret(self, words: list[str]) -> list[str]:
        return self._receive(int(words[0]), self._request)

    def do_show(self, words: list[str]) -> list[str]:
        states = [self._state(int(member)) for member in words]
        if all(state == states[0] for state in states):
            return states[0]
        return [f"{at}: {line}" for at, state in zip(words, states, strict=True) for line in state]

    def do_order(self, words: list[str]) -> list[str]:
        one, other = (self._messages[name] for name in words)
        return [answer(precedes(one, other))]

    def do_insert(self, words: list[str]) -> list[str]:
        log: list[CoMessage] = []
        lines = []
        for name in words:
            try:
                insert_causally(log, self._messages[name])
                lines.append(self._named(log))
            except AssertionError:
                lines.append(f"no place for {name}")
        return lines

    def _machine(self, member: int) -> CoMachine:
        layer = self._stacks[member - 1].layers[1]
        assert isinstance(layer, Co)
        return layer.machine

    def _receive(self, member: int, data: bytes) -> list[str]:
        self._stacks[member - 1].receive([(data, None)], now=0.0)
        return self._said(member)

    def _said(self, member: int, name: str = "") -> list[str]:
        """What a member has done by now, and what it sends; its own messages it accepts as it sends them."""
        fresh, self._told = self._rows[self._told :], len(self._rows)
        lines = [
            f"{member} {STEPS[row.step]} {self._names[row.src, row.seq]}"
            for row in fresh
            if row.step in STEPS and (row.step != "accept" or row.src != member - 1)
        ]
        for to, datagram in self._stacks[member - 1].ready().send:
            data = joined(datagram)
            packet = decode(data, self._stacks[0].group, {1: len(self._stacks)}, len(self._stacks))
            assert packet is not None
            if packet.kind != DATA:
                self._request = data
                lines += self._asked(member, to, packet)
            elif to is None:
                self._data[name] = data
            else:
                lines.append(f"{member} sends {self._names[packet.src, packet.seq]} to {to + 1} again")
        return lines

    def _asked(self, member: int, to: int | None, packet: Packet) -> list[str]:
        assert to is not None
        said = unpack(packet.ext or b"", packet.src, len(self._stacks))
        ack = numbers(said.expected or ())
        return [f"{member} RET to {to + 1} lo {lo} hi {hi} ACK {ack}" for lo, hi in said.runs or ()]

    def _state(self, member: int) -> list[str]:
        co = self._machine(member)
        assert isinstance(co, Observed)
        done = [row for row in self._rows if row.step == "acknowledge" and row.process == member - 1]
        early = [f"{src + 1}:{numbers(sorted(kept))}" for src, kept in enumerate(co.early) if kept]
        return [
            f"REQ {numbers(co.expected)}",
            f"AL {' / '.join(map(numbers, co.known_accepted.rows))}",
            f"PAL {' / '.join(map(numbers, co.known_confirmed.rows))}",
            *([f"STASH {' '.join(early)}"] if early else []),
            f"RRL {' / '.join(map(self._named, co.accepted))}",
            f"inserted {self._named(co.inserted)}",
            f"PRL {self._named(co.log)}",
            f"ARL {self._named(done)}",
        ]

    def _named(self, messages: Any) -> str:
        return numbers(self._names[message.src, message.seq] for message in messages)
