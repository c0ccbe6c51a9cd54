"""The gate: opened, nothing is held here; closed again, what has passed counts in its turn."""

from random import Random

import pytest

from inga.layers.causal import Causal
from inga.layers.fifo import Fifo, Unordered
from inga.model.errors import UsageError
from inga.model.packet import Packet
from inga.model.stamp import Stamp
from inga.recipes import Options
from inga.trace.memory import MemoryTrace
from inga.wire.bundle import join

from ..stack.harness import Net, Probe


def packet(src: int, seq: int, *delta: tuple[int, int], height: int = 1) -> Packet:
    found = Packet(src, 1, join([b"x"]))
    found.seq, found.stamp = seq, Stamp(delta, height)
    return found


def passed(packets: list[Packet]) -> list[tuple[int, int]]:
    return [(each.src, each.seq) for each in packets]


def test_no_gate_without_order() -> None:
    probe = Probe(Unordered())
    with pytest.raises(UsageError, match="order 'none' has no gate: it holds nothing"):
        probe.layer.gate(True)  # type: ignore[attr-defined]


def test_open_is_as_it_comes() -> None:
    layer = Causal()
    probe = Probe(layer)
    layer.gate(True)
    assert passed(probe.feed(packet(1, 2), packet(2, 1, (1, 3)), packet(1, 1), packet(1, 3))) == [
        (1, 2),
        (2, 1),
        (1, 1),
        (1, 3),
    ]
    assert layer.inbox.vector == [0, 3, 1] and layer.inbox.held == 0 and not layer._early
    assert probe.stack.held == 0


def test_opening_releases_by_height_and_source() -> None:
    layer = Causal()
    probe = Probe(layer, members=4)
    held = [packet(3, 2, height=4), packet(2, 2, height=4), packet(1, 3, height=9), packet(1, 2, height=2)]
    assert probe.feed(*held) == [] and probe.stack.held > 0
    layer.gate(True)
    assert passed(probe.top.got) == [(1, 2), (2, 2), (3, 2), (1, 3)]
    assert probe.stack.held == 0


def test_what_has_passed_is_not_passed_again() -> None:
    layer = Causal()
    probe = Probe(layer)
    layer.gate(True)
    early = packet(1, 2)
    assert passed(probe.feed(early)) == [(1, 2)]
    layer.taken([early])
    layer.gate(True)
    layer.gate(False)
    layer.gate(True)
    assert passed(probe.top.got) == [(1, 2)]
    layer.gate(False)
    assert passed(probe.feed(packet(1, 2), packet(1, 1), packet(1, 2))) == [(1, 1)]
    assert layer.inbox.vector == [0, 2, 0]


@pytest.mark.parametrize("taken_first", [True, False])
def test_stamps_name_the_highest_number_taken(taken_first: bool) -> None:
    """And once its turn has come, all that it depends on."""
    layer = Causal()
    probe = Probe(layer)
    layer.gate(True)
    early = packet(1, 3, (2, 4), height=8)
    probe.feed(early)
    if taken_first:
        layer.taken([early])
    probe.stack.send(b"mine", now=0.0)
    assert probe.bottom.sent[-1].stamp == Stamp(((1, 3),) if taken_first else (), 4 if taken_first else 1)
    layer.gate(False)
    others = [packet(2, seq) for seq in range(1, 5)] + [packet(1, 1), packet(1, 2)]
    probe.feed(*others)
    if not taken_first:
        layer.taken([early])
    probe.stack.send(b"mine", now=0.0)
    stamp = probe.bottom.sent[-1].stamp
    assert stamp is not None and stamp.delta == (((2, 4),) if taken_first else ((1, 3),))


@pytest.mark.parametrize("missing", [False, True])
def test_what_comes_after_its_own_effects_is_not_concurrent_with_them(missing: bool) -> None:
    """Alice's messages come the wrong way round, the second perhaps not yet; cathy's is concurrent with them."""
    net = Net(3, "vector", options=Options(lossless=True))
    for stack in net.stacks:
        stack.layers[0].gather = False  # type: ignore[attr-defined]
    net.stacks[1].gate("open", now=0.0)
    for text in (b"first", b"second", b"third")[: 2 + missing]:
        net.send(0, text)
    first, *_, last = net.to(1)
    net.arrive(last, first)
    net.send(2, b"by cathy")
    net.arrive(net.to(1, source=2)[-1])
    texts = ["third" if missing else "second", "first", "by cathy"]
    assert net.texts(1) == texts
    assert [batch.concurrent for batch in net.batches[1]] == [False, False, True]


def test_closing_holds_only_what_has_not_passed() -> None:
    layer = Causal()
    probe = Probe(layer)
    layer.gate(True)
    probe.feed(packet(1, 2))
    layer.gate(False)
    assert probe.feed(packet(1, 3), packet(2, 1, (1, 2))) == []
    assert passed(probe.feed(packet(1, 1))) == [(1, 1), (2, 1), (1, 3)]


def test_what_is_dismissed_has_not_passed() -> None:
    """Another layer goes on with what is held; not with what the application has already."""
    layer = Causal()
    probe = Probe(layer)
    layer.gate(True)
    probe.feed(packet(1, 2))
    layer.gate(False)
    probe.feed(packet(1, 3))
    assert passed(layer.drain()) == [(1, 3)]
    assert probe.stack.held == 0


def test_what_passed_of_one_that_left_waits_for_nothing_any_more() -> None:
    layer = Causal()
    probe = Probe(layer)
    layer.gate(True)
    probe.feed(packet(1, 2), packet(2, 2))
    probe.stack.gone(1)
    assert list(layer._early) == [(2, 2)]


def test_answers_to_what_passed_and_is_lost_for_others_are_released_without_it() -> None:
    """Member 3 is gone; its first message is lost, and the answers name its second one, which somebody with an open gate has
    taken. Both answers come, causes first; what the one that is gone said besides does not."""
    layer = Causal()
    probe = Probe(layer, members=4)
    answers = packet(1, 1, (2, 1), height=4), packet(2, 1, (3, 2), height=3)
    assert probe.feed(*answers, packet(3, 2, height=2), packet(3, 4, height=9)) == []
    probe.stack.left.add(3)
    layer.bereft(3)
    layer.forgo()
    assert passed(probe.top.got) == [(2, 1), (1, 1)]
    assert layer.has([0, 1, 1, 0]) and not layer.inbox.held and probe.stack.held == 0


def test_what_an_answer_names_of_one_that_is_gone_comes_before_it() -> None:
    """Member 3 said something after a message of member 2 that is lost with it, and member 1 has read and answered that."""
    layer = Causal()
    probe = Probe(layer, members=4)
    assert probe.feed(packet(1, 1, (3, 1), height=3), packet(3, 1, (2, 1), height=2)) == []
    probe.stack.left |= {2, 3}
    layer.forgo()
    assert passed(probe.top.got) == [(3, 1), (1, 1)]


def test_headers_pass_unseen() -> None:
    layer = Causal()
    probe = Probe(layer)
    layer.gate(True)
    bare = packet(1, 2)
    bare.dst, bare.bare, bare.body = 0b100, True, b""
    assert probe.feed(bare) == []
    assert passed(probe.feed(packet(1, 1), packet(1, 3))) == [(1, 1), (1, 3)]


def test_headers_that_pass_are_never_read() -> None:
    """Nobody takes what was for others, so nothing is kept until somebody does."""
    layer = Causal()
    probe = Probe(layer, trace=MemoryTrace(0, 3))
    layer.gate(True)
    header = packet(1, 2)
    header.bare = True
    assert passed(probe.feed(header, packet(1, 1))) == [(1, 1)]
    assert layer._unread == {(1, 1)}


def test_fifo() -> None:
    layer = Fifo()
    probe = Probe(layer)
    assert probe.feed(packet(1, 2), packet(2, 3), packet(1, 3)) == []
    layer.gate(True)
    assert passed(probe.top.got) == [(1, 2), (1, 3), (2, 3)]
    assert passed(probe.feed(packet(2, 2), packet(2, 3))) == [(2, 2)]
    layer.gate(False)
    assert probe.feed(packet(1, 5)) == []
    assert passed(probe.feed(packet(1, 1), packet(1, 4), packet(2, 1))) == [(1, 1), (1, 4), (1, 5), (2, 1)]
    assert probe.stack.held == 0


@pytest.mark.parametrize("order", ["fifo", "vector"])
@pytest.mark.parametrize("seed", range(10))
def test_gates_at_random_moments_lose_and_double_nothing(order: str, seed: int) -> None:
    """Whole stacks under loss; whose gate was never opened has everything in order."""
    rng = Random(seed)
    net = Net(3, order, seed=seed)
    sent = []
    for number in range(60):
        member = rng.randrange(3)
        sent.append(f"{member} {number}")
        net.send(member, sent[-1].encode())
        if rng.random() < 0.3:
            net.stacks[1].layers[1].gate(rng.random() < 0.5)  # type: ignore[attr-defined]
            net.turn(1)
        for flight in rng.sample(net.under_way, len(net.under_way) // 3):
            net.arrive(flight)
        net.lose(lambda flight: rng.random() < 0.1)
        net.now += 0.001
        net.tick(member)
    net.quiet()
    for member in range(3):
        assert sorted(net.texts(member)) == sorted(text for text in sent if not text.startswith(str(member)))
    for member in (0, 2):
        for other in range(3):
            numbers = [int(text.split()[1]) for text in net.texts(member) if text.startswith(str(other))]
            assert numbers == sorted(numbers)
    assert (net.batches[0][-1].deps is not None) is (order == "vector")


def test_another_order_begins_with_a_closed_gate() -> None:
    from ..session.town import Town

    town = Town(2)
    town.member("alice").layers[1].gate(True)  # type: ignore[attr-defined]
    town.use("bob", "fifo")
    town.quiet()
    assert not town.member("alice").layers[1]._is_open  # type: ignore[attr-defined]
    town.check("fifo", "alice", "bob")
