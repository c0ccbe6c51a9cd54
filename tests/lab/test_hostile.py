"""The stranger of the bench: what it makes of what it hears is what it is said to be, and a group goes on meanwhile."""

from random import Random

import pytest

from inga.lab.hostile import SPOILS
from inga.model.packet import Packet
from inga.stack.stack import Stack, joined
from inga.wire.packet import decode, encode, tag_of, view_of

from ..stack.harness import Net

WHERE = ("127.0.0.1", 9)


def heard(net: Net) -> bytes:
    net.send(0, b"hello")
    data: bytes = net.to(1, kind=0)[0].data
    return data


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("random", "foreign"),
        ("flipped", "check"),
        ("replayed", None),
        ("reflected", None),
        ("view", "view"),
        ("group", "group"),
        ("nack", None),
    ],
)
def test_what_a_stranger_makes_of_what_it_hears(kind: str, reason: str | None) -> None:
    net, rng = Net(3, group="lunch"), Random(1)
    data = heard(net)
    made = [SPOILS[kind](rng, (data, WHERE), 3) for _ in range(50)]
    bob: Stack = net.stacks[1]
    for each in made:
        assert each is not None
        bob.receive([(each, WHERE)], now=net.now)
    if reason is not None:
        known = bob.counts["ahead"] + bob.counts["stale"]
        assert sum(bob.rejected.values()) + known == 50 and bob.rejected[reason] + known >= 25
        assert not bob.delivered
    elif kind == "nack":
        packet = decode(made[0], tag_of(made[0]), {view_of(made[0]): 3}, 2)
        assert packet is not None and packet.runs == ((1, 2),) and packet.src == 0
    else:
        assert not bob.rejected and bob.delivered == 1


def test_nothing_is_asked_for_that_has_no_number() -> None:
    greeting = joined(encode(Packet(0, 1, kind=3), 7))
    assert SPOILS["nack"](Random(0), (greeting, WHERE), 3) is None
    assert SPOILS["nack"](Random(0), (b"\xff" * 40, WHERE), 3) is None
