"""The stranger of the bench: what it makes of what it hears is what it is said to be, and a group goes on meanwhile."""

from random import Random

import pytest

from inga.keys.secret import Secret
from inga.lab import bench_hostile
from inga.lab.hostile import FORGED, FORMER, KNOCKS, SPOILS, Former, KeptKeys, Stranger
from inga.model.packet import Packet
from inga.stack.stack import Stack, joined
from inga.wire.packet import decode, encode, tag_of, view_of

from ..secure.helpers import Wire, known, meet, tag
from ..secure.helpers import view_of as view_
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


def test_what_is_forged_is_in_the_name_of_members() -> None:
    """It is what a plain group would believe: nothing of it is refused as no packet."""
    net = Net(3, group="lunch")
    data = heard(net)
    people = [stack.member.identity for stack in net.stacks]
    with Stranger(FORGED, people, group="lunch", places=[WHERE], heard=[(data, WHERE)]) as stranger:
        made = {each for each, place in stranger._made() if place == WHERE}
    bob: Stack = net.stacks[1]
    before = bob.counts.copy()
    bob.receive([(each, WHERE) for each in made], now=net.now)
    assert len(made) > 20 and {view_of(each) for each in made} == {0, bob.view.number, bob.view.number + 1}
    assert not {"foreign", "truncated", "check", "version"} & bob.rejected.keys()
    assert bob.counts != before or bob.rejected


def test_words_of_one_with_another_secret_are_words() -> None:
    wire = Wire()
    alice = wire.add("alice", known())
    with Stranger(KNOCKS, [("alice", 1)], group="lunch", places=[WHERE], heard=[(b"", WHERE)]) as stranger:
        made = [data for data, _ in stranger._made()]
    alice.open([(data, WHERE) for data in made], 0.0)
    assert alice.rejected == {"unproven": len(made)} and {data[3] for data in made} == {1, 2, 3, 4}


def test_one_that_was_a_member_makes_what_is_opened_and_of_no_use() -> None:
    """Under the keys that it has kept; the group goes on in another view."""
    wire = Wire()
    names = ("alice", "bob", "mallory")
    for name in names:
        wire.add(name, known())
    together, after = (view_(*names, number=2, attempt=1), view_("alice", "bob", number=3, attempt=1))
    meet(wire, *names)
    for view in (together, after):
        secret = wire.guards["alice"].fresh()
        for name in view.names:
            wire.guards[name].expect(tag(view), view, view.names.index(name), secret)
        wire.enter(view, *view.names)
        if view is together:
            mallory = wire.guards["mallory"]
            for channel in mallory._channels.values():
                channel.address = ("127.0.0.1", 9)
            kept = KeptKeys(mallory, 0)
    wire.run(seconds=0.1)
    alice = wire.guards["alice"]
    people = [("alice", 1), ("bob", 1), ("mallory", 1)]
    opened, given = alice.opened, 0
    with Former(kept, people, group="lunch", places=[WHERE]) as former:
        for data, _ in (*former._made(), *former._made()):
            for plain, _ in alice.open([(data, "elsewhere")], wire.now):
                given += 1
                assert view_of(plain) in (0, together.number)
    assert (
        alice.opened - opened > 20 and given > 20
    )  # what a stack does with that: tests/secure/test_attacks.py
    assert alice.rejected["foreign"] > 10 and sum(alice.senders.useless().by_place.values()) >= given


@pytest.mark.network
def test_a_secured_group_goes_on_when_one_that_has_left_floods_it() -> None:
    """As `inga bench hostile` plays it, for half a second."""
    found = bench_hostile._play(FORMER, 0.5, {"secret": Secret.make().text()})
    assert found["rate"] > 0 and found["sent"] > 0
    assert found["wrong"] == found["excluded"] == found["ended"] == 0
