"""Messages to some, ordered by who sent how many to whom: the spec's cases, a rough world, and bad input."""

from random import Random

import pytest

from inga.causality.inbox import Inbox
from inga.layers.matrix import CELLS_EXPECTED, Column, Matrix
from inga.layers.shape import Faults
from inga.model.errors import UsageError
from inga.model.packet import Packet
from inga.model.stamp import Cells, Delta, Stamp
from inga.recipes import Options, find
from inga.sim import Sim
from inga.sim.board import lossless, replay, wander
from inga.sim.explore import Explorer
from inga.stack.layer import Layer
from inga.trace.memory import MemoryTrace
from inga.trial.workload import Workload
from inga.wire import matrix as wire

from ..stack.harness import Net, Probe

MATRIX = Options(matrix=True)
LOSSLESS = Options(lossless=True, matrix=True)
PROMISES = (*find("vector").guarantees, "flags")
ROUGH = Faults(loss=0.1, duplicate=0.1, reorder=0.3, delay_min=0.001, delay_max=0.03)


# The spec's cases


@pytest.mark.parametrize("vector", ["V4", "V18"])
def test_a_message_to_another_is_not_waited_for(vector: str) -> None:
    """V4 and V18 are one schedule, each the end of another scheme; the matrix is for both."""
    board = replay("A!1:B A!2:C 1>B 2>C", options=Options(matrix=True))
    assert board.taken == [[], [1], [2]] and not board.oracle.violations


def test_a_message_to_another_is_not_waited_for_even_if_nothing_of_it_ever_comes() -> None:
    """V4 without its last arrival: C has no header of 1, and delivers 2."""
    net = Net(3, options=LOSSLESS)
    net.send(0, b"1", to=0b010)
    net.lose(lambda flight: flight.target == 2)
    net.send(0, b"2", to=0b100)
    net.settle()
    assert (net.texts(1), net.texts(2)) == (["1"], ["2"])


def test_an_effect_waits_for_its_cause_through_others() -> None:
    board = replay("A!1:C A!2:B 2>B B!3:C 3>C 1>C", options=Options(matrix=True))
    assert board.taken == [[], [2], [1, 3]] and not board.oracle.violations


def test_what_is_held_is_seen_to_be_concurrent_when_it_comes() -> None:
    """Its vector came whole, so that the one before it need not be there."""
    traces = [MemoryTrace(member, 2) for member in range(2)]
    net = Net(2, options=LOSSLESS, traces=traces)
    net.send(1, b"mine")
    net.send(0, b"1")
    net.send(0, b"2")
    net.arrive(net.to(1)[1])
    assert net.texts(1) == []
    assert [(row.src, row.seq) for row in traces[1].rows if row.step == "concurrent"] == [(0, 2)]


def test_every_schedule_of_three_broadcasts() -> None:
    found = Explorer(3, 3, lossless("vector", Options(matrix=True))).run()
    assert found.schedules > 900 and found.violations == 0


# Random schedules, against the oracle


def broken(
    build: type[Matrix] | None = None, *, first: int = 0, runs: int = 150, subsets: float = 0.7
) -> int:
    """How many random schedules break a promise."""

    def layers() -> list[Layer]:
        made = find("vector").build(LOSSLESS)
        return made if build is None else [build() if layer.name == "matrix" else layer for layer in made]

    count = 0
    for seed in range(first, first + runs):
        board = wander(Random(seed), 2 + seed % 4, 14, layers, duplicates=0.2, subsets=subsets)
        count += board.oracle.count(PROMISES) > 0
        if build is None:
            assert not any(stack.rejected or stack.held for stack in board.stacks)
    return count


@pytest.mark.parametrize("subsets", [0.0, 0.3, 0.7, 1.0])
def test_safe_live_and_flags_exact(subsets: float) -> None:
    assert broken(subsets=subsets) == 0


@pytest.mark.hunt
@pytest.mark.parametrize("first", range(0, 3000, 500))
def test_thousands_of_random_schedules(first: int) -> None:
    assert broken(first=first, runs=500) == 0


def held(column: Inbox[Packet], src: int, height: int, *cells: tuple[int, int, int]) -> Packet:
    """A packet that waits in the column, after so many others."""
    packet = Packet(src, 1)
    packet.stamp, packet.cells = Stamp((), height), cells
    out: list[Packet] = []
    column.offer(src, height, (), packet, out)
    assert not out
    return packet


def test_what_is_released_without_its_causes_comes_after_those_that_are_here() -> None:
    """An answer lists what is new since its sender's last message, and that is less than what its cause listed."""
    layer = Matrix()
    probe = Probe(layer, members=5)
    last = held(layer.inbox, 1, 8, (1, 0, 1), (2, 0, 1))
    answer = held(layer.inbox, 2, 7, (2, 0, 1), (3, 0, 5))
    question = held(layer.inbox, 3, 6, (3, 0, 5), (4, 0, 1))
    probe.stack.left.add(4)
    layer.forgo()
    assert probe.top.got == [question, answer, last] and not layer.inbox.held


class RowColumn(Column):
    def column(self, cells: Cells, src: int) -> tuple[int, Delta]:
        position, _ = super().column(cells, src)
        return position, tuple((j, value) for k, j, value in cells if k == self.me and j != src)


class RowForColumn(Matrix):
    """The test looks along the wrong line of the matrix: at what went out from here."""

    def view(self, view: object) -> None:
        super().view(view)  # type: ignore[arg-type]
        self.inbox = RowColumn(self.stack.me, len(self.stack.view))


class SenderOnly(Column):
    def column(self, cells: Cells, src: int) -> tuple[int, Delta]:
        return super().column(cells, src)[0], ()


class NoCauses(Matrix):
    """Only the sender's own order is looked at."""

    def view(self, view: object) -> None:
        super().view(view)  # type: ignore[arg-type]
        self.inbox = SenderOnly(self.stack.me, len(self.stack.view))


class NoMerge(Matrix):
    """What a message knew is forgotten at the take."""

    def _merge(self, packet: Packet) -> None: ...


class SinceNewest(Matrix):
    """The delta begins at the destination that heard of us last: another one lacks what came before."""

    def _heard_of_us(self, targets: object, seq: int) -> int:
        return max([self._last[j] for j in targets], default=seq)  # type: ignore[attr-defined]


class SinceLastSend(Matrix):
    """The delta begins at our last message, to whomever: right for broadcasts only."""

    def _heard_of_us(self, targets: object, seq: int) -> int:
        return seq - 1


class NoJoin(Matrix):
    """Pasts are not joined whole, so that messages to others fall out of them."""

    def taken(self, packets: list[Packet]) -> None:
        self._subsets = False
        super().taken(packets)


@pytest.mark.parametrize("mutant", [RowForColumn, NoCauses, NoMerge, SinceNewest, SinceLastSend, NoJoin])
def test_wrong_rules_are_seen(mutant: type[Matrix]) -> None:
    assert broken(mutant) > 5


# The whole recipe


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("subset", [None, 1, 2])
def test_over_links_that_lose_and_reorder(seed: int, subset: int | None) -> None:
    options = Options(matrix=True, echo=seed % 2 == 1)
    sim = Sim("alice", "bob", "cathy", "dave", seed=seed, faults=ROUGH, options=options, datagram_max=300)
    sim.load(Workload(4, 25, size=400 if seed == 2 else 40, subset=subset))
    sim.run()
    sim.check()
    assert not any(site.stack.rejected or site.stack.held for site in sim.sites)


def test_who_is_not_addressed_gets_neither_stamp_nor_body() -> None:
    net = Net(3, options=LOSSLESS)
    net.send(0, b"psst" * 10, to=0b010)
    bob, cathy = net.packets([*net.to(1), *net.to(2)])
    assert wire.get(bob.body, 3)[:2] == ((0, 0, 0), ((0, 1, 1),))
    assert cathy.bare and not cathy.body
    assert cathy.stamp is cathy.trace is cathy.ext is None


def test_what_travels_is_what_a_destination_may_lack() -> None:
    net = Net(4, options=LOSSLESS)
    net.send(0, b"1", to=0b0010)
    net.send(0, b"2", to=0b0100)
    net.send(0, b"3", to=0b0010)  # bob has not heard of 2
    net.send(0, b"4", to=0b0110)  # cathy has not heard of 3, nor bob of anything new but 4
    net.send(0, b"5", to=0b1000)  # dave has heard of nothing
    full = [packet for packet in net.packets(net.under_way) if not packet.bare]
    cells = {packet.seq: wire.get(packet.body, 4)[1] for packet in full}
    assert cells == {
        1: ((0, 1, 1),),
        2: ((0, 1, 1), (0, 2, 1)),
        3: ((0, 1, 2), (0, 2, 1)),
        4: ((0, 1, 3), (0, 2, 2)),
        5: ((0, 1, 3), (0, 2, 2), (0, 3, 1)),
    }
    net.settle()
    assert [net.texts(member) for member in range(4)] == [[], ["1", "3", "4"], ["2", "4"], ["5"]]


def test_what_is_released_and_unread_is_not_known() -> None:
    """Two counts: bob has 1 in his queue when he sends 2, so 2 does not speak of it."""
    net = Net(3, options=LOSSLESS, takes=False)
    net.send(0, b"1")
    net.arrive(*net.to(1))
    net.send(1, b"2")
    (packet,) = net.packets(net.to(2, source=1))
    assert wire.get(packet.body, 3)[:2] == ((0, 0, 0), ((1, 0, 1), (1, 2, 1)))
    net.take(1, *net.batches[1])
    assert net.batches[1][0].concurrent and net.batches[1][0].concurrent_with == [(1, 1, 1)]


def stamped(
    seq: int,
    deps: tuple[int, ...],
    cells: Cells,
    *,
    src: int = 1,
    body: bytes = b"\0x",
    dst: int | None = None,
) -> Packet:
    packet = Packet(src, 1, wire.put(deps, cells) + body, dst)
    packet.seq = seq
    return packet


def test_what_those_who_are_here_name_goes_on_with_them_and_the_rest_is_held() -> None:
    """Bob's first and third messages to alice are lost with him. Cathy names his second one; nobody names his fourth."""
    probe = Probe(Matrix())
    second = stamped(2, (0, 1, 0), ((1, 0, 2),))
    fourth = stamped(4, (0, 3, 0), ((1, 0, 4),))
    effect = stamped(1, (0, 2, 0), ((1, 0, 2), (2, 0, 1)), src=2)
    assert probe.feed(fourth, effect, second) == []
    probe.stack.left.add(1)  # in the middle of a change, when what others have of bob's is still to come
    probe.layer.forgo()  # type: ignore[attr-defined]
    assert [(packet.src, packet.seq) for packet in probe.top.got] == [(1, 2), (2, 1)]


def test_what_goes_on_with_them_is_in_causal_order_too() -> None:
    """Dave's first message is lost with him; bob, who has gone as well, has answered dave's second one, and cathy bob."""
    probe = Probe(Matrix(), members=4)
    cause = stamped(2, (0, 0, 0, 1), ((3, 0, 2),), src=3)
    answer = stamped(1, (0, 0, 0, 2), ((1, 0, 1), (3, 0, 2)))
    effect = stamped(1, (0, 1, 0, 2), ((1, 0, 1), (2, 0, 1), (3, 0, 2)), src=2)
    assert probe.feed(effect, answer, cause) == []
    probe.stack.left |= {1, 3}
    probe.layer.forgo()  # type: ignore[attr-defined]
    assert [(packet.src, packet.seq) for packet in probe.top.got] == [(3, 2), (1, 1), (2, 1)]


# Bad input


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (stamped(0, (0, 0, 0), ((1, 0, 1),)), "malformed"),
        (stamped(2, (0, 0, 0), ((1, 0, 1),)), "malformed"),  # its past and its number disagree
        (stamped(1, (0, 0, 0), ((1, 2, 1),)), "malformed"),  # not a word about us
        (stamped(1, (1, 0, 0), ((1, 0, 1),)), "forged"),  # we have sent nothing
        (stamped(1, (0, 0, 0), ((0, 2, 1), (1, 0, 1))), "forged"),
        (Packet(1, 1, b""), "truncated"),
        (Packet(1, 1, b"\0\0\0\xff"), "truncated"),
        (Packet(1, 1, b"\0\0\0\x7f"), "malformed"),
    ],
)
def test_a_stamp_that_cannot_be_right_is_counted(packet: Packet, reason: str) -> None:
    probe = Probe(Matrix())
    assert probe.feed(packet) == []
    assert probe.stack.rejected == {reason: 1}
    assert len(probe.feed(stamped(1, (0, 0, 0), ((1, 0, 1),)))) == 1, "and the next is as good as ever"


@pytest.mark.parametrize("members", [2, 8, 64])
def test_a_bundle_leaves_room_for_the_stamp(members: int) -> None:
    many = 1 << 20
    stamp = wire.put((many,) * members, tuple((k, 1, many) for k in range(min(members, CELLS_EXPECTED))))
    assert len(stamp) <= Matrix().overhead(members)


def test_it_can_be_replaced_while_it_holds_something() -> None:
    probe = Probe(Matrix())
    assert probe.feed(stamped(2, (0, 1, 0), ((1, 0, 2),))) == []
    assert probe.stack.held > 0
    probe.stack.views.replace("matrix", Matrix())
    probe.layer = probe.stack.layers[1]
    assert [p.seq for p in probe.feed(stamped(1, (0, 0, 0), ((1, 0, 1),)))] == [1, 2]
    assert probe.stack.held == 0


@pytest.mark.parametrize("order", ["none", "fifo"])
def test_other_orders_have_no_place_for_it(order: str) -> None:
    with pytest.raises(UsageError, match=f"matrix is an option of order vector; order '{order}' has none"):
        find(order).build(MATRIX)
    with pytest.raises(UsageError, match="matrix"):
        Sim("alice", "bob", order=order, options=MATRIX)
