"""Everything through one member: order for free, as long as links keep theirs."""

from dataclasses import replace

import pytest

from inga.layers.fifo import Unordered
from inga.layers.relay import Hop, Relay
from inga.layers.shape import Faults
from inga.model.errors import UsageError
from inga.model.packet import Packet
from inga.model.view import View
from inga.recipes import Options, find
from inga.sim import Sim
from inga.sim.board import replay
from inga.sim.hunt import hunt
from inga.stack.layer import Layer
from inga.trace.memory import MemoryTrace
from inga.trace.schema import Row
from inga.trial.workload import Workload
from inga.wire import relay as wire
from inga.wire.relay import Origin

from ..stack.harness import Net, Probe

LOSSLESS = Options(lossless=True)
PEOPLE = "alice bob cathy dave erin".split()
ROUGH = Faults(loss=0.1, duplicate=0.1, reorder=0.4, delay_min=0.001, delay_max=0.03)


def trial(layer: type[Relay], seed: int, subset: int | None = None, size: int = 40) -> Sim:
    """A group in a rough world, under the right relay or another."""

    def build(options: Options) -> list[Layer]:
        made = find("relay").build(options)
        return [layer(echo=bool(options.echo)) if each.name == "relay" else each for each in made]

    members = 3 + seed % 3
    options = Options(echo=seed % 2 == 1)
    sim = Sim(
        *PEOPLE[:members],
        order="relay",
        seed=seed,
        faults=ROUGH,
        options=options,
        build=build,
        datagram_max=300,
        record=False,
    )
    sim.load(Workload(members, 25, size=size, subset=subset))
    sim.run()
    sim.finish()
    return sim


@pytest.mark.parametrize("subset", [None, 1, 2])
def test_all_that_a_rough_world_can_do(subset: int | None) -> None:
    assert all_is_well(range(12), subset) > 100


@pytest.mark.hunt
@pytest.mark.parametrize("first", range(0, 4000, 100))
def test_thousands_of_rough_worlds(first: int) -> None:
    assert all_is_well(range(first, first + 100), (None, 1, 2)[first // 100 % 3]) > 0


def all_is_well(seeds: range, subset: int | None) -> int:
    """The least number of messages that were related in one of the runs, all of which are clean."""
    related = []
    for seed in seeds:
        sim = trial(Relay, seed, subset, size=400 if seed % 4 == 0 else 40)
        sim.check()
        assert not any(site.stack.rejected or site.stack.held for site in sim.sites)
        related.append(sim.oracle.related)
    return min(related)


class NoHolding(Relay):
    """Links that reorder: copies are passed on as they come."""

    _offer = Unordered._offer


class NoHoldingAtTheRelay(Relay):
    def _offer(self, packet: Packet, out: list[Packet]) -> None:
        (Unordered if self.stack.me == self.relay else Relay)._offer(self, packet, out)


class NoHoldingAtMembers(Relay):
    def _offer(self, packet: Packet, out: list[Packet]) -> None:
        (Relay if self.stack.me == self.relay else Unordered)._offer(self, packet, out)


@pytest.mark.parametrize("mutant", [NoHolding, NoHoldingAtTheRelay, NoHoldingAtMembers])
def test_with_links_that_reorder_causality_is_violated(mutant: type[Relay]) -> None:
    """The claim of the spec, section 9.1: without the holding, most runs break."""
    broken = [trial(mutant, seed).oracle.violations["causal"] > 0 for seed in range(12)]
    assert sum(broken) > 8


def test_hunting_finds_nothing() -> None:
    assert hunt("relay", 60) == (60, None)


# What is where


def test_everything_goes_through_the_relay_and_keeps_its_name() -> None:
    net = Net(4, "relay", options=LOSSLESS)
    net.send(1, b"all")
    net.send(2, b"some", to=0b1010)
    net.send(0, b"relay's")
    net.send(3, b"for the relay", to=0b0001)
    net.send(3, b"for myself", to=0b1000)
    net.settle()
    seen = [
        [(b.sender, b.seq, bytes(b.payloads[0]).decode()) for b in net.batches[member]] for member in range(4)
    ]
    assert seen == [
        [("bob", 1, "all"), ("dave", 1, "for the relay")],
        [("alice", 1, "relay's"), ("cathy", 1, "some")],
        [("alice", 1, "relay's"), ("bob", 1, "all")],
        [("dave", 2, "for myself"), ("alice", 1, "relay's"), ("bob", 1, "all"), ("cathy", 1, "some")],
    ]
    carried = [(f.source, f.target) for f in net.log if net.packets([f])[0].body]
    assert all(0 in pair for pair in carried), "no body went from member to member"


def test_another_member_can_be_the_relay() -> None:
    def build() -> list[Layer]:
        made = find("relay").build(LOSSLESS)
        return [Relay(relay=2) if each.name == "relay" else each for each in made]

    net = Net(3, "relay", build=build, options=LOSSLESS)
    net.send(0, b"hello")
    net.settle()
    assert (net.texts(1), net.texts(2)) == (["hello"], ["hello"])
    assert {f.source for f in net.log if f.target == 1 and net.packets([f])[0].body} == {2}
    with pytest.raises(UsageError, match="member 3 cannot relay for a group of 3"):
        Probe(Relay(relay=3))


def test_two_members_and_one() -> None:
    net = Net(2, "relay")
    net.send(1, b"up")
    net.send(0, b"down")
    net.quiet()
    assert (net.texts(0), net.texts(1)) == (["up"], ["down"])
    alone = Net(1, "relay", options=Options(echo=True))
    alone.send(0, b"me")
    alone.quiet()
    assert alone.texts(0) == ["me"]


def test_rows_name_the_sender_and_its_number() -> None:
    rows: list[Row] = []
    net = Net(3, "relay", options=LOSSLESS, traces=[MemoryTrace(me, 3, rows) for me in range(3)], traced=True)
    net.send(0, b"first")
    net.send(1, b"second")
    net.settle()
    told = [(row.step, row.process, row.src, row.seq, row.deps) for row in rows if row.src == 1]
    assert told == [
        ("send", 1, 1, 1, (0, 0, 0)),
        ("receive", 0, 1, 1, None),
        ("deliver", 0, 1, 1, (0, 0, 0)),
        ("take", 0, 1, 1, (0, 0, 0)),
        ("receive", 2, 1, 1, None),
        ("deliver", 2, 1, 1, (0, 0, 0)),
        ("take", 2, 1, 1, (0, 0, 0)),
    ]


def test_a_receipt_says_nothing_of_destinations() -> None:
    assert Net(2, "relay").stacks[0].chain.levels == () == Hop().levels


def test_senders_do_not_outrun_the_relay() -> None:
    """Cathy hears nothing of the relay: what waits there for her is bounded by closing bob's window."""
    net = Net(3, "relay", datagram_max=1472, options=Options(flow={"window": 4000, "queue_max": 20_000}))
    deaf = True
    sent = 0
    for _ in range(400):
        while net.stacks[1].writable and sent < 400:
            net.send(1, b"%03d" % sent + b"." * 500)
            sent += 1
        net.wait(0.02, lose=lambda flight: deaf and (flight.source, flight.target) == (0, 2))
    assert sent < 100 and net.stacks[0].held < 30_000
    deaf = False
    for _ in range(4000):
        if sent == 400:
            break
        while net.stacks[1].writable and sent < 400:
            net.send(1, b"%03d" % sent + b"." * 500)
            sent += 1
        net.wait(0.02)
    net.quiet()
    assert [text[:3] for text in net.texts(2)] == [f"{number:03d}" for number in range(400)]
    assert net.stacks[0].held == 0
    relay = net.stacks[0].layer("relay")
    assert isinstance(relay, Relay) and relay._on_way == 0, (
        "or the end of the view would take it off once more"
    )


def test_without_the_relay_another_relays() -> None:
    net = Net(3, "relay")
    net.send(1, b"before")
    net.quiet()
    net.stacks[0].goodbye(now=net.now)
    net.turn(0)
    net.wait(1.0)
    lost = "alice is gone, who passed on all messages: those on their way to it are lost"
    assert net.notices == [lost] * 2
    assert net.names(1) == net.names(2) == ("bob", "cathy")
    net.send(2, b"after")
    net.send(1, b"of the relay")
    net.quiet()
    assert net.texts(1) == ["after"] and net.texts(2) == ["before", "of the relay"]


def test_what_the_relay_passed_on_to_one_reaches_all_when_it_has_failed() -> None:
    """What it had not passed on is lost, at everybody but its sender, and keeps nobody waiting."""
    net = Net(4, "relay")
    for stack in net.stacks:
        stack.layers[0].gather = False  # type: ignore[attr-defined]
    net.send(1, b"passed on to one")
    net.arrive(*net.to(0))
    net.lose(lambda flight: flight.target != 3)
    net.arrive(*net.to(3))
    net.send(1, b"on its way")
    net.lose(lambda flight: True)
    for member in (1, 2, 3):
        net.stacks[member].gone(0, failed=True)
        net.turn(member)
    net.wait(5.0, lose=lambda flight: 0 in (flight.source, flight.target))
    assert [net.names(member) for member in (1, 2, 3)] == [("bob", "cathy", "dave")] * 3
    net.send(3, b"after")
    net.wait(5.0, lose=lambda flight: 0 in (flight.source, flight.target))
    assert net.texts(2) == ["passed on to one", "after"] and net.texts(3) == ["passed on to one"]
    assert net.texts(1) == ["after"]


# What is refused


def relayed(src: int, seq: int, origin: Origin | None, *, dst: int | None = None) -> Packet:
    packet = Packet(src, 1, b"\0x", dst)
    packet.seq = seq
    packet.ext = None if origin is None else wire.put(origin)
    return packet


@pytest.mark.parametrize(
    ("me", "packet", "reason"),
    [
        (1, relayed(0, 1, None), "truncated"),
        (1, relayed(0, 0, Origin(2, 1, None)), "malformed"),
        (1, relayed(2, 1, Origin(2, 1, None)), "relay"),  # not from the relay
        (0, relayed(2, 1, Origin(1, 1, None)), "forged"),  # in another's name
        (0, relayed(2, 1, Origin(2, 2, None)), "forged"),
        (0, relayed(2, 1, Origin(7, 2, None)), "stranger"),
    ],
)
def test_what_cannot_be_right_is_counted(me: int, packet: Packet, reason: str) -> None:
    probe = Probe(Relay(), me=me)
    assert probe.feed(packet) == [] and probe.bottom.sent == []
    assert probe.stack.rejected == {reason: 1}


def test_a_packet_stays_what_its_link_made_of_it() -> None:
    """A delayed duplicate may be the same object: `reliable` must know it again by source and number."""
    probe = Probe(Relay(), me=1)
    packet = relayed(0, 1, Origin(2, 5, None))
    (original,) = probe.feed(packet)
    assert (original.src, original.seq, packet.src, packet.seq) == (2, 5, 0, 1)
    assert probe.feed(packet) == []


def test_what_was_held_goes_through_the_layer_that_takes_over() -> None:
    probe = Probe(Relay(), me=1)
    assert probe.feed(relayed(0, 2, Origin(2, 6, None))) == []
    after = probe.layer = Relay()
    probe.stack.views.replace("relay", after)
    got = probe.feed(relayed(0, 1, Origin(2, 5, None)))
    assert [(packet.src, packet.seq) for packet in got] == [(2, 5), (2, 6)]


def test_no_schedule_can_be_played() -> None:
    with pytest.raises(UsageError, match="order 'relay' passes messages on"):
        replay("A!1 1>B", "relay")


def test_in_a_smaller_view_its_last_member_relays() -> None:
    layer = Relay(relay=2)
    probe = Probe(layer)
    assert layer.relay == 2
    layer.view(replace(View.of("alice", "bob"), number=2))
    assert layer.relay == 1
    assert not probe.stack.rejected
