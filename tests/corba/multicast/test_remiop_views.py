"""Views over MIOP: members fail, are told so, come later and come back, on a wire that others read."""

import pytest

from inga.corba.multicast.remiop import ReMiop
from inga.corba.multicast.transport import Miop
from inga.corba.wire import miop
from inga.layers.shape import Faults
from inga.model.errors import UsageError
from inga.model.packet import Packet, Runs
from inga.recipes import NONE, Options, compose, find
from inga.recipes import recipe as registry
from inga.session.pieces import piece_size
from inga.sim import Sim
from inga.trial.workload import Workload
from inga.wire.packet import OUTSIDE, kind_of, view_of

from ...session.town import Copy, Town

ORDERS = ["remiop", "remiop+vector", "remiop+co", "remiop+object", "remiop+total"]
DETECT = 0.5
ROUGH = Faults(loss=0.05, delay_min=0.001, delay_max=0.01)


def town_of(members: int, order: str = "remiop", **protocol: int) -> Town:
    return Town(members, order, options=Options(detect=DETECT, protocol=dict(protocol)))


def fill(town: Town) -> None:
    """Alice sends until she may not."""
    for k in range(8):
        if town.member("alice").writable:
            town.send("alice", b"%d" % k * 30_000)
        town.wait(0.01)


@pytest.mark.parametrize("order", ORDERS)
def test_a_member_fails_another_comes_and_one_leaves(order: str) -> None:
    options = Options(detect=DETECT, partition="all")
    sim = Sim("alice", "bob", "cathy", order=order, seed=3, faults=ROUGH, options=options, record=False)
    sim.load(Workload(3, 40, rate=40))
    sim.at(0.5, sim["alice"], sim["alice"].crash)
    sim.run(0.5 + 2 * DETECT + 0.5)
    for name in ("bob", "cathy"):
        assert sim[name].stack.view.names == ("bob", "cathy") and sim[name].stack.view.failed == ("alice",)
    sim.run(3.0)
    sim.join("dave")
    sim.run(5.0)
    sim["dave"].send(b"here I am")
    sim["bob"].send(b"welcome")
    sim.run(9.0)  # `co` asks rarely here: it leaves that to those beneath
    assert "here I am" in sim["cathy"].texts and "welcome" in sim["dave"].texts
    sim["bob"].leave()
    sim.run(13.0)
    assert sim["dave"].stack.view.names == ("cathy", "dave") and sim["dave"].stack.view.left == ("bob",)
    sim.check()


@pytest.mark.parametrize("order", ["remiop", "remiop+vector", "remiop+co"])
def test_what_any_survivor_has_of_the_dead_all_have(order: str) -> None:
    """One has the first, another the second, nobody the third: both get the first two, and nobody more."""
    town = town_of(4, order)
    town.send("alice", b"begin")
    town.wait(0.1)
    for text, got_by in ((b"first", "bob"), (b"second", "cathy"), (b"third", "")):
        town.send("alice", text)
        town.lose(lambda copy, by=got_by: copy.source == "alice" and copy.target != by)
        town.settle()
    town.crash("alice")
    town.lose(lambda copy: copy.source == "alice")
    town.wait(3 * DETECT, lambda copy: copy.data[5] & miop.CONTROL)  # nobody asks: they are told what to take
    town.wait(5.0)
    expected = [b"begin", b"first", b"second"]
    for name in ("bob", "cathy", "dave"):
        assert sorted(town.texts(name)) == expected, name
        assert town.names(name) == ("bob", "cathy", "dave")
    town.check_together(order, "bob", "cathy", "dave")


class KeepsItToItself(ReMiop):
    """Nobody is sent what a member has of one that is gone."""

    def lend(self, member: int, runs: Runs, to: int) -> list[Packet]:
        return []


def test_survivors_who_do_not_share_are_noticed() -> None:
    compose("broken", NONE, Miop(KeepsItToItself), guarantees=find("remiop").guarantees)
    try:
        with pytest.raises(AssertionError):
            test_what_any_survivor_has_of_the_dead_all_have("broken")
    finally:
        del registry._recipes["broken"]


def outrun(messages: int) -> tuple[Town, list[bytes], list[Copy]]:
    """Alice says so much, as if the others were in no view of hers any more: she waits for nobody's reports. Then she is
    gone. The town, what she said, and the packets of it for bob: cathy gets none."""
    patient, hasty = ({"size": size} for size in (4, 512))
    each = {"alice": Options(detect=DETECT, protocol=hasty)}
    town = Town(3, "remiop", options=Options(detect=DETECT, protocol=patient), each=each)
    said = [b"%d" % k for k in range(messages)]
    for text in said:
        town.send("alice", text)
    packets = [copy for copy in town.lose(lambda copy: True) if copy.target == "bob"]
    town.crash("alice")
    return town, said, packets


def go_on_with(town: Town, said: list[bytes]) -> None:
    """Bob and cathy exclude alice, and have the same of her."""
    town.lose(lambda copy: True)
    town.wait(
        3 * DETECT + 0.5, lambda copy: copy.data[5] & miop.CONTROL
    )  # nobody asks: they are told what to take
    for name in ("bob", "cathy"):
        assert sorted(town.texts(name)) == said and town.names(name) == ("bob", "cathy"), name


def test_what_the_slowest_lacks_is_kept_though_the_sender_waits_for_nobody() -> None:
    """As one hears it, when the network is cut, that has excluded us. As much is taken as can be lent, and no more."""
    town, said, packets = outrun(10)
    town.arrive(*packets)
    assert town.texts("bob") == said[:8], "two buffers beyond the slowest"
    assert town.member("bob").counts["ahead"] == 2 and not town.member("bob").rejected
    go_on_with(town, said[:8])


def test_the_word_that_more_was_sent_pushes_nothing_out() -> None:
    town, said, packets = outrun(4)
    town.arrive(*packets)
    alice = packets_of(town, "bob").miop.senders[0]
    for number in (8, 9):
        word = miop.ControlPacket(miop.STATE, alice, ((alice, number),))
        town.inject("bob", miop.encode_control(word), source="alice")
    go_on_with(town, said)


def test_what_all_have_reported_is_let_go() -> None:
    """So that in a group that is well no more is kept than before, and nothing is refused."""
    town = town_of(3, size=4)
    for k in range(100):
        town.send("alice", b"%d" % k)
        town.wait(0.01, lambda copy, k=k: k % 10 < 4 and (copy.source, copy.target) == ("cathy", "bob"))
    town.wait(1.0)
    for name in ("bob", "cathy"):
        (stream,) = (each for each in packets_of(town, name)._streams.values() if each.member == 0)
        assert len(stream.buffer) == 4 and stream.stable - stream.baseline == 99, name
        assert not town.member(name).counts["ahead"] and len(town.texts(name)) == 100, name


def test_who_misses_reports_for_long_takes_the_rest_when_they_come() -> None:
    """Bob does not know that cathy has everything, as alice does."""
    town = town_of(3, size=4)
    for k in range(16):
        town.send("alice", b"%d" % k * 1000)
        town.wait(0.01, lambda copy: (copy.source, copy.target) == ("cathy", "bob"))
    assert packets_of(town, "bob").has_of(0) == 8 < packets_of(town, "cathy").has_of(0)
    assert town.member("bob").counts["ahead"] and packets_of(town, "alice").outstanding == 4
    town.wait(2.0)
    assert not packets_of(town, "alice").outstanding
    for name in ("bob", "cathy"):
        assert len(town.texts(name)) == 16 and town.names(name) == ("alice", "bob", "cathy"), name


def packets_of(town: Town, name: str) -> ReMiop:
    layer = town.member(name).layer("remiop")
    assert isinstance(layer, ReMiop)
    return layer


def test_what_comes_of_the_dead_after_the_change_has_begun_is_not_taken() -> None:
    town = town_of(3)
    town.send("alice", b"begin")
    town.wait(0.1)
    town.send("alice", b"too late")
    late = town.lose(lambda copy: True)
    town.crash("alice")
    while not town.member("bob").closing and town.now < 2.0:
        town.wait(0.01)
    town.arrive(*late)
    town.wait(2.0)
    assert town.texts("bob") == town.texts("cathy") == [b"begin"]


def test_a_full_window_opens_when_the_one_it_waits_for_is_excluded() -> None:
    town = town_of(3, size=4)
    town.crash("cathy")
    fill(town)
    assert not town.member("alice").writable
    town.wait(2 * DETECT + 0.5)
    assert town.member("alice").writable and town.names("alice") == ("alice", "bob")
    town.check("remiop", "alice", "bob")


def test_repairs_of_its_packets_do_not_vouch_for_a_member() -> None:
    town = town_of(3)
    town.send("alice", b"said long ago")
    (held,) = town.lose(lambda copy: copy.target == "bob")
    town.wait(0.3, lambda copy: copy.target == "bob" or copy.source == "alice")
    heard = town.member("bob").heard[0]
    town.arrive(held._replace(source="cathy"))
    assert town.texts("bob") == [b"said long ago"]
    assert town.member("bob").heard[0] == heard


@pytest.mark.parametrize("rejoin", [False, True])
def test_one_that_was_stopped_is_told(rejoin: bool) -> None:
    options = Options(detect=DETECT, rejoin=rejoin)
    sim = Sim("alice", "bob", "cathy", order="remiop+vector", options=options, record=False)
    sim.load(Workload(3, 20, rate=20))
    sim.at(0.3, sim["cathy"], lambda: sim["cathy"].pause(2.0))
    sim.run(1.8)
    assert sim["alice"].stack.view.names == ("alice", "bob")
    sim.run(6.0)
    assert sim["cathy"].is_excluded is not rejoin
    assert sim["alice"].stack.view.names == ("alice", "bob", "cathy")[: 2 + rejoin]
    if rejoin:
        sim["cathy"].send(b"back")
        sim.run(8.0)
        assert "back" in sim["bob"].texts


def test_without_detection_silence_is_forgiven_and_the_view_stays() -> None:
    town = Town(3, "remiop", options=Options(protocol={"size": 4}))
    town.crash("cathy")
    fill(town)
    town.wait(60.0)
    assert not town.member("alice").writable and town.names("alice") == ("alice", "bob", "cathy")
    town.leave("bob")
    town.wait(5.0)
    assert town.member("alice").view.number == 1 and town.member("alice").left == {1}


def test_another_order_on_the_same_wire_and_on_none_other() -> None:
    town = town_of(3)
    outcome = town.use("bob", "remiop+total")
    town.wait(2.0)
    assert outcome == [None] and town.member("alice").view.recipe == "remiop+total"
    for order in ("fifo", "miop+acks", "miop"):
        with pytest.raises(UsageError, match="cannot change to the order"):
            town.use("bob", order)
    with pytest.raises(UsageError, match="cannot change to the order 'remiop'"):
        Town(2, "fifo", options=Options(detect=DETECT)).use("bob", "remiop")
    town.check_together("remiop+total", "alice", "bob", "cathy")


@pytest.mark.parametrize("order", ["miop", "miop+acks"])
def test_orders_that_keep_nothing_of_others_have_founders_only(order: str) -> None:
    with pytest.raises(
        UsageError, match=f"nobody can join a group of order '{order.replace('+', '.')}' later"
    ):
        Sim("alice", order=order, options=Options(detect=DETECT), record=False).join("bob")
    with pytest.raises(UsageError, match="partition is an option of order"):
        find(order).check(Options(partition="all", detect=DETECT))


def test_what_a_change_adds_to_the_wire() -> None:
    """Data packets are numbered as ever; words of the session are requests without numbers, which nobody repairs and
    nothing waits for; newcomers and answers to them are no MIOP at all, which readers of MIOP drop at once."""
    town = town_of(3)
    town.send("alice", b"one")
    town.wait(0.1)
    town.knock("dave")
    town.wait(1.0)
    town.send("dave", b"two")
    town.wait(1.0)
    words, numbered = 0, []
    for copy in town.log:
        if copy.data[:4] != miop.MAGIC:
            assert kind_of(copy.data, town.member("alice").lobby) == 3 and view_of(copy.data) == OUTSIDE
            continue
        packet = miop.decode(copy.data)
        if not packet.is_control:
            known = miop.read_id(packet.unique_id)
            words += known is None
            if known is not None and known not in numbered:
                numbered.append(known)
    assert words
    (alice, one), (dave, two) = numbered
    assert one == 1 and two >= 1 << 16, "another view has other numbers"
    assert alice >> 8 != dave >> 8, "and other senders"


def test_pieces_of_a_state_fit_a_packet() -> None:
    """Or with each packet that is lost all of them would be."""
    town = town_of(2)
    size = piece_size(town.member("alice"))
    assert miop.PAYLOAD_MAX // 2 < size < miop.PAYLOAD_MAX - 256, "and most of a packet is state"
