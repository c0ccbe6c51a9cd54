"""The session as a layer: it takes words apart, tells layers what they have to know, and outlives orders."""

import json
from typing import Any

import pytest

from inga.layers.bundle import Bundle
from inga.layers.fifo import Unordered
from inga.model.packet import Packet
from inga.session.session import Session
from inga.stack.layer import Layer
from inga.stack.stack import joined
from inga.wire.packet import OUTSIDE, encode
from inga.wire.told import said

from ..stack.harness import SESSION, Net
from .test_changes import BAD_VALUES, GARBAGE
from .town import Town


class Shy(Layer):
    """Has to be introduced."""

    name = "shy"
    provides = frozenset({"reliable"})

    def __init__(self) -> None:
        self.known: dict[int, dict[str, int]] = {}

    def introduce(self) -> dict[str, int]:
        return {"first": 100 + self.stack.me}

    def introduced(self, member: int, what: dict[str, int]) -> None:
        self.known[member] = what


def test_layers_learn_what_they_have_to_know_before_the_first_packet() -> None:
    net = Net(3, build=lambda: [Bundle(), Unordered(), Shy(), Session(greet=True)])
    for member in range(3):
        net.turn(member)
    net.quiet()
    for member, stack in enumerate(net.stacks):
        shy = stack.layer("shy")
        assert isinstance(shy, Shy)
        assert shy.known == {other: {"first": 100 + other} for other in range(3) if other != member}
    assert {flight.kind for flight in net.log} == {SESSION}


def test_it_outlives_the_order() -> None:
    town = Town(2)
    before = town.member("alice").layer("session")
    town.use("alice", "fifo")
    town.quiet()
    assert town.member("alice").layer("session") is before is not None
    town.leave("bob")
    town.quiet()
    assert town.member("alice").view.names == ("alice",)
    assert town.member("alice").layer("session") is before


WORDS: dict[str, dict[str, Any]] = {
    "here": {
        "name": "alice",
        "group": "00000000",
        "asks": True,
        "order": "vector",
        "members": [],
        "bases": {},
    },
    "goodbye": {
        "name": "alice",
        "incarnation": 1,
        "group": "00000000",
        "view": 1,
        "itself": True,
        "birth": 0,
    },
    "farewell": {"name": "alice", "incarnation": 1, "group": "00000000"},
    "who": {"people": [["cathy", 1, ""]]},
}
UNREAD = {("here", "order"), ("here", "members"), ("here", "bases")}
"""Only for those who differ, or for layers that have to know."""


def outside(content: bytes) -> bytes:
    packet = Packet(0, OUTSIDE, kind=Session.id)
    packet.ext = content
    return joined(encode(packet, 0))


@pytest.mark.parametrize("do", WORDS)
def test_words_of_the_wrong_kind_are_counted_and_do_nothing(do: str) -> None:
    for key, right in WORDS[do].items():
        for value in (*BAD_VALUES, ...):
            if (do, key) in UNREAD or (type(value) is type(right) and value != "x" * 5000):
                continue
            wrong = {k: v for k, v in WORDS[do].items() if k != key} | ({} if value is ... else {key: value})
            net = Net(3)
            net.inject(1, outside(json.dumps({"do": do, **wrong}).encode()))
            assert net.stacks[1].rejected == {"malformed": 1}, (key, value)
            assert net.stacks[1].left == set(), (key, value)


def test_garbage_and_unknown_words() -> None:
    net = Net(3)
    for content in (*GARBAGE, said("dance"), said("flush", number=2, attempt=1, recipe="fifo")):
        net.inject(1, outside(content))
    assert sum(net.stacks[1].rejected.values()) == len(GARBAGE) + 2
    assert net.under_way == [] and net.stacks[1].left == set()
