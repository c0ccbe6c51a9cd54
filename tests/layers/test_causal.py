"""Causal order: what is held, what stamps say, which messages are concurrent, and with what."""

from random import Random

import pytest

from inga.causality.clock import relation
from inga.layers.causal import Causal
from inga.model.delivery import Batch, Delivery
from inga.model.errors import UsageError
from inga.model.packet import Packet
from inga.model.stamp import Stamp
from inga.recipes import Options
from inga.trace.memory import MemoryTrace
from inga.trace.schema import Row

from ..stack.harness import Net, Probe

LOSSLESS = Options(lossless=True)


def test_an_effect_waits_for_its_cause() -> None:
    net = Net(3, options=LOSSLESS)
    net.send(0, b"lunch?")
    net.arrive(*net.to(1))
    net.send(1, b"yes")
    net.arrive(*net.to(2, source=1))
    assert net.texts(2) == []
    assert net.stacks[2].held > 0
    net.arrive(*net.to(2))
    assert net.texts(2) == ["lunch?", "yes"]
    assert net.stacks[2].held == 0


def test_a_message_still_unread_is_no_cause() -> None:
    """Released and taken are two things (V26)."""
    net = Net(2, options=LOSSLESS, takes=False)
    net.send(0, b"one")
    net.settle()
    assert net.texts(1) == ["one"]
    net.send(1, b"two")
    net.take(1, net.batches[1][0])
    net.send(1, b"three")
    two, three = net.packets(net.to(0))
    assert two.stamp == Stamp((), 1)
    assert three.stamp == Stamp(((0, 1),), 3)
    assert net.batches[1][0].concurrent
    assert net.batches[1][0].concurrent_with == [(1, 1, 1)]
    net.settle()
    net.take(0, *net.batches[0])
    assert [batch.concurrent for batch in net.batches[0]] == [True, False]


def test_a_bundle_is_taken_as_a_whole_and_carries_one_stamp() -> None:
    net = Net(2, options=LOSSLESS)
    net.send(0, b"one", b"two", b"three")
    assert len(net.under_way) == 1
    net.settle()
    (batch,) = net.batches[1]
    assert [bytes(data) for data in batch.payloads] == [b"one", b"two", b"three"]
    assert (batch.seq, batch.height) == (1, 1)
    net.send(1, b"answer")
    assert net.packets(net.to(0))[0].stamp == Stamp(((0, 1),), 2)


def test_stamps_are_those_of_the_moment_of_the_send() -> None:
    """Under any delay: a stamp is a copy (V15, and P4 of causality.md)."""
    net = Net(2, options=Options(flow={"window": 1}))
    net.send(0, b"one")
    layer = net.stacks[0].layer("causal")
    assert isinstance(layer, Causal)
    net.stacks[0].writable = True  # ask no questions: the second waits in the queue of `flow`
    net.stacks[0].send(b"two", now=0.0)
    net.stacks[0].taken([], now=0.0)
    assert layer.clock.vector == [2, 0]
    assert len(net.to(1)) == 1
    packet = Packet(1, 1, b"\0x")
    packet.seq, packet.stamp = 1, Stamp((), 1)
    layer.up([packet])
    net.turn(0)  # alice takes something of bob's while `two` still waits
    assert layer.clock.vector == [2, 1]
    net.arrive(*net.to(1))
    net.arrive(*net.to(0))
    two = net.packets(net.to(1))[-1]
    assert (two.seq, two.stamp) == (2, Stamp((), 2))


# Subsets


def test_a_past_may_name_what_was_never_addressed_here() -> None:
    net = Net(3, options=LOSSLESS)
    net.send(0, b"for bob", to=0b010)
    net.settle()
    net.send(1, b"for cathy", to=0b100)
    net.settle()
    assert net.texts(2) == ["for cathy"]
    assert net.batches[2][0].deps == (1, 0, 0)
    net.send(2, b"for all")
    (packet, _) = net.packets(net.to(0) + net.to(1))
    assert packet.stamp == Stamp(((0, 1), (1, 1)), 3)
    net.settle()
    assert net.texts(0) == ["for all"]
    assert not any(batch.concurrent for member in range(3) for batch in net.batches[member])


def test_a_bare_header_waits_for_its_causes_too() -> None:
    """Bob's message to cathy follows alice's to all, so dave's place for it comes after that."""
    net = Net(4, options=LOSSLESS)
    net.send(0, b"one")
    net.arrive(*net.to(1))
    net.send(1, b"two, for cathy", to=0b0100)
    net.arrive(*net.to(2))
    net.send(2, b"three")
    net.arrive(*net.to(3, source=2), *net.to(3, source=1))
    assert net.texts(3) == []
    net.arrive(*net.to(3))
    assert net.texts(3) == ["one", "three"]


def test_a_concurrent_subset_send_is_seen() -> None:
    net = Net(3, options=LOSSLESS)
    net.send(0, b"for bob", to=0b010)
    net.send(1, b"for all")
    net.settle()
    (at_bob,), (at_alice,), (at_cathy,) = net.batches[1], net.batches[0], net.batches[2]
    assert at_bob.concurrent and at_bob.concurrent_with == [(1, 1, 1)]
    assert at_alice.concurrent and at_alice.concurrent_with == [(0, 1, 1)]
    assert not at_cathy.concurrent, "cathy never saw alice's"


# Concurrency, against the truth


class Watch:
    """Random runs of whole stacks, with the truth kept as explicit sets of (sender, seq)."""

    def __init__(self, members: int, seed: int) -> None:
        self.net = Net(members, options=LOSSLESS, takes=False)
        self.rng = Random(seed)
        self.known: list[set[tuple[int, int]]] = [set() for _ in range(members)]
        self.causes: dict[tuple[int, int], frozenset[tuple[int, int]]] = {}
        self.unread: list[list[Batch]] = [[] for _ in range(members)]
        self.seen = [0] * members
        self.pairs = 0
        self.taken: list[tuple[int, Batch]] = []

    def run(self, steps: int) -> None:
        for step in range(steps):
            roll = self.rng.random()
            member = self.rng.randrange(len(self.known))
            if roll < 0.3:
                self.send(member, step)
            elif roll < 0.65 and self.net.under_way:
                flight = self.rng.choice(self.net.under_way)
                self.net.arrive(flight)
                if self.rng.random() < 0.1:
                    self.net.arrive(flight)
            elif len(self.net.batches[member]) > self.seen[member]:
                self.take(member)
        self.net.settle()
        for member in range(len(self.known)):
            while len(self.net.batches[member]) > self.seen[member]:
                self.take(member)

    def send(self, member: int, step: int) -> None:
        id_ = (member, 1 + sum(src == member for src, _ in self.causes))
        self.causes[id_] = frozenset(self.known[member])
        self.known[member].add(id_)
        self.net.send(member, b"%d" % step)

    def take(self, member: int) -> None:
        batch = self.net.batches[member][self.seen[member]]
        self.seen[member] += 1
        self.net.take(member, batch)
        id_ = (batch.src, batch.seq)
        causes = self.causes[id_]
        assert causes <= self.known[member], "safety"
        truth = {each for each in self.known[member] if each not in causes}
        claimed = [(k, x) for k, first, last in batch.concurrent_with for x in range(first, last + 1)]
        assert len(claimed) == len(set(claimed))
        assert set(claimed) == truth, "exact: no false and no missing pair (C1)"
        assert batch.concurrent == bool(truth)
        assert batch.height == len(causes) + 1
        assert batch.deps is not None and sum(batch.deps) == len(causes)
        self.known[member].add(id_)
        self.pairs += len(truth)
        self.taken.append((member, batch))


@pytest.mark.parametrize("members", [2, 3, 4, 6])
def test_concurrency_sets_are_exact(members: int) -> None:
    pairs = 0
    for seed in range(12):
        watch = Watch(members, seed)
        watch.run(150)
        pairs += watch.pairs
        assert all(known == set(watch.causes) for known in watch.known), "liveness"
    assert pairs > 1000


def test_each_pair_is_reported_once_at_a_site() -> None:
    """C2: of a concurrent pair known at a site, the one taken later carries the flag."""
    watch = Watch(4, seed=3)
    watch.run(200)
    ids = sorted(watch.causes)
    concurrent = {
        frozenset((a, b))
        for a in ids
        for b in ids
        if a < b and a not in watch.causes[b] and b not in watch.causes[a]
    }
    for member in range(4):
        reported = [
            frozenset(((batch.src, batch.seq), (k, x)))
            for at, batch in watch.taken
            if at == member
            for k, first, last in batch.concurrent_with
            for x in range(first, last + 1)
        ]
        assert len(reported) == len(set(reported))
        assert set(reported) == concurrent


def test_deliveries_can_be_related() -> None:
    watch = Watch(3, seed=1)
    watch.run(100)
    deliveries = [Delivery(batch, 0) for at, batch in watch.taken if at == 0]
    assert len(deliveries) > 10
    for a in deliveries:
        for b in deliveries:
            id_a, id_b = (a.src, a.seq), (b.src, b.seq)
            truth = (
                "=="
                if id_a == id_b
                else "<"
                if id_a in watch.causes[id_b]
                else ">"
                if id_b in watch.causes[id_a]
                else "||"
            )
            assert relation(a, b) == truth


def test_branches_open_and_merge() -> None:
    rows: list[Row] = []
    net = Net(4, options=LOSSLESS, traces=[MemoryTrace(me, 4, rows) for me in range(4)])
    net.send(0, b"a")
    net.send(1, b"b")
    net.send(2, b"c")
    net.arrive(*net.to(3, source=1), *net.to(3, source=0))
    net.arrive(*net.to(2, source=0), *net.to(2, source=1))
    net.send(2, b"follows all three")
    net.settle()
    at_dave = net.batches[3]
    assert net.texts(3) == ["b", "a", "c", "follows all three"]
    assert [batch.branch for batch in at_dave] == [1, 2, 3, 1]
    assert [batch.merged for batch in at_dave] == [(), (), (), (2, 3)]
    assert [batch.concurrent for batch in at_dave] == [False, True, True, False]
    told = [
        (row.step, row.src, row.n) for row in rows if row.process == 3 and row.step in ("branch", "merge")
    ]
    assert told == [("branch", 0, None), ("branch", 2, None), ("merge", 2, 1)]


def test_an_own_send_closes_all_branches() -> None:
    net = Net(3, options=LOSSLESS)
    net.send(0, b"a")
    net.send(1, b"b")
    net.settle()
    net.send(2, b"c")
    net.settle()
    net.send(0, b"d")
    net.settle()
    assert [batch.branch for batch in net.batches[2]] == [1, 2, 1]
    assert [batch.merged for batch in net.batches[2]] == [(), (), ()]


def test_an_echo_has_no_flags_and_opens_no_branch() -> None:
    rows: list[Row] = []
    net = Net(
        2,
        options=Options(echo=True, lossless=True),
        takes=False,
        traces=[MemoryTrace(me, 2, rows) for me in range(2)],
    )
    net.send(0, b"mine")
    net.send(1, b"hers")
    net.settle()
    echo, other = net.batches[0]
    net.take(0, other)
    assert other.concurrent
    net.take(0, echo)
    assert not echo.concurrent and echo.concurrent_with == []
    net.send(1, b"hers again")
    net.settle()
    net.take(0, net.batches[0][2])
    assert [(batch.branch, batch.merged) for batch in (other, net.batches[0][2])] == [(2, ()), (2, ())]
    assert [(row.src, row.seq) for row in rows if row.step == "take" and row.process == 0] == [(1, 1), (1, 2)]
    assert [row.src for row in rows if row.step == "deliver" and row.process == 0] == [0, 1, 1]


# Policies


def test_flags_can_be_left_out() -> None:
    net = Net(2, options=Options(lossless=True, on_concurrent="ignore"))
    net.send(0, b"a")
    net.send(1, b"b")
    net.settle()
    assert net.texts(0) == ["b"] and net.texts(1) == ["a"]
    assert not net.batches[0][0].concurrent and net.batches[0][0].concurrent_with == []


def test_an_error_can_show_the_newest_of_a_member_and_no_other() -> None:
    net = Net(2, options=Options(lossless=True, on_concurrent="error"))
    for text in (b"one", b"two"):
        net.send(0, text)
        net.settle()
    for stack in net.stacks:
        newest = stack.recall(0, 2)
        assert newest is not None and newest.seq == 2
        assert stack.recall(0, 1) is None and stack.recall(1, 1) is None


@pytest.mark.parametrize("order", ["fifo", "vector"])
def test_without_that_error_nothing_is_kept_for_it(order: str) -> None:
    net = Net(2, order, options=LOSSLESS)
    net.send(0, b"one")
    net.settle()
    assert net.stacks[1].recall(0, 1) is None


def test_an_unknown_policy_lists_those_there_are() -> None:
    with pytest.raises(UsageError, match="deliver, error, ignore"):
        Causal(on_concurrent="panic")


# What cannot be right


def stamped(src: int, seq: int, *delta: tuple[int, int]) -> Packet:
    packet = Packet(src, 1, b"\0x")
    packet.seq, packet.stamp = seq, Stamp(delta, 1)
    return packet


def test_packets_without_stamp_or_number_are_counted() -> None:
    probe = Probe(Causal())
    packet = Packet(1, 1)
    packet.seq = 1
    assert probe.feed(packet, stamped(1, 0)) == []
    assert probe.stack.rejected == {"malformed": 2}


def test_a_stamp_that_names_our_own_unsent_message_is_counted() -> None:
    probe = Probe(Causal())
    assert probe.feed(stamped(1, 1, (0, 1))) == []
    assert probe.stack.rejected == {"forged": 1}
    assert probe.stack.held == 0


def test_what_was_seen_to_be_concurrent_is_forgotten_when_it_is_taken() -> None:
    net = Net(2, options=LOSSLESS, traces=[MemoryTrace(member, 2) for member in range(2)], takes=False)
    net.send(0, b"one")
    net.send(1, b"two")
    net.settle()
    layer = net.stacks[1].layer("causal")
    assert isinstance(layer, Causal) and layer._noticed == {(0, 1): True} and layer._unread
    net.take(1, net.batches[1][0])
    assert not layer._noticed and not layer._unread


def test_nothing_is_remembered_for_flags_that_nobody_wants() -> None:
    options = Options(lossless=True, on_concurrent="ignore")
    net = Net(2, options=options, traces=[MemoryTrace(member, 2) for member in range(2)], takes=False)
    net.stacks[1].gate("open", now=0.0)
    for text in (b"one", b"two", b"three"):
        net.send(0, text)
    net.arrive(net.to(1)[1])
    net.settle()
    layer = net.stacks[1].layer("causal")
    assert isinstance(layer, Causal) and net.texts(1) == ["two", "one", "three"]
    net.take(1, *net.batches[1])
    assert not layer._noticed and not layer._unread


def test_drained_packets_weigh_nothing_any_more() -> None:
    probe = Probe(Causal())
    probe.feed(stamped(1, 2), stamped(2, 1, (1, 1)))
    assert probe.stack.held > 0
    assert [(packet.src, packet.seq) for packet in probe.layer.drain()] == [(1, 2), (2, 1)]
    assert probe.stack.held == 0


@pytest.mark.parametrize("on_concurrent", ["deliver", "error"])
def test_what_is_read_after_our_goodbye_has_its_flag(on_concurrent: str) -> None:
    """Two say something at once; bob leaves with both unread, and reads on."""
    net = Net(3, "vector", takes=False, options=Options(on_concurrent=on_concurrent))
    net.send(0, b"of alice")
    net.send(2, b"of cathy")
    net.settle()
    bob = net.stacks[1]
    bob.goodbye(now=net.now)
    net.turn(1)
    batches = [batch for batch in net.batches[1] if batch.sender != "bob"]
    for batch in batches:
        bob.taken([batch.packet], now=net.now)
    assert [batch.concurrent for batch in batches] == [False, True]
    assert (bob.chain.order._latest != {}) == (on_concurrent == "error")
