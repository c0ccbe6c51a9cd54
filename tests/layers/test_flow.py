"""Windows: closing, opening, readers that do not read, reports that are lost, and who is to blame."""

import pytest

from inga.layers.flow import PACKETS_MAX, Flow, charged
from inga.model.errors import WouldBlock
from inga.model.packet import Packet
from inga.recipes import Options
from inga.session.pressure import WARN_AFTER
from inga.trace.memory import MemoryTrace
from inga.trace.schema import Row

from ..stack.harness import FLOW, RELIABLE, Net, Probe

PROBE = Flow().probe.first


def small(members: int = 2, *, window: int = 5000, takes: bool = True, **more: float) -> Net:
    """A group with small windows in which every send is a packet of its own."""
    net = Net(members, options=Options(flow={"window": window, **more}), takes=takes)
    for stack in net.stacks:
        stack.layers[0].gather = False  # type: ignore[attr-defined]
    return net


def fill(net: Net, member: int = 0) -> int:
    """Send until the window closes: how many went."""
    sent = 0
    while net.stacks[member].writable:
        net.send(member, b"%d" % sent)
        sent += 1
        assert sent < 10_000
    return sent


def stall(net: Net) -> None:
    """Send until the window stays closed, since somebody does not read."""
    for _ in range(20):
        fill(net)
        net.settle()
        if not net.stacks[0].writable:
            return
    raise AssertionError("the window opened every time")


# The charge


@pytest.mark.parametrize(("size", "charge"), [(100, 832), (1000, 2304), (8192, 16640)])
def test_the_charge_is_what_the_kernel_was_seen_to_count(size: int, charge: int) -> None:
    """design.md, section 6."""
    assert charged(size) == charge


def test_the_charge_is_never_less_than_the_bytes() -> None:
    for size in range(0, 70_000, 7):
        assert charged(size) > size
    for size in (20_000, 40_000, 60_000):
        assert charged(size) < 1.08 * size


# The window


def test_the_window_closes_and_opens() -> None:
    net = small()
    sent = fill(net)
    assert 3 <= sent <= 8
    with pytest.raises(WouldBlock):
        net.stacks[0].send(b"more", now=0.0)
    net.settle()
    assert net.stacks[0].writable
    net.send(0, b"more")
    net.quiet()
    assert net.texts(1) == [*map(str, range(sent)), "more"]


def test_what_exceeds_the_window_waits_and_keeps_its_order() -> None:
    net = small()
    net.stacks[0].send_many([b"x" * 100] * 10, now=0.0)
    large = [bytes([65 + i]) * 70_000 for i in range(5)]
    net.stacks[0].send_many(large, now=0.0)
    net.turn(0)
    assert not net.stacks[0].writable
    assert len(net.to(1)) < 5
    net.quiet()
    assert [text[0] for text in net.texts(1)] == ["x"] * 10 + list("ABCDE")


def test_a_packet_larger_than_the_window_still_leaves() -> None:
    net = small(window=1)
    net.send(0, b"x" * 1000)
    assert len(net.to(1)) == 1
    net.quiet()
    assert net.texts(1) == ["x" * 1000]


def test_the_slowest_counts() -> None:
    net = small(3)
    fill(net)
    net.arrive(*net.to(1))
    net.arrive(*net.to(0))
    assert not net.stacks[0].writable, "cathy has nothing yet"
    net.settle()
    assert net.stacks[0].writable


def test_a_sender_asks_for_reports_in_time() -> None:
    """At the latest every quarter of a window, so that it never closes on a fast reader."""
    net = small(window=40_000)
    for number in range(200):
        net.send(0, b"%d" % number)
        assert net.stacks[0].writable
        net.settle()
    assert net.now == 0.0
    reports = [flight for flight in net.log if flight.kind == RELIABLE]
    assert 10 <= len(reports) <= 20


def test_small_packets_are_counted_as_well_as_weighed() -> None:
    net = small(window=1 << 40)
    assert fill_quietly(net) == PACKETS_MAX + 1
    assert not net.stacks[0].writable


def test_small_packets_ask_for_reports_in_time_too() -> None:
    probe = Probe(Flow(window=1 << 40))
    for number in range(PACKETS_MAX):
        probe.layer.down([Packet(0, 1, b"%d" % number)])
    asking = [at for at, packet in enumerate(probe.bottom.sent, 1) if packet.urgent]
    assert asking == [PACKETS_MAX // 4 * quarter for quarter in (1, 2, 3, 4)]


def fill_quietly(net: Net) -> int:
    sent = 0
    while net.stacks[0].writable and sent < 10_000:
        net.stacks[0].send(b"x", now=0.0)
        net.stacks[0].ready()
        sent += 1
    return sent


# Readers


def test_a_slow_reader_freezes_its_counter_and_later_reports() -> None:
    net = small(takes=False, queue_max=20)
    stall(net)
    reports = [packet for packet in net.packets(net.log) if packet.kind == RELIABLE and packet.src == 1]
    assert reports[-1].room is not None and reports[-1].ack is not None
    assert reports[-1].room[0] < reports[-1].ack[0], "it has them, and has no room"
    unread = list(net.batches[1])
    net.take(1, *unread[:1])
    assert net.under_way == [], "one is not enough: half of the queue must be read"
    net.take(1, *unread[1:])
    assert net.under_way, "it says at once that it has room"
    net.settle()
    assert net.stacks[0].writable


def test_a_slow_reader_is_not_repaired() -> None:
    """It has everything: only the window waits for it, not the repair."""
    net = small(takes=False, queue_max=20)
    stall(net)
    net.wait(3.0)
    assert not net.stacks[0].writable
    assert net.stacks[0].counts["repair"] == 0
    data = [flight for flight in net.log if flight.kind == 0]
    assert len(data) == len(set(data)) == len(net.batches[1])


def test_members_that_send_before_they_read_do_not_block_each_other() -> None:
    net = small(3, takes=False)
    for round_ in range(10):
        for member in range(3):
            assert net.stacks[member].writable
            net.send(member, b"%d" % round_)
            net.settle()
    assert all(len(net.batches[member]) == 20 for member in range(3))


def test_what_waits_for_its_cause_counts_as_unread() -> None:
    """A full hold queue closes the window: it may not grow without bound."""
    net = Net(3, options=Options(flow={"window": 3000, "queue_max": 100}))
    net.send(2, b"cause")
    net.arrive(*net.to(0))
    net.lose(lambda flight: flight.source == 2)
    for number in range(50):
        if net.stacks[0].writable:
            net.send(0, b"%d" % number + b"." * 60)
        net.settle()
    assert net.texts(1) == []
    assert not net.stacks[0].writable
    assert net.stacks[1].held < 1000
    net.quiet()
    assert net.texts(1)[0] == "cause"
    assert net.stacks[0].writable


# Questions


def test_a_lost_report_is_asked_for() -> None:
    net = small()
    fill(net)
    net.arrive(*net.to(1))
    assert net.lose(lambda flight: flight.source == 1)
    assert not net.stacks[0].writable
    net.wait(PROBE - 0.001, lose=lambda flight: flight.kind == RELIABLE)
    assert [flight for flight in net.log if flight.kind == FLOW] == []
    net.wait(0.002)
    assert [(f.source, f.target) for f in net.log if f.kind == FLOW] == [(0, 1)]
    assert net.stacks[0].writable
    net.quiet()


def test_only_those_who_let_us_wait_are_asked() -> None:
    net = small(4)
    fill(net)
    net.lose(lambda flight: flight.target in (2, 3))
    net.wait(PROBE + 0.001, lose=lambda flight: flight.kind == RELIABLE and flight.target != 0)
    asked = {flight.target for flight in net.log if flight.kind == FLOW}
    assert asked == {2, 3}


def test_questions_grow_rare() -> None:
    net = small(takes=False, queue_max=20)
    stall(net)
    net.wait(10.0)
    probes = [flight for flight in net.log if flight.kind == FLOW]
    assert 10 <= len(probes) <= 16


def test_after_a_while_a_person_is_told_who_does_not_read() -> None:
    net = small(3, takes=False, queue_max=20)
    stall(net)
    net.take(1, *net.batches[1])
    net.settle()
    net.wait(WARN_AFTER - 0.1)
    assert net.notices == []
    net.wait(1.5)
    assert net.notices == ["sending has waited 5 s for cathy"]
    net.wait(20.0)
    assert len(net.notices) == 1, "once is enough"
    net.take(2, *net.batches[2])
    net.settle()
    assert net.stacks[0].writable


def test_a_second_wait_is_a_second_warning() -> None:
    net = small(takes=False, queue_max=20)
    for _ in range(2):
        stall(net)
        net.wait(7.0)
        net.take(1, *net.batches[1])
        net.batches[1].clear()
        net.settle()
        assert net.stacks[0].writable
    assert len(net.notices) == 2


def test_alone_there_is_no_window() -> None:
    net = small(1, window=1)
    for number in range(50):
        net.send(0, b"%d" % number)
    assert net.stacks[0].writable and net.wake == [None]


def test_who_left_holds_up_nobody() -> None:
    net = small(3)
    fill(net)
    net.lose(lambda flight: flight.target == 2)
    net.settle()
    assert not net.stacks[0].writable
    net.stacks[0].gone(2)
    flow = net.stacks[0].layer("flow")
    assert isinstance(flow, Flow) and flow.is_open and not flow.waiting
    assert not net.stacks[0].writable, "a view without her comes first"
    net.turn(0)
    net.wait(1.0, lose=lambda flight: flight.target == 2)
    assert net.stacks[0].writable and net.names(0) == ("alice", "bob")


def test_a_trace_says_when_the_window_was_closed() -> None:
    rows: list[Row] = []
    net = Net(
        2,
        options=Options(flow={"window": 1}),
        traces=[MemoryTrace(me, 2, rows) for me in range(2)],
    )
    net.send(0, b"one")
    net.settle()
    steps = [row.step for row in rows if row.process == 0 and row.step.startswith("window")]
    assert steps == ["window_closed", "window_opened"]
