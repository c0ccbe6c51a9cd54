"""Rules of the papers, broken one by one: the worked example that shows the rule then prints something else.

The other way round is `test_scenarios.py`: with the rules as they are, every example prints what it says.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from inga.corba.multicast.remiop import ReMiop
from inga.lab.co.printed import PrintedCo
from inga.layers.co import ordering as co
from inga.layers.co.machine import CoMachine
from inga.layers.co.ordering import CoOrdering
from inga.layers.co.parts import CoMessage
from inga.layers.sco.ordering import ScoOrdering
from inga.layers.sco.parts import ScoMessage
from inga.layers.sco.talking import Talking
from inga.model.invocation import Message
from inga.objects.instance import Instance
from inga.objects.order import Precedence

from .test_scenarios import HERE, PLAYERS

pytestmark = pytest.mark.interpreted

Patch = pytest.MonkeyPatch


def nothing(*_: Any, **__: Any) -> tuple[()]:
    return ()


def does_nothing(owner: Any, name: str) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(owner, name, nothing)


def confirmed_when_accepted(patch: Patch) -> None:
    """Of what others sent, nobody else's word is needed."""
    right = CoOrdering._advance

    def advance(self: CoOrdering) -> None:
        for other in self.others:
            self.known_accepted.lowest[other] = self.expected[other]
        self._raised.update(self.others)
        right(self)

    patch.setattr(CoOrdering, "_advance", advance)


def acknowledged_when_confirmed(patch: Patch) -> None:
    right = CoOrdering._acknowledge

    def acknowledge(self: CoOrdering) -> None:
        self.known_confirmed.lowest[:] = self.known_accepted.lowest
        right(self)

    patch.setattr(CoOrdering, "_acknowledge", acknowledge)


def log_without_order(patch: Patch) -> None:
    patch.setattr(co, "insert_causally", lambda log, message, start=0: log.append(message))


def names_nothing_accepted(patch: Patch) -> None:
    """A message says of others that nothing of them has been accepted."""
    right = CoMachine._send

    def send(self: CoMachine, body: Any, size: int) -> None:
        accepted = {other: self.expected[other] for other in self.others}
        self._risen.clear()
        for other in accepted:
            self.expected[other] = 1
        right(self, body, size)
        for other, number in accepted.items():
            self.expected[other] = number

    patch.setattr(CoMachine, "_send", send)


def confirmed_without_its_vector(patch: Patch) -> None:
    """What a confirmed message names is not taken over."""
    right = CoOrdering._confirmed

    def confirmed(self: CoOrdering, message: CoMessage, start: int) -> None:
        message.claims = []
        right(self, message, start)

    patch.setattr(CoOrdering, "_confirmed", confirmed)


def known_at_once(patch: Patch) -> None:
    """Not as the paper prints it."""
    patch.setattr(PrintedCo, "_have_accepted", CoOrdering._have_accepted)


def only_the_message_itself(patch: Patch) -> None:
    """What precedes an accepted message does not come into the clock."""
    right = ScoOrdering._merge_clock

    def merge(self: ScoOrdering, message: ScoMessage) -> None:
        message.delta = ()
        right(self, message)

    patch.setattr(ScoOrdering, "_merge_clock", merge)


def confirmed_at_once(patch: Patch) -> None:
    """A confirmation does not wait for data to ride on."""
    right = Talking._owe

    def owe(self: Talking, member: int) -> None:
        right(self, member)
        self._to_answer.add(member)

    patch.setattr(Talking, "_owe", owe)


def own_sends_do_not_count(patch: Patch) -> None:
    right = Precedence.send

    def send(self: Precedence, instance: Instance, *given: Any, **rest: Any) -> Message:
        message = right(self, instance, *given, **rest)
        instance.vector[self.place] -= 1
        return message

    patch.setattr(Precedence, "send", send)


class BrokenRule(NamedTuple):
    """A rule that is changed, and the example that shows it."""

    change: Callable[[Patch], None]
    scenario: str


BROKEN = {
    "co: a number beyond the expected one": BrokenRule(does_nothing(CoOrdering, "missing"), "co/v3"),
    "co: what others name": BrokenRule(does_nothing(CoOrdering, "_learn_sent"), "co/v3"),
    "co: what a message names": BrokenRule(names_nothing_accepted, "co/v1-v2"),
    "co: what confirmed messages name": BrokenRule(confirmed_without_its_vector, "co/v1-v2"),
    "co: pre-acknowledgement": BrokenRule(confirmed_when_accepted, "co/v1-v2"),
    "co: acknowledgement": BrokenRule(acknowledged_when_confirmed, "co/v1-v2"),
    "co: insertion that keeps order": BrokenRule(log_without_order, "co/v1-v2"),
    "co: the tables of the examples": BrokenRule(known_at_once, "co/v1-v2"),
    "sco: causality rule": BrokenRule(only_the_message_itself, "sco/v1"),
    "sco: figure 4": BrokenRule(does_nothing(ScoOrdering, "_merge_clock"), "sco/v2-csn"),
    "sco: continuous acceptance": BrokenRule(does_nothing(ScoOrdering, "missing"), "sco/v2-loss"),
    "sco: confirmations are owed": BrokenRule(does_nothing(Talking, "_owe"), "sco/v5"),
    "sco: confirmations ride on data": BrokenRule(does_nothing(Talking, "_forget_debt"), "sco/v5"),
    "sco: confirmations wait for data": BrokenRule(confirmed_at_once, "sco/v5"),
    "obg: the vectors of figure 3": BrokenRule(own_sends_do_not_count, "obg/figure-3"),
    "obg: the vectors of figure 4": BrokenRule(does_nothing(Precedence, "deliver"), "obg/figure-4"),
    "remiop: any member repairs": BrokenRule(does_nothing(ReMiop, "_promise"), "remiop/repair"),
    "remiop: one asks for all": BrokenRule(does_nothing(ReMiop, "_suppress"), "remiop/suppression"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_example_shows_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = BROKEN[name]
    text = (HERE / f"{broken.scenario}.txt").read_text()
    player = PLAYERS[broken.scenario.split("/")[0]]
    assert not player().differs(text)
    broken.change(monkeypatch)
    assert player().differs(text)
